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
        output.put(&gix_pack::data::header::encode(gix_pack::data::Version::V2, objects))?;
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
