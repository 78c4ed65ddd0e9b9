//! Why references cannot be read or changed.

use std::path::PathBuf;

use bstr::BString;
use gix_hash::ObjectId;

/// What went wrong with which reference.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No name that Git allows.
    #[error("'{name}' is not a valid reference name: {reason}")]
    Invalid {
        /// The name.
        name: BString,
        /// The rule that it breaks.
        reason: String,
    },
    /// A revision that names nothing.
    #[error("'{spec}' names nothing here: {message}")]
    Unknown {
        /// What was asked for.
        spec: BString,
        /// What is missing.
        message: String,
    },
    /// A reference or the list of references that cannot be read.
    #[error("cannot read reference '{name}': {message}")]
    Unreadable {
        /// The name, or the prefix of a listing.
        name: BString,
        /// Why.
        message: String,
    },
    /// A chain of symbolic references that does not end.
    #[error("reference '{name}' leads in a circle")]
    Circular {
        /// Where it begins.
        name: BString,
    },
    /// An object that a tag or reference leads to and that is absent or damaged.
    #[error("cannot read object {id}: {message}")]
    Object {
        /// The object.
        id: ObjectId,
        /// Why.
        message: String,
    },
    /// The same reference twice in one transaction.
    #[error("reference '{name}' is changed twice at once")]
    Duplicate {
        /// The name.
        name: BString,
    },
    /// `a` beside `a/b`.
    #[error("cannot create reference '{name}': '{other}' exists")]
    Conflict {
        /// The new name.
        name: BString,
        /// The name in the way.
        other: BString,
    },
    /// Somebody else moved it.
    #[error(
        "reference '{name}' is at {} but expected {}",
        .actual.map_or("nothing".to_owned(), |id| id.to_string()),
        .expected.map_or("nothing".to_owned(), |id| id.to_string())
    )]
    Changed {
        /// The name.
        name: BString,
        /// What the caller believed to be there; `None` for nothing.
        expected: Option<ObjectId>,
        /// What is there.
        actual: Option<ObjectId>,
    },
    /// A reference to an object that is not in the repository.
    #[error("cannot set reference '{name}' to {id}: no such object")]
    MissingObject {
        /// The name.
        name: BString,
        /// The object.
        id: ObjectId,
    },
    /// Branches point to commits.
    #[error("cannot set branch '{name}' to {id}: it is a {kind}, not a commit")]
    NotACommit {
        /// The name.
        name: BString,
        /// The object.
        id: ObjectId,
        /// What it is.
        kind: gix_object::Kind,
    },
    /// Another process changes the same reference.
    #[error("reference '{name}' is locked by {}; remove that file if no other Git process runs", .lock.display())]
    Locked {
        /// The name.
        name: BString,
        /// The lock file.
        lock: PathBuf,
    },
    /// `packed-refs` with a line that makes no sense.
    #[error("{} is damaged in line {line}", .path.display())]
    Packed {
        /// The file.
        path: PathBuf,
        /// Counted from one.
        line: usize,
    },
    /// Some references were changed before a call failed; each of them is at its old or its new value.
    #[error("{} references were changed, then: {source}", .done.len())]
    Incomplete {
        /// Those that have their new value.
        done: Vec<BString>,
        /// The failure.
        source: Box<Error>,
    },
    /// A write that failed.
    #[error(transparent)]
    Durable(#[from] crate::durable::Error),
}
