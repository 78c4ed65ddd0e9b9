//! A push with nothing configured, and the commands that set things up one by one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use ingot_testdata::repo::Format;

use super::world::{Bare, commit, sound, text};

fn repository(bare: &Bare, name: &str) -> PathBuf {
    let path = bare.path(name);
    bare.git(bare.root(), &["init", "-q", text(&path)]).good();
    commit(bare, &path, "first");
    path
}

#[test]
fn a_push_with_nothing_configured_sets_everything_up() {
    for format in Format::BOTH {
        let bare = Bare::new();
        let path = bare.path("notes");
        bare.git(
            bare.root(),
            &["init", "-q", "--object-format", format.name(), text(&path)],
        )
        .good();
        let id = commit(&bare, &path, "first");
        let said = bare.e2ee(&path, &["push"]).good();
        let key = bare.path("home/.config/ingot/keys/notes.key.json");
        let store = bare.path("home/.local/share/ingot/stores/notes");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            key.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(store.join("HEAD").is_file());
        for told in [text(&key), text(&store), "git-e2ee clone", "[new branch]"] {
            assert!(said.contains(told), "no {told:?} in\n{said}");
        }
        let config = |name: &str| bare.git(&path, &["config", "--local", name]).good();
        assert_eq!(config("remote.e2ee.url"), format!("e2ee::{}", store.display()));
        assert_eq!(config("remote.e2ee.e2ee-key"), text(&key));
        assert_eq!(
            bare.git(&path, &["rev-parse", "refs/remotes/e2ee/main"]).good(),
            id
        );

        // Again: nothing to do, then what is new; Git uses the same remote.
        assert!(bare.e2ee(&path, &["push"]).good().contains("up-to-date"));
        commit(&bare, &path, "second");
        assert!(bare.e2ee(&path, &["push"]).good().contains("main -> main"));
        let third = commit(&bare, &path, "third");
        bare.git(&path, &["push", "-q", "e2ee"]).good();
        bare.git(&path, &["fetch", "-q", "e2ee"]).good();

        // The command that was printed works, word for word.
        let line = said
            .lines()
            .find(|line| line.trim_start().starts_with("git-e2ee clone"))
            .unwrap()
            .trim();
        let clone = bare.path("elsewhere");
        std::fs::create_dir(&clone).unwrap();
        bare.shell(&clone, line).good();
        assert_eq!(
            bare.git(&clone.join("notes"), &["rev-parse", "HEAD"]).good(),
            third
        );
        sound(&bare, &clone.join("notes"));
    }
}

#[test]
fn xdg_folders_are_honoured() {
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    let said = bare.e2ee_with(
        &path,
        &["push", "--json"],
        &[
            ("XDG_CONFIG_HOME", text(&bare.path("c"))),
            ("XDG_DATA_HOME", text(&bare.path("d"))),
        ],
    );
    let report: serde_json::Value = serde_json::from_str(&said.good()).unwrap();
    assert_eq!(
        report["setup"]["key"],
        text(&bare.path("c/ingot/keys/notes.key.json"))
    );
    assert_eq!(report["setup"]["store"], text(&bare.path("d/ingot/stores/notes")));
}

#[test]
fn repositories_of_one_name_do_not_share_a_store() {
    let bare = Bare::new();
    let one = repository(&bare, "one/notes");
    let two = repository(&bare, "two/notes");
    bare.e2ee(&one, &["push"]).good();
    bare.e2ee(&two, &["push"]).good();
    let url = |path| bare.git(path, &["config", "remote.e2ee.url"]).good();
    assert_ne!(url(&one), url(&two));
    assert_eq!(
        bare.git(&one, &["ls-remote", "e2ee", "refs/heads/main"])
            .good()
            .split('\t')
            .next()
            .unwrap(),
        bare.git(&one, &["rev-parse", "main"]).good()
    );
    assert_eq!(
        bare.git(&two, &["ls-remote", "e2ee", "refs/heads/main"])
            .good()
            .split('\t')
            .next()
            .unwrap(),
        bare.git(&two, &["rev-parse", "main"]).good()
    );
}

