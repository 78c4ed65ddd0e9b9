//! Pack indexes, versions 1 and 2, looked up in place.
//!
//! Opening one costs the same whatever its size: the layout is checked against the length of the file, every other
//! number when it is used.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gix_hash::{ObjectId, oid};

use super::Error;
use crate::mapped::Mapped;

const MAGIC: &[u8] = b"\xfftOc";
const FAN_BYTES: usize = 256 * 4;
const HIGH_BIT: u32 = 1 << 31;
/// How often a lookup guesses by the value of the id before it bisects.
const GUESSES: usize = 4;

/// So many lookups ask for memory at once.
const TOGETHER: usize = 32;

/// Where the tables of an index lie in the file.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// The first id, and the distance from one to the next.
    ids: usize,
    id_step: usize,
    /// The CRC table; version 2 only.
    crcs: Option<usize>,
    /// The first 32-bit offset, and the distance from one to the next.
    offsets: usize,
    offset_step: usize,
    /// The 64-bit offsets, and how many there are.
    large: usize,
    large_count: usize,
    /// The two checksums at the end.
    trailer: usize,
}

/// A mapped pack index.
#[derive(Debug)]
pub(crate) struct Index {
    map: Mapped,
    path: PathBuf,
    fan: Box<[u32; 256]>,
    layout: Layout,
    id_length: usize,
    fine: OnceLock<Option<Fine>>,
}

/// A fan-out table so fine that a few entries share a slot. A byte for every entry.
#[derive(Debug)]
struct Fine {
    /// The number of entries before each slot, then of all.
    before: Vec<u32>,
    /// How far the first 64 bits of an id are shifted to be its slot.
    shift: u32,
}

impl Index {
    pub(crate) fn open(path: PathBuf, format: gix_hash::Kind) -> Result<Index, Error> {
        match Mapped::open(&path) {
            Ok(map) => Index::new(map, path, format),
            Err(source) => Err(Error::Io {
                action: "read the pack index",
                path,
                source,
            }),
        }
    }

