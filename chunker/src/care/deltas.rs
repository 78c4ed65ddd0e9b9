//! Chunks of earlier versions as differences from those that took their place.
//!
//! These are deltas of Git's packs: a chunk keeps its id, and everybody reads it as before. The newest version stays as it
//! is, because it is read most.

use std::collections::{BTreeMap, HashMap, HashSet};

use bstr::BString;
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked::{self, Difference, Pointer};
use ingot_engine::pack::create::{Creator, Encoder};
use ingot_engine::pack::delta::encode::Index;
use ingot_engine::pack::inflate::Level;
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Pack, Position, Reader, Store};
use rayon::prelude::*;

use crate::Error;
use crate::repo::{commit, flatten, history};
use crate::store::compresses;

/// So many commits are looked at, the newest ones.
const COMMITS: usize = 1000;
/// So many deltas are applied at most to read a chunk.
const MOST_LINKS: usize = 8;
/// Packs are written anew for deltas if these save one part in so many of them, and at least [`LEAST`] bytes.
const WORTH_IT: u64 = 20;
const LEAST: u64 = 64 * 1024;

/// For chunks of earlier versions, the chunks that took their place in the next one. Following them never leads back.
#[derive(Debug, Default)]
pub(super) struct Successors(HashMap<ObjectId, ObjectId>);

impl Successors {
    /// Looks through the history of the current branch.
    pub(super) fn find(
        repository: &Repository,
        store: &Store,
        progress: &dyn Progress,
    ) -> Result<Successors, Error> {
        let mut successors = Successors::default();
        let mut newer: BTreeMap<BString, (ObjectId, Pointer)> = BTreeMap::new();
        let mut cache = Cache::new(1 << 20);
        let mut last_tree = None;
        if !chunked::has_chunks(store) {
            return Ok(successors);
        }
        for entry in history::log(repository, None, COMMITS)? {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let tree = commit::tree_of(store, entry.id)?;
            if last_tree.replace(tree) == Some(tree) {
                continue;
            }
            for (path, side) in flatten(store, tree)? {
                if newer.get(&path).is_some_and(|(id, _)| *id == side.id) {
                    continue;
                }
                let Some(pointer) = chunked::read_pointer(store, &side.id, &mut cache)? else {
                    continue;
                };
                if let Some((_, next)) = newer.insert(path, (side.id, pointer)) {
                    // What cannot be read is the business of fsck.
                    if let Ok(difference) = Difference::find(store, &pointer, &next, &mut cache) {
                        difference
                            .new_chunks()
                            .filter_map(|chunk| Some((chunk.before?, chunk.id)))
                            .for_each(|(old, new)| successors.add(old, new));
                    }
                }
            }
        }
        Ok(successors)
    }

    fn add(&mut self, old: ObjectId, new: ObjectId) {
        let mut at = new;
        for _ in 0..MOST_LINKS {
            match self.0.get(&at) {
                // The chain would lead back.
                _ if at == old => return,
                Some(next) => at = *next,
                None => {
                    self.0.entry(old).or_insert(new);
                    return;
                }
            }
        }
    }

    /// What deltas would save in packs that may be written anew.
    pub(super) fn gain(&self, store: &Store, may_go: &dyn Fn(&Pack) -> bool) -> Result<Gain, Error> {
        let movable: HashSet<usize> = (0..store.packs().len())
            .filter(|number| may_go(&store.packs()[*number]))
            .collect();
        let place = |id: &ObjectId| {
            let at = store.find(id)?;
            movable.contains(&store.pack_number(at)).then_some(at)
        };
        let pairs: Vec<(Position, ObjectId, Position, ObjectId)> = self
            .0
            .iter()
            .filter_map(|(old, new)| Some((place(old)?, *old, place(new)?, *new)))
            .collect();
        let saved: Vec<Option<(u64, [usize; 2])>> = pairs
            .par_iter()
            .map_init(
                || (Cache::new(1 << 20), Reader::new()),
                |(cache, reader), (at, old, next, new)| {
                    let (pack, local) = store.pack_of(*at);
                    let entry = reader.entry(pack, pack.offset(local))?;
                    if entry.header.as_kind().is_none() {
                        return Ok(None); // it is a delta already
                    }
                    let stored = pack.end(local)? - pack.offset(local);
                    let delta = delta(store, cache, old, new, stored);
                    Ok(delta.map(|delta| {
                        let packs = [store.pack_number(*at), store.pack_number(*next)];
                        (stored.saturating_sub(delta.len() as u64), packs)
                    }))
                },
            )
            .collect::<Result<_, Error>>()?;
        let mut gain = Gain::default();
        let mut packs = HashSet::new();
        for (bytes, of) in saved.into_iter().flatten() {
            gain.saved += bytes;
            gain.chunks += 1;
            packs.extend(of);
        }
        let all: u64 = packs
            .iter()
            .filter_map(|number| store.packs()[*number].data_end().ok())
            .sum();
        match gain.saved >= LEAST && gain.saved >= all / WORTH_IT {
            true => {
                gain.packs = packs;
                Ok(gain)
            }
            false => Ok(Gain::default()),
        }
    }
}

