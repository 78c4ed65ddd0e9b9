//! Snapshots on changes.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::home::{Home, tick};

#[test]
fn a_change_becomes_a_snapshot_and_an_interrupt_ends_it() {
    let home = Home::new();
    home.write("t/a", "a");
    home.write("outside", "x");
    tick();
    let mut child = home
        .command()
        .args(["watch", "--json", "--debounce", "0.2", "--interval", "600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["added"], 2);
    home.write("outside", "not tracked");
    home.write("t/b/new", "b");
    let second = next();
    assert_eq!(
        (second["added"].as_u64(), second["removed"].as_u64()),
        (Some(2), Some(0)),
        "{second}"
    );
    // The folder that was made meanwhile is watched as well.
    home.write("t/b/new", "changed");
    assert_eq!(next()["modified"], 1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(next()["snapshots"], 3);
    assert_eq!(home.blob("t/b/new"), b"changed");
    home.sound();
}
