//! Text or binary, and UTF-16 as text.

/// A NUL among this many bytes makes a file binary, as for Git.
const LOOKED_AT: usize = 8000;

/// What the bytes of a file are, once enough of them were seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Not enough was seen.
    #[default]
    Unknown,
    /// Bytes, one a letter.
    Text,
    /// A NUL is among the first bytes.
    Binary,
    /// UTF-16 with a byte order mark. Letters beyond ASCII become `?`, which changes no secret.
    Utf16 {
        /// The low byte comes second.
        big: bool,
        /// The first byte of a pair that was cut.
        half: Option<u8>,
    },
}

impl Encoding {
    /// Whether `buffer` may be scanned already.
    pub fn is_decided(&self) -> bool {
        *self != Encoding::Unknown
    }

    /// Whether only rules for binary files apply.
    pub fn is_binary(&self) -> bool {
        *self == Encoding::Binary
    }

    /// Appends bytes of the file to the buffer, as text.
    pub fn append(&mut self, bytes: &[u8], buffer: &mut Vec<u8>) {
        match self {
            Encoding::Utf16 { .. } => self.narrow(bytes, buffer),
            _ => {
                buffer.extend_from_slice(bytes);
                if !self.is_decided() && buffer.len() >= LOOKED_AT {
                    self.decide(buffer);
                }
            }
        }
    }

    /// Decides with what is there, unless that was done.
    pub fn decide(&mut self, buffer: &mut Vec<u8>) {
        if self.is_decided() {
            return;
        }
        let big = match buffer.get(..2) {
            Some([0xff, 0xfe]) => Some(false),
            Some([0xfe, 0xff]) => Some(true),
            _ => None,
        };
        if let Some(big) = big {
            *self = Encoding::Utf16 { big, half: None };
            let wide = std::mem::take(buffer);
            self.narrow(&wide, buffer);
        } else if memchr::memchr(0, &buffer[..buffer.len().min(LOOKED_AT)]).is_some() {
            *self = Encoding::Binary;
        } else {
            *self = Encoding::Text;
        }
    }

    fn narrow(&mut self, bytes: &[u8], buffer: &mut Vec<u8>) {
        let Encoding::Utf16 { big, half } = self else {
            return;
        };
        buffer.reserve(bytes.len() / 2 + 1);
        for &byte in bytes {
            match half.take() {
                None => *half = Some(byte),
                Some(first) => {
                    let (low, high) = if *big { (byte, first) } else { (first, byte) };
                    buffer.push(if high == 0 { low } else { b'?' });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> (Encoding, Vec<u8>) {
        let (mut encoding, mut buffer) = (Encoding::default(), Vec::new());
        for piece in pieces {
            encoding.append(piece, &mut buffer);
        }
        encoding.decide(&mut buffer);
        (encoding, buffer)
    }

    #[test]
    fn utf16_becomes_text_however_it_is_cut() {
        let little: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain("aé€z".encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        let expected = b"?a\xe9?z";
        for cut in 0..little.len() {
            assert_eq!(read(&[&little[..cut], &little[cut..]]).1, expected, "{cut}");
        }
        let big: Vec<u8> = [0xfe, 0xff]
            .into_iter()
            .chain("a€z".encode_utf16().flat_map(u16::to_be_bytes))
            .collect();
        assert_eq!(read(&[&big]).1, b"?a?z");
    }

    #[test]
    fn a_nul_among_the_first_bytes_makes_a_binary() {
        assert_eq!(read(&[b"text"]).0, Encoding::Text);
        assert_eq!(read(&[b"te\0xt"]).0, Encoding::Binary);
        let mut late = vec![b'a'; LOOKED_AT];
        late.push(0);
        assert_eq!(read(&[&late]).0, Encoding::Text);
        assert_eq!(read(&[&late[..LOOKED_AT - 1], &[0]]).0, Encoding::Binary);
    }
}
