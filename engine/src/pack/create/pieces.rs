//! One zlib stream of independent pieces.
//!
//! A large file is not of one kind: an archive has a text in front, a disk image has holes. So each piece is judged for
//! itself. What does not get smaller is copied into stored blocks, which costs next to nothing; the rest is deflated, and
//! ends at a byte border (a sync flush) where the next piece begins. RFC 1950 and 1951.

use crate::pack::inflate::{Deflater, Level};

/// What begins a zlib stream: deflate with a window of 32 KiB, no effort claimed.
pub(super) const HEADER: [u8; 2] = [0x78, 0x01];
/// The last block, which is stored and empty.
const LAST_BLOCK: [u8; 5] = [1, 0, 0, 0xff, 0xff];
/// The most bytes of a stored block.
const STORED: usize = 0xffff;
/// Samples of a piece, spread evenly, that are deflated for trial.
const SAMPLES: usize = 4;
const SAMPLE: usize = 4 * 1024;
/// The largest prime below 2^16, by which the checksum is taken.
const ADLER: u32 = 65_521;
/// So many bytes can be summed before the sums have to be reduced.
const ADLER_RUN: usize = 5552;

/// A stream in the making.
#[derive(Debug)]
pub(super) struct Pieces {
    deflater: Deflater,
    trial: Deflater,
    scratch: Vec<u8>,
    sum: (u32, u32),
}

impl Pieces {
    pub(super) fn new(level: Level) -> Pieces {
        Pieces {
            deflater: Deflater::new(level),
            trial: Deflater::new(Level::BEST_SPEED),
            scratch: Vec::new(),
            sum: (1, 0),
        }
    }

    /// Appends a piece to `out`.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.add(bytes);
        if self.is_worth_it(bytes) {
            self.scratch.clear();
            self.deflater.begin();
            self.deflater.push(bytes, &mut self.scratch);
            self.deflater.sync(&mut self.scratch);
            // The header of the piece's own stream.
            out.extend_from_slice(self.scratch.get(HEADER.len()..).unwrap_or_default());
            return;
        }
        for block in bytes.chunks(STORED) {
            let length = block.len() as u16;
            out.push(0);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&(!length).to_le_bytes());
            out.extend_from_slice(block);
        }
    }

    /// Ends the stream.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&LAST_BLOCK);
        let (low, high) = self.sum;
        out.extend_from_slice(&(high << 16 | low).to_be_bytes());
    }

    /// Adler-32 of all bytes.
    fn add(&mut self, bytes: &[u8]) {
        let (mut low, mut high) = self.sum;
        for run in bytes.chunks(ADLER_RUN) {
            // In groups, the sums of a group do not wait for each other: `high` grows by the sum so far for each byte.
            let mut groups = run.chunks_exact(16);
            for group in &mut groups {
                let mut weighted = 0u32;
                let mut plain = 0u32;
                for (at, &byte) in group.iter().enumerate() {
                    plain += u32::from(byte);
                    weighted += (16 - at as u32) * u32::from(byte);
                }
                high += 16 * low + weighted;
                low += plain;
            }
            for &byte in groups.remainder() {
                low += u32::from(byte);
                high += low;
            }
            low %= ADLER;
            high %= ADLER;
        }
        self.sum = (low, high);
    }

    /// Whether any sample gets noticeably smaller.
    fn is_worth_it(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() <= SAMPLES * SAMPLE {
            return true;
        }
        bytes.chunks_exact(bytes.len() / SAMPLES).any(|chunk| {
            let sample = &chunk[..SAMPLE];
            self.scratch.clear();
            self.trial.deflate(sample, &mut self.scratch);
            self.scratch.len() <= sample.len() - sample.len() / 32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::inflate::inflate_exact;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn any_pieces_are_one_stream() {
        let mixed = [noise(300_000), vec![7; 300_000], noise(70_000), vec![255; 12_345]].concat();
        for (bytes, piece) in [
            (Vec::new(), 1000),
            (vec![1], 1000),
            (vec![255; 100_000], 5552),
            (noise(200_000), 65_536),
            (noise(65_535 * 2), 65_535 * 2),
            (mixed.clone(), 100_000),
            (mixed.clone(), 17_001),
            (mixed.clone(), mixed.len()),
        ] {
            let mut pieces = Pieces::new(Level::BEST_SPEED);
            let mut out = HEADER.to_vec();
            bytes.chunks(piece).for_each(|piece| pieces.push(piece, &mut out));
            pieces.end(&mut out);
            let mut back = Vec::new();
            let used = inflate_exact(&out, bytes.len() as u64, &mut back);
            assert_eq!(used.expect("the stream is right"), out.len());
            assert!(back == bytes);
            assert!(out.len() < bytes.len() + bytes.len() / 1000 + 64);
        }
    }

    #[test]
    fn each_piece_is_judged_for_itself() {
        let mut pieces = Pieces::new(Level::BEST_SPEED);
        let mut out = Vec::new();
        pieces.push(&noise(1 << 20), &mut out);
        let first = out.len();
        assert!(first > 1 << 20);
        pieces.push(&vec![7; 1 << 20], &mut out);
        assert!(out.len() - first < 20_000, "{}", out.len() - first);
    }
}
