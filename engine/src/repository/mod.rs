//! Opens repositories and says what kind they are.
//!
//! gix reads; this module decides what is safe to work on. It refuses by name what the engine cannot handle (reftable,
//! unknown extensions, newer repository versions) and, like Git, repositories that somebody else owns. No program is
//! started: configuration that only a `git` program could locate is not looked for.

mod config;
mod edit;
mod environment;
mod error;
mod format;
mod init;

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;

pub use config::{Config, Settings};
pub use edit::Edit;
pub use error::Error;
pub(crate) use error::explain;
pub use init::{Init, init};

use crate::store::{self, Store};

/// An open repository: bare, with a work tree, or a linked work tree of another.
///
/// Not `Sync`, because gix's handle is not; the [`crate::store::Store`] that it hands out is.
pub struct Repository {
    gix: gix::Repository,
    objects: PathBuf,
    /// From `GIT_ALTERNATE_OBJECT_DIRECTORIES`.
    alternates: Vec<PathBuf>,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repository")
            .field("git_dir", &self.git_dir())
            .finish_non_exhaustive()
    }
}

/// gix finds packs that come while a repository is open only as far as it has room for them: a fetch of many generations
/// brings as many packs. So much room takes some hundred KiB.
const SLOTS: u16 = 4096;

/// What makes a repository incomplete on purpose: objects that it may fetch later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partial {
    /// Remotes that promise objects (`remote.<name>.promisor`, a filter, or `extensions.partialClone`).
    pub remotes: Vec<BString>,
    /// Packs whose objects may refer to absent ones (`*.promisor`), by file name.
    pub packs: Vec<String>,
}

impl Repository {
    /// Opens the repository whose `.git` folder, bare folder, or top of a work tree is `path`.
    ///
    /// Refuses repositories that belong to another user unless `safe.directory` names them.
    pub fn open(path: &Path) -> Result<Repository, Error> {
        let path = environment::absolute(path)?;
        let inner = path.join(".git");
        let at = if !path.ends_with(".git") && gix::discover::is_git(&inner).is_ok() {
            inner
        } else {
            path
        };
        Repository::open_owned(&at)
    }

    /// Opens the repository that `start` lies in, as Git finds it, honouring `GIT_CEILING_DIRECTORIES` and
    /// `GIT_DISCOVERY_ACROSS_FILESYSTEM`.
    pub fn discover(start: &Path) -> Result<Repository, Error> {
        let start = environment::absolute(start)?;
        let mut options = gix::discover::upwards::Options {
            // Ownership is judged below, together with `safe.directory`.
            trust: gix::discover::upwards::TrustPolicy::Assume(gix::sec::Trust::Full),
            ..Default::default()
        }
        .apply_environment();
        options.match_ceiling_dir_or_error = false;
        options.cross_fs = environment::flag("GIT_DISCOVERY_ACROSS_FILESYSTEM");
        let (found, _) = gix::discover::upwards_opts(&start, options).map_err(|error| {
            if error.classify().is_not_found() {
                Error::NotFound { start: start.clone() }
            } else {
                Error::open(&start, &error)
            }
        })?;
        let (git_dir, work_dir) = found.into_repository_and_work_tree_directories();
        // A work tree may say by its `.git` file alone that it belongs to a repository elsewhere.
        let link = work_dir.as_ref().map(|work_dir| work_dir.join(".git"));
        let at = match link {
            Some(link) if link.exists() => link,
            _ => git_dir,
        };
        let repository = Repository::open_owned(&environment::absolute(&at)?)?;
        if work_dir.is_none()
            && repository.gix.workdir().is_none()
            && !at.ends_with(".git")
            && repository
                .config()
                .string("safe.bareRepository")
                .is_some_and(|value| value == "explicit")
        {
            return Err(Error::ImplicitBare { path: at });
        }
        Ok(repository)
    }

