//! From pointers to files of the work tree.
//!
//! A file is written under a temporary name, verified, and renamed, so that it is the old one or the new one. Where the
//! file that is there is known to hold a version that differs little, what it has is used: its blocks are shared with the
//! new file where the file system can do that; otherwise it is changed in place, and a note in the repository tells the
//! next command to finish the job if this one could not; a file that must stay as it is is copied.

mod copy;
mod journal;

use std::fs::{File, Metadata, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ingot_engine::chunked::{self, Pointer, RestoreOptions};
use ingot_engine::progress::Progress;
use ingot_engine::store::Store;

use crate::Error;
use crate::error::During as _;

pub use journal::{Journal, recover};

/// Changing a file in place pays from this size on.
const WORTH_PATCHING: u64 = 1 << 20;
/// Names of files that are not complete yet.
const TEMPORARY: &str = ".git-chunk-";

/// Where a file comes from and goes to.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The file, whose folder exists.
    pub path: &'a Path,
    /// Whether it may be executed.
    pub executable: bool,
    /// The version that the file is known to hold now, by its stat data and nothing less.
    pub holds: Option<&'a Pointer>,
}

/// Writes the file that `pointer` stands for. Returns its stat data, and how many bytes were written.
pub fn restore(
    store: &Store,
    pointer: &Pointer,
    target: &Target<'_>,
    journal: Option<&Journal>,
    progress: &dyn Progress,
) -> Result<(Metadata, u64), Error> {
    if let Some(old) = target.holds
        && pointer.size.min(old.size) >= WORTH_PATCHING
        // Old lists that cannot be read any more are no help.
        && chunked::differs_little(store, old, pointer).unwrap_or(false)
    {
        let versions = (old, pointer);
        if let Some(done) = patched_copy(store, versions, target, copy::share, progress)? {
            return Ok(done);
        }
        if let Some(journal) = journal
            && let Some(done) = patch(store, versions, target, journal, progress)?
        {
            return Ok(done);
        }
        if let Some(done) = patched_copy(store, versions, target, copy::copy, progress)? {
            return Ok(done);
        }
    }
    let options = RestoreOptions { progress };
    let mut temporary = Temporary::create(target)?;
    let restored = chunked::restore(store, pointer, &temporary.file, &temporary.path, &options)?;
    let meta = temporary.publish(target.path)?;
    Ok((meta, restored.written))
}

/// Makes a copy of the file that is there and changes that. `None` if that cannot be done.
fn patched_copy(
    store: &Store,
    (old, new): (&Pointer, &Pointer),
    target: &Target<'_>,
    copy: copy::Way,
    progress: &dyn Progress,
) -> Result<Option<(Metadata, u64)>, Error> {
    let Ok(from) = File::open(target.path) else {
        return Ok(None);
    };
    if !from
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.len() == old.size)
    {
        return Ok(None);
    }
    let mut temporary = Temporary::create(target)?;
    if copy(&from, &temporary.file, old.size).is_err() {
        return Ok(None);
    }
    let options = RestoreOptions { progress };
    match chunked::patch(store, (old, new), &temporary.file, &temporary.path, &options) {
        Ok(Some(restored)) => Ok(Some((temporary.publish(target.path)?, restored.written))),
        Err(error @ chunked::Error::Interrupted) => Err(error.into()),
        // The file was not what it was believed to be, or something is missing: that is told when it is written anew.
        Ok(None) | Err(_) => Ok(None),
    }
}

