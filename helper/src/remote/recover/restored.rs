//! What is left in a damaged place, as storage that can only be read.

use std::io::Read;

use crate::protocol::ContentId;
use crate::storage::{Error, RawHead, Recovery, StagedObject, Storage};

/// See the module.
pub(super) struct Restored<'a> {
    pub place: &'a dyn Storage,
    pub left: &'a dyn Recovery,
}

impl Restored<'_> {
    fn refused(&self) -> Error {
        Error::Refused {
            store: self.place.describe(),
            reason: "it is being recovered".to_owned(),
        }
    }
}

impl Storage for Restored<'_> {
    fn describe(&self) -> String {
        self.place.describe()
    }

    fn identity(&self) -> String {
        self.place.identity()
    }

    fn head(&self) -> Result<Option<RawHead>, Error> {
        Ok(self.left.observed().cloned())
    }

    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error> {
        self.left.manifest(id)
    }

    fn pack_size(&self, _id: &ContentId) -> Result<u64, Error> {
        Err(self.refused())
    }

    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, Error> {
        self.left.open_pack(id)
    }

    fn create(&self) -> Result<(), Error> {
        Err(self.refused())
    }

    fn stage_object(&self) -> Result<Box<dyn StagedObject>, Error> {
        Err(self.refused())
    }

    fn put_manifest(&self, _bytes: &[u8]) -> Result<ContentId, Error> {
        Err(self.refused())
    }

    fn swap_head(&self, _expected: Option<&ContentId>, _new: &ContentId) -> Result<(), Error> {
        Err(self.refused())
    }
}
