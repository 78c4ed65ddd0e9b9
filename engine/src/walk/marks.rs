//! What a walk over many objects knows about each of them. Shared by all its threads.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::objects::{Fact, Objects};
use crate::store::{Position, Store};

/// Found where a commit belongs.
pub(super) const COMMIT: u8 = 1;
/// Found where a tree belongs.
pub(super) const TREE: u8 = 1 << 1;
/// Found where a blob belongs.
pub(super) const BLOB: u8 = 1 << 2;
/// Found where a tag belongs.
pub(super) const TAG: u8 = 1 << 3;
/// The receiver has it.
pub(super) const KNOWN: u8 = 1 << 4;
/// A tree whose entries are marked, or will be before the walk ends, whatever else happens.
pub(super) const OPEN: u8 = 1 << 5;

const KINDS: u8 = COMMIT | TREE | BLOB | TAG;
/// Loose objects are divided by their first byte, so that threads seldom wait for each other.
const SHARDS: usize = 64;

/// The bit for a kind.
pub(super) fn bit(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => COMMIT,
        Kind::Tree => TREE,
        Kind::Blob => BLOB,
        Kind::Tag => TAG,
    }
}

/// Ids are hashes already: their first bytes do.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*first);
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Mixes a number, so that neighbours do not land side by side.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(32) ^ number;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // An odd multiplier spreads neighbouring numbers over all bits.
        let product = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product ^ product >> 32
    }
}

/// A map by id.
pub(super) type IdMap<T> = HashMap<ObjectId, T, BuildHasherDefault<IdHasher>>;
/// A set of ids.
pub(super) type IdSet = std::collections::HashSet<ObjectId, BuildHasherDefault<IdHasher>>;

#[derive(Debug, Clone, Copy)]
struct LooseMark {
    bits: u8,
    name_hash: u32,
}

/// What [`Marks::mark`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marked {
    /// The first reference of this kind to a packed object.
    Packed(Position),
    /// The first reference of this kind to a loose object.
    Loose,
    /// The object was marked before, or the receiver has it.
    Seen,
    /// The store does not have it.
    Missing,
}

/// A few bits and the name hash of every object that the walk has seen: 5 bytes for every packed object of the store.
pub(super) struct Marks<'s> {
    store: &'s Store,
    bits: Vec<AtomicU8>,
    /// The smallest of the hashes that an object was found with, which does not depend on the order of finding.
    name_hashes: Vec<AtomicU32>,
    loose: Vec<Mutex<IdMap<LooseMark>>>,
}

