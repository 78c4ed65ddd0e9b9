//! Resolves entries while the stream is still coming in, as far as their bases are at hand.

use std::sync::Arc;

use gix_hash::ObjectId;
use gix_object::Kind;

use super::bases::Base;
use super::error::Error;
use super::examine::{Examined, Examiner, Origin};
use super::table::{Object, Waiting};
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

/// Finds out the ids of the objects in `batch` and keeps them as bases. Deltas whose base is not at hand are noted for
/// later.
pub(super) fn resolve(work: &Work<'_>, examiner: &mut Examiner<'_>, batch: Batch) -> Result<(), Error> {
    let mut objects = Vec::with_capacity(batch.items.len());
    let mut pending = Vec::new();
    let mut waiting = Vec::new();
    let mut found = Vec::new();
    for item in batch.items {
        let Item {
            entry,
            offset,
            content,
            bytes,
        } = item;
        let (kind, examined, bytes) = match content {
            Content::Whole(kind) => (kind, examiner.object(kind, &bytes, Origin::Whole, offset)?, bytes),
            Content::DeltaToEntry(base) => match early(work, examiner, work.bases.get(base), &bytes, offset)? {
                Some(made) => made,
                None => {
                    pending.push((base, entry));
                    continue;
                }
            },
            Content::DeltaToId(base) => {
                let at = work.bases.find(&base);
                let kept = at.and_then(|at| work.bases.get(at));
                match (at, early(work, examiner, kept, &bytes, offset)?) {
                    (Some(at), Some(made)) => {
                        found.push((entry, at));
                        made
                    }
                    _ => {
                        waiting.push(Waiting { base, entry });
                        continue;
                    }
                }
            }
        };
        let Examined { id, starts } = examined;
        objects.push(Object { entry, kind, id });
        let bytes = Arc::new(bytes);
        work.bases.insert(entry, Some(id), Base { kind, bytes, starts });
    }
    let mut resolved = work.resolved();
    resolved.add(&objects);
    resolved.pending.append(&mut pending);
    resolved.waiting.append(&mut waiting);
    resolved.found.append(&mut found);
    drop(resolved);
    work.progress.advance(objects.len() as u64);
    Ok(())
}

/// Applies a delta unless its base is missing or its result is large.
fn early(
    work: &Work<'_>,
    examiner: &mut Examiner<'_>,
    base: Option<Base>,
    delta: &[u8],
    offset: u64,
) -> Result<Option<(Kind, Examined, Vec<u8>)>, Error> {
    let malformed = |source| Error::Delta { offset, source };
    let (_, size, _) = delta::header(delta).map_err(malformed)?;
    work.check_held("the result of the delta", size, offset)?;
    let Some(base) = base else { return Ok(None) };
    if size > LARGEST_EARLY {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    delta::apply(&base.bytes, delta, &mut bytes).map_err(malformed)?;
    let origin = Origin::Delta { base: &base, delta };
    let examined = examiner.object(base.kind, &bytes, origin, offset)?;
    Ok(Some((base.kind, examined, bytes)))
}
