//! Makes objects from the pack file that are not kept, as bases of deltas.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::bases::Base;
use super::error::Error;
use super::pack_file::Reader;
use super::table::{BY_ID, Entries, WHOLE};
use super::work::Work;
use crate::pack::delta;

/// One thread's buffers for making objects.
#[derive(Debug)]
pub(super) struct Maker {
    reader: Reader,
    delta: Vec<u8>,
}

/// How to make an object.
struct Plan {
    /// What to begin with.
    first: First,
    /// The deltas to apply, the last one first: entry numbers and where they lie.
    deltas: Vec<(u32, Range<u64>)>,
}

enum First {
    Kept(Base),
    Whole(Range<u64>),
}

impl Maker {
    pub(super) fn new() -> Maker {
        Maker {
            reader: Reader::new(),
            delta: Vec::new(),
        }
    }

    /// The object of an entry, kept or made. `None` if something that it is made of is not in the file yet, is known by
    /// its id only, or has more than `largest` bytes.
    pub(super) fn base(&mut self, work: &Work<'_>, entry: u32, largest: u64) -> Result<Option<Base>, Error> {
        let plan = self::plan(work, &work.entries(), entry);
        let Some(Plan { first, deltas }) = plan else {
            return Ok(None);
        };
        let mut base = match first {
            First::Kept(base) => base,
            First::Whole(range) => match self.whole(work, range, largest)? {
                Some(base) => base,
                None => return Ok(None),
            },
        };
        for (entry, range) in deltas.into_iter().rev() {
            let Some(bytes) = self.apply(work, &base.bytes, range, largest)? else {
                return Ok(None);
            };
            work.early.made_again(bytes.len() as u64);
            base = Base {
                kind: base.kind,
                bytes: Arc::new(bytes),
                starts: None,
            };
            work.bases.insert(entry, base.clone());
        }
        Ok(Some(base))
    }

    fn whole(&mut self, work: &Work<'_>, range: Range<u64>, largest: u64) -> Result<Option<Base>, Error> {
        let offset = range.start;
        let header = work.file.header(range.clone(), work.format, &mut self.reader)?;
        let (Some(kind), size) = (header.header.as_kind(), header.decompressed_size) else {
            return Err(Error::EntryHeader { offset });
        };
        work.check_held("the delta base", size, offset)?;
        if size > largest {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        work.file
            .inflate(range, work.format, &mut self.reader, &mut bytes)?;
        Ok(Some(Base {
            kind,
            bytes: Arc::new(bytes),
            starts: None,
        }))
    }

    /// Applies the delta that lies at `range`. `None` if the result has more than `largest` bytes.
    pub(super) fn apply(
        &mut self,
        work: &Work<'_>,
        base: &[u8],
        range: Range<u64>,
        largest: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let offset = range.start;
        work.file
            .inflate(range, work.format, &mut self.reader, &mut self.delta)?;
        let malformed = |source| Error::Delta { offset, source };
        let (_, size, _) = delta::header(&self.delta).map_err(malformed)?;
        work.check_held("the result of the delta", size, offset)?;
        if size > largest {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        delta::apply(base, &self.delta, &mut bytes).map_err(malformed)?;
        Ok(Some(bytes))
    }

    /// The delta that was applied last.
    pub(super) fn last_delta(&self) -> &[u8] {
        &self.delta
    }
}

fn plan(work: &Work<'_>, entries: &Entries, entry: u32) -> Option<Plan> {
    let settled = work.settled.load(Ordering::Acquire);
    let mut deltas = Vec::new();
    let mut at = entry;
    loop {
        if let Some(kept) = work.bases.get(at) {
            let first = First::Kept(kept);
            return Some(Plan { first, deltas });
        }
        let range = entries.range(at);
        if range.end > settled {
            return None;
        }
        match entries.bases[at as usize].load(Ordering::Acquire) {
            WHOLE => {
                let first = First::Whole(range);
                return Some(Plan { first, deltas });
            }
            BY_ID => return None,
            base => {
                deltas.push((at, range));
                at = base;
            }
        }
    }
}
