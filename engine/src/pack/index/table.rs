//! What is remembered about each entry of the pack: 37 bytes with SHA-1, 49 with SHA-256.

use std::sync::atomic::AtomicU32;

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::batch::Content;
use super::ids::Ids;

/// In place of a base: the entry is a whole object.
pub(super) const WHOLE: u32 = u32::MAX;
/// In place of a base: the entry is a delta whose base is known by its id only.
pub(super) const BY_ID: u32 = u32::MAX - 1;
/// More entries cannot be numbered.
pub(super) const MOST_ENTRIES: u32 = u32::MAX - 2;

/// What the stream itself tells, in its order. Entries are numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Where each entry starts, ascending.
    pub(super) offsets: Vec<u64>,
    /// The CRC-32 of each entry.
    pub(super) crcs: Vec<u32>,
    /// The number of the base, [`WHOLE`], or [`BY_ID`] until the base is found.
    pub(super) bases: Vec<AtomicU32>,
    /// Where the last entry ends, once it is known.
    pub(super) end: Option<u64>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    pub(super) fn reserve(&mut self, count: usize) {
        self.offsets.reserve(count);
        self.crcs.reserve(count);
        self.bases.reserve(count);
    }

    pub(super) fn push(&mut self, offset: u64, crc: u32, base: u32) {
        self.offsets.push(offset);
        self.crcs.push(crc);
        self.bases.push(AtomicU32::new(base));
    }

    /// Where an entry starts and ends. The last one's end is out of reach while more may come.
    pub(super) fn range(&self, entry: u32) -> std::ops::Range<u64> {
        let entry = entry as usize;
        let next = self.offsets.get(entry + 1).copied();
        self.offsets[entry]..next.or(self.end).unwrap_or(u64::MAX)
    }

    /// The entry that starts at `offset`.
    pub(super) fn at(&self, offset: u64) -> Option<u32> {
        self.offsets.binary_search(&offset).ok().map(|entry| entry as u32)
    }
}

/// A reference delta that waits for an object of this id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    pub(super) base: ObjectId,
    pub(super) entry: u32,
}

/// What is found out about entries, in any order.
#[derive(Debug)]
pub(super) struct Resolved {
    id_length: usize,
    ids: Vec<u8>,
    /// [`Kind`] as [`code`] says, or 0.
    kinds: Vec<u8>,
    count: usize,
    /// Only for packs with reference deltas.
    index: Option<Ids>,
    /// Offset deltas that have to wait until the stream has ended: (base, entry).
    pub(super) pending: Vec<(u32, u32)>,
    /// Reference deltas that have to wait.
    pub(super) waiting: Vec<Waiting>,
    /// Blobs that were never held.
    pub(super) streamed: Vec<u32>,
}

impl Resolved {
    pub(super) fn new(format: gix_hash::Kind) -> Resolved {
        Resolved {
            id_length: format.len_in_bytes(),
            ids: Vec::new(),
            kinds: Vec::new(),
            count: 0,
            index: None,
            pending: Vec::new(),
            waiting: Vec::new(),
            streamed: Vec::new(),
        }
    }

    /// Notes what an entry is.
    pub(super) fn add(&mut self, entry: u32, kind: Kind, id: &oid) {
        let at = entry as usize;
        if at >= self.kinds.len() {
            self.kinds.resize(at + 1, 0);
            self.ids.resize((at + 1) * self.id_length, 0);
        }
        self.kinds[at] = code(kind);
        self.ids[at * self.id_length..][..self.id_length].copy_from_slice(id.as_bytes());
        self.count += 1;
        if let Some(index) = &mut self.index {
            index.insert(entry, |entry| id_at(&self.ids, self.id_length, entry));
        }
    }

    /// From now on entries can be found by id.
    pub(super) fn index_ids(&mut self) {
        if self.index.is_some() {
            return;
        }
        let mut index = Ids::new();
        for entry in (0..self.kinds.len() as u32).filter(|entry| self.kind(*entry).is_some()) {
            index.insert(entry, |entry| self.id(entry));
        }
        self.index = Some(index);
    }

    /// The entry of this id, if it is resolved. [`index_ids`](Self::index_ids) comes first.
    pub(super) fn find(&self, id: &oid) -> Option<u32> {
        self.index.as_ref()?.find(id, |entry| self.id(entry))
    }

    /// Notes that a delta has to wait until the stream has ended.
    pub(super) fn postpone(&mut self, content: Content, entry: u32) {
        match content {
            Content::DeltaToEntry(base) => self.pending.push((base, entry)),
            Content::DeltaToId(base) => self.waiting.push(Waiting { base, entry }),
            Content::Whole(_) => {}
        }
    }

    /// How many entries are resolved.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn kind(&self, entry: u32) -> Option<Kind> {
        self.kinds.get(entry as usize).copied().and_then(kind)
    }

    /// The id of a resolved entry.
    pub(super) fn id(&self, entry: u32) -> &oid {
        id_at(&self.ids, self.id_length, entry)
    }
}

fn id_at(ids: &[u8], length: usize, entry: u32) -> &oid {
    let at = entry as usize * length;
    oid::from_bytes_unchecked(&ids[at..at + length])
}

/// A kind in one byte, as pack entries have it.
pub(super) fn code(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

/// The reverse of [`code`].
pub(super) fn kind(code: u8) -> Option<Kind> {
    Some(match code {
        1 => Kind::Commit,
        2 => Kind::Tree,
        3 => Kind::Blob,
        4 => Kind::Tag,
        _ => return None,
    })
}
