//! Key files on disk: private ones readable by their owner alone, none ever overwritten.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use ingot_engine::durable::{self, Fs, Published, StagedFile};
use ingot_engine::transport::Unanswered;
use zeroize::Zeroizing;

use super::keys::{self, DeviceKey, PublicDevice};
use crate::keys::age;

/// No key file or public record comes near this size.
const MAX_BYTES: u64 = 16 * 1024;

/// Why a key file could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("key file {} does not exist; make one with `git-e2ee keygen --output {}`", .0.display(), quoted(.0))]
    Absent(PathBuf),
    /// Others could read it.
    #[error("key file {} is open to other users (mode {mode:04o}); run: chmod 600 {}", .path.display(), quoted(.path))]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Larger than any key, or no regular file.
    #[error("{} is not a key file: {reason}", .path.display())]
    NotAKeyFile {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// A file is there already, and keys are never overwritten.
    #[error("{} exists already and is not overwritten; choose another name", .0.display())]
    Exists(PathBuf),
    /// The content was refused.
    #[error("{}: {source}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        source: keys::Error,
    },
    /// A passphrase is needed, and nobody was asked.
    #[error("key file {} is protected by a passphrase", .0.display())]
    Protected(PathBuf),
    /// A passphrase is needed, and nobody could be asked for it.
    #[error(
        "key file {} is protected by a passphrase, and {source}; run the command in a terminal, or set an askpass program \
         (GIT_ASKPASS)", .path.display()
    )]
    Unanswered {
        /// The file.
        path: PathBuf,
        /// Why nobody was asked.
        source: Unanswered,
    },
    /// Every passphrase that was given is another one.
    #[error("the passphrase of key file {} is another one; nothing was done with it", .0.display())]
    WrongPassphrase(PathBuf),
    /// No new passphrase came about.
    #[error("no passphrase for {} was given twice in the same way; nothing was done", .0.display())]
    NoPassphrase(PathBuf),
    /// A protected file that cannot be opened or made.
    #[error("key file {}: {source}", .path.display())]
    Age {
        /// The file.
        path: PathBuf,
        /// Why.
        source: age::Error,
    },
    /// It could be committed.
    #[error(
        "key file {} lies in the work tree {}, where it could be committed; {remedy}", .path.display(), .top.display()
    )]
    InWorkTree {
        /// The file.
        path: PathBuf,
        /// The top of the work tree.
        top: PathBuf,
        /// What to do.
        remedy: String,
    },
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] durable::Error),
}

/// A path as it can be pasted into a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Reads a private key that no passphrase protects, unless others than its owner could do so too.
/// [`crate::keys::KeyFiles::read`] opens those with a passphrase as well.
pub fn read(path: &Path) -> Result<DeviceKey, Error> {
    let content = load(path)?;
    if age::is_age(&content) {
        return Err(Error::Protected(path.to_owned()));
    }
    parse(path, &content)
}

/// The content of a private key file, unless others than its owner could read it too.
pub fn load(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    read_bounded(path, true)
}

/// The content of a file that is to become a key file here, whoever else can read it. True with it: others can.
pub fn load_foreign(path: &Path) -> Result<(Zeroizing<Vec<u8>>, bool), Error> {
    let content = read_bounded(path, false)?;
    let open = fs::metadata(path).is_ok_and(|metadata| open_to_others(&metadata).is_some());
    Ok((content, open))
}

/// The key in the content of the file `path`, which no passphrase protects.
pub fn parse(path: &Path, content: &[u8]) -> Result<DeviceKey, Error> {
    DeviceKey::parse(content).map_err(|source| Error::Content {
        path: path.to_owned(),
        source,
    })
}

/// Reads a public device record.
pub fn read_public(path: &Path) -> Result<PublicDevice, Error> {
    let json = read_bounded(path, false)?;
    PublicDevice::parse(&json).map_err(|source| Error::Content {
        path: path.to_owned(),
        source,
    })
}

/// Writes a new private key file with mode 0600. Missing folders above it are made with mode 0700.
pub fn create(path: &Path, key: &DeviceKey) -> Result<(), Error> {
    create_content(path, &key.to_json())
}

/// The same for a file whose content is made already.
pub fn create_content(path: &Path, content: &[u8]) -> Result<(), Error> {
    create_file(path, content, 0o600)
}