#[test]
fn an_interrupted_set_up_is_finished_by_the_same_command() {
    // After each step the configuration, which is written last, is missing.
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    let key = bare.path("home/.config/ingot/keys/notes.key.json");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    bare.e2ee(&path, &["keygen", "--output", text(&key)]).good();
    bare.e2ee(&path, &["push"]).good();
    assert_eq!(
        bare.git(&path, &["config", "remote.e2ee.e2ee-key"]).good(),
        text(&key)
    );

    let bare = Bare::new();
    let path = repository(&bare, "notes");
    let key = bare.path("home/.config/ingot/keys/notes.key.json");
    let store = bare.path("home/.local/share/ingot/stores/notes");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    bare.e2ee(&path, &["keygen", "--output", text(&key)]).good();
    bare.e2ee(&path, &["init", "--storage", text(&store), "--key", text(&key)])
        .good();
    bare.e2ee(&path, &["push"]).good();
    assert_eq!(
        bare.git(&path, &["config", "remote.e2ee.url"]).good(),
        format!("e2ee::{}", store.display())
    );

    // The folder is there, and its head is not.
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    let key = bare.path("home/.config/ingot/keys/notes.key.json");
    let store = bare.path("home/.local/share/ingot/stores/notes");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    bare.e2ee(&path, &["keygen", "--output", text(&key)]).good();
    for folder in [".staging", "manifests/ab"] {
        std::fs::create_dir_all(store.join(folder)).unwrap();
    }
    std::fs::write(store.join("HEAD.lock"), "").unwrap();
    bare.e2ee(&path, &["push"]).good();
    assert_eq!(
        bare.git(&path, &["config", "remote.e2ee.url"]).good(),
        format!("e2ee::{}", store.display())
    );
}

#[test]
fn nothing_is_made_when_there_is_nothing_to_push() {
    let bare = Bare::new();
    let path = bare.path("notes");
    bare.git(bare.root(), &["init", "-q", text(&path)]).good();
    bare.e2ee(&path, &["push"]).bad(&["git-e2ee: ", "commit"]);
    let path = repository(&bare, "detached");
    bare.git(&path, &["checkout", "-q", "--detach"]).good();
    bare.e2ee(&path, &["push"]).bad(&["git-e2ee: ", "HEAD"]);
    bare.e2ee(bare.root(), &["push"])
        .bad(&["git-e2ee: ", "repository"]);
    assert!(!bare.path("home/.config").exists() && !bare.path("home/.local").exists());
}

#[test]
fn a_configured_remote_whose_store_is_gone_is_not_made_again() {
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    bare.e2ee(&path, &["push"]).good();
    let store = bare.path("home/.local/share/ingot/stores/notes");
    std::fs::remove_dir_all(&store).unwrap();
    assert_eq!(bare.e2ee(&path, &["push"]).bad(&[text(&store)]).code, Some(10));
    assert!(!store.exists());
}

#[test]
fn keys_and_devices() {
    let bare = Bare::new();
    let key = bare.path("k.json");
    let said = bare.e2ee(bare.root(), &["keygen", "--output", text(&key)]).good();
    let (_, root) = said.split_once(" for repository root ").unwrap();
    assert!(said.starts_with(&format!("created {}", text(&key))));
    assert_eq!(root.len(), 64);
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    bare.e2ee(bare.root(), &["keygen", "--output", text(&key)])
        .bad(&["git-e2ee: ", text(&key)]);

    let second = bare.path("second.json");
    let said = bare
        .e2ee(
            bare.root(),
            &["keygen", "--output", text(&second), "--repository-root", root],
        )
        .good();
    assert!(said.ends_with(root));
    let device = bare.path("device.json");
    let said = bare
        .e2ee(
            bare.root(),
            &[
                "device-export",
                "--key",
                text(&second),
                "--output",
                text(&device),
                "--json",
            ],
        )
        .good();
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    let public: serde_json::Value = serde_json::from_slice(&std::fs::read(&device).unwrap()).unwrap();
    assert_eq!(public["repository_root"], root);
    assert_eq!(report["device_id"], public["device_id"]);
    let secret = std::fs::read_to_string(&second).unwrap();
    let secret: serde_json::Value = serde_json::from_str(&secret).unwrap();
    assert!(
        !std::fs::read_to_string(&device)
            .unwrap()
            .contains(secret["signing_private_key"].as_str().unwrap())
    );

    // A key of another root cannot found a store.
    bare.e2ee(
        bare.root(),
        &["init", "--storage", text(&bare.path("s")), "--key", text(&second)],
    )
    .bad(&["git-e2ee: "]);
    assert!(!bare.path("s/HEAD").exists());
    assert_eq!(
        bare.e2ee(
            bare.root(),
            &["keygen", "--output", "x", "--repository-root", "12"]
        )
        .bad(&[])
        .code,
        Some(2)
    );
}

