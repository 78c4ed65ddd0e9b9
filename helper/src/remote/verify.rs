//! Verify: everything that is stored, read from end to end.

use std::io::Read as _;

use gix_hash::ObjectId;
use ingot_engine::import::{self, Import};

use super::fetch::Joining;
use super::told::Opening;
use super::{Error, Remote, View};
use crate::protocol::manifest::PackDescriptor;

/// What was verified.
#[derive(Debug)]
pub struct Verified {
    /// The store.
    pub view: View,
    /// Its packs.
    pub packs: usize,
    /// Bytes of packs as they are stored.
    pub stored: u64,
    /// Objects in the packs; known after a full verification only.
    pub objects: Option<u64>,
}

impl Remote<'_> {
    /// Verifies the chain and opens every pack. With `full`, every Git object is rebuilt and hashed as well, and the
    /// history of every reference has to be complete in the store alone; that takes a temporary copy of the packs.
    pub fn verify(&self, full: bool) -> Result<Verified, Error> {
        let (view, _memory) = self.look_at_all()?;
        let packs: Vec<&PackDescriptor> = view.chain().packs().collect();
        let stored = super::view::sum(packs.iter().map(|pack| super::view::stored_size(pack)));
        let count = packs.len();
        let objects = if full {
            Some(self.rebuild(&view, &packs)?)
        } else {
            self.open_all(&view, &packs)?
        };
        Ok(Verified {
            view,
            packs: count,
            stored,
            objects,
        })
    }

    pub(super) fn open_all(&self, view: &View, packs: &[&PackDescriptor]) -> Result<Option<u64>, Error> {
        let total = super::view::sum(packs.iter().map(|pack| pack.plaintext_size));
        let opening = Opening::new(self.progress, "Verifying packs", total);
        self.expect(packs);
        let mut buffer = vec![0; 256 << 10];
        for pack in packs {
            let mut stream = self.opened(view, pack)?;
            opening.next(pack.plaintext_size);
            loop {
                let read = stream
                    .read(&mut buffer)
                    .map_err(|source| Error::from_stream(pack.id, source))?;
                if read == 0 {
                    break;
                }
                opening.opened(read as u64);
                if self.progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
        }
        self.progress.end();
        Ok(None)
    }

    /// Rebuilds all objects in a temporary folder, and requires that every reference is complete.
    pub(super) fn rebuild(&self, view: &View, packs: &[&PackDescriptor]) -> Result<u64, Error> {
        let room = tempfile::Builder::new()
            .prefix("ingot-verify-")
            .tempdir()
            .map_err(Error::Temporary)?;
        let format = view.format().unwrap_or(gix_hash::Kind::Sha1);
        let options = import::Options {
            threads: self.threads,
            ..import::Options::default()
        };
        let mut import = Import::begin(room.path(), format, options)?;
        let brought = self.take_packs(view, packs, &mut import, Joining::None)?;
        let tips: Vec<ObjectId> = view.refs().values().copied().collect();
        self.require_complete(&import, view, &tips, &[])?;
        Ok(brought.objects)
    }
}
