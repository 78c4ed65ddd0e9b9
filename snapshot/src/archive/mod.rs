//! The repository of snapshots: an ordinary bare Git repository that rivet owns.
//!
//! Each machine has a branch, and each snapshot is a commit on it whose tree has `manifest.json`, the captured files
//! below `files/`, and `packages.json`. What stock Git reads, Git reads; what restoring relies on is in the manifest.

pub mod commit;
pub mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gix_hash::ObjectId;
use gix_object::Kind;
use gix_ref::FullName;
use ingot_engine::durable::{self, Fs};
use ingot_engine::object::tree::Entries;
use ingot_engine::pack::create;
use ingot_engine::refs;
use ingot_engine::repository::{self, Init, Repository};
use ingot_engine::store::{self, Cache, Store};
use ingot_helper::flock::{self, FileLock, Patience};

use crate::manifest::{self, Manifest};
use commit::Commit;

/// The folder of this program in the repository.
const OWN: &str = "rivet";
/// Where fetched branches of other machines are.
pub const REMOTE_PREFIX: &str = "refs/remotes/store/";
/// No commit that this program makes is larger.
const COMMIT_LIMIT: u64 = 1 << 20;
/// The largest manifest or package list that is read: a million files have some 300 MB.
const DOCUMENT_LIMIT: u64 = 1 << 30;

/// Why the repository could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("there is no repository of snapshots at {}; run: rivet init", .0.display())]
    Absent(PathBuf),
    /// There is one already.
    #[error("there is a repository of snapshots at {} already", .0.display())]
    Exists(PathBuf),
    /// It could not be opened or made.
    #[error(transparent)]
    Repository(#[from] repository::Error),
    /// Objects could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// References could not be read or changed.
    #[error(transparent)]
    Refs(#[from] refs::Error),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// Another rivet is at work.
    #[error(transparent)]
    Locked(#[from] flock::Error),
    /// A commit that is no snapshot.
    #[error("{id} is no snapshot: {reason}")]
    NotASnapshot {
        /// What was asked for.
        id: ObjectId,
        /// What it lacks.
        reason: String,
    },
    /// A manifest that was refused.
    #[error("snapshot {id}: {source}")]
    Manifest {
        /// The snapshot.
        id: ObjectId,
        /// Why.
        source: manifest::Error,
    },
    /// Nothing was captured yet.
    #[error("there is no snapshot yet; run: rivet snapshot")]
    Empty,
    /// Only other machines have snapshots.
    #[error("this machine has no snapshot yet; name one of another machine: {}", .0.join(", "))]
    OtherMachines(Vec<String>),
    /// A name that is no snapshot's.
    #[error("there is no snapshot '{spec}' ({message}); see: rivet list --all")]
    Unknown {
        /// What was asked for.
        spec: String,
        /// Why.
        message: String,
    },
    /// The same, where history is not what this program makes.
    #[error("the history of {id} goes in a circle or is longer than any that is made")]
    TooLong {
        /// Where it begins.
        id: ObjectId,
    },
}

/// One snapshot in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit.
    pub id: ObjectId,
    /// What it says.
    pub commit: Commit,
}

/// The branch of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The name of the machine.
    pub machine: String,
    /// The newest snapshot.
    pub tip: ObjectId,
    /// Whether it was fetched, rather than made here.
    pub fetched: bool,
}

/// An open repository of snapshots.
#[derive(Debug)]
pub struct Archive {
    repository: Repository,
    machine: String,
}

/// Files in the repository that are no objects: they can be used without opening it.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// Of the repository at `root`.
    pub fn of(root: &Path) -> Files {
        Files {
            root: root.to_owned(),
        }
    }

    /// What the last capture saw.
    pub fn stat_cache(&self) -> PathBuf {
        self.root.join(OWN).join("stat-cache")
    }

    /// What the last reading of the installed packages saw.
    pub fn packages_cache(&self) -> PathBuf {
        self.root.join(OWN).join("packages-cache")
    }

    /// Locks the repository against other runs of this program.
    pub fn lock(&self, patience: Patience<'_>) -> Result<FileLock, Error> {
        if !self.root.join("HEAD").exists() {
            return Err(Error::Absent(self.root.clone()));
        }
        Ok(FileLock::acquire(&self.root.join(OWN).join("lock"), patience)?)
    }

    /// Whether the branch of a machine is known to be at `id`, by its file alone. No says nothing.
    pub fn is_at(&self, machine: &str, id: &ObjectId) -> bool {
        let file = self.root.join("refs").join("heads").join(machine);
        std::fs::read(file).is_ok_and(|text| text.trim_ascii() == id.to_string().as_bytes())
    }
}

