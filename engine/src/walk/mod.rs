//! From wants and haves to the set of objects to send.
//!
//! [`enumerate`] answers three questions at once: which objects a receiver lacks, whether all of them are there (an
//! absent one is an error that names it), and under what names they were found, which the delta search wants to know.
//!
//! Without haves, all of history is read: commits first, then trees level by level. With haves, only what is newer than
//! them.
//!
//! Chunked files lead on from blobs to lists and chunks, see [`crate::chunked`]; that is looked into once the set is
//! known, and only in repositories that are marked as having such files.
//!
//! Replaced objects (`refs/replace`) and grafts are never followed, and submodule entries are not objects of this
//! repository.

mod ancestry;
mod changes;
mod chunks;
mod covered;
mod error;
mod frontier;
mod full;
mod history;
mod marks;
pub mod name_hash;
mod objects;
mod read_ahead;
mod tips;
mod tree_cache;
mod tree_reader;
mod trees;
mod visits;

use gix_hash::ObjectId;

pub use ancestry::{AheadBehind, ahead_behind, commits, is_ancestor};
pub use error::{Error, Fault};
pub use objects::{Counts, Object, Objects, Place};

use changes::Changes;
use frontier::Frontier;
use history::History;
use tips::Tips;

use crate::notice;
use crate::phase::Phase;
use crate::progress::{Progress, Unit};
use crate::store::Store;

/// From so many new commits on, their trees are read level by level instead of being compared commit by commit.
const LARGE: usize = 8192;

/// What to enumerate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// What the receiver wants: objects of any kind. All must exist.
    pub wants: &'a [ObjectId],
    /// What the receiver has, with everything that it reaches. Ids that the store does not have are ignored.
    pub haves: &'a [ObjectId],
    /// Commits whose parents are cut off, as `.git/shallow` lists them.
    pub shallow: &'a [ObjectId],
    /// Look at every object instead of believing reachability bitmaps and commit-graphs, which would find everything
    /// sooner. For checks.
    pub verify: bool,
    /// How many threads to use; 0 for as many as there are processors. The result is the same for any number.
    pub threads: usize,
}

impl Request<'_> {
    fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |number| number.get()),
            threads => threads,
        }
    }
}

/// Finds every object that the wants reach and that the haves do not bring along.
///
/// With haves, a few objects too many may be found, as in Git: old content that comes back, for example. Never too few.
pub fn enumerate(store: &Store, request: &Request<'_>, progress: &dyn Progress) -> Result<Objects, Error> {
    enumerate_with(store, request, LARGE, progress)
}

/// [`enumerate`] with the number of commits from which on it goes level by level.
fn enumerate_with(
    store: &Store,
    request: &Request<'_>,
    large: usize,
    progress: &dyn Progress,
) -> Result<Objects, Error> {
    let error = match enumerate_once(store, request, large, progress) {
        Err(error) if !request.verify && error.is_contradiction() => error,
        result => return result,
    };
    // It may be the commit-graph or a bitmap that is wrong, and not the objects.
    let plain = Request {
        verify: true,
        ..*request
    };
    let Ok(objects) = enumerate_once(store, &plain, large, progress) else {
        return Err(error);
    };
    let objects_dir = store.objects_dir();
    let fault = format!(
        "the commit-graph or a bitmap in {} contradicts the objects ({error})",
        objects_dir.display()
    );
    notice::passed_over(objects_dir, &fault);
    Ok(objects)
}

fn enumerate_once(
    store: &Store,
    request: &Request<'_>,
    large: usize,
    progress: &dyn Progress,
) -> Result<Objects, Error> {
    let mut phase = Phase::begin("enumerate");
    progress.begin("Finding objects", None, Unit::Objects);
    let haves = Tips::of(store, request.haves, &Tips::default(), true)?;
    let wants = Tips::of(store, request.wants, &haves, false)?;
    let mut history = History::new(store, request);
    let objects = if haves.is_empty() {
        full::everything(&mut history, &wants, request, progress)?
    } else {
        let mut frontier = Frontier::begin(&mut history, &wants.commits, &haves.commits)?;
        let complete = frontier.run(large, &mut history, progress)?;
        match complete && frontier.new_len() < large {
            true => Changes::new(store).find(&frontier, &wants, &haves, progress)?,
            false => full::beyond(&mut history, frontier, (&wants, &haves), request, progress)?,
        }
    };
    let objects = chunks::follow(store, objects, progress)?;
    progress.end();
    phase.objects(objects.len().into());
    Ok(objects)
}

#[cfg(test)]
mod tests;
