//! Fetching, pulling and listing.

use ingot_testdata::repo::{Format, Repo};

use super::world::{World, commit, sound};

#[test]
fn what_is_new_arrives_and_only_that() {
    for format in Format::BOTH {
        let world = World::new();
        let source = world.source("vault", format);
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        let clone = world.clone("clone", &[]);
        for round in 0..3 {
            let id = commit(&world, source.path(), &format!("round {round}"));
            world.git(source.path(), &["push", "-q", "vault", "main"]).good();
            world.git(&clone, &["pull", "-q", "--ff-only"]).good();
            assert_eq!(world.git(&clone, &["rev-parse", "HEAD"]).good(), id);
        }
        assert_eq!(world.git(&clone, &["fetch", "-v"]).good(), "");
        sound(&world, &clone);
    }
}

#[test]
fn pull_rebase_and_merge() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = world.clone("clone", &[]);
    std::fs::write(clone.join("mine.txt"), "mine").unwrap();
    world.git(&clone, &["add", "mine.txt"]).good();
    world.git(&clone, &["commit", "-q", "-m", "mine"]).good();
    commit(&world, source.path(), "theirs");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world.git(&clone, &["pull", "-q", "--rebase"]).good();
    world.git(&clone, &["push", "-q"]).good();
    world.git(source.path(), &["pull", "-q", "vault", "main"]).good();
    assert_eq!(
        source.git(&["rev-parse", "HEAD"]),
        world.git(&clone, &["rev-parse", "HEAD"]).good()
    );
}

#[test]
fn a_plain_fetch_follows_new_tags() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = world.clone("clone", &[]);
    commit(&world, source.path(), "tagged");
    source.git(&["tag", "-a", "-m", "annotated", "v2"]);
    source.git(&["tag", "light2"]);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "v2", "light2"])
        .good();
    world.git(&clone, &["fetch", "-q"]).good();
    for tag in ["v2", "light2"] {
        assert_eq!(
            world.git(&clone, &["rev-parse", tag]).good(),
            source.git(&["rev-parse", tag])
        );
    }
    // A tag of a commit that is here already.
    source.git(&["tag", "-a", "-m", "late", "late", "HEAD~1"]);
    world.git(source.path(), &["push", "-q", "vault", "late"]).good();
    world.git(&clone, &["fetch", "-q"]).good();
    assert_eq!(
        world.git(&clone, &["rev-parse", "late"]).good(),
        source.git(&["rev-parse", "late"])
    );
}

#[test]
fn any_object_of_an_imported_pack_can_be_named() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = world.clone("clone", &[]);
    let inner = source.git(&["rev-parse", "main~3"]);
    world
        .git(
            &clone,
            &["fetch", "-q", "origin", &format!("{inner}:refs/heads/inner")],
        )
        .good();
    assert_eq!(world.git(&clone, &["rev-parse", "inner"]).good(), inner);
    let absent = "1".repeat(40);
    world.git(&clone, &["fetch", "origin", &absent]).bad(&[&absent]);
}

#[test]
fn deleted_branches_are_pruned() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic"])
        .good();
    let clone = world.clone("clone", &[]);
    world
        .git(source.path(), &["push", "-q", "vault", ":topic"])
        .good();
    world.git(&clone, &["fetch", "-q", "--prune"]).good();
    assert!(
        !world
            .git(&clone, &["rev-parse", "-q", "--verify", "origin/topic"])
            .ok
    );
}

#[test]
fn objects_that_were_collected_come_again() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "second"])
        .good();
    let clone = world.clone("clone", &["--branch", "main"]);
    world
        .git(&clone, &["update-ref", "-d", "refs/remotes/origin/second"])
        .good();
    world.git(&clone, &["reset", "-q", "--hard", "HEAD~6"]).good();
    world
        .git(&clone, &["update-ref", "refs/remotes/origin/main", "HEAD"])
        .good();
    for tag in world.git(&clone, &["tag"]).good().lines() {
        world.git(&clone, &["tag", "-d", tag]).good();
    }
    world
        .git(&clone, &["reflog", "expire", "--expire=now", "--all"])
        .good();
    world.git(&clone, &["gc", "-q", "--prune=now"]).good();
    world.git(&clone, &["fetch", "-q"]).good();
    assert_eq!(
        world.git(&clone, &["rev-parse", "origin/main"]).good(),
        source.git(&["rev-parse", "main"])
    );
    sound(&world, &clone);
}

#[test]
fn ls_remote_inside_and_outside_a_repository() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "v1.0"])
        .good();
    let main = source.git(&["rev-parse", "main"]);
    let tag = source.git(&["rev-parse", "v1.0"]);
    let peeled = source.git(&["rev-parse", "v1.0^{}"]);
    let inside = world.git(source.path(), &["ls-remote", "vault"]).good();
    assert_eq!(
        inside,
        format!(
            "{main}\tHEAD\n{main}\trefs/heads/main\n{tag}\trefs/tags/v1.0\n{peeled}\trefs/tags/v1.0^{{}}"
        )
    );
    let outside = world
        .git_with_key(world.root(), &["ls-remote", &world.url()])
        .good();
    assert_eq!(
        outside,
        format!("{main}\tHEAD\n{main}\trefs/heads/main\n{tag}\trefs/tags/v1.0")
    );
}

#[test]
fn several_remotes_at_once() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world.add_remote(source.path(), "again", &world.url());
    world.git(source.path(), &["fetch", "-q", "--all"]).good();
    world.git(source.path(), &["remote", "update"]).good();
    assert_eq!(
        source.git(&["rev-parse", "again/main"]),
        source.git(&["rev-parse", "main"])
    );
}

/// Git would walk a large fetch once more, from its own references. While it asks, others lead there; afterwards they are
/// gone, and so is what a crash has left.
#[test]
fn what_a_large_fetch_has_proven_is_reachable_while_git_asks() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    for number in 0..10_000 {
        source.write(&format!("many/{}/{number}", number % 100), number.to_string());
    }
    source.commit("many files");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let tip = source.git(&["rev-parse", "main"]);

    let clone = world.clone("clone", &["--no-checkout"]);
    let follower = Repo::empty(Format::Sha1);
    for setting in ["url", "e2ee-key", "fetch"] {
        let name = format!("remote.origin.{setting}");
        let value = world.git(&clone, &["config", &name]).good();
        follower.git(&["config", &name, value.trim()]);
    }
    let seen = follower.path().join("seen");
    let hook = follower.git_dir().join("hooks/reference-transaction");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let script = format!(
        "#!/bin/sh\ngit for-each-ref --format='%(objectname)' refs/ingot/ >>'{}'\n",
        seen.display()
    );
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let stale = source.git(&["rev-parse", "main:many"]);
    let left = format!(".git/refs/ingot/incoming/{stale}");
    follower.write(&left, format!("{stale}\n"));
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 60 * 60);
    let left = std::fs::File::options()
        .write(true)
        .open(follower.path().join(left))
        .unwrap();
    left.set_modified(long_ago).unwrap();

    world.git(follower.path(), &["fetch", "-q"]).good();
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.lines().next().is_some(), "nothing was held");
    assert!(seen.lines().all(|line| line == tip), "{seen}");
    assert_eq!(
        follower.git(&["for-each-ref", "--format=%(refname)", "refs/ingot/"]),
        ""
    );
    assert_eq!(follower.git(&["rev-parse", "refs/remotes/origin/main"]), tip);
    sound(&world, follower.path());
}
