//! What the line protocol needs from the store behind it.

use std::path::PathBuf;

use bstr::BString;
use gix_hash::ObjectId;

use super::options::{Lease, Options};

/// Does what Git asks for. The protocol is spoken by [`serve`](super::serve()), so that it can be tested without a
/// store, and the store without Git.
pub trait Backend {
    /// A failure that ends the conversation.
    type Error;

    /// The references of the store. `for_push` tells what they are needed for: rights may differ.
    fn list(&mut self, options: &Options, for_push: bool) -> Result<Listing, Self::Error>;

    /// Brings objects into the local repository. `wanted` has no duplicates.
    fn fetch(&mut self, options: &Options, wanted: &[ObjectId]) -> Result<Fetched, Self::Error>;

    /// Changes references, all in one publication; the destinations are distinct. Returns one outcome for each, in
    /// any order, and only when nothing about it can change any more.
    fn push(&mut self, options: &Options, updates: &[Update]) -> Result<Vec<Outcome>, Self::Error>;
}

/// The references of a store at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The object format of its ids; `None` where there is nothing to tell it from.
    pub object_format: Option<gix_hash::Kind>,
    /// In byte order of the names.
    pub refs: Vec<Listed>,
    /// Full name of the branch that a clone checks out.
    pub head: Option<BString>,
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Full name.
    pub name: BString,
    /// What it points at.
    pub id: ObjectId,
    /// What an annotated tag leads to, where the tag object is known locally.
    pub peeled: Option<ObjectId>,
}

/// The result of a fetch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The `.keep` file of a new pack, for Git to remove once it has moved its references. Git takes one in each
    /// conversation; those of further packs are the backend's to remove at the end.
    pub lock: Option<PathBuf>,
    /// It is proven that nothing reachable from what was wanted is missing.
    pub connected: bool,
}

/// One reference to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The revision that it shall point at; `None` deletes it.
    pub source: Option<BString>,
    /// Full name of the reference in the store; any bytes.
    pub destination: BString,
    /// The user gives up what is there.
    pub force: bool,
    /// What has to be there. It permits an update that is not a fast-forward. Never set together with `force`,
    /// which outranks it.
    pub lease: Option<Lease>,
}

/// What became of an [`Update`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The destination of the update.
    pub destination: BString,
    /// How it ended.
    pub result: Verdict,
}

/// How an update ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Published.
    Changed {
        /// The value before, `None` where there was none.
        old: Option<ObjectId>,
        /// The value now, `None` where it was deleted.
        new: Option<ObjectId>,
        /// History was given up.
        forced: bool,
    },
    /// It had that value already.
    UpToDate,
    /// Refused: one of the statuses that Git knows, or text for the user.
    Refused(String),
}
