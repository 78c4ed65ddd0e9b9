//! The entries of one pack that belong to the set, in the order of the file.

use crate::store::{self, Pack, Position, Reader, Store};

/// From this share of a pack's entries on (one in so many), the order of all of them is used instead of a list of the
/// selected ones.
const DENSE: usize = 8;
/// The most entries, and bytes that they inflate to, whose ends are found by inflating them. Otherwise the order of
/// all entries of the pack tells, which costs more if it has to be computed first.
const FEW: usize = 1_000;
const LITTLE: u64 = 16 << 20;

/// An entry of a pack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) at: Position,
    /// The entry's place in the index of its pack.
    pub(super) local: u32,
    /// Where it starts in the file.
    pub(super) offset: u64,
    /// Where it ends.
    pub(super) end: u64,
}

/// The selected entries of one pack.
#[derive(Debug)]
pub(super) struct Selected {
    /// The pack's place in the store.
    pub(super) pack: usize,
    /// How many entries are selected.
    pub(super) count: usize,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// So many that the pack's own order, filtered, is the cheapest list.
    Dense,
    /// Sorted by offset.
    Sparse(Vec<Entry>),
}

impl Selected {
    /// Selects the entries at `positions`, all of the pack at `pack` in the store. The cost follows their number where
    /// the pack has a reverse index or they are few.
    pub(super) fn new(
        store: &Store,
        pack: usize,
        positions: &[Position],
        reader: &mut Reader,
    ) -> Result<Selected, store::Error> {
        let data = &store.packs()[pack];
        let entries = match positions.len() * DENSE > data.len() as usize {
            true => Entries::Dense,
            false => Entries::Sparse(sparse(store, data, positions, reader)?),
        };
        Ok(Selected {
            pack,
            count: positions.len(),
            entries,
        })
    }

    /// True if a good part of the pack is selected.
    pub(super) fn is_dense(&self) -> bool {
        matches!(self.entries, Entries::Dense)
    }

    /// Calls `each` for every selected entry, in the order of the file. `member` tells which belong to the set.
    pub(super) fn each<E: From<store::Error>>(
        &self,
        store: &Store,
        member: impl Fn(Position) -> bool,
        mut each: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let pack = &store.packs()[self.pack];
        match &self.entries {
            Entries::Sparse(entries) => entries.iter().try_for_each(|&entry| each(entry)),
            Entries::Dense => {
                let order = pack.by_offset();
                let data_end = pack.data_end()?;
                let mut next = order.first().map(|&local| pack.offset(local));
                for (rank, &local) in order.iter().enumerate() {
                    let offset = next.unwrap_or(data_end);
                    next = order.get(rank + 1).map(|&local| pack.offset(local));
                    let at = store.position(self.pack, local);
                    if member(at) {
                        let end = next.unwrap_or(data_end);
                        each(Entry {
                            at,
                            local,
                            offset,
                            end,
                        })?;
                    }
                }
                Ok(())
            }
        }
    }
}

fn sparse(
    store: &Store,
    pack: &Pack,
    positions: &[Position],
    reader: &mut Reader,
) -> Result<Vec<Entry>, store::Error> {
    let mut entries: Vec<Entry> = positions
        .iter()
        .map(|&at| {
            let (_, local) = store.pack_of(at);
            let offset = pack.offset(local);
            Entry {
                at,
                local,
                offset,
                end: offset,
            }
        })
        .collect();
    entries.sort_unstable_by_key(|entry| entry.offset);
    let mut inflated = 0u64;
    let mut inflate = entries.len() <= FEW && !pack.order_is_known();
    for entry in &mut entries {
        if inflate {
            let header = reader.entry(pack, entry.offset)?;
            inflated = inflated.saturating_add(header.decompressed_size);
            inflate = inflated <= LITTLE;
            if inflate {
                entry.end = reader.stream(pack, &header, &mut |_| Ok(()))?;
                continue;
            }
        }
        entry.end = pack.end(entry.local)?;
    }
    Ok(entries)
}
