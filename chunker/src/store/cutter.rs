//! Reads a file, cuts it, and hashes it as a whole.

use super::source::Source;
use crate::{Error, cut};

/// Bytes that are cut, hashed and compressed together. Twice as many are in memory.
pub(super) const SEGMENT: usize = 8 << 20;
/// Shorter holes are read: asking costs more.
const HOLE: u64 = 1 << 20;

/// Neighbouring chunks.
pub(super) enum Segment {
    Bytes {
        bytes: Vec<u8>,
        lengths: Vec<usize>,
        used: usize,
    },
    Zeros(u64),
}

/// Reads and cuts.
pub(super) struct Cutter<'c, 'a> {
    pub(super) source: &'c mut Source<'a>,
    pub(super) hasher: &'c mut blake3::Hasher,
    pub(super) hashed: u64,
    /// Bytes behind the last cut.
    pub(super) carry: Vec<u8>,
    pub(super) spare: Vec<u8>,
    pub(super) ended: bool,
}

impl Cutter<'_, '_> {
    pub(super) fn next(&mut self) -> Result<Option<Segment>, Error> {
        if self.ended {
            return Ok(None);
        }
        let start = self.source.position() - self.carry.len() as u64;
        if let Some(zeros) = self.hole(start) {
            self.source.seek(start + zeros);
            self.carry.clear();
            self.hash_zeros(start, zeros);
            return Ok(Some(Segment::Zeros(zeros)));
        }
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        bytes.append(&mut self.carry);
        self.ended = self.source.fill(&mut bytes, SEGMENT)?;
        let mut lengths = Vec::with_capacity(2 * SEGMENT / cut::TARGET);
        let used = cut::all(&bytes, self.ended, &mut lengths);
        self.carry.extend_from_slice(&bytes[used..]);
        let known = usize::try_from(self.hashed.saturating_sub(start))
            .unwrap_or(usize::MAX)
            .min(used);
        self.hasher.update(&bytes[known..used]);
        self.hashed = self.hashed.max(start + used as u64);
        if lengths.is_empty() {
            return Ok(None);
        }
        Ok(Some(Segment::Bytes { bytes, lengths, used }))
    }

    /// How many zero bytes of whole chunks follow at `start` without being on the disk.
    fn hole(&self, start: u64) -> Option<u64> {
        let end = self.source.hole_end(start)?;
        let length = cut::zero_length() as u64;
        let whole = (end - start) / length * length;
        (whole >= HOLE && end >= self.source.position()).then_some(whole)
    }

    fn hash_zeros(&mut self, start: u64, count: u64) {
        let zeros = vec![0; 1 << 20];
        let mut rest = count - self.hashed.saturating_sub(start).min(count);
        while rest > 0 {
            let step = usize::try_from(rest).unwrap_or(usize::MAX).min(zeros.len());
            self.hasher.update_rayon(&zeros[..step]);
            rest -= step as u64;
        }
        self.hashed = self.hashed.max(start + count);
    }
}
