//! Why a commit cannot be checked out.

use std::path::PathBuf;

use bstr::BString;
use gix_hash::ObjectId;

/// What went wrong with which path or object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that would do harm; nothing was written.
    #[error("refusing to check out '{path}': {reason}")]
    Name {
        /// The path in the tree.
        path: BString,
        /// What is wrong with it.
        reason: String,
    },
    /// Two entries for one path; nothing was written.
    #[error("refusing to check out '{path}': the tree has it twice or out of order")]
    Twice {
        /// The path in the tree.
        path: BString,
    },
    /// A tree that makes no sense; nothing was written.
    #[error("cannot check out tree {id}: {message}")]
    Tree {
        /// The root tree.
        id: ObjectId,
        /// Why.
        message: String,
    },
    /// Something that has no tree.
    #[error("cannot check out {id}: it is a {kind}")]
    NoTree {
        /// The object.
        id: ObjectId,
        /// What it is.
        kind: gix_object::Kind,
    },
    /// An object that is absent.
    #[error("cannot check out: object {id} is missing")]
    Missing {
        /// The object.
        id: ObjectId,
    },
    /// Configuration or attributes that cannot be used.
    #[error("cannot prepare the checkout: {message}")]
    Setup {
        /// Why.
        message: String,
    },
    /// Something that is no file's content.
    #[error("cannot check out object {id}: it is a {kind} where a file belongs")]
    NoBlob {
        /// The object.
        id: ObjectId,
        /// What it is.
        kind: gix_object::Kind,
    },
    /// A file that could not be written; those before it are there.
    #[error("cannot check out '{path}': {message}")]
    Write {
        /// The path in the tree.
        path: BString,
        /// Why.
        message: String,
    },
    /// An index that could not be written.
    #[error("cannot write {}: {message}", .path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Another process writes the index.
    #[error("the index is locked by {}; remove that file if no other Git process runs", .lock.display())]
    Locked {
        /// The lock file.
        lock: PathBuf,
    },
    /// The user wanted it to end.
    #[error("interrupted")]
    Interrupted,
    /// Objects that cannot be read.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    /// A write that failed.
    #[error(transparent)]
    Durable(#[from] durable::Error),
}

use crate::durable;
