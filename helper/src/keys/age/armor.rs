//! The text form of a file: strict, so that there is one text for each file.

use data_encoding::BASE64;

use super::Error;

const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const END: &str = "-----END AGE ENCRYPTED FILE-----";
const COLUMNS: usize = 64;

/// Whether this is meant to be an armored file. White space in front is allowed, as it comes with copying.
pub(super) fn is_armored(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"-----BEGIN AGE ")
}

pub(super) fn encode(binary: &[u8]) -> Vec<u8> {
    let text = BASE64.encode(binary);
    let mut armored = Vec::with_capacity(text.len() + text.len() / COLUMNS + 100);
    armored.extend_from_slice(BEGIN.as_bytes());
    for line in text.as_bytes().chunks(COLUMNS) {
        armored.push(b'\n');
        armored.extend_from_slice(line);
    }
    armored.push(b'\n');
    armored.extend_from_slice(END.as_bytes());
    armored.push(b'\n');
    armored
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let text = str::from_utf8(bytes).map_err(|_| Error::Armor("it is not text"))?;
    let mut lines = text.trim_ascii().lines();
    if lines.next() != Some(BEGIN) {
        return Err(Error::Armor("the first line is not the one it should be"));
    }
    let mut encoded = String::with_capacity(text.len());
    let mut last = false;
    loop {
        let line = lines.next().ok_or(Error::Armor("the end is missing"))?;
        if line == END {
            break;
        }
        if last || line.is_empty() || line.len() > COLUMNS {
            return Err(Error::Armor("a line has another length than it should"));
        }
        last = line.len() < COLUMNS;
        encoded.push_str(line);
    }
    if lines.next().is_some() {
        return Err(Error::Armor("something follows its end"));
    }
    BASE64
        .decode(encoded.as_bytes())
        .map_err(|_| Error::Armor("a character or the padding is wrong"))
}
