//! Where chunks end.
//!
//! FastCDC as of 2020, normalization level 1, with the gear table of the `fastcdc` crate, which is pinned: the cut points
//! are part of the format. A cut depends on the bytes since the cut before it and on nothing else, so an edit moves the
//! cuts near it and leaves the rest alone.

use std::sync::LazyLock;

use fastcdc::v2020::{Normalization, cut as cut_with, select_masks};

/// No chunk is shorter, except the last one of a file.
pub const SMALLEST: usize = 16 * 1024;
/// Chunks tend to this length.
pub const TARGET: usize = 64 * 1024;
/// No chunk is longer.
pub const LARGEST: usize = ingot_engine::chunked::LARGEST_CHUNK as usize;

static MASKS: LazyLock<(u64, u64)> = LazyLock::new(|| select_masks(TARGET, Normalization::Level1));

/// The length of the first chunk of `bytes`, which hold at least [`LARGEST`] bytes unless the file ends with them. 0 for
/// no bytes.
pub fn first(bytes: &[u8]) -> usize {
    let (strict, relaxed) = *MASKS;
    cut_with(
        bytes,
        SMALLEST,
        TARGET,
        LARGEST,
        strict,
        relaxed,
        strict << 1,
        relaxed << 1,
    )
    .1
}

/// The lengths of the chunks at the start of `bytes`. Without `last`, what remains is cut when more bytes are known.
pub fn all(bytes: &[u8], last: bool, lengths: &mut Vec<usize>) -> usize {
    let mut at = 0;
    while at < bytes.len() && (last || bytes.len() - at >= LARGEST) {
        let length = first(&bytes[at..]);
        lengths.push(length);
        at += length;
    }
    at
}

/// The length of a chunk of a long run of zero bytes.
pub fn zero_length() -> usize {
    static LENGTH: LazyLock<usize> = LazyLock::new(|| first(&vec![0; LARGEST]));
    *LENGTH
}

/// True if all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    // The first bytes decide nearly always; the rest goes in steps that the compiler turns into wide instructions.
    bytes.iter().take(16).all(|byte| *byte == 0)
        && bytes
            .chunks(256)
            .all(|chunk| chunk.iter().fold(0, |sum, byte| sum | byte) == 0)
}
