//! Resolves entries while the stream is still coming in, as far as their bases are at hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gix_hash::ObjectId;
use gix_object::Kind;

use super::bases::Base;
use super::error::Error;
use super::examine::{Examined, Examiner, Origin};
use super::make::Maker;
use super::work::Work;
use crate::pack::delta;

/// A result larger than this waits until the stream has ended, when memory is not shared with entries in flight.
pub(super) const LARGEST_EARLY: u64 = 2 * 1024 * 1024;

/// How much was gained by resolving early, and at which cost.
///
/// When the file is not in an order that suits (bases far from their deltas), making bases again and again would cost
/// more than reading the deltas once more when all bases are known. So it may take a small part of the work only.
#[derive(Debug, Default)]
pub(super) struct Early {
    resolved: AtomicU64,
    made: AtomicU64,
}

impl Early {
    /// `bytes` were made by applying a delta to a base at hand.
    fn resolved(&self, bytes: u64) {
        self.resolved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// `bytes` were made for the second time.
    pub(super) fn made_again(&self, bytes: u64) {
        self.made.fetch_add(bytes, Ordering::Relaxed);
    }

    fn allows_making(&self) -> bool {
        let allowed = self.resolved.load(Ordering::Relaxed) / 16 + LARGEST_EARLY;
        self.made.load(Ordering::Relaxed) <= allowed
    }
}

/// Consecutive entries, inflated.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) items: Vec<Item>,
    pub(super) bytes: usize,
}

/// One inflated entry.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) entry: u32,
    pub(super) offset: u64,
    pub(super) content: Content,
    pub(super) bytes: Vec<u8>,
}

/// What an entry holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    /// An object.
    Whole(Kind),
    /// A delta to an earlier entry.
    DeltaToEntry(u32),
    /// A delta to an object anywhere in the pack.
    DeltaToId(ObjectId),
}

/// What one thread needs to resolve entries.
pub(super) struct Worker<'w> {
    pub(super) examiner: Examiner<'w>,
    pub(super) maker: Maker,
    /// Deltas of the batch before whose base was not known yet.
    carried: Vec<Item>,
}

impl<'w> Worker<'w> {
    pub(super) fn new(work: &'w Work<'_>) -> Worker<'w> {
        Worker {
            examiner: Examiner::new(work.format, work.existing, work.safe_names, &work.references),
            maker: Maker::new(),
            carried: Vec::new(),
        }
    }

    /// Finds out the ids of the objects in `batch` and keeps them as bases. Deltas whose base is out of reach are tried
    /// again after the next batch or noted for the end.
    pub(super) fn resolve(&mut self, work: &Work<'_>, batch: Batch) -> Result<(), Error> {
        let mut without_base = std::mem::take(&mut self.carried);
        let first_try = without_base.len();
        for item in batch.items {
            if let Content::Whole(kind) = item.content {
                let Item {
                    entry, offset, bytes, ..
                } = item;
                let examined = self.examiner.object(kind, &bytes, Origin::Whole, offset)?;
                done(work, entry, kind, examined, bytes);
                continue;
            }
            match base_entry(work, &item).and_then(|base| work.bases.get(base)) {
                Some(base) => self.delta(work, base, item)?,
                None => without_base.push(item),
            }
        }
        // What another thread has resolved meanwhile is there now; other bases may be made again.
        for (number, item) in without_base.into_iter().enumerate() {
            let Some(entry) = base_entry(work, &item) else {
                match number < first_try {
                    true => work.resolved().postpone(item.content, item.entry),
                    false => self.carried.push(item),
                }
                continue;
            };
            let base = match work.bases.get(entry) {
                None if work.early.allows_making() => self.maker.base(work, entry, LARGEST_EARLY)?,
                base => base,
            };
            match base {
                Some(base) => self.delta(work, base, item)?,
                None => work.resolved().postpone(item.content, item.entry),
            }
        }
        Ok(())
    }

    /// Applies a delta, unless its result is large.
    fn delta(&mut self, work: &Work<'_>, base: Base, item: Item) -> Result<(), Error> {
        let Item {
            entry, offset, bytes, ..
        } = item;
        let malformed = |source| Error::Delta { offset, source };
        let (_, size, _) = delta::header(&bytes).map_err(malformed)?;
        work.check_held("the result of the delta", size, offset)?;
        if size > LARGEST_EARLY {
            work.resolved().postpone(item.content, entry);
            return Ok(());
        }
        let mut result = Vec::new();
        delta::apply(&base.bytes, &bytes, &mut result).map_err(malformed)?;
        let origin = Origin::Delta {
            base: &base,
            delta: &bytes,
        };
        let examined = self.examiner.object(base.kind, &result, origin, offset)?;
        work.early.resolved(size);
        done(work, entry, base.kind, examined, result);
        Ok(())
    }

    /// Ends this thread's part: nothing comes that could bring missing bases.
    pub(super) fn finish(&mut self, work: &Work<'_>) -> Result<(), Error> {
        self.resolve(work, Batch::default())
    }
}

/// The entry that is the base of a delta, if it is known.
fn base_entry(work: &Work<'_>, item: &Item) -> Option<u32> {
    match item.content {
        Content::Whole(_) => None,
        Content::DeltaToEntry(base) => Some(base),
        Content::DeltaToId(base) => {
            let entry = work.resolved().find(&base)?;
            work.entries().bases[item.entry as usize].store(entry, Ordering::Release);
            Some(entry)
        }
    }
}

fn done(work: &Work<'_>, entry: u32, kind: Kind, examined: Examined, bytes: Vec<u8>) {
    let Examined { id, starts } = examined;
    let bytes = Arc::new(bytes);
    work.bases.insert(entry, Base { kind, bytes, starts });
    work.resolved().add(entry, kind, &id);
    work.progress.advance(1);
}
