//! The ids that commits, trees and tags hold.
//!
//! Reads what Git's own walk reads of an object and checks no more than it does: history holds authors, dates and file
//! names that a strict parser refuses, and they must be pushed nevertheless.

use bstr::{BStr, ByteSlice as _};
use gix_hash::{ObjectId, oid};
use gix_object::Kind;

/// The bits of a tree entry's mode that tell its kind.
const KIND_BITS: u32 = 0o170_000;
/// A tree.
const TREE: u32 = 0o040_000;
/// A commit of another repository, which this one does not have.
const GITLINK: u32 = 0o160_000;

/// A reference from one object to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// The object referred to.
    pub id: &'a oid,
    /// What it must be. `None` for what a tag points at: a tag says it, but only the object itself can be believed.
    pub kind: Option<Kind>,
    /// The mode of a tree entry; 0 for the links of commits and tags.
    pub mode: u32,
    /// The name of a tree entry; empty for the links of commits and tags.
    pub name: &'a BStr,
}

/// Why an object's links cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A commit without a proper first line.
    #[error("the commit does not start with the id of a tree")]
    CommitTree,
    /// A parent line without an id.
    #[error("the commit has a parent line without an id")]
    CommitParent,
    /// A tag without a proper first line.
    #[error("the tag does not start with the id of an object")]
    TagTarget,
    /// A tag whose second line names no kind of object.
    #[error("the tag does not say what kind of object it points at")]
    TagKind,
    /// A mode that is not an octal number.
    #[error("the tree has an entry with a malformed mode")]
    TreeMode,
    /// A name that is empty or has no end.
    #[error("the tree has an entry with an empty or unended name")]
    TreeName,
    /// The tree ends within an id.
    #[error("the tree ends within the id of an entry")]
    TreeId,
}

/// Calls `each` for everything that an object refers to, in the order of its bytes. Submodule entries are no links:
/// their commits live in other repositories.
pub fn links(
    kind: Kind,
    bytes: &[u8],
    format: gix_hash::Kind,
    mut each: impl FnMut(Link<'_>),
) -> Result<(), Error> {
    match kind {
        Kind::Blob => Ok(()),
        Kind::Tree => tree(bytes, format, each),
        Kind::Commit => commit(bytes, format, |kind, id| {
            each(Link {
                id: &id,
                kind: Some(kind),
                mode: 0,
                name: BStr::new(b""),
            });
        }),
        Kind::Tag => {
            let (id, _) = tag(bytes, format)?;
            each(Link {
                id: &id,
                kind: None,
                mode: 0,
                name: BStr::new(b""),
            });
            Ok(())
        }
    }
}

/// The target of a tag and the kind that the tag says it has.
pub fn tag(bytes: &[u8], format: gix_hash::Kind) -> Result<(ObjectId, Kind), Error> {
    let (id, rest) = header(bytes, b"object ", format).ok_or(Error::TagTarget)?;
    let line = rest.strip_prefix(b"type ").ok_or(Error::TagKind)?;
    let end = line.find_byte(b'\n').ok_or(Error::TagKind)?;
    let kind = Kind::from_bytes(&line[..end]).map_err(|_| Error::TagKind)?;
    Ok((id, kind))
}

/// Calls `each` with the tree, then with every parent of a commit.
fn commit(bytes: &[u8], format: gix_hash::Kind, mut each: impl FnMut(Kind, ObjectId)) -> Result<(), Error> {
    let (id, mut rest) = header(bytes, b"tree ", format).ok_or(Error::CommitTree)?;
    each(Kind::Tree, id);
    while rest.starts_with(b"parent ") {
        let (id, next) = header(rest, b"parent ", format).ok_or(Error::CommitParent)?;
        each(Kind::Commit, id);
        rest = next;
    }
    Ok(())
}

/// A line of `name`, a hexadecimal id, and a line feed; returns the id and what follows the line.
fn header<'a>(bytes: &'a [u8], name: &[u8], format: gix_hash::Kind) -> Option<(ObjectId, &'a [u8])> {
    let (hex, rest) = bytes.strip_prefix(name)?.split_at_checked(format.len_in_hex())?;
    let rest = rest.strip_prefix(b"\n")?;
    Some((ObjectId::from_hex(hex).ok()?, rest))
}