impl Archive {
    /// Makes a new repository for a machine. It is made beside its place and moved there when it is complete, so an
    /// interrupted attempt leaves nothing that is in the way of the next one.
    pub fn init(path: &Path, machine: &str, format: gix_hash::Kind) -> Result<Archive, Error> {
        let fs = durable::Real;
        if path.join("HEAD").exists() {
            return Err(Error::Exists(path.to_owned()));
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        durable::create_dirs(&fs, folder, 0o700)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = folder.join(name);
        let failed = |action: &'static str, error| durable::Error::new(action, &new, error);
        if new.exists() {
            std::fs::remove_dir_all(&new).map_err(|error| failed("remove", error))?;
        }
        // For the user alone: names and content of files are nobody else's business.
        durable::create_dirs(&fs, &new, 0o700)?;
        let init = Init {
            bare: true,
            format,
            branch: Some(machine.to_owned()),
            ..Init::default()
        };
        repository::init(&new, &init)?;
        durable::create_dirs(&fs, &new.join(OWN), 0o700)?;
        fs.rename(&new, path).map_err(|error| failed("move", error))?;
        fs.sync_dir(folder).map_err(|error| failed("move", error))?;
        Archive::open(path, machine)
    }

    /// Opens the repository at `path` on behalf of a machine.
    pub fn open(path: &Path, machine: &str) -> Result<Archive, Error> {
        if !path.join("HEAD").exists() {
            return Err(Error::Absent(path.to_owned()));
        }
        Ok(Archive {
            repository: Repository::open(path)?,
            machine: machine.to_owned(),
        })
    }

    /// The Git repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.repository.git_dir()
    }

    /// Its files that are no objects.
    pub fn files(&self) -> Files {
        Files::of(self.path())
    }

    /// The machine on whose behalf it was opened.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// The branch of this machine.
    pub fn branch(&self) -> Result<FullName, Error> {
        Ok(refs::validate(format!("refs/heads/{}", self.machine).as_str())?)
    }

    /// Its objects, as they are now.
    pub fn store(&self) -> Result<Store, Error> {
        Ok(self.repository.store()?)
    }

    /// The newest snapshot of this machine.
    pub fn tip(&self) -> Result<Option<ObjectId>, Error> {
        let name = format!("refs/heads/{}", self.machine);
        let found = refs::list(&self.repository, &name)?;
        Ok(found
            .into_iter()
            .find(|reference| reference.name.as_bstr() == name.as_str())
            .map(|reference| reference.id))
    }

    /// The branches of all machines, own ones first.
    pub fn branches(&self) -> Result<Vec<Branch>, Error> {
        let mut branches = Vec::new();
        for (prefix, fetched) in [("refs/heads/", false), (REMOTE_PREFIX, true)] {
            for reference in refs::list(&self.repository, prefix)? {
                let name = reference.name.as_bstr().to_string();
                branches.push(Branch {
                    machine: name[prefix.len()..].to_owned(),
                    tip: reference.id,
                    fetched,
                });
            }
        }
        Ok(branches)
    }

    /// The snapshot that the user means: nothing for the newest one, the name of a machine, an id or the start of one,
    /// each with `~N` for the N-th before.
    pub fn resolve(&self, spec: Option<&str>) -> Result<ObjectId, Error> {
        let Some(spec) = spec else {
            return self.newest();
        };
        let (name, back) = match spec.split_once('~') {
            Some((name, "")) => (name, 1),
            Some((name, back)) => match back.parse::<usize>() {
                Ok(back) => (name, back),
                Err(_) => return Err(unknown(spec, "after ~ comes a number")),
            },
            None => (spec, 0),
        };
        let start = match name {
            "" | "HEAD" | "@" | "latest" => self.newest()?,
            name => {
                let branches = self.branches()?;
                match branches.iter().find(|branch| branch.machine == name) {
                    Some(branch) => branch.tip,
                    None => {
                        refs::resolve(&self.repository, name)
                            .map_err(|_| unknown(spec, "no machine and no id begins so"))?
                            .id
                    }
                }
            }
        };
        let mut at = start;
        let mut reader = self.reader()?;
        for _ in 0..back {
            at = match reader.commit(&at)?.parents.first() {
                Some(parent) => *parent,
                None => return Err(unknown(spec, "the history is shorter")),
            };
        }
        Ok(at)
    }

    fn newest(&self) -> Result<ObjectId, Error> {
        if let Some(tip) = self.tip()? {
            return Ok(tip);
        }
        let mut others = self.branches()?;
        match others.len() {
            0 => Err(Error::Empty),
            1 => Ok(others.remove(0).tip),
            _ => Err(Error::OtherMachines(
                others.into_iter().map(|branch| branch.machine).collect(),
            )),
        }
    }

    /// Reads objects of the repository as it is now.
    pub fn reader(&self) -> Result<Reader, Error> {
        Ok(Reader {
            store: self.store()?,
            cache: Cache::new(8 << 20),
            buffer: Vec::new(),
        })
    }

