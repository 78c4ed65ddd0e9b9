//! What the threads that index one pack share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bases::Bases;
use super::error::Error;
use super::examine::Examiner;
use super::references::References;
use super::table::{Object, Resolved};
use super::{Limits, Options};
use crate::progress::Progress;
use crate::store::Store;

/// State of one indexing run.
pub(super) struct Work<'a> {
    pub(super) format: gix_hash::Kind,
    pub(super) limits: Limits,
    pub(super) existing: Option<&'a Store>,
    pub(super) progress: &'a dyn Progress,
    pub(super) bases: Bases,
    pub(super) references: References,
    resolved: Mutex<Resolved>,
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
}

impl<'a> Work<'a> {
    pub(super) fn new(options: &Options<'a>, progress: &'a dyn Progress) -> Work<'a> {
        Work {
            format: options.format,
            limits: options.limits,
            existing: options.existing,
            progress,
            bases: Bases::new(usize::try_from(options.memory).unwrap_or(usize::MAX)),
            references: References::new(options.format),
            resolved: Mutex::new(Resolved::new(options.format)),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
        }
    }

    pub(super) fn examiner(&self) -> Examiner<'_> {
        Examiner::new(self.format, self.existing, &self.references)
    }

    pub(super) fn resolved(&self) -> MutexGuard<'_, Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what objects are, and that they are done.
    pub(super) fn record(&self, objects: &mut Vec<Object>) {
        self.resolved().add(objects);
        objects.clear();
    }

    /// Keeps the first failure and makes the other threads stop.
    pub(super) fn fail(&self, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// True when the work is to stop, because of a failure or the user.
    pub(super) fn stopped(&self) -> bool {
        if self.failed.load(Ordering::Acquire) {
            return true;
        }
        if self.progress.interrupted() {
            self.fail(Error::Interrupted);
            return true;
        }
        false
    }

    /// The failure, if there was one.
    pub(super) fn outcome(&self) -> Result<(), Error> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Ends the run: what was found out, and the references.
    pub(super) fn finish(self) -> (Resolved, References) {
        let resolved = self.resolved.into_inner().unwrap_or_else(PoisonError::into_inner);
        (resolved, self.references)
    }

    /// Checks the size of an object that has to be held in memory.
    pub(super) fn check_held(&self, what: &'static str, size: u64, offset: u64) -> Result<(), Error> {
        let limit = self.limits.held_bytes.min(self.limits.object_bytes);
        if size <= limit {
            return Ok(());
        }
        Err(Error::Limit {
            what: format!("{what} at offset {offset}"),
            size,
            limit,
        })
    }
}
