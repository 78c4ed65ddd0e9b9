//! The pack as it leaves: counted and hashed.

use std::io::{self, Write};

use gix_hash::ObjectId;

use super::Error;
use super::digest::Digest;

/// Takes the bytes of a pack in order and knows how many there were.
pub(super) trait Sink {
    /// The next bytes of the pack.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// How many bytes there were before; the offset of what comes next.
    fn offset(&self) -> u64;
}

/// Hashes a pack on its way to the consumer.
pub(super) struct Output<'a> {
    out: &'a mut dyn Write,
    digest: Digest,
    written: u64,
}

impl<'a> Output<'a> {
    /// Starts with the header of a pack of `objects` entries.
    pub(super) fn start(out: &'a mut dyn Write, format: gix_hash::Kind, objects: u32) -> Result<Self, Error> {
        let mut output = Output {
            out,
            digest: Digest::new(format),
            written: 0,
        };
        output.put(&gix_pack::data::header::encode(
            gix_pack::data::Version::V2,
            objects,
        ))?;
        Ok(output)
    }

    /// Ends with the checksum of everything before; returns it and the length of the pack.
    pub(super) fn finish(self) -> Result<(ObjectId, u64), Error> {
        let checksum = self.digest.finish();
        self.out.write_all(checksum.as_slice()).map_err(Error::Output)?;
        self.out.flush().map_err(Error::Output)?;
        Ok((checksum, self.written + checksum.as_slice().len() as u64))
    }
}

impl Sink for Output<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.digest.update(bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes).map_err(Error::Output)
    }

    fn offset(&self) -> u64 {
        self.written
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.put(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(Error::Output(error)) => Err(error),
            Err(other) => Err(io::Error::other(other)),
        }
    }

    /// The consumer is flushed once, at the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gathers small pieces into chunks that are worth handing on.
pub(super) struct Chunks<F> {
    chunk: Vec<u8>,
    offset: u64,
    deliver: F,
}

/// Bytes of a chunk.
const CHUNK: usize = 256 * 1024;

impl<F: FnMut(Vec<u8>) -> Result<Vec<u8>, Error>> Chunks<F> {
    /// Continues a pack at `offset`. `deliver` takes a chunk and gives a buffer for the next one.
    pub(super) fn new(offset: u64, deliver: F) -> Chunks<F> {
        Chunks {
            chunk: Vec::new(),
            offset,
            deliver,
        }
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        match self.chunk.is_empty() {
            true => Ok(()),
            false => (self.deliver)(self.chunk).map(|_| ()),
        }
    }
}

impl<F: FnMut(Vec<u8>) -> Result<Vec<u8>, Error>> Sink for Chunks<F> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.offset += bytes.len() as u64;
        while self.chunk.len() + bytes.len() >= CHUNK {
            let (now, later) = bytes.split_at(CHUNK - self.chunk.len());
            self.chunk.extend_from_slice(now);
            bytes = later;
            let full = std::mem::take(&mut self.chunk);
            self.chunk = (self.deliver)(full)?;
            self.chunk.clear();
        }
        self.chunk.extend_from_slice(bytes);
        Ok(())
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}
