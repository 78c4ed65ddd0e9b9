//! Gives the store's objects to gix.

use std::cell::RefCell;
use std::sync::Mutex;

use gix_hash::{ObjectId, oid};
use gix_object::{Data, Kind};

use super::Error;
use crate::store::{Cache, Store};

/// Decoded delta bases that each thread keeps. One tree's blobs share few bases, so more would not help.
const CACHE: usize = 8 << 20;

/// Reads through the store's bounded windows; each clone, and so each thread, has a cache of its own.
pub(super) struct Objects<'s> {
    store: &'s Store,
    cache: RefCell<Cache>,
    /// The store's own words for what gix then reports in its own.
    failure: Mutex<Option<Error>>,
}

impl<'s> Objects<'s> {
    pub fn new(store: &'s Store) -> Objects<'s> {
        Objects {
            store,
            cache: RefCell::new(Cache::new(CACHE)),
            failure: Mutex::new(None),
        }
    }

    /// The first failure of this value's reads.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.lock().ok()?.take()
    }

    fn fail(&self, error: Error) {
        if let Ok(mut slot) = self.failure.lock() {
            slot.get_or_insert(error);
        }
    }
}

impl Clone for Objects<'_> {
    fn clone(&self) -> Self {
        Objects::new(self.store)
    }
}

impl gix_object::Find for Objects<'_> {
    fn try_find<'a>(&self, id: &oid, buffer: &'a mut Vec<u8>) -> Result<Option<Data<'a>>, gix::Error> {
        let found = self.store.read(id, &mut self.cache.borrow_mut(), buffer);
        match found {
            Ok(Some(kind)) => Ok(Some(Data::new(buffer, kind, self.store.format()))),
            Ok(None) => {
                self.fail(Error::Missing { id: id.to_owned() });
                Ok(None)
            }
            Err(error) => {
                let text = error.to_string();
                self.fail(error.into());
                Err(gix::Error::from_error(std::io::Error::other(text)))
            }
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
