//! A folder remembers no head but the present one.

use std::io::Read;

use super::super::{Heads, RawHead, Recovery, Storage as _};
use super::{Directory, Error};
use crate::protocol::ContentId;

/// The folder, and its head as it was.
pub(super) struct Observed {
    directory: Directory,
    head: Option<RawHead>,
}

impl Observed {
    pub fn new(directory: &Directory) -> Observed {
        Observed {
            directory: directory.clone(),
            // Why it cannot be read is told to whoever asks for the head.
            head: directory.read_head().ok().flatten(),
        }
    }
}

impl Recovery for Observed {
    fn observed(&self) -> Option<&RawHead> {
        self.head.as_ref()
    }

    fn heads(&self) -> Result<Option<Heads>, Error> {
        Ok(None)
    }

    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error> {
        self.directory.manifest(id)
    }

    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, Error> {
        self.directory.open_pack(id)
    }

    fn publish(
        &self,
        manifest: &[u8],
        _manifests: &[ContentId],
        _packs: &[ContentId],
    ) -> Result<ContentId, Error> {
        let Some(observed) = &self.head else {
            return Err(Error::HeadChanged {
                expected: None,
                actual: None,
            });
        };
        let id = self.directory.put_manifest(manifest)?;
        self.directory.move_observed(observed, &id)?;
        Ok(id)
    }
}
