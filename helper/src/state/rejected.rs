//! `rejected-heads.json`: heads that were found to be wrong. Written by `recover` alone; nothing is decided by it.

use std::path::Path;

use ingot_engine::durable::Fs;
use serde::{Deserialize, Serialize};

use super::file::{self, Error};
use crate::protocol::ContentId;

const FORMAT: u64 = 1;
/// The most entries that are kept, and the most characters of a reason.
const MOST: usize = 16;
const LONGEST: usize = 512;

/// A head that was found to be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Its id, or the SHA-256 of its bytes where they are no id.
    pub head_id: ContentId,
    /// What kind of wrong it is.
    pub classification: String,
    /// Why.
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
struct Written {
    format_version: u64,
    entries: Vec<Rejected>,
}

/// Adds an entry to the file beside a state file. Of more than 16, the oldest goes. A file that cannot be read is begun
/// anew: it is for people to look at, and protects nothing.
pub(super) fn add(fs: &dyn Fs, state: &Path, mut rejected: Rejected) -> Result<(), Error> {
    let path = state.with_file_name("rejected-heads.json");
    let text = file::read_if_there(&path)?.unwrap_or_default();
    let mut written = serde_json::from_slice::<Written>(&text)
        .ok()
        .filter(|written| written.format_version == FORMAT)
        .unwrap_or(Written {
            format_version: FORMAT,
            entries: Vec::new(),
        });
    rejected.reason = rejected.reason.chars().take(LONGEST).collect();
    if written.entries.contains(&rejected) {
        return Ok(());
    }
    written.entries.push(rejected);
    let surplus = written.entries.len().saturating_sub(MOST);
    written.entries.drain(..surplus);
    let text = serde_json::to_vec_pretty(&written).expect("numbers and texts always serialise");
    file::write(fs, &path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sixteen_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state.json");
        let fs = ingot_engine::durable::real();
        let entry = |n: u8| Rejected {
            head_id: ContentId::from_bytes([n; 32]),
            classification: "invalid".into(),
            reason: "ü".repeat(600),
        };
        for n in 0..20 {
            add(&*fs, &state, entry(n)).expect("written");
            add(&*fs, &state, entry(n)).expect("written");
        }
        let text = std::fs::read(folder.path().join("rejected-heads.json")).expect("there");
        let written: Written = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(written.format_version, 1);
        assert_eq!(written.entries.len(), 17 - 1);
        assert_eq!(written.entries[0].head_id, ContentId::from_bytes([4; 32]));
        assert!(
            written
                .entries
                .iter()
                .all(|entry| entry.reason.chars().count() == 512)
        );
        std::fs::write(folder.path().join("rejected-heads.json"), "{").expect("written");
        add(&*fs, &state, entry(1)).expect("begun anew");
    }
}