/// Changes the file in place. `None` if that cannot be done or would gain nothing; the file is as it was then.
fn patch(
    store: &Store,
    (old, new): (&Pointer, &Pointer),
    target: &Target<'_>,
    journal: &Journal,
    progress: &dyn Progress,
) -> Result<Option<(Metadata, u64)>, Error> {
    let path = target.path;
    let Ok(before) = std::fs::symlink_metadata(path) else {
        return Ok(None);
    };
    if !before.is_file()
        || has_other_names(&before)
        || before.len() != old.size
        || is_executable(&before) != target.executable
    {
        return Ok(None);
    }
    let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
        return Ok(None);
    };
    let note = journal.begin(path, new, target.executable)?;
    let options = RestoreOptions { progress };
    let result = chunked::patch(store, (old, new), &file, path, &options);
    match result {
        Ok(Some(restored)) => {
            let meta = file.metadata().during("examine", path)?;
            note.done()?;
            Ok(Some((meta, restored.written)))
        }
        Ok(None) => {
            note.done()?;
            Ok(None)
        }
        Err(error) => {
            // If nothing was written, nothing has to be repaired; otherwise it is, by writing the file anew.
            let untouched = file
                .metadata()
                .is_ok_and(|now| now.len() == before.len() && now.modified().ok() == before.modified().ok());
            if untouched {
                note.done()?;
                return match error {
                    chunked::Error::Interrupted => Err(error.into()),
                    _ => Ok(None),
                };
            }
            let mut temporary = Temporary::create(target)?;
            let restored = chunked::restore(store, new, &temporary.file, &temporary.path, &options)?;
            let meta = temporary.publish(path)?;
            note.done()?;
            Ok(Some((meta, restored.written)))
        }
    }
}

/// Writes bytes as a file of the work tree. A file that is there is replaced when the new one is complete.
pub fn write_file(target: &Target<'_>, bytes: &[u8]) -> Result<Metadata, Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    with_mode(&mut options, target.executable);
    if let Ok(mut file) = options.open(target.path) {
        let written = file.write_all(bytes).and_then(|()| file.metadata());
        if written.is_err() {
            let _ = std::fs::remove_file(target.path);
        }
        return written.during("write", target.path);
    }
    let mut temporary = Temporary::create(target)?;
    temporary.file.write_all(bytes).during("write", &temporary.path)?;
    temporary.publish(target.path)
}

/// Copies a stream into a file of the work tree.
pub fn copy_file(target: &Target<'_>, from: &mut dyn std::io::Read) -> Result<Metadata, Error> {
    let mut temporary = Temporary::create(target)?;
    std::io::copy(from, &mut temporary.file).during("write", &temporary.path)?;
    temporary.publish(target.path)
}

/// A file beside its final place, gone if it does not get there.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn create(target: &Target<'_>) -> Result<Temporary, Error> {
        let folder = target.path.parent().unwrap_or(Path::new("."));
        let mut attempt = 0u32;
        loop {
            let number = std::process::id()
                .wrapping_mul(0x9e37_79b9)
                .wrapping_add(next_number());
            let path = folder.join(format!("{TEMPORARY}{number:08x}"));
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            with_mode(&mut options, target.executable);
            match options.open(&path) {
                Ok(file) => return Ok(Temporary { path, file }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && attempt < 64 => {
                    attempt += 1
                }
                Err(error) => return Err(error).during("create", &path),
            }
        }
    }

    fn publish(&mut self, path: &Path) -> Result<Metadata, Error> {
        // Renaming does not change what the index remembers of a file, except the time of its status on some systems.
        std::fs::rename(&self.path, path).during("replace", path)?;
        self.path = PathBuf::new();
        self.file.metadata().during("examine", path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // The failure that led here is the one worth reporting.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn next_number() -> u32 {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

#[cfg(unix)]
fn with_mode(options: &mut OpenOptions, executable: bool) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(if executable { 0o777 } else { 0o666 });
}

#[cfg(not(unix))]
fn with_mode(_options: &mut OpenOptions, _executable: bool) {}

#[cfg(unix)]
fn has_other_names(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    meta.nlink() != 1
}

#[cfg(not(unix))]
fn has_other_names(_meta: &Metadata) -> bool {
    true
}

/// Whether the file may be executed by its owner, which is all that Git remembers.
#[cfg(unix)]
pub fn is_executable(meta: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o100 != 0
}

/// Whether the file may be executed by its owner, which is all that Git remembers.
#[cfg(not(unix))]
pub fn is_executable(_meta: &Metadata) -> bool {
    false
}
