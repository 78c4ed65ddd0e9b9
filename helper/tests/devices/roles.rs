//! Every role tries every operation.

use ingot_testdata::repo::Format;

use super::commands::{Member, as_holder, as_owner, check, json, member};
use super::world::{World, commit, text};

#[test]
fn every_role_tries_every_operation() {
    for world in [World::new(), World::carrier(Format::Sha1)] {
        let source = world.source("vault", Format::Sha1);
        world.e2ee(source.path(), &["push", "vault", "main"]).good();
        let [read, write, admin, revoked, stranger, guest] =
            ["read", "write", "admin", "revoked", "stranger", "guest"].map(|name| member(&world, name));
        for (device, role) in [
            (&read, "read"),
            (&write, "write"),
            (&admin, "admin"),
            (&revoked, "admin"),
        ] {
            as_owner(
                &world,
                &["device-add", "--device", text(&device.record), "--role", role],
            )
            .good();
        }
        as_owner(&world, &["device-revoke", "--device-id", &revoked.id]).good();

        // Not allowed: 12, and the store stays as it is.
        let cases: [(&str, &Member, [i32; 5]); 5] = [
            ("read", &read, [0, 0, 12, 12, 12]),
            ("write", &write, [0, 0, 0, 12, 12]),
            ("admin", &admin, [0, 0, 0, 0, 0]),
            ("revoked", &revoked, [12; 5]),
            ("stranger", &stranger, [12; 5]),
        ];
        for (name, who, codes) in cases {
            let clone = source.path();
            commit(&world, clone, name);
            let url = world.url();
            let key = text(&who.key);
            let change_role = ["device-role", "--device-id", &read.id, "--role", "write"];
            let operations: [&[&str]; 5] = [
                &["fetch", "--key", key, &url],
                &["device-list", "--key", key, &url],
                &["push", "--key", key, &url, "main"],
                &["device-add", "--key", key, &url, "--device", text(&guest.record)],
                &["device-rotate", "--key", key, &url],
            ];
            for (args, code) in operations.iter().zip(codes) {
                let before = published(&world);
                let said = world.e2ee(clone, args);
                assert_eq!(
                    said.code,
                    Some(code),
                    "{name}: {args:?}\n{}\n{}",
                    said.out,
                    said.err
                );
                if code != 0 {
                    assert!(said.err.contains("; "), "no next step: {}", said.err);
                    assert_eq!(published(&world), before, "{name}: {args:?}");
                }
            }
            for args in [&change_role[..], &["device-revoke", "--device-id", &guest.id]] {
                let said = as_holder(&world, &who.key, args);
                assert_eq!(
                    said.code,
                    Some(codes[3]),
                    "{name}: {args:?}\n{}\n{}",
                    said.out,
                    said.err
                );
            }
        }
        check(&world, &world.key);
        let devices = json(&world, &["device-list", "--json"]);
        let active = |device: &&serde_json::Value| device["status"] == "active";
        assert_eq!(
            devices["devices"]
                .as_array()
                .unwrap()
                .iter()
                .filter(active)
                .count(),
            4
        );
    }
}

/// What the store's readers are shown.
fn published(world: &World) -> String {
    match std::fs::read_to_string(world.store.join("refs/heads/git-remote-e2ee")) {
        Ok(tip) => tip,
        Err(_) => std::fs::read_to_string(world.store.join("HEAD")).unwrap(),
    }
}
