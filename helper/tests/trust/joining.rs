//! Request, approval, joining: and a store that lies to the new device.

use std::path::Path;

use ingot_testdata::checker::check_store;
use ingot_testdata::repo::Format;
use serde_json::Value;

use super::client::{copy, copy_key};
use super::world::{World, commit, text};
use super::{json, run};

struct Request {
    line: String,
    fingerprint: String,
}

fn request(world: &World, key: &Path) -> Request {
    let said = world
        .e2ee(world.root(), &["join", "--request", "--json", "--key", text(key)])
        .good();
    let said: Value = serde_json::from_str(&said).unwrap();
    let field = |name: &str| said[name].as_str().unwrap().to_owned();
    Request {
        line: field("request"),
        fingerprint: field("fingerprint"),
    }
}

#[test]
fn request_approve_join() {
    for world in [World::new(), World::carrier(Format::Sha1)] {
        let source = world.source("vault", Format::Sha1);
        world.e2ee(source.path(), &["push", "vault", "main"]).good();
        let key = world.path("new/laptop.key.json");
        let asked = request(&world, &key);
        assert_eq!(request(&world, &key).line, asked.line, "the same key again");

        // Nobody is let in before the digits were compared.
        let before = json(&world, &["device-list"]);
        let said = run(&world, &world.key, &["invite", "--request", &asked.line]).bad(&[&asked.fingerprint]);
        assert_eq!(said.code, Some(2));
        let wrong = "00000 11111 22222 33333 44444 55555";
        run(
            &world,
            &world.key,
            &["invite", "--request", &asked.line, "--fingerprint", wrong],
        )
        .bad(&["fingerprints differ"]);
        assert_eq!(json(&world, &["device-list"]), before);

        std::fs::write(world.path("request.txt"), format!("{}\n", asked.line)).unwrap();
        let file = world.path("invitation.json");
        let invite = [
            "invite",
            "--request",
            "request.txt",
            "--fingerprint",
            &asked.fingerprint,
            "--name",
            "laptop",
            "--output",
            text(&file),
        ];
        let invited = json(&world, &invite);
        let line = invited["invitation"].as_str().unwrap();
        assert!(!line.contains(char::is_whitespace));
        let fingerprint = invited["fingerprint"].as_str().unwrap();

        // On the new device, by line, then by file.
        let url = world.url();
        let join = [
            "join",
            "--key",
            text(&key),
            "--invitation",
            line,
            "--fingerprint",
            fingerprint,
            &url,
        ];
        let said = world.e2ee(world.root(), &join).good();
        assert!(
            said.contains("role=write") && said.contains("git-e2ee clone"),
            "{said}"
        );
        let again = ["join", "--key", text(&key), "--invitation", text(&file)];
        assert!(world.e2ee(world.root(), &again).good().contains(fingerprint));
        let clone = world.path("clone");
        world
            .e2ee(world.root(), &["clone", "--key", text(&key), &url, text(&clone)])
            .good();
        commit(&world, &clone, "from the laptop");
        world.e2ee(&clone, &["push"]).good();
        let options: &[&str] = if text(&world.store).ends_with(".git") {
            &["--carrier"]
        } else {
            &[]
        };
        check_store(&world.store, &key, options).unwrap();

        // The same invitation again, for a member.
        let by_name = json(&world, &["invite", "--device-id", "laptop"]);
        assert_eq!(by_name["added"], false);
    }
}

/// Joins a new device and returns its key file.
fn joined(world: &World, name: &str) -> std::path::PathBuf {
    let key = world.path(name);
    let asked = request(world, &key);
    let invite = [
        "invite",
        "--request",
        &asked.line,
        "--fingerprint",
        &asked.fingerprint,
    ];
    let invited = json(world, &invite);
    let join = [
        "join",
        "--key",
        text(&key),
        "--invitation",
        invited["invitation"].as_str().unwrap(),
    ];
    world.e2ee(world.root(), &join).good();
    key
}

