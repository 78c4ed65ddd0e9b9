//! One pack: its index, and its data by positioned reads.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use gix_hash::{ObjectId, oid};
use gix_pack::data::Entry;

use super::index::Index;
use super::order::{self, Reverse};
use super::{Error, Fault};

/// "PACK", version, number of objects.
const HEADER: u64 = 12;
/// The longest entry header: ten bytes of size, then ten of distance or an id of 32.
const ENTRY_HEADER: usize = 10 + 32;

/// A pack and its index.
///
/// Entries have two numbers: their place in the index, sorted by id (called `local` here), and their place in the file,
/// called rank. All methods panic on a `local` that is not below [`Pack::len`].
#[derive(Debug)]
pub struct Pack {
    /// Unlike any other pack's of this process, so that caches never mix up packs of different stores.
    serial: u64,
    path: PathBuf,
    format: gix_hash::Kind,
    index: Index,
    data: OnceLock<Data>,
    reverse: OnceLock<Option<Reverse>>,
    order: OnceLock<Vec<u32>>,
}

#[derive(Debug)]
struct Data {
    file: File,
    /// Where the entries end and the checksum begins.
    end: u64,
}

impl Pack {
    /// Opens the pack at `path`, which ends in `.pack` and has an index beside it. The data file is opened at its first
    /// use.
    pub fn open(path: &Path, format: gix_hash::Kind) -> Result<Pack, Error> {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        Ok(Pack {
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            path: path.to_owned(),
            format,
            index: Index::open(path.with_extension("idx"), format)?,
            data: OnceLock::new(),
            reverse: OnceLock::new(),
            order: OnceLock::new(),
        })
    }

    /// The `.pack` file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of entries.
    pub fn len(&self) -> u32 {
        self.index.len()
    }

    /// True for a pack without entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The checksum of the pack, which is also its name's last part for packs that Git made. As the index has it.
    pub fn checksum(&self) -> &oid {
        oid::from_bytes_unchecked(self.index.pack_checksum())
    }

    /// The object of an entry.
    pub fn id(&self, local: u32) -> &oid {
        self.index.id(local)
    }

    /// The entry of an object.
    pub fn find(&self, id: &oid) -> Option<u32> {
        self.index.find(id)
    }

    /// Hands the entry of each of several objects to `each`; see [`super::Store::find_all`].
    pub(super) fn find_all(&self, ids: &[ObjectId], each: impl FnMut(Option<u32>)) {
        self.index.find_all(ids, each);
    }

    /// Makes later calls of [`Pack::find`] faster, for those who will look up a good part of the objects. Takes a byte for
    /// each.
    pub fn prepare_find(&self) {
        self.index.prepare();
    }

    /// Where an entry starts in the file. Not checked against the file; a damaged index may say `u64::MAX`.
    pub fn offset(&self, local: u32) -> u64 {
        self.index.offset(local)
    }

    /// The CRC-32 of an entry's bytes in the file. Indexes of version 1 have none.
    pub fn crc(&self, local: u32) -> Option<u32> {
        self.index.crc(local)
    }

    /// Where an entry ends in the file: where the next one starts, or the checksum.
    pub fn end(&self, local: u32) -> Result<u64, Error> {
        let start = self.offset(local);
        let end = match self.rank(start) {
            Some(rank) if rank + 1 < self.len() => self.offset(self.local_of(rank + 1)),
            _ => self.data_end()?,
        };
        // A reverse index with wrong content is the only reason for a gap; the sorted order has none.
        if end > start && end <= self.data_end()? {
            return Ok(end);
        }
        let order = self.by_offset();
        let next = order.partition_point(|&local| self.offset(local) <= start);
        let end = match order.get(next) {
            Some(&local) => self.offset(local),
            None => self.data_end()?,
        };
        match end > start && end <= self.data_end()? {
            true => Ok(end),
            false => Err(self.fault(start, Fault::Outside)),
        }
    }

    /// All entries in the order of the file. Computed, or read from the `.rev` file, at the first call; 4 bytes an entry.
    pub fn by_offset(&self) -> &[u32] {
        self.order
            .get_or_init(|| order::by_offset(&self.index, self.reverse()))
    }

    /// True if the order of the file is at hand, so that [`Pack::end`] and [`Pack::local_at`] take a few steps only. If
    /// not, the first call of one of them sorts all entries.
    pub fn order_is_known(&self) -> bool {
        self.order.get().is_some() || self.reverse().is_some()
    }

    /// The entry that starts at `offset`.
    pub fn local_at(&self, offset: u64) -> Option<u32> {
        self.rank(offset).map(|rank| self.local_of(rank))
    }

    /// The entry's place in the order of the file, by where it starts.
    pub fn rank(&self, offset: u64) -> Option<u32> {
        if self.order.get().is_none() && self.reverse().is_some() {
            // One lookup in the mapped file is cheaper than reading all of it. Where its content makes no sense, the
            // search ends nowhere or at another entry, and the checked order below has the answer.
            let rank = partition(self.len(), |rank| self.offset(self.local_of(rank)) < offset);
            if rank < self.len() && self.offset(self.local_of(rank)) == offset {
                return Some(rank);
            }
        }
        let order = self.by_offset();
        let rank = order.partition_point(|&local| self.offset(local) < offset);
        let found = *order.get(rank)?;
        (self.offset(found) == offset).then_some(rank as u32)
    }

