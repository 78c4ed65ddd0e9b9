//! Finds entries by id: four bytes for each, and some room.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use gix_hash::oid;

const EMPTY: u32 = u32::MAX;
const FIRST_SIZE: usize = 1024;

/// A hash table of entry numbers; the ids themselves are kept elsewhere.
#[derive(Debug)]
pub(super) struct Ids {
    /// Ids can be chosen at will, to some degree. A secret start value makes that useless.
    seed: RandomState,
    /// A power of two of them.
    slots: Vec<u32>,
    used: usize,
}

impl Ids {
    pub(super) fn new() -> Ids {
        Ids {
            seed: RandomState::new(),
            slots: vec![EMPTY; FIRST_SIZE],
            used: 0,
        }
    }

    /// The entry that has this id. `id_of` tells the ids of those that were inserted.
    pub(super) fn find<'i>(&self, id: &oid, id_of: impl Fn(u32) -> &'i oid) -> Option<u32> {
        let entry = self.slots[self.slot(id, &id_of)];
        (entry != EMPTY).then_some(entry)
    }

    /// Inserts an entry, unless another one has the same id.
    pub(super) fn insert<'i>(&mut self, entry: u32, id_of: impl Fn(u32) -> &'i oid) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            let size = self.slots.len() * 2;
            let old = std::mem::replace(&mut self.slots, vec![EMPTY; size]);
            for entry in old.into_iter().filter(|entry| *entry != EMPTY) {
                let slot = self.slot(id_of(entry), &id_of);
                self.slots[slot] = entry;
            }
        }
        let slot = self.slot(id_of(entry), &id_of);
        if self.slots[slot] == EMPTY {
            self.slots[slot] = entry;
            self.used += 1;
        }
    }

    /// The slot that has the id, or the one where it belongs.
    fn slot<'i>(&self, id: &oid, id_of: &impl Fn(u32) -> &'i oid) -> usize {
        let mask = self.slots.len() - 1;
        let start = id.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
        let mut slot = self.seed.hash_one(start) as usize & mask;
        while self.slots[slot] != EMPTY && id_of(self.slots[slot]) != id {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use gix_hash::ObjectId;

    use super::*;

    #[test]
    fn what_was_inserted_is_found() {
        let id = |number: u32| {
            let mut id = ObjectId::null(gix_hash::Kind::Sha1);
            // Many ids start alike, and every tenth is there twice.
            let number = if number % 10 == 9 { number - 1 } else { number };
            id.as_mut_slice()[4..8].copy_from_slice(&(number % 7).to_be_bytes());
            id.as_mut_slice()[12..16].copy_from_slice(&number.to_be_bytes());
            id
        };
        let all: Vec<ObjectId> = (0..3000).map(id).collect();
        let id_of = |entry: u32| -> &oid { &all[entry as usize] };
        let mut ids = Ids::new();
        for entry in 0..2000 {
            ids.insert(entry, id_of);
        }
        for entry in 0..3000 {
            let first = if entry % 10 == 9 { entry - 1 } else { entry };
            assert_eq!(ids.find(id_of(entry), id_of), (entry < 2000).then_some(first));
        }
    }
}
