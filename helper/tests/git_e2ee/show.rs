//! What can be asked of a store.

use ingot_testdata::repo::{Format, Repo};

use super::world::{World, commit, text};

#[test]
fn ls_remote_prints_what_git_prints() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(
            source.path(),
            &["push", "-q", "vault", "main", "topic", "v1.0", "light"],
        )
        .good();
    for options in [
        &[][..],
        &["--heads"],
        &["--tags"],
        &["--refs"],
        &["--heads", "--tags"],
    ] {
        let mut args = vec!["ls-remote"];
        args.extend_from_slice(options);
        args.push("vault");
        let (git, ours) = (
            world.git(source.path(), &args).good(),
            world.e2ee(source.path(), &args).good(),
        );
        assert_eq!(ours, git, "{options:?}");
    }
    let patterns = ["ls-remote", "vault", "v*", "topic"];
    assert_eq!(
        world.e2ee(source.path(), &patterns).good(),
        world.git(source.path(), &patterns).good()
    );
    let outside = world
        .e2ee(
            world.root(),
            &["ls-remote", "--key", text(&world.key), &world.url()],
        )
        .good();
    assert_eq!(
        outside,
        world
            .git_with_key(world.root(), &["ls-remote", &world.url()])
            .good()
    );
    let json = world
        .e2ee(source.path(), &["ls-remote", "--json", "vault"])
        .good();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["head"], "refs/heads/main");
    assert_eq!(
        json["refs"]["refs/heads/main"],
        source.git(&["rev-parse", "main"])
    );
}

#[test]
fn verify_finds_what_is_wrong() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world
        .git(source.path(), &["push", "-q", "vault", "topic", "v1.0"])
        .good();
    let args = [
        "verify",
        "--storage",
        text(&world.store),
        "--key",
        text(&world.key),
    ];
    assert_eq!(
        world.e2ee(world.root(), &args).good(),
        "verified generation 2 (3 refs, 2 packs)"
    );
    let full = world
        .e2ee(source.path(), &["verify", "--full", "--json", "vault"])
        .good();
    let full: serde_json::Value = serde_json::from_str(&full).unwrap();
    assert_eq!(full["generation"], 2);
    assert_eq!(full["refs"], 3);
    assert_eq!(full["packs"], 2);
    assert_eq!(full["full"], true);
    let count = ingot_testdata::git::objects(source.path(), &["main", "topic", "v1.0"]).len();
    assert!(full["objects"].as_u64().unwrap() >= count as u64);

    for folder in std::fs::read_dir(world.store.join("objects")).unwrap() {
        for object in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = object.unwrap().path();
            let good = std::fs::read(&path).unwrap();
            let mut bad = good.clone();
            *bad.last_mut().unwrap() ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(
                world.e2ee(world.root(), &args).bad(&["git-e2ee: "]).code,
                Some(13)
            );
            std::fs::write(&path, &good[..good.len() - 1]).unwrap();
            assert_eq!(
                world.e2ee(world.root(), &args).bad(&["git-e2ee: "]).code,
                Some(13)
            );
            std::fs::remove_file(&path).unwrap();
            assert_eq!(
                world.e2ee(world.root(), &args).bad(&["git-e2ee: "]).code,
                Some(13)
            );
            std::fs::write(&path, good).unwrap();
        }
    }
    world.e2ee(world.root(), &args).good();
}

#[test]
fn status_tells_how_far_apart_the_two_are() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic"])
        .good();
    let clone = world.clone("clone", &[]);
    commit(&world, &clone, "ahead");
    let said = world.e2ee(&clone, &["status"]).good();
    assert!(
        said.contains(&world.url()) && said.contains("generation 1"),
        "{said}"
    );
    assert!(said.contains("ahead 1"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&world.e2ee(&clone, &["status", "--json"]).good()).unwrap();
    assert_eq!(json["command"], "status");
    assert_eq!(json["generation"], 1);
    assert_eq!(json["packs"], 1);
    assert!(json["stored_bytes"].as_u64().unwrap() > 0);
    let main = json["branches"]
        .as_array()
        .unwrap()
        .iter()
        .find(|branch| branch["name"] == "refs/heads/main")
        .unwrap();
    assert_eq!((&main["ahead"], &main["behind"]), (&1.into(), &0.into()));
    // Without a repository there is only the store to tell about.
    let args = [
        "status",
        "--storage",
        text(&world.store),
        "--key",
        text(&world.key),
    ];
    assert!(world.e2ee(world.root(), &args).good().contains("generation 1"));
    commit(&world, source.path(), "theirs");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let json: serde_json::Value =
        serde_json::from_str(&world.e2ee(&clone, &["status", "--json"]).good()).unwrap();
    let main = json["branches"]
        .as_array()
        .unwrap()
        .iter()
        .find(|branch| branch["name"] == "refs/heads/main")
        .unwrap();
    assert_eq!(main["state"], "fetch-first");
}

#[test]
fn a_repository_without_any_encrypted_remote() {
    let world = World::new();
    let plain = Repo::scripted("history", Format::Sha1);
    for command in ["status", "fetch", "verify", "ls-remote"] {
        world
            .e2ee(plain.path(), &[command])
            .bad(&["git-e2ee: ", "git-e2ee push"]);
    }
}