    /// The entry at a place of the file's order, from whichever source is at hand.
    fn local_of(&self, rank: u32) -> u32 {
        if let Some(order) = self.order.get() {
            return order[rank as usize];
        }
        match self
            .reverse()
            .and_then(|reverse| reverse.local(rank, &self.index))
        {
            Some(local) => local,
            None => self.by_offset()[rank as usize],
        }
    }

    fn reverse(&self) -> Option<&Reverse> {
        self.reverse
            .get_or_init(|| Reverse::open(&self.index, self.format))
            .as_ref()
    }

    /// Where the entries end: the length of the file without its checksum. Opens the data file.
    pub fn data_end(&self) -> Result<u64, Error> {
        Ok(self.data()?.end)
    }

    /// Reads bytes of the file, as many as `buffer` takes; fewer only at the end of the entries.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let data = self.data()?;
        let room = usize::try_from(data.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(room);
        read_full_at(&data.file, &mut buffer[..wanted], offset)
            .map_err(|source| self.io("read the pack", source))?;
        Ok(wanted)
    }

    /// Parses the header of the entry that starts at `offset`. [`super::Reader::entry`] does the same without a system
    /// call for each.
    pub fn entry(&self, offset: u64) -> Result<Entry, Error> {
        let mut bytes = [0; ENTRY_HEADER];
        let read = self.read_at(offset, &mut bytes)?;
        self.parse_entry(offset, &bytes[..read])
    }

    /// Parses an entry header from the bytes at `offset`.
    pub(super) fn parse_entry(&self, offset: u64, bytes: &[u8]) -> Result<Entry, Error> {
        if offset < HEADER || bytes.is_empty() {
            return Err(self.fault(offset, Fault::Outside));
        }
        let bytes = &bytes[..bytes.len().min(ENTRY_HEADER)];
        Entry::from_bytes(bytes, offset, self.format)
            .map_err(|_| self.fault(offset, Fault::Header("its header is malformed")))
    }

    /// How many bytes suffice to parse any entry header.
    pub(super) const fn entry_header_length() -> usize {
        ENTRY_HEADER
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// The error for a damaged entry, naming the object that the index has there.
    pub(super) fn fault(&self, offset: u64, fault: impl Into<Fault>) -> Error {
        Error::Entry {
            id: match self.local_at(offset) {
                Some(local) => self.id(local).to_owned(),
                None => ObjectId::null(self.format),
            },
            path: self.path.clone(),
            offset,
            fault: fault.into(),
        }
    }

    pub(super) fn io(&self, action: &'static str, source: std::io::Error) -> Error {
        Error::Io {
            action,
            path: self.path.clone(),
            source,
        }
    }

    /// Opens the data file now, so that a pack that Git removes in the meantime stays readable.
    pub(super) fn open_data(&self) -> Result<(), Error> {
        self.data().map(|_| ())
    }

    /// Looks whether the data file is the one that the index was made for, without keeping it open.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_data().map(drop)
    }

    fn data(&self) -> Result<&Data, Error> {
        if let Some(data) = self.data.get() {
            return Ok(data);
        }
        let data = self.check_data()?;
        Ok(self.data.get_or_init(|| data))
    }

    /// Opens the data file and checks that it is the one that the index was made for.
    fn check_data(&self) -> Result<Data, Error> {
        let damaged = |reason: &str| Error::Pack {
            path: self.path.clone(),
            reason: reason.to_owned(),
        };
        let io = |source| self.io("open the pack", source);
        let file = File::open(&self.path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let id_length = self.format.len_in_bytes();
        let end = length
            .checked_sub(id_length as u64)
            .filter(|&end| end >= HEADER)
            .ok_or_else(|| damaged("it is too short"))?;
        let mut header = [0; HEADER as usize];
        read_full_at(&file, &mut header, 0).map_err(io)?;
        let number =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if &header[..4] != b"PACK" {
            return Err(damaged("it does not start as a pack does"));
        }
        if !matches!(number(4), 2 | 3) {
            return Err(damaged("its version is unknown"));
        }
        if number(8) != self.index.len() {
            return Err(damaged("its number of objects is not that of its index"));
        }
        let mut trailer = [0; 32];
        read_full_at(&file, &mut trailer[..id_length], end).map_err(io)?;
        if &trailer[..id_length] != self.index.pack_checksum() {
            return Err(damaged(
                "it does not end with the checksum that its index names, so it is cut off or not the same pack",
            ));
        }
        Ok(Data { file, end })
    }
}

/// The first of `0..count` for which `before` is false, which it stays from there on.
fn partition(count: u32, before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        match before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

#[cfg(unix)]
fn read_full_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_full_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
