//! Reads pack entries through a bounded window, one reader per thread.

use std::io::{self, BufRead, Read};

use gix_pack::data::Entry;
use gix_pack::data::entry::Header;

use super::{Error, Fault, Pack};
use crate::pack::inflate::{self, Inflater};

/// What is read of a pack for an access that has nothing to do with the one before it.
const SMALL: usize = 16 * 1024;
/// What is read at once when the accesses follow the order of the file.
const LARGE: usize = 1024 * 1024;

/// A window on the data of one pack at a time, and the state that inflation needs.
///
/// Whoever reads entries in the order of the file needs one system call for a mebibyte; scattered reads take 16 KiB
/// each. Memory stays below about 1.1 MiB.
#[derive(Debug, Default)]
pub struct Reader {
    window: Window,
    inflater: Inflater,
}

impl Reader {
    /// A reader with an empty window, which takes no memory yet beyond 40 KiB for inflation.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Parses the header of the entry that starts at `offset`.
    pub fn entry(&mut self, pack: &Pack, offset: u64) -> Result<Entry, Error> {
        let bytes = self.window.at(pack, offset, Pack::entry_header_length())?;
        pack.parse_entry(offset, bytes)
    }

    /// Inflates what an entry holds, which is the object itself or a delta, and puts it in place of the content of
    /// `out`. Returns where the entry ends in the file. The caller limits [`Entry::decompressed_size`].
    pub fn inflate(&mut self, pack: &Pack, entry: &Entry, out: &mut Vec<u8>) -> Result<u64, Error> {
        let mut cursor = Cursor::new(&mut self.window, pack, entry.data_offset);
        let result = self
            .inflater
            .exact_from(&mut cursor, entry.decompressed_size, out);
        finish(pack, entry, cursor, result)
    }

    /// Inflates what an entry holds and hands it to `sink` in pieces. Returns where the entry ends in the file.
    pub fn stream(
        &mut self,
        pack: &Pack,
        entry: &Entry,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, Error> {
        let mut cursor = Cursor::new(&mut self.window, pack, entry.data_offset);
        let result = self.inflater.stream(&mut cursor, entry.decompressed_size, sink);
        finish(pack, entry, cursor, result)
    }

    /// Inflates the first bytes of what an entry holds, at most as many as `out` takes, and returns how many.
    pub fn prefix(&mut self, pack: &Pack, entry: &Entry, out: &mut [u8]) -> Result<usize, Error> {
        let mut cursor = Cursor::new(&mut self.window, pack, entry.data_offset);
        match self.inflater.prefix(&mut cursor, out) {
            Ok(written) => Ok(written),
            Err(error) => Err(cursor.failure(entry, error)),
        }
    }

    /// Bytes of the file from `offset` on: at least `length` of them, fewer only at the end of the entries, at most a
    /// mebibyte.
    pub fn bytes(&mut self, pack: &Pack, offset: u64, length: usize) -> Result<&[u8], Error> {
        self.window.at(pack, offset, length)
    }

    /// The state for streams that do not come from a pack.
    pub(super) fn inflater(&mut self) -> &mut Inflater {
        &mut self.inflater
    }
}

fn finish(
    pack: &Pack,
    entry: &Entry,
    cursor: Cursor<'_>,
    result: Result<u64, inflate::Error>,
) -> Result<u64, Error> {
    match result {
        Ok(length) => {
            debug_assert_eq!(cursor.offset, entry.data_offset + length);
            debug_assert!(cursor.offset <= pack.data_end()?);
            Ok(cursor.offset)
        }
        Err(error) => Err(cursor.failure(entry, error)),
    }
}

/// The offset of the base of a delta that names its base by distance; `None` for other entries.
pub(super) fn base_offset(pack: &Pack, entry: &Entry) -> Result<Option<u64>, Error> {
    match entry.header {
        Header::OfsDelta { base_distance } => match entry.checked_base_pack_offset(base_distance) {
            Some(offset) => Ok(Some(offset)),
            None => Err(pack.fault(
                entry.pack_offset(),
                Fault::Header("its delta base lies outside of the pack"),
            )),
        },
        _ => Ok(None),
    }
}

#[derive(Debug, Default)]
struct Window {
    /// Which pack the bytes are from.
    serial: Option<u64>,
    start: u64,
    buffer: Vec<u8>,
    filled: usize,
    /// How much the next read in sequence takes.
    size: usize,
}

impl Window {
    fn at(&mut self, pack: &Pack, offset: u64, length: usize) -> Result<&[u8], Error> {
        let length = length.min(LARGE);
        if self.serial != Some(pack.serial()) || !self.covers(offset, length) {
            self.fill(pack, offset, length)?;
        }
        // Fewer bytes than asked for mean the end of the entries, where `fill` has nothing more to give.
        let skip = usize::try_from(offset - self.start)
            .unwrap_or(usize::MAX)
            .min(self.filled);
        Ok(&self.buffer[skip..self.filled])
    }

    fn covers(&self, offset: u64, length: usize) -> bool {
        let Some(skip) = offset
            .checked_sub(self.start)
            .and_then(|skip| usize::try_from(skip).ok())
        else {
            return false;
        };
        skip <= self.filled && self.filled - skip >= length
    }

    fn fill(&mut self, pack: &Pack, offset: u64, length: usize) -> Result<(), Error> {
        let follows = self.serial == Some(pack.serial())
            && offset >= self.start
            && offset - self.start <= (self.filled + SMALL) as u64;
        self.size = match follows {
            true => (self.size * 2).clamp(SMALL, LARGE),
            false => SMALL,
        };
        let wanted = self.size.max(length);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        self.serial = None;
        self.filled = 0;
        self.filled = pack.read_at(offset, &mut self.buffer[..wanted])?;
        self.start = offset;
        self.serial = Some(pack.serial());
        Ok(())
    }
}

/// Reads on from an offset through a window.
struct Cursor<'a> {
    window: &'a mut Window,
    pack: &'a Pack,
    offset: u64,
    /// The error of the store behind the `io::Error` that the trait allows.
    error: Option<Error>,
}

impl<'a> Cursor<'a> {
    fn new(window: &'a mut Window, pack: &'a Pack, offset: u64) -> Cursor<'a> {
        Cursor {
            window,
            pack,
            offset,
            error: None,
        }
    }

    fn failure(self, entry: &Entry, error: inflate::Error) -> Error {
        match self.error {
            Some(error) => error,
            None => self.pack.fault(entry.pack_offset(), error),
        }
    }
}

impl BufRead for Cursor<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.window.at(self.pack, self.offset, 1) {
            Ok(bytes) => Ok(bytes),
            Err(error) => {
                self.error = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn consume(&mut self, amount: usize) {
        self.offset += amount as u64;
    }
}

impl Read for Cursor<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let amount = bytes.len().min(out.len());
        out[..amount].copy_from_slice(&bytes[..amount]);
        self.consume(amount);
        Ok(amount)
    }
}
