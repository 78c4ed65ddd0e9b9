//! A store as a command finds it: from a remote's name, a URL or an option, with the key that opens it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice as _};
use ingot_engine::durable::{self, Fs};
use ingot_engine::progress::Progress;
use ingot_engine::repository::{Config, Repository};
use ingot_engine::transport::{self, Address, Direction, Options};

use super::exit::Failure;
use super::messages::Shown;
use crate::config::{GitUrl, Remote as Configured, Settings, StorageUrl, find_key};
use crate::flock::Patience;
use crate::keys::{KeyFiles, Wrapping, refuse_in_work_tree};
use crate::protocol::DeviceKey;
use crate::remote::{Floor, Memory, Remote, Seen, settle};
use crate::storage::carrier::{Carrier, NetworkPlace, cache_root, network_identity};
use crate::storage::directory::Directory;
use crate::storage::{self, Storage};

/// How long to stand in line for a lock that another process holds.
const WAIT: Duration = Duration::from_secs(30);

/// An opened key beside a store, and where the repository remembers what it saw of the store.
pub struct Place {
    /// The store's location.
    pub url: StorageUrl,
    /// The file of the key.
    pub key_file: PathBuf,
    storage: Box<dyn Storage>,
    key: DeviceKey,
    wrapping: Wrapping,
    memory: Option<Memory>,
    floor: Option<Floor>,
    fs: Arc<dyn Fs>,
    seen: Seen,
}

impl Place {
    /// Opens the key, one of `keys`, and prepares the store; nothing of the store is touched yet.
    ///
    /// A key in the work tree of `repository` is refused. `remote` is the configured remote that leads there, and `base` where its relative URLs start.
    pub fn open(
        keys: &KeyFiles,
        url: StorageUrl,
        key_file: PathBuf,
        repository: Option<&Repository>,
        remote: Option<&Configured>,
        base: &Path,
    ) -> Result<Place, Failure> {
        let fs = durable::real();
        // One that is not there has another message.
        if let Some(repository) = repository.filter(|_| key_file.exists()) {
            let setting = remote.map(|remote| key_setting(remote.name.as_bstr()).to_string());
            refuse_in_work_tree(&key_file, repository, setting.as_deref())?;
        }
        let opened = keys.read(&key_file)?;
        let storage = storage(&url, repository, base)?;
        // An interrupted rotation of the key is finished before the key is used.
        let opened = settle(
            &*storage,
            keys,
            opened,
            &key_file,
            Arc::clone(&fs),
            Patience::silent(WAIT),
        )?;
        let memory = repository.map(|repository| memory(repository, remote, base));
        let floor = Floor::load(&key_file)?;
        Ok(Place {
            url,
            key_file,
            storage,
            key: opened.key,
            wrapping: opened.wrapping,
            memory,
            floor,
            fs,
            seen: Seen::default(),
        })
    }

    /// The same store, from now on as the remote of a repository that was made meanwhile.
    pub fn remembered_in(
        mut self,
        repository: &Repository,
        remote: Option<&Configured>,
        base: &Path,
    ) -> Place {
        self.memory = Some(memory(repository, remote, base));
        self
    }

    /// The same, which tells `progress` what comes from the store and goes there.
    pub fn shown(self, progress: Arc<dyn Progress>) -> Place {
        self.storage.show(progress);
        self
    }

    /// The store.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// The key.
    pub fn key(&self) -> &DeviceKey {
        &self.key
    }

    /// How the file keeps the key.
    pub fn wrapping(&self) -> &Wrapping {
        &self.wrapping
    }

    /// How files are written.
    pub fn fs(&self) -> Arc<dyn Fs> {
        Arc::clone(&self.fs)
    }

    /// The store and its key, ready for an operation.
    pub fn remote<'a>(&'a self, progress: &'a dyn Progress) -> Remote<'a> {
        Remote {
            storage: &*self.storage,
            key: &self.key,
            memory: self.memory.clone(),
            floor: self.floor.clone(),
            fs: self.fs(),
            patience: patience(progress),
            progress,
            threads: threads(),
            seen: &self.seen,
        }
    }
}

