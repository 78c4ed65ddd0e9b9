//! Bodies of responses.

use std::io::{self, BufRead, Read};

use super::connection::{Connection, Idle};
use super::head::Framing;

/// The line in front of a chunk.
const LONGEST_CHUNK_LINE: usize = 4096;
/// What follows the last chunk.
const MOST_TRAILER_LINES: usize = 128;
/// What is read to be rid of it.
const MOST_DRAINED: u64 = 256 * 1024;

/// What is left of a body. At its end, the connection waits for the next request.
pub(super) struct Body {
    connection: Option<Connection>,
    left: Left,
    idle: Option<Idle>,
}

#[derive(Debug)]
enum Left {
    Length(u64),
    /// Bytes of the current chunk; `None` before the first.
    Chunk(Option<u64>),
    Close,
}

impl Body {
    /// `idle` takes the connection after the body; without it, the connection ends.
    pub(super) fn new(connection: Connection, framing: Framing, idle: Option<Idle>) -> Body {
        let mut body = Body {
            connection: Some(connection),
            left: match framing {
                Framing::Length(length) => Left::Length(length),
                Framing::Chunked => Left::Chunk(None),
                Framing::Close => Left::Close,
            },
            idle,
        };
        if matches!(body.left, Left::Length(0)) {
            body.release();
        }
        body
    }

    fn release(&mut self) {
        if let (Some(connection), Some(idle)) = (self.connection.take(), &self.idle)
            && !matches!(self.left, Left::Close)
        {
            idle.put(connection);
        }
    }

    /// Reads what is left, if it is not much, so that the connection can be used again.
    pub(super) fn drain(&mut self) {
        // If that fails, the next request takes another connection.
        let _ = io::copy(&mut self.take(MOST_DRAINED), &mut io::sink());
    }

    /// The first bytes, for a message.
    pub(super) fn start(mut self, most: u64) -> Vec<u8> {
        let mut text = Vec::new();
        // As much as comes.
        let _ = self.by_ref().take(most).read_to_end(&mut text);
        self.drain();
        text
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(connection) = &mut self.connection else {
            return Ok(0);
        };
        if buffer.is_empty() {
            return Ok(0);
        }
        let stream = &mut connection.stream;
        let limit = match &mut self.left {
            Left::Close => {
                let read = stream.read(buffer)?;
                if read == 0 {
                    self.release();
                }
                return Ok(read);
            }
            Left::Length(left) => left,
            Left::Chunk(chunk) => {
                if chunk.is_none_or(|left| left == 0) {
                    if chunk.is_some() {
                        line(stream)?;
                    }
                    let size = chunk_size(&line(stream)?)?;
                    if size == 0 {
                        trailer(stream)?;
                        self.release();
                        return Ok(0);
                    }
                    *chunk = Some(size);
                }
                match chunk {
                    Some(left) => left,
                    None => return Ok(0),
                }
            }
        };
        let most = buffer.len().min(usize::try_from(*limit).unwrap_or(usize::MAX));
        let read = stream.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *limit -= read as u64;
        if matches!(self.left, Left::Length(0)) {
            self.release();
        }
        Ok(read)
    }
}

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    stream
        .by_ref()
        .take(LONGEST_CHUNK_LINE as u64)
        .read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(match line.len() + 1 >= LONGEST_CHUNK_LINE {
            true => bad("a chunk without a length"),
            false => io::ErrorKind::UnexpectedEof.into(),
        });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// Reads chunks to the first thing that is none.
#[cfg(test)]
pub(super) fn parse_chunks(stream: &mut impl BufRead) {
    while let Ok(size) = line(stream).and_then(|line| chunk_size(&line)) {
        if size == 0 {
            let _ = trailer(stream);
            return;
        }
        let _ = io::copy(&mut stream.by_ref().take(size), &mut io::sink());
    }
}

fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let digits = std::str::from_utf8(digits).map(str::trim).unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad("a chunk without a length"));
    }
    u64::from_str_radix(digits, 16).map_err(|_| bad("a chunk that is too long"))
}

fn trailer(stream: &mut impl BufRead) -> io::Result<()> {
    for _ in 0..MOST_TRAILER_LINES {
        if line(stream)?.is_empty() {
            return Ok(());
        }
    }
    Err(bad("a trailer without end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_chunks() {
        assert_eq!(chunk_size(b"1f;x=y").ok(), Some(31));
        assert_eq!(chunk_size(b"0").ok(), Some(0));
        for bad in [&b""[..], b"-1", b"+1", b"g", b"ffffffffffffffffff", b" ;"] {
            assert!(chunk_size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn lines_have_an_end() {
        assert_eq!(line(&mut &b"ab\r\ncd"[..]).ok(), Some(b"ab".to_vec()));
        assert!(line(&mut &b"ab"[..]).is_err());
        assert!(line(&mut &[b'x'; 10_000][..]).is_err());
        assert!(trailer(&mut &b"A: b\r\n\r\n"[..]).is_ok());
        assert!(trailer(&mut b"A: b\r\n".repeat(1000).as_slice()).is_err());
    }
}
