//! Fetching without Git.

use std::path::Path;

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
fn each_reference_moves_for_itself() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    source.git(&["branch", "a"]);
    source.git(&["branch", "b/c"]);
    world
        .git(
            source.path(),
            &["push", "-q", "vault", "main", "a", "b/c", "topic"],
        )
        .good();
    let clone = world.clone("clone", &[]);
    let value = |name: &str| {
        let said = world.git(&clone, &["rev-parse", "-q", "--verify", name]);
        said.ok.then_some(said.out)
    };
    // A name takes the place of a folder, and the other way round.
    source.git(&["branch", "-D", "a", "b/c"]);
    source.git(&["branch", "a/b"]);
    source.git(&["branch", "b"]);
    let id = commit(&world, source.path(), "more");
    let moves = ["push", "-q", "vault", "main", ":a", "a/b", ":b/c", "b", "second"];
    world.git(source.path(), &moves).good();
    let said = world.e2ee(&clone, &["fetch"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    for name in ["a/b", "b"] {
        let line = said
            .out
            .lines()
            .find(|line| line.contains(&format!("{name} -> origin/{name}")));
        let line = line.unwrap_or_else(|| panic!("{}", said.out));
        assert!(
            line.starts_with(" ! [rejected] ") && line.contains("unable to update"),
            "{line}"
        );
    }
    assert!(said.out.contains("git-e2ee fetch --prune"), "{}", said.out);
    assert_eq!(value("origin/main"), Some(id.clone()));
    assert!(value("origin/second").is_some() && value("origin/a").is_some());
    let said = world.e2ee(&clone, &["fetch", "--prune"]).good();
    assert!(
        said.contains("[deleted]") && said.contains("a/b -> origin/a/b"),
        "{said}"
    );
    assert_eq!(value("origin/a/b"), Some(source.git(&["rev-parse", "a/b"])));
    assert_eq!(value("origin/b"), Some(source.git(&["rev-parse", "b"])));
    assert_eq!((value("origin/a"), value("origin/b/c")), (None, None));

    // What a process left behind that died holds up one reference.
    let lock = clone.join(".git/refs/remotes/origin/main.lock");
    std::fs::write(&lock, "").unwrap();
    let newer = commit(&world, source.path(), "still more");
    source.git(&["branch", "-f", "topic", "main"]);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic"])
        .good();
    let said = world.e2ee(&clone, &["fetch", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let of = |name: &str| {
        let refs = report["refs"].as_array().unwrap();
        refs.iter().find(|entry| entry["ref"] == name).unwrap().clone()
    };
    let main = of("refs/remotes/origin/main");
    assert_eq!(main["status"], "rejected");
    assert!(main["reason"].as_str().unwrap().contains("main.lock"), "{main}");
    assert_eq!(of("refs/remotes/origin/topic")["status"], "updated");
    assert_eq!(value("origin/main"), Some(id));
    assert_eq!(value("origin/topic"), Some(newer.clone()));
    std::fs::remove_file(lock).unwrap();
    world.e2ee(&clone, &["fetch"]).good();
    assert_eq!(value("origin/main"), Some(newer));
    sound(&world, &clone);
}

#[test]
fn words_that_ask_for_the_same_twice() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic"])
        .good();
    let clone = world.clone("clone", &[]);
    let id = commit(&world, source.path(), "more");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world
        .e2ee(&clone, &["fetch", "origin", "main:x", "topic", "main"])
        .good();
    assert_eq!(world.git(&clone, &["rev-parse", "origin/main"]).good(), id);
    assert_eq!(world.git(&clone, &["rev-parse", "x"]).good(), id);
    world
        .e2ee(&clone, &["fetch", "origin", "main:y", "topic:y"])
        .bad(&["cannot fetch both"]);
}

#[test]
fn many_references_go_into_one_file() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = world.clone("clone", &[]);
    let point_all = |dir: &std::path::Path, prefix: &str, count: usize, id: &str| {
        let line = format!(
            "for i in $(seq {count}); do echo update {prefix}/$i {id}; done | git update-ref --stdin"
        );
        world.shell(dir, &line).good();
    };
    let all_at = |dir: &std::path::Path, prefix: &str, id: &str| {
        let listed = world
            .git(dir, &["for-each-ref", "--format=%(objectname)", prefix])
            .good();
        listed.lines().count() == 60 && listed.lines().all(|line| line == id)
    };
    let loose = |dir: &std::path::Path, remote: &str| dir.join(".git/refs/remotes").join(remote).join("many");
    let first = source.git(&["rev-parse", "main"]);
    point_all(source.path(), "refs/heads/many", 60, &first);
    world.e2ee(source.path(), &["push", "vault", "--all"]).good();
    assert!(all_at(source.path(), "refs/remotes/vault/many/", &first));
    assert!(!loose(source.path(), "vault").exists());
    let log = world
        .git(source.path(), &["reflog", "show", "vault/many/7"])
        .good();
    assert!(log.contains("update by push"), "{log}");
    world.e2ee(&clone, &["fetch"]).good();
    assert!(all_at(&clone, "refs/remotes/origin/many/", &first));
    assert!(!loose(&clone, "origin").exists());

    // Those that have files by now are no exception.
    let older = source.git(&["rev-parse", "main~1"]);
    point_all(&clone, "refs/remotes/origin/many", 9, &older);
    assert!(loose(&clone, "origin").join("9").exists());
    let second = commit(&world, source.path(), "more");
    point_all(source.path(), "refs/heads/many", 60, &second);
    world.e2ee(source.path(), &["push", "vault", "--all"]).good();
    let said = world.e2ee(&clone, &["fetch"]).good();
    assert!(said.lines().count() >= 60, "{said}");
    assert!(all_at(&clone, "refs/remotes/origin/many/", &second));
    assert!(!loose(&clone, "origin").exists());
    let log = world.git(&clone, &["reflog", "show", "origin/many/9"]).good();
    assert!(log.contains("fetch: fast-forward"), "{log}");
    sound(&world, &clone);
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

/// Hundreds of pushes are not hundreds of packs for whoever fetches them at once.
#[test]
fn many_small_pushes_come_as_one_pack() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let push = |args: &[&str]| {
        let mut all = vec!["push", "-q", "vault"];
        all.extend_from_slice(args);
        world.git(source.path(), &all).good();
    };
    push(&["main"]);
    for number in 0..9 {
        commit(&world, source.path(), &format!("change {number}"));
        push(&["main"]);
    }
    let packs = |clone: &Path| {
        let names = std::fs::read_dir(clone.join(".git/objects/pack")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".pack")).count()
    };
    let clone = world.clone("clone", &[]);
    assert_eq!(packs(&clone), 1);
    sound(&world, &clone);
    let count = |dir: &Path| {
        world
            .git(dir, &["rev-list", "--objects", "--count", "main"])
            .good()
    };
    assert_eq!(count(&clone), count(source.path()));

    // Objects that come more than once.
    for number in 0..5 {
        world
            .git(source.path(), &["checkout", "-q", "-B", "topic", "main~3"])
            .good();
        commit(&world, source.path(), "the same each time");
        push(&["-f", "topic"]);
        push(&["--delete", "topic"]);
        push(&[&format!("topic:refs/heads/topic-{number}")]);
    }
    world.git(&clone, &["fetch", "-q"]).good();
    world.e2ee(&clone, &["verify", "--full"]).good();
    world.git(&clone, &["fsck", "--strict", "--no-progress"]).good();
    let again = world.clone("again", &[]);
    sound(&world, &again);
    assert_eq!(
        world
            .git(
                &again,
                &["for-each-ref", "--format=%(objectname)", "refs/remotes"]
            )
            .good(),
        world
            .git(
                &clone,
                &["for-each-ref", "--format=%(objectname)", "refs/remotes"]
            )
            .good(),
    );
}
