//! The order of a pack's entries by offset, from a `.rev` file or by sorting.

use super::index::Index;
use crate::mapped::Mapped;

const MAGIC: &[u8] = b"RIDX";
const HEADER: usize = 12;

/// A mapped reverse index whose layout fits the pack's index. Its content is checked where it is used.
#[derive(Debug)]
pub(crate) struct Reverse {
    map: Mapped,
}

impl Reverse {
    /// The `.rev` file beside an index; `None` if it is absent or belongs to something else.
    pub(crate) fn open(index: &Index, format: gix_hash::Kind) -> Option<Reverse> {
        let map = Mapped::open(&index.path().with_extension("rev")).ok()?;
        Reverse::new(map, index, format)
    }

    fn new(map: Mapped, index: &Index, format: gix_hash::Kind) -> Option<Reverse> {
        let entries = HEADER.checked_add((index.len() as usize).checked_mul(4)?)?;
        let fits = map.len() == entries.checked_add(2 * format.len_in_bytes())?
            && map.starts_with(MAGIC)
            && map[4..8] == 1u32.to_be_bytes()
            && map[8..12] == hash_number(format)?.to_be_bytes()
            && map[entries..].starts_with(index.pack_checksum());
        fits.then_some(Reverse { map })
    }

    /// The entry at place `rank` of the order; `None` if the file holds a number that is no entry.
    pub(crate) fn local(&self, rank: u32, index: &Index) -> Option<u32> {
        let bytes = self.map.get(HEADER + 4 * rank as usize..)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes)).filter(|&local| local < index.len())
    }
}

/// The number that Git's file formats use for a hash function.
pub(crate) fn hash_number(format: gix_hash::Kind) -> Option<u32> {
    match format {
        gix_hash::Kind::Sha1 => Some(1),
        gix_hash::Kind::Sha256 => Some(2),
        _ => None,
    }
}

/// All entries in pack order.
pub(crate) fn by_offset(index: &Index, reverse: Option<&Reverse>) -> Vec<u32> {
    if let Some(order) = reverse.and_then(|reverse| from_reverse(index, reverse)) {
        return order;
    }
    let mut order: Vec<u32> = (0..index.len()).collect();
    order.sort_unstable_by_key(|&local| (index.offset(local), local));
    order
}

/// The order in a reverse index, if its offsets rise from entry to entry: then no entry can be there twice.
fn from_reverse(index: &Index, reverse: &Reverse) -> Option<Vec<u32>> {
    let mut order = Vec::with_capacity(index.len() as usize);
    let mut last = None;
    for rank in 0..index.len() {
        let local = reverse.local(rank, index)?;
        let offset = index.offset(local);
        if last.is_some_and(|last| last >= offset) {
            return None;
        }
        last = Some(offset);
        order.push(local);
    }
    Some(order)
}