impl<'s> Marks<'s> {
    pub(super) fn new(store: &'s Store) -> Marks<'s> {
        store.prepare_find();
        let count = store.packed_len() as usize;
        Marks {
            store,
            bits: std::iter::repeat_with(AtomicU8::default).take(count).collect(),
            name_hashes: std::iter::repeat_with(|| AtomicU32::new(u32::MAX))
                .take(count)
                .collect(),
            loose: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    pub(super) fn store(&self) -> &'s Store {
        self.store
    }

    /// Sets `bits`, which hold exactly one kind, on an object that was found under a name.
    #[inline]
    pub(super) fn mark(&self, id: &oid, bits: u8, name_hash: u32) -> Marked {
        match self.store.find(id) {
            Some(at) => match self.mark_packed(at, bits, name_hash) {
                true => Marked::Packed(at),
                false => Marked::Seen,
            },
            None => self.mark_loose(id, bits, name_hash),
        }
    }

    /// Marks several objects, of each an id, bits that hold exactly one kind, and the hash of a name; hands what was done
    /// to `each`, in their order. Memory is asked for all of them at once, see [`Store::find_all`].
    pub(super) fn mark_all(
        &self,
        ids: &[ObjectId],
        how: &[(u8, u32)],
        found: &mut Vec<Option<Position>>,
        mut each: impl FnMut(usize, Marked),
    ) {
        found.clear();
        self.store.find_all(ids, |at| found.push(at));
        let mut touched = 0;
        for at in found.iter().flatten() {
            touched ^= self.bits[at.0 as usize].load(Ordering::Relaxed);
            touched ^= self.name_hashes[at.0 as usize].load(Ordering::Relaxed) as u8;
        }
        std::hint::black_box(touched);
        for (place, (id, &(bits, name_hash))) in ids.iter().zip(how).enumerate() {
            let marked = match found[place] {
                Some(at) if self.mark_packed(at, bits, name_hash) => Marked::Packed(at),
                Some(_) => Marked::Seen,
                None => self.mark_loose(id, bits, name_hash),
            };
            each(place, marked);
        }
    }

    /// [`Marks::mark`] for a canonical position: true if that was the first reference of this kind.
    #[inline]
    pub(super) fn mark_packed(&self, at: Position, bits: u8, name_hash: u32) -> bool {
        let at = at.0 as usize;
        let before = self.bits[at].load(Ordering::Relaxed);
        if before & KNOWN != 0 {
            return false;
        }
        // Reading is much cheaper than the exclusive access that changing needs.
        if name_hash < self.name_hashes[at].load(Ordering::Relaxed) {
            self.name_hashes[at].fetch_min(name_hash, Ordering::Relaxed);
        }
        before & bits != bits && self.bits[at].fetch_or(bits, Ordering::Relaxed) & bits & KINDS == 0
    }

    fn mark_loose(&self, id: &oid, bits: u8, name_hash: u32) -> Marked {
        let mut shard = self.shard(id);
        if let Some(mark) = shard.get_mut(id) {
            if mark.bits & KNOWN != 0 {
                return Marked::Seen;
            }
            let first = mark.bits & bits & KINDS == 0;
            mark.bits |= bits;
            mark.name_hash = mark.name_hash.min(name_hash);
            return if first { Marked::Loose } else { Marked::Seen };
        }
        if !self.store.contains_loose(id) {
            return Marked::Missing;
        }
        shard.insert(id.to_owned(), LooseMark { bits, name_hash });
        Marked::Loose
    }

    /// Notes that a tree's entries will all be marked. Called before a level starts, so that what a level does never
    /// depends on the order within it.
    pub(super) fn open_packed(&self, at: Position) {
        self.bits[at.0 as usize].fetch_or(OPEN, Ordering::Relaxed);
    }

    /// True if all entries of the tree at this canonical position are marked or will be.
    #[inline]
    pub(super) fn is_open(&self, at: Position) -> bool {
        let bits = self.bits[at.0 as usize].load(Ordering::Relaxed);
        bits & (TREE | OPEN) == TREE | OPEN
    }

    /// The name hash of a packed object that has been marked.
    pub(super) fn name_hash(&self, at: Position) -> u32 {
        self.name_hashes[at.0 as usize].load(Ordering::Relaxed)
    }

    /// The name hash of a loose object that has been marked.
    pub(super) fn name_hash_of_loose(&self, id: &oid) -> u32 {
        self.shard(id).get(id).map_or(0, |mark| mark.name_hash)
    }

    fn shard(&self, id: &oid) -> MutexGuard<'_, IdMap<LooseMark>> {
        let shard = &self.loose[usize::from(id.as_bytes()[1]) % SHARDS];
        match shard.lock() {
            Ok(guard) => guard,
            // A thread that panicked has ended the walk anyway.
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Everything marked that the receiver does not have.
    pub(super) fn into_objects(self) -> Objects {
        let packed =
            self.bits
                .iter()
                .zip(&self.name_hashes)
                .enumerate()
                .filter_map(|(at, (bits, name_hash))| {
                    let fact = fact(bits.load(Ordering::Relaxed), name_hash.load(Ordering::Relaxed))?;
                    Some((Position(at as u32), fact))
                });
        let mut loose: Vec<(ObjectId, Fact)> = Vec::new();
        for shard in &self.loose {
            let shard = match shard.lock() {
                Ok(guard) => guard,
                Err(poisoned) => poisoned.into_inner(),
            };
            loose.extend(
                shard
                    .iter()
                    .filter_map(|(id, mark)| Some((*id, fact(mark.bits, mark.name_hash)?))),
            );
        }
        loose.sort_unstable_by_key(|(id, _)| *id);
        Objects::new(self.store, packed, loose.into_iter())
    }
}

/// What is to be sent of an object with these bits. Kinds that were read win over kinds that a tree entry claims.
fn fact(bits: u8, name_hash: u32) -> Option<Fact> {
    let kind = match bits {
        _ if bits & KNOWN != 0 => return None,
        _ if bits & COMMIT != 0 => Kind::Commit,
        _ if bits & TREE != 0 => Kind::Tree,
        _ if bits & TAG != 0 => Kind::Tag,
        _ if bits & BLOB != 0 => Kind::Blob,
        _ => return None,
    };
    Some(Fact { kind, name_hash })
}
