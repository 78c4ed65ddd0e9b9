//! What is kept of a large push that was interrupted, so that the next one goes on with it.
//!
//! A folder in the cache, `unfinished/`, has the bytes that were about to be sent: packs of sealed parts, and the manifest
//! that names them, sealed and signed. Nothing in it is secret from the server, and no key is kept: whoever goes on opens the
//! manifest with the device's own key, as every reader does, and takes it only if it says exactly what the new push wants,
//! on top of the same head. Then these bytes are sent and nothing is sealed again, so that no key and no nonce can ever
//! meet another plaintext. What does not fit, or was changed meanwhile, is thrown away, and the push begins anew under a
//! new key.

use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use ingot_engine::durable::{self, Fs};
use serde::{Deserialize, Serialize};

use super::super::super::Error;
use super::super::outer::Sealed;
use super::group::Group;
use crate::flock::{FileLock, Patience};

/// The folder, and files in it beside the packs.
const FOLDER: &str = "unfinished";
const NOTE: &str = "note.json";
const MANIFEST: &str = "manifest";
/// The version of the note.
const VERSION: u32 = 1;
/// More than any note has: 4,096 parts, and groups.
const NOTE_LIMIT: u64 = 4 << 20;

/// An interrupted push, and the lock that keeps other processes away from it.
pub(super) struct Unfinished {
    folder: PathBuf,
    /// What was sealed.
    pub sealed: Sealed,
    /// The packs with its parts.
    pub groups: Vec<Group>,
    _lock: FileLock,
}

/// What is kept of an upload beside its packs.
#[derive(Serialize, Deserialize)]
struct Note {
    version: u32,
    pack: String,
    parts: Vec<String>,
    groups: Vec<GroupNote>,
}

#[derive(Serialize, Deserialize)]
struct GroupNote {
    commit: String,
    checksum: String,
    objects: u32,
    bytes: u64,
}

/// The lock, unless somebody else has it.
fn lock(cache: &Path) -> Option<FileLock> {
    let mut name = std::ffi::OsString::from(".");
    name.push(cache.file_name()?);
    name.push(".upload.lock");
    let patience = Patience::silent(std::time::Duration::ZERO);
    FileLock::acquire(&cache.with_file_name(name), patience).ok()
}

fn file_of(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("group-{number}.pack"))
}

impl Unfinished {
    /// Keeps packs, which are moved into the folder, in place of what was kept before. `None` where another process is at
    /// it: then these are not kept.
    pub fn keep(
        fs: &dyn Fs,
        cache: &Path,
        sealed: Sealed,
        mut groups: Vec<Group>,
    ) -> Result<Option<Unfinished>, Error> {
        let Some(lock) = lock(cache) else {
            return Ok(None);
        };
        let folder = cache.join(FOLDER);
        let _ = std::fs::remove_dir_all(&folder);
        durable::create_dirs(fs, &folder, 0o700).map_err(Error::Write)?;
        for (number, group) in groups.iter_mut().enumerate() {
            let path = file_of(&folder, number);
            std::fs::rename(&group.path, &path)
                .map_err(|error| Error::from_io("the cache", "keep", &path, error))?;
            group.path = path;
        }
        let write = |name: &str, bytes: &[u8]| {
            durable::write_atomic(fs, &folder.join(name), bytes, 0o600).map_err(Error::Write)
        };
        write(MANIFEST, &sealed.manifest)?;
        let note = Note {
            version: VERSION,
            pack: sealed.pack.to_hex(),
            parts: sealed.parts.iter().map(ObjectId::to_string).collect(),
            groups: groups
                .iter()
                .map(|group| GroupNote {
                    commit: group.commit.to_string(),
                    checksum: group.checksum.to_string(),
                    objects: group.objects,
                    bytes: group.bytes,
                })
                .collect(),
        };
        let note = serde_json::to_vec(&note)
            .map_err(|error| Error::from_io("the cache", "write", &folder, std::io::Error::other(error)))?;
        write(NOTE, &note)?;
        Ok(Some(Unfinished {
            folder,
            sealed,
            groups,
            _lock: lock,
        }))
    }

    /// What was kept, if it is whole and nobody else is at it. Anything else that is there is removed.
    pub fn find(cache: &Path) -> Option<Unfinished> {
        let folder = cache.join(FOLDER);
        if !folder.exists() {
            return None;
        }
        let lock = lock(cache)?;
        match read(&folder) {
            Some((sealed, groups)) => Some(Unfinished {
                folder,
                sealed,
                groups,
                _lock: lock,
            }),
            None => {
                let _ = std::fs::remove_dir_all(&folder);
                None
            }
        }
    }

    /// Removes it from this machine.
    pub fn remove(self) {
        // What stays is found not to fit, or overwritten.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Removes what nobody came back to for so long.
pub(super) fn sweep(cache: &Path, after: std::time::Duration) {
    let folder = cache.join(FOLDER);
    let is_old = std::fs::metadata(folder.join(NOTE))
        .or_else(|_| std::fs::metadata(&folder))
        .and_then(|meta| meta.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > after));
    if is_old && let Some(_lock) = lock(cache) {
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn read(folder: &Path) -> Option<(Sealed, Vec<Group>)> {
    let small = |name: &str, limit: u64| {
        let path = folder.join(name);
        (std::fs::metadata(&path).ok()?.len() <= limit).then_some(())?;
        std::fs::read(path).ok()
    };
    let note: Note = serde_json::from_slice(&small(NOTE, NOTE_LIMIT)?).ok()?;
    (note.version == VERSION && !note.groups.is_empty()).then_some(())?;
    let id = |text: &String| text.parse::<ObjectId>().ok();
    let groups: Vec<Group> = note
        .groups
        .iter()
        .enumerate()
        .map(|(number, group)| {
            Some(Group {
                path: file_of(folder, number),
                commit: id(&group.commit)?,
                checksum: id(&group.checksum)?,
                objects: group.objects,
                bytes: group.bytes,
            })
        })
        .collect::<Option<_>>()?;
    let sealed = Sealed {
        pack: note.pack.parse().ok()?,
        parts: note.parts.iter().map(id).collect::<Option<_>>()?,
        manifest: small(MANIFEST, super::super::super::MANIFEST_LIMIT)?,
    };
    groups.iter().all(Group::is_whole).then_some((sealed, groups))
}
