//! The part of a file in front of what it holds.

use data_encoding::BASE64_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{Error, FILE_KEY, TAG, subkey};

const VERSION: &[u8] = b"age-encryption.org/v1\n";
const MAC: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct Header {
    pub salt: [u8; 16],
    pub work_factor: u8,
    /// The file key, sealed.
    pub body: [u8; FILE_KEY + TAG],
    mac: [u8; MAC],
}

impl Header {
    pub(super) fn new(salt: [u8; 16], work_factor: u8, body: [u8; FILE_KEY + TAG]) -> Header {
        Header {
            salt,
            work_factor,
            body,
            mac: [0; MAC],
        }
    }

    /// Splits the header off. Exactly one recipient is allowed where a passphrase is one (section "scrypt").
    pub(super) fn parse(file: &[u8]) -> Result<(Header, &[u8]), Error> {
        let Some(rest) = file.strip_prefix(VERSION) else {
            return Err(Error::NotByPassphrase);
        };
        let (stanza, rest) = line(rest)?;
        let mut words = stanza.split(' ');
        if words.next() != Some("->") {
            return Err(Error::Header("it names no recipient"));
        }
        if words.next() != Some("scrypt") {
            return Err(Error::NotByPassphrase);
        }
        let (Some(salt), Some(work), None) = (words.next(), words.next(), words.next()) else {
            return Err(Error::Header("the line of the passphrase has another form"));
        };
        let salt = bytes(salt).ok_or(Error::Header("the salt is not 16 bytes"))?;
        let digits = !work.is_empty() && work.len() <= 2 && work.bytes().all(|byte| byte.is_ascii_digit());
        let work_factor = match work.parse::<u8>() {
            Ok(number) if digits && !work.starts_with('0') => number,
            // Written like a number of the format, only larger than any that makes sense.
            _ if work.len() > 2
                && work.bytes().all(|byte| byte.is_ascii_digit())
                && !work.starts_with('0') =>
            {
                u8::MAX
            }
            _ => return Err(Error::Header("the work factor is no number")),
        };
        let (body, rest) = line(rest)?;
        let body = bytes(body).ok_or(Error::Header("the sealed key is not 32 bytes"))?;
        let (end, rest) = line(rest)?;
        if end.starts_with("-> ") {
            return Err(Error::Header(
                "a passphrase and another recipient exclude each other",
            ));
        }
        let mac = end
            .strip_prefix("--- ")
            .and_then(bytes)
            .ok_or(Error::Header("its authentication is missing"))?;
        let header = Header {
            salt,
            work_factor,
            body,
            mac,
        };
        Ok((header, rest))
    }

    /// The header as it stands in a file, authenticated.
    pub(super) fn to_bytes(&self, file_key: &[u8]) -> Vec<u8> {
        let mut bytes = self.authenticated();
        let mac = mac(file_key, &bytes).finalize().into_bytes();
        bytes.push(b' ');
        bytes.extend_from_slice(BASE64_NOPAD.encode(&mac).as_bytes());
        bytes.push(b'\n');
        bytes
    }

    /// Whether it was written by somebody who knew the file key. Compared in constant time.
    pub(super) fn is_authentic(&self, file_key: &Zeroizing<Vec<u8>>) -> bool {
        file_key.len() == FILE_KEY
            && mac(file_key, &self.authenticated())
                .verify_slice(&self.mac)
                .is_ok()
    }

    fn authenticated(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_vec();
        let (salt, body) = (BASE64_NOPAD.encode(&self.salt), BASE64_NOPAD.encode(&self.body));
        bytes.extend_from_slice(format!("-> scrypt {salt} {}\n{body}\n---", self.work_factor).as_bytes());
        bytes
    }
}

fn mac(file_key: &[u8], bytes: &[u8]) -> Hmac<Sha256> {
    let key = subkey(file_key, b"", b"header");
    let mut mac = Hmac::<Sha256>::new_from_slice(&*key).expect("any key is long enough");
    mac.update(bytes);
    mac
}

/// A line of printable characters, and what follows.
fn line(rest: &[u8]) -> Result<(&str, &[u8]), Error> {
    let end = rest
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or(Error::Header("it ends too early"))?;
    let (line, rest) = (&rest[..end], &rest[end + 1..]);
    match str::from_utf8(line) {
        Ok(text) if line.iter().all(|byte| (b' '..=b'~').contains(byte)) => Ok((text, rest)),
        _ => Err(Error::Header("it is not text")),
    }
}

/// Canonical base64 of exactly this many bytes.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()
}
