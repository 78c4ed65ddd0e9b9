//! What users should know although the work goes on.
//!
//! The engine prints nothing: it emits a [`tracing`] event of level WARN, which says in one sentence what happened, to
//! which file, and what to do. Programs show it.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Says once in the life of the process that the file at `path` is not used. `fault` names the file.
pub(crate) fn passed_over(path: &Path, fault: &dyn Display) {
    static TOLD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let first = TOLD
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(path.to_owned());
    if first {
        tracing::warn!("{fault}; going on without it, run git fsck to see what is lost");
    }
}
