//! `log` and `audit`.

use std::path::Path;

use ingot_testdata::repo::Format;
use serde_json::Value;

use super::client::{copy, copy_key};
use super::world::{Bare, World, commit, text};
use super::{json, member, run};

#[test]
fn a_history_tells_who_did_what_and_who_could_read_it() {
    for world in [World::new(), World::carrier(Format::Sha1)] {
        let source = world.source("vault", Format::Sha1);
        let first = world.git(source.path(), &["rev-parse", "main"]).good();
        world.e2ee(source.path(), &["push", "vault", "main"]).good();
        let (guest_key, guest) = member(&world, "guest", "read");
        let role = ["device-role", "--device-id", "guest", "--role", "write"];
        run(&world, &world.key, &role).good();
        let second = commit(&world, source.path(), "second");
        let push = ["push", "--key", text(&guest_key), &world.url(), "main", "v1.0"];
        world.e2ee(source.path(), &push).good();
        run(&world, &world.key, &["device-revoke", "--device-id", "guest"]).good();
        world.e2ee(source.path(), &["push", "vault", ":v1.0"]).good();

        let log = json(&world, &["log"]);
        let all = log["generations"].as_array().unwrap();
        let numbers: Vec<u64> = all
            .iter()
            .map(|one| one["generation"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(all[0]["refs"][0]["ref"], "refs/tags/v1.0");
        assert_eq!(all[0]["refs"][0]["new"], Value::Null);
        assert_eq!(all[1]["members"][0]["change"], "revoked");
        assert_eq!(all[1]["members"][0]["name"], "guest");
        assert_eq!(all[2]["signer"], guest.as_str());
        let moved = all[2]["refs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["ref"] == "refs/heads/main")
            .unwrap();
        assert_eq!(
            (&moved["old"], &moved["new"]),
            (&first.clone().into(), &second.clone().into())
        );
        assert!(
            all[2]["packs"][0]["stored_bytes"].as_u64().unwrap()
                > all[2]["packs"][0]["bytes"].as_u64().unwrap()
        );
        assert_eq!(all[3]["members"][0]["role_before"], "read");
        assert_eq!(all[3]["members"][0]["role"], "write");
        assert_eq!(all[4]["members"][0]["change"], "added");
        assert_eq!(all[6]["members"][0]["role"], "admin");
        let bytes = all[6]["manifest_bytes"].as_u64().unwrap();
        assert!((3000..6000).contains(&bytes), "{bytes}");
        if !text(&world.store).ends_with(".git") {
            let stored = std::time::Duration::from_secs(all[0]["stored_at"].as_u64().unwrap());
            let now = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap();
            assert!(now.abs_diff(stored).as_secs() < 3600);
        }
        let shown = run(&world, &world.key, &["log", "-n", "3"]).good();
        assert_eq!(shown.matches("generation ").count(), 3, "{shown}");
        for line in ["  revoked guest", "  v1.0 deleted", "  main ", "by guest"] {
            assert!(shown.contains(line), "{line}\n{shown}");
        }

        let audit = json(&world, &["audit"]);
        let periods: Vec<(u64, u64, usize)> = audit["periods"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                let number = |name: &str| one[name].as_u64().unwrap();
                (
                    number("first"),
                    number("last"),
                    one["readers"].as_array().unwrap().len(),
                )
            })
            .collect();
        assert_eq!(periods, [(0, 1, 1), (2, 2, 2), (3, 4, 2), (5, 6, 1)]);
        let access = audit["devices"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == "guest")
            .unwrap();
        assert_eq!(
            (access["since"].as_u64(), access["could_open_until"].as_u64()),
            (Some(2), Some(4))
        );
        assert_eq!(access["active"], false);
        let shown = run(&world, &world.key, &["audit"]).good();
        assert!(
            shown.contains(&format!(
                "{guest} ended since=2 could open generations 0-4 name=guest"
            )),
            "{shown}"
        );
    }
}

#[test]
fn the_golden_store_of_another_implementation() {
    let bare = Bare::new();
    let golden = ingot_testdata::golden("e2ee-v5");
    copy(&golden.join("dir-store"), &bare.path("store"));
    let keys = golden.join("dir-store-keys");
    for name in ["owner.key.json", "second.key.json"] {
        copy_key(&keys.join(name), &bare.path(name));
    }
    std::fs::copy(
        keys.join("owner.key.json.admin-state.json"),
        bare.path("owner.key.json.admin-state.json"),
    )
    .unwrap();
    let at = |command: &str, key: &str| {
        let args = [command, "--json", "--storage", "store", "--key", key];
        bare.e2ee(bare.root(), &args)
    };
    let report = |command| -> Value { serde_json::from_str(&at(command, "owner.key.json").good()).unwrap() };
    let audit = report("audit");
    let until = |active: bool| {
        let devices = audit["devices"].as_array().unwrap();
        let device = devices.iter().find(|one| one["active"] == active).unwrap();
        (
            device["since"].as_u64().unwrap(),
            device["could_open_until"].as_u64().unwrap(),
        )
    };
    assert_eq!((until(true), until(false)), ((0, 9), (6, 8)));
    let log = report("log");
    let changes: Vec<(u64, &str)> = log["generations"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| {
            let number = one["generation"].as_u64().unwrap();
            one["members"]
                .as_array()
                .unwrap()
                .iter()
                .map(move |member| (number, member["change"].as_str().unwrap()))
        })
        .collect();
    assert_eq!(changes, [(9, "revoked"), (6, "added"), (0, "added")]);
    let said = at("device-list", "second.key.json").bad(&["not an active reader"]);
    assert_eq!(said.code, Some(12));

    // The store is taken on: an administrator of the other implementation goes on with this one.
    let root = report("device-list")["repository_root"]
        .as_str()
        .unwrap()
        .to_owned();
    bare.e2ee(
        bare.root(),
        &["keygen", "--output", "third.json", "--repository-root", &root],
    )
    .good();
    bare.e2ee(
        bare.root(),
        &[
            "device-export",
            "--key",
            "third.json",
            "--output",
            "third.device.json",
        ],
    )
    .good();
    let add = [
        "device-add",
        "--storage",
        "store",
        "--key",
        "owner.key.json",
        "--device",
        "third.device.json",
    ];
    bare.e2ee(bare.root(), &add).good();
    for key in ["owner.key.json", "third.json"] {
        let check = |path: &Path| ingot_testdata::checker::check_store(&bare.path("store"), path, &[]);
        check(&bare.path(key)).unwrap();
    }
    let pin: Value =
        serde_json::from_slice(&std::fs::read(bare.path("owner.key.json.admin-state.json")).unwrap())
            .unwrap();
    assert_eq!(pin["generation"], 10);
}
