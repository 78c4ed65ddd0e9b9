//! Remotes of every name and spelling.

use ingot_testdata::repo::Format;

use super::world::{World, commit, text};

#[test]
fn remote_names_with_dots_slashes_and_more() {
    let world = World::new();
    for name in [
        "plain",
        "with.dot",
        "with/slash",
        "a.b/c.d",
        "ünï",
        "UPPER",
        "x+y@z",
    ] {
        let source = world.source(name, Format::Sha1);
        world.git(source.path(), &["push", "-q", name, "main"]).good();
        world.git(source.path(), &["fetch", "-q", name]).good();
        assert_eq!(
            source.git(&["rev-parse", &format!("refs/remotes/{name}/main")]),
            source.git(&["rev-parse", "main"])
        );
    }
}

#[test]
fn without_any_remote() {
    let world = World::new();
    let source = ingot_testdata::repo::Repo::scripted("history", Format::Sha1);
    let url = world.url();
    world
        .git_with_key(source.path(), &["push", "-q", &url, "main", "v1.0"])
        .good();
    let id = commit(&world, source.path(), "more");
    world
        .git_with_key(source.path(), &["push", "-q", &url, "main"])
        .good();
    let other = ingot_testdata::repo::Repo::empty(Format::Sha1);
    world
        .git_with_key(other.path(), &["pull", "-q", &url, "main"])
        .good();
    assert_eq!(other.git(&["rev-parse", "HEAD"]), id);
    world
        .git_with_key(
            other.path(),
            &["fetch", "-q", &url, "refs/tags/v1.0:refs/tags/v1.0"],
        )
        .good();
    assert_eq!(
        other.git(&["rev-parse", "v1.0"]),
        source.git(&["rev-parse", "v1.0"])
    );
    assert!(
        !world
            .git(other.path(), &["config", "--local", "--get-regexp", "e2ee"])
            .ok,
        "nothing was configured"
    );
}

#[test]
fn a_helper_named_by_vcs() {
    let world = World::new();
    let source = ingot_testdata::repo::Repo::scripted("history", Format::Sha1);
    source.git(&["config", "remote.vault.vcs", "e2ee"]);
    source.git(&["config", "remote.vault.url", text(&world.store)]);
    source.git(&[
        "config",
        "remote.vault.fetch",
        "+refs/heads/*:refs/remotes/vault/*",
    ]);
    source.git(&["config", "remote.vault.e2ee-key", text(&world.key)]);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world.git(source.path(), &["fetch", "-q", "vault"]).good();
    assert_eq!(
        world.value("refs/heads/main"),
        Some(source.git(&["rev-parse", "main"]))
    );
}

#[test]
fn a_helper_named_by_vcs_without_a_url() {
    // The remote's name is then all that the helper is told, and stands for a folder at the top of the work tree.
    let world = World::new();
    let source = ingot_testdata::repo::Repo::scripted("history", Format::Sha1);
    let (store, key) = (source.path().join("vault"), world.path("bob.key.json"));
    world
        .e2ee(world.root(), &["keygen", "--output", text(&key)])
        .good();
    world
        .e2ee(
            world.root(),
            &["init", "--storage", text(&store), "--key", text(&key)],
        )
        .good();
    source.git(&["config", "remote.vault.vcs", "e2ee"]);
    source.git(&["config", "remote.vault.e2ee-key", text(&key)]);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    assert!(
        world
            .git(source.path(), &["ls-remote", "vault"])
            .good()
            .contains("refs/heads/main")
    );
}

#[test]
fn every_pushurl_is_a_store_of_its_own() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let second = world.path("second store");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        assert!(
            std::process::Command::new("cp")
                .arg("-r")
                .arg(from)
                .arg(to)
                .status()
                .unwrap()
                .success()
        );
    };
    copy(&world.store, &second);
    source.git(&["config", "--add", "remote.vault.pushurl", &world.url()]);
    source.git(&[
        "config",
        "--add",
        "remote.vault.pushurl",
        &format!("e2ee::{}", second.display()),
    ]);
    for round in 0..3 {
        let id = commit(&world, source.path(), &format!("round {round}"));
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        for store in [&world.store, &second] {
            let url = format!("e2ee::{}", store.display());
            let listed = world
                .git_with_key(world.root(), &["ls-remote", &url, "refs/heads/main"])
                .good();
            assert_eq!(listed, format!("{id}\trefs/heads/main"));
        }
        world.git(source.path(), &["fetch", "-q", "vault"]).good();
    }
}

#[test]
fn a_general_key_is_stored_for_the_remote_that_used_it() {
    let world = World::new();
    let source = ingot_testdata::repo::Repo::scripted("history", Format::Sha1);
    source.git(&["remote", "add", "vault", &world.url()]);
    world
        .git_with_key(source.path(), &["push", "-q", "vault", "main"])
        .good();
    assert_eq!(
        source.git(&["config", "--local", "remote.vault.e2ee-key"]),
        text(&world.key)
    );
    world.git(source.path(), &["fetch", "-q", "vault"]).good();
}

#[test]
fn rewritten_urls_and_included_configuration() {
    let world = World::new();
    let source = ingot_testdata::repo::Repo::scripted("history", Format::Sha1);
    let included = world.path("included.config");
    std::fs::write(&included, format!("[e2ee]\n\tkey = {}\n", text(&world.key))).unwrap();
    source.git(&["config", "include.path", text(&included)]);
    source.git(&[
        "config",
        &format!("url.e2ee::{}/.insteadOf", text(world.root())),
        "vault:",
    ]);
    source.git(&["remote", "add", "vault", "vault:store"]);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    assert!(world.value("refs/heads/main").is_some());
}
