//! A blob that passes in pieces.

use gix_hash::ObjectId;
use gix_object::Kind;

use super::pieces::{HEADER, Pieces};
use super::{Creator, Error, header};
use crate::pack::write::digest::Digest;

/// Zeros, to complete a blob that is given up.
const FILL: usize = 64 * 1024;

/// A blob that is being written. Either [`finish`](Blob::finish) or [`abandon`](Blob::abandon) has to end it.
pub struct Blob<'a> {
    creator: &'a mut Creator,
    offset: u64,
    size: u64,
    written: u64,
    digest: Digest,
    pieces: Pieces,
    compressed: Vec<u8>,
}

impl std::fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blob")
            .field("size", &self.size)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

impl<'a> Blob<'a> {
    pub(super) fn begin(creator: &'a mut Creator, size: u64) -> Result<Blob<'a>, Error> {
        creator.unfinished = true;
        let offset = creator.output.start_entry(header(Kind::Blob), size)?;
        Ok(Blob {
            digest: Digest::of_object(creator.format, Kind::Blob, size),
            pieces: Pieces::new(creator.level),
            creator,
            offset,
            size,
            written: 0,
            compressed: HEADER.to_vec(),
        })
    }

    /// Bytes that are still missing.
    pub fn missing(&self) -> u64 {
        self.size - self.written
    }

    /// Takes the next bytes, no more than are missing. What comes in one call is compressed, or not, as one: give it in
    /// pieces of about a mebibyte.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.written.saturating_add(bytes.len() as u64);
        if written > self.size {
            return Err(Error::Length {
                expected: self.size,
                actual: written,
            });
        }
        self.written = written;
        self.digest.update(bytes);
        self.pieces.push(bytes, &mut self.compressed);
        self.pass_on()
    }

    /// Ends the blob, to which all announced bytes have come, and returns its id. If the pack had it before, it now lies
    /// there twice, which Git accepts.
    pub fn finish(mut self) -> Result<ObjectId, Error> {
        if self.missing() > 0 {
            return Err(Error::Length {
                expected: self.size,
                actual: self.written,
            });
        }
        self.end()
    }

    /// Gives the blob up when fewer bytes came than were announced. What was written cannot be taken back, so the entry
    /// is completed with zeros: an object that nothing refers to.
    pub fn abandon(mut self) -> Result<(), Error> {
        let zeros = [0u8; FILL];
        while self.missing() > 0 {
            let count = self.missing().min(FILL as u64) as usize;
            self.write(&zeros[..count])?;
        }
        self.end().map(drop)
    }

    fn end(&mut self) -> Result<ObjectId, Error> {
        self.pieces.end(&mut self.compressed);
        self.pass_on()?;
        let format = self.creator.format;
        let digest = std::mem::replace(&mut self.digest, Digest::new(format));
        let id = digest.finish();
        self.creator.entered(id, self.offset);
        Ok(id)
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        self.creator.output.put(&self.compressed)?;
        self.compressed.clear();
        Ok(())
    }
}
