//! What one thread keeps between reads: decoded delta bases up to a number of bytes, and its reader.

use std::collections::HashMap;
use std::sync::Arc;

use gix_object::Kind;

use super::Reader;

/// An entry costs this much beyond its bytes.
const OVERHEAD: usize = 160;

/// Which entry: the pack's serial number and the offset.
type Key = (u64, u64);

/// Recently used delta bases within a budget of bytes, with the state for reading packs. One per thread.
///
/// It may be used with several stores, and with a store opened again.
#[derive(Debug)]
pub struct Cache {
    pub(super) reader: Reader,
    pub(super) scratch: Vec<u8>,
    /// How many reads of other copies, in place of damaged ones, are nested at the moment.
    pub(super) replacing: u32,
    bases: Bases,
}

impl Cache {
    /// Keeps at most `bytes` of bases; 0 keeps none. Memory is taken as it fills.
    pub fn new(bytes: usize) -> Cache {
        Cache {
            reader: Reader::new(),
            scratch: Vec::new(),
            replacing: 0,
            bases: Bases {
                budget: bytes,
                ..Bases::default()
            },
        }
    }

    /// The reader that this cache owns, for entries that are looked at without the cache.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    pub(super) fn get(&mut self, serial: u64, offset: u64) -> Option<(Kind, Arc<Vec<u8>>)> {
        self.bases.get((serial, offset))
    }

    pub(super) fn put(&mut self, serial: u64, offset: u64, kind: Kind, bytes: &Arc<Vec<u8>>) {
        self.bases.put((serial, offset), kind, bytes);
    }
}

/// A map with its entries linked from the most to the least recently used.
#[derive(Debug)]
struct Bases {
    budget: usize,
    used: usize,
    places: HashMap<Key, usize>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    kind: Kind,
    bytes: Arc<Vec<u8>>,
    newer: usize,
    older: usize,
}

/// No slot.
const NONE: usize = usize::MAX;

impl Default for Bases {
    fn default() -> Self {
        Bases {
            budget: 0,
            used: 0,
            places: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }
}

fn cost(bytes: &Vec<u8>) -> usize {
    bytes.capacity().saturating_add(OVERHEAD)
}

impl Bases {
    fn get(&mut self, key: Key) -> Option<(Kind, Arc<Vec<u8>>)> {
        let slot = *self.places.get(&key)?;
        self.unlink(slot);
        self.link_newest(slot);
        let slot = &self.slots[slot];
        Some((slot.kind, Arc::clone(&slot.bytes)))
    }

    fn put(&mut self, key: Key, kind: Kind, bytes: &Arc<Vec<u8>>) {
        let cost = cost(bytes);
        // One object must not push out everything else.
        if cost > self.budget / 2 || self.places.contains_key(&key) {
            return;
        }
        while self.used > self.budget - cost {
            self.evict();
        }
        self.used += cost;
        let slot = Slot {
            key,
            kind,
            bytes: Arc::clone(bytes),
            newer: NONE,
            older: NONE,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        self.places.insert(key, place);
        self.link_newest(place);
    }

    fn evict(&mut self) {
        let place = self.oldest;
        if place == NONE {
            return;
        }
        self.unlink(place);
        let slot = &mut self.slots[place];
        self.used -= cost(&slot.bytes);
        slot.bytes = Arc::default();
        self.places.remove(&slot.key);
        self.free.push(place);
    }

    fn unlink(&mut self, place: usize) {
        let (newer, older) = (self.slots[place].newer, self.slots[place].older);
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older].newer = newer,
        }
    }

    fn link_newest(&mut self, place: usize) {
        self.slots[place].newer = NONE;
        self.slots[place].older = self.newest;
        match self.newest {
            NONE => self.oldest = place,
            newest => self.slots[newest].newer = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(size: usize) -> Arc<Vec<u8>> {
        Arc::new(vec![7; size])
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::new(3 * (1000 + OVERHEAD));
        for offset in 0..3 {
            cache.put(0, offset, Kind::Blob, &object(1000));
        }
        assert!(cache.get(0, 0).is_some());
        cache.put(0, 3, Kind::Tree, &object(1000));
        assert!(cache.get(0, 1).is_none());
        for offset in [0, 2, 3] {
            assert!(cache.get(0, offset).is_some());
        }
        assert_eq!(cache.get(0, 3).map(|(kind, _)| kind), Some(Kind::Tree));
    }

    #[test]
    fn the_budget_holds_and_memory_is_used_again() {
        let budget = 50_000;
        let mut cache = Cache::new(budget);
        for offset in 0..1000 {
            cache.put(1, offset, Kind::Blob, &object((offset as usize * 37) % 2000));
            assert!(cache.bases.used <= budget);
        }
        let counted: usize = cache
            .bases
            .places
            .values()
            .map(|&slot| cost(&cache.bases.slots[slot].bytes))
            .sum();
        assert_eq!(counted, cache.bases.used);
        assert!(cache.bases.slots.len() < 400);
    }

    #[test]
    fn without_budget_nothing_is_kept() {
        let mut cache = Cache::new(0);
        cache.put(0, 12, Kind::Blob, &object(0));
        assert!(cache.get(0, 12).is_none());
    }
}
