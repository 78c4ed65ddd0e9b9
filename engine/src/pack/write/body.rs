//! What follows an entry's header: the compressed object or delta.

use crate::pack::inflate::{Deflater, Level};

/// Below this many bytes, finding out whether data is worth compressing costs more than compressing it.
const WORTH_SAMPLING: usize = 128 * 1024;
/// Pieces that are compressed for trial, spread evenly.
const SAMPLES: usize = 8;
const SAMPLE: usize = 4 * 1024;

/// The level for data that hardly gets smaller.
const QUICK: Level = Level::BEST_SPEED;

/// The compressed data of an entry.
#[derive(Debug)]
pub(super) struct Body {
    /// Bytes before compression, which the entry's header names.
    pub(super) inflated: u64,
    /// The zlib stream.
    pub(super) bytes: Box<[u8]>,
}

/// Compresses entries, one after the other with the same state.
#[derive(Debug)]
pub(super) struct Compressor {
    level: Level,
    thorough: Option<Deflater>,
    quick: Option<Deflater>,
    out: Vec<u8>,
}

impl Compressor {
    pub(super) fn new(level: Level) -> Compressor {
        Compressor {
            level,
            thorough: None,
            quick: None,
            out: Vec::new(),
        }
    }

    /// Compresses a delta or an object.
    pub(super) fn body(&mut self, bytes: &[u8]) -> Body {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.deflater(bytes).deflate(bytes, &mut out);
        let body = Body {
            inflated: bytes.len() as u64,
            bytes: out.as_slice().into(),
        };
        self.out = out;
        body
    }

    /// The level that a long stream deserves which starts with `bytes`.
    pub(super) fn level_for(&mut self, bytes: &[u8]) -> Level {
        match bytes.len() >= SAMPLES * SAMPLE && self.looks_compressed(bytes) {
            true => QUICK,
            false => self.level,
        }
    }

    /// The effort that `bytes` deserve: data that is compressed already, such as images and archives, only takes time.
    fn deflater(&mut self, bytes: &[u8]) -> &mut Deflater {
        match bytes.len() >= WORTH_SAMPLING && self.looks_compressed(bytes) {
            true => quick(&mut self.quick),
            false => {
                let level = self.level;
                self.thorough.get_or_insert_with(|| Deflater::new(level))
            }
        }
    }

    fn looks_compressed(&mut self, bytes: &[u8]) -> bool {
        let mut out = std::mem::take(&mut self.out);
        let deflater = quick(&mut self.quick);
        let between = bytes.len() / SAMPLES;
        let hard = bytes
            .chunks(between)
            .filter(|chunk| chunk.len() >= SAMPLE)
            .all(|chunk| {
                out.clear();
                deflater.deflate(&chunk[..SAMPLE], &mut out);
                out.len() > SAMPLE - SAMPLE / 32
            });
        out.clear();
        self.out = out;
        hard
    }
}

fn quick(slot: &mut Option<Deflater>) -> &mut Deflater {
    slot.get_or_insert_with(|| Deflater::new(QUICK))
}
