//! The blob that says which chunks make a file.
//!
//! | bytes | what |
//! | --- | --- |
//! | 9 | `chunklist` |
//! | 1 | version, 1 |
//! | 1 | level: 0 for a list of chunks, n for a list of lists of level n-1 |
//! | rest | entries |
//!
//! An entry of level 0 is a number, `length << 2 | kind`, and then: for kind 0 the id of a chunk; for kind 1 the id of a
//! delta and the id of the chunk that it applies to; for kind 2, a run of zero bytes, nothing. An entry of a higher
//! level is the number of bytes of the file that the list below covers, and its id. Numbers are little-endian base 128,
//! in the shortest form; ids are binary.

use gix_hash::ObjectId;

use super::Error;

/// The longest chunk, in bytes.
pub const LARGEST_CHUNK: u64 = 256 * 1024;
/// No list has more bytes than this. The rules for making lists yield far smaller ones.
pub const LARGEST_LIST: u64 = 1 << 20;

const MAGIC: &[u8; 10] = b"chunklist\x01";
/// With at least two entries in each list of lists, no file needs more.
const HIGHEST_LEVEL: u8 = 60;
const KIND_BITS: u32 = 2;

/// Fewest entries of a list before its border may come; only the last list of a level has fewer.
const FEWEST: usize = 8;
/// Most entries of a list.
const MOST: usize = 128;
/// A list ends after an entry whose id ends in so many zero bits.
const BORDER_MASK: u8 = 0x1f;

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A blob as it is.
    Chunk {
        /// Its length in bytes.
        length: u64,
        /// Its id.
        id: ObjectId,
    },
    /// What a delta in Git's format makes of another chunk. The base is always a blob as it is.
    Delta {
        /// The length of the result.
        length: u64,
        /// The blob that holds the delta.
        delta: ObjectId,
        /// The chunk that it applies to.
        base: ObjectId,
    },
    /// Zero bytes.
    Zeros {
        /// How many.
        length: u64,
    },
}

impl Entry {
    /// How many bytes of the file this is.
    pub fn length(&self) -> u64 {
        match self {
            Entry::Chunk { length, .. } | Entry::Delta { length, .. } | Entry::Zeros { length } => *length,
        }
    }

    /// The last byte of the id that decides about borders.
    fn last_byte(&self) -> Option<u8> {
        match self {
            Entry::Chunk { id, .. } => id.as_bytes().last().copied(),
            Entry::Delta { delta, .. } => delta.as_bytes().last().copied(),
            Entry::Zeros { .. } => None,
        }
    }
}

/// An entry of a list of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// How many bytes of the file the list covers.
    pub length: u64,
    /// The list.
    pub id: ObjectId,
}

/// What a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Children {
    /// Level 0.
    Entries(Vec<Entry>),
    /// Higher levels.
    Lists(Vec<Child>),
}

/// A list that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    level: u8,
    length: u64,
    children: Children,
}

/// Why bytes are not a list, or not the one that belongs in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    /// No list of this version.
    #[error("it does not begin as a list of version 1 does")]
    Magic,
    /// Too many bytes.
    #[error("it is longer than a list may be")]
    TooLong,
    /// The bytes end within an entry.
    #[error("it ends within an entry")]
    Truncated,
    /// A number of more than 64 bits or not in the shortest form.
    #[error("it has a malformed number")]
    Number,
    /// An unknown kind of entry.
    #[error("it has an entry of an unknown kind")]
    Kind,
    /// A length that no entry of its kind may have.
    #[error("it has an entry of {0} bytes, which its kind does not allow")]
    Length(u64),
    /// Lengths that add up to more than 64 bits.
    #[error("its lengths add up to more than a file can have")]
    Sum,
    /// Not the level that the list above it implies.
    #[error("its level is {actual} where {expected} belongs")]
    Level {
        /// One less than the level above.
        expected: u8,
        /// Its own.
        actual: u8,
    },
    /// Not the length that its place implies.
    #[error("it covers {actual} bytes where {expected} belong")]
    Covers {
        /// What the pointer or the list above says.
        expected: u64,
        /// The sum of its entries.
        actual: u64,
    },
    /// A list of lists without any.
    #[error("it is a list of lists and has none")]
    Empty,
}

