//! Finds objects in many packs with one look instead of one for each pack.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gix_hash::oid;

use super::Pack;

/// So many packs are searched one by one.
const FEW: usize = 4;
/// A slot without object. No position is that large, because their number fits 32 bits.
const EMPTY: u32 = u32::MAX;
/// Ids are spread evenly, so objects are found close to their slot. Ids made to collide end the use of the table.
const FARTHEST: usize = 128;

/// A table of all positions by id, made once the packs have been searched often enough that making it costs no more
/// than what was spent already. A command that asks for a few objects never pays for it.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    searches: AtomicU64,
    table: OnceLock<Option<Table>>,
}

#[derive(Debug)]
struct Table {
    slots: Vec<u32>,
    /// How far the first 64 bits of an id are shifted to be its slot.
    shift: u32,
}

impl Lookup {
    /// The first position that has the object. `starts` has the first position of each pack, then their number.
    pub(super) fn find(&self, packs: &[Arc<Pack>], starts: &[u32], id: &oid) -> Option<u32> {
        if packs.len() <= FEW {
            return one_by_one(packs, starts, id);
        }
        let total = u64::from(*starts.last()?);
        let table = match self.table.get() {
            Some(table) => table,
            None if self.searches.fetch_add(packs.len() as u64, Ordering::Relaxed) < total => {
                return one_by_one(packs, starts, id);
            }
            None => self.table.get_or_init(|| Table::new(packs, starts)),
        };
        match table {
            Some(table) => table.find(packs, starts, id),
            None => one_by_one(packs, starts, id),
        }
    }
}

/// Prepares for so many lookups that every object may be asked for.
pub(super) fn prepare(packs: &[Arc<Pack>]) {
    if packs.len() <= FEW {
        packs.iter().for_each(|pack| pack.prepare_find());
    }
}

fn one_by_one(packs: &[Arc<Pack>], starts: &[u32], id: &oid) -> Option<u32> {
    packs
        .iter()
        .zip(starts)
        .find_map(|(pack, start)| Some(start + pack.find(id)?))
}

impl Table {
    /// `None` if too many ids want the same slots, or there is no memory.
    fn new(packs: &[Arc<Pack>], starts: &[u32]) -> Option<Table> {
        let total = *starts.last()? as usize;
        let size = total.checked_add(total / 2)?.max(2).checked_next_power_of_two()?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(size).ok()?;
        slots.resize(size, EMPTY);
        let mut table = Table {
            slots,
            shift: 64 - size.trailing_zeros(),
        };
        for (pack, &start) in packs.iter().zip(starts) {
            for local in 0..pack.len() {
                let id = pack.id(local);
                let (slot, found) = table.probe(packs, starts, id)?;
                if !found {
                    table.slots[slot] = start + local;
                }
            }
        }
        Some(table)
    }

    fn find(&self, packs: &[Arc<Pack>], starts: &[u32], id: &oid) -> Option<u32> {
        match self.probe(packs, starts, id) {
            Some((slot, true)) => Some(self.slots[slot]),
            _ => None,
        }
    }

    /// The slot that has the object, or else the one where it would go. `None` if neither is near.
    fn probe(&self, packs: &[Arc<Pack>], starts: &[u32], id: &oid) -> Option<(usize, bool)> {
        let prefix = u64::from_be_bytes(*id.as_bytes().first_chunk()?);
        let first = (prefix >> self.shift) as usize;
        for slot in (first..first + FARTHEST).map(|slot| slot & (self.slots.len() - 1)) {
            let at = self.slots[slot];
            if at == EMPTY {
                return Some((slot, false));
            }
            let number = starts.partition_point(|&start| start <= at) - 1;
            if packs[number].id(at - starts[number]) == id {
                return Some((slot, true));
            }
        }
        None
    }
}
