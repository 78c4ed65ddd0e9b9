//! Rows of words.

use std::fmt;

use bip39::{Language, Mnemonic};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::Error;
use crate::protocol::crypto::Secret;
use crate::protocol::{DeviceKey, RepositoryRoot};

/// Rows of one value.
pub const ROWS: usize = 4;
/// Words of a row that carry something.
const WORDS: usize = 6;
/// Separates the check words from every other use of the hash.
const DOMAIN: &[u8] = b"ingot recovery sheet 1\0";

/// The name of a row: which value it is a part of, and which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    part: Part,
    /// From 0.
    row: usize,
}

/// The values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Signing,
    Wrapping,
    Root,
}

const PARTS: [Part; 3] = [Part::Signing, Part::Wrapping, Part::Root];

impl Part {
    fn letter(self) -> char {
        match self {
            Part::Signing => 'S',
            Part::Wrapping => 'W',
            Part::Root => 'R',
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.part.letter(), self.row + 1)
    }
}

impl Label {
    /// The rows that every sheet has, in their order.
    pub fn secret() -> impl Iterator<Item = Label> {
        [Part::Signing, Part::Wrapping].into_iter().flat_map(Label::of)
    }

    /// The rows of the repository.
    pub fn root() -> impl Iterator<Item = Label> {
        Label::of(Part::Root)
    }

    fn of(part: Part) -> impl Iterator<Item = Label> {
        (0..ROWS).map(move |row| Label { part, row })
    }

    /// Splits a line into its label and the words behind it. `None`: not a row.
    pub fn split(line: &str) -> Option<(Label, &str)> {
        let (name, words) = line.split_once(char::is_whitespace)?;
        let name = name.trim_end_matches([':', '.']);
        let label = PARTS
            .into_iter()
            .flat_map(Label::of)
            .find(|label| label.to_string().eq_ignore_ascii_case(name))?;
        Some((label, words))
    }

    /// The word that ends the row: eleven bits of a hash of where the row is and what is in it.
    fn check(self, words: &[u16; WORDS]) -> u16 {
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        hash.update(self.to_string());
        for word in words {
            hash.update(word.to_be_bytes());
        }
        let hash = hash.finalize();
        u16::from_be_bytes([hash[0], hash[1]]) >> 5
    }
}

/// All rows of a key, one a line.
pub(super) fn write(key: &DeviceKey) -> Zeroizing<String> {
    // Longest words have eight letters.
    let mut text = Zeroizing::new(String::with_capacity(PARTS.len() * ROWS * 80));
    write_value(&mut text, Part::Signing, key.signing().expose());
    write_value(&mut text, Part::Wrapping, key.wrapping().expose());
    if !key.is_founder() {
        write_value(&mut text, Part::Root, key.root().as_bytes());
    }
    text
}

fn write_value(text: &mut String, part: Part, value: &[u8; 32]) {
    // Overwritten when dropped.
    let mnemonic = Mnemonic::from_entropy_in(Language::English, value)
        .expect("32 bytes are one of the lengths it takes");
    let list = Language::English.word_list();
    let mut indices = mnemonic.word_indices();
    for label in Label::of(part) {
        let mut words = Zeroizing::new([0; WORDS]);
        for (word, index) in words.iter_mut().zip(&mut indices) {
            *word = index as u16;
        }
        text.push_str(&label.to_string());
        text.push(' ');
        for word in words.iter() {
            text.push(' ');
            text.push_str(list[usize::from(*word)]);
        }
        text.push_str("  ");
        text.push_str(list[usize::from(label.check(&words))]);
        text.push('\n');
    }
}

/// Rows as they are read or typed, in any order.
#[derive(Default)]
pub struct Collected(Vec<(Label, Zeroizing<[u16; WORDS]>)>);

impl Collected {
    /// Whether there is no row yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the seven words of a row, and keeps them.
    pub fn add(&mut self, label: Label, text: &str) -> Result<(), Error> {
        let mut words = Zeroizing::new([0; WORDS + 1]);
        let found = text.split_whitespace().count();
        if found != words.len() {
            return Err(Error::Count { row: label, found });
        }
        for (number, (slot, word)) in words.iter_mut().zip(text.split_whitespace()).enumerate() {
            let word = Zeroizing::new(word.to_ascii_lowercase());
            *slot = Language::English.find_word(&word).ok_or(Error::Word {
                row: label,
                number: number + 1,
            })?;
        }
        let mut row = Zeroizing::new([0; WORDS]);
        row.copy_from_slice(&words[..WORDS]);
        if label.check(&row) != words[WORDS] {
            return Err(Error::Check(label));
        }
        match self.0.iter().find(|(known, _)| *known == label) {
            Some((_, known)) if **known != *row => Err(Error::Twice(label)),
            Some(_) => Ok(()),
            None => {
                self.0.push((label, row));
                Ok(())
            }
        }
    }

    /// The key, when all rows are there.
    pub fn key(&self) -> Result<DeviceKey, Error> {
        let signing = self.value(Part::Signing)?;
        let wrapping = self.value(Part::Wrapping)?;
        let root = match self.0.iter().any(|(label, _)| label.part == Part::Root) {
            true => Some(RepositoryRoot::from_bytes(*self.value(Part::Root)?)),
            false => None,
        };
        Ok(DeviceKey::from_secrets(
            root,
            Secret::new(signing),
            Secret::new(wrapping),
        ))
    }

    fn value(&self, part: Part) -> Result<Zeroizing<[u8; 32]>, Error> {
        let list = Language::English.word_list();
        let mut text = Zeroizing::new(String::with_capacity(ROWS * WORDS * 9));
        for label in Label::of(part) {
            let row = self.0.iter().find(|(known, _)| *known == label);
            let (_, words) = row.ok_or(Error::Missing(label))?;
            for word in words.iter() {
                text.push_str(list[usize::from(*word)]);
                text.push(' ');
            }
        }
        let mnemonic = Mnemonic::parse_in_normalized(Language::English, &text)
            .map_err(|_| Error::Group(part.letter()))?;
        let (entropy, length) = mnemonic.to_entropy_array();
        let entropy = Zeroizing::new(entropy);
        let mut value = Zeroizing::new([0; 32]);
        if length != value.len() {
            return Err(Error::Group(part.letter()));
        }
        value.copy_from_slice(&entropy[..32]);
        Ok(value)
    }
}
