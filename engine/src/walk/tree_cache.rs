//! Decoded trees within a budget of bytes, for one thread.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::marks::IdHasher;
use crate::object::tree_delta::Starts;

/// A tree costs this much beyond its bytes and starts.
const OVERHEAD: usize = 128;
/// How many pairs of buffers are kept for the next trees.
const SPARE: usize = 16;

/// Which entry: the place of the pack in the store, and the offset.
pub(super) type Key = (usize, u64);

/// A decoded tree, with the places where its entries start.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) bytes: Vec<u8>,
    pub(super) starts: Starts,
}

impl Tree {
    fn cost(&self) -> usize {
        self.bytes.capacity() + self.starts.bytes() + OVERHEAD
    }
}

/// Keeps the trees that were put in last. Trees are read in the order of the pack, where bases lie shortly before the
/// deltas that need them, so the oldest is the one to go.
#[derive(Debug)]
pub(super) struct TreeCache {
    budget: usize,
    used: usize,
    trees: HashMap<Key, Tree, BuildHasherDefault<KeyHasher>>,
    order: VecDeque<Key>,
    spare: Vec<Tree>,
}

impl TreeCache {
    pub(super) fn new(budget: usize) -> TreeCache {
        TreeCache {
            budget,
            used: 0,
            trees: HashMap::default(),
            order: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<&Tree> {
        self.trees.get(&key)
    }

    /// Takes a tree in; those that have been there longest make room.
    pub(super) fn put(&mut self, key: Key, mut tree: Tree) {
        // What a buffer had to be for the tree before this one is not to be paid for as long as this one is kept.
        if tree.bytes.capacity() > tree.bytes.len() + tree.bytes.len() / 4 + 256 {
            tree.bytes.shrink_to_fit();
        }
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

    /// An empty tree, with the memory of an old one where there is one.
    pub(super) fn fresh(&mut self) -> Tree {
        self.spare.pop().unwrap_or_default()
    }

    fn give_back(&mut self, mut tree: Tree) {
        if self.spare.len() < SPARE {
            tree.bytes.clear();
            tree.starts.clear();
            self.spare.push(tree);
        }
    }
}

/// Mixes the two numbers of a key.
#[derive(Debug, Default, Clone, Copy)]
struct KeyHasher(IdHasher, u64);

impl std::hash::Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_usize(&mut self, pack: usize) {
        self.1 ^= (pack as u64).rotate_left(48);
    }

    fn write_u64(&mut self, offset: u64) {
        self.1 ^= offset;
    }

    fn finish(&self) -> u64 {
        // An odd multiplier spreads neighbouring offsets over all bits.
        let product = self.1.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product ^ product >> 32
    }
}
