//! Exit codes and one-line errors.

use ingot_testdata::repo::Format;

use super::world::{World, commit, text};

#[track_caller]
fn fails(world: &World, dir: &std::path::Path, args: &[&str], code: i32) -> String {
    let said = world.e2ee(dir, args);
    assert_eq!(said.code, Some(code), "{args:?}\n{}\n{}", said.out, said.err);
    assert!(said.err.starts_with("git-e2ee: "), "{args:?}: {}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{args:?}: {}", said.err);
    assert_eq!(said.out, "", "{args:?}");
    said.err
}

#[test]
fn each_kind_of_failure_has_its_code_and_one_line() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let (store, key) = (text(&world.store), text(&world.key));
    let root = world.root();

    fails(
        &world,
        root,
        &["verify", "--storage", store, "--key", "/absent.json"],
        1,
    );
    fails(&world, root, &["push", "--frobnicate"], 2);
    fails(&world, root, &["keygen"], 2);
    fails(&world, root, &["frobnicate"], 2);
    fails(
        &world,
        root,
        &["verify", "--storage", text(&world.path("absent")), "--key", key],
        10,
    );
    let empty = world.path("empty");
    std::fs::create_dir(&empty).unwrap();
    fails(
        &world,
        root,
        &["ls-remote", "--storage", text(&empty), "--key", key],
        10,
    );

    let stranger = world.path("stranger.json");
    world.e2ee(root, &["keygen", "--output", text(&stranger)]).good();
    fails(
        &world,
        root,
        &["verify", "--storage", store, "--key", text(&stranger)],
        12,
    );

    let head = world.store.join("HEAD");
    let good = std::fs::read_to_string(&head).unwrap();
    for bad in ["nonsense\n", &good[..40], &"ab".repeat(32)] {
        std::fs::write(&head, bad).unwrap();
        fails(&world, root, &["verify", "--storage", store, "--key", key], 13);
    }
    std::fs::write(&head, &good).unwrap();
    fails(&world, root, &["fetch", "e2ee::git+https://example.org/x"], 1);
}

#[test]
fn an_older_head_is_an_alarm() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let old = std::fs::read(world.store.join("HEAD")).unwrap();
    commit(&world, source.path(), "more");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let new = std::fs::read(world.store.join("HEAD")).unwrap();
    std::fs::write(world.store.join("HEAD"), &old).unwrap();
    let said = fails(&world, source.path(), &["fetch", "vault"], 13);
    assert!(said.contains("rolled back"), "{said}");
    world
        .git(source.path(), &["fetch", "vault"])
        .bad(&["rolled back"]);
    world
        .git(source.path(), &["push", "vault", "topic"])
        .bad(&["rolled back"]);
    std::fs::write(world.store.join("HEAD"), new).unwrap();
    world.e2ee(source.path(), &["fetch", "vault"]).good();
}

#[test]
fn help_and_version_succeed() {
    let world = World::new();
    for args in [
        &["--help"][..],
        &["push", "--help"],
        &["help", "clone"],
        &["--version"],
        &["-V"],
    ] {
        let said = world.e2ee(world.root(), args);
        assert_eq!(said.code, Some(0), "{args:?}");
        assert!(!said.out.is_empty() && said.err.is_empty(), "{args:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let world = World::new();
    let said = world.shell(world.root(), "git-e2ee completions bash | head -n 1");
    assert_eq!(said.err, "");
    let said = world.shell(
        world.root(),
        "set -o pipefail; git-e2ee completions bash | true; true",
    );
    assert_eq!(said.err, "");
}

#[test]
fn documents_are_written_without_a_repository() {
    let world = World::new();
    assert!(
        world
            .e2ee(world.root(), &["completions", "zsh"])
            .good()
            .contains("#compdef git-e2ee")
    );
    std::fs::create_dir(world.path("man1")).unwrap();
    world.e2ee(world.root(), &["man", "man1"]).good();
    assert!(world.path("man1/git-e2ee-push.1").is_file());
}
