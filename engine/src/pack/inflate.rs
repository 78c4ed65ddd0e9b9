//! zlib in one place: exact inflation and deflation with state that is used again.
//!
//! Git says of every zlib stream how many bytes it inflates to. That number comes from outside, so memory is taken as
//! bytes are produced, and a stream that yields more or fewer bytes than promised is an error.

use std::io::{self, BufRead};

use gix_zlib::stream::deflate::{Compress, FlushCompress};
use gix_zlib::{Decompress, FlushDecompress, Status};

/// How hard [`Deflater`] works, 0 to 9.
pub use gix_zlib::Compression as Level;
/// Deflates what is written to it. `flush` ends the stream.
pub use gix_zlib::stream::deflate::Write as DeflateWrite;

/// No deflate stream yields more than this many bytes for one of its own (RFC 1951: 258 bytes for at least two bits).
const LARGEST_RATIO: u64 = 1032;

/// The first piece of memory taken for output whose size is merely promised.
const FIRST_PIECE: usize = 64 * 1024;

/// Room given beyond the promised bytes. One byte would do to notice a longer stream; with so many, the decoder can use
/// its fast path up to the end, which is most of a small delta.
const SLACK: usize = 320;

/// Why a zlib stream could not be inflated to what it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not a zlib stream, or its checksum does not fit.
    #[error("the compressed data is damaged ({0})")]
    Corrupt(&'static str),
    /// The input ended before the stream did.
    #[error("the compressed data is cut off")]
    Truncated,
    /// The stream goes on after the promised bytes.
    #[error("the data inflates to more than the {expected} bytes that its header promises")]
    Longer {
        /// What the header promised, in bytes.
        expected: u64,
    },
    /// The stream ended before the promised bytes.
    #[error("the data inflates to {actual} bytes instead of the {expected} that its header promises")]
    Shorter {
        /// What the header promised, in bytes.
        expected: u64,
        /// What came out, in bytes.
        actual: u64,
    },
    /// The operating system has not that much memory.
    #[error("not enough memory for {0} bytes of inflated data")]
    Memory(u64),
    /// The input could not be read, or the output not be taken.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What one step of the decoder did.
struct Step {
    consumed: usize,
    written: usize,
    ended: bool,
}

/// Inflates zlib streams one after the other with the same state.
pub struct Inflater {
    state: Decompress,
    scratch: Vec<u8>,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflater").finish_non_exhaustive()
    }
}

impl Default for Inflater {
    fn default() -> Self {
        Inflater::new()
    }
}

impl Inflater {
    /// Takes about 40 KiB for the state.
    pub fn new() -> Inflater {
        Inflater {
            state: Decompress::new(),
            scratch: Vec::new(),
        }
    }

    /// Inflates the stream at the start of `input` to exactly `size` bytes, which replace the content of `out`.
    /// Returns the length of the stream in `input`.
    pub fn exact(&mut self, input: &[u8], size: u64, out: &mut Vec<u8>) -> Result<usize, Error> {
        let mut rest = input;
        self.exact_from(&mut rest, size, out)?;
        Ok(input.len() - rest.len())
    }

    /// Inflates the stream that `input` stands at to exactly `size` bytes, which replace the content of `out`. Leaves
    /// `input` at the first byte after the stream and returns the length of the stream.
    pub fn exact_from(
        &mut self,
        input: &mut impl BufRead,
        size: u64,
        out: &mut Vec<u8>,
    ) -> Result<u64, Error> {
        self.state.reset();
        out.clear();
        let whole = usize::try_from(size).map_err(|_| Error::Memory(size))?;
        let mut consumed = 0u64;
        let mut written = 0usize;
        loop {
            let chunk = input.fill_buf()?;
            let at_end = chunk.is_empty();
            if written == out.len() {
                // As much as this input can yield, or a piece; one more byte than promised, to notice a longer stream.
                let yields = u64::try_from(chunk.len())
                    .unwrap_or(u64::MAX)
                    .saturating_mul(LARGEST_RATIO);
                let piece = usize::try_from(yields)
                    .unwrap_or(usize::MAX)
                    .min(FIRST_PIECE.max(written));
                let length = written
                    .saturating_add(piece.max(1))
                    .min(whole.saturating_add(SLACK));
                if length > out.capacity() {
                    out.try_reserve_exact(length - out.len())
                        .map_err(|_| Error::Memory(size))?;
                }
                out.resize(length, 0);
            }
            let step = step(&mut self.state, chunk, &mut out[written..])?;
            input.consume(step.consumed);
            consumed += step.consumed as u64;
            written += step.written;
            if written > whole {
                return Err(Error::Longer { expected: size });
            }
            if step.ended {
                out.truncate(written);
                return match written == whole {
                    true => Ok(consumed),
                    false => Err(Error::Shorter {
                        expected: size,
                        actual: written as u64,
                    }),
                };
            }
            if at_end && step.written == 0 {
                return Err(Error::Truncated);
            }
        }
    }

