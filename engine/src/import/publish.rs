//! Moves packs out of quarantine.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;

use crate::durable::{self, Context as _, Fs};
use crate::pack::index::Indexed;
use crate::store::Pack;

/// A pack that everybody sees now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPack {
    /// The `.pack` file.
    pub pack: PathBuf,
    /// The `.idx` file.
    pub idx: PathBuf,
    /// The `.keep` file, if one was wanted and this import made it. Whoever asked for it removes it when the objects
    /// are referred to. None also when the pack was there before and was kept by somebody else, and when the file is to
    /// stay: beside packs that hold chunks of chunked files, which Git would take for unreachable.
    pub keep: Option<PathBuf>,
    /// The checksum of the pack, which is in the names.
    pub id: ObjectId,
    /// The number of its entries.
    pub objects: u32,
}

/// What the `.keep` file of a pack with chunks says.
const KEEP_CHUNKS: &str = "chunks of chunked files; git chunk gc takes care of this pack";

/// The order in which files become visible: a pack counts from the moment when it has an index.
const ORDER: [&str; 3] = ["pack", "rev", "idx"];

/// Moves `packs` to the folder `to`, so that each of them, and all their names, survive a power cut.
pub(super) fn publish(
    fs: &dyn Fs,
    packs: &[Indexed],
    chunks: &[bool],
    to: &Path,
    keep: Option<&str>,
) -> Result<Vec<PublishedPack>, durable::Error> {
    for pack in packs {
        durable::sync_files(fs, &ORDER.map(|extension| pack.pack.with_extension(extension)))?;
    }
    durable::create_dirs(fs, to, 0o777)?;
    let mut published = Vec::with_capacity(packs.len());
    let mut kept = Vec::new();
    let moved = move_all(fs, (packs, chunks), to, keep, &mut published, &mut kept);
    if moved.is_err() {
        // Whoever would remove them is not told about them.
        for keep in kept {
            let _ = fs.unlink(&keep);
        }
    }
    moved.map(|()| published)
}

/// Moves the files; pushes what was published, and the `.keep` files that were made for it.
fn move_all(
    fs: &dyn Fs,
    (packs, chunks): (&[Indexed], &[bool]),
    to: &Path,
    keep: Option<&str>,
    published: &mut Vec<PublishedPack>,
    kept: &mut Vec<PathBuf>,
) -> Result<(), durable::Error> {
    for (pack, &chunks) in packs.iter().zip(chunks) {
        let target = to.join(pack.pack.file_name().unwrap_or_default());
        let message = if chunks { Some(KEEP_CHUNKS) } else { keep };
        let keep = match message {
            Some(message) => keep_file(fs, &target.with_extension("keep"), message)?,
            None => None,
        };
        kept.extend(keep.clone());
        let keep = keep.filter(|_| !chunks);
        if !is_there(fs, pack, &target)? {
            for extension in ORDER {
                let (from, target) = (
                    pack.pack.with_extension(extension),
                    target.with_extension(extension),
                );
                fs.rename(&from, &target).during("publish", &target)?;
            }
        }
        published.push(PublishedPack {
            idx: target.with_extension("idx"),
            pack: target,
            keep,
            id: pack.id,
            objects: pack.objects,
        });
    }
    // Of packs that were there before, too: whoever put them there may not have come this far.
    fs.sync_dir(to).during("sync folder", to)
}

/// Makes a `.keep` file unless there is one.
fn keep_file(fs: &dyn Fs, path: &Path, message: &str) -> Result<Option<PathBuf>, durable::Error> {
    let mut file = match fs.create_new(path, 0o600) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(durable::Error::new("create", path, error)),
    };
    // Not synced: after a power cut, nobody waits for the references any more.
    let written = writeln!(file, "{message}").during("write", path);
    if let Err(error) = written {
        let _ = fs.unlink(path);
        return Err(error);
    }
    Ok(Some(path.to_owned()))
}

/// True if the same pack is there already, whole as far as lengths, header and checksums tell, and durable. If not, the
/// new files take the places of those that are there.
fn is_there(fs: &dyn Fs, pack: &Indexed, target: &Path) -> Result<bool, durable::Error> {
    let length = |path: &Path| match std::fs::metadata(path) {
        Ok(meta) => Ok(Some(meta.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).during("examine", path),
    };
    for extension in ["pack", "idx"] {
        let theirs = target.with_extension(extension);
        let ours = pack.pack.with_extension(extension);
        if length(&theirs)? != length(&ours)? {
            return Ok(false);
        }
    }
    let theirs = Pack::open(target, pack.id.kind());
    if theirs.and_then(|theirs| theirs.data_end()).is_err() {
        return Ok(false);
    }
    durable::sync_files(
        fs,
        &["pack", "idx"].map(|extension| target.with_extension(extension)),
    )?;
    Ok(true)
}
