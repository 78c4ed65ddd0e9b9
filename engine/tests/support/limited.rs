//! Tests that run in a process of their own, which the system gives little memory.

use std::path::{Path, PathBuf};
use std::process::Command;

const INPUT: &str = "INGOT_TEST_INPUT";

/// Runs the test `name` of this binary, which is ignored otherwise, and hands it a path.
#[track_caller]
pub fn run(name: &str, input: &Path) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .env(INPUT, input)
        // Each further arena of the allocator reserves 64 MiB that nobody may ever use.
        .env("MALLOC_ARENA_MAX", "1")
        // Making a backtrace takes memory, too.
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    eprintln!("{errors}");
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{errors}"
    );
}

/// The path that was handed over, for a test that is run by [`run`].
pub fn input() -> PathBuf {
    std::env::var_os(INPUT)
        .expect("another test runs this one")
        .into()
}

/// From now on this process gets no more than so many bytes beyond what it has: heap, stacks of threads and mapped files
/// together. Gives a guard that tells how much was taken when it is dropped.
#[must_use]
pub fn hold(bytes: u64) -> Peak {
    let before = address_space("VmSize:");
    let limit = rustix::process::Rlimit {
        current: Some(before + bytes),
        maximum: Some(before + bytes),
    };
    rustix::process::setrlimit(rustix::process::Resource::As, limit).unwrap();
    // The limit works.
    assert!(Vec::<u8>::new().try_reserve_exact(bytes as usize + 1).is_err());
    Peak { before, bytes }
}

/// See [`hold`].
pub struct Peak {
    before: u64,
    bytes: u64,
}

impl Drop for Peak {
    fn drop(&mut self) {
        let taken = address_space("VmPeak:").saturating_sub(self.before) >> 10;
        eprintln!("{taken} KiB of {} were taken", self.bytes >> 10);
    }
}

fn address_space(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kib: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    kib << 10
}
