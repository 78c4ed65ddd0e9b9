//! What the commands share: how the user wants to be told, and how a store is found.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BString, ByteSlice as _};
use ingot_engine::repository::{self, Repository};

use super::args::{self, Global};
use super::ask::key_files;
use super::exit::{Code, Failure};
use super::interrupt::Interrupt;
use super::place::{self, Place};
use super::progress::{Display, Mode};
use crate::config::{Remote, Settings, StorageUrl, Target};
use crate::keys::{KeyFiles, Opened, refuse_in_work_tree};

/// One run of the program.
pub struct App {
    /// Options of every command.
    pub global: Global,
    /// Shows progress.
    pub display: Arc<Display>,
    /// Key files, opened once.
    pub keys: Arc<KeyFiles>,
}

/// Which of a remote's URLs are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The one to read from.
    Fetch,
    /// All that are written to.
    Push,
}

/// What a command line and the configuration say about a store.
pub struct Found {
    /// The repository around the user, or the one named.
    pub repository: Option<Repository>,
    /// The configuration.
    pub settings: Settings,
    /// The configured remote, where one is meant.
    pub remote: Option<Remote>,
    /// The stores; one unless the remote has several push URLs.
    pub urls: Vec<StorageUrl>,
    /// The key file.
    pub key: PathBuf,
    /// Where relative paths of the configuration start.
    pub base: PathBuf,
    /// Shows progress.
    pub display: Arc<Display>,
    /// Opens the key file.
    pub keys: Arc<KeyFiles>,
}

impl App {
    /// A run with these options.
    pub fn new(global: Global, interrupt: Interrupt) -> App {
        let wanted = global.progress.then_some(true);
        // A program that reads JSON does not look at a bar, but its user's terminal may well show one.
        let mode = Mode::choose(wanted, global.quiet);
        App {
            global,
            display: Arc::new(Display::new(mode, interrupt)),
            keys: Arc::new(key_files()),
        }
    }

