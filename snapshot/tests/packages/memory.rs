//! Databases that look the same are not read again, and whatever changes in them is noticed.

use std::fs;
use std::path::PathBuf;

use ingot_snapshot::packages::{Document, document, installed};

use super::machine::{Machine, files};

struct Remembering {
    machine: Machine,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Remembering {
    fn of(machine: Machine) -> Remembering {
        let folder = tempfile::tempdir().expect("a folder");
        Remembering {
            machine,
            file: folder.path().join("memory"),
            _folder: folder,
        }
    }

    fn document(&self) -> Document {
        document(&self.machine.root(), &self.machine.home(), &self.file).expect("a document")
    }

    /// Reads, remembers, and says whether anything had to be read.
    fn reads(&self) -> bool {
        let document = self.document();
        let mut fresh = serde_json::to_vec_pretty(&installed(&self.machine.root(), &self.machine.home()))
            .expect("plain data");
        fresh.push(b'\n');
        assert!(document.bytes == fresh, "it is what a reading gives");
        if let Some(memory) = &document.memory {
            fs::write(&self.file, memory).expect("a file");
        }
        document.memory.is_some()
    }
}

/// What changed just before a reading is not believed to be all.
fn tick() {
    std::thread::sleep(std::time::Duration::from_millis(60));
}

#[test]
fn what_looks_the_same_is_not_read_again() {
    let all = Remembering::of(Machine::full());
    tick();
    assert!(all.reads());
    assert!(!all.reads());
    assert!(!all.reads());
    // For another home it is another list.
    let other = tempfile::tempdir().expect("a folder");
    let elsewhere = document(&all.machine.root(), other.path(), &all.file).expect("a document");
    assert!(elsewhere.memory.is_some());
}

#[test]
fn a_change_of_any_file_is_noticed() {
    let all = Remembering::of(Machine::full());
    tick();
    assert!(all.reads());
    for file in files(&all.machine.root()) {
        let content = fs::read(&file).expect("a file");
        // Of the same length, so that only times tell.
        let mut changed = content.clone();
        changed.reverse();
        fs::write(&file, changed).expect("a file");
        let document = all.document();
        assert!(document.memory.is_some(), "{}", file.display());
        fs::write(&file, content).expect("a file");
        tick();
        assert!(all.reads(), "{}", file.display());
        assert!(!all.reads(), "{}", file.display());
    }
}

#[test]
fn what_appears_and_goes_is_noticed() {
    let all = Remembering::of(Machine::new());
    assert!(all.reads());
    assert!(!all.reads(), "that there is nothing is remembered, too");
    for file in [
        "var/lib/dpkg/status",
        "~/.cargo/.crates2.json",
        "~/go/bin/tool",
        "~/.vim/plugged/plugin/x",
        "var/lib/rpm/rpmdb.sqlite",
    ] {
        all.machine.write(file, "x");
        assert!(all.reads(), "{file}");
        tick();
        let _ = all.reads();
        assert!(!all.reads(), "{file}");
        fs::remove_file(all.machine.path(file)).expect("a file");
        assert!(all.reads(), "{file}");
    }
}

#[test]
fn a_damaged_memory_is_none() {
    let all = Remembering::of(Machine::new());
    assert!(all.reads());
    let good = fs::read(&all.file).expect("a file");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&all.file, bad).expect("a file");
        assert!(all.document().memory.is_some(), "{at}");
    }
    fs::write(&all.file, &good[..good.len() - 1]).expect("a file");
    assert!(all.document().memory.is_some());
    fs::write(&all.file, &good).expect("a file");
    assert!(all.document().memory.is_none());
}
