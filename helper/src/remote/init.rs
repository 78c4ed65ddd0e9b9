//! Begins a new encrypted repository.

use std::path::Path;
use std::sync::Arc;

use ingot_engine::durable::Fs;

use super::{Error, View};
use crate::flock::Patience;
use crate::protocol::{ContentId, DeviceKey, publication};
use crate::state::AdminPin;
use crate::storage::{self, Storage};

/// A repository that was just begun.
#[derive(Debug)]
pub struct Founded {
    /// Its first manifest.
    pub manifest: ContentId,
    /// The store.
    pub view: View,
}

/// Begins a repository owned by `key`, which was read from `key_file`, in a place where there was none.
///
/// A founding key serves one repository: the pin beside the key file would otherwise take the second for a fork of the
/// first. That is checked before anything is written. A beginning that was interrupted is finished.
pub fn init(
    storage: &dyn Storage,
    key: &DeviceKey,
    key_file: &Path,
    fs: Arc<dyn Fs>,
    patience: Patience<'_>,
) -> Result<Founded, Error> {
    let head = match storage.head() {
        // Whoever asks for a new repository wants the folders above it too.
        Err(storage::Error::Unreachable { .. }) => None,
        head => head?,
    };
    if head.is_some() {
        return resume(storage, key, key_file, fs, patience);
    }
    if !key.is_founder() {
        return Err(Error::NotFounder {
            key: key_file.to_owned(),
        });
    }
    let mut pin = AdminPin::open(fs, key_file, patience)?;
    if pin.state().is_some() {
        return Err(Error::KeyInUse {
            key: key_file.to_owned(),
        });
    }
    let publication = publication::genesis(key)?;
    storage.create()?;
    if storage.head()?.is_some() {
        return Err(already(storage));
    }
    let manifest = storage.put_manifest(publication.bytes())?;
    storage.swap_head(None, &manifest)?;
    let view = View::of(publication.into_chain())?;
    pin.record(&view.observed(&|number| view.id_at(number)))?;
    Ok(Founded { manifest, view })
}

/// Finishes a beginning that ended between the head and the pin: nobody has gone on from the first manifest, and the
/// key, which is this repository's, remembers nothing. Whatever else is there is a repository in use.
fn resume(
    storage: &dyn Storage,
    key: &DeviceKey,
    key_file: &Path,
    fs: Arc<dyn Fs>,
    patience: Patience<'_>,
) -> Result<Founded, Error> {
    if !key.is_founder() {
        return Err(already(storage));
    }
    let mut pin = AdminPin::open(fs, key_file, patience)?;
    if pin.state().is_some() {
        return Err(already(storage));
    }
    let view = match View::read(storage, key) {
        Ok(view) if view.generation() == 0 => view,
        _ => return Err(already(storage)),
    };
    // A head that was seen may still not survive a power cut; the pin must not be ahead of it.
    let manifest = *view.head();
    storage.swap_head(Some(&manifest), &manifest)?;
    pin.record(&view.observed(&|number| view.id_at(number)))?;
    Ok(Founded { manifest, view })
}

fn already(storage: &dyn Storage) -> Error {
    Error::AlreadyInitialized {
        store: storage.describe(),
    }
}
