//! The branch of a carrier at one moment, read as the hostile data that it may be.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gix_hash::ObjectId;
use ingot_engine::object::tree::{Entries, Entry};
use ingot_engine::pack::create;
use ingot_engine::store::{Cache, Store};

use super::super::{Error, HEAD_LIMIT, Kind, RawHead};
use super::layout;
use crate::protocol::ContentId;

/// The tip of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    /// Its commit.
    pub commit: ObjectId,
    /// The tree of that.
    pub tree: ObjectId,
}

/// The branch at one moment.
pub struct Snapshot {
    /// The carrier in words for messages.
    name: String,
    store: Arc<Store>,
    tip: Option<Tip>,
    /// Folders that are looked into again and again.
    folders: Mutex<HashMap<ObjectId, Arc<Vec<u8>>>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("name", &self.name)
            .field("tip", &self.tip)
            .finish_non_exhaustive()
    }
}

/// What a name in a tree stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub mode: u32,
    pub id: ObjectId,
}

impl Snapshot {
    /// The snapshot of a branch whose tip is the commit `tip`; `None` where there is no such branch. Commits and trees
    /// are read from `store`.
    pub fn open(name: &str, store: Arc<Store>, tip: Option<ObjectId>) -> Result<Snapshot, Error> {
        let mut snapshot = Snapshot {
            name: name.to_owned(),
            store,
            tip: None,
            folders: Mutex::default(),
        };
        if let Some(commit) = tip {
            let tree = snapshot.tree_of(commit)?;
            snapshot.tip = Some(Tip { commit, tree });
        }
        Ok(snapshot)
    }

    /// The tip; `None` where there is no branch.
    pub fn tip(&self) -> Option<Tip> {
        self.tip
    }

    /// Where commits and trees are.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The hash that names outer objects.
    pub fn format(&self) -> gix_hash::Kind {
        self.store.format()
    }

    /// The head, or `None` where no repository was ever begun.
    pub(super) fn head(&self) -> Result<Option<RawHead>, Error> {
        let Some(folder) = self.folder()? else {
            return Ok(None);
        };
        let Some(head) = self.look_up(folder, layout::HEAD)? else {
            return Err(Error::HeadMissing {
                store: self.name.clone(),
                found: format!("the folder {} of branch {}", layout::FOLDER, layout::BRANCH),
            });
        };
        let path = format!("{}/{}", layout::FOLDER, layout::HEAD);
        self.require_file(&path, head)?;
        let bytes = self.blob(&path, head.id, HEAD_LIMIT)?;
        Ok(Some(RawHead::new(bytes)))
    }

    /// Whether the attributes are there as they should be.
    pub(super) fn has_attributes(&self) -> Result<bool, Error> {
        let Some(tip) = self.tip else { return Ok(false) };
        let bytes = self.read_folder("", tip.tree)?;
        let wanted = Found {
            mode: layout::FILE,
            id: create::id_of(self.format(), gix::object::Kind::Blob, layout::ATTRIBUTES_TEXT),
        };
        Ok(self.find("", &bytes, layout::ATTRIBUTES)? == Some(wanted))
    }

    /// Whether the folder that lists the parts of a thing is there.
    pub(super) fn has(&self, kind: Kind, id: &ContentId) -> Result<bool, Error> {
        Ok(self.listing(kind, id)?.is_some())
    }

    /// The blobs with the parts of a thing, in their order. `None` where it is not there.
    pub(super) fn parts(&self, kind: Kind, id: &ContentId) -> Result<Option<Vec<ObjectId>>, Error> {
        let Some(tree) = self.listing(kind, id)? else {
            return Ok(None);
        };
        let path = self.path_of(kind, id);
        let bytes = self.read_tree(&path, tree, layout::LISTING_LIMIT)?;
        let mut parts = Vec::new();
        for (number, entry) in self.entries(&path, &bytes).enumerate() {
            let entry = entry?;
            if number >= layout::MOST_PARTS {
                return Err(self.corrupt(&path, format!("has more than {} parts", layout::MOST_PARTS)));
            }
            if entry.name != layout::part_name(number) {
                return Err(self.corrupt(
                    &path,
                    format!(
                        "is not a dense sequence of parts: {} is where part {} should be",
                        entry.name,
                        layout::part_name(number)
                    ),
                ));
            }
            let found = Found {
                mode: entry.mode,
                id: entry.id.to_owned(),
            };
            self.require_file(&format!("{path}/{}", entry.name), found)?;
            parts.push(found.id);
        }
        if parts.is_empty() {
            return Err(self.corrupt(&path, "has no parts"));
        }
        Ok(Some(parts))
    }