/// What deltas save.
#[derive(Debug, Default)]
pub(super) struct Gain {
    /// Bytes.
    pub(super) saved: u64,
    /// Chunks that become deltas.
    pub(super) chunks: u64,
    /// The packs, by number, that have to be written anew for that.
    pub(super) packs: HashSet<usize>,
}

/// The delta that makes a chunk of its successor, if it takes less than half of what the chunk takes now.
fn delta(store: &Store, cache: &mut Cache, old: &ObjectId, new: &ObjectId, stored: u64) -> Option<Vec<u8>> {
    let (mut target, mut base) = (Vec::new(), Vec::new());
    let is_blob = |id, cache: &mut Cache, out: &mut Vec<u8>| {
        matches!(store.read_verified(id, cache, out), Ok(Some(Kind::Blob)))
    };
    if !is_blob(old, cache, &mut target) || !is_blob(new, cache, &mut base) {
        return None;
    }
    let most = usize::try_from(stored / 2).unwrap_or(usize::MAX);
    Index::new(&base).delta(&target, most)
}

/// Copies objects into a pack, with deltas where there are successors.
pub(super) struct Copier<'s> {
    store: &'s Store,
    successors: &'s Successors,
    encoder: Encoder,
    cache: Cache,
    bytes: Vec<u8>,
}

impl<'s> Copier<'s> {
    pub(super) fn new(store: &'s Store, successors: &'s Successors) -> Copier<'s> {
        Copier {
            store,
            successors,
            encoder: Encoder::new(store.format(), Level::DEFAULT),
            cache: Cache::new(4 << 20),
            bytes: Vec::new(),
        }
    }

    /// Copies the objects of `ids`; a successor that is among them, or in the pack already, comes before what is made of
    /// it.
    pub(super) fn copy(&mut self, ids: &[ObjectId], creator: &mut Creator) -> Result<(), Error> {
        let among: HashSet<&ObjectId> = ids.iter().collect();
        for id in ids {
            // From the end of the chain to its beginning.
            let mut chain = vec![*id];
            while let Some(next) = chain.last().and_then(|last| self.successors.0.get(last)) {
                if !among.contains(next) || creator.contains(next) {
                    break;
                }
                chain.push(*next);
            }
            for id in chain.iter().rev() {
                self.one(id, creator)?;
            }
        }
        Ok(())
    }

    fn one(&mut self, id: &ObjectId, creator: &mut Creator) -> Result<(), Error> {
        if creator.contains(id) {
            return Ok(());
        }
        let store = self.store;
        let Some(kind) = store.read_verified(id, &mut self.cache, &mut self.bytes)? else {
            return Ok(());
        };
        let whole = match compresses(&self.bytes) {
            true => self.encoder.encode_as(*id, kind, &self.bytes),
            false => self.encoder.store_as(*id, kind, &self.bytes),
        };
        let base = self.successors.0.get(id).filter(|base| creator.contains(base));
        if let Some(base) = base
            && let Some(delta) = delta(store, &mut self.cache, id, base, whole.held() as u64)
        {
            creator.add(&self.encoder.encode_delta(*id, kind, *base, &delta))?;
            return Ok(());
        }
        creator.add(&whole)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[number; 20])
    }

    #[test]
    fn chains_are_short_and_lead_nowhere_back() {
        let mut successors = Successors::default();
        successors.add(id(1), id(2));
        successors.add(id(2), id(1));
        successors.add(id(3), id(3));
        assert_eq!(successors.0.len(), 1);
        let mut long = Successors::default();
        for number in (0..50).rev() {
            long.add(id(number), id(number + 1));
        }
        for number in 0..50 {
            let mut links = 0;
            let mut at = id(number);
            while let Some(next) = long.0.get(&at) {
                at = *next;
                links += 1;
            }
            assert!(links <= MOST_LINKS, "{links}");
        }
        assert!(long.0.len() > 40, "{}", long.0.len());
    }
}
