//! What a switch has to do, and whether it may.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bstr::{BStr, BString, ByteSlice as _};
use gix::index::entry::Mode;
use ingot_engine::repository::Repository;
use ingot_engine::store::Store;

use super::add::{excludes_of, is_excluded, work_dir};
use super::index::Index;
use super::scan::{Found, scan};
use super::status::Compare;
use super::trees::{Flat, Side};
use crate::{Error, paths};

/// What is at a path of the work tree, if it is a file or link.
pub(super) fn there(top: &Path, path: &BStr) -> Option<Found> {
    let at = paths::below(top, path);
    let meta = gix::index::fs::Metadata::from_path_no_follow(&at).ok()?;
    Some(Found {
        path: path.to_owned(),
        repository: meta.is_dir() && at.join(".git").exists(),
        meta,
    })
}

/// What has to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) remove: BTreeSet<BString>,
    pub(super) write: BTreeMap<BString, Side>,
    /// Paths whose index entries alone go.
    pub(super) forget: BTreeSet<BString>,
}

impl Plan {
    /// Git's rules for two trees: what is the same in both stays as it is, also if it was changed locally; what the
    /// index has already stays, too; everything else must be as the old tree has it.
    pub(super) fn switch(
        repository: &Repository,
        index: &Index,
        store: &Store,
        head: &Flat,
        target: &Flat,
        force: bool,
    ) -> Result<Plan, Error> {
        let top = work_dir(repository)?;
        let mut plan = Plan::default();
        let mut compare = Compare::new(repository, index, store)?;
        let mut excludes = None;
        let mut lost = Vec::new();
        if !force && let Some(path) = index.conflicts().first() {
            return Err(Error::Other(format!("'{path}' is in conflict; settle it first")));
        }
        let mut paths: BTreeSet<&BString> = head.keys().chain(target.keys()).collect();
        let indexed: Vec<BString> = index
            .state
            .entries()
            .iter()
            .map(|entry| entry.path(&index.state).to_owned())
            .collect();
        paths.extend(&indexed);
        for path in paths {
            let (old, new) = (head.get(path), target.get(path));
            let entry = index.entry(path.as_bstr());
            let now = entry.map(|entry| Side {
                mode: entry.mode,
                id: entry.id,
            });
            let found = there(top, path.as_bstr());
            if force {
                let as_wanted = now.as_ref() == new
                    && match (entry, &found) {
                        (Some(entry), Some(found)) => compare.is_same(entry, found)?,
                        (None, _) => true,
                        (Some(_), None) => false,
                    };
                if !as_wanted {
                    plan.add(path, new, now.is_some());
                }
                continue;
            }
            if old == new || now.as_ref() == new {
                continue;
            }
            if now.as_ref() != old {
                lost.push(path.clone());
                continue;
            }
            let safe = match (entry, &found) {
                (_, None) => true,
                (Some(entry), Some(found)) => {
                    (entry.mode == Mode::COMMIT || found.meta.is_dir()) || compare.is_same(entry, found)?
                }
                // Something untracked is in the way of a new file. Ignored files may go, as with Git; folders are
                // dealt with when they turn out not to be empty.
                (None, Some(found)) => {
                    found.meta.is_dir() || {
                        let excludes = match &mut excludes {
                            Some(excludes) => excludes,
                            none => none.insert(excludes_of(repository, &index.state)?),
                        };
                        is_excluded(excludes, path.as_bstr())?
                    }
                }
            };
            match safe {
                true => plan.add(path, new, now.is_some()),
                false => lost.push(path.clone()),
            }
        }
        lost.extend(plan.obstacles(top)?);
        match lost.is_empty() {
            true => Ok(plan),
            false => Err(Error::LocalChanges { paths: lost }),
        }
    }

    /// Untracked things in the way: a file where a folder is needed, or files below a folder where a file is.
    fn obstacles(&self, top: &Path) -> Result<Vec<BString>, Error> {
        let mut obstacles = BTreeSet::new();
        let mut folders = BTreeSet::new();
        for path in self.write.keys() {
            for slash in path.find_iter(b"/") {
                let folder = path[..slash].as_bstr();
                if !folders.insert(folder.to_owned()) || self.remove.contains(folder) {
                    continue;
                }
                let at = paths::below(top, folder);
                if std::fs::symlink_metadata(&at).is_ok_and(|meta| !meta.is_dir()) {
                    obstacles.insert(folder.to_owned());
                }
            }
            let at = paths::below(top, path.as_bstr());
            if self.write[path].mode != Mode::COMMIT
                && std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_dir())
            {
                let mut prefix = path.clone();
                prefix.push(b'/');
                let found = scan(top, prefix.as_bstr())?;
                let strangers = found.into_iter().map(|found| found.path);
                obstacles.extend(strangers.filter(|path| !self.remove.contains(path)));
            }
        }
        Ok(obstacles.into_iter().collect())
    }

    fn add(&mut self, path: &BString, new: Option<&Side>, was: bool) {
        match new {
            Some(side) => {
                self.write.insert(path.clone(), *side);
            }
            None if was => {
                self.remove.insert(path.clone());
            }
            None => {
                self.forget.insert(path.clone());
            }
        }
    }
}
