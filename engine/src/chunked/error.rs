//! Why a chunked file cannot be read.

use std::path::PathBuf;

use gix_hash::ObjectId;

use super::list::ListFault;
use crate::store;

/// What is wrong with which part of a chunked file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A list or a chunk is not here.
    #[error("the {} {id} is not here; get it with: git chunk fetch", if *.list { "chunk list" } else { "chunk" })]
    Missing {
        /// The absent object.
        id: ObjectId,
        /// Whether it is a list.
        list: bool,
    },
    /// Something else stands where a list belongs.
    #[error("the chunk list {id} is a {kind}")]
    NoList {
        /// The object.
        id: ObjectId,
        /// What it is.
        kind: gix_object::Kind,
    },
    /// A list that makes no sense.
    #[error("the chunk list {id} is damaged: {fault}")]
    List {
        /// The list.
        id: ObjectId,
        /// What is wrong with it.
        fault: ListFault,
    },
    /// A chunk that does not have the id or the length that its list says.
    #[error("the chunk {id} at byte {offset} is damaged: {reason}")]
    Chunk {
        /// The chunk.
        id: ObjectId,
        /// Where it belongs in the file.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// All chunks are what their ids say, and yet the file is not what its pointer says.
    #[error(
        "the chunks of {size} bytes do not make the file with BLAKE3 {expected}; its pointer or a list is wrong"
    )]
    Whole {
        /// What the pointer says.
        size: u64,
        /// What the pointer says.
        expected: blake3::Hash,
    },
    /// A file that could not be read or written.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// Objects that cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The user wanted it to end.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// True if an object is merely absent, so that fetching it would help.
    pub fn is_missing(&self) -> bool {
        matches!(self, Error::Missing { .. })
    }

    /// True if what is stored is not what it should be.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Error::NoList { .. } | Error::List { .. } | Error::Chunk { .. } | Error::Whole { .. }
        )
    }
}
