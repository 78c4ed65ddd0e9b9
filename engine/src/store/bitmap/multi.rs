//! The part of a multi-pack-index that its bitmap needs: which object each bit stands for.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gix_hash::{ObjectId, oid};

use super::super::order::hash_number;
use crate::mapped::Mapped;
use crate::notice;

const MAGIC: &[u8] = b"MIDX";
const HEADER: usize = 12;
/// A chunk's name and where it starts.
const CHUNK: usize = 12;
const FAN_BYTES: usize = 256 * 4;
/// "RIDX", version, hash function.
const REVERSE_HEADER: usize = 12;

/// The ids of a multi-pack-index, and their order in its bitmap.
#[derive(Debug)]
pub(super) struct MultiPack {
    map: Mapped,
    /// The file with the order, unless it is a chunk of `map`.
    reverse: Option<Mapped>,
    bitmap: PathBuf,
    checksum: ObjectId,
    id_length: usize,
    count: u32,
    /// Where the ids start.
    ids: usize,
    /// Where the order starts, in `reverse` or `map`.
    order: usize,
    /// The bit of each object by its place in the order of ids; filled at first need.
    bits: OnceLock<Vec<u32>>,
}

impl MultiPack {
    /// The multi-pack-index of an object folder, if a bitmap belongs to it and it can be used.
    pub(super) fn open(objects: &Path, format: gix_hash::Kind) -> Option<MultiPack> {
        let folder = objects.join("pack");
        let map = Mapped::open(&folder.join("multi-pack-index")).ok()?;
        let id_length = format.len_in_bytes();
        let end = map.len().checked_sub(id_length)?;
        let checksum = ObjectId::try_from(&map[end..]).ok()?;
        let bitmap = folder.join(format!("multi-pack-index-{checksum}.bitmap"));
        if !bitmap.exists() {
            return None;
        }
        let head = map.get(..HEADER)?;
        // Version, hash function, and no further files that this one builds upon.
        if !head.starts_with(MAGIC)
            || head[4] != 1
            || u32::from(head[5]) != hash_number(format)?
            || head[7] != 0
        {
            return None;
        }
        let path = folder.join("multi-pack-index");
        let multi = MultiPack::parse((map, end), checksum, bitmap, &folder, format);
        if multi.is_none() {
            let fault = format!("the multi-pack-index {} is damaged", path.display());
            notice::passed_over(&path, &fault);
        }
        multi
    }

    /// Finds the tables of a file of the right kind, which lie before `end`.
    fn parse(
        (map, end): (Mapped, usize),
        checksum: ObjectId,
        bitmap: PathBuf,
        folder: &Path,
        format: gix_hash::Kind,
    ) -> Option<MultiPack> {
        let id_length = format.len_in_bytes();
        let chunk = |name: &[u8; 4]| chunk(&map[..end], usize::from(map[6]), name);
        let fan = chunk(b"OIDF").filter(|range| range.len() == FAN_BYTES)?;
        let count = number32(&map, fan.end - 4)?;
        let ids =
            chunk(b"OIDL").filter(|range| Some(range.len()) == (count as usize).checked_mul(id_length))?;
        let inside = chunk(b"RIDX").filter(|range| Some(range.len()) == (count as usize).checked_mul(4));
        let (order, reverse) = match inside {
            Some(range) => (range.start, None),
            None => {
                let path = folder.join(format!("multi-pack-index-{checksum}.rev"));
                let reverse = Mapped::open(&path).ok()?;
                let table = REVERSE_HEADER.checked_add((count as usize).checked_mul(4)?)?;
                let belongs = reverse.get(table..)?.starts_with(checksum.as_slice());
                (belongs && reverse.starts_with(b"RIDX")).then_some((REVERSE_HEADER, Some(reverse)))?
            }
        };
        Some(MultiPack {
            ids: ids.start,
            map,
            reverse,
            bitmap,
            checksum,
            id_length,
            count,
            order,
            bits: OnceLock::new(),
        })
    }

    pub(super) fn bitmap_path(&self) -> &Path {
        &self.bitmap
    }

    pub(super) fn checksum(&self) -> &oid {
        &self.checksum
    }

    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// An id by its place in the order of ids.
    pub(super) fn id(&self, index: u32) -> Option<&oid> {
        let start = self.ids + (index < self.count).then_some(index as usize)? * self.id_length;
        Some(oid::from_bytes_unchecked(&self.map[start..][..self.id_length]))
    }

    /// The place of an id in the order of ids.
    pub(super) fn find(&self, id: &oid) -> Option<u32> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.id(middle)?.cmp(id) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The place in the order of ids of the object that a bit stands for.
    pub(super) fn index_of(&self, bit: u32) -> Option<u32> {
        let table = self.reverse.as_ref().unwrap_or(&self.map);
        let at = (bit < self.count).then_some(self.order + 4 * bit as usize)?;
        number32(table, at).filter(|&index| index < self.count)
    }

    /// The bit of the object at a place in the order of ids.
    pub(super) fn bit_of(&self, index: u32) -> Option<u32> {
        let bits = self.bits.get_or_init(|| {
            let mut bits = vec![u32::MAX; self.count as usize];
            for bit in 0..self.count {
                if let Some(index) = self.index_of(bit) {
                    bits[index as usize] = bit;
                }
            }
            bits
        });
        bits.get(index as usize).copied().filter(|&bit| bit != u32::MAX)
    }
}

/// The bytes of a chunk, which the table at the start of the file locates.
fn chunk(bytes: &[u8], count: usize, name: &[u8; 4]) -> Option<std::ops::Range<usize>> {
    for number in 0..count {
        let at = HEADER + CHUNK * number;
        if bytes.get(at..at + 4)? == name {
            let start = usize::try_from(number64(bytes, at + 4)?).ok()?;
            let end = usize::try_from(number64(bytes, at + CHUNK + 4)?).ok()?;
            return (start <= end && end <= bytes.len()).then_some(start..end);
        }
    }
    None
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
