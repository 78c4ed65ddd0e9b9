//! Lines with their lengths in front (gitprotocol-common(5)).

use std::io::{self, Read, Write};

/// The most that one packet carries.
const MOST: usize = 65_516;

/// Both directions of the conversation.
pub struct Packets<R, W> {
    input: R,
    output: W,
    line: Vec<u8>,
}

impl<R: Read, W: Write> Packets<R, W> {
    /// `input` is what Git sends, `output` what it reads.
    pub fn new(input: R, output: W) -> Packets<R, W> {
        Packets {
            input,
            output,
            line: Vec::new(),
        }
    }

    /// The next packet; `None` for a flush packet. At the end of the conversation an error of the kind `UnexpectedEof`.
    pub fn read(&mut self) -> io::Result<Option<&[u8]>> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        let length = std::str::from_utf8(&length)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|text| usize::from_str_radix(text, 16).ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a packet without a length"))?;
        match length {
            0 => Ok(None),
            4..=65_520 => {
                self.line.resize(length - 4, 0);
                self.input.read_exact(&mut self.line)?;
                Ok(Some(&self.line))
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a packet of an impossible length",
            )),
        }
    }

    /// The lines up to the next flush packet. `None` at the end of the conversation.
    pub fn lines(&mut self) -> io::Result<Option<Vec<Vec<u8>>>> {
        let mut lines = Vec::new();
        loop {
            match self.read() {
                Ok(Some(line)) => lines.push(line.strip_suffix(b"\n").unwrap_or(line).to_vec()),
                Ok(None) => return Ok(Some(lines)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && lines.is_empty() => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a line, which gets its line feed here.
    pub fn line(&mut self, text: &[u8]) -> io::Result<()> {
        write!(self.output, "{:04x}", text.len() + 5)?;
        self.output.write_all(text)?;
        self.output.write_all(b"\n")
    }

    /// Ends a list or a content.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(b"0000")?;
        self.output.flush()
    }

    /// The content that comes next, up to its flush packet.
    pub fn content(&mut self) -> Content<'_, R, W> {
        Content {
            packets: self,
            at: 0,
            ended: false,
        }
    }
}

impl<R: Read, W: Write> Write for Packets<R, W> {
    /// Sends bytes of a content.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(MOST);
        if count > 0 {
            write!(self.output, "{:04x}", count + 4)?;
            self.output.write_all(&bytes[..count])?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// A content as a stream.
pub struct Content<'p, R, W> {
    packets: &'p mut Packets<R, W>,
    at: usize,
    ended: bool,
}

impl<R: Read, W: Write> Content<'_, R, W> {
    /// Reads what nobody has read, so that the conversation can go on.
    pub fn drain(&mut self) -> io::Result<()> {
        let mut scratch = [0; 8192];
        while self.read(&mut scratch)? > 0 {}
        Ok(())
    }
}

impl<R: Read, W: Write> Read for Content<'_, R, W> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == 0 || self.at >= self.packets.line.len() {
            loop {
                if self.ended {
                    return Ok(0);
                }
                match self.packets.read()? {
                    None => self.ended = true,
                    Some([]) => {}
                    Some(_) => break,
                }
            }
            self.at = 0;
        }
        let rest = &self.packets.line[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn content_is_read_across_packets() {
        let input = b"0007abc0004000adefghi0000000ahello\n0000".as_slice();
        let mut packets = Packets::new(input, Vec::new());
        let mut content = packets.content();
        let mut two = [0; 2];
        content.read_exact(&mut two).unwrap();
        let mut rest = String::new();
        content.read_to_string(&mut rest).unwrap();
        assert_eq!((&two, rest.as_str()), (b"ab", "cdefghi"));
        assert_eq!(packets.lines().unwrap().unwrap(), [b"hello".to_vec()]);
        assert!(packets.lines().unwrap().is_none());
    }

    #[test]
    fn nonsense_is_an_error() {
        for input in ["00", "zzzz", "+001", "0003", "0009ab", "fffff"] {
            assert!(
                Packets::new(input.as_bytes(), Vec::new()).read().is_err(),
                "{input}"
            );
        }
    }
}
