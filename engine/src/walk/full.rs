//! Everything that tips reach.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gix_hash::{ObjectId, oid};

use super::Request;
use super::error::Error;
use super::frontier::Frontier;
use super::history::History;
use super::marks::{BLOB, COMMIT, KNOWN, Marked, Marks, TAG, TREE};
use super::name_hash::ROOT;
use super::objects::Objects;
use super::tips::Tips;
use super::trees::{self, Level, Side};
use crate::progress::Progress;
use crate::store::{Position, Store};

/// How many commits pass between two looks at the progress.
const TICK: u64 = 1024;

/// Finds everything that `request.wants` reach.
pub(super) fn enumerate(
    store: &Store,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Objects, Error> {
    let wants = Tips::of(store, request.wants, &Tips::default(), false)?;
    let marks = Marks::new(store);
    let mut roots = commits(&marks, &wants.commits, request, progress)?;
    others(&marks, &mut roots, &wants, Side::New);
    trees::expand(&marks, roots, Side::New, request.threads(), progress)?;
    Ok(marks.into_objects())
}

/// Finds what the new commits of `frontier` and the other `wants` reach, where that is a large part of history. All that
/// the commits at the edge hold is marked as known first, so that exactly what the receiver lacks remains.
pub(super) fn beyond(
    store: &Store,
    frontier: &Frontier,
    wants: &Tips,
    haves: &Tips,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Objects, Error> {
    let marks = Marks::new(store);
    let (mut known, mut new) = (Level::default(), Level::default());
    others(&marks, &mut known, haves, Side::Known);
    for commit in frontier.new_commits() {
        for &parent in &commit.parents {
            let parent = &frontier.nodes()[parent as usize];
            if let (true, Some(tree)) = (parent.is_old(), parent.tree) {
                known.add(&marks, &tree, TREE | KNOWN);
            }
        }
    }
    trees::expand(&marks, known, Side::Known, request.threads(), progress)?;
    others(&marks, &mut new, wants, Side::New);
    for commit in frontier.new_commits() {
        marks.mark(&commit.id, COMMIT, ROOT);
        let tree = commit.tree.expect("new commits have been read");
        if new.add(&marks, &tree, TREE) == Marked::Missing {
            return Err(Error::Missing {
                id: tree,
                referrer: Some(commit.id),
            });
        }
    }
    trees::expand(&marks, new, Side::New, request.threads(), progress)?;
    Ok(marks.into_objects())
}

/// Marks tips that are no commits.
fn others(marks: &Marks<'_>, level: &mut Level, tips: &Tips, side: Side) {
    for id in &tips.tags {
        marks.mark(id, TAG | side.bits(), ROOT);
    }
    for id in &tips.trees {
        level.add(marks, id, TREE | side.bits());
    }
    for id in &tips.blobs {
        marks.mark(id, BLOB | side.bits(), ROOT);
    }
}

/// Marks all commits that `tips` reach. Returns their trees, unread.
fn commits(
    marks: &Marks<'_>,
    tips: &[ObjectId],
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Level, Error> {
    let mut history = History::new(marks.store(), request.shallow);
    let mut queue = Queue::default();
    let mut roots = Level::default();
    for id in tips {
        queue.add(marks, id, None)?;
    }
    let mut done = 0;
    while let Some(id) = queue.next(marks.store()) {
        let commit = history
            .commit(&id, None)?
            .ok_or(Error::Missing { id, referrer: None })?;
        if roots.add(marks, &commit.tree, TREE) == Marked::Missing {
            return Err(Error::Missing {
                id: commit.tree,
                referrer: Some(id),
            });
        }
        for parent in &commit.parents {
            queue.add(marks, parent, Some(&id))?;
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
    fn add(&mut self, marks: &Marks<'_>, id: &oid, referrer: Option<&oid>) -> Result<(), Error> {
        match marks.mark(id, COMMIT, ROOT) {
            Marked::Packed(at) => {
                let (pack, local) = marks.store().pack_of(at);
                let number = marks.store().pack_number(at) as u32;
                self.packed.push(Reverse((number, pack.offset(local), at.0)));
            }
            Marked::Loose => self.loose.push(id.to_owned()),
            Marked::Seen => {}
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
