//! The Git repository around the ciphertext, wherever it is.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use gix::object::Kind;
use gix_hash::ObjectId;
use ingot_engine::pack::create::Content;
use ingot_engine::store::Store;

use super::super::Error;
use super::snapshot::Snapshot;

/// A Git repository that carries ciphertext on one of its branches: what [`super::Carrier`] needs of it.
pub trait Outer: Send + Sync {
    /// The repository in words for messages.
    fn describe(&self) -> String;

    /// See [`crate::storage::Storage::identity`].
    fn identity(&self) -> String;

    /// The branch as it is now, or, for a push, as it was a moment ago: a push that finds it moved fails. Commit, trees, `HEAD` and manifests of its tip can be read from the snapshot.
    fn look(&self, purpose: Purpose) -> Result<Snapshot, Error>;

    /// Blobs of the snapshot, which will be read in this order, if at all. What the store does not have then is nowhere.
    fn bring(&self, snapshot: &Snapshot, blobs: &[ObjectId]) -> Result<Arc<Store>, Error>;

    /// Packs that will be read next, by their parts, with their sizes.
    fn expect(&self, _packs: Vec<(Vec<ObjectId>, u64)>) {}

    /// Something that was read of a snapshot cannot be right. Throws away what is kept of the repository on this machine,
    /// and tells whether anything was: then it is worth looking again.
    fn distrust(&self) -> bool {
        false
    }

    /// Makes the repository where there is none.
    fn create(&self) -> Result<(), Error>;

    /// Begins a change of the branch. Refuses here, before anything is written, what is known to be refused in the end.
    fn begin(&self, snapshot: &Snapshot) -> Result<Box<dyn Upload>, Error>;
}

/// What a branch is looked at for. Servers have one service for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reading alone.
    Read,
    /// Moving it afterwards.
    Push,
}

/// New objects on their way into the repository. Dropping it leaves nothing behind that anybody sees.
pub trait Upload: Send {
    /// Adds an object. Random content is that of sealed packs.
    fn add(&mut self, kind: Kind, bytes: &[u8], content: Content) -> Result<ObjectId, Error>;

    /// Adds a part of a sealed pack, of exactly `size` bytes.
    fn add_part(&mut self, size: u64, source: &mut dyn Read) -> Result<ObjectId, Error>;

    /// A folder for what is not an object yet, on the disk that the objects go to. It goes with this.
    fn folder(&self) -> &Path;

    /// Moves the branch from `old` to `new`, a commit among the new objects, if it still is at `old`. May be called
    /// again with the same values after [`Outcome::Unknown`].
    fn publish(&mut self, old: Option<ObjectId>, new: ObjectId) -> Result<Outcome, Error>;
}

/// What became of the branch.
#[derive(Debug)]
pub enum Outcome {
    /// It was moved, durably as far as this side can tell.
    Moved,
    /// Somebody else moved it before.
    LostRace,
    /// The answer did not come. The branch has to be read again.
    Unknown(Error),
}
