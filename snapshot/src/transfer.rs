//! Sends snapshots to an encrypted store and gets those of other machines, without a Git program.

use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use ingot_engine::refs::{self, Edit, Expected};
use ingot_engine::walk;
use ingot_helper::cli::exit::Failure;
use ingot_helper::cli::place::{self, Place};
use ingot_helper::config::StorageUrl;
use ingot_helper::keys::KeyFiles;
use ingot_helper::protocol::{DeviceKey, key_file};
use ingot_helper::remote::decide::{Change, Decision, Target};
use ingot_helper::remote::{self, FetchOptions, Local, PushOptions, Sent, View};

use crate::archive::{self, Archive, REMOTE_PREFIX};

/// Why snapshots could not be sent or fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The encrypted store.
    #[error(transparent)]
    Remote(#[from] remote::Error),
    /// The repository of snapshots.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// The key file.
    #[error(transparent)]
    Key(#[from] key_file::Error),
    /// The machine has no randomness.
    #[error("cannot make a key: {0}")]
    Random(String),
    /// The history could not be compared.
    #[error(transparent)]
    Walk(#[from] walk::Error),
    /// The store could not be prepared.
    #[error("{0}")]
    Place(Box<Failure>),
    /// There is a store, and no key for it.
    #[error("there is a store at {url}, but no key at {}; copy the key of the machine that made it there", .key.display())]
    NoKey {
        /// The store.
        url: String,
        /// Where the key should be.
        key: PathBuf,
    },
    /// The store has other snapshots under the name of this machine.
    #[error(
        "the store has other snapshots of a machine named {machine} ({reason}); give this one another name: machine = \"…\" in the configuration, or run: rivet pull"
    )]
    Refused {
        /// The name.
        machine: String,
        /// What the store's rules say.
        reason: String,
    },
}

impl From<refs::Error> for Error {
    fn from(error: refs::Error) -> Error {
        Error::Archive(error.into())
    }
}

/// A store and the key to it.
pub struct Store<'a> {
    /// The location, absolute.
    pub url: StorageUrl,
    /// The device key.
    pub key: PathBuf,
    /// Opens it.
    pub keys: &'a KeyFiles,
    /// Who is told how far the work is.
    pub progress: &'a dyn ingot_engine::progress::Progress,
}

/// What was sent.
#[derive(Debug)]
pub struct Pushed {
    /// A key was made on the way.
    pub made_key: bool,
    /// A store was made on the way.
    pub made_store: bool,
    /// What was written; `None` where the store had everything.
    pub sent: Option<Sent>,
    /// The number of the store's newest generation.
    pub generation: u64,
}

/// What was fetched.
#[derive(Debug)]
pub struct Pulled {
    /// Objects that are new here.
    pub objects: u64,
    /// Machines with snapshots that are new here, and the newest of each.
    pub machines: Vec<(String, ObjectId)>,
    /// The own branch was moved, because the store has newer snapshots of this machine.
    pub own_moved: bool,
}

