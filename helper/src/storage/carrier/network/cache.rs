//! What is kept of a carrier elsewhere: the commit at its tip, trees, manifests and the head, never parts of packs.
//!
//! | Path below the folder of caches | Content |
//! | --- | --- |
//! | `.<key>.ingot.lock` | empty; locked while the cache is opened or written |
//! | `<key>.ingot/objects/` | an object folder as Git has them, packs only |
//! | `<key>.ingot/tip` | the commit that the packs were last completed for, and a newline |
//! | `.<key>.ingot.upload.lock` | empty; locked while a large push is under way |
//! | `<key>.ingot/unfinished/` | what is left to send of a large push that was interrupted |
//! | `<key>.ingot/spool-*` | what is being read or sent; gone when the process ends |
//!
//! The key is the SHA-256 of the repository's URL. Other implementations use the same folder, under other names. All of
//! it can be deleted at any time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gix_hash::ObjectId;
use ingot_engine::durable::{self, Fs};
use ingot_engine::import::{self, Import};
use ingot_engine::store::{self, Store};
use tempfile::TempDir;

use super::super::super::Error;
use super::super::layout::PART;
use super::unfinished;
use crate::flock::{FileLock, Patience};
use crate::protocol::ContentId;

/// The lock is held while some files are opened or written.
const LOCK_WAIT: Duration = Duration::from_secs(30);
/// What a process left that did not end by itself is removed after this time.
const LEFTOVER: Duration = Duration::from_secs(24 * 60 * 60);
/// What is left of an interrupted push that nobody went on with is removed after this time.
const UNFINISHED: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// More packs than these are made one.
const PACKS: usize = 16;
/// The largest object that is held in memory: a part that the server stored as a delta, and what it is made from.
const OBJECT_LIMIT: u64 = 2 * PART;

/// The cache of one carrier.
pub(super) struct Cache {
    folder: PathBuf,
    lock: PathBuf,
    fs: Arc<dyn Fs>,
    /// Where no folder can be made in the usual place, one that goes with the process.
    _temporary: Option<TempDir>,
}

/// The folder of caches: what `GIT_REMOTE_E2EE_CACHE_DIR` says, or a place below the user's folder of caches.
pub fn root() -> Result<PathBuf, Error> {
    let wrong = |problem: &str| Error::Corrupt {
        path: PathBuf::from("GIT_REMOTE_E2EE_CACHE_DIR"),
        problem: problem.to_owned(),
    };
    if let Some(folder) = std::env::var_os("GIT_REMOTE_E2EE_CACHE_DIR") {
        if folder.is_empty() {
            return Err(wrong("is set and empty; unset it, or name a folder"));
        }
        return std::path::absolute(&folder).map_err(|_| wrong("is no path"));
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let below = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(caches), _) => PathBuf::from(caches),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => std::env::temp_dir(),
    };
    Ok(below.join("git-remote-e2ee").join("carrier"))
}

/// Where the carrier that calls itself `name` is kept below `root`.
pub fn folder_of(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{}.ingot", key_of(name)))
}

fn key_of(name: &str) -> String {
    ContentId::of(name.trim().trim_end_matches('/').as_bytes()).to_hex()
}

