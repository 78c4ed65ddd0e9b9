//! Damaged databases: a warning, and the rest is read.

use std::fs;

use ingot_snapshot::packages::Manager;

use super::machine::{Machine, files};

#[test]
fn a_damaged_entry_costs_that_entry() {
    let machine = Machine::full();
    machine
        .write("var/lib/dpkg/status", "Package: vim\nStatus: install ok installed\nVersion: 9\n\n\0\x01garbage\n\nStatus: install ok installed\n\nPackage: jq\nStatus: install ok installed\nVersion: 1.7\n")
        .write("var/lib/pacman/local/bad-1-1/desc", "%NAME%\n\n%VERSION%\n")
        .folder("var/lib/pacman/local/empty-1-1")
        .write("lib/apk/db/installed", "V:1\n\nP:curl\nV:8\n")
        .write("~/.cargo/.crates2.json", "{\"installs\":{\"bat\":{},\"fd 10.0.0 (registry+https://github.com/rust-lang/crates.io-index)\":{}}}")
        .write("~/.vscode/extensions/extensions.json", "[{\"identifier\":7},{\"identifier\":{\"id\":\"a.b\"},\"version\":\"1\"}]")
        .write("~/.local/share/pipx/venvs/broken/pipx_metadata.json", "{")
        .write("~/go/bin/script", "#!/bin/sh\n");
    let check = |manager, packages: &[&str], warnings: &[&str]| {
        let (found, said) = machine.damaged(manager);
        assert_eq!(found, packages, "{manager:?}");
        assert_eq!(said.len(), warnings.len(), "{said:?}");
        for (said, expected) in said.iter().zip(warnings) {
            assert!(said.contains(expected), "{said} lacks {expected}");
            assert!(!said.contains('\n'));
        }
    };
    check(
        Manager::Apt,
        &["jq 1.7 explicit", "vim 9 explicit"],
        &["var/lib/dpkg/status: 2 damaged entries were left out"],
    );
    check(
        Manager::Pacman,
        &["jq 1.7-1 explicit"],
        &[
            "local/bad-1-1/desc: damaged: no name or version",
            "local/empty-1-1: no description",
        ],
    );
    check(
        Manager::Apk,
        &["curl 8 unknown"],
        &["lib/apk/db/installed: 1 damaged entries"],
    );
    check(
        Manager::Cargo,
        &["fd 10.0.0 explicit"],
        &["the entry \"bat\" is no package"],
    );
    check(
        Manager::Vscode,
        &["a.b 1 explicit code"],
        &["an entry is damaged and left out"],
    );
    check(
        Manager::Pipx,
        &["black 24.1 explicit"],
        &["pipx_metadata.json: damaged", "no metadata; left out"],
    );
    check(Manager::Go, &[], &["go/bin/script: no module information"]);
}

#[test]
fn no_damage_to_any_file_costs_more_than_its_manager() {
    let machine = Machine::full();
    let whole = machine.inventory();
    for file in files(&machine.root()) {
        let content = fs::read(&file).expect("a file");
        let mut damages: Vec<Vec<u8>> = vec![
            Vec::new(),
            vec![0xff; 3000],
            b"{".to_vec(),
            b"[[[[".repeat(5000),
            b"\n\n\n".to_vec(),
        ];
        damages.extend((1..content.len()).step_by(7).map(|end| content[..end].to_vec()));
        for damage in damages {
            fs::write(&file, &damage).expect("a file");
            let inventory = machine.inventory();
            let differs = whole
                .managers
                .iter()
                .filter(|(manager, listing)| inventory.managers.get(manager) != Some(listing))
                .count();
            assert!(differs <= 1, "{}: {differs} listings changed", file.display());
        }
        fs::write(&file, &content).expect("a file");
    }
    assert_eq!(machine.inventory(), whole);
}

#[test]
#[cfg(unix)]
fn what_is_no_regular_file_is_not_opened() {
    let machine = Machine::new();
    machine
        .folder("var/lib/dpkg")
        .folder("~/.cargo/.crates2.json")
        .folder("lib/apk/db")
        .write("var/lib/pacman/local", "a file");
    // A named pipe without a writer would be waited for; the terminal of the test would be read.
    let made = std::process::Command::new("mkfifo")
        .arg(machine.path("var/lib/dpkg/status"))
        .status()
        .expect("mkfifo");
    assert!(made.success());
    machine.link("lib/apk/db/installed", "/dev/zero");
    let (packages, warnings) = machine.damaged(Manager::Apt);
    assert!(packages.is_empty());
    assert_eq!(warnings, ["var/lib/dpkg/status: not a regular file"]);
    assert_eq!(
        machine.damaged(Manager::Apk).1,
        ["lib/apk/db/installed: not a regular file"]
    );
    assert_eq!(
        machine.damaged(Manager::Cargo).1,
        ["home/me/.cargo/.crates2.json: not a regular file"]
    );
    assert!(!machine.inventory().managers.contains_key(&Manager::Pacman));
}

#[test]
fn files_beyond_all_measure_are_not_read() {
    let machine = Machine::new();
    machine.write("~/.cargo/.crates2.json", "");
    let file = fs::OpenOptions::new()
        .write(true)
        .open(machine.path("~/.cargo/.crates2.json"))
        .expect("the file");
    // Sparse: it takes no room.
    file.set_len(1 << 40).expect("a large file");
    let (packages, warnings) = machine.damaged(Manager::Cargo);
    assert!(packages.is_empty());
    assert!(
        warnings[0].contains("larger than 16777216 bytes; not read"),
        "{warnings:?}"
    );
}

#[test]
fn warnings_are_bounded() {
    let machine = Machine::new();
    for n in 0..80 {
        machine.write(&format!("~/go/bin/{n:02}"), "no program");
    }
    let (_, warnings) = machine.damaged(Manager::Go);
    assert_eq!(warnings.len(), 51);
    assert_eq!(warnings[50], "30 more warnings");
}
