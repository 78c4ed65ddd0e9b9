//! What the threads that index one pack share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::bases::Bases;
use super::batch::Early;
use super::error::Error;
use super::examine::Existing;
use super::pack_file::PackFile;
use super::references::References;
use super::table::{Entries, Resolved};
use super::{Limits, Options};
use crate::progress::Progress;

/// State of one indexing run.
pub(super) struct Work<'a> {
    pub(super) format: gix_hash::Kind,
    pub(super) limits: Limits,
    pub(super) existing: Option<Existing<'a>>,
    pub(super) safe_names: bool,
    pub(super) progress: &'a dyn Progress,
    pub(super) bases: Bases,
    pub(super) early: Early,
    pub(super) references: References,
    /// The file that the stream is written to.
    pub(super) file: PackFile,
    /// How much of the stream is in the file.
    pub(super) settled: AtomicU64,
    entries: RwLock<Entries>,
    resolved: Mutex<Resolved>,
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
}

impl<'a> Work<'a> {
    pub(super) fn new(options: &Options<'a>, file: PackFile, progress: &'a dyn Progress) -> Work<'a> {
        Work {
            format: options.format,
            limits: options.limits,
            existing: options.existing.map(Existing::of),
            safe_names: options.safe_names,
            progress,
            bases: Bases::new(usize::try_from(options.memory).unwrap_or(usize::MAX)),
            early: Early::default(),
            references: References::new(options.format),
            file,
            settled: AtomicU64::new(0),
            entries: RwLock::default(),
            resolved: Mutex::new(Resolved::new(options.format)),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
        }
    }

    pub(super) fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entries_mut(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn resolved(&self) -> MutexGuard<'_, Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Ends the run: the entries, what was found out about them, and the references.
    pub(super) fn finish(self) -> (Entries, Resolved, References) {
        let entries = self.entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        let resolved = self.resolved.into_inner().unwrap_or_else(PoisonError::into_inner);
        (entries, resolved, self.references)
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
