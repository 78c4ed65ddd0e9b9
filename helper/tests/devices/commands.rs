//! The commands, on both kinds of stores, with the independent checker looking on.

use std::path::{Path, PathBuf};

use ingot_testdata::checker::check_store;
use ingot_testdata::repo::Format;
use serde_json::Value;

use super::world::{World, text};

/// A key made for the world's repository, and its public record.
pub struct Member {
    pub key: PathBuf,
    pub record: PathBuf,
    pub id: String,
}

#[track_caller]
pub fn member(world: &World, name: &str) -> Member {
    let root = json(world, &["device-list", "--json"])["repository_root"]
        .as_str()
        .unwrap()
        .to_owned();
    let key = world.path(&format!("{name}.key.json"));
    let record = world.path(&format!("{name}.device.json"));
    let made = [
        "keygen",
        "--json",
        "--output",
        text(&key),
        "--repository-root",
        &root,
    ];
    let made: Value = serde_json::from_str(&world.e2ee(world.root(), &made).good()).unwrap();
    world
        .e2ee(
            world.root(),
            &["device-export", "--key", text(&key), "--output", text(&record)],
        )
        .good();
    let id = made["device_id"].as_str().unwrap().to_owned();
    Member { key, record, id }
}

/// Runs a command with the owner's key.
#[track_caller]
pub fn as_owner(world: &World, args: &[&str]) -> super::world::Said {
    as_holder(world, &world.key, args)
}

#[track_caller]
pub fn as_holder(world: &World, key: &Path, args: &[&str]) -> super::world::Said {
    let url = world.url();
    let mut all = args.to_vec();
    all.extend(["--key", text(key), &url]);
    world.e2ee(world.root(), &all)
}

#[track_caller]
pub fn json(world: &World, args: &[&str]) -> Value {
    serde_json::from_str(&as_owner(world, args).good()).unwrap()
}

#[track_caller]
pub fn check(world: &World, key: &Path) {
    let carrier = world.store.extension().is_some_and(|end| end == "git");
    let options: &[&str] = if carrier {
        &["--carrier", "--clean"]
    } else {
        &["--clean"]
    };
    check_store(&world.store, key, options).unwrap();
}

#[test]
fn a_story_of_devices() {
    for world in [World::new(), World::carrier(Format::Sha1)] {
        let source = world.source("vault", Format::Sha1);
        world.e2ee(source.path(), &["push", "vault", "main"]).good();
        let [b, c, d] = ["b", "c", "d"].map(|name| member(&world, name));

        // One, as other implementations print it.
        let said = as_owner(&world, &["device-add", "--device", text(&b.record)]).good();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], format!("added {}", b.id));
        assert!(
            lines[1].starts_with("manifest ") && lines[2].starts_with("policy "),
            "{said}"
        );
        assert_eq!(lines.len(), 3);
        check(&world, &world.key);
        check(&world, &b.key);

        // Two at once, with names, in one generation; through the remote's name.
        let before = world.generation();
        let add = [
            "device-add",
            "--remote",
            "vault",
            "--device",
            text(&c.record),
            "--device",
            text(&d.record),
            "--role",
            "read",
            "--name",
            "phone",
            "--name",
            "d's desk",
            "--json",
        ];
        let said: Value = serde_json::from_str(&world.e2ee(source.path(), &add).good()).unwrap();
        assert_eq!(said["generation"], before + 1);
        assert_eq!(said["readers"], 4);
        assert_eq!(said["changes"][1]["name"], "d's desk");
        check(&world, &d.key);

        // The list, in the order of ids, for everybody.
        let listed = as_holder(&world, &d.key, &["device-list"]).good();
        let mut expected = vec![
            format!("{} role=write status=active", b.id),
            format!("{} role=read status=active", c.id),
            format!("{} role=read status=active", d.id),
        ];
        let owner = json(&world, &["device-list", "--json"]);
        let owner = owner["devices"]
            .as_array()
            .unwrap()
            .iter()
            .find(|device| device["this_device"] == true)
            .unwrap();
        expected.push(format!(
            "{} role=admin status=active",
            owner["device_id"].as_str().unwrap()
        ));
        expected.sort();
        assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
        let named = world.e2ee(source.path(), &["device-list", "vault"]).good();
        assert!(
            named.contains(&format!("{} role=read status=active name=phone", c.id)),
            "{named}"
        );

        // By name and by the first digits; what is so already is left alone.
        let role = [
            "device-role",
            "--device-id",
            "phone",
            "--device-id",
            &b.id[..8],
            "--role",
            "admin",
        ];
        let said = as_owner(&world, &role).good();
        assert!(said.contains(&format!("changed {} role=admin", c.id)), "{said}");
        let generation = world.generation();
        assert_eq!(as_owner(&world, &role).good(), "nothing to change");
        assert_eq!(world.generation(), generation);
        as_owner(&world, &["device-name", "--device-id", &b.id, "--name", "laptop"]).good();
        check(&world, &c.key);

        // An administrator replaces one device by another in one generation.
        let e = member(&world, "e");
        let swap = [
            "device-add",
            "--device",
            text(&e.record),
            "--role",
            "admin",
            "--revoke",
            "phone",
        ];
        let said = as_owner(&world, &swap).good();
        assert!(said.contains(&format!("revoked {}", c.id)), "{said}");
        as_holder(&world, &c.key, &["ls-remote"]).bad(&[]);
        check(&world, &e.key);

        // Several are revoked by a new administrator, the founder among them.
        let founder = owner["device_id"].as_str().unwrap();
        let revoke = ["device-revoke", "--device-id", founder, "--device-id", &d.id];
        let said = as_holder(&world, &e.key, &revoke).good();
        assert_eq!(
            said.lines().filter(|line| line.starts_with("revoked ")).count(),
            2
        );
        let said = as_owner(&world, &["ls-remote"]).bad(&[]);
        assert_eq!(said.code, Some(12), "{}", said.err);
        check(&world, &b.key);
        check(&world, &e.key);
    }
}