    /// Requires that parts, as `store` has them, have the sizes that they must have; returns their sum.
    pub(super) fn stored_size(
        &self,
        store: &Store,
        kind: Kind,
        id: &ContentId,
        parts: &[ObjectId],
    ) -> Result<u64, Error> {
        let path = self.path_of(kind, id);
        let mut total = 0;
        for (number, part) in parts.iter().enumerate() {
            let name = format!("{path}/{}", layout::part_name(number));
            let size = match store.header(part).map_err(|error| self.unreadable(error))? {
                Some((gix::object::Kind::Blob, size)) => size,
                Some((other, _)) => {
                    return Err(self.corrupt(&name, format!("is a {other} in place of a file")));
                }
                None => return Err(self.corrupt(&name, format!("is missing: there is no object {part}"))),
            };
            let last = number + 1 == parts.len();
            if size == 0 || size > layout::PART || (!last && size != layout::PART) {
                return Err(self.corrupt(&name, format!("has {size} bytes, which no writer makes")));
            }
            total += size;
        }
        Ok(total)
    }

    /// The entries of a tree that is edited: all of them, in Git's order. No tree: none.
    pub(super) fn all_entries(
        &self,
        path: &str,
        tree: Option<ObjectId>,
    ) -> Result<Vec<(u32, bstr::BString, ObjectId)>, Error> {
        let Some(tree) = tree else { return Ok(Vec::new()) };
        let bytes = self.read_folder(path, tree)?;
        self.entries(path, &bytes)
            .map(|entry| entry.map(|entry| (entry.mode, entry.name.to_owned(), entry.id.to_owned())))
            .collect()
    }

    /// A thing of the branch in words.
    pub(super) fn path_of(&self, kind: Kind, id: &ContentId) -> String {
        let id = id.to_hex();
        format!("{}/{}/{}/{id}", layout::FOLDER, layout::folder_of(kind), &id[..2])
    }

    pub(super) fn corrupt(&self, path: &str, problem: impl Into<String>) -> Error {
        Error::Corrupt {
            path: PathBuf::from(format!("{}: {path}", self.name)),
            problem: problem.into(),
        }
    }

    pub(super) fn unreadable(&self, source: ingot_engine::store::Error) -> Error {
        Error::Objects {
            store: self.name.clone(),
            source: Box::new(source),
        }
    }

    /// The tree of the folder with everything in it.
    pub(super) fn folder(&self) -> Result<Option<ObjectId>, Error> {
        let Some(tip) = self.tip else { return Ok(None) };
        self.subtree("", tip.tree, layout::FOLDER)
    }

    pub(super) fn folder_tree(&self, kind: Kind) -> Result<Option<ObjectId>, Error> {
        match self.folder()? {
            Some(folder) => self.subtree(layout::FOLDER, folder, layout::folder_of(kind)),
            None => Ok(None),
        }
    }

    /// The tree that lists the parts of a thing.
    fn listing(&self, kind: Kind, id: &ContentId) -> Result<Option<ObjectId>, Error> {
        let Some(things) = self.folder_tree(kind)? else {
            return Ok(None);
        };
        let path = format!("{}/{}", layout::FOLDER, layout::folder_of(kind));
        let id = id.to_hex();
        match self.subtree(&path, things, &id[..2])? {
            Some(fan_out) => self.subtree(&format!("{path}/{}", &id[..2]), fan_out, &id),
            None => Ok(None),
        }
    }

    fn subtree(&self, path: &str, tree: ObjectId, name: &str) -> Result<Option<ObjectId>, Error> {
        let bytes = self.read_folder(path, tree)?;
        match self.find(path, &bytes, name)? {
            None => Ok(None),
            Some(found) if found.mode == layout::TREE => Ok(Some(found.id)),
            Some(_) => Err(self.corrupt(&format!("{path}/{name}"), "is not a folder")),
        }
    }

