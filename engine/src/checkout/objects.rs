//! Reads objects for the checkout.

use std::cell::RefCell;

use gix_hash::{ObjectId, oid};
use gix_object::{Data, Kind};

use super::Error;
use crate::store::{Cache, Store};

/// Decoded delta bases that each thread keeps, in bytes. One tree's blobs share few bases, so more would not help.
const CACHE: usize = 8 << 20;

/// Gives a store's objects to gix, which wants attribute files. Each thread has one, with a cache of its own.
pub(super) struct Objects<'s> {
    pub store: &'s Store,
    pub cache: RefCell<Cache>,
}

impl<'s> Objects<'s> {
    pub fn new(store: &'s Store) -> Objects<'s> {
        Objects {
            store,
            cache: RefCell::new(Cache::new(CACHE)),
        }
    }
}

impl gix_object::Find for Objects<'_> {
    fn try_find<'a>(&self, id: &oid, buffer: &'a mut Vec<u8>) -> Result<Option<Data<'a>>, gix::Error> {
        match self.store.read(id, &mut self.cache.borrow_mut(), buffer) {
            Ok(kind) => Ok(kind.map(|kind| Data::new(buffer, kind, self.store.format()))),
            Err(error) => Err(gix::Error::from_error(error)),
        }
    }
}

/// The tree of a commit, a tag of one, or a tree.
pub(super) fn tree_of(store: &Store, id: ObjectId) -> Result<ObjectId, Error> {
    let mut cache = Cache::new(0);
    let mut bytes = Vec::new();
    let mut at = id;
    loop {
        if at.is_empty_tree() {
            return Ok(at);
        }
        let kind = match store.header(&at)? {
            Some((kind, _)) => kind,
            None => return Err(Error::Missing { id: at }),
        };
        if kind == Kind::Tree {
            return Ok(at);
        }
        if kind == Kind::Blob {
            return Err(Error::NoTree { id, kind });
        }
        store.read(&at, &mut cache, &mut bytes)?;
        let damaged = |message: String| Error::Tree { id: at, message };
        at = match kind {
            Kind::Tag => gix_object::TagRefIter::from_bytes(&bytes, store.format())
                .target_id()
                .map_err(|error| damaged(error.to_string()))?,
            _ => gix_object::CommitRefIter::from_bytes(&bytes, store.format())
                .tree_id()
                .map_err(|error| damaged(error.to_string()))?,
        };
    }
}
