//! Each alarm has its own text, exit code and next step, and says what was expected and what was seen.

use std::path::Path;

use ingot_testdata::repo::Format;

use super::client::{copy, copy_key};
use super::world::{World, commit, text};
use super::{json, member, run};

/// Every operation refuses, nothing moves, and the line says all of `texts`.
#[track_caller]
fn all_refuse(world: &World, clone: &Path, code: i32, texts: &[&str]) -> String {
    let state = clone.join(".git/git-remote-e2ee/vault/state.json");
    let before = (
        std::fs::read(world.store.join("HEAD")).unwrap(),
        std::fs::read(&state).unwrap(),
    );
    let mut line = String::new();
    for args in [
        &["fetch", "vault"][..],
        &["push", "vault", "main:refs/heads/other"],
        &["ls-remote", "vault"],
        &["status", "vault"],
        &["verify", "vault"],
        &["log", "vault"],
        &["audit", "vault"],
        &["device-list", "vault"],
        &["device-rotate", "vault"],
    ] {
        let said = world.e2ee(clone, args).bad(texts);
        assert_eq!(said.code, Some(code), "{args:?}: {}", said.err);
        assert_eq!(
            (said.out.as_str(), said.err.lines().count()),
            ("", 1),
            "{args:?}: {}",
            said.err
        );
        line = said.err;
    }
    world.git(clone, &["fetch", "vault"]).bad(texts);
    world
        .git(clone, &["push", "vault", "main:refs/heads/other"])
        .bad(texts);
    assert_eq!(
        before,
        (
            std::fs::read(world.store.join("HEAD")).unwrap(),
            std::fs::read(&state).unwrap()
        )
    );
    line
}

#[test]
fn a_store_that_goes_back_forks_or_is_replaced() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let clone = source.path();
    world.e2ee(clone, &["push", "vault", "main"]).good();
    let early = world.path("early");
    copy(&world.store, &early);
    let (_, guest) = member(&world, "guest", "write");
    let with_guest = std::fs::read(world.store.join("HEAD")).unwrap();
    run(&world, &world.key, &["device-revoke", "--device-id", &guest]).good();
    commit(&world, clone, "more");
    world.e2ee(clone, &["push", "vault", "main"]).good();
    let log = json(&world, &["log"]);
    let id = |generation: usize| {
        let all = log["generations"].as_array().unwrap();
        all[all.len() - 1 - generation]["manifest"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let head = world.store.join("HEAD");
    let good = std::fs::read(&head).unwrap();
    let mut lines = Vec::new();

    // Rolled back within one policy.
    std::fs::write(&head, format!("{}\n", id(3))).unwrap();
    let texts = [
        "manifest rolled back from generation 4 to 3",
        &id(4),
        &id(3),
        "old copy",
    ];
    lines.push(all_refuse(&world, clone, 13, &texts));

    // Rolled back to when the guest was still a member.
    std::fs::write(&head, &with_guest).unwrap();
    let texts = [
        "policy rolled back from generation 2 to 1",
        &id(4),
        &id(2),
        "revoked",
    ];
    lines.push(all_refuse(&world, clone, 13, &texts));
    std::fs::write(&head, &good).unwrap();

    // A fork from the first push that is longer than the history known here.
    let owner = world.path("owner-copy.json");
    copy_key(&world.key, &owner);
    let clone_of_early = world.path("clone-of-early");
    world
        .e2ee(
            world.root(),
            &[
                "clone",
                "--key",
                text(&owner),
                text(&early),
                text(&clone_of_early),
            ],
        )
        .good();
    let record = world.path("guest.device.json");
    let add = [
        "device-add",
        "--key",
        text(&owner),
        text(&early),
        "--device",
        text(&record),
    ];
    world.e2ee(world.root(), &add).good();
    for role in ["read", "write"] {
        let change = [
            "device-role",
            "--key",
            text(&owner),
            text(&early),
            "--device-id",
            &guest,
            "--role",
            role,
        ];
        world.e2ee(world.root(), &change).good();
    }
    let revoke = [
        "device-revoke",
        "--key",
        text(&owner),
        text(&early),
        "--device-id",
        &guest,
    ];
    world.e2ee(world.root(), &revoke).good();
    let genuine = world.path("genuine");
    std::fs::rename(&world.store, &genuine).unwrap();
    copy(&early, &world.store);
    lines.push(all_refuse(
        &world,
        clone,
        13,
        &["forked", "generation 4", &id(4), "two histories"],
    ));

    // Another repository, whose key is not at hand.
    std::fs::remove_dir_all(&world.store).unwrap();
    let other = world.path("other.json");
    world
        .e2ee(world.root(), &["keygen", "--output", text(&other)])
        .good();
    world
        .e2ee(
            world.root(),
            &["init", "--storage", text(&world.store), "--key", text(&other)],
        )
        .good();
    lines.push(all_refuse(
        &world,
        clone,
        13,
        &["root changed", "another repository"],
    ));

    // Damaged.
    std::fs::remove_dir_all(&world.store).unwrap();
    copy(&genuine, &world.store);
    let manifest = world.store.join("manifests").join(&id(4)[..2]).join(id(4));
    let bytes = std::fs::read(&manifest).unwrap();
    let mut damaged = bytes.clone();
    damaged[100] ^= 1;
    replace(&manifest, &damaged);
    lines.push(all_refuse(
        &world,
        clone,
        13,
        &["does not have the content that its name says"],
    ));
    replace(&manifest, &bytes);

    // All different, and all over once the store is itself again.
    for (number, line) in lines.iter().enumerate() {
        assert!(!lines[number + 1..].contains(line), "{line}");
    }
    world.e2ee(clone, &["fetch", "vault"]).good();
    world
        .e2ee(clone, &["push", "vault", "main:refs/heads/other"])
        .good();
}

fn replace(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_device_that_was_shut_out_and_one_that_never_was_in() {
    let world = World::new();
    let source = world.source("origin", Format::Sha1);
    world.e2ee(source.path(), &["push", "origin", "main"]).good();
    let (key, id) = member(&world, "guest", "write");
    let clone = world.path("clone");
    let args = [
        "clone",
        "--key",
        text(&key),
        &world.url(),
        text(&clone),
        "--origin",
        "vault",
    ];
    world.e2ee(world.root(), &args).good();
    run(&world, &world.key, &["device-revoke", "--device-id", "guest"]).good();
    let texts = [
        "no longer an active reader",
        "(generation 2)",
        "claims generation 3",
        &id,
        "was revoked",
    ];
    let revoked = all_refuse(&world, &clone, 12, &texts);

    // The same key where nothing is remembered, and one that was never added.
    let never =
        run(&world, &key, &["ls-remote"]).bad(&["not an active reader of the current generation", &id]);
    assert_eq!(never.code, Some(12));
    assert!(never.err.contains("join --request"), "{}", never.err);
    assert_ne!(never.err, revoked);

    // Shown a head from before it was added, it knows better than that it was never added.
    let first = json(&world, &["log"])["generations"][2]["manifest"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::write(world.store.join("HEAD"), format!("{first}\n")).unwrap();
    all_refuse(
        &world,
        &clone,
        13,
        &["rolled back from generation 2 to 1", &first],
    );
}
