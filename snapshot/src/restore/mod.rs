//! Puts a snapshot back.
//!
//! First a [`plan`]: what is there is compared with the manifest, and each difference becomes a step or a conflict.
//! Nothing has changed by then, so a dry run ends here. Then the journal of an [`undo`] is made durable; only then the
//! steps are carried out (`place`). Files are written beside their places, verified against the manifest, made durable
//! together, and take their places by a rename each; what they replace is kept.
//!
//! No link below the target is followed, whoever puts one there and when: see [`crate::rooted`]. What is not a folder
//! where the snapshot has one, and a folder where it has none, are conflicts and left alone.

mod journal;
mod place;
pub mod plan;
mod probe;
pub mod undo;

use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use ingot_engine::progress::{Progress, Unit};
use ingot_engine::{durable, store};

use crate::archive::Reader;
use crate::manifest::Manifest;
use crate::rooted::Root;
use journal::Journal;
use place::Placer;
pub use plan::{Action, Conflict, Obstacle, Plan, Step};

/// How many restores can be undone.
const KEPT: usize = 10;

/// Why a restore, or its undoing, stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target, or something in it, cannot be used.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// A verb.
        action: &'static str,
        /// What it was about.
        path: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// Stored content is not what the manifest says.
    #[error("{}: what is stored is not what was captured; nothing of it was restored; see: rivet verify", crate::show::path(.0))]
    Damaged(Vec<u8>),
    /// Stored content is missing or cannot be read.
    #[error("{}: {source}", crate::show::path(.path))]
    Store {
        /// The file.
        path: Vec<u8>,
        /// Why.
        source: Box<store::Error>,
    },
    /// Content that the manifest names is not there.
    #[error("{}: object {id} is missing from the repository; see: rivet verify", crate::show::path(.path))]
    Missing {
        /// The file.
        path: Vec<u8>,
        /// The object.
        id: ObjectId,
    },
    /// The journal could not be written.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// The journal cannot be read.
    #[error("{} is damaged in line {line}", .path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// Nothing was restored, or everything is undone.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// A path that the snapshot does not have.
    #[error("the snapshot has nothing at {}", crate::show::path(.0))]
    NoSuchPath(Vec<u8>),
    /// The user wanted it.
    #[error("interrupted; what was restored so far can be taken back with: rivet undo")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// What a restore did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// Files and links written.
    pub written: u64,
    /// Folders made.
    pub folders: u64,
    /// Permissions and times set.
    pub adjusted: u64,
    /// What was taken away.
    pub deleted: u64,
    /// Bytes of files written.
    pub bytes: u64,
}

/// Carries a plan out. What is replaced or deleted is kept below `undo`. Conflicts that arise meanwhile are added to
/// the plan's.
pub fn carry_out(
    plan: &mut Plan,
    manifest: &Manifest,
    reader: &Reader,
    root: &Root,
    undo: &Path,
    progress: &dyn Progress,
) -> Result<Restored, Error> {
    if plan.steps.is_empty() {
        return Ok(Restored::default());
    }
    let journal = Journal::begin(undo, root.path(), plan, manifest, KEPT)?;
    progress.begin("Restoring", Some(plan.steps.len() as u64), Unit::Files);
    let placer = Placer {
        root,
        store: &reader.store,
        manifest,
        kept: journal.kept(),
        progress,
    };
    let result = placer.run(&plan.steps);
    progress.end();
    let (restored, conflicts) = result?;
    plan.conflicts.extend(conflicts);
    plan.conflicts
        .sort_by(|a, b| crate::manifest::order(&a.path, &b.path));
    Ok(restored)
}
