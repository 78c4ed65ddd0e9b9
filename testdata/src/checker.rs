//! Runs the independent checker of stores, the judge of what is written into them, and its counterpart that
//! makes stores which are wrong in one way each.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks a store with `testdata/check_store.py` as the device of a key file: a directory, or with `--carrier` among the
/// options a Git repository. Returns the checker's JSON
/// summary, or its one line about the rule that is broken. `options` go before the store, for example `--clean`.
#[track_caller]
pub fn check_store(store: &Path, key_file: &Path, options: &[&str]) -> Result<String, String> {
    let output = Command::new("python3")
        .arg(crate::root().join("check_store.py"))
        .args(options)
        .args([store, key_file])
        .output()
        .expect("python3 is installed where tests run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    match output.status.code() {
        Some(0) => Ok(text(&output.stdout)),
        Some(1) => match text(&output.stderr).strip_prefix("check_store: ") {
            Some(reason) => Err(reason.to_owned()),
            None => panic!("the checker itself failed:\n{}", text(&output.stderr)),
        },
        _ => panic!("the checker did not run:\n{}", text(&output.stderr)),
    }
}

/// What a reader has to make of a forged store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong with it.
    Sound,
    /// No writer should write it, but readers have to accept it.
    Odd,
    /// To be refused, at the latest when the Git objects are looked at.
    Wrong,
}

/// A directory store that is right but for one thing, if at all.
#[derive(Debug, Clone)]
pub struct Forged {
    /// What it is about.
    pub name: String,
    /// What to make of it.
    pub verdict: Verdict,
    /// A part of the reason for which the checker refuses it; empty for sound stores.
    pub reason: String,
    /// The store.
    pub store: PathBuf,
    /// Key file of the owner, who can read every store that can be read at all.
    pub owner_key: PathBuf,
}

/// Makes the forged stores of these names (all, if there are none) below `folder` with `testdata/forge_store.py`.
#[track_caller]
pub fn forged(folder: &Path, names: &[&str]) -> Vec<Forged> {
    let output = Command::new("python3")
        .arg(crate::root().join("forge_store.py"))
        .arg(folder)
        .args(names)
        .output()
        .expect("python3 is installed where tests run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| {
            let mut fields = line.split('\t');
            let mut next = || fields.next().unwrap();
            let (name, verdict, reason) = (next(), next(), next());
            Forged {
                name: name.to_owned(),
                verdict: match verdict {
                    "sound" => Verdict::Sound,
                    "odd" => Verdict::Odd,
                    _ => Verdict::Wrong,
                },
                reason: reason.to_owned(),
                store: folder.join(name).join("store"),
                owner_key: folder.join(name).join("owner.key.json"),
            }
        })
        .collect()
}
