//! Resolves entries while the stream is still coming in, as far as their bases are at hand.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gix_hash::ObjectId;
use gix_object::Kind;

use super::bases::Base;
use super::error::Error;
use super::examine::{Examined, Examiner, Origin};
use super::make::Maker;
use super::table::{BY_ID, Object};
use super::work::Work;
use crate::pack::delta;

/// A result larger than this waits until the stream has ended, when memory is not shared with entries in flight.
pub(super) const LARGEST_EARLY: u64 = 2 * 1024 * 1024;

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
}

impl<'w> Worker<'w> {
    pub(super) fn new(work: &'w Work<'_>) -> Worker<'w> {
        Worker {
            examiner: Examiner::new(work.format, work.existing, &work.references),
            maker: Maker::new(),
        }
    }
}

/// Finds out the ids of the objects in `batch` and keeps them as bases. Deltas whose base is out of reach are noted for
/// later.
pub(super) fn resolve(work: &Work<'_>, worker: &mut Worker<'_>, batch: Batch) -> Result<(), Error> {
    let mut objects = Vec::with_capacity(batch.items.len());
    let mut without_base = Vec::new();
    for item in batch.items {
        let base = match item.content {
            Content::Whole(kind) => {
                whole(work, worker, kind, item, &mut objects)?;
                continue;
            }
            Content::DeltaToEntry(base) => work.bases.get(base),
            Content::DeltaToId(base) => work.bases.find(&base).and_then(|entry| {
                work.entries().bases[item.entry as usize].store(entry, Ordering::Release);
                work.bases.get(entry)
            }),
        };
        match base {
            Some(base) => delta(work, worker, base, item, &mut objects)?,
            None => without_base.push(item),
        }
    }
    // What another thread has resolved meanwhile is there now; other bases are made again.
    for item in without_base {
        let at = match item.content {
            Content::DeltaToEntry(base) => base,
            _ => work.entries().bases[item.entry as usize].load(Ordering::Acquire),
        };
        let base = match at {
            BY_ID => None,
            at => worker.maker.base(work, at, LARGEST_EARLY)?,
        };
        match base {
            Some(base) => delta(work, worker, base, item, &mut objects)?,
            None => work.resolved().postpone(item.content, item.entry),
        }
    }
    work.progress.advance(objects.len() as u64);
    work.record(&mut objects);
    Ok(())
}

fn whole(
    work: &Work<'_>,
    worker: &mut Worker<'_>,
    kind: Kind,
    item: Item,
    objects: &mut Vec<Object>,
) -> Result<(), Error> {
    let Item {
        entry, offset, bytes, ..
    } = item;
    let Examined { id, starts } = worker.examiner.object(kind, &bytes, Origin::Whole, offset)?;
    objects.push(Object { entry, kind, id });
    let bytes = Arc::new(bytes);
    work.bases.insert(entry, Some(id), Base { kind, bytes, starts });
    Ok(())
}

/// Applies a delta unless its result is large.
fn delta(
    work: &Work<'_>,
    worker: &mut Worker<'_>,
    base: Base,
    item: Item,
    objects: &mut Vec<Object>,
) -> Result<(), Error> {
    let Item { entry, offset, .. } = item;
    let malformed = |source| Error::Delta { offset, source };
    let (_, size, _) = delta::header(&item.bytes).map_err(malformed)?;
    work.check_held("the result of the delta", size, offset)?;
    if size > LARGEST_EARLY {
        work.resolved().postpone(item.content, entry);
        return Ok(());
    }
    let mut bytes = Vec::new();
    delta::apply(&base.bytes, &item.bytes, &mut bytes).map_err(malformed)?;
    let origin = Origin::Delta {
        base: &base,
        delta: &item.bytes,
    };
    let kind = base.kind;
    let Examined { id, starts } = worker.examiner.object(kind, &bytes, origin, offset)?;
    objects.push(Object { entry, kind, id });
    let bytes = Arc::new(bytes);
    work.bases.insert(entry, Some(id), Base { kind, bytes, starts });
    Ok(())
}