impl Store<'_> {
    fn open(&self, archive: Option<&Archive>) -> Result<Place, Error> {
        let repository = archive.map(Archive::repository);
        Place::open(
            self.keys,
            self.url.clone(),
            self.key.clone(),
            repository,
            None,
            Path::new("/"),
        )
        .map_err(|failure| Error::Place(Box::new(failure)))
    }

    /// Whether anybody has begun a repository there.
    fn is_begun(&self) -> Result<bool, Error> {
        let storage = place::storage(&self.url, None, Path::new("/"))
            .map_err(|failure| Error::Place(Box::new(failure)))?;
        match storage.head() {
            Ok(head) => Ok(head.is_some()),
            Err(ingot_helper::storage::Error::Unreachable { .. }) => Ok(false),
            Err(error) => Err(remote::Error::from(error).into()),
        }
    }

    /// The store's newest generation; `None` where no repository was begun.
    pub fn look(&self) -> Result<Option<u64>, Error> {
        if !self.is_begun()? {
            return Ok(None);
        }
        let place = self.open(None)?;
        Ok(Some(place.remote(self.progress).list(None)?.generation()))
    }

    /// Makes key and store where there is neither, or a store for a key that was made before.
    fn prepare(&self) -> Result<(bool, bool), Error> {
        let begun = self.is_begun()?;
        let has_key = self.key.exists();
        if begun {
            return match has_key {
                true => Ok((false, false)),
                false => Err(Error::NoKey {
                    url: self.url.to_string(),
                    key: self.key.clone(),
                }),
            };
        }
        if !has_key {
            let device = DeviceKey::generate(None).map_err(|error| Error::Random(error.to_string()))?;
            key_file::create(&self.key, &device)?;
        }
        let place = self.open(None)?;
        let patience = place::patience(self.progress);
        remote::init(place.storage(), place.key(), &self.key, place.fs(), patience)?;
        Ok((!has_key, true))
    }

    /// Sends the snapshots of this machine.
    pub fn push(&self, archive: &Archive) -> Result<Pushed, Error> {
        let tip = archive.tip()?.ok_or(archive::Error::Empty)?;
        let (made_key, made_store) = self.prepare()?;
        let place = self.open(Some(archive))?;
        let remote = place.remote(self.progress);
        let local = Local::open(archive.repository())?;
        let branch = format!("refs/heads/{}", archive.machine());
        let view = remote.list(None)?;
        let theirs = view.refs().get(&branch).copied();
        // After a prune, history is another one. What the store has is given up only if it is what this machine sent.
        let sent_before = tracking(archive, archive.machine())?;
        let rewritten = match theirs {
            Some(theirs) if Some(theirs) == sent_before => {
                !walk::is_ancestor(local.store(), &theirs, &tip, &[], self.progress)?
            }
            _ => false,
        };
        let change = Change {
            name: branch.as_str().into(),
            target: Target::Object(tip),
            force: rewritten,
            lease: None,
        };
        let options = PushOptions {
            listed: Some(view.refs().clone()),
            ..PushOptions::default()
        };
        let pushed = remote.push(&local, &[change], &options)?;
        if let Some(Decision::Rejected(rejection)) = pushed.decisions.first() {
            return Err(Error::Refused {
                machine: archive.machine().to_owned(),
                reason: rejection.to_string(),
            });
        }
        follow(archive, &pushed.view)?;
        Ok(Pushed {
            made_key,
            made_store,
            sent: pushed.sent,
            generation: pushed.view.generation(),
        })
    }

    /// Fetches the snapshots of all machines.
    pub fn pull(&self, archive: &Archive) -> Result<Pulled, Error> {
        if !self.is_begun()? {
            let store = self.url.to_string();
            return Err(remote::Error::NoRepository { store }.into());
        }
        if !self.key.exists() {
            return Err(Error::NoKey {
                url: self.url.to_string(),
                key: self.key.clone(),
            });
        }
        let place = self.open(Some(archive))?;
        let remote = place.remote(self.progress);
        let local = Local::open(archive.repository())?;
        let fetched = remote.fetch(&local, FetchOptions::default())?;
        let machines = follow(archive, &fetched.view)?;
        let own_moved = self.catch_up(archive, &fetched.view)?;
        Ok(Pulled {
            objects: fetched.objects,
            machines,
            own_moved,
        })
    }

    /// Moves the own branch forward when the store has newer snapshots of this machine: it was set up anew.
    fn catch_up(&self, archive: &Archive, view: &View) -> Result<bool, Error> {
        let branch = archive.branch()?;
        let Some(theirs) = view.refs().get(&branch.as_bstr().to_string()).copied() else {
            return Ok(false);
        };
        let expected = match archive.tip()? {
            None => Expected::Absent,
            Some(ours) if ours == theirs => return Ok(false),
            Some(ours) => {
                let store = archive.store()?;
                if !walk::is_ancestor(&store, &ours, &theirs, &[], self.progress)? {
                    return Ok(false);
                }
                Expected::Is(ours)
            }
        };
        let edit = Edit::set(branch, theirs).expecting(expected).because("pull");
        refs::apply(archive.repository(), vec![edit])?;
        Ok(true)
    }
}

/// What the store had for a machine when this one last looked.
fn tracking(archive: &Archive, machine: &str) -> Result<Option<ObjectId>, Error> {
    let branches = archive.branches()?;
    let found = branches
        .into_iter()
        .find(|branch| branch.fetched && branch.machine == machine);
    Ok(found.map(|branch| branch.tip))
}

/// Moves the references that follow the store; returns those that moved to something else.
fn follow(archive: &Archive, view: &View) -> Result<Vec<(String, ObjectId)>, Error> {
    let old = archive.branches()?;
    let old = |machine: &str| {
        let mut fetched = old.iter().filter(|branch| branch.fetched);
        fetched
            .find(|branch| branch.machine == machine)
            .map(|branch| branch.tip)
    };
    let store = archive.store()?;
    let mut edits = Vec::new();
    let mut moved = Vec::new();
    for (name, id) in view.refs() {
        let Some(machine) = name.strip_prefix("refs/heads/") else {
            continue;
        };
        // A push does not fetch: what others sent meanwhile comes with the next pull.
        if old(machine) == Some(*id) || !store.contains(id) {
            continue;
        }
        let name = refs::validate(format!("{REMOTE_PREFIX}{machine}").as_str())?;
        edits.push(Edit::set(name, *id).because("store"));
        moved.push((machine.to_owned(), *id));
    }
    refs::apply(archive.repository(), edits)?;
    Ok(moved)
}

/// The location that the user wrote, made absolute. Only folders can be stores here.
pub fn location(text: &str, home: &Path, here: &Path) -> Result<StorageUrl, Error> {
    let place = text.strip_prefix("e2ee::").unwrap_or(text);
    let path = crate::config::expand(place, home);
    let text = match path.is_absolute() {
        true => path.display().to_string(),
        false => place.to_owned(),
    };
    StorageUrl::parse(text.as_str().into(), here).map_err(|error| Error::Place(Box::new(error.into())))
}
