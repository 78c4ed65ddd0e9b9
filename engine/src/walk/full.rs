//! Everything that tips reach.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gix_hash::{ObjectId, oid};

use super::Request;
use super::error::Error;
use super::history::History;
use super::marks::{BLOB, COMMIT, KNOWN, Marked, Marks, TAG, TREE};
use super::name_hash::ROOT;
use super::objects::Objects;
use super::tips::Tips;
use super::trees::{self, Level, Side};
use crate::progress::{Progress, Unit};
use crate::store::{Position, Store};

/// How many commits pass between two looks at the progress.
const TICK: u64 = 1024;

/// Finds everything that `request.wants` reach.
pub(super) fn enumerate(
    store: &Store,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Objects, Error> {
    progress.begin("Finding objects", None, Unit::Objects);
    let known = Tips::of(store, request.haves, &Tips::default(), true)?;
    let tips = Tips::of(store, request.wants, &known, false)?;
    let marks = Marks::new(store);
    mark_known(&marks, &known, request, progress)?;
    for id in &tips.tags {
        marks.mark(id, TAG, ROOT);
    }
    let mut roots = commits(&marks, &tips.commits, Side::New, request, progress)?;
    for id in &tips.trees {
        roots.add(&marks, id, TREE);
    }
    for id in &tips.blobs {
        marks.mark(id, BLOB, ROOT);
    }
    trees::expand(&marks, roots, Side::New, request.threads(), progress)?;
    progress.end();
    Ok(marks.into_objects())
}

/// Marks everything that the receiver's tips reach.
fn mark_known(
    marks: &Marks<'_>,
    tips: &Tips,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    for id in &tips.tags {
        marks.mark(id, TAG | KNOWN, ROOT);
    }
    let mut roots = commits(marks, &tips.commits, Side::Known, request, progress)?;
    for id in &tips.trees {
        roots.add(marks, id, TREE | KNOWN);
    }
    for id in &tips.blobs {
        marks.mark(id, BLOB | KNOWN, ROOT);
    }
    trees::expand(marks, roots, Side::Known, request.threads(), progress)
}

/// Marks all commits that `tips` reach. Returns their trees, unread.
fn commits(
    marks: &Marks<'_>,
    tips: &[ObjectId],
    side: Side,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Level, Error> {
    let mut history = History::new(marks.store(), request.shallow);
    let mut queue = Queue::default();
    let mut roots = Level::default();
    for id in tips {
        queue.add(marks, id, side, None)?;
    }
    let mut done = 0;
    while let Some(id) = queue.next(marks.store()) {
        let commit = history
            .commit(&id, None)?
            .ok_or(Error::Missing { id, referrer: None })?;
        let tree = roots.add(marks, &commit.tree, TREE | side.bits());
        if tree == Marked::Missing && side == Side::New {
            return Err(Error::Missing {
                id: commit.tree,
                referrer: Some(id),
            });
        }
        for parent in &commit.parents {
            queue.add(marks, parent, side, Some(&id))?;
        }
        done += 1;
        if done % TICK == 0 {
            progress.advance(TICK);
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }
    Ok(roots)
}

/// Commits to read. Packed ones come in the order of the packs, where Git lays them newest first: reading follows the
/// file, and memory holds the few that are ahead.
#[derive(Debug, Default)]
struct Queue {
    packed: BinaryHeap<Reverse<(u32, u64, u32)>>,
    loose: Vec<ObjectId>,
}

impl Queue {
    fn add(&mut self, marks: &Marks<'_>, id: &oid, side: Side, referrer: Option<&oid>) -> Result<(), Error> {
        match marks.mark(id, COMMIT | side.bits(), ROOT) {
            Marked::Packed(at) => {
                let (pack, local) = marks.store().pack_of(at);
                let number = marks.store().pack_number(at) as u32;
                self.packed.push(Reverse((number, pack.offset(local), at.0)));
            }
            Marked::Loose => self.loose.push(id.to_owned()),
            Marked::Seen => {}
            Marked::Missing if side == Side::Known => {}
            Marked::Missing => {
                return Err(Error::Missing {
                    id: id.to_owned(),
                    referrer: referrer.map(ToOwned::to_owned),
                });
            }
        }
        Ok(())
    }

    fn next(&mut self, store: &Store) -> Option<ObjectId> {
        // Loose commits are newer than packed ones as a rule.
        self.loose.pop().or_else(|| {
            let Reverse((_, _, at)) = self.packed.pop()?;
            Some(store.id(Position(at)).to_owned())
        })
    }
}