#[test]
fn init_prints_the_manifest_and_never_overwrites() {
    let bare = Bare::new();
    let (key, store) = (bare.path("k.json"), bare.path("deep/store"));
    bare.e2ee(bare.root(), &["keygen", "--output", text(&key)]).good();
    let id = bare
        .e2ee(
            bare.root(),
            &["init", "--storage", text(&store), "--key", text(&key)],
        )
        .good();
    assert_eq!(
        std::fs::read_to_string(store.join("HEAD")).unwrap().trim_end(),
        id
    );
    bare.e2ee(
        bare.root(),
        &["init", "--storage", text(&store), "--key", text(&key)],
    )
    .bad(&["already"]);
    assert_eq!(
        std::fs::read_to_string(store.join("HEAD")).unwrap().trim_end(),
        id
    );
    let full = bare.path("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("file"), "precious").unwrap();
    let other = bare.path("o.json");
    bare.e2ee(bare.root(), &["keygen", "--output", text(&other)])
        .good();
    bare.e2ee(
        bare.root(),
        &["init", "--storage", text(&full), "--key", text(&other)],
    )
    .bad(&[text(&full)]);
}

/// The name of the remote was used before, for a store that this repository still remembers.
#[test]
fn a_second_set_up_is_not_taken_for_an_exchanged_store() {
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    bare.e2ee(&path, &["push"]).good();
    bare.git(&path, &["remote", "remove", "e2ee"]).good();
    let said = bare.e2ee(&path, &["push"]).good();
    assert!(said.contains("notes-2"), "{said}");
    commit(&bare, &path, "second");
    bare.e2ee(&path, &["push"]).good();
    bare.e2ee(&path, &["fetch"]).good();
}

#[test]
fn two_first_pushes_at_once_make_one_store() {
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| bare.e2ee(&path, &["push"]).good()));
        for one in both {
            one.join().unwrap();
        }
    });
    let stores = bare.path("home/.local/share/ingot/stores");
    let names: Vec<_> = std::fs::read_dir(stores)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(names, ["notes"]);
    bare.e2ee(&path, &["push"]).good();
}

/// A store that was rolled back is caught under every name.
#[test]
fn a_rolled_back_store_is_caught_by_every_way_in() {
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    bare.e2ee(&path, &["push"]).good();
    let store = bare.path("home/.local/share/ingot/stores/notes");
    let key = bare.path("home/.config/ingot/keys/notes.key.json");
    let (old, gone) = (bare.path("old"), bare.path("gone"));
    bare.shell(bare.root(), &format!("cp -a '{}' '{}'", text(&store), text(&old)))
        .good();
    commit(&bare, &path, "second");
    bare.e2ee(&path, &["push"]).good();
    bare.git(&path, &["worktree", "add", "-q", text(&bare.path("second"))])
        .good();
    bare.git(&path, &["remote", "rename", "e2ee", "renamed"]).good();
    std::fs::rename(&store, &gone).unwrap();
    bare.e2ee(&path, &["fetch", "renamed"])
        .bad(&["any more", "generation 2"]);
    std::fs::rename(&old, &store).unwrap();
    bare.e2ee(&path, &["fetch", "renamed"]).bad(&["pinned in"]);
    bare.e2ee(&bare.path("second"), &["fetch", "renamed"])
        .bad(&["pinned in"]);
    let direct = ["fetch", "--storage", text(&store), "--key", text(&key)];
    bare.e2ee(&path, &direct).bad(&["pinned in"]);
}

/// What others put into the folder of a clone is not the clone's to remove.
#[test]
fn a_failed_clone_removes_its_own_files_only() {
    let bare = Bare::new();
    let path = repository(&bare, "notes");
    bare.e2ee(&path, &["push"]).good();
    let store = bare.path("home/.local/share/ingot/stores/notes");
    let pack = walk(&store.join("objects")).pop().expect("a pack");
    std::fs::set_permissions(&pack, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    let key = bare.path("home/.config/ingot/keys/notes.key.json");
    let arguments = ["clone", "--key", text(&key), text(&store)];
    let above = bare.path("above");
    bare.e2ee(
        bare.root(),
        &[&arguments[..], &[text(&above.join("one"))]].concat(),
    )
    .bad(&[]);
    assert!(!above.exists(), "what was made for it goes");
    std::fs::create_dir_all(above.join("mine")).unwrap();
    std::fs::write(above.join("mine/file"), "precious").unwrap();
    bare.e2ee(
        bare.root(),
        &[&arguments[..], &[text(&above.join("two"))]].concat(),
    )
    .bad(&[]);
    assert!(above.join("mine/file").exists() && !above.join("two").exists());
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(walk(&path)),
            false => found.push(path),
        }
    }
    found
}