#[test]
fn what_cannot_be_done_is_named() {
    let world = World::new();
    let b = member(&world, "b");
    let owner = json(&world, &["device-list", "--json"])["devices"][0]["device_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = |args: &[&str], code: i32, texts: &[&str]| {
        let before = std::fs::read(world.store.join("HEAD")).unwrap();
        let said = as_owner(&world, args).bad(texts);
        assert_eq!(said.code, Some(code), "{args:?}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert_eq!(
            std::fs::read(world.store.join("HEAD")).unwrap(),
            before,
            "{args:?}"
        );
    };
    let nobody = "00".repeat(32);
    refused(
        &["device-revoke", "--device-id", &owner],
        1,
        &["cannot revoke the last active reader"],
    );
    refused(
        &["device-role", "--device-id", &owner, "--role", "write"],
        1,
        &["last active administrator"],
    );
    refused(
        &["device-revoke", "--device-id", &nobody],
        1,
        &["not active in the current policy"],
    );
    refused(
        &["device-revoke", "--device-id", "nobody"],
        1,
        &["no device", "device-list"],
    );
    refused(
        &["device-add", "--device", text(&world.key)],
        1,
        &["not a public device record"],
    );
    refused(
        &["device-add", "--device", text(&world.path("absent"))],
        1,
        &["absent"],
    );
    let twice = [
        "device-add",
        "--device",
        text(&b.record),
        "--device",
        text(&b.record),
    ];
    refused(&twice, 1, &["changed twice"]);
    let name = ["device-add", "--device", text(&b.record), "--name", "abcdef00"];
    refused(&name, 2, &["look like a device id"]);
    let names = [
        "device-add",
        "--device",
        text(&b.record),
        "--name",
        "x",
        "--name",
        "y",
    ];
    refused(&names, 2, &["2 names for 1 devices"]);

    // A device of another repository.
    let (foreign, record) = (world.path("foreign.json"), world.path("foreign.device.json"));
    world
        .e2ee(world.root(), &["keygen", "--output", text(&foreign)])
        .good();
    let export = [
        "device-export",
        "--key",
        text(&foreign),
        "--output",
        text(&record),
    ];
    world.e2ee(world.root(), &export).good();
    refused(
        &["device-add", "--device", text(&record)],
        1,
        &["belongs to repository"],
    );

    as_owner(&world, &["device-add", "--device", text(&b.record)]).good();
    refused(
        &["device-add", "--device", text(&b.record)],
        1,
        &["device already exists in policy"],
    );
    as_owner(&world, &["device-revoke", "--device-id", &b.id]).good();
    refused(
        &["device-add", "--device", text(&b.record)],
        1,
        &["device already exists in policy"],
    );
    refused(
        &["device-role", "--device-id", &b.id, "--role", "read"],
        1,
        &["not active"],
    );
    check(&world, &world.key);
}

#[test]
fn rotation_replaces_the_key_file_in_one_generation() {
    for world in [World::new(), World::carrier(Format::Sha1)] {
        let source = world.source("vault", Format::Sha1);
        world.e2ee(source.path(), &["push", "vault", "main"]).good();
        let owner = json(&world, &["device-list", "--json"]);
        let old = owner["devices"][0]["device_id"].as_str().unwrap().to_owned();
        as_owner(&world, &["device-name", "--device-id", &old, "--name", "desk"]).good();
        let copy = world.path("old.key.json");
        super::client::copy_key(&world.key, &copy);
        let generation = world.generation();

        let said: Value = serde_json::from_str(
            &world
                .e2ee(source.path(), &["device-rotate", "--json", "vault"])
                .good(),
        )
        .unwrap();
        assert_eq!(said["old_device"], old.as_str());
        assert_eq!(said["generation"], generation + 1);
        assert_eq!(
            std::fs::read_dir(world.root())
                .unwrap()
                .filter(|entry| {
                    entry
                        .as_ref()
                        .unwrap()
                        .file_name()
                        .to_string_lossy()
                        .contains(".next")
                })
                .count(),
            0
        );
        let listed = as_owner(&world, &["device-list"]).good();
        let new = said["new_device"].as_str().unwrap();
        assert!(
            listed.contains(&format!("{new} role=admin status=active name=desk")),
            "{listed}"
        );
        assert!(
            listed.contains(&format!("{old} role=admin status=revoked")),
            "{listed}"
        );
        check(&world, &world.key);

        // The clone goes on, and the old key does not.
        super::world::commit(&world, source.path(), "later");
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        assert_eq!(as_holder(&world, &copy, &["ls-remote"]).bad(&[]).code, Some(12));
        as_owner(&world, &["device-rotate"]).good();
        check(&world, &world.key);
        world.clone("clone", &[]);
    }
}
