//! Decoded trees within a budget of bytes, for one thread.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::marks::NumberHasher;
use crate::object::tree_delta::Starts;
use crate::store::Position;

/// A tree costs this much beyond its bytes and starts.
const OVERHEAD: usize = 128;
/// Unused buffers are kept up to this part of the budget.
const SPARE_PART: usize = 8;
/// Buffers are made in so many sizes between one power of two and the next.
const STEPS: usize = 8;
/// How many classes from the wanted one on are looked into for an unused buffer.
const SIMILAR: usize = 3;
/// Room for inflating, which is fastest when it need not watch the end of the buffer.
const SLACK: usize = 320;

/// Which entry: the place of the pack in the store, and the offset.
pub(super) type Key = (usize, u64);

/// A decoded tree, with the places where its entries start.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) bytes: Vec<u8>,
    pub(super) starts: Starts,
    /// Its canonical position, if it was read for its own sake.
    pub(super) at: Option<Position>,
}

impl Tree {
    fn cost(&self) -> usize {
        self.bytes.capacity() + self.starts.bytes() + OVERHEAD
    }
}

/// Keeps the trees that were put in last. Trees are read in the order of the pack, where bases lie shortly before the
/// deltas that need them, so the oldest is the one to go. Its memory goes to the next tree of about the same size.
#[derive(Debug)]
pub(super) struct TreeCache {
    budget: usize,
    used: usize,
    trees: HashMap<Key, Tree, BuildHasherDefault<NumberHasher>>,
    order: VecDeque<Key>,
    /// By class of size.
    spare: Vec<Vec<Tree>>,
    spare_bytes: usize,
}

impl TreeCache {
    pub(super) fn new(budget: usize) -> TreeCache {
        TreeCache {
            budget,
            used: 0,
            trees: HashMap::default(),
            order: VecDeque::new(),
            spare: Vec::new(),
            spare_bytes: 0,
        }
    }

    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&Tree> {
        self.trees.get(&key)
    }

    /// Takes a tree in; those that have been there longest make room.
    pub(super) fn put(&mut self, key: Key, tree: Tree) {
        let cost = tree.cost();
        if cost > self.budget || self.trees.contains_key(&key) {
            self.give_back(tree);
            return;
        }
        while self.used > self.budget - cost {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(tree) = self.trees.remove(&oldest) {
                self.used -= tree.cost();
                self.give_back(tree);
            }
        }
        self.used += cost;
        self.order.push_back(key);
        self.trees.insert(key, tree);
    }

    /// An empty tree with room for so many bytes, if they are no more than what is kept. Larger ones take memory as they
    /// are made, because their size is only promised.
    pub(super) fn fresh(&mut self, bytes: u64) -> Tree {
        let Some(wanted) = usize::try_from(bytes).ok().filter(|&bytes| bytes < self.budget) else {
            return Tree::default();
        };
        let (class, size) = class_of(wanted + SLACK);
        let spare = self.spare.iter_mut().skip(class).take(SIMILAR).find_map(Vec::pop);
        if let Some(tree) = spare {
            self.spare_bytes -= tree.cost();
            return tree;
        }
        Tree {
            bytes: Vec::with_capacity(size),
            ..Tree::default()
        }
    }

    fn give_back(&mut self, mut tree: Tree) {
        let cost = tree.cost();
        let (class, size) = class_of(tree.bytes.capacity());
        // Only whole classes, so that every buffer of a class has room for all sizes in it.
        if size != tree.bytes.capacity() || self.spare_bytes + cost > self.budget / SPARE_PART {
            return;
        }
        tree.bytes.clear();
        tree.starts.clear();
        tree.at = None;
        if self.spare.len() <= class {
            self.spare.resize_with(class + 1, Vec::new);
        }
        self.spare_bytes += cost;
        self.spare[class].push(tree);
    }
}

/// The class of buffers for so many bytes, and how large they are.
fn class_of(bytes: usize) -> (usize, usize) {
    let bytes = bytes.max(2 * STEPS);
    let power = (bytes - 1).ilog2() as usize;
    let step = (1usize << power) / STEPS;
    let steps = (bytes - (1 << power)).div_ceil(step);
    (power * STEPS + steps, (1 << power) + steps * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_are_asked_for() {
        let mut last = 0;
        for bytes in 1..100_000 {
            let (class, size) = class_of(bytes);
            assert!(
                size >= bytes && size <= (bytes + bytes / 8 + 1).max(2 * STEPS),
                "{bytes}: {size}"
            );
            assert_eq!(class_of(size), (class, size));
            assert!(class >= last);
            last = class;
        }
    }

    #[test]
    fn the_budget_holds() {
        let mut cache = TreeCache::new(100_000);
        for number in 0..2000u64 {
            let mut tree = cache.fresh(number % 3000);
            tree.bytes.resize((number % 3000) as usize, 1);
            cache.put((0, number), tree);
            assert!(cache.used + cache.spare_bytes <= 100_000 + 100_000 / SPARE_PART);
        }
        assert!(cache.get((0, 1999)).is_some());
        assert!(cache.get((0, 0)).is_none());
    }
}
