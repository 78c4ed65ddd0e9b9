//! What a version of a chunked file has that an earlier one has not.

use std::collections::HashSet;

use gix_hash::ObjectId;
use gix_object::Kind;

use super::list::{Children, Entry, List};
use super::{Error, Pointer};
use crate::store::{Cache, Store};

/// A chunk that only the new version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewChunk {
    /// The chunk, or the delta that it is stored as.
    pub id: ObjectId,
    /// The chunk that the delta applies to, if it is stored as one and the earlier version does not have it.
    pub base: Option<ObjectId>,
    /// The chunk of the earlier version that stood nearest and is gone.
    pub before: Option<ObjectId>,
}

/// A list and where in the file it begins.
#[derive(Debug, Clone, Copy)]
struct At {
    id: ObjectId,
    offset: u64,
    length: u64,
    level: Option<u8>,
}

/// The difference of two versions. Lists that both have are not read, so its cost follows the change.
#[derive(Debug, Default)]
pub struct Difference {
    new_lists: Vec<(ObjectId, u64)>,
    old_lists: Vec<(ObjectId, u64)>,
    new_chunks: Vec<(Entry, u64)>,
    /// Chunks that only the earlier version has, ascending by place.
    gone: Vec<(ObjectId, u64)>,
    known: HashSet<ObjectId>,
}

impl Difference {
    /// Compares two versions. All lists of the earlier one that differ must be here; absent ones of the new version are
    /// named as lists and not looked into.
    pub fn find(store: &Store, old: &Pointer, new: &Pointer, cache: &mut Cache) -> Result<Difference, Error> {
        let mut difference = Difference::default();
        let root = |pointer: &Pointer| At {
            id: pointer.list,
            offset: 0,
            length: pointer.size,
            level: None,
        };
        if old.list == new.list {
            return Ok(difference);
        }
        // Both sides are opened level by level, highest first, and what both have is left closed.
        let (mut ours, mut theirs) = (vec![root(new)], vec![root(old)]);
        let (mut new_entries, mut old_entries) = (Vec::new(), Vec::new());
        let mut bytes = Vec::new();
        while !ours.is_empty() || !theirs.is_empty() {
            let shared: HashSet<ObjectId> = {
                let left: HashSet<ObjectId> = ours.iter().map(|at| at.id).collect();
                theirs
                    .iter()
                    .map(|at| at.id)
                    .filter(|id| left.contains(id))
                    .collect()
            };
            ours.retain(|at| !shared.contains(&at.id));
            theirs.retain(|at| !shared.contains(&at.id));
            let (mut next_ours, mut next_theirs) = (Vec::new(), Vec::new());
            for at in &ours {
                difference.new_lists.push((at.id, at.offset));
                open(
                    store,
                    at,
                    cache,
                    &mut bytes,
                    &mut next_ours,
                    &mut new_entries,
                    false,
                )?;
            }
            for at in &theirs {
                difference.old_lists.push((at.id, at.offset));
                open(
                    store,
                    at,
                    cache,
                    &mut bytes,
                    &mut next_theirs,
                    &mut old_entries,
                    true,
                )?;
            }
            (ours, theirs) = (next_ours, next_theirs);
        }
        let present: HashSet<ObjectId> = new_entries.iter().filter_map(|(entry, _)| id_of(entry)).collect();
        for (entry, offset) in &old_entries {
            let Some(id) = id_of(entry) else { continue };
            difference.known.insert(id);
            // A delta is no base for another one.
            let plain = match entry {
                Entry::Delta { base, .. } => {
                    difference.known.insert(*base);
                    *base
                }
                _ => id,
            };
            if !present.contains(&id) {
                difference.gone.push((plain, *offset));
            }
        }
        difference.gone.sort_by_key(|(_, offset)| *offset);
        let known = &difference.known;
        difference.new_chunks = new_entries
            .into_iter()
            .filter(|(entry, _)| id_of(entry).is_some_and(|id| !known.contains(&id)))
            .collect();
        Ok(difference)
    }

    /// Lists that only the new version has; a list comes before those in it.
    pub fn new_lists(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.new_lists.iter().map(|(id, _)| *id)
    }

    /// Chunks that only the new version has, in the order of the file.
    pub fn new_chunks(&self) -> impl Iterator<Item = NewChunk> + '_ {
        self.new_chunks.iter().filter_map(|(entry, offset)| {
            let (id, base) = match entry {
                Entry::Chunk { id, .. } => (*id, None),
                Entry::Delta { delta, base, .. } => (*delta, Some(*base)),
                Entry::Zeros { .. } => return None,
            };
            Some(NewChunk {
                id,
                base: base.filter(|base| !self.known.contains(base)),
                // A delta between a delta and a chunk would not help.
                before: base.is_none().then(|| nearest(&self.gone, *offset)).flatten(),
            })
        })
    }

    /// New lists, each with the list of the earlier version that stood nearest.
    pub fn list_bases(&self) -> impl Iterator<Item = (ObjectId, ObjectId)> + '_ {
        let mut old = self.old_lists.clone();
        old.sort_by_key(|(_, offset)| *offset);
        self.new_lists
            .iter()
            .filter_map(move |(id, offset)| Some((*id, nearest(&old, *offset)?)))
    }
}

fn id_of(entry: &Entry) -> Option<ObjectId> {
    match entry {
        Entry::Chunk { id, .. } => Some(*id),
        Entry::Delta { delta, .. } => Some(*delta),
        Entry::Zeros { .. } => None,
    }
}

fn nearest(sorted: &[(ObjectId, u64)], offset: u64) -> Option<ObjectId> {
    let place = sorted.partition_point(|(_, other)| *other < offset);
    let candidates = [place.checked_sub(1), Some(place)];
    candidates
        .into_iter()
        .flatten()
        .filter_map(|place| sorted.get(place))
        .min_by_key(|(_, other)| other.abs_diff(offset))
        .map(|(id, _)| *id)
}

/// Reads a list: what it has goes to `lists` or to `entries`.
fn open(
    store: &Store,
    at: &At,
    cache: &mut Cache,
    bytes: &mut Vec<u8>,
    lists: &mut Vec<At>,
    entries: &mut Vec<(Entry, u64)>,
    needed: bool,
) -> Result<(), Error> {
    match store.read(&at.id, cache, bytes)? {
        Some(Kind::Blob) => {}
        Some(kind) => return Err(Error::NoList { id: at.id, kind }),
        None if needed => {
            return Err(Error::Missing {
                id: at.id,
                list: true,
            });
        }
        None => return Ok(()),
    }
    let list = List::parse(bytes, store.format()).map_err(|fault| Error::List { id: at.id, fault })?;
    list.check(at.id, at.length, at.level)?;
    let below = list.level().checked_sub(1);
    let mut offset = at.offset;
    match list.into_children() {
        Children::Lists(children) => {
            for child in children {
                lists.push(At {
                    id: child.id,
                    offset,
                    length: child.length,
                    level: below,
                });
                offset += child.length;
            }
        }
        Children::Entries(all) => {
            for entry in all {
                entries.push((entry, offset));
                offset += entry.length();
            }
        }
    }
    Ok(())
}