    /// The repository that `--repo` names, or the one around the user; none is no error unless it was named.
    pub fn repository(&self, named: Option<&PathBuf>) -> Result<Option<Repository>, Failure> {
        let found = match named {
            Some(path) => return Ok(Some(Repository::discover(path)?)),
            None => Repository::from_env(),
        };
        match found {
            Ok(repository) => Ok(Some(repository)),
            Err(repository::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Finds the store that a command is about. `None`: nothing is named and no encrypted remote is configured.
    pub fn find(
        &self,
        place: &args::Place,
        target: Option<&OsStr>,
        direction: Direction,
    ) -> Result<Option<Found>, Failure> {
        let repository = self.repository(place.repo.as_ref())?;
        let settings = place::settings_of(repository.as_ref())?;
        let base = place::base_of(repository.as_ref())?;
        let here = place::current_folder()?;

        let (remote, urls) = if let Some(storage) = &place.storage {
            (None, vec![StorageUrl::Directory(here.join(storage))])
        } else {
            let remote = match target {
                Some(word) => match Target::of(&settings, bytes(word)?.as_bstr()) {
                    Target::Remote(remote) if !remote.encrypted => {
                        let message = format!(
                            "remote {} is not encrypted: its URL is {}",
                            remote.name, remote.url
                        );
                        return Err(
                            Failure::failed(message).next("name a remote whose URL begins with e2ee::")
                        );
                    }
                    Target::Remote(remote) => Some(remote),
                    Target::Url(url) => {
                        let url = StorageUrl::parse(url.as_bstr(), &here)?;
                        let key = self.key(place, &settings, None, &base)?;
                        return Ok(Some(Found {
                            repository,
                            settings,
                            remote: None,
                            urls: vec![url],
                            key,
                            base,
                            display: Arc::clone(&self.display),
                            keys: Arc::clone(&self.keys),
                        }));
                    }
                },
                None => default_remote(&settings, repository.as_ref())?,
            };
            let Some(remote) = remote else { return Ok(None) };
            let texts = match direction {
                Direction::Fetch => std::slice::from_ref(&remote.url),
                Direction::Push => &remote.push_urls,
            };
            let urls = texts
                .iter()
                .map(|url| StorageUrl::parse(url.as_bstr(), &base))
                .collect::<Result<Vec<_>, _>>()?;
            (Some(remote), urls)
        };
        let key = self.key(place, &settings, remote.as_ref(), &base)?;
        Ok(Some(Found {
            repository,
            settings,
            remote,
            urls,
            key,
            base,
            display: Arc::clone(&self.display),
            keys: Arc::clone(&self.keys),
        }))
    }

    /// The same for commands that cannot set anything up.
    pub fn require(
        &self,
        place: &args::Place,
        target: Option<&OsStr>,
        direction: Direction,
    ) -> Result<Found, Failure> {
        self.find(place, target, direction)?.ok_or_else(|| {
            Failure::new(Code::Failed, "no encrypted remote is configured here")
                .next("set one up with: git-e2ee push (or name a store: --storage DIR --key FILE)")
        })
    }

    /// The one store that a command about devices is about, opened.
    ///
    /// `--remote` takes what other implementations take there: the URL of a Git repository, with or without `git+`. A
    /// configured remote of that name comes first.
    pub fn store_of(&self, store: &args::StoreOf) -> Result<(Found, Place), Failure> {
        let found = self.found_of(store)?;
        let place = found.only()?;
        Ok((found, place))
    }

    /// The same, found and not opened yet.
    pub fn found_of(&self, store: &args::StoreOf) -> Result<Found, Failure> {
        let named;
        let target = match &store.remote {
            None => store.target.as_deref(),
            Some(word) => {
                named = self.remote_word(&store.place, word)?;
                Some(named.as_os_str())
            }
        };
        self.require(&store.place, target, Direction::Fetch)
    }

    fn remote_word(&self, place: &args::Place, word: &OsStr) -> Result<OsString, Failure> {
        let text = bytes(word)?;
        let settings = place::settings_of(self.repository(place.repo.as_ref())?.as_ref())?;
        let complete = text.starts_with(b"e2ee::") || text.starts_with(b"git+");
        if complete || Remote::find(&settings, text.as_bstr()).is_some() {
            return Ok(word.to_owned());
        }
        let mut url = OsString::from("git+");
        url.push(word);
        Ok(url)
    }

    /// Refuses a key file in the work tree around the user, for commands that need no repository otherwise.
    pub fn refuse_tracked(&self, key: &Path) -> Result<(), Failure> {
        match self.repository(None) {
            Ok(Some(repository)) => Ok(refuse_in_work_tree(key, &repository, None)?),
            // One that cannot be used is not in use.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    fn key(
        &self,
        place: &args::Place,
        settings: &Settings,
        remote: Option<&Remote>,
        base: &Path,
    ) -> Result<PathBuf, Failure> {
        match &place.key {
            Some(key) => Ok(place::current_folder()?.join(key)),
            None => Ok(place::key_for(settings, remote.map(|remote| remote.name.as_bstr()), base)?.path),
        }
    }
}

impl Found {
    /// Opens the key file, for no store in particular.
    pub fn read_key(&self) -> Result<Opened, Failure> {
        if let Some(repository) = self.repository.as_ref().filter(|_| self.key.exists()) {
            let setting = self
                .remote
                .as_ref()
                .map(|remote| place::key_setting(remote.name.as_bstr()));
            let setting = setting.map(|name| name.to_string());
            refuse_in_work_tree(&self.key, repository, setting.as_deref())?;
        }
        Ok(self.keys.read(&self.key)?)
    }

    /// Opens the key for one of the stores.
    pub fn open(&self, url: &StorageUrl) -> Result<Place, Failure> {
        let (repository, remote) = (self.repository.as_ref(), self.remote.as_ref());
        let place = Place::open(
            &self.keys,
            url.clone(),
            self.key.clone(),
            repository,
            remote,
            &self.base,
        )?;
        Ok(place.shown(Arc::clone(&self.display) as _))
    }

    /// The only store of a command that reads.
    pub fn only(&self) -> Result<Place, Failure> {
        let url = self
            .urls
            .first()
            .ok_or_else(|| Failure::failed("the remote has no URL"))?;
        self.open(url)
    }

    /// The repository, which this command cannot do without.
    pub fn repository(&self) -> Result<&Repository, Failure> {
        self.repository.as_ref().ok_or_else(no_repository)
    }
}

/// What to say where there is no repository.
pub fn no_repository() -> Failure {
    Failure::failed("this is not a Git repository").next("go into one, or name one with --repo DIR")
}

/// A command-line word as bytes.
pub fn bytes(word: &OsStr) -> Result<BString, Failure> {
    match gix::path::os_str_into_bstr(word) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Failure::usage(format!(
            "{} is not valid text",
            word.to_string_lossy()
        ))),
    }
}

fn default_remote(settings: &Settings, repository: Option<&Repository>) -> Result<Option<Remote>, Failure> {
    let branch = repository.and_then(super::local_refs::current_branch);
    let short = branch
        .as_ref()
        .and_then(|branch| branch.strip_prefix(b"refs/heads/"))
        .map(|short| short.as_bstr());
    Remote::default(settings, short).map_err(|several| {
        let names: Vec<String> = several.iter().map(|remote| remote.name.to_string()).collect();
        Failure::usage(format!(
            "several encrypted remotes are configured: {}",
            names.join(", ")
        ))
        .next("name one of them")
    })
}
