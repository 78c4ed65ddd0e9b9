//! Fetching without Git.

use ingot_testdata::repo::{Format, Repo};

use super::world::{World, commit, sound, text};

#[test]
fn tracking_branches_and_tags() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic"])
        .good();
    let clone = world.clone("clone", &[]);
    let id = commit(&world, source.path(), "more");
    source.git(&["tag", "-a", "-m", "x", "v9"]);
    world
        .git(
            source.path(),
            &["push", "-q", "vault", "main", "v9", "second", ":topic"],
        )
        .good();
    let said = world.e2ee(&clone, &["fetch"]).good();
    assert!(
        said.contains("main -> origin/main") && said.contains("[new branch]") && said.contains("[new tag]"),
        "{said}"
    );
    assert_eq!(world.git(&clone, &["rev-parse", "origin/main"]).good(), id);
    assert_eq!(
        world.git(&clone, &["rev-parse", "v9"]).good(),
        source.git(&["rev-parse", "v9"])
    );
    assert!(
        world
            .git(&clone, &["rev-parse", "-q", "--verify", "origin/topic"])
            .ok
    );
    assert!(
        world
            .e2ee(&clone, &["fetch", "--prune"])
            .good()
            .contains("[deleted]")
    );
    assert!(
        !world
            .git(&clone, &["rev-parse", "-q", "--verify", "origin/topic"])
            .ok
    );
    assert_eq!(world.git(&clone, &["fetch", "-v"]).good(), "");
    assert!(
        world
            .git(&clone, &["reflog", "show", "origin/main"])
            .good()
            .contains("fetch")
    );
    sound(&world, &clone);
}

#[test]
fn the_form_of_the_existing_implementation() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "v1.0"])
        .good();
    let target = Repo::empty(Format::Sha1);
    let args = [
        "fetch",
        "--storage",
        text(&world.store),
        "--key",
        text(&world.key),
        "--repo",
        text(target.path()),
        "--remote-name",
        "backup",
    ];
    assert_eq!(world.e2ee(world.root(), &args).good(), "fetched generation 1");
    assert_eq!(
        target.git(&["rev-parse", "backup/main"]),
        source.git(&["rev-parse", "main"])
    );
    assert_eq!(
        target.git(&["rev-parse", "v1.0"]),
        source.git(&["rev-parse", "v1.0"])
    );
    assert_eq!(world.e2ee(world.root(), &args).good(), "fetched generation 1");
    sound(&world, target.path());
}

#[test]
fn chosen_references() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic", "second"])
        .good();
    let target = Repo::empty(Format::Sha1);
    target.write("x", "x");
    target.commit("mine");
    world.add_remote(target.path(), "vault", &world.url());
    world
        .e2ee(target.path(), &["fetch", "vault", "topic:refs/heads/theirs"])
        .good();
    assert_eq!(
        target.git(&["rev-parse", "theirs"]),
        source.git(&["rev-parse", "topic"])
    );
    world.e2ee(target.path(), &["fetch", "vault", "second"]).good();
    assert_eq!(
        target.git(&["rev-parse", "vault/second"]),
        source.git(&["rev-parse", "second"])
    );
    assert_eq!(
        target.git(&["rev-parse", "FETCH_HEAD"]),
        source.git(&["rev-parse", "second"])
    );
    world
        .e2ee(target.path(), &["fetch", "vault", "absent"])
        .bad(&["absent"]);
    // What is checked out does not move under the user, and what would be lost is not.
    world
        .e2ee(target.path(), &["fetch", "vault", "+main:refs/heads/main"])
        .bad(&["refs/heads/main"]);
    let said = world.e2ee(target.path(), &["fetch", "vault", "second:refs/heads/theirs"]);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("non-fast-forward"), "{}", said.out);
    world
        .e2ee(target.path(), &["fetch", "vault", "+second:refs/heads/theirs"])
        .good();
}

#[test]
fn a_damaged_store_moves_nothing() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main~1:refs/heads/main"])
        .good();
    let clone = world.clone("clone", &[]);
    let before = world.git(&clone, &["for-each-ref"]).good();
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let head = world.store.join("HEAD");
    let good = std::fs::read_to_string(&head).unwrap();
    std::fs::write(&head, "ff".repeat(32) + "\n").unwrap();
    assert_eq!(world.e2ee(&clone, &["fetch"]).bad(&["git-e2ee: "]).code, Some(13));
    assert_eq!(world.git(&clone, &["for-each-ref"]).good(), before);
    std::fs::write(&head, good).unwrap();
    world.e2ee(&clone, &["fetch"]).good();
}
