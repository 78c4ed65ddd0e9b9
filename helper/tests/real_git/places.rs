//! Work trees, bare repositories, submodules, and folders with difficult names.

use ingot_testdata::repo::{Format, Repo};

use super::world::{World, commit, sound, text};

#[test]
fn folders_with_spaces_and_other_scripts() {
    let world = World::at("ein Speicher/mit Größe 100% #1/库");
    let source = Repo::scripted("history", Format::Sha1);
    let place = world.path("Arbeit & 作業/it's");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    world
        .git(world.root(), &["clone", "-q", text(source.path()), text(&place)])
        .good();
    world.add_remote(&place, "vault", &world.url());
    world.git(&place, &["push", "-q", "vault", "main"]).good();
    world.git(&place, &["fetch", "-q", "vault"]).good();
    sound(&world, &world.clone("ein Klon, größer", &[]));
}

#[test]
fn relative_urls_and_keys_start_at_the_top_of_the_work_tree() {
    let world = World::new();
    let source = Repo::empty(Format::Sha1);
    drop(source);
    let top = world.path("work");
    world.git(world.root(), &["init", "-q", text(&top)]).good();
    commit(&world, &top, "first");
    std::fs::create_dir_all(top.join("deep/er")).unwrap();
    world
        .git(&top, &["remote", "add", "vault", "e2ee::../store"])
        .good();
    world
        .git(&top, &["config", "remote.vault.e2ee-key", "../alice.key.json"])
        .good();
    world
        .git(&top.join("deep/er"), &["push", "-q", "vault", "HEAD:main"])
        .good();
    assert!(world.value("refs/heads/main").is_some());
    world.e2ee(&top.join("deep/er"), &["fetch", "vault"]).good();
}

#[test]
fn keys_below_the_home_folder() {
    let world = World::new();
    let source = Repo::scripted("history", Format::Sha1);
    std::fs::create_dir_all(world.path("home")).unwrap();
    std::fs::rename(&world.key, world.path("home/my.key.json")).unwrap();
    source.git(&["remote", "add", "vault", &world.url()]);
    source.git(&["config", "remote.vault.e2ee-key", "~/my.key.json"]);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
}

#[test]
fn linked_worktrees() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let linked = world.path("linked");
    source.git(&["worktree", "add", "-q", "-b", "side", text(&linked), "topic"]);
    let id = commit(&world, &linked, "in the linked work tree");
    world.git(&linked, &["push", "-q", "vault", "HEAD"]).good();
    assert_eq!(world.value("refs/heads/side"), Some(id.clone()));
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world.git(&linked, &["fetch", "-q", "vault"]).good();
    assert_eq!(source.git(&["rev-parse", "vault/side"]), id);
    let clone = world.clone("clone", &[]);
    commit(&world, &clone, "more");
    world.git(&clone, &["push", "-q"]).good();
    world.git(&linked, &["fetch", "-q", "vault"]).good();
    sound(&world, source.path());
}

#[test]
fn bare_repositories() {
    let world = World::new();
    let source = Repo::scripted("history", Format::Sha1);
    let bare = world.path("bare.git");
    world
        .git(
            world.root(),
            &["clone", "-q", "--bare", text(source.path()), text(&bare)],
        )
        .good();
    world.add_remote(&bare, "vault", &world.url());
    world.git(&bare, &["push", "-q", "--all", "vault"]).good();
    world
        .git(&bare.join("objects"), &["push", "-q", "--tags", "vault"])
        .good();
    world.git(&bare, &["fetch", "-q", "vault"]).good();
    let elsewhere = ["--git-dir", text(&bare), "ls-remote", "vault"];
    assert!(
        world
            .git(world.root(), &elsewhere)
            .good()
            .contains("refs/tags/v1.0")
    );
}

#[test]
fn a_separate_git_folder_and_alternates() {
    let world = World::new();
    let source = Repo::scripted("history", Format::Sha1);
    let work = world.path("work");
    let separate = world.path("separate.git");
    let args = [
        "clone",
        "-q",
        "--shared",
        "--separate-git-dir",
        text(&separate),
        text(source.path()),
        text(&work),
    ];
    world.git(world.root(), &args).good();
    world.add_remote(&work, "vault", &world.url());
    commit(&world, &work, "on top of borrowed objects");
    world.git(&work, &["push", "-q", "vault", "main"]).good();
    sound(&world, &world.clone("clone", &[]));
}

#[test]
fn submodules() {
    let world = World::new();
    let inner = world.source("vault", Format::Sha1);
    world.git(inner.path(), &["push", "-q", "vault", "main"]).good();
    let outer = Repo::empty(Format::Sha1);
    outer.write("readme", "outer");
    outer.commit("first");
    let url = world.url();
    let allow = ["-c", "protocol.e2ee.allow=always", "submodule"];
    let mut add = allow.to_vec();
    add.extend(["add", "-q", &url, "inner"]);
    world.git_with_key(outer.path(), &add).good();
    outer.commit("with a submodule");

    let clone = world.path("outer");
    world
        .git(world.root(), &["clone", "-q", text(outer.path()), text(&clone)])
        .good();
    let mut update = allow.to_vec();
    update.extend(["update", "-q", "--init"]);
    world.git_with_key(&clone, &update).good();
    assert_eq!(
        world.git(&clone.join("inner"), &["rev-parse", "HEAD"]).good(),
        inner.git(&["rev-parse", "main"])
    );
    // A submodule's Git folder lies inside its superproject's.
    let mut update = allow.to_vec();
    update.extend(["update", "-q", "--remote"]);
    commit(&world, inner.path(), "newer");
    world.git(inner.path(), &["push", "-q", "vault", "main"]).good();
    world.git(&clone, &update).good();
    assert_eq!(
        world.git(&clone.join("inner"), &["rev-parse", "HEAD"]).good(),
        inner.git(&["rev-parse", "main"])
    );
}
