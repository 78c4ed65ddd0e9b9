//! The state of one store in one clone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingot_engine::durable::{self, Fs};
use serde::{Deserialize, Serialize};

use super::file::{self, Error, StateFile};
use super::place::{self, Owner};
use super::rejected::{self, Rejected};
use super::{Observed, State, known};
use crate::flock::{FileLock, Patience};
use crate::protocol::RepositoryRoot;
use crate::protocol::chain::Known;

/// The state of one store in one clone, locked while this value lives.
///
/// A remote can lead to several stores (`pushurl`), and its URL can change. Which store the file `state.json` of the
/// remote is about is written beside it, in `store.json`; implementations that know one store only do not write that.
/// The rules, for a store that has no state of its own below `stores/`:
///
/// - The file is about this store if it is said to be, or if the remote leads to no other store that it could be about.
///   A contradiction is an alarm then.
/// - Where it may be about a sibling, the history decides: a store that holds the pinned head is the one that is meant.
///   One that does not gets a state of its own, beginning with what it shows now.
/// - Where nothing is said, it is about the remote's first store, which is the one that fetches ask.
pub struct Continuity {
    fs: Arc<dyn Fs>,
    identity: String,
    siblings: Vec<String>,
    notes: Option<PathBuf>,
    noted: Option<String>,
    main: StateFile,
    further: StateFile,
    governing: Governing,
    /// What anybody in this repository has seen of the store, under whatever name of a remote and in whatever work tree.
    floor: Option<Floor>,
    _lock: FileLock,
}

/// The state that a store has by its location alone, for the whole repository. It is that of a URL without a remote.
struct Floor {
    file: StateFile,
    _lock: FileLock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Governing {
    Main,
    Further,
    /// The history has to tell.
    Undecided,
}

/// `store.json`.
#[derive(Serialize, Deserialize)]
struct Note {
    store: String,
}

impl std::fmt::Debug for Continuity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Continuity")
            .field("path", &self.path())
            .field("governing", &self.governing)
            .finish_non_exhaustive()
    }
}

impl Continuity {
    /// Locks and reads the state of the store `identity` (see [`crate::storage::Storage::identity`]).
    ///
    /// `git_dir` is the worktree's own, `common_dir` that of the repository. `stores` are the identities of all stores that the remote leads to, those of
    /// `url` before those of `pushurl`; whether `identity` is among them does not matter. For a URL without a remote it
    /// is empty.
    pub fn open(
        fs: Arc<dyn Fs>,
        git_dir: &Path,
        common_dir: &Path,
        owner: Owner<'_>,
        identity: &str,
        stores: &[String],
        patience: Patience<'_>,
    ) -> Result<Continuity, Error> {
        let by_location = place::home(common_dir, Owner::Url, identity);
        let home = match owner {
            Owner::Remote(_) => place::home(git_dir, owner, identity),
            Owner::Url => by_location.clone(),
        };
        let main = home.join(place::STATE);
        let lock = file::lock(&*fs, &main, patience)?;
        let floor = match owner {
            Owner::Url => None,
            Owner::Remote(_) => {
                let path = by_location.join(place::STATE);
                // Always taken after that of the remote, so that nobody waits in a circle.
                let lock = file::lock(&*fs, &path, patience)?;
                let file = StateFile::read(path)?;
                Some(Floor { file, _lock: lock })
            }
        };
        let main = StateFile::read(main)?;
        let further = StateFile::read(place::further(&home, identity))?;
        let notes = matches!(owner, Owner::Remote(_)).then(|| home.join("store.json"));
        let noted = notes.as_deref().map(read_note).transpose()?.flatten();
        let siblings: Vec<String> = stores
            .iter()
            .filter(|store| *store != identity)
            .cloned()
            .collect();
        let may_be_a_siblings = match &noted {
            Some(store) => siblings.contains(store),
            None => stores.first().is_some_and(|first| first != identity),
        };
        let governing = if further.state().is_some() {
            Governing::Further
        } else if main.state().is_some() && may_be_a_siblings {
            Governing::Undecided
        } else {
            Governing::Main
        };
        Ok(Continuity {
            fs,
            identity: identity.to_owned(),
            siblings,
            notes,
            noted,
            main,
            further,
            governing,
            floor,
            _lock: lock,
        })
    }

    /// The state file that is in force, or would be written.
    pub fn path(&self) -> &Path {
        match self.governing {
            Governing::Main => self.main.path(),
            Governing::Further | Governing::Undecided => self.further.path(),
        }
    }

    /// What is remembered; `None` where nothing is, or where only [`Continuity::check`] can tell whether it is about
    /// this store.
    pub fn state(&self) -> Option<&State> {
        match self.governing {
            Governing::Main => self.main.state(),
            Governing::Further => self.further.state(),
            Governing::Undecided => None,
        }
    }

    /// The newest generation that this repository has seen in the store, under any name.
    pub fn newest_generation(&self) -> Option<u64> {
        Some(self.newest()?.generation)
    }

