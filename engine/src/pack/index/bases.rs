//! Objects that deltas are applied to, kept within a budget.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use gix_object::Kind;

use crate::object::tree_delta::Starts;

/// A whole object in memory.
#[derive(Debug, Clone)]
pub(super) struct Base {
    pub(super) kind: Kind,
    pub(super) bytes: Arc<Vec<u8>>,
    /// Where the entries of a tree start, unless it was made again.
    pub(super) starts: Option<Arc<Starts>>,
}

impl Base {
    /// The memory that it takes.
    fn size(&self) -> usize {
        self.bytes.capacity() + self.starts.as_ref().map_or(0, |starts| starts.bytes()) + OVERHEAD
    }
}

/// The objects most likely to be wanted as bases, by entry number.
///
/// What was not asked for since its last chance goes first when the budget is exceeded; it can be made again from the
/// pack file. An object that exceeds the budget alone is not kept.
#[derive(Debug)]
pub(super) struct Bases {
    budget: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    slots: HashMap<u32, Slot>,
    /// The order of eviction; may name entries that are gone.
    queue: VecDeque<u32>,
    used: usize,
}

#[derive(Debug)]
struct Slot {
    base: Base,
    wanted: bool,
}

/// What a slot costs beside its bytes.
const OVERHEAD: usize = 160;

impl Bases {
    pub(super) fn new(budget: usize) -> Bases {
        Bases {
            budget,
            kept: Mutex::default(),
        }
    }

    /// The object of an entry, if it is kept.
    pub(super) fn get(&self, entry: u32) -> Option<Base> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = kept.slots.get_mut(&entry)?;
        slot.wanted = true;
        Some(slot.base.clone())
    }

    /// Keeps an object as long as the budget allows.
    pub(super) fn insert(&self, entry: u32, base: Base) {
        let size = base.size();
        if size > self.budget {
            return;
        }
        // Freed outside the lock.
        let mut evicted = Vec::new();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        while kept.used + size > self.budget
            && let Some(candidate) = kept.queue.pop_front()
        {
            match kept.slots.get_mut(&candidate) {
                Some(slot) if slot.wanted => {
                    slot.wanted = false;
                    kept.queue.push_back(candidate);
                }
                Some(_) => evicted.extend(kept.take(candidate)),
                None => {}
            }
        }
        let slot = Slot { base, wanted: false };
        kept.used += size;
        match kept.slots.insert(entry, slot) {
            Some(previous) => kept.used -= previous.base.size(),
            None => kept.queue.push_back(entry),
        }
        if kept.queue.len() > 2 * kept.slots.len() + 64 {
            let slots = &kept.slots;
            let mut seen = std::collections::HashSet::new();
            kept.queue
                .retain(|entry| slots.contains_key(entry) && seen.insert(*entry));
        }
    }

    /// Lets go of an object that is not needed again.
    pub(super) fn remove(&self, entry: u32) {
        let slot = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.take(entry)
        };
        drop(slot);
    }
}

impl Kept {
    fn take(&mut self, entry: u32) -> Option<Slot> {
        let slot = self.slots.remove(&entry)?;
        self.used -= slot.base.size();
        Some(slot)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;

    fn base(size: usize) -> Base {
        Base {
            kind: Kind::Blob,
            bytes: Arc::new(vec![0; size]),
            starts: None,
        }
    }

    #[test]
    fn what_was_wanted_stays_longer() {
        let bases = Bases::new(3 * (1000 + OVERHEAD));
        for entry in 0..3 {
            bases.insert(entry, base(1000));
        }
        assert!(bases.get(0).is_some());
        bases.insert(3, base(1000));
        assert!(bases.get(0).is_some());
        assert!(bases.get(1).is_none());
        assert!(bases.get(2).is_some() && bases.get(3).is_some());
    }

    #[test]
    fn the_budget_holds_whatever_happens() {
        let bases = Bases::new(10_000);
        for round in 0..1000u32 {
            let entry = round * 7 % 50;
            bases.insert(entry, base((round as usize * 37) % 12_000));
            if round % 3 == 0 {
                bases.remove(round % 50);
            }
            bases.get(round % 11);
            let kept = bases.kept.lock().unwrap();
            let used: usize = kept.slots.values().map(|slot| slot.base.size()).sum();
            assert_eq!(used, kept.used);
            assert!(used <= 10_000);
            assert!(kept.queue.len() <= 2 * kept.slots.len() + 64);
            assert!(kept.slots.keys().all(|entry| kept.queue.contains(entry)));
        }
    }

    #[test]
    fn too_large_an_object_pushes_nothing_out() {
        let bases = Bases::new(5_000);
        bases.insert(1, base(1000));
        bases.insert(2, base(5_000));
        assert!(bases.get(1).is_some());
        assert!(bases.get(2).is_none());
    }
}
