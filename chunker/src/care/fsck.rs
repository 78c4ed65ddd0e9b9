//! Checks every chunked file.

use std::collections::HashSet;

use bstr::BString;
use gix_hash::ObjectId;
use ingot_engine::chunked;
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;

use super::reach::reachable;
use crate::Error;

/// Something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// A path that has the file, if one is known.
    pub path: Option<BString>,
    /// The list or chunk.
    pub id: Option<ObjectId>,
    /// Where in the file.
    pub offset: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// True if the object is absent, not damaged.
    pub missing: bool,
}

/// What was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Chunked files, each version once.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is wrong.
    pub damage: Vec<Damage>,
}

/// Checks every chunked file that anything leads to. `quick` only looks whether everything is here.
pub fn fsck(repository: &Repository, quick: bool, progress: &dyn Progress) -> Result<Checked, Error> {
    let store = repository.store()?;
    let mut checked = Checked::default();
    let mut seen = HashSet::new();
    for (path, pointer) in reachable(repository, &store, true, progress)? {
        if !seen.insert((pointer.size, pointer.list, pointer.blake3)) {
            continue;
        }
        checked.files += 1;
        checked.bytes += pointer.size;
        let mut report = |id: Option<ObjectId>, offset: Option<u64>, message: String, missing: bool| {
            checked.damage.push(Damage {
                path: path.clone(),
                id,
                offset,
                message,
                missing,
            });
        };
        if quick {
            match super::complete(&store, &pointer) {
                Ok(()) => {}
                Err(error @ Error::Chunked(_)) => {
                    let missing = error.is_missing();
                    report(None, None, error.to_string(), missing);
                }
                Err(error) => return Err(error),
            }
            continue;
        }
        match chunked::verify(&store, &pointer, progress) {
            Ok(faults) => {
                for fault in faults {
                    let missing = fault.error.is_missing();
                    report(fault.id, fault.offset, fault.error.to_string(), missing);
                }
            }
            Err(chunked::Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => report(None, None, error.to_string(), false),
        }
    }
    Ok(checked)
}
