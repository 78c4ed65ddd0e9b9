//! A carrier on this machine, opened directly: no program is started for it, and nothing is copied.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gix::object::Kind;
use gix_hash::ObjectId;
use ingot_engine::durable::Fs;
use ingot_engine::import::{self, Import};
use ingot_engine::pack::create::{Content, Creator};
use ingot_engine::refs::{self, Edit, Expected, Transaction};
use ingot_engine::repository::{self, Init, Repository};
use ingot_engine::store::{self, Store};
use ingot_engine::transport::Messages;

use super::super::Error;
use super::super::directory::canonical_text;
use super::hooks::Hooks;
use super::layout::{BRANCH, PART};
use super::outer::{Outcome, Outer, Purpose, Upload};
use super::policy;
use super::snapshot::Snapshot;

/// Whoever moves the branch holds its lock for a moment. Longer than this, and something has gone wrong there.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Time between two tries to get it.
const PAUSE: Duration = Duration::from_millis(20);
/// Packs of this length are brought to the disk before the lock is taken.
const SYNC_EARLY: u64 = 1 << 20;
/// With so many packs, further pushes of little add none.
const PACKS: usize = 32;
/// The largest object that is held in memory: a part that somebody stored as a delta, and what it is made from.
const OBJECT_LIMIT: u64 = 2 * PART;

/// A Git repository at a path.
#[derive(Clone)]
pub(super) struct Local {
    path: PathBuf,
    fs: Arc<dyn Fs>,
    messages: Arc<dyn Messages>,
    opened: Arc<Mutex<Opened>>,
}

/// What was opened before, for the next step of the same process.
#[derive(Default)]
struct Opened {
    repository: Option<Repository>,
    store: Option<Arc<Store>>,
}

/// The repository while it is used.
struct InUse<'a> {
    opened: &'a Mutex<Opened>,
    repository: Option<Repository>,
}

impl std::ops::Deref for InUse<'_> {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        self.repository
            .as_ref()
            .expect("it is there until this is dropped")
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.repository = self.repository.take();
    }
}

impl Local {
    /// The repository at `path`, whether or not anything is there: bare, or the top of a work tree. A relative path is
    /// taken from the current folder, now.
    pub fn new(path: &Path, fs: Arc<dyn Fs>, messages: Arc<dyn Messages>) -> Result<Local, Error> {
        let path = std::path::absolute(path).map_err(|source| Error::Io {
            action: "find out where it is:",
            path: path.to_owned(),
            source,
        })?;
        Ok(Local {
            path,
            fs,
            messages,
            opened: Arc::default(),
        })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The repository, opened unless it is already.
    fn open(&self) -> Result<InUse<'_>, Error> {
        let before = self.opened().repository.take();
        let repository = match before {
            Some(repository) => repository,
            None => self.open_anew()?,
        };
        Ok(InUse {
            opened: &self.opened,
            repository: Some(repository),
        })
    }

    /// Opens the repository where Git would: in `path`, in `path/.git`, or in `path.git`.
    fn open_anew(&self) -> Result<Repository, Error> {
        let mut with_suffix = self.path.clone().into_os_string();
        with_suffix.push(".git");
        for path in [&self.path, &PathBuf::from(with_suffix)] {
            match Repository::open(path) {
                Err(repository::Error::NotARepository { .. }) => {}
                Ok(repository) => return Ok(repository),
                Err(source) => return Err(self.broken(source)),
            }
        }
        Err(Error::Unreachable {
            store: self.name(),
            reason: match self.is_vacant() {
                true => "there is nothing".to_owned(),
                false => "it is no Git repository".to_owned(),
            },
        })
    }