impl Cache {
    /// The cache for the repository at `url` below `root`.
    pub fn new(root: &Path, url: &str, fs: Arc<dyn Fs>) -> Result<Cache, Error> {
        let key = key_of(url);
        let usual = folder_of(root, url);
        let (root, temporary) = match durable::create_dirs(&*fs, &usual, 0o700) {
            Ok(()) => (root.to_owned(), None),
            Err(_) => {
                let folder = temporary_folder(&std::env::temp_dir())?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let cache = Cache {
            folder: root.join(format!("{key}.ingot")),
            lock: root.join(format!(".{key}.ingot.lock")),
            fs,
            _temporary: temporary,
        };
        cache.sweep();
        Ok(cache)
    }

    /// Where all of it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    /// Removes what processes left that were killed.
    fn sweep(&self) {
        unfinished::sweep(&self.folder, UNFINISHED);
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let age = entry
                .metadata()
                .and_then(|meta| meta.modified())
                .map(|time| SystemTime::now().duration_since(time).unwrap_or_default());
            if entry.file_name().to_string_lossy().starts_with("spool-")
                && age.is_ok_and(|age| age > LEFTOVER)
            {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    fn lock(&self) -> Result<FileLock, Error> {
        FileLock::acquire(&self.lock, Patience::silent(LOCK_WAIT)).map_err(Error::Locked)
    }

    /// A folder for what is being read or sent.
    pub fn spool(&self) -> Result<TempDir, Error> {
        temporary_folder(&self.folder)
    }

    /// What is kept: the commit that it is complete for, and the objects, together with those in `spools`.
    pub fn open(
        &self,
        format: gix_hash::Kind,
        spools: &[PathBuf],
    ) -> Result<(Option<ObjectId>, Arc<Store>), Error> {
        let _lock = self.lock()?;
        durable::create_dirs(&*self.fs, &self.objects().join("pack"), 0o700).map_err(Error::Write)?;
        let tip = std::fs::read_to_string(self.folder.join("tip"))
            .ok()
            .and_then(|text| text.trim().parse::<ObjectId>().ok())
            .filter(|tip| tip.kind() == format);
        match self.store(format, spools) {
            Ok(store) => Ok((tip, store)),
            // Damaged, or of another format: begun anew.
            Err(_) => {
                self.remove();
                durable::create_dirs(&*self.fs, &self.objects().join("pack"), 0o700).map_err(Error::Write)?;
                Ok((None, self.store(format, spools)?))
            }
        }
    }

    fn store(&self, format: gix_hash::Kind, spools: &[PathBuf]) -> Result<Arc<Store>, Error> {
        let options = store::Options {
            object_limit: OBJECT_LIMIT,
            alternates: spools.to_vec(),
            strict: true,
        };
        open_store(&self.objects(), format, options).map(Arc::new)
    }

    /// Begins to bring objects into the cache, of which `store` is the present content.
    pub fn import(&self, store: &Arc<Store>) -> Result<Import, Error> {
        let options = import::Options {
            fs: Arc::clone(&self.fs),
            ..import::Options::default()
        };
        Import::into_store(Arc::clone(store), options).map_err(|source| self.failed(source))
    }

    /// Keeps what was brought in.
    pub fn keep(&self, import: Import) -> Result<(), Error> {
        let _lock = self.lock()?;
        import
            .publish(false)
            .map(drop)
            .map_err(|source| self.failed(source))
    }

    /// Everything that is read of `tip` from now on is kept.
    pub fn set_tip(&self, tip: ObjectId) -> Result<(), Error> {
        let _lock = self.lock()?;
        let text = format!("{tip}\n");
        durable::write_atomic(&*self.fs, &self.folder.join("tip"), text.as_bytes(), 0o600)
            .map_err(Error::Write)
    }

    /// Whether there are so many packs that one would be better.
    pub fn is_scattered(&self, store: &Store) -> bool {
        store
            .packs()
            .iter()
            .filter(|pack| pack.path().starts_with(&self.folder))
            .count()
            > PACKS
    }

    /// Keeps what was brought in, in place of everything that `old` had.
    pub fn replace(&self, old: &Store, import: Import) -> Result<(), Error> {
        let _lock = self.lock()?;
        let new = import.publish(false).map_err(|source| self.failed(source))?;
        for pack in old.packs() {
            let path = pack.path();
            if path.starts_with(&self.folder) && new.iter().all(|new| new.pack != *path) {
                for extension in ["idx", "rev", "pack"] {
                    // One that stays takes some room.
                    let _ = self.fs.unlink(&path.with_extension(extension));
                }
            }
        }
        Ok(())
    }

    /// Forgets everything. False if there was nothing.
    pub fn forget(&self) -> bool {
        let Ok(_lock) = self.lock() else { return false };
        let had = self.folder.join("tip").exists();
        self.remove();
        had
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(self.folder.join("tip"));
        let _ = std::fs::remove_dir_all(self.objects());
    }

    fn failed(&self, source: import::Error) -> Error {
        Error::Import {
            store: self.folder.display().to_string(),
            source: Box::new(source),
        }
    }
}

/// Opens an object folder.
pub(super) fn open_store(
    objects: &Path,
    format: gix_hash::Kind,
    options: store::Options,
) -> Result<Store, Error> {
    Store::open_with(objects, format, options).map_err(|source| Error::Objects {
        store: objects.display().to_string(),
        source: Box::new(source),
    })
}

/// Opens what was received into a spool.
pub(super) fn open_spool(spool: &Path, format: gix_hash::Kind) -> Result<Arc<Store>, Error> {
    let options = store::Options {
        object_limit: OBJECT_LIMIT,
        strict: true,
        ..store::Options::default()
    };
    open_store(spool, format, options).map(Arc::new)
}

fn temporary_folder(above: &Path) -> Result<TempDir, Error> {
    tempfile::Builder::new()
        .prefix("spool-")
        .tempdir_in(above)
        .map_err(|error| Error::from_io("the cache", "create a folder in", above, error))
}
