//! The one name that changes.

use std::io::Write as _;
use std::time::Duration;

use ingot_engine::durable::StagedFile;

use super::super::{HEAD_LIMIT, RawHead};
use super::remains::Remains;
use super::{Directory, Error, FILE_MODE};
use crate::flock::{FileLock, Patience};
use crate::protocol::ContentId;

/// The lock is held for one comparison and one rename. Whoever holds it longer than this is stopped or gone astray.
const LOCK_WAIT: Duration = Duration::from_secs(30);

impl Directory {
    pub(super) fn read_head(&self) -> Result<Option<RawHead>, Error> {
        let path = self.root.join("HEAD");
        if let Some(file) = self.open_regular(&path)? {
            return Ok(Some(RawHead::new(self.read_bounded(file, &path, HEAD_LIMIT)?)));
        }
        if !self.exists()? {
            return Ok(None);
        }
        match self.remains()? {
            Remains::Nothing => Ok(None),
            Remains::Repository(found) => Err(Error::HeadMissing {
                store: self.name.clone(),
                found,
            }),
        }
    }

    pub(super) fn move_head(&self, expected: Option<&ContentId>, new: &ContentId) -> Result<(), Error> {
        if !self.exists()? {
            return Err(Error::NotInitialized {
                store: self.name.clone(),
            });
        }
        let lock = self.lock_head()?;
        let actual = match self.read_head()? {
            None => None,
            Some(head) => match head.id() {
                Some(id) => Some(id),
                None => return Err(self.corrupt(&self.root.join("HEAD"), "is not the id of a manifest")),
            },
        };
        if actual.as_ref() != expected {
            return Err(Error::HeadChanged {
                expected: expected.copied(),
                actual,
            });
        }
        self.replace_head(new)?;
        drop(lock);
        Ok(())
    }

    /// Moves the head from what it was seen to be, which may be anything, to `new`.
    pub(super) fn move_observed(&self, observed: &RawHead, new: &ContentId) -> Result<(), Error> {
        let lock = self.lock_head()?;
        let actual = self.read_head()?;
        if actual.as_ref() != Some(observed) {
            return Err(Error::HeadChanged {
                expected: observed.id(),
                actual: actual.and_then(|head| head.id()),
            });
        }
        self.replace_head(new)?;
        drop(lock);
        Ok(())
    }

    fn lock_head(&self) -> Result<FileLock, Error> {
        FileLock::acquire(&self.root.join("HEAD.lock"), Patience::silent(LOCK_WAIT))
            .map_err(|error| Error::from_lock(&self.name, error))
    }

    fn replace_head(&self, new: &ContentId) -> Result<(), Error> {
        let head = RawHead::from(new);
        let mut staged = StagedFile::create(self.fs.clone(), &self.root, ".HEAD-", FILE_MODE)
            .map_err(|error| self.unwritten(error))?;
        staged
            .write_all(head.bytes())
            .map_err(|error| self.failed("write", staged.path(), error))?;
        match staged.publish_replacing(&self.root.join("HEAD")) {
            Ok(()) => Ok(()),
            // The last step of all may be what failed; then everybody can see the new head already.
            Err(source) if matches!(self.read_head(), Ok(Some(seen)) if seen == head) => {
                Err(Error::Uncertain {
                    store: self.name.clone(),
                    source,
                })
            }
            Err(error) => Err(self.unwritten(error)),
        }
    }
}
