//! Answers whether tips are complete, given a frontier of tips that were complete before.

use gix_hash::ObjectId;

use crate::phase::Phase;
use crate::progress::Progress;
use crate::store::Store;
use crate::walk::{self, Request};

/// The answer of [`check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connectivity {
    /// Everything that the tips reach is there.
    Connected {
        /// How many objects are new beyond the frontier.
        objects: u32,
    },
    /// Something is not.
    Missing {
        /// The first absent object that was found.
        id: ObjectId,
        /// What refers to it; `None` for a tip, of either kind.
        referrer: Option<ObjectId>,
    },
}

/// What to check.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    /// What must be complete: objects of any kind; tags are followed.
    pub tips: &'a [ObjectId],
    /// What was complete before. It must still be there; what it reaches is believed.
    pub frontier: &'a [ObjectId],
    /// Commits whose parents may be absent, as `.git/shallow` lists them.
    pub shallow: &'a [ObjectId],
    /// How many threads to use; 0 for as many as there are processors.
    pub threads: usize,
}

/// Checks that everything that the tips reach and the frontier does not is in the store: commits, trees and tags are
/// read, blobs are looked up. Costs as much as what is new; without a frontier, as much as all of history.
///
/// Damaged objects are errors; absent ones are an answer.
pub fn check(
    store: &Store,
    question: &Question<'_>,
    progress: &dyn Progress,
) -> Result<Connectivity, walk::Error> {
    let _phase = Phase::begin("connect");
    for id in question.frontier {
        if !store.contains(id) {
            return Ok(Connectivity::Missing {
                id: *id,
                referrer: None,
            });
        }
    }
    let request = Request {
        wants: question.tips,
        haves: question.frontier,
        shallow: question.shallow,
        verify: true,
        threads: question.threads,
    };
    match walk::enumerate(store, &request, progress) {
        Ok(objects) => Ok(Connectivity::Connected {
            objects: objects.len(),
        }),
        Err(walk::Error::Missing { id, referrer }) => Ok(Connectivity::Missing { id, referrer }),
        Err(error) => Err(error),
    }
}
