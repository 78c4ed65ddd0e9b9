//! Storage that counts what is read.

use std::io::Read;
use std::sync::Mutex;

use ingot_helper::protocol::ContentId;
use ingot_helper::storage::{self, RawHead, StagedObject, Storage};

/// Another storage, and the manifests that were read from it.
pub struct Counting<'a> {
    pub inner: &'a dyn Storage,
    read: Mutex<Vec<ContentId>>,
}

impl<'a> Counting<'a> {
    pub fn new(inner: &'a dyn Storage) -> Counting<'a> {
        Counting {
            inner,
            read: Mutex::default(),
        }
    }

    /// The manifests read since the last call, in their order.
    pub fn take(&self) -> Vec<ContentId> {
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

impl Storage for Counting<'_> {
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn identity(&self) -> String {
        self.inner.identity()
    }
    fn head(&self) -> Result<Option<RawHead>, storage::Error> {
        self.inner.head()
    }
    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, storage::Error> {
        self.read.lock().unwrap().push(*id);
        self.inner.manifest(id)
    }
    fn pack_size(&self, id: &ContentId) -> Result<u64, storage::Error> {
        self.inner.pack_size(id)
    }
    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, storage::Error> {
        self.inner.open_pack(id)
    }
    fn create(&self) -> Result<(), storage::Error> {
        self.inner.create()
    }
    fn stage_object(&self) -> Result<Box<dyn StagedObject>, storage::Error> {
        self.inner.stage_object()
    }
    fn put_manifest(&self, bytes: &[u8]) -> Result<ContentId, storage::Error> {
        self.inner.put_manifest(bytes)
    }
    fn swap_head(&self, expected: Option<&ContentId>, new: &ContentId) -> Result<(), storage::Error> {
        self.inner.swap_head(expected, new)
    }
}
