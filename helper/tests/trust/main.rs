//! Storage that lies, devices that come and go, and what a person is told.

#![allow(clippy::unwrap_used)]

mod alarms;
#[path = "../support/client.rs"]
mod client;
#[path = "../support/counting.rs"]
mod counting;
mod doctor;
mod forged_heads;
mod history;
mod hostile;
mod joining;
mod known;
mod recover;
mod returning;
#[path = "../support/world.rs"]
mod world;

use std::path::{Path, PathBuf};

use serde_json::Value;

use world::{Said, World, text};

/// Runs a command with a key against the world's store.
#[track_caller]
fn run(world: &World, key: &Path, args: &[&str]) -> Said {
    let url = world.url();
    let mut all = args.to_vec();
    all.extend(["--key", text(key), &url]);
    world.e2ee(world.root(), &all)
}

/// The same for the owner's report.
#[track_caller]
fn json(world: &World, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    serde_json::from_str(&run(world, &world.key, &all).good()).unwrap()
}

/// A new member; its key file and id.
#[track_caller]
fn member(world: &World, name: &str, role: &str) -> (PathBuf, String) {
    let root = json(world, &["device-list"])["repository_root"]
        .as_str()
        .unwrap()
        .to_owned();
    let (key, record) = (
        world.path(&format!("{name}.json")),
        world.path(&format!("{name}.device.json")),
    );
    let made = [
        "keygen",
        "--json",
        "--output",
        text(&key),
        "--repository-root",
        &root,
    ];
    let made: Value = serde_json::from_str(&world.e2ee(world.root(), &made).good()).unwrap();
    let export = ["device-export", "--key", text(&key), "--output", text(&record)];
    world.e2ee(world.root(), &export).good();
    let add = [
        "device-add",
        "--device",
        text(&record),
        "--role",
        role,
        "--name",
        name,
    ];
    run(world, &world.key, &add).good();
    (key, made["device_id"].as_str().unwrap().to_owned())
}
