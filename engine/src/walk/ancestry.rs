//! Questions about commits alone.

use gix_hash::{ObjectId, oid};

use super::Request;
use super::error::Error;
use super::frontier::Frontier;
use super::history::History;
use super::tips::Tips;
use crate::progress::Progress;
use crate::store::Store;

/// How two commits lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AheadBehind {
    /// How many commits the first reaches and the second does not.
    pub ahead: usize,
    /// How many commits the second reaches and the first does not.
    pub behind: usize,
}

/// True if `ancestor` is `descendant` or one of those that come before it. Both must be commits that exist. `shallow` are
/// the commits whose parents are cut off.
///
/// The answer is exact. The search ends as soon as nothing but ancestors of `ancestor` is left, and with a commit-graph
/// it does not go below the generation of `ancestor`.
pub fn is_ancestor(
    store: &Store,
    ancestor: &oid,
    descendant: &oid,
    shallow: &[ObjectId],
    progress: &dyn Progress,
) -> Result<bool, Error> {
    let mut history = History::new(store, &cut(shallow));
    let missing = || Error::Missing {
        id: ancestor.to_owned(),
        referrer: None,
    };
    let commit = history.commit(ancestor, None)?.ok_or_else(missing)?;
    if ancestor == descendant {
        return Ok(true);
    }
    // What the ancestor's parents reach cannot reach the ancestor.
    Frontier::reaches(
        &mut history,
        descendant,
        (ancestor, commit.generation),
        &commit.parents,
        progress,
    )
}

/// Counts the commits that one of two has and the other has not. Without a commit-graph, wrong clocks may make the counts
/// too large.
pub fn ahead_behind(
    store: &Store,
    first: &oid,
    second: &oid,
    shallow: &[ObjectId],
    progress: &dyn Progress,
) -> Result<AheadBehind, Error> {
    let mut history = History::new(store, &cut(shallow));
    let mut count = |wants: &oid, haves: &oid| {
        Frontier::find(&mut history, &[wants.to_owned()], &[haves.to_owned()], progress)
            .map(|frontier| frontier.new_len())
    };
    Ok(AheadBehind {
        ahead: count(first, second)?,
        behind: count(second, first)?,
    })
}

/// The commits that the wants reach and the haves do not, parents before children, otherwise oldest first. Tags are
/// followed; trees and blobs have no commits.
pub fn commits(
    store: &Store,
    request: &Request<'_>,
    progress: &dyn Progress,
) -> Result<Vec<ObjectId>, Error> {
    let haves = Tips::of(store, request.haves, &Tips::default(), true)?;
    let wants = Tips::of(store, request.wants, &haves, false)?;
    let mut history = History::new(store, request);
    let frontier = Frontier::find(&mut history, &wants.commits, &haves.commits, progress)?;
    Ok(frontier.parents_first().iter().map(|commit| commit.id).collect())
}

fn cut(shallow: &[ObjectId]) -> Request<'_> {
    Request {
        shallow,
        ..Request::default()
    }
}
