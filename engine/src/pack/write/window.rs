//! The objects that the next one may become a delta against.

use std::collections::VecDeque;

use gix_object::Kind;

use crate::pack::delta::encode::Index;

/// The most recent objects of the search, oldest first.
#[derive(Debug)]
pub(super) struct Window {
    slots: VecDeque<Slot>,
    /// The most slots.
    width: usize,
    /// The most bytes that the slots take together, indexes included.
    budget: usize,
    used: usize,
}

#[derive(Debug)]
struct Slot {
    item: u32,
    kind: Kind,
    depth: u32,
    bytes: Bytes,
    /// Bytes of memory, the index included.
    weight: usize,
}

/// Content that is indexed when something is compared with it for the first time.
#[derive(Debug)]
enum Bytes {
    Plain(Vec<u8>),
    Indexed(Index<Vec<u8>>),
}

/// A delta against an object of the window.
#[derive(Debug)]
pub(super) struct Found {
    /// The base.
    pub(super) item: u32,
    /// How many deltas it takes to make the target.
    pub(super) depth: u32,
    pub(super) delta: Vec<u8>,
}

/// What the search is asked to find a delta for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) kind: Kind,
    pub(super) bytes: &'a [u8],
    /// The longest chain that the target may end.
    pub(super) max_depth: u32,
}

impl Window {
    pub(super) fn new(width: usize, budget: usize) -> Window {
        Window {
            slots: VecDeque::with_capacity(width),
            width,
            budget,
            used: 0,
        }
    }

    /// The best delta for a target. Only deltas clearly smaller than the object count, and among them the smallest:
    /// with a discount for bases that are deltas themselves, as long chains are slow to read.
    pub(super) fn best(&mut self, target: Target<'_>) -> Option<Found> {
        let mut best: Option<Found> = None;
        let mut grown = 0;
        for slot in self.slots.iter_mut().rev() {
            if slot.kind != target.kind {
                break; // the search goes kind by kind
            }
            let Some(limit) = limit(target, slot, best.as_ref()) else {
                continue;
            };
            let Some(delta) = slot.index(&mut grown).delta(target.bytes, limit) else {
                continue;
            };
            let depth = slot.depth + 1;
            if best
                .as_ref()
                .is_none_or(|best| delta.len() < best.delta.len() || depth < best.depth)
            {
                best = Some(Found {
                    item: slot.item,
                    depth,
                    delta,
                });
            }
        }
        self.used += grown;
        best
    }

    /// Adds an object as a base for those that come next, and moves `base`, the one it is a delta against, in front of
    /// it: what served once will probably serve again.
    pub(super) fn push(&mut self, item: u32, kind: Kind, depth: u32, bytes: Vec<u8>, base: Option<u32>) {
        let base = base
            .and_then(|base| self.slots.iter().position(|slot| slot.item == base))
            .and_then(|at| self.slots.remove(at));
        let weight = bytes.capacity();
        self.used += weight;
        self.slots.push_back(Slot {
            item,
            kind,
            depth,
            weight,
            bytes: Bytes::Plain(bytes),
        });
        self.slots.extend(base);
    }

    /// Makes room for an object of `size` bytes, the oldest leaving first.
    pub(super) fn make_room(&mut self, size: usize) {
        while self.slots.len() >= self.width || self.used.saturating_add(size) > self.budget {
            let Some(slot) = self.slots.pop_front() else {
                return;
            };
            self.used -= slot.weight;
        }
    }
}

/// The largest delta of `target` against `slot` that would be better than `best`; `None` if there is no use in trying.
fn limit(target: Target<'_>, slot: &Slot, best: Option<&Found>) -> Option<usize> {
    if slot.depth >= target.max_depth {
        return None;
    }
    let (base, size) = (slot.len(), target.bytes.len());
    let (whole, depth) = match best {
        Some(best) => (best.delta.len(), best.depth),
        None => (size / 2, 1),
    };
    let rest = u64::from(target.max_depth - slot.depth);
    let rest_of_best = u64::from((target.max_depth + 1).saturating_sub(depth).max(1));
    let limit = (whole as u64).saturating_mul(rest) / rest_of_best;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // Whatever the base lacks has to be inserted; and a base far larger than the target is most likely unrelated.
    let lacking = size.saturating_sub(base);
    (limit > 0 && lacking < limit && size >= base / 32).then_some(limit)
}

impl Slot {
    /// The index, made at the first call; adds the memory that it takes to `grown`.
    fn index(&mut self, grown: &mut usize) -> &Index<Vec<u8>> {
        if let Bytes::Plain(bytes) = &mut self.bytes {
            let index = Index::new(std::mem::take(bytes));
            self.weight += index.table_bytes();
            *grown += index.table_bytes();
            self.bytes = Bytes::Indexed(index);
        }
        match &self.bytes {
            Bytes::Indexed(index) => index,
            Bytes::Plain(_) => unreachable!("plain bytes were indexed above"),
        }
    }

    fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Plain(bytes) => bytes.len(),
            Bytes::Indexed(index) => index.base().len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(from: u32) -> Vec<u8> {
        (from..from + 200)
            .flat_map(|n| format!("line {n} of a text\n").into_bytes())
            .collect()
    }

    fn target(bytes: &[u8]) -> Target<'_> {
        Target {
            kind: Kind::Blob,
            bytes,
            max_depth: 3,
        }
    }

    #[test]
    fn the_most_similar_object_is_the_base() {
        let mut window = Window::new(10, 1 << 20);
        for (item, from) in [(0, 0), (1, 50), (2, 120)] {
            window.push(item, Kind::Blob, 0, text(from), None);
        }
        let found = window.best(target(&text(52))).expect("similar objects are there");
        assert_eq!((found.item, found.depth), (1, 1));
        assert!(window.best(target(&b"nothing of that\n".repeat(99))).is_none());
    }

    #[test]
    fn chains_end_and_kinds_do_not_mix() {
        let mut window = Window::new(10, 1 << 20);
        window.push(0, Kind::Blob, 3, text(0), None);
        assert!(window.best(target(&text(1))).is_none());
        window.push(1, Kind::Tree, 0, text(0), None);
        assert!(window.best(target(&text(1))).is_none());
    }

    #[test]
    fn width_and_memory_are_limits() {
        let mut window = Window::new(2, 20_000);
        for item in 0..50 {
            let bytes = text(item);
            window.make_room(bytes.len());
            let found = window.best(target(&bytes)).map(|found| found.item);
            window.push(item, Kind::Blob, 0, bytes, found);
            assert!(window.slots.len() <= 2);
            assert_eq!(
                window.used,
                window.slots.iter().map(|slot| slot.weight).sum::<usize>()
            );
        }
        window.make_room(1 << 20);
        assert!(window.slots.is_empty() && window.used == 0);
    }
}
