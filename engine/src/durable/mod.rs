//! Every write that must survive a power cut.
//!
//! The rule: content is durable before its name becomes visible, and the name is durable before anyone is told. So a
//! reader, and a writer that finds its content already present, can rely on what they see. A folder that cannot be
//! synced after a rename is an error, not a reason to undo: the new state is visible and may or may not survive.
//!
//! | Need | Use |
//! | --- | --- |
//! | a small file, replaced as a whole | [`write_atomic`] |
//! | a large or streamed file | [`StagedFile`] |
//! | a file that others edit as well, under Git's `.lock` | [`Lock`] |
//! | folders | [`create_dirs`] |

#[cfg(target_os = "linux")]
mod direct;
mod fs;
mod lock;
mod staged;
#[doc(hidden)]
pub mod testing;

use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use fs::{Fs, Handle, Kind, Real, real};
pub use lock::Lock;
pub use staged::{Published, StagedFile};

/// A file system call that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", .path.display())]
pub struct Error {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Error {
    /// `action` is a verb: the message is "cannot", the action, the path, and what `source` says.
    pub fn new(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error {
            action,
            path: path.into(),
            source,
        }
    }

    /// What the operating system answered.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// The file or folder that the call was about.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Puts the path and the attempted action beside an [`io::Error`].
pub(crate) trait Context<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::new(action, path, source))
    }
}

/// Syncs files, all at once: file systems that keep a journal write it once for several that wait together. Returns the
/// first failure in the order of `paths`.
pub fn sync_files(fs: &dyn Fs, paths: &[PathBuf]) -> Result<(), Error> {
    sync_all(fs, paths, &[])
}

/// [`sync_files`], and the names in folders with them: for what only counts when a name that is made later leads to it.
pub fn sync_all(fs: &dyn Fs, files: &[PathBuf], folders: &[PathBuf]) -> Result<(), Error> {
    let file = |path: &PathBuf| fs.sync_file(path).during("sync", path);
    let folder = |path: &PathBuf| fs.sync_dir(path).during("sync folder", path);
    std::thread::scope(|scope| {
        let mut others = Vec::with_capacity(files.len() + folders.len());
        others.extend(files.iter().skip(1).map(|path| scope.spawn(move || file(path))));
        others.extend(folders.iter().map(|path| scope.spawn(move || folder(path))));
        let mut result = files.first().map_or(Ok(()), file);
        for other in others {
            let synced = match other.join() {
                Ok(synced) => synced,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            result = result.and(synced);
        }
        result
    })
}

/// Replaces the file at `path` by one that holds `bytes`, or creates it: afterwards, and after any crash on the way,
/// the file is the old one or the new one. `mode` is the Unix permission set of the new file, whatever the old had.
/// The folder must exist.
pub fn write_atomic(fs: &dyn Fs, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let folder = parent(path);
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".tmp-");
    let (temporary, mut file) = create_unique(fs, folder, &prefix, mode)?;
    let result = file
        .write_all(bytes)
        .during("write", &temporary)
        .and_then(|()| file.sync().during("sync", &temporary))
        .and_then(|()| {
            drop(file);
            fs.rename(&temporary, path).during("replace", path)
        });
    if result.is_err() {
        // The first failure is the one worth reporting.
        let _ = fs.unlink(&temporary);
    }
    result?;
    fs.sync_dir(folder).during("sync folder", folder)
}

/// Creates the folder `path` and those above it that are missing, with `mode` as Unix permissions, and makes their
/// names durable, up to the deepest folder that was there before. Does nothing when `path` is a folder already.
pub fn create_dirs(fs: &dyn Fs, path: &Path, mode: u32) -> Result<(), Error> {
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match fs.kind(at).during("examine", at)? {
            Some(Kind::Folder) => break,
            // A link may lead to a folder; a file in the way makes the creation below fail with its own words.
            Some(_) => {
                if missing.is_empty() && fs.read_dir(at).is_ok() {
                    return Ok(());
                }
                break;
            }
            None => missing.push(at),
        }
        match at.parent() {
            Some(up) if !up.as_os_str().is_empty() => at = up,
            _ => {
                at = Path::new(".");
                break;
            }
        }
    }
    if missing.is_empty() {
        return match fs.kind(path).during("examine", path)? {
            Some(Kind::Folder) => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)).during("create folder", path),
        };
    }
    for folder in missing.iter().rev() {
        match fs.create_dir(folder, mode) {
            // Somebody else was faster; the name is synced below all the same.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result.during("create folder", folder)?,
        }
    }
    for folder in &missing {
        fs.sync_dir(folder).during("sync folder", folder)?;
    }
    fs.sync_dir(at).during("sync folder", at)
}

/// Hands a large file that was just written to `sink`, front to back, without filling the page cache with it where that
/// can be avoided.
pub(crate) fn read_through(path: &Path, sink: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return direct::read_through(path, sink);
    #[cfg(not(target_os = "linux"))]
    {
        let mut file = std::fs::File::open(path)?;
        let mut piece = vec![0; 1 << 20];
        loop {
            match io::Read::read(&mut file, &mut piece)? {
                0 => return Ok(()),
                count => sink(&piece[..count]),
            }
        }
    }
}

/// The folder that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates a file in `folder` under a name that starts with `prefix` and is used by nobody else.
pub(crate) fn create_unique(
    fs: &dyn Fs,
    folder: &Path,
    prefix: &std::ffi::OsStr,
    mode: u32,
) -> Result<(PathBuf, Box<dyn Handle>), Error> {
    unique_by(folder, prefix, &|path| fs.create_new(path, mode))
}

/// [`create_unique`] for a file that is going to be large.
pub(crate) fn create_unique_large(
    fs: &dyn Fs,
    folder: &Path,
    prefix: &std::ffi::OsStr,
    mode: u32,
) -> Result<(PathBuf, Box<dyn Handle>), Error> {
    unique_by(folder, prefix, &|path| fs.create_large(path, mode))
}

/// How a file is created.
type Create<'a> = &'a dyn Fn(&Path) -> io::Result<Box<dyn Handle>>;

fn unique_by(
    folder: &Path,
    prefix: &std::ffi::OsStr,
    create: Create<'_>,
) -> Result<(PathBuf, Box<dyn Handle>), Error> {
    let mut attempts = 0;
    loop {
        let mut name = prefix.to_owned();
        name.push(unique());
        let path = folder.join(name);
        match create(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < 16 => attempts += 1,
            Err(error) => return Err(Error::new("create", path, error)),
        }
    }
}

/// Sixteen hexadecimal digits that differ from call to call and from process to process.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // The standard library seeds this state from the operating system, which is randomness enough for a file name.
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    format!("{:016x}", hasher.finish())
}
