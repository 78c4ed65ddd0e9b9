//! The version that stood there before: its chunks are bases for chunks that differ little.

use std::collections::VecDeque;

use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked::{Pieces, Pointer, Source};
use ingot_engine::pack::delta::encode::Index;
use ingot_engine::store::{Cache, Store};

/// So far around a place is looked for what stood there.
const REACH: u64 = 2 << 20;
/// A delta pays if it takes no more than one part in so many of the chunk: less would make reading slower for little.
const WORTH_IT: usize = 8;
/// So many chunks of the earlier version are tried as bases for one.
const TRIES: usize = 2;
/// After so many chunks without a base, and some more for each one that had one, it is another file.
const PATIENCE: u32 = 16;

/// A part of the earlier version.
#[derive(Debug, Clone, Copy)]
struct Stood {
    offset: u64,
    length: u64,
    /// A chunk that is a blob as it is.
    base: ObjectId,
}

/// Walks along the earlier version while the new one is cut. Holds the chunks near the place where the cut is.
pub(super) struct Earlier<'s> {
    pieces: Option<Pieces<'s>>,
    near: VecDeque<Stood>,
    /// Where the pieces that were read so far end.
    read: u64,
    /// By how much content stands further back than it did; negative if it stands further in front.
    shift: i64,
    found: u32,
    missed: u32,
}

impl<'s> Earlier<'s> {
    /// Looks at nothing yet.
    pub(super) fn new(store: &'s Store, pointer: &Pointer) -> Earlier<'s> {
        Earlier {
            pieces: Some(Pieces::new(store, pointer)),
            near: VecDeque::new(),
            read: 0,
            shift: 0,
            found: 0,
            missed: 0,
        }
    }

    /// False if what was tried so far shows that there is no use in trying.
    pub(super) fn is_worth_trying(&self) -> bool {
        self.missed < PATIENCE.saturating_add(self.found.saturating_mul(4))
    }

    /// What became of a try.
    pub(super) fn tried(&mut self, found: bool) {
        let count = if found { &mut self.found } else { &mut self.missed };
        *count = count.saturating_add(1);
    }

    /// A chunk that both versions have: tells how far content has moved.
    pub(super) fn met(&mut self, offset: u64, id: &ObjectId) {
        self.go_to(self.before(offset));
        if let Some(stood) = self.near.iter().find(|stood| stood.base == *id) {
            self.shift = (offset as i64).wrapping_sub(stood.offset as i64);
        }
    }

    /// The chunks that stood where a new one of this place and length stands, the one with most of it first.
    pub(super) fn bases(&mut self, offset: u64, length: u64) -> Vec<ObjectId> {
        let start = self.before(offset);
        let end = start.saturating_add(length);
        self.go_to(start);
        let mut found: Vec<(u64, ObjectId)> = self
            .near
            .iter()
            .filter_map(|stood| {
                let shared = (stood.offset + stood.length)
                    .min(end)
                    .saturating_sub(stood.offset.max(start));
                (shared > 0).then_some((shared, stood.base))
            })
            .collect();
        found.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        found.into_iter().map(|(_, id)| id).take(TRIES).collect()
    }

    fn before(&self, offset: u64) -> u64 {
        offset.saturating_add_signed(self.shift.wrapping_neg())
    }

    fn go_to(&mut self, place: u64) {
        while self.read < place.saturating_add(REACH)
            && let Some(pieces) = &mut self.pieces
        {
            let Some(Ok(piece)) = pieces.next() else {
                // What cannot be read is no base.
                self.pieces = None;
                break;
            };
            self.read = piece.end();
            let base = match piece.source {
                Source::Chunk(id) => id,
                Source::Delta { base, .. } => base,
                Source::Zeros => continue,
            };
            self.near.push_back(Stood {
                offset: piece.offset,
                length: piece.length,
                base,
            });
            self.forget(place);
        }
        self.forget(place);
    }

    fn forget(&mut self, place: u64) {
        while let Some(stood) = self.near.front()
            && stood.offset + stood.length + REACH < place
        {
            self.near.pop_front();
        }
    }
}

/// The delta that makes a chunk of the best of several bases, with its base; `None` if none is good enough.
pub(super) fn delta(
    store: &Store,
    cache: &mut Cache,
    bases: &[ObjectId],
    chunk: &[u8],
) -> Option<(Vec<u8>, ObjectId)> {
    let mut most = chunk.len() / WORTH_IT;
    let mut best = None;
    let mut bytes = Vec::new();
    for base in bases {
        // A base that cannot be read is none.
        if !matches!(store.read(base, cache, &mut bytes), Ok(Some(Kind::Blob)))
            || !begins_alike(&bytes, chunk)
        {
            continue;
        }
        if let Some(delta) = Index::new(&bytes).delta(chunk, most) {
            most = delta.len().saturating_sub(1);
            best = Some((delta, *base));
        }
    }
    best
}

/// A quick look, so that nothing is indexed in vain: what differs little has a good part of its beginning or its end in
/// common.
fn begins_alike(base: &[u8], chunk: &[u8]) -> bool {
    let front = base.iter().zip(chunk).take_while(|(a, b)| a == b).count();
    let back = base
        .iter()
        .rev()
        .zip(chunk.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    front + back >= chunk.len() / 8
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[number; 20])
    }

    fn earlier() -> Earlier<'static> {
        let near = (0..10u8)
            .map(|number| Stood {
                offset: u64::from(number) * 100,
                length: 100,
                base: id(number),
            })
            .collect();
        Earlier {
            pieces: None,
            near,
            read: 1000,
            shift: 0,
            found: 0,
            missed: 0,
        }
    }

    #[test]
    fn bases_are_what_stood_there_also_after_a_shift() {
        let mut earlier = earlier();
        assert_eq!(earlier.bases(110, 100), [id(1), id(2)]);
        assert!(earlier.bases(5000, 100).is_empty());
        // Chunk 3 stands 250 bytes further back now, so what follows does.
        earlier.met(550, &id(3));
        assert_eq!(earlier.bases(650, 100), [id(4)]);
        earlier.met(100, &id(6));
        assert_eq!(earlier.bases(0, 60), [id(5)]);
        assert_eq!(earlier.bases(100, 160), [id(6), id(7)]);
    }

    #[test]
    fn another_file_is_given_up() {
        let mut earlier = earlier();
        for _ in 0..PATIENCE {
            assert!(earlier.is_worth_trying());
            earlier.tried(false);
        }
        assert!(!earlier.is_worth_trying());
        earlier.tried(true);
        assert!(earlier.is_worth_trying());
    }
}
