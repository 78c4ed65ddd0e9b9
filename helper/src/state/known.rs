//! What is known of a chain, on disk: beside each `state.json`, as `state.chain`.
//!
//! It is written after the pin that it goes with, without waiting for the disk: what a power cut leaves of it does not
//! have the right checksum, and then the chain is read anew.

use std::path::{Path, PathBuf};

use ingot_engine::durable::Fs;

use super::file::FILE_MODE;
use crate::protocol::chain::Known;

/// No chain that fits into memory is larger than this.
const MAX_BYTES: u64 = 256 << 20;

/// The file that goes with a state file.
pub fn path_for(state: &Path) -> PathBuf {
    state.with_extension("chain")
}

/// What is in the file that goes with a state file, if that is whole.
pub(super) fn read(state: &Path) -> Option<Known> {
    let path = path_for(state);
    if std::fs::metadata(&path).ok()?.len() > MAX_BYTES {
        return None;
    }
    Known::decode(&std::fs::read(&path).ok()?)
}

/// Replaces the file, as far as that is possible.
pub(super) fn write(fs: &dyn Fs, state: &Path, known: &Known) {
    let path = path_for(state);
    let next = state.with_extension("chain.tmp");
    // Only the holder of the state's lock writes here; what is there was left by one that was killed.
    let _ = fs.unlink(&next);
    let written = fs
        .create_new(&next, FILE_MODE)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &known.encode()))
        .and_then(|()| fs.rename(&next, &path));
    if written.is_err() {
        // What is known of an older pin would do no harm, but nobody can tell what is there now.
        let _ = fs.unlink(&next);
        let _ = fs.unlink(&path);
    }
}