fn tree(bytes: &[u8], format: gix_hash::Kind, mut each: impl FnMut(Link<'_>)) -> Result<(), Error> {
    let id_length = format.len_in_bytes();
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut mode = 0u32;
        let mut digits = 0;
        loop {
            match rest.get(digits) {
                Some(b' ') if digits > 0 => break,
                Some(digit @ b'0'..=b'7') if mode < 0o1_000_000 => mode = mode << 3 | u32::from(digit - b'0'),
                _ => return Err(Error::TreeMode),
            }
            digits += 1;
        }
        rest = &rest[digits + 1..];
        let end = rest.find_byte(0).filter(|&end| end > 0).ok_or(Error::TreeName)?;
        let name = &rest[..end];
        let (id, next) = rest[end + 1..].split_at_checked(id_length).ok_or(Error::TreeId)?;
        rest = next;
        let kind = match mode & KIND_BITS {
            GITLINK => continue,
            TREE => Kind::Tree,
            _ => Kind::Blob,
        };
        each(Link {
            id: oid::from_bytes_unchecked(id),
            kind: Some(kind),
            mode,
            name: name.as_bstr(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const FORMATS: [gix_hash::Kind; 2] = [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256];

    fn id(digit: u8, format: gix_hash::Kind) -> ObjectId {
        ObjectId::try_from(vec![digit; format.len_in_bytes()].as_slice()).unwrap()
    }

    /// A link that owns what it holds.
    type Found = (ObjectId, Option<Kind>, u32, String);

    fn read(kind: Kind, bytes: &[u8], format: gix_hash::Kind) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        links(kind, bytes, format, |link| {
            found.push((link.id.to_owned(), link.kind, link.mode, link.name.to_string()));
        })?;
        Ok(found)
    }

    #[test]
    fn commits() {
        for format in FORMATS {
            let (tree, one, two) = (id(1, format), id(2, format), id(3, format));
            let text = format!("tree {tree}\nparent {one}\nparent {two}\nauthor nonsense\nparent {one}\n");
            let plain = |id, kind| (id, Some(kind), 0, String::new());
            assert_eq!(
                read(Kind::Commit, text.as_bytes(), format).unwrap(),
                [
                    plain(tree, Kind::Tree),
                    plain(one, Kind::Commit),
                    plain(two, Kind::Commit)
                ]
            );
            let root = format!("tree {tree}\n");
            assert_eq!(
                read(Kind::Commit, root.as_bytes(), format).unwrap(),
                [plain(tree, Kind::Tree)]
            );
            assert_eq!(read(Kind::Commit, b"", format), Err(Error::CommitTree));
            assert_eq!(
                read(Kind::Commit, &root.as_bytes()[1..], format),
                Err(Error::CommitTree)
            );
            let cut = format!("tree {tree}\nparent 1234\n");
            assert_eq!(
                read(Kind::Commit, cut.as_bytes(), format),
                Err(Error::CommitParent)
            );
        }
    }

    #[test]
    fn tags() {
        for format in FORMATS {
            let target = id(0xab, format);
            let text = format!("object {target}\ntype commit\ntag v1\n");
            assert_eq!(
                read(Kind::Tag, text.as_bytes(), format).unwrap(),
                [(target, None, 0, String::new())]
            );
            assert_eq!(tag(text.as_bytes(), format), Ok((target, Kind::Commit)));
            let text = format!("object {target}\ntype comet\ntag v1\n");
            assert_eq!(read(Kind::Tag, text.as_bytes(), format), Err(Error::TagKind));
            assert_eq!(read(Kind::Tag, b"object 12\n", format), Err(Error::TagTarget));
        }
    }

    #[test]
    fn trees() {
        for format in FORMATS {
            let entry = |mode: &str, name: &str, digit| {
                let mut bytes = format!("{mode} {name}\0").into_bytes();
                bytes.extend_from_slice(id(digit, format).as_slice());
                bytes
            };
            let tree = [
                entry("100644", "a", 1),
                entry("40000", "b", 2),
                entry("160000", "module", 3),
                entry("120000", "link", 4),
                entry("040000", "old", 5),
            ]
            .concat();
            let link = |digit, kind, mode, name: &str| (id(digit, format), Some(kind), mode, name.to_owned());
            assert_eq!(
                read(Kind::Tree, &tree, format).unwrap(),
                [
                    link(1, Kind::Blob, 0o100_644, "a"),
                    link(2, Kind::Tree, 0o40_000, "b"),
                    link(4, Kind::Blob, 0o120_000, "link"),
                    link(5, Kind::Tree, 0o40_000, "old"),
                ]
            );
            assert_eq!(read(Kind::Tree, b"", format).unwrap(), []);
            assert_eq!(
                read(Kind::Tree, &tree[..tree.len() - 1], format),
                Err(Error::TreeId)
            );
            assert_eq!(
                read(Kind::Tree, &entry("100644", "", 1), format),
                Err(Error::TreeName)
            );
            assert_eq!(read(Kind::Tree, b"100644 name", format), Err(Error::TreeName));
            for mode in ["", "8", "+1", "77777777777777777777"] {
                let error = read(Kind::Tree, &entry(mode, "a", 1), format);
                assert!(
                    matches!(error, Err(Error::TreeMode | Error::TreeId)),
                    "{mode}: {error:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_links_or_an_error(bytes: Vec<u8>) {
            for format in FORMATS {
                for kind in [Kind::Blob, Kind::Tree, Kind::Commit, Kind::Tag] {
                    let _ = read(kind, &bytes, format);
                    for start in ["tree ", "object ", "100644 name\0"] {
                        let mut with_start = start.as_bytes().to_vec();
                        with_start.extend_from_slice(&bytes);
                        let _ = read(kind, &with_start, format);
                    }
                }
            }
        }
    }
}
