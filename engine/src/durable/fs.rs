//! The calls that durability is made of, behind a trait so that tests can watch them and make them fail.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// What a name stands for, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link or anything rarer.
    Other,
}

/// A file open for writing.
pub trait Handle: Write + Send {
    /// Returns once everything written so far would survive a power cut. The file's *name* is another matter: see
    /// [`Fs::sync_dir`].
    fn sync(&mut self) -> io::Result<()>;

    /// Replaces bytes that were written through this handle and not synced yet, such as a count in a header that is
    /// known only at the end. What is written next still goes to the end of the file.
    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// File system calls. The product uses [`Real`]; tests put [`super::testing`] in its place.
pub trait Fs: Send + Sync {
    /// Creates a file that must not exist yet, with `mode` as Unix permissions (less the umask).
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>>;
    /// [`create_new`](Self::create_new) for a file of many mebibytes that is not read soon: it may go to the disk past the
    /// page cache.
    fn create_large(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        self.create_new(path, mode)
    }
    /// Opens a file for writing at its end, creating it if it is absent.
    fn append(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>>;
    /// The whole content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The names in a folder, in no particular order.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<OsString>>;
    /// What `path` is; `None` when there is nothing.
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>>;
    /// Gives a file another name at once, replacing what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name, which must not exist yet.
    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()>;
    /// Removes a file.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Creates one folder, whose parent must exist.
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the content of a file durable that something else wrote and closed.
    fn sync_file(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable: what was created, renamed or removed there.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// The operating system's own calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

/// [`Real`] in the form that long-lived writers take.
pub fn real() -> Arc<dyn Fs> {
    Arc::new(Real)
}

struct RealHandle(File);

impl Write for RealHandle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Handle for RealHandle {
    fn sync(&mut self) -> io::Result<()> {
        // Data and length are what has to survive; times may be lost.
        self.0.sync_data()
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        rewrite(&self.0, offset, bytes)
    }
}

#[cfg(unix)]
fn rewrite(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn rewrite(file: &File, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    use std::io::Seek as _;
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        offset += count as u64;
        bytes = &bytes[count..];
    }
    // There, a positioned write moves the file's own position.
    let mut file = file;
    file.seek(io::SeekFrom::End(0)).map(drop)
}

#[cfg(unix)]
fn with_mode(options: &mut OpenOptions, mode: u32) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(mode);
}

#[cfg(not(unix))]
fn with_mode(_options: &mut OpenOptions, _mode: u32) {}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    with_mode(&mut options, mode);
    options.open(path)
}

impl Fs for Real {
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(RealHandle(create(path, mode)?)))
    }

    #[cfg(target_os = "linux")]
    fn create_large(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(super::direct::Direct::new(create(path, mode)?)))
    }

    fn append(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        with_mode(&mut options, mode);
        Ok(Box::new(RealHandle(options.open(path)?)))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.is_file() => Ok(Some(Kind::File)),
            Ok(meta) if meta.is_dir() => Ok(Some(Kind::Folder)),
            Ok(_) => Ok(Some(Kind::Other)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        std::fs::hard_link(existing, new)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            builder.mode(mode);
        }
        #[cfg(not(unix))]
        let _ = mode;
        builder.create(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        // Windows flushes only handles that may write; Unix flushes any, also of read-only files.
        if cfg!(windows) {
            options.write(true);
        } else {
            options.read(true);
        }
        options.open(path)?.sync_data()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match open_dir(path)?.sync_all() {
            // Some network and user-space file systems have no such call for folders; nothing better exists there.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                ) =>
            {
                Ok(())
            }
            result => result,
        }
    }
}

#[cfg(not(windows))]
fn open_dir(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(windows)]
fn open_dir(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000; // the only way to open a folder
    OpenOptions::new()
        .write(true)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)
}