#[test]
fn a_fresh_clone_refuses_what_is_below_its_invitation() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.e2ee(source.path(), &["push", "vault", "main"]).good();
    let url = world.url();
    let key = joined(&world, "new.json");
    let head = world.store.join("HEAD");
    let at_invitation = std::fs::read(&head).unwrap();
    let clones = |key: &Path, name: &str| {
        let clone = world.path(name);
        world.e2ee(world.root(), &["clone", "--key", text(key), &url, text(&clone)])
    };

    // A fork that begins at the push, with the device in it: the founder's key does that in a copy.
    let forked = world.path("forked");
    copy(&world.store, &forked);
    let manifests = json(&world, &["log"]);
    let first = manifests["generations"][1]["manifest"].as_str().unwrap();
    std::fs::write(forked.join("HEAD"), format!("{first}\n")).unwrap();
    let owner = world.path("owner-copy.json");
    copy_key(&world.key, &owner);
    let record = world.path("new.device.json");
    world
        .e2ee(
            world.root(),
            &["device-export", "--key", text(&key), "--output", text(&record)],
        )
        .good();
    for _ in 0..2 {
        let add = [
            "device-add",
            "--storage",
            text(&forked),
            "--key",
            text(&owner),
            "--device",
            text(&record),
        ];
        if !world.e2ee(world.root(), &add).ok {
            let again = [
                "device-role",
                "--storage",
                text(&forked),
                "--key",
                text(&owner),
                "--device-id",
            ];
            let id = json(&world, &["device-list"]);
            let id = id["devices"]
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["this_device"] == false)
                .unwrap();
            let mut again = again.to_vec();
            again.extend([id["device_id"].as_str().unwrap(), "--role", "read"]);
            world.e2ee(world.root(), &again).good();
        }
    }
    let args = ["clone", "--key", text(&key), text(&forked), "x"];
    let said = world.e2ee(world.root(), &args).bad(&["forked", "two histories"]);
    assert_eq!(said.code, Some(13), "{}", said.err);
    assert!(!world.path("x").exists());
    assert_eq!(
        world
            .e2ee(world.root(), &["ls-remote", "--key", text(&key), text(&forked)])
            .code,
        Some(13)
    );

    // An older head: it cannot be opened, and is a rollback all the same.
    std::fs::write(&head, format!("{first}\n")).unwrap();
    let said = clones(&key, "y").bad(&["rolled back from generation 2 to 1", first]);
    assert_eq!(said.code, Some(13), "{}", said.err);

    // Another repository.
    let other = World::new();
    let args = ["clone", "--key", text(&key), &other.url(), "z"];
    let said = world.e2ee(world.root(), &args).bad(&["root changed"]);
    assert_eq!(said.code, Some(13), "{}", said.err);

    // As it was, and later.
    std::fs::write(&head, at_invitation).unwrap();
    clones(&key, "good").good();
    commit(&world, source.path(), "later");
    world.e2ee(source.path(), &["push", "vault", "main"]).good();
    clones(&key, "later").good();
    // The floor outlives a rotation of the key.
    let promote = [
        "device-role",
        "--device-id",
        &json_id(&world, &key),
        "--role",
        "admin",
    ];
    run(&world, &world.key, &promote).good();
    run(&world, &key, &["device-rotate"]).good();
    clones(&key, "rotated").good();
}

fn json_id(world: &World, key: &Path) -> String {
    let said: Value = serde_json::from_str(&run(world, key, &["device-list", "--json"]).good()).unwrap();
    let all = said["devices"].as_array().unwrap();
    all.iter().find(|one| one["this_device"] == true).unwrap()["device_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn invitations_that_are_not_right() {
    let world = World::new();
    let key = world.path("new.json");
    let asked = request(&world, &key);
    let invite = [
        "invite",
        "--request",
        &asked.line,
        "--fingerprint",
        &asked.fingerprint,
    ];
    let invited = json(&world, &invite);
    let line = invited["invitation"].as_str().unwrap();
    let url = world.url();
    let join = |key: &Path, word: &str, code: i32, texts: &[&str]| {
        let said = world
            .e2ee(
                world.root(),
                &["join", "--key", text(key), "--invitation", word, &url],
            )
            .bad(texts);
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    };
    let other = world.path("other.json");
    request(&world, &other);
    join(&other, line, 12, &["is for device"]);
    join(&key, &line[..line.len() - 20], 1, &["not an invitation"]);
    join(&key, "nowhere.txt", 1, &["nowhere.txt"]);
    join(&key, &asked.line, 1, &["not an invitation"]);
    join(&world.path("absent.json"), line, 1, &["does not exist"]);

    // Signed by somebody who is no administrator, and altered.
    let file = world.path("altered.json");
    let save = [
        "invite",
        "--device-id",
        invited["device_id"].as_str().unwrap(),
        "--output",
        text(&file),
    ];
    run(&world, &world.key, &save).good();
    run(&world, &world.key, &save).bad(&["exists already"]);
    let record = std::fs::read_to_string(&file).unwrap();
    let told = [
        "join",
        "--key",
        text(&key),
        "--invitation",
        text(&file),
        "--fingerprint",
        "1 2 3",
    ];
    world.e2ee(world.root(), &told).bad(&["fingerprints differ"]);
    let id = invited["device_id"].as_str().unwrap();
    let at = record.find("signing_administrator_device_id\":\"").unwrap() + 34;
    let signed_by_guest = format!("{}{id}{}", &record[..at], &record[at + 64..]);
    std::fs::write(&file, signed_by_guest).unwrap();
    join(&key, text(&file), 13, &["no administrator", "new invitation"]);
    std::fs::remove_file(world.path("new.json.invitation.json")).unwrap();
    let at = record.find("signature\":\"").unwrap() + 20;
    let flipped = if &record[at..=at] == "A" { "B" } else { "A" };
    std::fs::write(&file, format!("{}{flipped}{}", &record[..at], &record[at + 1..])).unwrap();
    join(&key, text(&file), 13, &["signature of the invitation"]);
    assert_eq!(
        run(&world, &key, &["ls-remote"]).code,
        Some(13),
        "a floor that does not hold lets nothing pass"
    );

    // Who may not invite.
    run(&world, &key, &["invite", "--device-id", id]).bad(&[]);
}
