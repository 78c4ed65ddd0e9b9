//! Writes packs: first a plan, then a stream.
//!
//! [`plan`] decides how each object of a set is sent. Entries that a pack of the store has already are copied as they
//! lie, which costs next to nothing, unless they are deltas against an object that is not sent. Those, and loose
//! objects, are encoded: whole, or as a delta against a similar object, whichever is smaller. So are entries that are
//! stored whole although there probably is a base for them: an earlier version that the receiver has, or a version in
//! another pack.
//!
//! [`Plan::stream`] then writes the pack front to back, in bounded memory:
//!
//! 1. encoded objects that copied deltas stand on, each after its own base;
//! 2. copied entries, pack by pack in the order of the files, with the distances to their bases corrected;
//! 3. all other encoded objects.
//!
//! So the base of a delta comes before it, with one exception: a delta that names its base by id, followed later in the
//! same pack by that base, stays as it is. Every copied byte is checked against the CRC in the pack's index, every
//! encoded object against its id, so that a damaged source does not spread. The same set in the same store gives the
//! same pack, whatever the number of threads.

pub(super) mod body;
mod classify;
mod copy;
pub(crate) mod digest;
mod encode;
mod error;
mod item;
mod layout;
mod ordered;
mod output;
mod plan;
mod received;
mod recency;
mod search;
mod select;
mod stream;
mod threads;
mod window;

use gix_hash::ObjectId;

pub use error::Error;
pub use plan::plan;

use crate::pack::inflate::Level;
use crate::walk;

/// How a pack is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that search for deltas and compress. The pack does not depend on their number.
    pub threads: usize,
    /// How many objects each one is compared with; Git's `pack.window`.
    pub window: usize,
    /// How many deltas may have to be applied, one after the other, to read an object; Git's `pack.depth`.
    pub depth: usize,
    /// Bytes that the delta search and its results may take. Objects of more than a quarter of it are sent whole and pass
    /// through in pieces.
    pub memory: u64,
    /// Effort of compression.
    pub level: Level,
    /// Allows deltas against objects that are not in the pack because the receiver has them. Such a pack is of no use to
    /// anybody else. The walk has to know earlier versions; see [`walk::Objects::predecessor`].
    pub thin: bool,
}

/// What zlib's level 6, Git's choice, achieves takes this level of the implementation used here.
fn default_level() -> Level {
    Level::new(7).unwrap_or_default()
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            window: 10,
            depth: 50,
            memory: 128 << 20,
            level: default_level(),
            thin: false,
        }
    }
}

/// A pack that is ready to be written.
#[derive(Debug)]
pub struct Plan<'a> {
    objects: item::Objects<'a>,
    members: &'a walk::Objects,
    options: Options,
    packs: Vec<select::Selected>,
    items: Vec<item::Item>,
    /// Items that are written before the copied entries.
    front: Vec<u32>,
    /// Items that are written after them.
    tail: Vec<u32>,
    copied_bytes: u64,
}

impl Plan<'_> {
    /// The number of entries of the pack.
    pub fn objects(&self) -> u32 {
        self.members.len()
    }

    /// How many of them are compressed anew.
    pub fn encoded(&self) -> u32 {
        let encoded = self.items.iter().filter(|item| item.role == item::Role::Encoded);
        encoded.count() as u32
    }

    /// How many of these are deltas.
    pub fn deltas(&self) -> u32 {
        self.items.iter().filter(|item| item.base.is_some()).count() as u32
    }
}

/// A pack that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The checksum of everything before it, with which the pack ends.
    pub checksum: ObjectId,
    /// The length of the pack, checksum included.
    pub bytes: u64,
    /// The number of its entries.
    pub objects: u32,
}
