//! The incoming bytes: counted, checked and written to the pack file as they are consumed.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use gix_hash::ObjectId;

use super::error::{self, Error};
use crate::durable::Handle;

/// Large enough that a system call per refill costs nothing beside inflating its content.
const CAPACITY: usize = 128 * 1024;

/// No entry header is longer: ten bytes of size, and ten bytes of distance or 32 bytes of id.
pub(super) const LONGEST_HEADER: usize = 10 + 32;

/// A pack stream on its way into a file.
///
/// It is a [`BufRead`], so that entries are inflated straight out of its buffer. Whatever is consumed goes into the
/// checksum of the pack, the CRC-32 of the current entry, and the file.
pub(super) struct Input<'a> {
    source: &'a mut dyn Read,
    file: Box<dyn Handle>,
    path: PathBuf,
    buffer: Box<[u8]>,
    /// Consumed up to here, filled up to there.
    start: usize,
    end: usize,
    at_end: bool,
    /// Hashed and written up to here, which is at or before `start`.
    settled: usize,
    /// In the CRC of the current entry up to here.
    summed: usize,
    /// The place of the buffer's first byte in the stream.
    before: u64,
    crc: crc32fast::Hasher,
    hasher: gix_hash::Hasher,
    limit: u64,
    failure: Option<Error>,
}

impl<'a> Input<'a> {
    /// Reads from `source` and writes to `file`, which is named `path` in errors. More than `limit` bytes are refused.
    pub(super) fn new(
        source: &'a mut dyn Read,
        file: Box<dyn Handle>,
        path: PathBuf,
        format: gix_hash::Kind,
        limit: u64,
    ) -> Input<'a> {
        Input {
            source,
            file,
            path,
            buffer: vec![0; CAPACITY].into_boxed_slice(),
            start: 0,
            end: 0,
            at_end: false,
            settled: 0,
            summed: 0,
            before: 0,
            crc: crc32fast::Hasher::new(),
            hasher: gix_hash::hasher(format),
            limit,
            failure: None,
        }
    }

    /// How many bytes were consumed.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.start as u64
    }

    /// What is available after asking for `count` bytes, at most [`CAPACITY`]: fewer only at the end of the stream.
    pub(super) fn peek(&mut self, count: usize) -> Result<&[u8], Error> {
        while self.end - self.start < count && !self.at_end {
            self.refill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Starts the CRC of an entry at the current place.
    pub(super) fn start_entry(&mut self) {
        self.summed = self.start;
        self.crc = crc32fast::Hasher::new();
    }

    /// The CRC-32 of what was consumed since [`start_entry`](Self::start_entry).
    pub(super) fn finish_entry(&mut self) -> u32 {
        self.crc.update(&self.buffer[self.summed..self.start]);
        self.summed = self.start;
        std::mem::take(&mut self.crc).finalize()
    }

    /// The reason why reading as a [`BufRead`] failed, or else `otherwise`.
    pub(super) fn failure_or(&mut self, otherwise: Error) -> Error {
        self.failure.take().unwrap_or(otherwise)
    }

    /// Reads the trailer and compares it with what was consumed. The stream must end with it. Returns the checksum and
    /// the length of the pack.
    pub(super) fn finish(mut self, format: gix_hash::Kind) -> Result<(ObjectId, u64), Error> {
        self.settle()?;
        let length = format.len_in_bytes();
        let trailer = self.peek(length)?;
        let Some(expected) = trailer.get(..length) else {
            return Err(Error::Truncated {
                offset: self.before + self.end as u64,
                what: "its checksum",
            });
        };
        let expected = ObjectId::from_bytes_or_panic(expected);
        let hasher = std::mem::replace(&mut self.hasher, gix_hash::hasher(format));
        let actual = hasher
            .try_finalize()
            .map_err(|_| Error::CollisionAttack { offset: 0 })?;
        if expected != actual {
            return Err(Error::Checksum { expected, actual });
        }
        self.consume(length);
        self.settle()?;
        let offset = self.offset();
        if !self.peek(1)?.is_empty() {
            return Err(Error::TrailingBytes { offset });
        }
        Ok((actual, offset))
    }

    /// Hashes what was consumed and writes it to the file.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.crc.update(&self.buffer[self.summed..self.start]);
        self.summed = self.start;
        let bytes = &self.buffer[self.settled..self.start];
        self.hasher.update(bytes);
        self.file
            .write_all(bytes)
            .map_err(error::file("write", &self.path))?;
        self.settled = self.start;
        Ok(())
    }

    fn refill(&mut self) -> Result<(), Error> {
        self.settle()?;
        self.buffer.copy_within(self.start..self.end, 0);
        self.before += self.start as u64;
        self.end -= self.start;
        (self.start, self.settled, self.summed) = (0, 0, 0);
        let received = self.before + self.end as u64;
        let count = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => break count,
                Err(failed) if failed.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Read {
                        offset: received,
                        source,
                    });
                }
            }
        };
        self.at_end = count == 0;
        self.end += count;
        if received + count as u64 > self.limit {
            return Err(Error::Limit {
                what: "a pack".into(),
                size: received + count as u64,
                limit: self.limit,
            });
        }
        Ok(())
    }
}

impl Read for Input<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end
            && !self.at_end
            && let Err(failure) = self.refill()
        {
            // Kept here, where its kind is known; the caller of the decoder asks for it.
            self.failure = Some(failure);
            return Err(io::ErrorKind::Other.into());
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
    }
}