impl List {
    /// A list of level 0.
    pub fn of_entries(entries: Vec<Entry>) -> List {
        List {
            level: 0,
            length: entries.iter().map(Entry::length).sum(),
            children: Children::Entries(entries),
        }
    }

    /// A list of lists. `level` is 1 or more.
    pub fn of_lists(level: u8, lists: Vec<Child>) -> List {
        List {
            level,
            length: lists.iter().map(|list| list.length).sum(),
            children: Children::Lists(lists),
        }
    }

    /// 0 for a list of chunks, else one more than the level of the lists in it.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// How many bytes of the file it covers.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// What it has.
    pub fn children(&self) -> &Children {
        &self.children
    }

    /// What it has.
    pub fn into_children(self) -> Children {
        self.children
    }

    /// Checks that the list covers what its place says. `level` is `None` for the root.
    pub fn check(&self, id: ObjectId, length: u64, level: Option<u8>) -> Result<(), Error> {
        if let Some(expected) = level
            && expected != self.level
        {
            let actual = self.level;
            return Err(Error::List {
                id,
                fault: ListFault::Level { expected, actual },
            });
        }
        if self.length != length {
            let fault = ListFault::Covers {
                expected: length,
                actual: self.length,
            };
            return Err(Error::List { id, fault });
        }
        Ok(())
    }

    /// The blob.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(MAGIC);
        out.push(self.level);
        match &self.children {
            Children::Entries(entries) => {
                for entry in entries {
                    let (kind, ids): (u128, [Option<&ObjectId>; 2]) = match entry {
                        Entry::Chunk { id, .. } => (0, [Some(id), None]),
                        Entry::Delta { delta, base, .. } => (1, [Some(delta), Some(base)]),
                        Entry::Zeros { .. } => (2, [None, None]),
                    };
                    put_number(u128::from(entry.length()) << KIND_BITS | kind, &mut out);
                    for id in ids.into_iter().flatten() {
                        out.extend_from_slice(id.as_bytes());
                    }
                }
            }
            Children::Lists(lists) => {
                for child in lists {
                    put_number(child.length.into(), &mut out);
                    out.extend_from_slice(child.id.as_bytes());
                }
            }
        }
        out
    }

    /// Reads a list. Nothing in it is believed: lengths are within their limits and add up without overflow.
    pub fn parse(bytes: &[u8], format: gix_hash::Kind) -> Result<List, ListFault> {
        if bytes.len() as u64 > LARGEST_LIST {
            return Err(ListFault::TooLong);
        }
        let rest = bytes.strip_prefix(MAGIC).ok_or(ListFault::Magic)?;
        let (&level, mut rest) = rest.split_first().ok_or(ListFault::Magic)?;
        if level > HIGHEST_LEVEL {
            return Err(ListFault::Magic);
        }
        let mut length = 0u64;
        let mut add = |more: u64| {
            length = length.checked_add(more).ok_or(ListFault::Sum)?;
            Ok::<u64, ListFault>(more)
        };
        let children = if level == 0 {
            let mut entries = Vec::new();
            while !rest.is_empty() {
                entries.push(entry(&mut rest, format, &mut add)?);
            }
            Children::Entries(entries)
        } else {
            let mut lists = Vec::new();
            while !rest.is_empty() {
                let length = u64::try_from(number(&mut rest)?).map_err(|_| ListFault::Number)?;
                if length == 0 {
                    return Err(ListFault::Length(0));
                }
                lists.push(Child {
                    length: add(length)?,
                    id: id(&mut rest, format)?,
                });
            }
            if lists.is_empty() {
                return Err(ListFault::Empty);
            }
            Children::Lists(lists)
        };
        Ok(List {
            level,
            length,
            children,
        })
    }
}

