//! Tells data from messages in one stream (gitprotocol-pack(5), "Packfile Data").

use std::io::{self, Read};
use std::sync::Arc;

use super::error::{cause, printable};
use super::pkt_line::{self, Line, Reader};
use super::{Error, Messages};

/// Bytes of messages that one answer may have: hooks may print a lot, but not without end.
const MOST_MESSAGES: u64 = 64 << 20;

/// Reads the data of a stream of side bands, up to the flush behind it, and hands on the messages.
pub(super) struct Demultiplexed<'a, R> {
    reader: &'a mut Reader<R>,
    messages: Arc<dyn Messages>,
    remote: String,
    /// The place within the payload of the last frame up to which it was read.
    at: usize,
    messages_seen: u64,
    ended: bool,
}

impl<'a, R: Read> Demultiplexed<'a, R> {
    pub(super) fn new(
        reader: &'a mut Reader<R>,
        messages: &Arc<dyn Messages>,
        remote: &str,
    ) -> Demultiplexed<'a, R> {
        Demultiplexed {
            at: usize::MAX,
            reader,
            messages: Arc::clone(messages),
            remote: remote.to_owned(),
            messages_seen: 0,
            ended: false,
        }
    }

    /// Whether the flush was seen.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// What it reads from.
    pub(super) fn channel(&mut self) -> &mut R {
        self.reader.get_mut()
    }

    fn error(&self, message: String) -> io::Error {
        Error::NotGit {
            remote: self.remote.clone(),
            message,
        }
        .into_io()
    }

    /// Reads frames until one has data; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            if self.messages.interrupted() {
                return Err(Error::Interrupted.into_io());
            }
            let line = match self.reader.line() {
                Ok(Some(line)) => line,
                Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(pkt_line::Error::Read(error)) => return Err(error),
                Err(pkt_line::Error::Invalid(message)) => return Err(self.error(message)),
            };
            match line {
                Line::Flush | Line::ResponseEnd => {
                    self.ended = true;
                    return Ok(false);
                }
                Line::Delimiter => return Err(self.error("a section ends within a pack".to_owned())),
                // A sign of life.
                Line::Data([1] | []) => {}
                Line::Data([1, ..]) => {
                    self.at = 1;
                    return Ok(true);
                }
                Line::Data([2, text @ ..]) => {
                    self.messages_seen += text.len() as u64;
                    if self.messages_seen > MOST_MESSAGES {
                        return Err(Error::TooLarge {
                            remote: self.remote.clone(),
                            what: "bytes of messages",
                            limit: MOST_MESSAGES,
                        }
                        .into_io());
                    }
                    self.messages.remote(text);
                }
                Line::Data([3, text @ ..]) => {
                    return Err(Error::Refused {
                        remote: self.remote.clone(),
                        message: printable(text),
                    }
                    .into_io());
                }
                Line::Data(text) => {
                    let message = match text.strip_prefix(b"ERR ") {
                        Some(text) => {
                            return Err(super::advertisement::refused(&self.remote, text).into_io());
                        }
                        None => format!("a frame of the unknown band {}", text[0]),
                    };
                    return Err(self.error(message));
                }
            }
        }
    }
}

impl<R: Read> Read for Demultiplexed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.ended {
            return Ok(0);
        }
        if self.at >= self.reader.payload().len() && !self.advance()? {
            return Ok(0);
        }
        let rest = &self.reader.payload()[self.at..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(length)
    }
}

/// In an error of reading, what was lost.
pub(super) fn lost_while(remote: &str, stage: &'static str, error: io::Error) -> io::Error {
    match Error::from_io(error) {
        Ok(error) => error.into_io(),
        Err(error) => Error::Lost {
            remote: remote.to_owned(),
            stage,
            message: cause(&error),
        }
        .into_io(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<u8>>);

    impl Messages for Heard {
        fn remote(&self, text: &[u8]) {
            self.0.lock().unwrap().extend_from_slice(text);
        }
    }

    fn stream(frames: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for frame in frames {
            pkt_line::data(&mut out, frame).unwrap();
        }
        out.extend_from_slice(pkt_line::FLUSH);
        out
    }

    fn read(stream: &[u8]) -> (io::Result<Vec<u8>>, Vec<u8>) {
        let heard = Arc::new(Heard::default());
        let messages: Arc<dyn Messages> = heard.clone();
        let mut reader = Reader::new(stream);
        let mut data = Vec::new();
        let result = Demultiplexed::new(&mut reader, &messages, "there").read_to_end(&mut data);
        let heard = heard.0.lock().unwrap().clone();
        (result.map(|_| data), heard)
    }

    #[test]
    fn data_and_messages_are_told_apart() {
        let (data, heard) = read(&stream(&[b"\x01PA", b"\x02hel", b"\x01", b"\x01CK", b"\x02lo\n"]));
        assert_eq!(data.unwrap(), b"PACK");
        assert_eq!(heard, b"hello\n");
    }

    #[test]
    fn failures_have_the_words_of_the_server() {
        let error = |frames: &[&[u8]]| Error::from_io(read(&stream(frames)).0.unwrap_err()).unwrap();
        assert!(matches!(
            error(&[b"\x01x", b"\x03out of disk\n"]),
            Error::Refused { message, .. } if message == "out of disk"
        ));
        assert!(matches!(error(&[b"ERR no"]), Error::Refused { .. }));
        assert!(matches!(error(&[b"\x09x"]), Error::NotGit { .. }));
    }

    #[test]
    fn messages_without_end_are_refused() {
        let frame = {
            let mut frame = Vec::new();
            pkt_line::data(&mut frame, &[&b"\x02"[..], &[b'x'; 60_000]].concat()).unwrap();
            frame
        };
        let endless = frame.repeat(1200);
        let error = Error::from_io(read(&endless).0.unwrap_err()).unwrap();
        assert!(matches!(error, Error::TooLarge { .. }));
    }

    #[test]
    fn a_cut_is_noticed() {
        let whole = stream(&[b"\x01PACK", b"\x02x"]);
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).0.is_err(), "{length}");
        }
    }
}
