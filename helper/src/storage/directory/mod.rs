//! A store in a folder.
//!
//! | Path | Content |
//! | --- | --- |
//! | `HEAD` | id of the newest manifest and a newline |
//! | `HEAD.lock` | empty; locked while the head is moved |
//! | `manifests/<first two digits>/<id>` | manifests |
//! | `objects/<first two digits>/<id>` | sealed packs |
//! | `.staging/.stage-<16 digits>` | writes under way, and what crashes left of them |
//! | `.HEAD-<16 digits>` | the next `HEAD`, just before it gets its name |
//!
//! Permissions are whatever the user's umask makes them: who shares a store decides who may write to it. Symbolic links
//! inside a store are refused; the path to the store itself may hold any.

mod head;
mod read;
mod recovery;
mod remains;
mod staging;
mod stale;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ingot_engine::durable::{self, Fs};

pub(super) use read::canonical_text;

pub use stale::Stale;

use super::{Error, Kind, MANIFEST_LIMIT, RawHead, Recovery, StagedObject, Storage};
use crate::protocol::ContentId;

/// Mode bits before the umask, of folders and of files.
const FOLDER_MODE: u32 = 0o777;
const FILE_MODE: u32 = 0o666;

/// A store in a folder.
#[derive(Clone)]
pub struct Directory {
    root: PathBuf,
    name: String,
    fs: Arc<dyn Fs>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Directory {
    /// The store in the folder `path`, whether or not anything is there. A relative path is taken from the current
    /// folder, now. Writes go through `fs`.
    pub fn new(path: &Path, fs: Arc<dyn Fs>) -> Result<Directory, Error> {
        let root = std::path::absolute(path).map_err(|source| Error::Io {
            action: "find the folder",
            path: path.to_owned(),
            source,
        })?;
        Ok(Directory {
            name: root.display().to_string(),
            root,
            fs,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn folder_of(&self, kind: Kind) -> PathBuf {
        self.root.join(match kind {
            Kind::Manifest => "manifests",
            Kind::Pack => "objects",
        })
    }

    /// Folder and path of a thing. The path is made of an id's digits only, so it cannot lead elsewhere.
    fn place_of(&self, kind: Kind, id: &ContentId) -> (PathBuf, PathBuf) {
        let name = id.to_hex();
        let folder = self.folder_of(kind).join(&name[..2]);
        let path = folder.join(&name);
        (folder, path)
    }

    fn failed(&self, action: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::from_io(&self.name, action, path, source)
    }

    fn unwritten(&self, error: durable::Error) -> Error {
        Error::from_durable(&self.name, error)
    }

    /// Whether the folder of the store is there. Where even its parent is missing, the answer is an error: a disk or a
    /// share that is not mounted looks like that.
    fn exists(&self) -> Result<bool, Error> {
        match std::fs::metadata(&self.root) {
            Ok(meta) if meta.is_dir() => return Ok(true),
            Ok(_) => return Err(self.corrupt(&self.root, "is not a folder")),
            Err(error) if read::is_nothing(&error) => {}
            Err(error) => return Err(self.failed("examine", &self.root, error)),
        }
        if std::fs::symlink_metadata(&self.root).is_ok() {
            return Err(self.unreachable("it is a symbolic link that leads nowhere".to_owned()));
        }
        let parent = self.root.parent().unwrap_or(&self.root);
        match std::fs::metadata(parent) {
            Ok(meta) if meta.is_dir() => Ok(false),
            Ok(_) => Err(self.unreachable(format!("{} is not a folder", parent.display()))),
            Err(error) if read::is_nothing(&error) => Err(self.unreachable(format!(
                "the folder {} does not exist (is a disk not mounted?)",
                parent.display()
            ))),
            Err(error) => Err(self.failed("examine", parent, error)),
        }
    }

    fn unreachable(&self, reason: String) -> Error {
        Error::Unreachable {
            store: self.name.clone(),
            reason,
        }
    }

    fn corrupt(&self, path: &Path, problem: impl Into<String>) -> Error {
        Error::Corrupt {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

impl Storage for Directory {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> String {
        format!("directory:{}", canonical_text(&self.root))
    }

    fn head(&self) -> Result<Option<RawHead>, Error> {
        self.read_head()
    }

    fn manifest(&self, id: &ContentId) -> Result<Vec<u8>, Error> {
        let (file, path) = self.open_thing(Kind::Manifest, id)?;
        let bytes = self.read_bounded(file, &path, MANIFEST_LIMIT)?;
        if ContentId::of(&bytes) != *id {
            return Err(self.corrupt(&path, "does not have the content that its name says"));
        }
        Ok(bytes)
    }

    fn manifest_time(&self, id: &ContentId) -> Option<SystemTime> {
        let (file, _) = self.open_thing(Kind::Manifest, id).ok()?;
        file.metadata().ok()?.modified().ok()
    }

    fn last_moved(&self) -> Option<SystemTime> {
        let file = self.open_regular(&self.root.join("HEAD")).ok()??;
        file.metadata().ok()?.modified().ok()
    }

    fn pack_size(&self, id: &ContentId) -> Result<u64, Error> {
        let (file, path) = self.open_thing(Kind::Pack, id)?;
        let meta = file
            .metadata()
            .map_err(|error| self.failed("examine", &path, error))?;
        Ok(meta.len())
    }

    fn open_pack(&self, id: &ContentId) -> Result<Box<dyn Read + Send>, Error> {
        let (file, _) = self.open_thing(Kind::Pack, id)?;
        Ok(Box::new(file))
    }

    fn create(&self) -> Result<(), Error> {
        durable::create_dirs(&*self.fs, &self.root, FOLDER_MODE).map_err(|error| self.unwritten(error))
    }

    fn stage_object(&self) -> Result<Box<dyn StagedObject>, Error> {
        Ok(Box::new(staging::Object::begin(self)?))
    }

    fn put_manifest(&self, bytes: &[u8]) -> Result<ContentId, Error> {
        self.store_manifest(bytes)
    }

    fn swap_head(&self, expected: Option<&ContentId>, new: &ContentId) -> Result<(), Error> {
        self.move_head(expected, new)
    }

    fn recovery(&self) -> Result<Box<dyn Recovery>, Error> {
        Ok(Box::new(recovery::Observed::new(self)))
    }
}
