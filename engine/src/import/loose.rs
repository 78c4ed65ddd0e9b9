//! Publishes few objects as files of their own, as Git's receive-pack does with small packs.
//!
//! Every pack costs whoever opens the repository some calls, and nobody collects the packs of a repository into which much
//! is pushed and little else done. Files of their own cost only whoever reads them.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;

use super::Error;
use crate::durable::{self, Context as _, Fs};
use crate::pack::inflate::{Deflater, Level};
use crate::store::{Cache, Store};

/// Permissions of objects: nobody changes them.
const MODE: u32 = 0o444;

/// Writes `ids`, which `from` has, below the object folder `to`, so that they survive a power cut. Names appear when all
/// the content is on the disk; those that were there before are left as they are.
pub(super) fn publish(fs: &dyn Fs, from: &Store, ids: &[ObjectId], to: &Path) -> Result<(), Error> {
    let mut written: Vec<(PathBuf, PathBuf)> = Vec::with_capacity(ids.len());
    let result = write_all(fs, from, ids, to, &mut written);
    if result.is_err() {
        for (temporary, _) in &written {
            // Git tidies up such names, too.
            let _ = fs.unlink(temporary);
        }
    }
    result
}

fn write_all(
    fs: &dyn Fs,
    from: &Store,
    ids: &[ObjectId],
    to: &Path,
    written: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<(), Error> {
    let mut cache = Cache::new(0);
    let mut deflater = Deflater::new(Level::BEST_SPEED);
    let (mut content, mut compressed) = (Vec::new(), Vec::new());
    let mut folders = BTreeSet::new();
    let mut present = Vec::new();
    for id in ids {
        let hex = id.to_string();
        let folder = to.join(&hex[..2]);
        let path = folder.join(&hex[2..]);
        if folders.insert(folder.clone()) {
            durable::create_dirs(fs, &folder, 0o777)?;
        }
        if fs.kind(&path).during("examine", &path)?.is_some() {
            present.push(path);
            continue;
        }
        let kind = from.read(id, &mut cache, &mut content)?.ok_or_else(|| {
            let lost = std::io::Error::from(std::io::ErrorKind::NotFound);
            durable::Error::new("read", from.objects_dir(), lost)
        })?;
        let mut whole = format!("{kind} {}\0", content.len()).into_bytes();
        whole.extend_from_slice(&content);
        compressed.clear();
        deflater.deflate(&whole, &mut compressed);
        let (temporary, mut file) = durable::create_unique(fs, &folder, "tmp_obj_".as_ref(), MODE)?;
        written.push((temporary.clone(), path));
        file.write_all(&compressed).during("write", &temporary)?;
    }
    let mut contents: Vec<PathBuf> = written.iter().map(|(temporary, _)| temporary.clone()).collect();
    // Whoever wrote these may not have come so far.
    contents.extend(present);
    durable::sync_files(fs, &contents)?;
    for (temporary, path) in written.iter() {
        fs.rename(temporary, path).during("publish", path)?;
    }
    for folder in &folders {
        fs.sync_dir(folder).during("sync folder", folder)?;
    }
    Ok(())
}
