//! Makes lists while chunks come.

use gix_hash::ObjectId;
use ingot_engine::chunked::is_border;
use ingot_engine::chunked::{Child, Entry, List};

/// Collects the entries of a file and makes lists of them, and lists of those. Holds one unfinished list of each level.
#[derive(Debug, Default)]
pub struct Lists {
    entries: Vec<Entry>,
    /// From level 1 up.
    above: Vec<Level>,
    /// A run of zeros that may go on.
    zeros: u64,
    size: u64,
}

#[derive(Debug, Default)]
struct Level {
    children: Vec<Child>,
    /// How many lists of the level below there have been, those that are in finished lists included.
    seen: u64,
}

impl Lists {
    /// Bytes of the file so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next part of the file. Lists that this completes are given to `put`, which stores them and returns their ids.
    pub fn push<E>(
        &mut self,
        entry: Entry,
        put: &mut impl FnMut(&[u8]) -> Result<ObjectId, E>,
    ) -> Result<(), E> {
        self.size += entry.length();
        if let Entry::Zeros { length } = entry {
            self.zeros += length;
            return Ok(());
        }
        self.end_zeros(put)?;
        self.add(entry, put)
    }

    /// Zeros that may go on, which complete nothing.
    pub fn add_zeros(&mut self, length: u64) {
        self.size += length;
        self.zeros += length;
    }

    /// The root list, which is stored like the others, and the size of the file.
    pub fn finish<E>(
        mut self,
        put: &mut impl FnMut(&[u8]) -> Result<ObjectId, E>,
    ) -> Result<(ObjectId, u64), E> {
        self.end_zeros(put)?;
        if !self.entries.is_empty() || self.above.is_empty() {
            self.close_entries(put)?;
        }
        let mut level = 0;
        loop {
            let here = &self.above[level];
            if let (1, [only]) = (here.seen, here.children.as_slice()) {
                return Ok((only.id, self.size));
            }
            if !here.children.is_empty() {
                self.close_lists(level, put)?;
            }
            level += 1;
        }
    }

    fn end_zeros<E>(&mut self, put: &mut impl FnMut(&[u8]) -> Result<ObjectId, E>) -> Result<(), E> {
        match std::mem::take(&mut self.zeros) {
            0 => Ok(()),
            length => self.add(Entry::Zeros { length }, put),
        }
    }

    fn add<E>(&mut self, entry: Entry, put: &mut impl FnMut(&[u8]) -> Result<ObjectId, E>) -> Result<(), E> {
        self.entries.push(entry);
        if is_border(self.entries.len(), &entry) {
            self.close_entries(put)?;
        }
        Ok(())
    }

    fn close_entries<E>(&mut self, put: &mut impl FnMut(&[u8]) -> Result<ObjectId, E>) -> Result<(), E> {
        let list = List::of_entries(std::mem::take(&mut self.entries));
        let id = put(&list.to_bytes())?;
        self.list(
            0,
            Child {
                length: list.length(),
                id,
            },
            put,
        )
    }

    fn close_lists<E>(
        &mut self,
        level: usize,
        put: &mut impl FnMut(&[u8]) -> Result<ObjectId, E>,
    ) -> Result<(), E> {
        let children = std::mem::take(&mut self.above[level].children);
        let list = List::of_lists(level as u8 + 1, children);
        let id = put(&list.to_bytes())?;
        self.list(
            level + 1,
            Child {
                length: list.length(),
                id,
            },
            put,
        )
    }

    /// Takes a list up into the level above it.
    fn list<E>(
        &mut self,
        level: usize,
        child: Child,
        put: &mut impl FnMut(&[u8]) -> Result<ObjectId, E>,
    ) -> Result<(), E> {
        if self.above.len() == level {
            self.above.push(Level::default());
        }
        let above = &mut self.above[level];
        above.children.push(child);
        above.seen += 1;
        match is_border(above.children.len(), &child) {
            true => self.close_lists(level, put),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashMap;
    use std::convert::Infallible;

    use super::*;
    use ingot_engine::chunked::Children;

    const FORMAT: gix_hash::Kind = gix_hash::Kind::Sha1;

    fn name(bytes: &[u8]) -> ObjectId {
        gix_object::compute_hash(FORMAT, gix_object::Kind::Blob, bytes).unwrap()
    }

    fn build(entries: &[Entry]) -> (ObjectId, u64, HashMap<ObjectId, Vec<u8>>) {
        let mut stored = HashMap::new();
        let mut put = |bytes: &[u8]| {
            let id = name(bytes);
            stored.insert(id, bytes.to_vec());
            Ok::<_, Infallible>(id)
        };
        let mut lists = Lists::default();
        for entry in entries {
            lists.push(*entry, &mut put).unwrap();
        }
        let (root, size) = lists.finish(&mut put).unwrap();
        (root, size, stored)
    }

    fn flatten(root: ObjectId, stored: &HashMap<ObjectId, Vec<u8>>) -> Vec<Entry> {
        let list = List::parse(&stored[&root], FORMAT).unwrap();
        match list.into_children() {
            Children::Entries(entries) => entries,
            Children::Lists(lists) => lists.iter().flat_map(|child| flatten(child.id, stored)).collect(),
        }
    }

    fn chunks(count: u64) -> Vec<Entry> {
        (0..count)
            .map(|number| Entry::Chunk {
                length: 1 + number % 1000,
                id: name(&number.to_le_bytes()),
            })
            .collect()
    }

    #[test]
    fn every_number_of_chunks_has_one_tree() {
        for count in [0, 1, 7, 8, 31, 129, 1000, 20_000] {
            let entries = chunks(count);
            let (root, size, stored) = build(&entries);
            assert_eq!(flatten(root, &stored), entries, "{count}");
            assert_eq!(size, entries.iter().map(Entry::length).sum::<u64>());
            assert!(stored.values().all(|list| list.len() < 4096));
        }
    }

    #[test]
    fn runs_of_zeros_are_one_entry() {
        let chunk = chunks(1)[0];
        let zeros = |length| Entry::Zeros { length };
        let (root, _, stored) = build(&[zeros(5), zeros(6), chunk, zeros(7), zeros(8), zeros(9)]);
        assert_eq!(flatten(root, &stored), [zeros(11), chunk, zeros(24)]);
    }

    #[test]
    fn an_edit_rewrites_little() {
        let mut entries = chunks(16_384); // a gibibyte
        let (_, _, before) = build(&entries);
        entries[9000] = Entry::Chunk {
            length: 77,
            id: name(b"edited"),
        };
        let (_, _, after) = build(&entries);
        let bytes: usize = after
            .iter()
            .filter(|(id, _)| !before.contains_key(*id))
            .map(|(_, list)| list.len())
            .sum();
        assert!((100..6000).contains(&bytes), "{bytes}");
    }
}
