//! The index under its lock, and what it says about files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::fs::Metadata;
use gix_hash::ObjectId;
use ingot_engine::durable::{self, Lock};
use ingot_engine::repository::Repository;

use crate::Error;

/// The index of a work tree.
pub struct Index {
    /// What it holds.
    pub state: State,
    path: PathBuf,
    lock: Option<Lock>,
    options: gix::index::entry::stat::Options,
    /// Whether the file system knows executable files.
    pub modes: bool,
    /// Whether it knows symbolic links.
    pub links: bool,
}

/// What to do with a path of the index.
#[derive(Debug, Clone)]
pub enum Change {
    /// It has this content now.
    Set {
        /// The path.
        path: BString,
        /// Its mode.
        mode: Mode,
        /// Its blob.
        id: ObjectId,
        /// The data of its file.
        stat: Stat,
    },
    /// It is gone.
    Remove(BString),
}

impl Index {
    /// Reads the index, to look at.
    pub fn read(repository: &Repository) -> Result<Index, Error> {
        let gix = repository.gix();
        let path = gix.index_path();
        let state = match gix.open_index() {
            Ok(file) => file.into_parts().0,
            Err(_) if !path.exists() => State::new(repository.format()),
            Err(error) => {
                return Err(Error::Index {
                    action: "read",
                    message: error.to_string(),
                });
            }
        };
        let config = repository.config();
        let options = gix
            .stat_options()
            .map_err(|error| Error::Other(format!("the configuration cannot be used: {error}")))?;
        Ok(Index {
            state,
            path,
            lock: None,
            options,
            modes: config.boolean("core.fileMode")?.unwrap_or(cfg!(unix)),
            links: config.boolean("core.symlinks")?.unwrap_or(cfg!(unix)),
        })
    }