    /// The newest state that this repository has seen the store in, under any name.
    pub fn newest(&self) -> Option<&State> {
        let floor = self.floor.as_ref().and_then(|floor| floor.file.state());
        self.state()
            .into_iter()
            .chain(floor)
            .max_by_key(|state| state.generation)
    }

    /// Notes a head that was found to be wrong, for people who look into it later.
    pub fn reject(&self, rejected: Rejected) -> Result<(), Error> {
        rejected::add(&*self.fs, self.path(), rejected)
    }

    /// Requires that an authenticated history continues what is remembered. Call it before anything of the history is
    /// used.
    pub fn check(&mut self, observed: &Observed<'_>) -> Result<(), Error> {
        if let Some(floor) = &self.floor {
            floor.file.check(observed)?;
        }
        match self.governing {
            Governing::Main => self.main.check(observed),
            Governing::Further => self.further.check(observed),
            Governing::Undecided => {
                self.governing = match self.main.check(observed) {
                    Ok(()) => Governing::Main,
                    Err(_) => Governing::Further,
                };
                Ok(())
            }
        }
    }

    /// Merges what was learned from a history that passed [`Continuity::check`], durably.
    pub fn record(&mut self, newer: State) -> Result<(), Error> {
        match self.governing {
            Governing::Main => {
                self.note()?;
                self.main.record(&*self.fs, newer.clone())?;
            }
            Governing::Further | Governing::Undecided => {
                self.governing = Governing::Further;
                self.further.record(&*self.fs, newer.clone())?;
            }
        }
        // Last, so that it never knows more than the state that this operation goes by.
        // The packs are a hint for the former alone, and many in the end.
        let newer = State {
            packs: BTreeSet::new(),
            ..newer
        };
        match &mut self.floor {
            Some(floor) => floor.file.record(&*self.fs, newer),
            None => Ok(()),
        }
    }

    /// What is known of the chain up to the pin; see [`Known`]. It may end below the pin, where a process ended between
    /// writing the two, but never above it.
    pub fn known(&self) -> Option<Known> {
        let state = self.state()?;
        let known = known::read(self.path())?;
        let fits = known.generation() < state.generation
            || known.generation() == state.generation && *known.head() == state.head_id;
        fits.then_some(known)
    }

    /// Keeps what is known of the chain up to the pin. Call it after the pin was recorded. Where it cannot be kept, more
    /// is read next time.
    pub fn keep(&self, known: &Known) {
        known::write(&*self.fs, self.path(), known);
    }

    /// Writes down which store the main file is about, before it is.
    fn note(&mut self) -> Result<(), Error> {
        let Some(path) = &self.notes else { return Ok(()) };
        // Two ways to the same store do not take it from each other.
        let settled = self
            .noted
            .as_ref()
            .is_some_and(|store| *store == self.identity || self.siblings.contains(store));
        if settled && self.main.state().is_some() || self.noted.as_ref() == Some(&self.identity) {
            return Ok(());
        }
        let note = Note {
            store: self.identity.clone(),
        };
        let text = serde_json::to_vec_pretty(&note).expect("a text always serialises");
        file::write(&*self.fs, path, &text)?;
        self.noted = Some(self.identity.clone());
        Ok(())
    }
}

/// Moves the state of a remote out of the way that is about another repository than `root`: for whoever has just begun
/// that repository in a store of its own, and gives the name to it. The file is kept beside its place.
pub fn set_aside(
    fs: &dyn Fs,
    git_dir: &Path,
    owner: Owner<'_>,
    root: &RepositoryRoot,
    patience: Patience<'_>,
) -> Result<(), Error> {
    let home = place::home(git_dir, owner, "");
    let main = home.join(place::STATE);
    if file::read_if_there(&main)?.is_none() {
        return Ok(());
    }
    let _lock = file::lock(fs, &main, patience)?;
    let of_another = match file::load(&main) {
        Ok(Some(state)) => state.repository_root != *root,
        Ok(None) => false,
        // What cannot be read is not about a repository that was begun just now.
        Err(Error::Damaged { .. } | Error::UnsupportedFormat { .. }) => true,
        Err(error) => return Err(error),
    };
    if !of_another {
        return Ok(());
    }
    let mut aside = (1..).map(|number| home.join(format!("state.before-{number}.json")));
    let aside = aside
        .find(|path| !path.exists())
        .unwrap_or_else(|| home.join("state.before.json"));
    let failed = |action, path: &Path, source| Error::Write(durable::Error::new(action, path, source));
    fs.rename(&main, &aside)
        .map_err(|source| failed("move aside", &main, source))?;
    let note = home.join("store.json");
    match fs.unlink(&note) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed("remove", &note, source));
        }
        _ => {}
    }
    fs.sync_dir(&home)
        .map_err(|source| failed("sync folder", &home, source))
}

fn read_note(path: &Path) -> Result<Option<String>, Error> {
    let Some(text) = file::read_if_there(path)? else {
        return Ok(None);
    };
    match serde_json::from_slice::<Note>(&text) {
        Ok(note) => Ok(Some(note.store)),
        Err(error) => Err(Error::Damaged {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
    }
}
