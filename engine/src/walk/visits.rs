//! Marks what the entries of trees refer to, many at a time.
//!
//! A lookup spends most of its time waiting for memory. With many at hand, that is asked for all of them at once.

use gix_hash::{ObjectId, oid};

use super::error::Error;
use super::marks::{BLOB, Marked, Marks, TREE};
use super::name_hash;
use super::trees::{Level, Side};
use crate::object::tree::Entry;
use crate::store::Position;

/// How many entries wait until they are looked up.
const WAITING: usize = 128;

/// The entries that one thread has found on a level and not looked up yet.
pub(super) struct Visits<'m, 's> {
    marks: &'m Marks<'s>,
    side: Side,
    /// What is being read: its place in the level.
    place: usize,
    ids: Vec<ObjectId>,
    /// Kind and name hash of each.
    how: Vec<(u8, u32)>,
    /// The tree that has each, and its place in the level.
    from: Vec<(usize, ObjectId)>,
    positions: Vec<Option<Position>>,
    /// New trees.
    next: Level,
    /// The missing object that comes first in the order of the level.
    missing: Option<(usize, Error)>,
}

impl<'m, 's> Visits<'m, 's> {
    pub(super) fn new(marks: &'m Marks<'s>, side: Side) -> Self {
        Visits {
            marks,
            side,
            place: 0,
            ids: Vec::with_capacity(WAITING),
            how: Vec::with_capacity(WAITING),
            from: Vec::with_capacity(WAITING),
            positions: Vec::with_capacity(WAITING),
            next: Level::default(),
            missing: None,
        }
    }

    /// What follows is from the tree at a place of the level.
    pub(super) fn begin(&mut self, place: usize) {
        self.place = place;
    }

    /// Marks what an entry of the folder `tree` refers to, now or later; `folder` is the hash of the folder's path.
    #[inline]
    pub(super) fn add(&mut self, entry: &Entry<'_>, folder: u32, tree: &oid) {
        if entry.is_gitlink() {
            return;
        }
        let kind = if entry.is_tree() { TREE } else { BLOB };
        self.ids.push(entry.id.to_owned());
        self.how
            .push((kind | self.side.bits(), name_hash::child(folder, entry.name)));
        self.from.push((self.place, tree.to_owned()));
        if self.ids.len() == WAITING {
            self.flush();
        }
    }

    /// Marks what is waiting, appends all trees that were found since the last call to `next`, and returns the first
    /// missing object, if any, with the place in the level of the tree that has it.
    pub(super) fn end(&mut self, next: &mut Level) -> Option<(usize, Error)> {
        self.flush();
        next.append(&mut self.next);
        self.missing.take()
    }

    fn flush(&mut self) {
        let Visits {
            marks,
            side,
            ids,
            how,
            from,
            positions,
            next,
            missing,
            ..
        } = self;
        marks.mark_all(ids, how, positions, |number, marked| {
            if marked == Marked::Missing && *side == Side::New {
                let (place, tree) = from[number];
                if missing.as_ref().is_none_or(|(first, _)| place < *first) {
                    let error = Error::Missing {
                        id: ids[number],
                        referrer: Some(tree),
                    };
                    *missing = Some((place, error));
                }
            } else if how[number].0 & TREE != 0 {
                next.found(marked, &ids[number]);
            }
        });
        ids.clear();
        how.clear();
        from.clear();
    }
}
