//! Where keys may lie, and what is said when they lie elsewhere.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use ingot_testdata::repo::Format;

use super::world::{Bare, World, text};

/// Points the remote at another place of the key.
fn use_key(world: &World, dir: &Path, key: &Path) {
    world
        .git(dir, &["config", "remote.vault.e2ee-key", text(key)])
        .good();
}

#[test]
fn a_key_in_the_work_tree_is_refused_with_the_way_out() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let inside = source.path().join("sub/it's.key.json");
    std::fs::create_dir(inside.parent().unwrap()).unwrap();
    std::fs::rename(&world.key, &inside).unwrap();
    let pin = |path: &Path| format!("{}.admin-state.json", text(path));
    std::fs::rename(pin(&world.key), pin(&inside)).unwrap();
    use_key(&world, source.path(), &inside);
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["lies in the work tree", "could be committed"]);
    for command in ["push", "fetch", "verify", "device-list", "doctor"] {
        let said = world.e2ee(source.path(), &[command, "vault"]);
        assert!(
            said.out.contains("work tree") || said.err.contains("work tree"),
            "{command}: {}",
            said.err
        );
        assert_eq!(said.code, Some(1), "{command}");
    }
    let said = world
        .e2ee(source.path(), &["key", "show", "vault"])
        .bad(&["lies in the work tree"]);
    // What it says is what a person can paste.
    let line = said.err.split_once("run: ").unwrap().1.trim_end();
    world.shell(source.path(), line).good();
    let new = world.path("home/.config/ingot/keys/it's.key.json");
    assert!(new.exists() && !inside.exists());
    assert!(Path::new(&pin(&new)).exists());
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
}

#[test]
fn links_do_not_hide_it() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let (inside, link) = (source.path().join("key.json"), world.path("link.json"));
    std::fs::rename(&world.key, &inside).unwrap();
    symlink(&inside, &link).unwrap();
    use_key(&world, source.path(), &link);
    world
        .e2ee(source.path(), &["fetch", "vault"])
        .bad(&["lies in the work tree"]);
    // The tree by another name.
    let tree = world.path("tree");
    symlink(source.path(), &tree).unwrap();
    use_key(&world, source.path(), &tree.join("key.json"));
    world
        .e2ee(source.path(), &["fetch", "vault"])
        .bad(&["lies in the work tree"]);
    // A link in the tree to a key outside is no key in the tree.
    let outside = world.path("outside.json");
    std::fs::rename(&inside, &outside).unwrap();
    symlink(&outside, &inside).unwrap();
    use_key(&world, source.path(), &inside);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
}

#[test]
fn the_git_folder_is_no_work_tree() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let inside = source.path().join(".git/alice.key.json");
    std::fs::rename(&world.key, &inside).unwrap();
    use_key(&world, source.path(), &inside);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    // Also for a linked work tree, which is elsewhere.
    let second = world.path("second");
    world
        .git(source.path(), &["worktree", "add", "-q", text(&second)])
        .good();
    world.git(&second, &["fetch", "-q", "vault"]).good();
    // Another repository's work tree does not matter to this one.
    let other = world.path("other");
    world.git(world.root(), &["init", "-q", text(&other)]).good();
    let key = other.join("key.json");
    std::fs::rename(&inside, &key).unwrap();
    use_key(&world, source.path(), &key);
    world.git(source.path(), &["fetch", "-q", "vault"]).good();
}

#[test]
fn none_is_made_there() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    for args in [
        &["keygen", "--output", "new.json"][..],
        &["join", "--request", "--key", "new.json"],
        &["key", "import", text(&world.key), "--output", "new.json"],
        &["key", "backup", "--key", text(&world.key), "--output", "new.json"],
    ] {
        world.e2ee(source.path(), args).bad(&["work tree"]);
        assert!(!source.path().join("new.json").exists(), "{args:?}");
    }
}

#[test]
fn others_must_not_read_it() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    super::protect::protect(&world.key);
    std::fs::set_permissions(&world.key, std::fs::Permissions::from_mode(0o604)).unwrap();
    let said = world
        .e2ee(source.path(), &["fetch", "vault"])
        .bad(&["open to other users (mode 0604)", "chmod 600"]);
    assert!(
        !said.err.contains("GIT_ASKPASS"),
        "nobody is asked for its passphrase: {}",
        said.err
    );
    world.git(source.path(), &["fetch", "vault"]).bad(&["chmod 600"]);
}

/// Where the home folder is the work tree, the usual place of keys is in it.
#[test]
fn a_home_folder_that_is_a_work_tree() {
    let bare = Bare::new();
    let home = bare.path("home");
    std::fs::create_dir(&home).unwrap();
    bare.git(&home, &["init", "-q"]).good();
    bare.git(&home, &["commit", "-q", "--allow-empty", "-m", "first"])
        .good();
    let said = bare.e2ee(&home, &["push"]).good();
    assert!(
        said.contains("key change-passphrase") && said.contains("key backup"),
        "{said}"
    );
    assert!(home.join(".git/ingot/keys/home.key.json").exists(), "{said}");
    bare.git(&home, &["fetch", "-q", "e2ee"]).good();
}