    /// Opens the repository that Git would work on: the one that `GIT_DIR` names, else the one that the current folder
    /// lies in. `GIT_OBJECT_DIRECTORY` and `GIT_WORK_TREE` are honoured; like Git, an explicit `GIT_DIR` is trusted
    /// whoever owns it.
    pub fn from_env() -> Result<Repository, Error> {
        let mut repository = match environment::path("GIT_DIR") {
            Some(git_dir) => Repository::open_at(&environment::absolute(&git_dir)?, true)?,
            None => {
                let here = std::env::current_dir().map_err(|error| Error::CurrentFolder { source: error })?;
                Repository::discover(&here)?
            }
        };
        if let Some(common) = environment::path("GIT_COMMON_DIR") {
            let wanted = environment::absolute(&common)?;
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            if real(&wanted) != real(repository.common_dir()) {
                return Err(Error::Environment {
                    name: "GIT_COMMON_DIR",
                    message: format!(
                        "{} is not what {} belongs to; unset it",
                        wanted.display(),
                        repository.git_dir().display()
                    ),
                });
            }
        }
        if let Some(objects) = environment::path("GIT_OBJECT_DIRECTORY") {
            repository.use_objects(environment::absolute(&objects)?)?;
        }
        repository.alternates = environment::alternates()?;
        Ok(repository)
    }

    fn open_owned(at: &Path) -> Result<Repository, Error> {
        let repository = Repository::open_at(at, false)?;
        if repository.gix.git_dir_trust() != gix::sec::Trust::Full {
            let path = repository.work_dir().unwrap_or_else(|| repository.git_dir());
            return Err(Error::Ownership {
                path: path.to_owned(),
            });
        }
        Ok(repository)
    }

    fn open_at(at: &Path, trusted: bool) -> Result<Repository, Error> {
        if gix::discover::is_git(at).is_err() {
            return Err(Error::NotARepository { path: at.to_owned() });
        }
        format::check(at)?;
        let parameters = environment::parameters()?;
        let mut options = gix::open::Options::default()
            .permissions(permissions())
            .object_store_slots(slots(at))
            .open_path_as_is(true)
            .cli_overrides(parameters.plain);
        if trusted {
            options = options.with(gix::sec::Trust::Full);
        }
        let mut gix = gix::ThreadSafeRepository::open_opts(at, options)
            .map_err(|error| Error::open(at, &error))?
            .to_thread_local();
        if !parameters.exact.is_void() {
            let mut snapshot = gix.config_snapshot_mut();
            snapshot
                .append(parameters.exact)
                .map_err(|error| Error::open(at, &error))?;
            snapshot.commit().map_err(|error| Error::open(at, &error))?;
        }
        // Git's namespaces are for servers; ordinary commands see all references.
        gix.clear_namespace();
        let objects = gix.common_dir().join("objects");
        Ok(Repository {
            gix,
            objects,
            alternates: Vec::new(),
        })
    }

    fn use_objects(&mut self, objects: PathBuf) -> Result<(), Error> {
        if objects != self.objects {
            let database = gix_odb::at(&objects, self.format()).map_err(|error| Error::Environment {
                name: "GIT_OBJECT_DIRECTORY",
                message: format!("{} cannot be read: {error}", objects.display()),
            })?;
            self.gix.objects = gix_odb::memory::Proxy::from(database).with_write_passthrough();
            self.objects = objects;
        }
        Ok(())
    }

    /// The folder with `HEAD`: for a linked work tree, the one that belongs to it alone. Absolute.
    pub fn git_dir(&self) -> &Path {
        self.gix.git_dir()
    }

    /// The folder with `config`, `refs` and `objects`, which linked work trees share. Absolute.
    pub fn common_dir(&self) -> &Path {
        self.gix.common_dir()
    }

    /// The top of the work tree; `None` for a bare repository.
    pub fn work_dir(&self) -> Option<&Path> {
        self.gix.workdir()
    }

    /// Where objects are written.
    pub fn objects_dir(&self) -> &Path {
        &self.objects
    }

    /// The hash that names objects.
    pub fn format(&self) -> gix_hash::Kind {
        self.gix.object_hash()
    }

    /// gix's view of the same repository.
    pub fn gix(&self) -> &gix::Repository {
        &self.gix
    }

    /// Reads the configuration and the list of packs again, after something else may have changed them.
    pub fn reload(&mut self) -> Result<(), Error> {
        let mut fresh = Repository::open_at(self.git_dir(), true)?;
        if self.objects != fresh.objects {
            fresh.use_objects(self.objects.clone())?;
        }
        fresh.alternates = std::mem::take(&mut self.alternates);
        *self = fresh;
        Ok(())
    }

