//! The entries of a tree, one by one and with the places where they start.

use std::cmp::Ordering;

use bstr::{BStr, ByteSlice as _};
use gix_hash::oid;

use super::links::Error;

/// The bits of a mode that tell what an entry is.
const KIND_BITS: u32 = 0o170_000;
const TREE: u32 = 0o040_000;
const GITLINK: u32 = 0o160_000;

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Kind and permissions, as Git writes them in octal.
    pub mode: u32,
    /// The name within the tree; not empty.
    pub name: &'a BStr,
    /// The object under that name.
    pub id: &'a oid,
}

impl Entry<'_> {
    /// True for a subtree.
    pub fn is_tree(&self) -> bool {
        self.mode & KIND_BITS == TREE
    }

    /// True for the commit of a submodule, which is no object of this repository.
    pub fn is_gitlink(&self) -> bool {
        self.mode & KIND_BITS == GITLINK
    }

    /// Which of two entries comes first in a tree. Git orders them by name, as if the names of trees ended in a slash; so
    /// a file and a folder of the same name are not in the same place.
    #[inline]
    pub fn cmp_place(&self, other: &Entry<'_>) -> Ordering {
        let common = self.name.len().min(other.name.len());
        let next = |entry: &Entry<'_>| match entry.name.get(common) {
            Some(&byte) => byte,
            None if entry.is_tree() => b'/',
            None => 0,
        };
        self.name[..common]
            .cmp(&other.name[..common])
            .then_with(|| next(self).cmp(&next(other)))
    }
}

/// The entry that starts at `at` and the place where it ends. `at` must lie within `tree`.
#[inline]
pub fn entry_at(tree: &[u8], at: usize, id_length: usize) -> Result<(Entry<'_>, usize), Error> {
    let bytes = tree.get(at..).ok_or(Error::TreeMode)?;
    let mut mode = 0u32;
    let mut digits = 0;
    loop {
        match bytes.get(digits) {
            Some(b' ') if digits > 0 => break,
            Some(digit @ b'0'..=b'7') if mode < 0o1_000_000 => mode = mode << 3 | u32::from(digit - b'0'),
            _ => return Err(Error::TreeMode),
        }
        digits += 1;
    }
    let rest = &bytes[digits + 1..];
    let length = rest
        .find_byte(0)
        .filter(|&length| length > 0)
        .ok_or(Error::TreeName)?;
    let id = rest[length + 1..].get(..id_length).ok_or(Error::TreeId)?;
    let entry = Entry {
        mode,
        name: rest[..length].as_bstr(),
        id: oid::from_bytes_unchecked(id),
    };
    Ok((entry, at + digits + 1 + length + 1 + id_length))
}

/// Reads the entries of a tree in their order. After an error it yields nothing more.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    tree: &'a [u8],
    at: usize,
    id_length: usize,
}

impl<'a> Entries<'a> {
    /// Reads from the first entry on.
    pub fn new(tree: &'a [u8], format: gix_hash::Kind) -> Entries<'a> {
        Entries {
            tree,
            at: 0,
            id_length: format.len_in_bytes(),
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.tree.len() {
            return None;
        }
        match entry_at(self.tree, self.at, self.id_length) {
            Ok((entry, end)) => {
                self.at = end;
                Some(Ok(entry))
            }
            Err(error) => {
                self.at = self.tree.len();
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Entries<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_ordered_as_if_they_ended_in_a_slash() {
        let entry = |mode, name: &'static str| Entry {
            mode,
            name: name.into(),
            id: gix_hash::Kind::Sha1.null_ref(),
        };
        let sorted = [
            entry(0o100_644, "a"),
            entry(0o100_644, "a-b"),
            entry(0o040_000, "a"),
            entry(0o100_644, "a0"),
            entry(0o040_000, "ab"),
        ];
        for (index, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(left.cmp_place(right), index.cmp(&other), "{left:?} {right:?}");
            }
        }
    }
}
