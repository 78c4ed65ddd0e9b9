//! Begins a new encrypted repository.

use std::path::Path;
use std::sync::Arc;

use ingot_engine::durable::Fs;

use super::{Error, View};
use crate::flock::Patience;
use crate::protocol::{ContentId, DeviceKey, publication};
use crate::state::AdminPin;
use crate::storage::{self, RawHead, Storage};

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
/// first. That is checked before anything is written.
pub fn init(
    storage: &dyn Storage,
    key: &DeviceKey,
    key_file: &Path,
    fs: Arc<dyn Fs>,
    patience: Patience<'_>,
) -> Result<Founded, Error> {
    let refuse_existing = |head: Option<RawHead>| match head {
        Some(_) => Err(Error::AlreadyInitialized {
            store: storage.describe(),
        }),
        None => Ok(()),
    };
    match storage.head() {
        // Whoever asks for a new repository wants the folders above it too.
        Err(storage::Error::Unreachable { .. }) => {}
        head => refuse_existing(head?)?,
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
    refuse_existing(storage.head()?)?;
    let manifest = storage.put_manifest(publication.bytes())?;
    storage.swap_head(None, &manifest)?;
    let view = View::of(publication.into_chain())?;
    pin.record(&view.observed(&|number| view.id_at(number)))?;
    Ok(Founded { manifest, view })
}
