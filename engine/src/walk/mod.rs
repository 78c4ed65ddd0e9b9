//! From wants and haves to the set of objects to send.
//!
//! [`enumerate`] answers three questions at once: which objects a receiver lacks, whether all of them are there (an
//! absent one is an error that names it), and under what names they were found, which the delta search wants to know.
//!
//! Without haves, all of history is read: commits first, then trees level by level. With haves, only what is newer than
//! them.
//!
//! Replaced objects (`refs/replace`) and grafts are never followed, and submodule entries are not objects of this
//! repository.

mod error;
mod full;
mod history;
mod marks;
pub mod name_hash;
mod objects;
mod tips;
mod tree_cache;
mod trees;

use gix_hash::ObjectId;

pub use error::{Error, Fault};
pub use objects::{Counts, Object, Objects, Place};

use crate::progress::Progress;
use crate::store::Store;

/// What to enumerate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// What the receiver wants: objects of any kind. All must exist.
    pub wants: &'a [ObjectId],
    /// What the receiver has, with everything that it reaches. Ids that the store does not have are ignored.
    pub haves: &'a [ObjectId],
    /// Commits whose parents are cut off, as `.git/shallow` lists them.
    pub shallow: &'a [ObjectId],
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
    full::enumerate(store, request, progress)
}