    /// Removes what interrupted captures left. Only for whoever holds the lock: nobody else makes such files.
    pub fn clear_leftovers(&self, fs: &dyn Fs) {
        let folder = self.repository.objects_dir().join("pack");
        // Leftovers are harmless, and so is failing to remove them.
        for name in fs.read_dir(&folder).unwrap_or_default() {
            let bytes = name.as_encoded_bytes();
            if create::TEMPORARY_PREFIXES
                .iter()
                .any(|prefix| bytes.starts_with(prefix.as_bytes()))
            {
                let _ = fs.unlink(&folder.join(&name));
            }
        }
    }

    /// The snapshots from `tip` back, newest first.
    pub fn history(&self, tip: ObjectId) -> Result<Vec<Snapshot>, Error> {
        self.reader()?.history(tip)
    }

    /// How long a run stands in line for another one.
    pub fn patience() -> Duration {
        Duration::from_secs(10)
    }

    /// The file system of the product.
    pub fn fs() -> Arc<dyn Fs> {
        durable::real()
    }
}

fn unknown(spec: &str, message: &str) -> Error {
    Error::Unknown {
        spec: spec.to_owned(),
        message: message.to_owned(),
    }
}

/// Reads snapshots from the objects that were there when it was made.
#[derive(Debug)]
pub struct Reader {
    /// The objects.
    pub store: Store,
    /// Memory of objects that others are stored against.
    pub cache: Cache,
    buffer: Vec<u8>,
}

impl Reader {
    fn read(&mut self, snapshot: &ObjectId, id: &ObjectId, kind: Kind, limit: u64) -> Result<&[u8], Error> {
        let lacks = |reason: String| Error::NotASnapshot {
            id: *snapshot,
            reason,
        };
        match self.store.header(id)? {
            Some((found, size)) if found == kind && size <= limit => {}
            Some((found, _)) if found != kind => {
                return Err(lacks(format!("{id} is a {found}, not a {kind}")));
            }
            Some(_) => return Err(lacks(format!("{id} is too large"))),
            None => return Err(lacks(format!("{kind} {id} is missing"))),
        }
        self.store.read(id, &mut self.cache, &mut self.buffer)?;
        Ok(&self.buffer)
    }

    /// A commit.
    pub fn commit(&mut self, id: &ObjectId) -> Result<Commit, Error> {
        let format = self.store.format();
        let bytes = self.read(id, id, Kind::Commit, COMMIT_LIMIT)?;
        Commit::decode(bytes, format).ok_or_else(|| Error::NotASnapshot {
            id: *id,
            reason: "its commit cannot be read".to_owned(),
        })
    }

    /// The snapshots from `tip` back, newest first.
    pub fn history(&mut self, tip: ObjectId) -> Result<Vec<Snapshot>, Error> {
        let mut snapshots = Vec::new();
        let mut next = Some(tip);
        while let Some(id) = next {
            if snapshots.len() > 10_000_000 {
                return Err(Error::TooLong { id: tip });
            }
            let commit = self.commit(&id)?;
            next = commit.parents.first().copied();
            snapshots.push(Snapshot { id, commit });
        }
        Ok(snapshots)
    }

    /// The object under a name at the top of a snapshot's tree.
    pub fn top(&mut self, snapshot: &ObjectId, name: &str) -> Result<Option<ObjectId>, Error> {
        let tree = self.commit(snapshot)?.tree;
        let format = self.store.format();
        let bytes = self.read(snapshot, &tree, Kind::Tree, DOCUMENT_LIMIT)?;
        for entry in Entries::new(bytes, format) {
            let entry = entry.map_err(|error| Error::NotASnapshot {
                id: *snapshot,
                reason: error.to_string(),
            })?;
            if entry.name == name {
                return Ok(Some(entry.id.to_owned()));
            }
        }
        Ok(None)
    }

    /// The manifest of a snapshot.
    pub fn manifest(&mut self, snapshot: &ObjectId) -> Result<Manifest, Error> {
        let id = self
            .top(snapshot, manifest::FILE)?
            .ok_or_else(|| Error::NotASnapshot {
                id: *snapshot,
                reason: format!("it has no {}", manifest::FILE),
            })?;
        let format = self.store.format();
        let bytes = self.read(snapshot, &id, Kind::Blob, DOCUMENT_LIMIT)?;
        manifest::decode(bytes, format).map_err(|source| Error::Manifest {
            id: *snapshot,
            source,
        })
    }

    /// The list of packages of a snapshot, as it was written.
    pub fn packages(&mut self, snapshot: &ObjectId) -> Result<Option<Vec<u8>>, Error> {
        match self.top(snapshot, crate::capture::PACKAGES_FILE)? {
            Some(id) => Ok(Some(
                self.read(snapshot, &id, Kind::Blob, DOCUMENT_LIMIT)?.to_vec(),
            )),
            None => Ok(None),
        }
    }
}
