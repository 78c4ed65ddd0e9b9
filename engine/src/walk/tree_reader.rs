//! Reads single trees, and keeps those that were read last.

use std::collections::VecDeque;
use std::rc::Rc;

use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use super::error::Error;
use super::marks::IdMap;
use crate::store::{Cache, Store};

/// Memory for delta bases, in bytes.
const BASES: usize = 16 << 20;
/// Memory for trees that were read, in bytes. One commit's trees are the counterparts of the next one's.
const TREES: usize = 8 << 20;

pub(super) struct TreeReader<'s> {
    store: &'s Store,
    bases: Cache,
    trees: IdMap<Rc<Vec<u8>>>,
    order: VecDeque<ObjectId>,
    used: usize,
}

impl<'s> TreeReader<'s> {
    pub(super) fn new(store: &'s Store) -> TreeReader<'s> {
        TreeReader {
            store,
            bases: Cache::new(BASES),
            trees: IdMap::default(),
            order: VecDeque::new(),
            used: 0,
        }
    }

    /// The content of a tree; `None` if it is not there.
    pub(super) fn read(&mut self, id: &oid) -> Result<Option<Rc<Vec<u8>>>, Error> {
        if let Some(tree) = self.trees.get(id) {
            return Ok(Some(Rc::clone(tree)));
        }
        let mut bytes = Vec::new();
        match self.store.read(id, &mut self.bases, &mut bytes)? {
            None => return Ok(None),
            Some(Kind::Tree) => {}
            Some(actual) => {
                return Err(Error::WrongKind {
                    id: id.to_owned(),
                    expected: Kind::Tree,
                    actual,
                    referrer: None,
                });
            }
        }
        bytes.shrink_to_fit();
        let tree = Rc::new(bytes);
        self.keep(id, &tree);
        Ok(Some(tree))
    }

    fn keep(&mut self, id: &oid, tree: &Rc<Vec<u8>>) {
        if tree.len() > TREES {
            return;
        }
        while self.used > TREES - tree.len() {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(tree) = self.trees.remove(&oldest) {
                self.used -= tree.len();
            }
        }
        self.used += tree.len();
        self.order.push_back(id.to_owned());
        self.trees.insert(id.to_owned(), Rc::clone(tree));
    }
}
