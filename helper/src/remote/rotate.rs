//! A device gets new keys: the new ones are added and the old ones revoked in one generation.
//!
//! Order, so that at every moment a file holds a key that opens the store:
//!
//! 1. The new key goes into a file of its own, `<key file>.next`.
//! 2. The change of membership is published. From here on only the new key opens the store.
//! 3. The key file is replaced as a whole, and `.next` removed.
//!
//! Whoever opens the key file while `.next` is there asks the store which of the two it is by now: [`settle`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingot_engine::durable::{self, Fs};

use super::{Changed, Error, Remote, View};
use crate::flock::Patience;
use crate::keys::{KeyFiles, Opened, Wrapping};
use crate::protocol::policy::{self, Change, Device};
use crate::protocol::{ContentId, DeviceId, DeviceKey, Role, key_file, publication};
use crate::state::AdminPin;
use crate::storage::Storage;

/// What a rotation did.
#[derive(Debug)]
pub struct Rotated {
    /// The device that was revoked.
    pub old: DeviceId,
    /// The device that took its place.
    pub new: DeviceId,
    /// What was published.
    pub changed: Changed,
}

/// Where the new key waits until its publication is certain.
pub fn next_key_file(key_file: &Path) -> PathBuf {
    let mut name = key_file.as_os_str().to_owned();
    name.push(".next");
    PathBuf::from(name)
}

impl Remote<'_> {
    /// Replaces the key in `key_file`, which is an administrator's, by a new one with the same role. A passphrase that
    /// protects the old one protects the new one.
    ///
    /// Whatever happens on the way, the key that the store accepts is in `key_file` or in `.next` beside it.
    pub fn rotate(&self, keys: &KeyFiles, key_file: &Path) -> Result<Rotated, Error> {
        let mut pin = AdminPin::open(Arc::clone(&self.fs), key_file, self.patience)?;
        // Another rotation may have ended while this one waited for the lock.
        let Opened { key, wrapping } = keys.read(key_file)?;
        if key.id() != self.key.id() {
            return Err(Error::KeyReplaced {
                key: key_file.to_owned(),
            });
        }
        let (view, mut memory) = self.look_to_change(&mut pin)?;
        let own = view.chain().device(self.key.id());
        if !own.is_some_and(Device::is_active_administrator) {
            let error = policy::Error::NotAdministrator(*self.key.id());
            return Err(publication::Error::Policy(error).into());
        }
        let waiting = next_key_file(key_file);
        let next = self.next_key(keys, &view, &waiting, &wrapping)?;
        let changes = [
            Change::Add {
                device: next.key.public().clone(),
                role: Role::Admin,
            },
            Change::Revoke(*self.key.id()),
        ];
        let changed = match self.publish_members(view, &mut memory, &mut pin, &changes) {
            Ok(changed) => changed,
            Err(error) => {
                // What storage says may mean that the head has moved all the same.
                if !matches!(error, Error::Storage(_)) {
                    let _ = self.fs.unlink(&waiting);
                }
                return Err(error);
            }
        };
        take_over(&*self.fs, keys, key_file, &next)?;
        self.record_members(&changed, &mut memory, &mut pin)?;
        Ok(Rotated {
            old: *self.key.id(),
            new: *next.key.id(),
            changed,
        })
    }

    /// The key that waits already, or a new one.
    fn next_key(
        &self,
        keys: &KeyFiles,
        view: &View,
        waiting: &Path,
        wrapping: &Wrapping,
    ) -> Result<Opened, Error> {
        if waiting.exists() {
            let next = keys.read(waiting)?;
            let key = &next.key;
            if key.root() == view.chain().root() && view.chain().device(key.id()).is_none() {
                return Ok(next);
            }
        }
        let key = DeviceKey::generate(Some(*view.chain().root())).map_err(|source| {
            Error::KeyFile(key_file::Error::Content {
                path: waiting.to_owned(),
                source,
            })
        })?;
        keys.replace(&*self.fs, waiting, &key, wrapping)?;
        Ok(Opened {
            key,
            wrapping: wrapping.clone(),
        })
    }
}

/// Finishes a rotation that was interrupted, if it was published: the key that is to be used from now on.
///
/// `opened` was read from `key_file`. Nothing is believed that is not proved: only a history that the waiting key opens,
/// that holds it as an active reader, and that continues what is pinned, makes it the key of this device. Where the store
/// cannot tell, nothing changes.
pub fn settle(
    storage: &dyn Storage,
    keys: &KeyFiles,
    opened: Opened,
    key_file: &Path,
    fs: Arc<dyn Fs>,
    patience: Patience<'_>,
) -> Result<Opened, Error> {
    let waiting = next_key_file(key_file);
    if !waiting.exists() {
        return Ok(opened);
    }
    let pin = AdminPin::open(Arc::clone(&fs), key_file, patience)?;
    let opened = keys.read(key_file)?;
    if !waiting.exists() {
        return Ok(opened);
    }
    let next = keys.read(&waiting)?;
    if next.key.id() == opened.key.id() {
        remove(&*fs, &waiting)?;
        return Ok(opened);
    }
    let Ok(head) = View::head_of(storage) else {
        return Ok(opened);
    };
    if opens(storage, &head, &opened.key).is_some() {
        return Ok(opened);
    }
    let Some(view) = opens(storage, &head, &next.key) else {
        return Ok(opened);
    };
    if pin.check(&view.observed(&|number| view.id_at(number))).is_err() {
        return Ok(opened);
    }
    take_over(&*fs, keys, key_file, &next)?;
    Ok(next)
}

fn opens(storage: &dyn Storage, head: &ContentId, key: &DeviceKey) -> Option<View> {
    View::read(storage, head, key).ok()
}

/// Puts the waiting key into the key file.
fn take_over(fs: &dyn Fs, keys: &KeyFiles, key_file: &Path, next: &Opened) -> Result<(), Error> {
    keys.replace(fs, &real(key_file), &next.key, &next.wrapping)?;
    remove(fs, &next_key_file(key_file))
}

/// A link to the key file stays a link.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn remove(fs: &dyn Fs, path: &Path) -> Result<(), Error> {
    fs.unlink(path)
        .map_err(|source| durable::Error::new("remove", path, source).into())
}