    /// Inflates the stream that `input` stands at and hands its bytes to `sink` in pieces, never holding more than one
    /// of them. The stream must have exactly `size` bytes; the error for a longer one comes before its surplus is
    /// handed on. Returns the length of the stream.
    pub fn stream(
        &mut self,
        input: &mut impl BufRead,
        size: u64,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, Error> {
        self.state.reset();
        self.scratch.resize(FIRST_PIECE, 0);
        let (mut consumed, mut written) = (0u64, 0u64);
        loop {
            let chunk = input.fill_buf()?;
            let at_end = chunk.is_empty();
            let step = step(&mut self.state, chunk, &mut self.scratch)?;
            input.consume(step.consumed);
            consumed += step.consumed as u64;
            written += step.written as u64;
            if written > size {
                return Err(Error::Longer { expected: size });
            }
            sink(&self.scratch[..step.written])?;
            if step.ended {
                return match written == size {
                    true => Ok(consumed),
                    false => Err(Error::Shorter {
                        expected: size,
                        actual: written,
                    }),
                };
            }
            if at_end && step.written == 0 {
                return Err(Error::Truncated);
            }
        }
    }

    /// Inflates only the first bytes of the stream that `input` stands at, until `out` is full or the stream ends.
    /// Returns how many bytes of `out` are filled. `input` may have been consumed further than those bytes need.
    pub fn prefix(&mut self, input: &mut impl BufRead, out: &mut [u8]) -> Result<usize, Error> {
        self.state.reset();
        let mut written = 0;
        while written < out.len() {
            let chunk = input.fill_buf()?;
            let at_end = chunk.is_empty();
            let step = step(&mut self.state, chunk, &mut out[written..])?;
            input.consume(step.consumed);
            written += step.written;
            if step.ended {
                break;
            }
            if at_end && step.written == 0 {
                return Err(Error::Truncated);
            }
        }
        Ok(written)
    }
}

/// Inflates from `input` into `output`, neither of which need be enough.
fn step(state: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<Step, Error> {
    let (before_in, before_out) = (state.total_in(), state.total_out());
    let status = match state.decompress(input, output, FlushDecompress::None) {
        Ok(status) => status,
        Err(_) => {
            return Err(Error::Corrupt(
                state.error_message().unwrap_or("not a zlib stream"),
            ));
        }
    };
    Ok(Step {
        consumed: (state.total_in() - before_in) as usize,
        written: (state.total_out() - before_out) as usize,
        ended: status == Status::StreamEnd,
    })
}

/// Deflates one byte string after the other with the same state.
pub struct Deflater {
    state: Compress,
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deflater").finish_non_exhaustive()
    }
}

impl Deflater {
    /// Takes about 260 KiB for the state.
    pub fn new(level: Level) -> Deflater {
        Deflater {
            state: Compress::new(level),
        }
    }

    /// Appends a zlib stream of `bytes` to `out`.
    pub fn deflate(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.state.reset();
        let mut input = bytes;
        loop {
            // zlib's bound for one call; the loop is for levels that exceed it.
            let room = input.len() + input.len() / 1000 + 64;
            let start = out.len();
            out.resize(start + room, 0);
            let (ended, consumed, written) = self.press(input, start, out, FlushCompress::Finish);
            input = &input[consumed..];
            out.truncate(start + written);
            if ended {
                return;
            }
        }
    }

    /// Deflates everything that `input` has and hands the stream to `sink` in pieces.
    pub fn stream(
        &mut self,
        input: &mut impl BufRead,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.state.reset();
        let mut piece = vec![0; FIRST_PIECE];
        loop {
            let chunk = input.fill_buf()?;
            let flush = match chunk.is_empty() {
                true => FlushCompress::Finish,
                false => FlushCompress::None,
            };
            let (ended, consumed, written) = self.press(chunk, 0, &mut piece, flush);
            input.consume(consumed);
            sink(&piece[..written])?;
            if ended {
                return Ok(());
            }
        }
    }

    /// Begins a stream that is deflated piece by piece, with [`Deflater::push`] and then [`Deflater::end`].
    pub fn begin(&mut self) {
        self.state.reset();
    }

    /// Deflates the next piece and appends what comes out to `out`.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let start = out.len();
            out.resize(start + FIRST_PIECE, 0);
            let (_, consumed, written) = self.press(bytes, start, out, FlushCompress::None);
            bytes = &bytes[consumed..];
            out.truncate(start + written);
        }
    }

    /// Appends all that is pending of the stream to `out`, up to a byte border where other blocks may follow.
    pub fn sync(&mut self, out: &mut Vec<u8>) {
        loop {
            let start = out.len();
            out.resize(start + FIRST_PIECE, 0);
            let (_, _, written) = self.press(&[], start, out, FlushCompress::Sync);
            out.truncate(start + written);
            if written < FIRST_PIECE {
                return;
            }
        }
    }

    /// Ends the stream and appends the rest of it to `out`.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        loop {
            let start = out.len();
            out.resize(start + FIRST_PIECE, 0);
            let (ended, _, written) = self.press(&[], start, out, FlushCompress::Finish);
            out.truncate(start + written);
            if ended {
                return;
            }
        }
    }

    /// One call of the encoder, which writes to `out` from `start` on: whether the stream ended, bytes consumed, bytes
    /// written.
    fn press(
        &mut self,
        input: &[u8],
        start: usize,
        out: &mut [u8],
        flush: FlushCompress,
    ) -> (bool, usize, usize) {
        let (before_in, before_out) = (self.state.total_in(), self.state.total_out());
        let status = self
            .state
            .compress(input, &mut out[start..], flush)
            .expect("the encoder fails only when its state is damaged");
        (
            status == Status::StreamEnd,
            (self.state.total_in() - before_in) as usize,
            (self.state.total_out() - before_out) as usize,
        )
    }
}

/// Inflates one stream; see [`Inflater::exact`], which saves the state for the next one.
pub fn inflate_exact(compressed: &[u8], size: u64, out: &mut Vec<u8>) -> Result<usize, Error> {
    Inflater::new().exact(compressed, size, out)
}

/// Appends a zlib stream of `bytes` to `out`; see [`Deflater`], which saves the state for the next one.
pub fn deflate(bytes: &[u8], level: Level, out: &mut Vec<u8>) {
    Deflater::new(level).deflate(bytes, out);
}

#[cfg(test)]
mod tests;