/// The store at a location. Settings of `repository`, or those that hold outside of any, say how to reach it; relative
/// paths in them start at `base`.
pub fn storage(
    url: &StorageUrl,
    repository: Option<&Repository>,
    base: &Path,
) -> Result<Box<dyn Storage>, Failure> {
    let fs = durable::real();
    let storage: Result<Box<dyn Storage>, storage::Error> = match url {
        StorageUrl::Directory(path) => Directory::new(path, fs).map(|store| Box::new(store) as _),
        StorageUrl::LocalCarrier(path) => {
            Carrier::local(path, fs, Arc::new(Shown::default())).map(|store| Box::new(store) as _)
        }
        StorageUrl::RemoteCarrier(url) => {
            let remote = |direction| {
                let address = address(url, repository, direction)?;
                let options = with_config(repository, |config| Options::read(config, &address))?;
                let messages = Arc::new(match direction {
                    // What a server says while it makes packs of ciphertext tells the user nothing.
                    Direction::Fetch => Shown::without_remote(),
                    Direction::Push => Shown::default(),
                });
                Ok::<_, Failure>(transport::Remote::new(
                    address,
                    options.folder(base.to_owned()),
                    messages,
                ))
            };
            let place = NetworkPlace {
                fetch: remote(Direction::Fetch)?,
                push: remote(Direction::Push)?,
                cache: cache_root().map_err(crate::remote::Error::from)?,
                fs,
            };
            Carrier::network(place).map(|store| Box::new(store) as _)
        }
    };
    Ok(storage.map_err(crate::remote::Error::from)?)
}

/// What a store at a location calls itself; see [`Storage::identity`].
fn identity(url: &StorageUrl, repository: Option<&Repository>, base: &Path) -> Result<String, Failure> {
    match url {
        StorageUrl::RemoteCarrier(url) => Ok(network_identity(&address(url, repository, Direction::Fetch)?)),
        url => Ok(storage(url, repository, base)?.identity()),
    }
}

/// The address that a URL of a Git repository leads to, by the settings of `repository`.
pub fn address(
    url: &GitUrl,
    repository: Option<&Repository>,
    direction: Direction,
) -> Result<Address, Failure> {
    with_config(repository, |config| {
        Address::resolve(url.secret_text(), config, direction)
    })
}

fn with_config<T>(
    repository: Option<&Repository>,
    work: impl FnOnce(&Config<'_>) -> Result<T, transport::Error>,
) -> Result<T, Failure> {
    let result = match repository {
        Some(repository) => work(&repository.config()),
        None => work(&ingot_engine::repository::Settings::load()?.config()),
    };
    result.map_err(|error| Failure::of(&error))
}

/// How to wait for locks: a moment, and not without telling the user.
pub fn patience(progress: &dyn Progress) -> Patience<'_> {
    Patience {
        wait: WAIT,
        waiting: &|path| {
            use std::io::Write as _;
            // The wait goes on whether or not it can be told.
            let _ = writeln!(
                std::io::stderr(),
                "Waiting for another process, which holds {}",
                path.display()
            );
        },
        progress,
    }
}

/// As many threads as there are processors.
pub fn threads() -> usize {
    // Finding out takes several files of the system.
    static FOUND: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

fn memory(repository: &Repository, remote: Option<&Configured>, base: &Path) -> Memory {
    Memory {
        git_dir: repository.git_dir().to_owned(),
        common_dir: repository.common_dir().to_owned(),
        name: remote.map(|remote| remote.name.to_vec()),
        stores: remote
            .map(|remote| identities(remote, repository, base))
            .unwrap_or_default(),
    }
}

/// The stores that a remote leads to, those that it fetches from first.
fn identities(remote: &Configured, repository: &Repository, base: &Path) -> Vec<String> {
    let urls = std::iter::once(&remote.url).chain(&remote.push_urls);
    let mut identities: Vec<String> = Vec::new();
    for url in urls {
        // A URL of another kind leads to no store of ours.
        let Ok(url) = StorageUrl::parse(url.as_bstr(), base) else {
            continue;
        };
        let Ok(identity) = identity(&url, Some(repository), base) else {
            continue;
        };
        if !identities.contains(&identity) {
            identities.push(identity);
        }
    }
    identities
}

/// Where relative paths of the configuration start: the top of the work tree, the Git folder of a bare repository, or
/// the current folder outside of any.
pub fn base_of(repository: Option<&Repository>) -> Result<PathBuf, Failure> {
    match repository {
        Some(repository) => Ok(repository
            .work_dir()
            .unwrap_or_else(|| repository.git_dir())
            .to_owned()),
        None => current_folder(),
    }
}

/// The current folder.
pub fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::failed(format!("cannot find out the current folder: {error}")))
}

/// The settings of a repository, or those that hold outside of any.
pub fn settings_of(repository: Option<&Repository>) -> Result<Settings, Failure> {
    match repository {
        Some(repository) => Ok(Settings::of(&repository.config())),
        None => Ok(Settings::of(
            &ingot_engine::repository::Settings::load()?.config(),
        )),
    }
}

/// The key for a configured remote or a bare URL.
pub fn key_for(
    settings: &Settings,
    remote: Option<&BStr>,
    base: &Path,
) -> Result<crate::config::Key, Failure> {
    Ok(find_key(settings, remote, base)?)
}

/// The setting that holds a remote's own key.
pub fn key_setting(remote: &BStr) -> BString {
    bstr::concat([b"remote.", remote.as_bytes(), b".e2ee-key"]).into()
}