fn entry(
    rest: &mut &[u8],
    format: gix_hash::Kind,
    add: &mut impl FnMut(u64) -> Result<u64, ListFault>,
) -> Result<Entry, ListFault> {
    let number = number(rest)?;
    let length = u64::try_from(number >> KIND_BITS).map_err(|_| ListFault::Number)?;
    let kind = number & ((1 << KIND_BITS) - 1);
    if length == 0 || (kind != 2 && length > LARGEST_CHUNK) {
        return Err(ListFault::Length(length));
    }
    add(length)?;
    match kind {
        0 => Ok(Entry::Chunk {
            length,
            id: id(rest, format)?,
        }),
        1 => Ok(Entry::Delta {
            length,
            delta: id(rest, format)?,
            base: id(rest, format)?,
        }),
        2 => Ok(Entry::Zeros { length }),
        _ => Err(ListFault::Kind),
    }
}

fn id(rest: &mut &[u8], format: gix_hash::Kind) -> Result<ObjectId, ListFault> {
    let (id, next) = rest
        .split_at_checked(format.len_in_bytes())
        .ok_or(ListFault::Truncated)?;
    *rest = next;
    ObjectId::try_from(id).map_err(|_| ListFault::Truncated)
}

/// Bits of a number in an entry: a length and a kind.
const NUMBER_BITS: u32 = 64 + KIND_BITS;

fn number(rest: &mut &[u8]) -> Result<u128, ListFault> {
    let (mut value, mut shift) = (0u128, 0u32);
    loop {
        let (&byte, next) = rest.split_first().ok_or(ListFault::Truncated)?;
        *rest = next;
        value |= u128::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let shortest = byte != 0 || shift == 7;
            let fits = value >> NUMBER_BITS == 0;
            return if shortest && fits {
                Ok(value)
            } else {
                Err(ListFault::Number)
            };
        }
        if shift >= NUMBER_BITS {
            return Err(ListFault::Number);
        }
    }
}

fn put_number(mut value: u128, out: &mut Vec<u8>) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

/// A number as lists have it, for tests and tools.
pub fn varint(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(value.into(), &mut out);
    out
}

/// Something that lists are made of, in their making.
pub trait Part {
    /// The last byte of its id; `None` for what has none.
    fn border_byte(&self) -> Option<u8>;
}

impl Part for Entry {
    fn border_byte(&self) -> Option<u8> {
        self.last_byte()
    }
}

impl Part for Child {
    fn border_byte(&self) -> Option<u8> {
        self.id.as_bytes().last().copied()
    }
}

/// Where lists end when `parts` are divided into lists: the places after which a list ends, the last one being the
/// number of parts. Borders depend on ids only, so that an edit changes one list of each level.
pub fn group_ends<P: Part>(parts: &[P]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    for (place, part) in parts.iter().enumerate() {
        if is_border(place + 1 - start, part) {
            ends.push(place + 1);
            start = place + 1;
        }
    }
    if start < parts.len() || parts.is_empty() {
        ends.push(parts.len());
    }
    ends
}

