//! Pushes that must not happen, in Git's own words, with nothing published.

use ingot_testdata::repo::{Format, Repo};

use super::world::{World, commit, text};

/// A source and a clone of main, and what the store has.
fn two(world: &World) -> (Repo, std::path::PathBuf) {
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic", "v1.0"])
        .good();
    let clone = world.clone("clone", &[]);
    (source, clone)
}

#[test]
fn a_tip_that_is_not_known_here() {
    let world = World::new();
    let (source, clone) = two(&world);
    commit(&world, &clone, "theirs");
    world.git(&clone, &["push", "-q"]).good();
    let before = world.refs();
    commit(&world, source.path(), "mine");
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["[rejected]", "(fetch first)"]);
    assert_eq!(world.refs(), before);
}

#[test]
fn history_that_would_be_lost() {
    let world = World::new();
    let (source, _) = two(&world);
    let before = world.refs();
    world
        .git(source.path(), &["push", "vault", "main~1:main"])
        .bad(&["[rejected]", "(non-fast-forward)"]);
    world
        .git(source.path(), &["push", "vault", "second:topic"])
        .bad(&["[rejected]", "(non-fast-forward)"]);
    assert_eq!(world.refs(), before);
}

#[test]
fn a_tag_that_is_there() {
    let world = World::new();
    let (source, _) = two(&world);
    let before = world.refs();
    world
        .git(source.path(), &["push", "vault", "light:refs/tags/v1.0"])
        .bad(&["[rejected]", "(already exists)"]);
    assert_eq!(world.refs(), before);
    world
        .git(source.path(), &["push", "vault", "+light:refs/tags/v1.0"])
        .good();
    assert_eq!(
        world.value("refs/tags/v1.0"),
        Some(source.git(&["rev-parse", "light"]))
    );
}

#[test]
fn a_stale_lease() {
    let world = World::new();
    let (source, clone) = two(&world);
    commit(&world, &clone, "theirs");
    world.git(&clone, &["push", "-q"]).good();
    let before = world.refs();
    let args = ["push", "--force-with-lease=main", "vault", "main~1:main"];
    world
        .git(source.path(), &args)
        .bad(&["[rejected]", "(stale info)"]);
    let args = ["push", "--force-with-lease=topic:", "vault", "main:topic"];
    world.git(source.path(), &args).bad(&["(stale info)"]);
    assert_eq!(world.refs(), before);
}

#[test]
fn an_atomic_push_with_one_bad_reference() {
    let world = World::new();
    let (source, clone) = two(&world);
    commit(&world, &clone, "theirs");
    world.git(&clone, &["push", "-q"]).good();
    let before = world.refs();
    let generation = world.generation();
    commit(&world, source.path(), "mine");
    // The tip of main is unknown here, so that Git leaves the decision to the helper.
    world
        .git(source.path(), &["push", "--atomic", "vault", "main", "second"])
        .bad(&["(fetch first)", "second -> second"]);
    assert_eq!(world.refs(), before);
    assert_eq!(world.generation(), generation);
    // Without --atomic the good one goes through.
    world
        .git(source.path(), &["push", "vault", "main", "second"])
        .bad(&["(fetch first)", "[new branch]"]);
    assert_eq!(
        world.value("refs/heads/second"),
        Some(source.git(&["rev-parse", "second"]))
    );
}

#[test]
fn references_that_the_format_cannot_carry() {
    let world = World::new();
    let (source, _) = two(&world);
    let args = ["push", "vault", "main:refs/notes/x", "second"];
    world
        .git(source.path(), &args)
        .bad(&["unsupported ref namespace", "[new branch]"]);
    let blob = source.git(&["rev-parse", "HEAD:src/numbers.txt"]);
    source.git(&["tag", "-f", "-a", "-m", "x", "of-commit"]);
    world
        .git(source.path(), &["push", "vault", "of-commit:refs/heads/tag"])
        .bad(&["commit"]);
    world
        .git(
            source.path(),
            &["push", "vault", &format!("{blob}:refs/heads/blob")],
        )
        .bad(&["commit"]);
    world
        .git(source.path(), &["push", "vault", "second:refs/heads/main/sub"])
        .bad(&["refs/heads/main"]);
    world
        .git(source.path(), &["push", "vault", ":main"])
        .bad(&["default branch"]);
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_utf8_leaves_the_rest_alone() {
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt as _;

    let world = World::new();
    let (source, _) = two(&world);
    let name = std::ffi::OsStr::from_bytes(b"refs/heads/\xff");
    let id = source.git(&["rev-parse", "main"]);
    std::fs::File::create(source.git_dir().join(name))
        .unwrap()
        .write_all(format!("{id}\n").as_bytes())
        .unwrap();
    world
        .git(source.path(), &["push", "--all", "vault"])
        .bad(&["UTF-8", "[new branch]      second -> second"]);
    assert!(world.value("refs/heads/second").is_some());
}

#[test]
fn options_that_cannot_be_honoured_stop_git() {
    let world = World::new();
    let (source, _) = two(&world);
    world
        .git(source.path(), &["push", "-o", "x", "vault", "second"])
        .bad(&["push-option"]);
    world
        .git(source.path(), &["push", "--signed", "vault", "second"])
        .bad(&["--signed"]);
    assert!(world.value("refs/heads/second").is_none());
}

#[test]
fn another_object_format() {
    let world = World::new();
    let (_, _) = two(&world);
    let other = world.source("vault", Format::Sha256);
    world
        .git(other.path(), &["push", "vault", "second"])
        .bad(&["sha1", "sha256"]);
    assert!(world.value("refs/heads/second").is_none());
}

#[test]
fn incomplete_history() {
    let world = World::new();
    let source = Repo::scripted("history", Format::Sha1);
    let shallow = world.path("shallow");
    let url = format!("file://{}", source.path().display());
    world
        .git(
            world.root(),
            &["clone", "-q", "--depth", "2", &url, text(&shallow)],
        )
        .good();
    world.add_remote(&shallow, "vault", &world.url());
    world
        .git(&shallow, &["push", "vault", "main"])
        .bad(&["shallow", "git fetch --unshallow"]);
    assert!(world.refs().is_empty());
}

#[test]
fn missing_key_store_and_rights() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["config", "--unset", "remote.vault.e2ee-key"])
        .good();
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["git config remote.vault.e2ee-key"]);
    world
        .git(
            source.path(),
            &["config", "remote.vault.e2ee-key", "/absent/key.json"],
        )
        .good();
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["/absent/key.json"]);

    let stranger = world.path("stranger.key.json");
    world
        .e2ee(world.root(), &["keygen", "--output", text(&stranger)])
        .good();
    world
        .git(
            source.path(),
            &["config", "remote.vault.e2ee-key", text(&stranger)],
        )
        .good();
    world
        .git(source.path(), &["ls-remote", "vault"])
        .bad(&["git-remote-e2ee: "]);

    world.add_remote(source.path(), "nowhere", "e2ee::/absent/store");
    world
        .git(source.path(), &["push", "nowhere", "main"])
        .bad(&["/absent/store"]);
    assert!(
        !std::path::Path::new("/absent").exists(),
        "a push never makes a store"
    );
    world.add_remote(source.path(), "carrier", "e2ee::git+gopher://example.org/x");
    world.git(source.path(), &["fetch", "carrier"]).bad(&["gopher"]);
}
