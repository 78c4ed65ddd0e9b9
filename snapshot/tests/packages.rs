//! Inventories of machines that are made for the test.

#![cfg(unix)]

#[path = "packages/ask.rs"]
mod ask;
#[path = "packages/commands.rs"]
mod commands;
#[path = "packages/damage.rs"]
mod damage;
#[path = "packages/languages.rs"]
mod languages;
#[path = "packages/machine.rs"]
mod machine;
#[path = "packages/memory.rs"]
mod memory;
#[path = "packages/system.rs"]
mod system;

use ingot_snapshot::packages::{Inventory, installed};
use machine::Machine;

#[test]
fn an_empty_machine_has_nothing() {
    let machine = Machine::new();
    assert_eq!(machine.inventory(), Inventory::default());
    let nowhere = machine.root().join("nowhere");
    assert_eq!(installed(&nowhere, &nowhere), Inventory::default());
}

#[test]
fn an_inventory_survives_json_and_is_the_same_each_time() {
    let machine = Machine::full();
    let inventory = machine.inventory();
    assert_eq!(inventory.managers.len(), 18, "{:?}", inventory.managers.keys());
    let json = serde_json::to_string(&inventory).expect("plain data");
    assert_eq!(
        serde_json::from_str::<Inventory>(&json).expect("its own form"),
        inventory
    );
    assert_eq!(
        serde_json::to_string(&machine.inventory()).expect("plain data"),
        json
    );
    assert!(json.contains("\"apt\":{\"packages\":[{\"name\":"), "{json}");
}

#[test]
fn this_machine_can_be_read() {
    let home = tempfile::tempdir().expect("a folder");
    let inventory = installed(std::path::Path::new("/"), home.path());
    for (manager, listing) in &inventory.managers {
        let mut sorted = listing.packages.clone();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let names = |packages: &[ingot_snapshot::packages::Package]| {
            packages.iter().map(|p| p.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&sorted), names(&listing.packages), "{manager:?}");
    }
}