/// True if a list of `count` entries ends with `last`.
pub fn is_border<P: Part>(count: usize, last: &P) -> bool {
    count >= MOST || (count >= FEWEST && last.border_byte().is_some_and(|byte| byte & BORDER_MASK == 0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const FORMATS: [gix_hash::Kind; 2] = [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256];

    fn name(number: u64, format: gix_hash::Kind) -> ObjectId {
        gix_object::compute_hash(format, gix_object::Kind::Blob, &number.to_le_bytes()).unwrap()
    }

    fn entries(count: u64, format: gix_hash::Kind) -> Vec<Entry> {
        (0..count)
            .map(|number| match number % 7 {
                3 => Entry::Zeros {
                    length: number << 40 | 1,
                },
                5 => Entry::Delta {
                    length: 1 + number % LARGEST_CHUNK,
                    delta: name(number, format),
                    base: name(number + 1, format),
                },
                _ => Entry::Chunk {
                    length: LARGEST_CHUNK - number,
                    id: name(number, format),
                },
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for format in FORMATS {
            for count in [0, 1, 2, 7, 100] {
                let list = List::of_entries(entries(count, format));
                assert_eq!(List::parse(&list.to_bytes(), format), Ok(list));
            }
            let lists = (1..9)
                .map(|number| Child {
                    length: number << 50,
                    id: name(number, format),
                })
                .collect();
            let list = List::of_lists(3, lists);
            assert_eq!(List::parse(&list.to_bytes(), format), Ok(list));
            let most = List::of_entries(vec![Entry::Zeros { length: u64::MAX }]);
            assert_eq!(List::parse(&most.to_bytes(), format), Ok(most));
        }
    }

    #[test]
    fn damage_has_a_name() {
        let format = gix_hash::Kind::Sha1;
        let start = |level: u8, rest: &[u8]| [MAGIC, [level].as_slice(), rest].concat();
        let id = [7u8; 20];
        let parse = |bytes: &[u8]| List::parse(bytes, format).unwrap_err();
        assert_eq!(parse(b""), ListFault::Magic);
        assert_eq!(parse(b"chunklist\x02\x00"), ListFault::Magic);
        assert_eq!(parse(MAGIC), ListFault::Magic);
        assert_eq!(parse(&start(200, b"")), ListFault::Magic);
        assert_eq!(parse(&start(1, b"")), ListFault::Empty);
        assert_eq!(parse(&start(0, &[0x80])), ListFault::Truncated);
        assert_eq!(parse(&start(0, &[4])), ListFault::Truncated);
        assert_eq!(parse(&start(0, &[0x84, 0])), ListFault::Number);
        assert_eq!(parse(&start(0, &[0xff; 12])), ListFault::Number);
        assert_eq!(parse(&start(0, &[3 + 4])), ListFault::Kind);
        assert_eq!(parse(&start(0, &[0])), ListFault::Length(0));
        assert_eq!(
            parse(&start(1, &[&[0], id.as_slice()].concat())),
            ListFault::Length(0)
        );
        let mut long = varint((LARGEST_CHUNK + 1) << 2);
        long.extend_from_slice(&id);
        assert_eq!(parse(&start(0, &long)), ListFault::Length(LARGEST_CHUNK + 1));
        let zeros = List::of_entries(vec![Entry::Zeros { length: u64::MAX }]).to_bytes();
        let twice = [&zeros[..], &zeros[MAGIC.len() + 1..]].concat();
        assert_eq!(parse(&twice), ListFault::Sum);
        assert_eq!(parse(&vec![0; LARGEST_LIST as usize + 1]), ListFault::TooLong);
    }

    #[test]
    fn an_edit_moves_no_border_but_its_own() {
        let before = entries(4000, gix_hash::Kind::Sha1);
        let ends = group_ends(&before);
        let average = before.len() / ends.len();
        assert!((16..96).contains(&average), "{average}");
        assert!(
            ends.windows(2)
                .all(|pair| (FEWEST..=MOST).contains(&(pair[1] - pair[0])))
        );
        let mut after = before.clone();
        after.insert(
            2000,
            Entry::Chunk {
                length: 5,
                id: name(1 << 40, gix_hash::Kind::Sha1),
            },
        );
        let groups = |entries: &[Entry]| {
            let mut start = 0;
            let mut groups = Vec::new();
            for end in group_ends(entries) {
                groups.push(List::of_entries(entries[start..end].to_vec()).to_bytes());
                start = end;
            }
            groups
        };
        let (old, new) = (groups(&before), groups(&after));
        let fresh = new.iter().filter(|group| !old.contains(group)).count();
        assert!((1..=2).contains(&fresh), "{fresh}");
        assert_eq!(group_ends::<Entry>(&[]), [0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_list_or_an_error(bytes: Vec<u8>, level in 0u8..4) {
            for format in FORMATS {
                let _ = List::parse(&bytes, format);
                let whole = [MAGIC, [level].as_slice(), &bytes].concat();
                if let Ok(list) = List::parse(&whole, format) {
                    prop_assert_eq!(list.to_bytes(), whole);
                }
            }
        }
    }
}
