//! A key on paper: words for people, a picture for cameras, and back.
//!
//! A key file has two secrets of 32 bytes and the repository that they are for. Each of the secrets becomes 24 words of
//! BIP 39, in four rows of six. A seventh word ends each row and checks the six, so that a slip of the pen is found in its
//! row and not at the end of two dozen words. The repository follows from the secrets of a device that founded it; for any
//! other device it becomes four rows more.
//!
//! The picture is a QR code of one line, `code.rs`. A sheet of a protected key has the age file in place of words.

mod code;
mod page;
mod rows;

use zeroize::Zeroizing;

use crate::protocol::invitation::{device_fingerprint, same_fingerprint};
use crate::protocol::{DeviceId, DeviceKey, RepositoryRoot};

pub use page::{html, svg, text};
pub use rows::{Collected, Label, ROWS};

/// Why a sheet was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is neither a row nor a line of a picture.
    #[error(
        "there are no rows of words in it, and no line that begins with {}",
        code::PREFIX
    )]
    Nothing,
    /// A row with too many or too few words.
    #[error("row {row} has {found} words, and should have 7")]
    Count {
        /// The row.
        row: Label,
        /// How many there are.
        found: usize,
    },
    /// A word that is in no row.
    #[error("row {row}, word {number}: there is no such word in the list; compare it with the sheet")]
    Word {
        /// The row.
        row: Label,
        /// Which of its words, from 1.
        number: usize,
    },
    /// The words are words, and together wrong.
    #[error(
        "row {0}: its last word does not match the six before it; one of the seven is wrong or in the wrong place"
    )]
    Check(Label),
    /// A row is there twice, with different words.
    #[error("row {0} is there twice, with different words")]
    Twice(Label),
    /// A row is missing.
    #[error("row {0} is missing")]
    Missing(Label),
    /// All rows are good, and they do not belong together.
    #[error("rows {0}1 to {0}4 are each right, and do not belong together; are they from one sheet?")]
    Group(char),
    /// A line of a picture that was read wrong.
    #[error("the line that begins with {} is damaged", code::PREFIX)]
    Code,
    /// The words are those of another device than the sheet says.
    #[error("the words make device {made}, and the sheet is for device {told}")]
    Device {
        /// The device of the words.
        made: DeviceId,
        /// What the sheet says.
        told: String,
    },
}

/// What is on a sheet for people to compare: nothing secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The device.
    pub device: DeviceId,
    /// The repository.
    pub root: RepositoryRoot,
    /// Digits of the device.
    pub fingerprint: String,
}

/// A sheet.
pub struct Sheet {
    names: Names,
    /// Rows of words with their labels, or the lines of an age file.
    lines: Zeroizing<String>,
    /// What the picture says.
    code: Zeroizing<String>,
    protected: bool,
}

impl Sheet {
    /// A sheet with the key itself.
    pub fn of(key: &DeviceKey) -> Sheet {
        Sheet {
            names: Names::of(key),
            lines: rows::write(key),
            code: code::write(key),
            protected: false,
        }
    }

    /// A sheet that a passphrase is needed for. `armored` is the protected key file.
    pub fn protected(key: &DeviceKey, armored: &[u8]) -> Sheet {
        let lines = Zeroizing::new(String::from_utf8_lossy(armored).into_owned());
        Sheet {
            names: Names::of(key),
            code: lines.clone(),
            lines,
            protected: true,
        }
    }
}

impl Names {
    fn of(key: &DeviceKey) -> Names {
        Names {
            device: *key.id(),
            root: *key.root(),
            fingerprint: device_fingerprint(key.id()),
        }
    }
}

/// The key in the text of a sheet, or in what a camera read, or in the rows alone. If the text names a device, it has to be
/// the one of the key.
pub fn read(text: &str) -> Result<DeviceKey, Error> {
    let mut told = None;
    let mut coded = None;
    let mut rows = Collected::default();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(code::PREFIX) {
            coded = Some(code::read(line)?);
        } else if let Some(device) = line.strip_prefix("device ") {
            told = Some(device.trim());
        } else if let Some((label, words)) = Label::split(line) {
            rows.add(label, words)?;
        }
    }
    let key = match (rows.is_empty(), coded) {
        (false, _) => rows.key()?,
        (true, Some(key)) => key,
        (true, None) => return Err(Error::Nothing),
    };
    match told {
        Some(told) => check_device(&key, told).map(|()| key),
        None => Ok(key),
    }
}

/// Requires that a key is the one that a person means: by its id, at least the first eight digits of it, or its
/// fingerprint.
pub fn check_device(key: &DeviceKey, told: &str) -> Result<(), Error> {
    let id = key.id().to_string();
    let digits: String = told.chars().filter(|c| !c.is_whitespace()).collect();
    let by_id = digits.len() >= 8 && id.starts_with(&digits.to_ascii_lowercase());
    if by_id || same_fingerprint(told, &device_fingerprint(key.id())) && digits.len() == 30 {
        return Ok(());
    }
    Err(Error::Device {
        made: *key.id(),
        told: told.to_owned(),
    })
}

#[cfg(test)]
mod tests;
