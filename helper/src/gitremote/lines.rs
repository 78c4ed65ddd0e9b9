//! Lines of bounded length from a stream.

use std::io::{BufRead, Read as _};

/// The longest command line that is accepted, in bytes without its line feed. Far above any reference name that a
/// file system takes, far below what would matter as memory.
pub const MAX_LINE: usize = 16 << 20;

/// Why a line could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream failed.
    #[error("cannot read commands")]
    Io(#[from] std::io::Error),
    /// More than [`MAX_LINE`] bytes without a line feed.
    #[error("a command line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// The stream ended within a line.
    #[error("the command stream ended within a line")]
    Truncated,
}

/// Reads the next line into `line`, without its line feed. False at the end of the stream.
pub fn read(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Error> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    let read = input.take(limit).read_until(b'\n', line)?;
    if read == 0 {
        return Ok(false);
    }
    if line.pop_if(|last| *last == b'\n').is_some() {
        return Ok(true);
    }
    if line.len() > MAX_LINE {
        Err(Error::TooLong)
    } else {
        Err(Error::Truncated)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lines_end_at_line_feeds() {
        let mut input = &b"one\n\ntwo\n"[..];
        let mut line = Vec::new();
        for expected in ["one", "", "two"] {
            assert!(read(&mut input, &mut line).unwrap());
            assert_eq!(line, expected.as_bytes());
        }
        assert!(!read(&mut input, &mut line).unwrap());
    }

    #[test]
    fn the_bound_is_exact() {
        let mut line = Vec::new();
        let mut fits = vec![b'x'; MAX_LINE];
        fits.push(b'\n');
        assert!(read(&mut &fits[..], &mut line).unwrap());
        assert_eq!(line.len(), MAX_LINE);
        let mut endless = std::io::BufReader::new(std::io::repeat(b'x'));
        assert!(matches!(read(&mut endless, &mut line), Err(Error::TooLong)));
    }

    #[test]
    fn a_half_line_is_no_line() {
        assert!(matches!(
            read(&mut &b"push a:b"[..], &mut Vec::new()),
            Err(Error::Truncated)
        ));
    }
}