    /// Nothing is there, or an empty folder.
    fn is_vacant(&self) -> bool {
        match std::fs::read_dir(&self.path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    fn broken(&self, source: repository::Error) -> Error {
        Error::Repository {
            store: self.name(),
            source: Box::new(source),
        }
    }

    fn branch_error(&self, source: refs::Error) -> Error {
        Error::Branch {
            store: self.name(),
            source: Box::new(source),
        }
    }

    fn import_error(&self, source: import::Error) -> Error {
        Error::Import {
            store: self.name(),
            source: Box::new(source),
        }
    }

    fn tip(&self, repository: &Repository) -> Result<Option<ObjectId>, Error> {
        let name = refs::validate(BRANCH).map_err(|error| self.branch_error(error))?;
        refs::find(repository, name.as_ref()).map_err(|error| self.branch_error(error))
    }
}

impl Outer for Local {
    fn describe(&self) -> String {
        self.name()
    }

    fn identity(&self) -> String {
        format!("carrier:{}", canonical_text(&self.path))
    }

    fn look(&self, _purpose: Purpose) -> Result<Snapshot, Error> {
        let repository = self.open()?;
        // The branch first: what it leads to is there by then, and the list of packs is read afterwards.
        let tip = self.tip(&repository)?;
        let known = self.opened().store.take();
        // A pack that came in the same tick of the clock may have gone unnoticed, but then it brought this tip.
        let known = known.filter(|store| {
            store.objects_dir() == repository.objects_dir()
                && store.format() == repository.format()
                && store.is_current()
                && tip.is_none_or(|tip| store.contains(&tip))
        });
        let store = match known {
            Some(store) => store,
            None => {
                let options = store::Options {
                    object_limit: OBJECT_LIMIT,
                    // What cannot be read now must not look as if it were gone.
                    strict: true,
                    ..store::Options::default()
                };
                let opened = Store::open_with(repository.objects_dir(), repository.format(), options);
                Arc::new(opened.map_err(|source| Error::Objects {
                    store: self.name(),
                    source: Box::new(source),
                })?)
            }
        };
        self.opened().store = Some(Arc::clone(&store));
        Snapshot::open(&self.name(), store, tip)
    }

    /// What was opened before may be older than what is read now.
    fn distrust(&self) -> bool {
        self.opened().repository = None;
        self.opened().store.take().is_some()
    }

    fn bring(&self, snapshot: &Snapshot, _blobs: &[ObjectId]) -> Result<Arc<Store>, Error> {
        Ok(Arc::clone(snapshot.store()))
    }

    fn create(&self) -> Result<(), Error> {
        if !self.is_vacant() {
            return self.open().map(drop);
        }
        let bare = Init {
            bare: true,
            ..Init::default()
        };
        repository::init(&self.path, &bare)
            .map(drop)
            .map_err(|source| self.broken(source))
    }

    fn begin(&self, snapshot: &Snapshot) -> Result<Box<dyn Upload>, Error> {
        let repository = self.open()?;
        if let Some(reason) = policy::refusal(&repository) {
            return Err(Error::Refused {
                store: self.name(),
                reason,
            });
        }
        let options = import::Options {
            threads: 1,
            keep_message: "git-remote-e2ee push".into(),
            fs: Arc::clone(&self.fs),
            ..import::Options::default()
        };
        let import = Import::into_store(Arc::clone(snapshot.store()), options)
            .map_err(|source| self.import_error(source))?;
        Ok(Box::new(LocalUpload {
            local: self.clone(),
            builder: import.builder(),
            import,
            as_files: snapshot.store().packs().len() >= PACKS,
        }))
    }
}

/// New objects in the repository's quarantine.
struct LocalUpload {
    local: Local,
    import: Import,
    builder: Creator,
    /// There are so many packs that objects are better files of their own.
    as_files: bool,
}

impl Upload for LocalUpload {
    fn add(&mut self, kind: Kind, bytes: &[u8], content: Content) -> Result<ObjectId, Error> {
        self.builder
            .add_whole(kind, bytes, content)
            .map_err(|error| Error::Write(error.into()))
    }

    fn add_part(&mut self, size: u64, source: &mut dyn Read) -> Result<ObjectId, Error> {
        self.builder
            .add_stream(size, source)
            .map_err(|error| Error::Write(error.into()))
    }

    fn folder(&self) -> &Path {
        self.import.quarantine()
    }

    fn publish(&mut self, old: Option<ObjectId>, new: ObjectId) -> Result<Outcome, Error> {
        let local = self.local.clone();
        let repository = local.open()?;
        let next = self.import.builder();
        let received = self
            .import
            .adopt(std::mem::replace(&mut self.builder, next))
            .map_err(|source| local.import_error(source))?;
        let refused = |reason| Error::Refused {
            store: local.name(),
            reason,
        };
        if let Some(reason) = policy::too_large(&repository, received.bytes) {
            return Err(refused(reason));
        }
        let hooks = Hooks::of(&repository, old, new, &*local.messages);
        hooks.ask(self.import.quarantine()).map_err(refused)?;
        if received.bytes >= SYNC_EARLY {
            self.import.sync().map_err(|source| local.import_error(source))?;
        }
        let Some(transaction) = lock(&local, &repository, old, new)? else {
            return Ok(Outcome::LostRace);
        };
        // Objects first, then the branch, whose lock is held: what comes in now is wanted.
        let published = match self.as_files && policy::unpacks(&repository, received) {
            true => self.import.publish_loose().map(|()| Vec::new()),
            false => self.import.publish_now(true),
        }
        .map_err(|source| local.import_error(source))?;
        let committed = transaction.commit();
        for pack in published {
            if let Some(keep) = pack.keep {
                // One that stays only keeps a pack from being repacked.
                let _ = local.fs.unlink(&keep);
            }
        }
        match committed {
            Ok(_) => {
                hooks.tell();
                Ok(Outcome::Moved)
            }
            // The last steps may be what failed; then everybody can see the new commit already.
            Err(source) if local.tip(&repository).ok().flatten() == Some(new) => Err(Error::Uncertain {
                store: local.name(),
                source: durable_cause(source, &repository),
            }),
            Err(source) => Err(local.branch_error(source)),
        }
    }
}

/// Takes the lock of the branch and checks that it is where it should be; `None` if it is not.
fn lock<'r>(
    local: &Local,
    repository: &'r Repository,
    old: Option<ObjectId>,
    new: ObjectId,
) -> Result<Option<Transaction<'r>>, Error> {
    let name = refs::validate(BRANCH).map_err(|error| local.branch_error(error))?;
    let edit = Edit::set(name, new)
        .expecting(old.map_or(Expected::Absent, Expected::Is))
        .because("push");
    let options = refs::Options {
        fs: Arc::clone(&local.fs),
        incoming: vec![new],
        ..refs::Options::default()
    };
    let start = Instant::now();
    loop {
        match Transaction::prepare(repository, vec![edit.clone()], &options) {
            Ok(transaction) => return Ok(Some(transaction)),
            Err(refs::Error::Changed { .. }) => return Ok(None),
            Err(refs::Error::Locked { .. }) if start.elapsed() < LOCK_WAIT => std::thread::sleep(PAUSE),
            Err(error) => return Err(local.branch_error(error)),
        }
    }
}

/// The failed call behind a failed transaction.
fn durable_cause(error: refs::Error, repository: &Repository) -> ingot_engine::durable::Error {
    match error {
        refs::Error::Durable(error) => error,
        refs::Error::Incomplete { source, .. } => durable_cause(*source, repository),
        other => ingot_engine::durable::Error::new(
            "move the branch of",
            repository.git_dir(),
            std::io::Error::other(other),
        ),
    }
}
