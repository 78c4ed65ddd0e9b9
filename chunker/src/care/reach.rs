//! What is needed: by references, their logs, indexes and work trees.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::chunked::{self, Pointer};
use ingot_engine::progress::Progress;
use ingot_engine::refs;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use ingot_engine::walk::{self, Objects, Request};

use crate::Error;
use crate::error::During as _;
use crate::repo::flatten;

/// Everything that the repository holds on to.
pub struct Needed {
    sets: Vec<Objects>,
}

impl Needed {
    /// True if the object is needed.
    pub fn contains(&self, store: &Store, id: &gix_hash::oid) -> bool {
        self.sets.iter().any(|set| set.contains(store, id))
    }

    /// Lists and chunks that are needed and not here.
    pub fn absent(&self) -> u64 {
        self.sets.iter().map(Objects::absent_chunks).sum()
    }
}

/// Finds everything that references, heads, indexes, the stash and all logs lead to, chunks of chunked files included.
/// What references and indexes lead to must be here, but for chunks; logs may name what is long gone.
pub fn needed(repository: &Repository, store: &Store, progress: &dyn Progress) -> Result<Needed, Error> {
    let shallow = repository.shallow_commits()?;
    let walk = |wants: &[ObjectId]| {
        let request = Request {
            wants,
            shallow: &shallow,
            ..Request::default()
        };
        walk::enumerate(store, &request, progress)
    };
    let (tips, logged) = tips(repository, store)?;
    let mut sets = vec![walk(&tips)?];
    let new: Vec<ObjectId> = logged
        .into_iter()
        .filter(|id| !sets[0].contains(store, id))
        .collect();
    if !new.is_empty() {
        match walk(&new) {
            Ok(set) => sets.push(set),
            Err(walk::Error::Missing { .. }) => {
                for id in &new {
                    match walk(&[*id]) {
                        Ok(set) => sets.push(set),
                        Err(walk::Error::Missing { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Needed { sets })
}

/// Tips that must be complete, and those that logs name.
fn tips(repository: &Repository, store: &Store) -> Result<(Vec<ObjectId>, BTreeSet<ObjectId>), Error> {
    let mut tips: BTreeSet<ObjectId> = BTreeSet::new();
    for reference in refs::list(repository, "")? {
        tips.insert(reference.id);
    }
    let mut logged = BTreeSet::new();
    for git_dir in git_dirs(repository)? {
        for name in [
            "HEAD",
            "MERGE_HEAD",
            "ORIG_HEAD",
            "CHERRY_PICK_HEAD",
            "REVERT_HEAD",
            "AUTO_MERGE",
        ] {
            if let Ok(text) = std::fs::read(git_dir.join(name)) {
                let ids = text
                    .lines()
                    .filter_map(|line| ObjectId::from_hex(line.trim()).ok());
                logged.extend(ids.filter(|id| store.contains(id)));
            }
        }
        for id in index_blobs(&git_dir.join("index"), store.format())? {
            if store.contains(&id) {
                tips.insert(id);
            }
        }
        logs(&git_dir.join("logs"), &mut logged)?;
    }
    logged.retain(|id| !id.is_null() && store.contains(id));
    Ok((tips.into_iter().collect(), logged))
}

/// The main folder and those of linked work trees.
fn git_dirs(repository: &Repository) -> Result<Vec<PathBuf>, Error> {
    let common = repository.common_dir();
    let mut folders = vec![common.to_owned()];
    let linked = common.join("worktrees");
    match std::fs::read_dir(&linked) {
        Ok(entries) => {
            for entry in entries {
                folders.push(entry.during("list", &linked)?.path());
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).during("list", &linked),
    }
    Ok(folders)
}

fn index_blobs(path: &Path, format: gix_hash::Kind) -> Result<Vec<ObjectId>, Error> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let index =
        gix::index::File::at(path, format, false, Default::default()).map_err(|error| Error::Index {
            action: "read",
            message: error.to_string(),
        })?;
    Ok(index
        .entries()
        .iter()
        .filter(|entry| entry.mode != gix::index::entry::Mode::COMMIT)
        .map(|entry| entry.id)
        .collect())
}

/// All ids that logs below a folder name.
fn logs(folder: &Path, ids: &mut BTreeSet<ObjectId>) -> Result<(), Error> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).during("list", folder),
    };
    for entry in entries {
        let entry = entry.during("list", folder)?;
        let path = entry.path();
        if entry.file_type().during("examine", &path)?.is_dir() {
            logs(&path, ids)?;
            continue;
        }
        let text = std::fs::read(&path).during("read", &path)?;
        for line in text.lines() {
            ids.extend(
                line.split(|byte| *byte == b' ')
                    .take(2)
                    .filter_map(|hex| ObjectId::from_hex(hex).ok()),
            );
        }
    }
    Ok(())
}

/// Pointers by content, each with a path that it was found at, as far as one is known.
pub fn reachable(
    repository: &Repository,
    store: &Store,
    all: bool,
    progress: &dyn Progress,
) -> Result<Vec<(Option<BString>, Pointer)>, Error> {
    let mut cache = Cache::new(1 << 20);
    let mut seen: HashSet<ObjectId> = HashSet::new();
    let mut found: BTreeMap<ObjectId, (Option<BString>, Pointer)> = BTreeMap::new();
    let mut take = |id: ObjectId, path: Option<BString>, cache: &mut Cache| -> Result<(), Error> {
        if seen.insert(id)
            && let Some(pointer) = chunked::read_pointer(store, &id, cache)?
        {
            found.insert(id, (path, pointer));
        }
        Ok(())
    };
    // Paths of the current commit and index come first, so that messages name them.
    if let Some(head) = crate::repo::commit::head_commit(repository)? {
        for (path, side) in flatten(store, crate::repo::commit::tree_of(store, head)?)? {
            if side.mode != gix::index::entry::Mode::COMMIT {
                take(side.id, Some(path), &mut cache)?;
            }
        }
    }
    if repository.work_dir().is_some() {
        let index = crate::repo::Index::read(repository)?;
        for entry in index.state.entries() {
            if entry.mode != gix::index::entry::Mode::COMMIT {
                take(entry.id, Some(entry.path(&index.state).to_owned()), &mut cache)?;
            }
        }
    }
    if all {
        let needed = needed(repository, store, progress)?;
        for set in &needed.sets {
            for (object, id) in set.iter().zip(set.ids(store)) {
                if object.kind == Kind::Blob {
                    take(id.to_owned(), None, &mut cache)?;
                }
            }
        }
    }
    Ok(found.into_values().collect())
}
