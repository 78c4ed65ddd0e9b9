//! Heads of requests and responses (RFC 9112).

use std::io::{self, BufRead, Read};

/// What the head of a response may have.
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 128;
/// Interim responses that are skipped.
const MOST_INTERIM: usize = 16;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub status: u16,
    pub reason: String,
    headers: Vec<(String, String)>,
    /// Whether the version lets connections live on by default.
    persistent: bool,
}

/// Where the body of a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    Close,
}

/// Why there is no head.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection ended before the first byte.
    Nothing(io::Error),
    /// It could not be read to the end.
    Read(io::Error),
    /// It is none.
    Invalid(String),
}

impl Head {
    /// Reads the next head that is not an interim one.
    pub(super) fn read<R: Read>(stream: &mut io::BufReader<R>) -> Result<Head, Failure> {
        for _ in 0..MOST_INTERIM {
            let head = Head::read_one(stream)?;
            if !(100..200).contains(&head.status) {
                return Ok(head);
            }
        }
        Err(Failure::Invalid("interim responses without end".to_owned()))
    }

    fn read_one<R: Read>(stream: &mut io::BufReader<R>) -> Result<Head, Failure> {
        let mut text: Vec<u8> = Vec::new();
        loop {
            let available = match stream.fill_buf() {
                Ok(available) => available,
                Err(error) if text.is_empty() => return Err(Failure::Nothing(error)),
                Err(error) => return Err(Failure::Read(error)),
            };
            if available.is_empty() {
                let error = io::ErrorKind::UnexpectedEof.into();
                return Err(match text.is_empty() {
                    true => Failure::Nothing(error),
                    false => Failure::Read(error),
                });
            }
            // Up to and with the next line end, so that nothing of the body is taken.
            let length = memchr(available).map_or(available.len(), |at| at + 1);
            text.extend_from_slice(&available[..length]);
            stream.consume(length);
            if text.len() > LONGEST_HEAD {
                return Err(Failure::Invalid(format!(
                    "a head of more than {LONGEST_HEAD} bytes"
                )));
            }
            if text.ends_with(b"\r\n\r\n") || text.ends_with(b"\n\n") {
                return Head::parse(&text).map_err(Failure::Invalid);
            }
            if text.len() >= 5 && !text.starts_with(b"HTTP/") {
                let start = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
                return Err(Failure::Invalid(format!("an answer that begins with '{start}'")));
            }
        }
    }

    fn parse(text: &[u8]) -> Result<Head, String> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(text) {
            Ok(status) if status.is_complete() => {}
            Ok(_) => return Err("an incomplete head".to_owned()),
            Err(error) => return Err(format!("a bad head: {error}")),
        }
        let (Some(status), Some(version)) = (response.code, response.version) else {
            return Err("a head without a status".to_owned());
        };
        Ok(Head {
            status,
            reason: response.reason.unwrap_or_default().to_owned(),
            headers: response
                .headers
                .iter()
                .map(|header| {
                    let value = String::from_utf8_lossy(header.value).trim().to_owned();
                    (header.name.to_ascii_lowercase(), value)
                })
                .collect(),
            persistent: version >= 1,
        })
    }

    /// All values of a header, whose name is in lower case.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The media type without its parameters, in lower case.
    pub(super) fn media_type(&self) -> String {
        let value = self.value("content-type").unwrap_or_default();
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    }

    /// Where the body ends.
    pub(super) fn framing(&self) -> Result<Framing, String> {
        if matches!(self.status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        let codings: Vec<String> = self
            .values("transfer-encoding")
            .flat_map(|value| value.split(','))
            .map(|coding| coding.trim().to_ascii_lowercase())
            .collect();
        match codings.as_slice() {
            [] => {}
            [one] if one == "chunked" => return Ok(Framing::Chunked),
            [one] if one == "identity" => {}
            _ => return Err(format!("the transfer coding '{}'", codings.join(", "))),
        }
        if let Some(coding) = self.value("content-encoding")
            && !coding.eq_ignore_ascii_case("identity")
            && !coding.is_empty()
        {
            return Err(format!("the content coding '{coding}', which was not asked for"));
        }
        let mut lengths = self.values("content-length");
        let Some(first) = lengths.next() else {
            return Ok(Framing::Close);
        };
        let bad = || format!("the content length '{first}'");
        if lengths.any(|other| other != first) || !first.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        first.parse().map(Framing::Length).map_err(|_| bad())
    }

    /// Whether the connection may be used again after the body.
    pub(super) fn keeps_connection(&self) -> bool {
        let says = |word: &str| {
            self.values("connection")
                .flat_map(|value| value.split(','))
                .any(|token| token.trim().eq_ignore_ascii_case(word))
        };
        match self.persistent {
            true => !says("close"),
            false => says("keep-alive"),
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    use bstr::ByteSlice as _;
    bytes.find_byte(b'\n')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Head, Failure> {
        Head::read(&mut io::BufReader::with_capacity(3, text.as_bytes()))
    }

    fn framing(headers: &str) -> Result<Framing, String> {
        read(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n"))
            .unwrap()
            .framing()
    }

    #[test]
    fn heads_are_read() {
        let head =
            read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Type: Text/Plain; charset=x\r\n\r\nbody")
                .unwrap();
        assert_eq!(head.status, 401);
        assert_eq!(head.reason, "No");
        assert_eq!(head.value("www-authenticate"), Some("Basic realm=x"));
        assert_eq!(head.media_type(), "text/plain");
        assert!(head.keeps_connection());
        assert!(!read("HTTP/1.0 200 OK\r\n\r\n").unwrap().keeps_connection());
        assert!(
            !read("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n")
                .unwrap()
                .keeps_connection()
        );
    }

    #[test]
    fn bodies_end_where_the_head_says() {
        assert_eq!(framing(""), Ok(Framing::Close));
        assert_eq!(framing("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\nContent-Length: 1\r\n"),
            Ok(Framing::Chunked)
        );
        for bad in [
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: 99999999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Content-Encoding: gzip\r\n",
        ] {
            assert!(framing(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_head_is_told_apart() {
        assert!(matches!(read(""), Err(Failure::Nothing(_))));
        assert!(matches!(read("HTT"), Err(Failure::Read(_))));
        assert!(matches!(
            read("HTTP/1.1 200 OK\r\nA: b\r\n"),
            Err(Failure::Read(_))
        ));
        assert!(matches!(read("SSH-2.0-OpenSSH\r\n"), Err(Failure::Invalid(_))));
        assert!(matches!(read("HTTP/1.1 abc\r\n\r\n"), Err(Failure::Invalid(_))));
        let endless = "HTTP/1.1 200 OK\r\n".to_owned() + &"A: b\r\n".repeat(100_000);
        assert!(matches!(read(&endless), Err(Failure::Invalid(_))));
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
        assert!(matches!(read(&interim), Err(Failure::Invalid(_))));
    }
}
