//! Packet lines: the frames of Git's network protocols and of its long-running filters
//! (gitprotocol-common(5), "pkt-line Format").

use std::io::{self, Read};

use gix_packetline::PacketLineRef;
use gix_packetline::decode::{self, PacketLineOrWantedSize};

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// Payload, at most 65,516 bytes.
    Data(&'a [u8]),
    /// `0000`: the end of a message.
    Flush,
    /// `0001`: the end of a section.
    Delimiter,
    /// `0002`: the end of a stateless response.
    ResponseEnd,
}

/// What came is no sequence of packet lines.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream could not be read, or ended within a frame.
    #[error("cannot read a packet line: {0}")]
    Read(#[from] io::Error),
    /// The length of a frame is no number, or none that a frame can have.
    #[error("invalid packet line: {0}")]
    Invalid(String),
}

/// The end of a message, as it is sent.
pub const FLUSH: &[u8] = b"0000";
/// The end of a section, as it is sent.
pub const DELIMITER: &[u8] = b"0001";
/// The most that one frame carries.
pub const LONGEST: usize = 65_516;

/// Digits of the length in front of each frame, which counts them too.
const PREFIX: usize = 4;

/// Appends a frame with `payload` to `out`.
pub fn data(out: &mut Vec<u8>, payload: &[u8]) -> Result<(), Error> {
    if payload.len() > LONGEST {
        return Err(Error::Invalid(format!(
            "{} bytes are more than a frame carries",
            payload.len()
        )));
    }
    out.extend_from_slice(format!("{:04x}", payload.len() + PREFIX).as_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

/// Reads frames from a stream, one after the other, in memory of one frame.
#[derive(Debug)]
pub struct Reader<R> {
    inner: R,
    buffer: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads from `inner`, which should be buffered.
    pub fn new(inner: R) -> Reader<R> {
        Reader {
            inner,
            buffer: Vec::new(),
        }
    }

    /// The stream, to write to what is read from.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// The payload of the last frame that had one.
    pub fn payload(&self) -> &[u8] {
        &self.buffer
    }

    /// The next frame; `None` where the stream ends between two frames.
    pub fn line(&mut self) -> Result<Option<Line<'_>>, Error> {
        let mut prefix = [0; PREFIX];
        if !self.fill_or_end(&mut prefix)? {
            return Ok(None);
        }
        let wanted = match decode::hex_prefix(&prefix).map_err(|error| Error::Invalid(error.to_string()))? {
            PacketLineOrWantedSize::Wanted(size) => usize::from(size),
            PacketLineOrWantedSize::Line(PacketLineRef::Flush) => return Ok(Some(Line::Flush)),
            PacketLineOrWantedSize::Line(PacketLineRef::Delimiter) => return Ok(Some(Line::Delimiter)),
            PacketLineOrWantedSize::Line(PacketLineRef::ResponseEnd) => return Ok(Some(Line::ResponseEnd)),
            // A prefix alone is never data.
            PacketLineOrWantedSize::Line(PacketLineRef::Data(_)) => return Ok(Some(Line::Data(&[]))),
        };
        if wanted > LONGEST {
            return Err(Error::Invalid(format!("a frame of {wanted} bytes")));
        }
        self.buffer.resize(wanted, 0);
        self.inner.read_exact(&mut self.buffer)?;
        match decode::to_data_line(&self.buffer).map_err(|error| Error::Invalid(error.to_string()))? {
            PacketLineRef::Data(data) => Ok(Some(Line::Data(data))),
            _ => Ok(Some(Line::Data(&[]))),
        }
    }

    /// Fills `buffer`, or tells that the stream had ended before its first byte.
    fn fill_or_end(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.inner.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_kind_are_told_apart() {
        let mut reader = Reader::new(&b"0006a\n0005b0001000000020008more"[..]);
        for expected in [
            Line::Data(b"a\n"),
            Line::Data(b"b"),
            Line::Delimiter,
            Line::Flush,
            Line::ResponseEnd,
            Line::Data(b"more"),
        ] {
            assert_eq!(reader.line().expect("a frame"), Some(expected));
        }
        assert_eq!(reader.line().expect("the end"), None);
    }

    #[test]
    fn frames_are_written() {
        let mut out = Vec::new();
        data(&mut out, b"a\n").expect("short");
        data(&mut out, b"").expect("empty");
        assert_eq!(out, b"0006a\n0004");
        assert!(data(&mut out, &[0; LONGEST]).is_ok());
        assert!(data(&mut out, &[0; LONGEST + 1]).is_err());
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        for bad in [&b"00"[..], b"zzzz", b"0003", b"0009abc", b"ffffab", b"fff1"] {
            assert!(Reader::new(bad).line().is_err(), "{bad:?}");
        }
    }
}
