//! What reachability bitmaps already know.
//!
//! Commits are read, newest first, down to those that a bitmap has a set for. These sets together are what is covered;
//! what remains are the few commits made since the bitmap was written, whose trees have to be read.

use std::collections::BinaryHeap;

use gix_hash::ObjectId;
use gix_object::Kind;

use super::error::Error;
use super::history::History;
use super::marks::{self, IdSet, KNOWN, Marks, OPEN};
use super::trees::Side;
use crate::progress::Progress;
use crate::store::bitmap::Damaged;
use crate::store::{Bitmap, Bits, Store};

/// How many commits pass between two looks at the progress.
const TICK: usize = 1024;

/// A commit above everything that is covered.
pub(super) struct Above {
    pub(super) id: ObjectId,
    pub(super) tree: ObjectId,
}

/// Why nothing is covered.
pub(super) enum Failure {
    /// The bitmap cannot be used, so the walk has to start without.
    Bitmap(Damaged),
    /// The walk cannot go on.
    Walk(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Walk(error)
    }
}

impl From<Damaged> for Failure {
    fn from(error: Damaged) -> Failure {
        Failure::Bitmap(error)
    }
}

/// Marks all that bitmaps say of what `tips` reach, and returns the commits that they say nothing of. Those of the
/// receiver's side that are not there are passed over.
pub(super) fn mark(
    marks: &Marks<'_>,
    bitmap: &Bitmap,
    history: &mut History<'_>,
    tips: &[ObjectId],
    side: Side,
    progress: &dyn Progress,
) -> Result<Vec<Above>, Failure> {
    let store = marks.store();
    let mut covered = Bits::new(bitmap.len());
    let mut above = Vec::new();
    let mut queue = Queue::default();
    for id in tips {
        queue.add(store, bitmap, history, (*id, None), side, &mut covered)?;
    }
    while let Some((_, place)) = queue.heap.pop() {
        let Waiting { id, tree, parents } = std::mem::take(&mut queue.waiting[place]);
        // What came later may have covered it in the meantime.
        if bitmap.bit(store, &id).is_some_and(|bit| covered.contains(bit)) {
            continue;
        }
        for parent in parents {
            queue.add(store, bitmap, history, (parent, Some(id)), side, &mut covered)?;
        }
        above.push(Above { id, tree });
        if above.len().is_multiple_of(TICK) && progress.interrupted() {
            return Err(Error::Interrupted.into());
        }
    }
    for kind in [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag] {
        let mut bits = bitmap.kind(kind)?;
        bits.intersect(&covered);
        let mut mark = marks::bit(kind) | if side == Side::Known { KNOWN } else { 0 };
        if kind == Kind::Tree {
            // All that a covered tree reaches is covered.
            mark |= OPEN;
        }
        for bit in bits.iter() {
            let at = bitmap.position(store, bit).ok_or(Damaged::order())?;
            let name_hash = match side {
                Side::New => bitmap.name_hash_at(store, bit).unwrap_or(0),
                Side::Known => 0,
            };
            marks.mark_packed(at, mark, name_hash);
        }
    }
    Ok(above)
}

/// A commit whose parents come next.
#[derive(Debug)]
struct Waiting {
    id: ObjectId,
    tree: ObjectId,
    parents: Vec<ObjectId>,
}

impl Default for Waiting {
    fn default() -> Self {
        let null = ObjectId::null(gix_hash::Kind::Sha1);
        Waiting {
            id: null,
            tree: null,
            parents: Vec::new(),
        }
    }
}

/// Commits that no set covers, newest first.
#[derive(Debug, Default)]
struct Queue {
    heap: BinaryHeap<((u32, i64), usize)>,
    waiting: Vec<Waiting>,
    seen: IdSet,
}

impl Queue {
    fn add(
        &mut self,
        store: &Store,
        bitmap: &Bitmap,
        history: &mut History<'_>,
        (id, referrer): (ObjectId, Option<ObjectId>),
        side: Side,
        covered: &mut Bits,
    ) -> Result<(), Failure> {
        if !self.seen.insert(id) {
            return Ok(());
        }
        if let Some(bit) = bitmap.bit(store, &id) {
            if covered.contains(bit) {
                return Ok(());
            }
            if let Some(set) = bitmap.reachable(store, &id) {
                covered.union(&set?);
                return Ok(());
            }
        }
        match history.commit(&id, referrer.as_deref())? {
            Some(commit) => {
                self.heap
                    .push(((commit.generation, commit.date), self.waiting.len()));
                self.waiting.push(Waiting {
                    id,
                    tree: commit.tree,
                    parents: commit.parents,
                });
                Ok(())
            }
            None if side == Side::Known => Ok(()),
            None => Err(Error::Missing { id, referrer }.into()),
        }
    }
}
