//! A pack that is complete and does not count yet.

use std::path::{Path, PathBuf};

use gix_hash::ObjectId;

use super::MODE;
use crate::durable::{Context as _, Error, Fs};
use crate::pack::index::write::Index;

/// A pack that is complete in its file, without an index yet. Not synced.
#[derive(Debug, Clone)]
pub struct Completed {
    /// The file, which the owner moves or removes.
    pub path: PathBuf,
    /// The checksum of the pack.
    pub id: ObjectId,
    /// The number of its entries.
    pub objects: u32,
    /// Its length.
    pub bytes: u64,
    pub(super) format: gix_hash::Kind,
    pub(super) ids: Vec<ObjectId>,
    pub(super) offsets: Vec<u64>,
    pub(super) crcs: Vec<u32>,
}

impl Completed {
    /// Writes the `.idx` and `.rev` files of the pack. Not synced.
    pub fn write_index(&self, fs: &dyn Fs, idx: &Path, rev: &Path) -> Result<(), Error> {
        let mut order: Vec<u32> = (0..self.objects).collect();
        order.sort_unstable_by_key(|entry| self.ids[*entry as usize]);
        let index = Index {
            format: self.format,
            order: &order,
            offsets: &self.offsets,
            crcs: &self.crcs,
            pack: self.id,
        };
        let mut file = fs.create_new(rev, MODE).during("create", rev)?;
        index.write_reverse(&mut file).during("write", rev)?;
        let mut file = fs.create_new(idx, MODE).during("create", idx)?;
        index
            .write(|entry| &self.ids[entry as usize], &mut file)
            .during("write", idx)
    }
}
