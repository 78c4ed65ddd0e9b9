//! What can go wrong while reading objects.

use std::io;
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;

use crate::pack::{delta, inflate};

/// Why the store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("could not {action} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What it answered.
        source: io::Error,
    },
    /// A pack index that cannot be used.
    #[error("the pack index {} is damaged: {reason}", path.display())]
    Index {
        /// The `.idx` file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A pack that is not what its index says.
    #[error("the pack {} is damaged: {reason}", path.display())]
    Pack {
        /// The `.pack` file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// One entry of a pack that cannot be read.
    #[error("object {id} in pack {} at offset {offset} is damaged: {fault}", path.display())]
    Entry {
        /// The object that the index has at this offset; the null id if it has none.
        id: ObjectId,
        /// The `.pack` file.
        path: PathBuf,
        /// Where the entry starts.
        offset: u64,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A loose object that cannot be read.
    #[error("the loose object {} is damaged: {fault}", path.display())]
    Loose {
        /// The object that its name promises.
        id: ObjectId,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A whole object was asked for that is larger than the store may hold in memory.
    #[error(
        "object {id} has {size} bytes, which is more than the limit of {limit} bytes for one object in memory"
    )]
    TooLarge {
        /// The object.
        id: ObjectId,
        /// Its size, or that of an object it is made from.
        size: u64,
        /// The limit in [`super::Options::object_limit`].
        limit: u64,
    },
    /// An object does not have the id that it is stored under.
    #[error("object {id} in {} is damaged: its content has the id {actual}", path.display())]
    Mismatch {
        /// The id that it is stored under.
        id: ObjectId,
        /// The id of what is stored.
        actual: ObjectId,
        /// The pack or loose file.
        path: PathBuf,
    },
    /// The content of an object looks like an attack on its hash function.
    #[error("object {id} in {} is part of an attempted hash collision", path.display())]
    Collision {
        /// The id that it is stored under.
        id: ObjectId,
        /// The pack or loose file.
        path: PathBuf,
    },
    /// More packed objects than a [`super::Position`] can number.
    #[error("{} and its alternates hold more than 4,294,967,295 packed objects", path.display())]
    TooManyObjects {
        /// The object folder.
        path: PathBuf,
    },
    /// The receiver of a streamed object failed.
    #[error("could not pass on object {id}")]
    Sink {
        /// The object.
        id: ObjectId,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// The file or folder that it is about; `None` where it is about an object alone.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::Io { path, .. }
            | Error::Index { path, .. }
            | Error::Pack { path, .. }
            | Error::Entry { path, .. }
            | Error::Loose { path, .. }
            | Error::Mismatch { path, .. }
            | Error::Collision { path, .. }
            | Error::TooManyObjects { path } => Some(path),
            Error::TooLarge { .. } | Error::Sink { .. } => None,
        }
    }

    /// True if a file is not there.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// True if it says nothing about the file: there is not enough memory, or too many files are open.
    pub(super) fn is_exhaustion(&self) -> bool {
        const EXHAUSTED: [rustix::io::Errno; 2] = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::OutOfMemory
            || rustix::io::Errno::from_io_error(source).is_some_and(|code| EXHAUSTED.contains(&code)))
    }

    /// True if a copy of the object somewhere else may be sound.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Error::Entry { .. } | Error::Pack { .. } | Error::Io { .. })
    }
}

/// What is wrong with one stored object.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The header cannot be parsed.
    #[error("{0}")]
    Header(&'static str),
    /// The compressed data cannot be inflated to the promised size.
    #[error(transparent)]
    Inflate(#[from] inflate::Error),
    /// A delta cannot be applied.
    #[error(transparent)]
    Delta(#[from] delta::Error),
    /// The base of a delta is nowhere in the store.
    #[error("its delta base {0} is missing")]
    BaseMissing(ObjectId),
    /// The chain of deltas is longer than any that Git makes, or goes in a circle.
    #[error("its chain of deltas has more than {0} links or goes in a circle")]
    ChainTooLong(usize),
    /// The entry starts outside of the pack's data.
    #[error("the offset lies outside of the pack")]
    Outside,
}
