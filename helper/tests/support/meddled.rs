//! Storage for races.

use std::io::Read;
use std::sync::Mutex;

use ingot_helper::protocol::ContentId;
use ingot_helper::storage::{self, RawHead, StagedObject, Storage};

/// Storage in which somebody else does something just before a head is moved.
pub struct Meddled<'a> {
    pub inner: Box<dyn Storage>,
    pub meddle: Mutex<Box<dyn FnMut() + Send + 'a>>,
    /// The most bytes of a pack, in place of what the storage says.
    pub limit: Option<u64>,
}

impl Storage for Meddled<'_> {
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
        self.inner.manifest(id)
    }
    fn pack_size(&self, id: &ContentId) -> Result<u64, storage::Error> {
        self.inner.pack_size(id)
    }
    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, storage::Error> {
        self.inner.open_pack(id)
    }
    fn pack_limit(&self) -> Option<u64> {
        self.limit.or(self.inner.pack_limit())
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
        (self.meddle.lock().unwrap())();
        self.inner.swap_head(expected, new)
    }
}
