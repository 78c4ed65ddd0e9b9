//! Where ciphertext is kept.
//!
//! A store holds three kinds of things: manifests and packs, named by the SHA-256 of their bytes and never changed, and
//! one head that names the newest manifest and is moved by comparing and swapping. [`Storage`] is all that the protocol
//! asks of a place; [`directory::Directory`] is the embedded one, [`carrier::Carrier`] uses a branch of a Git repository. Nothing that a store returns is believed: sizes are
//! bounded here, content is authenticated by [`crate::protocol`].
//!
//! The order of a publication is packs, then the manifest, then the head. A repository is begun by moving the head from
//! nothing to its first manifest before anything else is stored, so that what an interrupted beginning leaves can be
//! told from what a lost head leaves.

pub mod carrier;
pub mod directory;
mod error;
mod recovery;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::SystemTime;

pub use error::{Error, Kind};
use ingot_engine::progress::Progress;
pub use recovery::{Heads, MOST_COMMITS, Recovery};

use crate::protocol::ContentId;

/// The most bytes of a manifest that any reader takes.
pub const MANIFEST_LIMIT: u64 = 16 << 20;

/// The most bytes of a head that are looked at. A proper one has 65.
pub const HEAD_LIMIT: u64 = 4096;

/// A place that keeps one encrypted repository.
pub trait Storage: Send + Sync {
    /// The place in words for messages.
    fn describe(&self) -> String;

    /// The place as a text that stays the same however the user spells it, and differs between places. Continuity state
    /// is kept by it.
    fn identity(&self) -> String;

    /// From now on, tells `progress` what is brought from a place far away or sent there. What is done with bytes on this
    /// machine is told by whoever does it.
    fn show(&self, _progress: Arc<dyn Progress>) {}

    /// The head, or `None` where no repository was ever begun.
    ///
    /// A place that cannot be reached is [`Error::Unreachable`], one that lost its head is [`Error::HeadMissing`]:
    /// neither is a place to begin a repository in.
    ///
    /// Reading the head begins anew: what was stored before and not published may be given up by a place that publishes
    /// everything at once.
    fn head(&self) -> Result<Option<RawHead>, Error>;

    /// The same for a caller who wants to move the head. May be a moment old: moving it will tell.
    fn head_for_push(&self) -> Result<Option<RawHead>, Error> {
        self.head()
    }

    /// The bytes of a manifest, at most [`MANIFEST_LIMIT`], whose hash is `id`.
    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error>;

    /// When a manifest was stored, as far as the place knows. Nothing vouches for it: it is for people to look at.
    fn manifest_time(&self, _id: &ContentId) -> Option<SystemTime> {
        None
    }

    /// When the head was moved last, as far as the place knows. Nothing vouches for it either.
    fn last_moved(&self) -> Option<SystemTime> {
        None
    }

    /// The stored size of a pack in bytes; [`Error::Absent`] where there is none.
    fn pack_size(&self, id: &ContentId) -> Result<u64, Error>;

    /// A pack from its first byte. Nothing is checked: size and hash are the reader's business, who sees every byte
    /// anyway.
    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, Error>;

    /// Says which packs will be opened next, in this order, with their stored sizes: a place that is far away can bring
    /// several at once.
    fn expect_packs(&self, _packs: &[(ContentId, u64)]) {}

    /// Makes the place itself, with everything above it that is missing. Does nothing where it is there already. Only
    /// for a user who wants a new repository: a missing place may be a disk that is not mounted.
    fn create(&self) -> Result<(), Error>;

    /// The most bytes of a sealed pack that can be stored, if there is a limit.
    fn pack_limit(&self) -> Option<u64> {
        None
    }

    /// What a push that was interrupted has sealed and not published, as far as it was kept for going on with. Nothing
    /// vouches for it.
    fn unfinished(&self) -> Option<Unfinished> {
        None
    }

    /// Goes on with it, if it is about this pack: pack and manifest are from now on as if they had just been stored, and
    /// [`Storage::swap_head`] publishes them.
    fn take_up(&self, _pack: &ContentId) -> Result<(), Error> {
        Err(Error::NothingUnfinished {
            store: self.describe(),
        })
    }

    /// Forgets it, and removes what had come to the place of it.
    fn give_up(&self) {}

    /// What pushes that were interrupted have left in the place. One of them may still be under way, from another machine.
    fn leftovers(&self) -> Result<Vec<Leftover>, Error> {
        Ok(Vec::new())
    }

    /// Removes it, unless it has changed since.
    fn remove_leftover(&self, _leftover: &Leftover) -> Result<(), Error> {
        Ok(())
    }

    /// Begins to store a pack.
    fn stage_object(&self) -> Result<Box<dyn StagedObject>, Error>;

    /// Stores a manifest and returns its id, durably unless the place publishes everything at once with the head. Storing the same bytes again is no error; more than
    /// [`MANIFEST_LIMIT`] of them is, because no reader would take them.
    fn put_manifest(&self, bytes: &[u8]) -> Result<ContentId, Error>;

    /// Moves the head from `expected` (`None`: no head) to `new`, durably, unless somebody else was faster:
    /// [`Error::HeadChanged`] tells both ids. After [`Error::Uncertain`] the head names `new`, but may not survive a
    /// power cut.
    fn swap_head(&self, expected: Option<&ContentId>, new: &ContentId) -> Result<(), Error>;

    /// The place as it is now, however damaged, for `git-e2ee recover` alone.
    fn recovery(&self) -> Result<Box<dyn Recovery>, Error> {
        Err(Error::Refused {
            store: self.describe(),
            reason: "nothing can be recovered there".to_owned(),
        })
    }
}

/// A generation that is sealed and not published.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// Its pack.
    pub pack: ContentId,
    /// Its manifest.
    pub manifest: Vec<u8>,
}

/// Something that an interrupted push has left in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is called there: a branch.
    pub name: String,
    /// What it is, so that nothing else is removed in its place.
    pub id: gix_hash::ObjectId,
    /// The next push from this machine can go on with it.
    pub resumable: bool,
}

/// A pack on its way into a store. Dropping it unfinished leaves nothing behind.
pub trait StagedObject: Write + Send {
    /// Publishes what was written under `id`, its SHA-256, which the caller computed while sealing. Once this returns,
    /// the pack survives a power cut, or will be published with the head. The same content being there already is no error.
    fn finish(self: Box<Self>, id: &ContentId) -> Result<(), Error>;
}

/// A head as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawHead {
    bytes: Vec<u8>,
}

impl RawHead {
    /// The head that consists of these bytes.
    pub fn new(bytes: Vec<u8>) -> RawHead {
        RawHead { bytes }
    }

    /// The exact bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The manifest that it names; `None` when it is not 64 lower-case hexadecimal digits between white space.
    pub fn id(&self) -> Option<ContentId> {
        std::str::from_utf8(&self.bytes).ok()?.trim().parse().ok()
    }
}

impl From<&ContentId> for RawHead {
    fn from(id: &ContentId) -> RawHead {
        RawHead::new(format!("{id}\n").into_bytes())
    }
}
