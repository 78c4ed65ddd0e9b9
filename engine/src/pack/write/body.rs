//! What follows an entry's header: the compressed object or delta.

use crate::pack::inflate::{Deflater, Level};

/// Below this many bytes, finding out whether data is worth compressing costs more than compressing it.
const WORTH_SAMPLING: usize = 128 * 1024;
/// Pieces that are compressed for trial, spread evenly.
const SAMPLES: usize = 16;
const SAMPLE: usize = 4 * 1024;

/// Buffers up to this many bytes are used again.
const LASTING: usize = 1 << 20;

/// The level for trials.
const TRIAL: Level = Level::BEST_SPEED;
/// The level for data that does not get smaller: as it is, in a frame.
const STORED: Level = Level::NONE;
/// The level for data of which a part does not get smaller. Lower ones let such parts grow by a twentieth.
fn fast() -> Level {
    Level::new(2).unwrap_or_default()
}

/// The compressed data of an entry.
#[derive(Debug)]
pub(in crate::pack) struct Body {
    /// Bytes before compression, which the entry's header names.
    pub(in crate::pack) inflated: u64,
    /// The zlib stream.
    pub(in crate::pack) bytes: Box<[u8]>,
}

/// Compresses entries, one after the other with the same state.
#[derive(Debug)]
pub(in crate::pack) struct Compressor {
    level: Level,
    thorough: Option<Deflater>,
    stored: Option<Deflater>,
    trial: Option<Deflater>,
    out: Vec<u8>,
}

impl Compressor {
    pub(in crate::pack) fn new(level: Level) -> Compressor {
        Compressor {
            level,
            thorough: None,
            stored: None,
            trial: None,
            out: Vec::new(),
        }
    }

    /// Compresses a delta or an object.
    pub(in crate::pack) fn body(&mut self, bytes: &[u8]) -> Body {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        // Room for the worst case, as growing step by step could end at twice as much.
        out.reserve_exact(bytes.len() + bytes.len() / 512 + 64);
        self.deflater(bytes).deflate(bytes, &mut out);
        let body = Body {
            inflated: bytes.len() as u64,
            bytes: out.as_slice().into(),
        };
        if out.capacity() <= LASTING {
            self.out = out;
        }
        body
    }

    /// Frames a delta or an object without compressing it.
    pub(in crate::pack) fn stored_body(&mut self, bytes: &[u8]) -> Body {
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 1000 + 128);
        let deflater = self.stored.get_or_insert_with(|| Deflater::new(STORED));
        deflater.deflate(bytes, &mut out);
        Body {
            inflated: bytes.len() as u64,
            bytes: out.into(),
        }
    }

    /// The level for a long stream that starts with `bytes`, of which the rest may be different.
    pub(in crate::pack) fn level_for(&mut self, bytes: &[u8]) -> Level {
        match bytes.len() >= SAMPLES * SAMPLE / 2 && self.looks_compressed(bytes) {
            true => fast(),
            false => self.level,
        }
    }

    /// The effort that `bytes` deserve: data that is compressed already, such as images and archives, only takes time.
    fn deflater(&mut self, bytes: &[u8]) -> &mut Deflater {
        let hopeless = bytes.len() >= WORTH_SAMPLING && self.looks_compressed(bytes);
        let (slot, level) = match hopeless {
            true => (&mut self.stored, STORED),
            false => (&mut self.thorough, self.level),
        };
        slot.get_or_insert_with(|| Deflater::new(level))
    }

    /// True if no sample gets noticeably smaller.
    fn looks_compressed(&mut self, bytes: &[u8]) -> bool {
        let mut out = std::mem::take(&mut self.out);
        let trial = self.trial.get_or_insert_with(|| Deflater::new(TRIAL));
        let hopeless = bytes.chunks_exact((bytes.len() / SAMPLES).max(1)).all(|chunk| {
            let sample = &chunk[..SAMPLE.min(chunk.len())];
            out.clear();
            trial.deflate(sample, &mut out);
            out.len() > sample.len() - sample.len() / 32
        });
        out.clear();
        self.out = out;
        hopeless
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
    fn what_does_not_compress_does_not_grow() {
        let mut compressor = Compressor::new(Level::DEFAULT);
        for bytes in [
            noise(1 << 20),
            noise(1_000),
            vec![7; 1 << 20],
            [noise(1 << 19), vec![7; 1 << 19]].concat(),
        ] {
            let body = compressor.body(&bytes);
            assert!(
                body.bytes.len() < bytes.len() + bytes.len() / 1_000 + 32,
                "{}",
                body.bytes.len()
            );
            let mut back = Vec::new();
            let used = inflate_exact(&body.bytes, body.inflated, &mut back);
            assert_eq!(used.expect("it was just deflated"), body.bytes.len());
            assert!(back == bytes);
        }
        let half = compressor.body(&[noise(1 << 19), vec![7; 1 << 19]].concat());
        assert!(half.bytes.len() < 600_000, "{}", half.bytes.len());
    }
}
