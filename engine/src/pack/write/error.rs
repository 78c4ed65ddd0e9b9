//! What can go wrong while a pack is written.

use std::io;
use std::path::PathBuf;

use gix_hash::ObjectId;

use crate::store;

/// Why no pack was written. Whatever reached the output by then is no pack and has to be thrown away.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A stored entry is not what its index says.
    #[error("object {id} in pack {} at offset {offset} is damaged: {reason}", path.display())]
    Damaged {
        /// The object that the index has there.
        id: ObjectId,
        /// The `.pack` file.
        path: PathBuf,
        /// Where the entry starts.
        offset: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An object is stored under the id of another one.
    #[error("object {id} is damaged: its content has the id {actual}")]
    Mismatch {
        /// The id that it is stored under.
        id: ObjectId,
        /// The id of what is stored.
        actual: ObjectId,
    },
    /// An object of the set is no longer there.
    #[error("object {0} disappeared while the pack was being written; run the command again")]
    Disappeared(ObjectId),
    /// A pack cannot count that many objects.
    #[error("{0} objects are more than one pack can hold")]
    TooMany(u64),
    /// The output did not take the pack.
    #[error("could not write the pack")]
    Output(#[source] io::Error),
    /// The operating system gave no thread.
    #[error("could not start a thread")]
    Thread(#[source] io::Error),
    /// The user wants the work to end.
    #[error("interrupted")]
    Interrupted,
}