    pub(super) fn look_up(&self, tree: ObjectId, name: &str) -> Result<Option<Found>, Error> {
        let bytes = self.read_folder(layout::FOLDER, tree)?;
        self.find(layout::FOLDER, &bytes, name)
    }

    fn find(&self, path: &str, tree: &[u8], name: &str) -> Result<Option<Found>, Error> {
        let mut found = None;
        for entry in self.entries(path, tree) {
            let entry = entry?;
            if entry.name != name {
                continue;
            }
            if found.is_some() {
                return Err(self.corrupt(&format!("{path}/{name}"), "is there twice"));
            }
            found = Some(Found {
                mode: entry.mode,
                id: entry.id.to_owned(),
            });
        }
        Ok(found)
    }

    pub(super) fn entries<'a>(
        &'a self,
        path: &'a str,
        tree: &'a [u8],
    ) -> impl Iterator<Item = Result<Entry<'a>, Error>> + 'a {
        Entries::new(tree, self.format())
            .map(move |entry| entry.map_err(|error| self.corrupt(path, format!("is no folder: {error}"))))
    }

    fn require_file(&self, path: &str, found: Found) -> Result<(), Error> {
        match found.mode {
            layout::FILE => Ok(()),
            0o120_000 => Err(self.corrupt(path, "is a symbolic link, which a carrier does not hold")),
            0o160_000 => Err(self.corrupt(path, "is a submodule, which a carrier does not hold")),
            mode => Err(self.corrupt(path, format!("is no ordinary file (mode {mode:06o})"))),
        }
    }

    /// The content of a folder that others are found through, remembered.
    pub(super) fn read_folder(&self, path: &str, tree: ObjectId) -> Result<Arc<Vec<u8>>, Error> {
        let known = || self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = known().get(&tree) {
            return Ok(Arc::clone(bytes));
        }
        let bytes = Arc::new(self.read_tree(path, tree, layout::FOLDER_LIMIT)?);
        known().insert(tree, Arc::clone(&bytes));
        Ok(bytes)
    }

    pub(super) fn read_tree(&self, path: &str, tree: ObjectId, limit: u64) -> Result<Vec<u8>, Error> {
        self.read(path, tree, gix::object::Kind::Tree, limit)
    }

    /// A small blob.
    pub(super) fn blob(&self, path: &str, blob: ObjectId, limit: u64) -> Result<Vec<u8>, Error> {
        self.read(path, blob, gix::object::Kind::Blob, limit)
    }

    pub(super) fn read(
        &self,
        path: &str,
        id: ObjectId,
        wanted: gix::object::Kind,
        limit: u64,
    ) -> Result<Vec<u8>, Error> {
        match self.store.header(&id).map_err(|error| self.unreadable(error))? {
            None => return Err(self.corrupt(path, format!("is missing: there is no object {id}"))),
            Some((kind, _)) if kind != wanted => {
                return Err(self.corrupt(path, format!("is a {kind} in place of a {wanted}")));
            }
            Some((_, size)) if size > limit => {
                return Err(self.corrupt(path, format!("has {size} bytes, more than {limit}")));
            }
            Some(_) => {}
        }
        let mut bytes = Vec::new();
        let mut cache = Cache::new(0);
        match self.store.read(&id, &mut cache, &mut bytes) {
            Ok(Some(_)) => Ok(bytes),
            Ok(None) => Err(self.corrupt(path, format!("is missing: there is no object {id}"))),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, Error> {
        let path = layout::BRANCH;
        let bytes = self.read(path, commit, gix::object::Kind::Commit, layout::FOLDER_LIMIT)?;
        let mut tree = None;
        let links =
            ingot_engine::object::links::links(gix::object::Kind::Commit, &bytes, self.format(), |link| {
                if link.kind == Some(gix::object::Kind::Tree) {
                    tree = Some(link.id.to_owned());
                }
            });
        match (links, tree) {
            (Ok(()), Some(tree)) => Ok(tree),
            _ => Err(self.corrupt(path, format!("leads to {commit}, which is no proper commit"))),
        }
    }
}