/// Writes a private key file in place of whatever has that name: afterwards, and after any crash on the way, the file is
/// the old one or the new one. Only for whoever made sure that the old content is no longer needed.
pub fn replace_content(fs: &dyn Fs, path: &Path, content: &[u8]) -> Result<(), Error> {
    Ok(durable::write_atomic(fs, path, content, 0o600)?)
}

/// Writes a new public device record.
pub fn create_public(path: &Path, device: &PublicDevice) -> Result<(), Error> {
    create_file(path, &device.to_json(), 0o644)
}

fn read_bounded(path: &Path, private: bool) -> Result<Zeroizing<Vec<u8>>, Error> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => Error::Absent(path.to_owned()),
        _ => durable::Error::new("read", path, source).into(),
    };
    // Asked before opening, since opening a named pipe waits; the open file is asked again below.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Error::NotAKeyFile {
            path: path.to_owned(),
            reason: "not a regular file",
        });
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if private && let Some(mode) = open_to_others(&metadata) {
        return Err(Error::OpenToOthers {
            path: path.to_owned(),
            mode,
        });
    }
    // The buffer never grows: growing would leave copies of the key in freed memory.
    let mut json = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
    file.take(MAX_BYTES + 1).read_to_end(&mut json).map_err(failed)?;
    if json.len() as u64 > MAX_BYTES {
        return Err(Error::NotAKeyFile {
            path: path.to_owned(),
            reason: "larger than any key file",
        });
    }
    Ok(json)
}

#[cfg(unix)]
fn open_to_others(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn open_to_others(_metadata: &fs::Metadata) -> Option<u32> {
    None
}

/// Keys are published as new files, never in place of old ones: a lost key is a lost repository.
fn create_file(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let name = path.file_name().ok_or_else(|| Error::NotAKeyFile {
        path: path.to_owned(),
        reason: "the path does not end in a file name",
    })?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Asked before anything is made; publishing finds out again, if somebody is faster.
    if fs::symlink_metadata(path).is_ok() {
        return Err(Error::Exists(path.to_owned()));
    }
    durable::create_dirs(&durable::Real, folder, 0o700)?;
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    prefix.push(".tmp-");
    let mut staged = StagedFile::create(durable::real(), folder, prefix, mode)?;
    staged
        .write_all(content)
        .map_err(|error| durable::Error::new("write", path, error))?;
    match staged.publish_new(path)? {
        Published::New => Ok(()),
        Published::AlreadyThere => Err(Error::Exists(path.to_owned())),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("exists").permissions().mode() & 0o777
    }

    #[test]
    fn created_for_the_owner_alone_and_never_overwritten() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("new/keys/a b.key.json");
        let key = DeviceKey::generate(None).expect("random bytes");
        create(&path, &key).expect("created");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().expect("parent")), 0o700);
        assert_eq!(mode(&folder.path().join("new")), 0o700);
        assert_eq!(read(&path).expect("readable").public(), key.public());
        assert!(matches!(create(&path, &key), Err(Error::Exists(_))));
        let names = fs::read_dir(path.parent().expect("parent"))
            .expect("listable")
            .count();
        assert_eq!(names, 1, "no temporary file stays");
    }

    #[test]
    fn refused_when_others_may_read_it() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("it's.json");
        create(&path, &DeviceKey::generate(None).expect("random bytes")).expect("created");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("chmod");
        let message = read(&path).expect_err("too open").to_string();
        let command = format!("chmod 600 '{}/it'\\''s.json'", folder.path().display());
        assert!(
            message.contains("(mode 0640)") && message.ends_with(&command),
            "{message}"
        );
    }

    #[test]
    fn absent_large_and_foreign_files_are_named() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("key.json");
        assert!(matches!(read(&path), Err(Error::Absent(_))));
        assert!(matches!(read(folder.path()), Err(Error::NotAKeyFile { .. })));
        fs::write(&path, vec![b' '; 20_000]).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmod");
        assert!(matches!(read(&path), Err(Error::NotAKeyFile { .. })));
        fs::write(&path, "{}").expect("written");
        assert!(matches!(read(&path), Err(Error::Content { .. })));
    }

    #[test]
    fn public_records_round_trip() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("device.json");
        let key = DeviceKey::generate(None).expect("random bytes");
        create_public(&path, key.public()).expect("created");
        assert_eq!(&read_public(&path).expect("readable"), key.public());
    }
}