    /// Opens the objects as they are now; open them again after an import.
    pub fn store(&self) -> Result<Store, store::Error> {
        let options = store::Options {
            alternates: self.alternates.clone(),
            ..store::Options::default()
        };
        Store::open_with(&self.objects, self.format(), options)
    }

    /// Whether history was cut off by a shallow clone.
    pub fn is_shallow(&self) -> Result<bool, Error> {
        Ok(!self.shallow_commits()?.is_empty())
    }

    /// The commits whose parents are absent on purpose, sorted.
    pub fn shallow_commits(&self) -> Result<Vec<ObjectId>, Error> {
        let commits = self
            .gix
            .shallow_commits()
            .map_err(|error| Error::open(self.git_dir(), &error))?;
        let mut ids: Vec<ObjectId> = commits
            .map(|commits| commits.iter().copied().collect())
            .unwrap_or_default();
        ids.sort();
        Ok(ids)
    }

    /// What says that this is a partial clone; empty when nothing does.
    pub fn partial(&self) -> Result<Partial, Error> {
        let config = self.config();
        let mut partial = Partial::default();
        for name in config.names("remote") {
            let promisor = config
                .boolean(key("remote", name.as_bstr(), "promisor"))?
                .unwrap_or(false);
            let filter = config.string(key("remote", name.as_bstr(), "partialclonefilter"));
            if promisor || filter.is_some() {
                partial.remotes.push(name);
            }
        }
        if let Some(name) = config.string("extensions.partialClone")
            && !partial.remotes.contains(&name)
        {
            partial.remotes.push(name);
        }
        match std::fs::read_dir(self.objects.join("pack")) {
            Ok(entries) => {
                for entry in entries {
                    let name = entry
                        .map_err(|source| Error::read(&self.objects, source))?
                        .file_name();
                    if let Some(name) = name.to_str()
                        && name.ends_with(".promisor")
                    {
                        partial.packs.push(name.to_owned());
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::read(&self.objects.join("pack"), error)),
        }
        partial.packs.sort();
        Ok(partial)
    }

    /// Whether objects may be absent because a remote promised them.
    pub fn is_partial(&self) -> Result<bool, Error> {
        Ok(self.partial()? != Partial::default())
    }

    /// The configuration: system, user, repository, work tree, environment and command line, includes followed.
    pub fn config(&self) -> Config<'_> {
        Config::of(self.gix.config_snapshot())
    }
}

/// A configuration key whose middle part is any name.
pub(crate) fn key(section: &str, subsection: &bstr::BStr, name: &str) -> BString {
    let mut key = BString::from(section);
    key.push(b'.');
    key.extend_from_slice(subsection);
    key.push(b'.');
    key.extend_from_slice(name.as_bytes());
    key
}

/// Everything that Git reads, except what only a Git program could find.
/// Room for the packs of the repository whose Git folder is `at`, and for more. gix counts them itself where it is not told,
/// with four calls for each; names are enough, unless packs are borrowed.
fn slots(at: &Path) -> gix_odb::store::init::Slots {
    let counted = gix_odb::store::init::Slots::AsNeededByDiskState {
        multiplier: 1.5,
        minimum: SLOTS.into(),
    };
    let common = match std::fs::read(at.join("commondir")) {
        Ok(path) => match gix::path::from_byte_slice(path.trim_ascii()) {
            Ok(path) => at.join(path),
            Err(_) => return counted,
        },
        Err(_) => at.to_owned(),
    };
    let objects = common.join("objects");
    if objects.join("info/alternates").exists() {
        return counted;
    }
    let entries = std::fs::read_dir(objects.join("pack"));
    let indexes = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "idx"))
        .count();
    match u16::try_from(indexes + indexes / 2) {
        Ok(wanted) => gix_odb::store::init::Slots::Given(wanted.max(SLOTS)),
        Err(_) => counted,
    }
}

fn permissions() -> gix::open::Permissions {
    let mut permissions = gix::open::Permissions::all();
    permissions.config.git_binary = false;
    permissions.attributes.git_binary = false;
    if cfg!(windows) {
        // There, the system files lie in the installation folder of Git, which gix asks Git for.
        permissions.config.system = false;
        permissions.attributes.system = false;
    }
    permissions
}