    fn new(map: Mapped, path: PathBuf, format: gix_hash::Kind) -> Result<Index, Error> {
        match parse(&map, format.len_in_bytes()) {
            Ok((fan, layout)) => Ok(Index {
                map,
                path,
                fan,
                layout,
                id_length: format.len_in_bytes(),
                fine: OnceLock::new(),
            }),
            Err(reason) => Err(Error::Index { path, reason }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> u32 {
        self.fan[255]
    }

    /// The checksum of the pack that this index belongs to.
    pub(crate) fn pack_checksum(&self) -> &[u8] {
        &self.map[self.layout.trailer..][..self.id_length]
    }

    /// The id of entry `local`, which must be below [`Index::len`].
    pub(crate) fn id(&self, local: u32) -> &oid {
        oid::from_bytes_unchecked(self.id_bytes(local))
    }

    #[inline]
    fn id_bytes(&self, local: u32) -> &[u8] {
        &self.map[self.layout.ids + self.layout.id_step * local as usize..][..self.id_length]
    }

    /// Where entry `local` starts in the pack. A 64-bit offset that the file does not have is `u64::MAX`, which lies
    /// outside of every pack.
    #[inline]
    pub(crate) fn offset(&self, local: u32) -> u64 {
        let short = number32(
            &self.map,
            self.layout.offsets + self.layout.offset_step * local as usize,
        );
        if short & HIGH_BIT == 0 || self.layout.crcs.is_none() {
            return short.into();
        }
        let large = (short ^ HIGH_BIT) as usize;
        if large >= self.layout.large_count {
            return u64::MAX;
        }
        let at = self.layout.large + 8 * large;
        u64::from(number32(&self.map, at)) << 32 | u64::from(number32(&self.map, at + 4))
    }

    /// The CRC-32 of the bytes of entry `local` in the pack. Version 1 has none.
    pub(crate) fn crc(&self, local: u32) -> Option<u32> {
        Some(number32(&self.map, self.layout.crcs? + 4 * local as usize))
    }

    /// Makes later calls of [`Index::find`] faster. Reads all ids once, so it pays when a good part of them will be looked
    /// up.
    pub(crate) fn prepare(&self) {
        self.fine.get_or_init(|| {
            let count = self.len();
            let bits = (count / 4).max(1).ilog2() + 1;
            let shift = u64::BITS - bits;
            let mut before = vec![0u32; (1 << bits) + 1];
            let mut last = 0;
            for local in 0..count {
                let slot = (prefix(self.id_bytes(local)) >> shift) as usize;
                if slot < last {
                    // The order is damaged.
                    return None;
                }
                before[last + 1..=slot].fill(local);
                last = slot;
            }
            before[last + 1..].fill(count);
            Some(Fine { before, shift })
        });
    }

    /// The entry of an object.
    #[inline]
    pub(crate) fn find(&self, id: &oid) -> Option<u32> {
        let id = id.as_bytes();
        if id.len() != self.id_length {
            return None;
        }
        if let Some(Some(fine)) = self.fine.get() {
            let slot = (prefix(id) >> fine.shift) as usize;
            let (low, high) = (fine.before[slot], fine.before[slot + 1]);
            return self.bisect(id, low, high);
        }
        self.search(id)
    }

    /// Hands the entry of each of several objects to `each`, in their order. After [`Index::prepare`], memory is asked for
    /// all of them at once instead of one after the other, which is most of what a lookup waits for.
    pub(crate) fn find_all(&self, ids: &[ObjectId], mut each: impl FnMut(Option<u32>)) {
        for group in ids.chunks(TOGETHER) {
            if let Some(Some(fine)) = self.fine.get() {
                // The number of entries before each slot, then the first id of each slot. What follows lies near.
                let mut lows = [0u32; TOGETHER];
                for (low, id) in lows.iter_mut().zip(group) {
                    *low = fine.before[(prefix(id.as_bytes()) >> fine.shift) as usize];
                }
                let mut touched = 0;
                for &low in lows.iter().filter(|&&low| low < self.len()) {
                    touched ^= self.id_bytes(low)[0];
                }
                std::hint::black_box(touched);
            }
            group.iter().for_each(|id| each(self.find(id)));
        }
    }

    /// The entry of an object, known to be one of a few.
    #[inline]
    fn bisect(&self, id: &[u8], mut low: u32, mut high: u32) -> Option<u32> {
        let wanted = prefix(id);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = self.id_bytes(middle);
            match prefix(found).cmp(&wanted).then_with(|| found.cmp(id)) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The entry of an object, found without preparation.
    fn search(&self, id: &[u8]) -> Option<u32> {
        let first = usize::from(id[0]);
        let mut low = if first == 0 { 0 } else { self.fan[first - 1] };
        let mut high = self.fan[first];
        let wanted = prefix(id);
        // Ids are spread evenly, so the place of one is nearly proportional to its value. A few such guesses touch less
        // memory than bisecting; bisecting afterwards bounds the cost whatever the ids are.
        let (mut floor, mut ceiling) = ((first as u64) << 56, (first as u64) << 56 | u64::MAX >> 8);
        let mut guesses = GUESSES;
        while low < high {
            let middle = if guesses > 0 && high - low > 8 {
                guesses -= 1;
                let part = u128::from(wanted.saturating_sub(floor)) * u128::from(high - low);
                let guess = (part / (u128::from(ceiling.saturating_sub(floor)) + 1)) as u32;
                low + guess.min(high - low - 1)
            } else {
                low + (high - low) / 2
            };
            let found = self.id_bytes(middle);
            let value = prefix(found);
            match value.cmp(&wanted).then_with(|| found.cmp(id)) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => {
                    low = middle + 1;
                    floor = floor.max(value);
                }
                std::cmp::Ordering::Greater => {
                    high = middle;
                    ceiling = ceiling.min(value);
                }
            }
        }
        None
    }
}

/// The first eight bytes of an id as a number that sorts as the id does.
#[inline]
fn prefix(id: &[u8]) -> u64 {
    u64::from_be_bytes(*id.first_chunk().expect("ids have 20 or 32 bytes"))
}

/// The big-endian number at `at`, which the caller has checked.
#[inline]
fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*bytes[at..].first_chunk().expect("tables lie within the file"))
}

/// Checks the fan-out table and that the tables fit the file exactly.
fn parse(bytes: &[u8], id_length: usize) -> Result<(Box<[u32; 256]>, Layout), &'static str> {
    let version_2 = bytes.starts_with(MAGIC);
    let fan_start = if version_2 { 8 } else { 0 };
    if bytes.len() < fan_start + FAN_BYTES + 2 * id_length {
        return Err("it is too short");
    }
    if version_2 && number32(bytes, 4) != 2 {
        return Err("its version is unknown");
    }
    let mut fan = Box::new([0; 256]);
    for (slot, value) in fan.iter_mut().enumerate() {
        *value = number32(bytes, fan_start + 4 * slot);
    }
    if !fan.is_sorted() {
        return Err("its fan-out table does not grow");
    }
    let count = fan[255] as usize;
    let tables = fan_start + FAN_BYTES;
    let trailer = bytes.len() - 2 * id_length;
    let table = |size: usize| {
        count
            .checked_mul(size)
            .ok_or("its tables exceed the address space")
    };
    let wrong_size = "its size does not fit its number of objects";
    let layout = if version_2 {
        let crcs = tables + table(id_length)?;
        let offsets = crcs.checked_add(table(4)?).ok_or(wrong_size)?;
        let large = offsets.checked_add(table(4)?).ok_or(wrong_size)?;
        let large_bytes = trailer.checked_sub(large).ok_or(wrong_size)?;
        if large_bytes % 8 != 0 || large_bytes / 8 > count {
            return Err(wrong_size);
        }
        Layout {
            ids: tables,
            id_step: id_length,
            crcs: Some(crcs),
            offsets,
            offset_step: 4,
            large,
            large_count: large_bytes / 8,
            trailer,
        }
    } else {
        if tables.checked_add(table(4 + id_length)?) != Some(trailer) {
            return Err(wrong_size);
        }
        Layout {
            ids: tables + 4,
            id_step: 4 + id_length,
            crcs: None,
            offsets: tables,
            offset_step: 4 + id_length,
            large: trailer,
            large_count: 0,
            trailer,
        }
    };
    Ok((fan, layout))
}
