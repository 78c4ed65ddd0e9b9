//! Why a pack was not indexed.

use std::path::PathBuf;

use gix_hash::ObjectId;

/// Why a pack was not indexed. Every variant that concerns one entry tells where in the stream it starts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream failed.
    #[error("could not read the pack after {offset} bytes")]
    Read {
        /// Bytes received before.
        offset: u64,
        /// What the stream said.
        source: std::io::Error,
    },
    /// A file of the new pack could not be written, read back or renamed.
    #[error("could not {action} {}", path.display())]
    File {
        /// What was tried, an infinitive.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The stream does not start with a pack header.
    #[error("this is not a pack: it does not start with `PACK`")]
    NotAPack,
    /// A pack version that does not exist, or does not exist yet.
    #[error("pack version {0} is not supported, only 2 and 3 are")]
    Version(u32),
    /// The stream ended too early.
    #[error("the pack ends after {offset} bytes, in the middle of {what}")]
    Truncated {
        /// Bytes received.
        offset: u64,
        /// What was being read.
        what: &'static str,
    },
    /// An entry header that is not one.
    #[error("the pack entry at offset {offset} has a malformed header")]
    EntryHeader {
        /// Where the entry starts.
        offset: u64,
    },
    /// Compressed data that is not a zlib stream.
    #[error("the pack entry at offset {offset} cannot be inflated")]
    Inflate {
        /// Where the entry starts.
        offset: u64,
        /// What is wrong with it.
        source: crate::pack::inflate::Error,
    },
    /// Inflated data with another size than its header claims.
    #[error("the pack entry at offset {offset} does not have the {claimed} bytes that its header claims")]
    EntrySize {
        /// Where the entry starts.
        offset: u64,
        /// The size in the header.
        claimed: u64,
    },
    /// An offset delta whose base offset is not the start of an earlier entry.
    #[error("the delta at offset {offset} refers to a base where no entry starts")]
    BaseOffset {
        /// Where the delta starts.
        offset: u64,
    },
    /// Delta instructions that do not fit their base or the sizes they claim.
    #[error("the delta at offset {offset} is malformed")]
    Delta {
        /// Where the delta starts.
        offset: u64,
        /// What is wrong with it.
        source: crate::pack::delta::Error,
    },
    /// A limit of the caller's.
    #[error("{what} of {size} exceeds the limit of {limit}")]
    Limit {
        /// What is too large, with its place where it has one.
        what: String,
        /// The size found or claimed.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The checksum at the end is another one.
    #[error("the pack's checksum is {expected} but its content has {actual}: it was damaged on the way")]
    Checksum {
        /// As the trailer says.
        expected: ObjectId,
        /// As computed.
        actual: ObjectId,
    },
    /// Something follows the checksum.
    #[error("bytes follow the end of the pack at offset {offset}")]
    TrailingBytes {
        /// Where the pack ends.
        offset: u64,
    },
    /// Reference deltas whose base this pack does not have, or that are their own base in the end.
    #[error(
        "{count} deltas have no base in the pack (wanted: {}); only self-contained packs are accepted",
        display_ids(missing)
    )]
    MissingBases {
        /// How many deltas could not be resolved.
        count: usize,
        /// The first of the base ids that no object of the pack has, sorted.
        missing: Vec<ObjectId>,
    },
    /// Hashing met the traces of a SHA-1 collision attack.
    #[error("the object at offset {offset} carries a SHA-1 collision attack")]
    CollisionAttack {
        /// Where its entry starts. 0 for the pack as a whole.
        offset: u64,
    },
    /// The repository has an object of this id with other content.
    #[error("object {id} differs from the one of the same id that is already here")]
    Collision {
        /// The id of both.
        id: ObjectId,
    },
    /// A commit, tree or tag that cannot be read.
    #[error("{kind} {id} is malformed")]
    Malformed {
        /// The object.
        id: ObjectId,
        /// What it was said to be.
        kind: gix_object::Kind,
        /// What is wrong.
        source: crate::object::tree_delta::Error,
    },
    /// A tree with a name that could do harm when checked out.
    #[error("tree {id} has an entry named {name:?}, which is refused: {reason}")]
    UnsafeName {
        /// The tree.
        id: ObjectId,
        /// The name.
        name: bstr::BString,
        /// Why.
        reason: gix_validate::path::component::Error,
    },
    /// An object is used as something that it is not.
    #[error("object {id} is a {actual}, but another object of the pack refers to it as a {expected}")]
    WrongKind {
        /// The object.
        id: ObjectId,
        /// What a commit or tree says that it is.
        expected: gix_object::Kind,
        /// What it is.
        actual: gix_object::Kind,
    },
    /// The objects that exist already could not be read.
    #[error("could not compare object {id} with the one that is already here")]
    Existing {
        /// The object.
        id: ObjectId,
        /// What the store said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// A [`Error::File`] maker for `map_err`.
pub(super) fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}

fn display_ids(ids: &[ObjectId]) -> String {
    let mut text: Vec<String> = ids.iter().take(8).map(ToString::to_string).collect();
    if ids.len() > text.len() {
        text.push("...".into());
    }
    if text.is_empty() {
        text.push("deltas that depend on each other".into());
    }
    text.join(", ")
}
