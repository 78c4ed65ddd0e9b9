//! Reads entries back from the pack file, a bounded piece at a time.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::PathBuf;

use gix_pack::data::Entry;

use super::error::{self, Error};
use crate::pack::inflate::{self, Inflater};

/// Most entries fit.
const PIECE: usize = 32 * 1024;

/// The pack file, read by any number of threads.
#[derive(Debug)]
pub(super) struct PackFile {
    file: File,
    path: PathBuf,
}

impl PackFile {
    pub(super) fn open(path: PathBuf) -> Result<PackFile, Error> {
        let file = File::open(&path).map_err(error::file("open", &path))?;
        Ok(PackFile { file, path })
    }

    /// The header of the entry that lies at `range`.
    pub(super) fn header(
        &self,
        range: Range<u64>,
        format: gix_hash::Kind,
        reader: &mut Reader,
    ) -> Result<Entry, Error> {
        let (_, header) = self.start(range, format, &mut reader.buffer)?;
        Ok(header)
    }

    /// Inflates what the entry at `range` holds, an object or a delta, into `out`.
    pub(super) fn inflate(
        &self,
        range: Range<u64>,
        format: gix_hash::Kind,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let offset = range.start;
        let (mut piece, header) = self.start(range, format, &mut reader.buffer)?;
        let size = header.decompressed_size;
        let result = reader.inflater.exact_from(&mut piece, size, out);
        self.check(result, offset, size)
    }

    /// Inflates what the entry at `range` holds and hands it to `sink` in pieces.
    pub(super) fn stream(
        &self,
        range: Range<u64>,
        format: gix_hash::Kind,
        reader: &mut Reader,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let offset = range.start;
        let (mut piece, header) = self.start(range, format, &mut reader.buffer)?;
        let size = header.decompressed_size;
        let result = reader.inflater.stream(&mut piece, size, &mut |bytes| {
            sink(bytes);
            Ok(())
        });
        self.check(result, offset, size)
    }

    fn start<'a>(
        &'a self,
        range: Range<u64>,
        format: gix_hash::Kind,
        buffer: &'a mut [u8],
    ) -> Result<(Piece<'a>, Entry), Error> {
        let offset = range.start;
        let mut piece = Piece {
            file: &self.file,
            range,
            buffer,
            start: 0,
            end: 0,
        };
        let bytes = piece.fill_buf().map_err(error::file("read", &self.path))?;
        let header = Entry::from_bytes(bytes, offset, format).map_err(|_| Error::EntryHeader { offset })?;
        piece.consume(header.header_size());
        Ok((piece, header))
    }

    fn check(&self, result: Result<u64, inflate::Error>, offset: u64, size: u64) -> Result<(), Error> {
        match result {
            Ok(_) => Ok(()),
            Err(inflate::Error::Io(source)) => Err(error::file("read", &self.path)(source)),
            Err(other) => Err(super::inflate_error(other, offset, size)),
        }
    }
}

/// One thread's buffers.
#[derive(Debug)]
pub(super) struct Reader {
    inflater: Inflater,
    buffer: Box<[u8]>,
}

impl Reader {
    pub(super) fn new() -> Reader {
        Reader {
            inflater: Inflater::new(),
            buffer: vec![0; PIECE].into_boxed_slice(),
        }
    }
}

/// A range of a file as a [`BufRead`] that never reads outside it.
struct Piece<'a> {
    file: &'a File,
    range: Range<u64>,
    buffer: &'a mut [u8],
    start: usize,
    end: usize,
}

impl BufRead for Piece<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            let left = self.range.end.saturating_sub(self.range.start);
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
            read_exact_at(self.file, &mut self.buffer[..count], self.range.start)?;
            self.range.start += count as u64;
            (self.start, self.end) = (0, count);
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
    }
}

impl Read for Piece<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                out = &mut out[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}