    /// Takes Git's lock and reads the index, to change it.
    pub fn lock(repository: &Repository) -> Result<Index, Error> {
        let path = repository.gix().index_path();
        let patience = Duration::from_millis(500);
        let lock = Lock::acquire(durable::real(), &path, 0o666, patience).map_err(|error| {
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                Error::Locked {
                    path: path.clone(),
                    lock: error.path().to_owned(),
                }
            } else {
                error.into()
            }
        })?;
        let mut index = Index::read(repository)?;
        index.lock = Some(lock);
        Ok(index)
    }

    /// Writes what has changed, durably, and gives the lock up. Objects that the index names must be durable before.
    pub fn write(mut self) -> Result<(), Error> {
        use std::io::Write as _;
        let Some(mut lock) = self.lock.take() else {
            return Ok(());
        };
        let mut buffered = std::io::BufWriter::with_capacity(64 * 1024, &mut lock);
        let failed = |message: String| Error::Index {
            action: "write",
            message,
        };
        // Entries that were written in the same instant as the index are looked at again by Git, so nothing is lost.
        gix::index::File::from_state(self.state, self.path)
            .write_to(&mut buffered, gix::index::write::Options::default())
            .map_err(|error| failed(error.to_string()))?;
        buffered.flush().map_err(|error| failed(error.to_string()))?;
        drop(buffered);
        Ok(lock.commit()?)
    }

    /// The entry of a path that is not in conflict.
    pub fn entry(&self, path: &BStr) -> Option<&gix::index::Entry> {
        self.state.entry_by_path_and_stage(path, Stage::Unconflicted)
    }

    /// True if the file is surely the one that was added, by its data alone. The mode is compared, too.
    pub fn is_unchanged(&self, entry: &gix::index::Entry, meta: &Metadata) -> bool {
        let Ok(stat) = Stat::from_fs(meta) else {
            return false;
        };
        !entry.flags.contains(Flags::INTENT_TO_ADD)
            && self.mode_of(meta, Some(entry)) == Some(entry.mode)
            && entry.stat.matches(&stat, self.options)
            && !self.is_racy(entry)
    }

    /// True if the file may have changed after it was added without its data telling so.
    fn is_racy(&self, entry: &gix::index::Entry) -> bool {
        entry.stat.is_racy(self.state.timestamp(), self.options)
    }

    /// The mode that Git gives to a file. What the file system does not know is taken from the entry.
    pub fn mode_of(&self, meta: &Metadata, entry: Option<&gix::index::Entry>) -> Option<Mode> {
        if meta.is_symlink() {
            return Some(Mode::SYMLINK);
        }
        if !meta.is_file() {
            return None;
        }
        if !self.links
            && let Some(Mode::SYMLINK) = entry.map(|entry| entry.mode)
        {
            return Some(Mode::SYMLINK);
        }
        if !self.modes {
            return Some(match entry.map(|entry| entry.mode) {
                Some(Mode::FILE_EXECUTABLE) => Mode::FILE_EXECUTABLE,
                _ => Mode::FILE,
            });
        }
        Some(if meta.is_executable() {
            Mode::FILE_EXECUTABLE
        } else {
            Mode::FILE
        })
    }

    /// The paths in conflict.
    pub fn conflicts(&self) -> Vec<BString> {
        let mut paths: Vec<BString> = self
            .state
            .entries()
            .iter()
            .filter(|entry| entry.stage() != Stage::Unconflicted)
            .map(|entry| entry.path(&self.state).to_owned())
            .collect();
        paths.dedup();
        paths
    }

    /// Applies changes. A path that is set settles conflicts about it, and displaces what is in its way: a file where it
    /// needs a folder, or what lies below it.
    pub fn apply(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut removed: std::collections::HashSet<BString> = Default::default();
        let mut fresh = Vec::new();
        for change in changes {
            match change {
                Change::Remove(path) => {
                    removed.insert(path);
                }
                Change::Set { path, mode, id, stat } => {
                    let only = self
                        .state
                        .entry_by_path_and_stage(path.as_bstr(), Stage::Unconflicted)
                        .is_some();
                    if only
                        && let Some(entry) = self
                            .state
                            .entry_mut_by_path_and_stage(path.as_bstr(), Stage::Unconflicted)
                    {
                        entry.mode = mode;
                        entry.id = id;
                        entry.stat = stat;
                        entry.flags.remove(Flags::INTENT_TO_ADD | Flags::EXTENDED);
                        continue;
                    }
                    self.displace(&path, &mut removed);
                    fresh.push((path, mode, id, stat));
                }
            }
        }
        if !removed.is_empty() {
            self.state.remove_entries(|_, path, _| removed.contains(path));
        }
        let any = !fresh.is_empty();
        for (path, mode, id, stat) in fresh {
            self.state
                .dangerously_push_entry(stat, id, Flags::empty(), mode, path.as_bstr());
        }
        if any {
            self.state.sort_entries();
        }
        // Which trees are still right would have to be found out; Git makes them anew.
        self.state.remove_tree();
    }

    fn displace(&self, path: &BString, removed: &mut std::collections::HashSet<BString>) {
        // Entries in conflict about the same path.
        removed.insert(path.clone());
        for slash in path.find_iter(b"/") {
            let folder = path[..slash].as_bstr();
            if self.state.entry_index_by_path(folder).is_ok() {
                removed.insert(folder.to_owned());
            }
        }
        let mut below = path.clone();
        below.push(b'/');
        if let Some(entries) = self.state.prefixed_entries(below.as_bstr()) {
            removed.extend(entries.iter().map(|entry| entry.path(&self.state).to_owned()));
        }
    }
}

/// The data of a file as the index has it.
pub fn stat_of(path: &Path) -> Result<(Metadata, Stat), Error> {
    use crate::error::During as _;
    let meta = Metadata::from_path_no_follow(path).during("examine", path)?;
    let stat = Stat::from_fs(&meta).map_err(|error| Error::Other(format!("{}: {error}", path.display())))?;
    Ok((meta, stat))
}
