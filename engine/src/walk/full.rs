//! Everything that tips reach.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gix_hash::{ObjectId, oid};

use super::Request;
use super::covered::{self, Failure};
use super::error::Error;
use super::frontier::Frontier;
use super::history::History;
use super::marks::{BLOB, COMMIT, KNOWN, Marked, Marks, TAG, TREE};
use super::name_hash::ROOT;
use super::objects::Objects;
use super::read_ahead::ReadAhead;
use super::tips::Tips;
use super::trees::{self, Level, Side};
use crate::progress::Progress;
use crate::store::Position;
use crate::store::bitmap::passed_over;

/// How many commits pass between two looks at the progress.
const TICK: u64 = 1024;

/// Finds everything that `wants` reach.
pub(super) fn everything(
    history: &mut History<'_>,
    wants: &Tips,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Objects, Error> {
    // All of history rests on these files here, and reading them takes little beside it.
    history.check_graph();
    if let Some(objects) = with_bitmap(history, wants, &Tips::default(), request, progress)? {
        return Ok(objects);
    }
    let marks = Marks::new(history.store());
    let mut roots = commits(&marks, history, &wants.commits, request.threads(), progress)?;
    others(&marks, &mut roots, wants, Side::New);
    trees::expand(&marks, roots, Side::New, request.threads(), progress)?;
    Ok(marks.into_objects())
}

/// Finds what `wants` reach and `haves` do not, where that is a large part of history. All that the receiver's commits at
/// the edge hold is marked as known first, so that exactly what the receiver lacks remains. The search of `frontier`
/// need not be complete: with a bitmap it is not needed.
pub(super) fn beyond(
    history: &mut History<'_>,
    mut frontier: Frontier,
    (wants, haves): (&Tips, &Tips),
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Objects, Error> {
    if let Some(objects) = with_bitmap(history, wants, haves, request, progress)? {
        return Ok(objects);
    }
    frontier.run(usize::MAX, history, progress)?;
    let marks = Marks::new(history.store());
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
        let tree = commit.tree.expect("new commits have been read");
        root(&marks, &mut new, &commit.id, &tree)?;
    }
    trees::expand(&marks, new, Side::New, request.threads(), progress)?;
    Ok(marks.into_objects())
}

/// Finds what `wants` reach and `haves` do not with the help of a bitmap. `None` if there is none that can be used.
fn with_bitmap(
    history: &mut History<'_>,
    wants: &Tips,
    haves: &Tips,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Option<Objects>, Error> {
    // The sets hold what lies behind the commits where a shallow history ends.
    if request.verify || !request.shallow.is_empty() {
        return Ok(None);
    }
    let Some(bitmap) = history.store().bitmap() else {
        return Ok(None);
    };
    let store = history.store();
    let damaged = |error| {
        passed_over(&bitmap.path(store), &error);
        Ok(None)
    };
    if haves.is_empty()
        && let Err(error) = bitmap.verify()
    {
        return damaged(error);
    }
    let marks = Marks::new(store);
    for (tips, side) in [(haves, Side::Known), (wants, Side::New)] {
        let above = match covered::mark(&marks, &bitmap, history, &tips.commits, side, progress) {
            Ok(above) => above,
            Err(Failure::Bitmap(error)) => return damaged(error),
            Err(Failure::Walk(error)) => return Err(error),
        };
        let mut level = Level::default();
        others(&marks, &mut level, tips, side);
        for commit in above {
            match side {
                Side::New => root(&marks, &mut level, &commit.id, &commit.tree)?,
                Side::Known => {
                    marks.mark(&commit.id, COMMIT | KNOWN, ROOT);
                    level.add(&marks, &commit.tree, TREE | KNOWN);
                }
            }
        }
        trees::expand(&marks, level, side, request.threads(), progress)?;
    }
    Ok(Some(marks.into_objects()))
}

/// Marks a new commit and takes up its tree.
fn root(marks: &Marks<'_>, level: &mut Level, commit: &oid, tree: &oid) -> Result<(), Error> {
    marks.mark(commit, COMMIT, ROOT);
    match level.add(marks, tree, TREE) {
        Marked::Missing => Err(Error::Missing {
            id: tree.to_owned(),
            referrer: Some(commit.to_owned()),
        }),
        _ => Ok(()),
    }
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
    history: &mut History<'_>,
    tips: &[ObjectId],
    threads: usize,
    progress: &dyn Progress,
) -> Result<Level, Error> {
    let store = marks.store();
    // A commit-graph answers at once, and parents that are cut off are not to be read.
    let mut ahead = history.is_plain().then(|| ReadAhead::new(store, threads));
    let mut queue = Queue::default();
    let mut roots = Level::default();
    for id in tips {
        queue.add(marks, id, None)?;
    }
    let mut done = 0;
    loop {
        // Loose commits are newer than packed ones as a rule.
        let id = match queue.loose.pop() {
            Some(id) => id,
            None => match queue.packed.pop() {
                None => return Ok(roots),
                Some(Reverse((_, _, at))) => {
                    let at = Position(at);
                    if let Some(commit) = ahead.as_mut().and_then(|ahead| ahead.take(at)) {
                        roots.add_packed(marks, commit.tree, TREE);
                        for parent in commit.parent.iter().chain(&commit.others) {
                            queue.add_packed(marks, *parent);
                        }
                        tick(&mut done, progress)?;
                        continue;
                    }
                    store.id(at).to_owned()
                }
            },
        };
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
        tick(&mut done, progress)?;
    }
}

fn tick(done: &mut u64, progress: &dyn Progress) -> Result<(), Error> {
    *done += 1;
    if done.is_multiple_of(TICK) {
        progress.advance(TICK);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
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
        match marks.store().find(id) {
            Some(at) => self.add_packed(marks, at),
            None => match marks.mark(id, COMMIT, ROOT) {
                Marked::Missing => {
                    return Err(Error::Missing {
                        id: id.to_owned(),
                        referrer: referrer.map(ToOwned::to_owned),
                    });
                }
                Marked::Loose => self.loose.push(id.to_owned()),
                _ => {}
            },
        }
        Ok(())
    }

    fn add_packed(&mut self, marks: &Marks<'_>, at: Position) {
        if marks.mark_packed(at, COMMIT, ROOT) {
            let (pack, local) = marks.store().pack_of(at);
            let number = marks.store().pack_number(at) as u32;
            self.packed.push(Reverse((number, pack.offset(local), at.0)));
        }
    }
}
