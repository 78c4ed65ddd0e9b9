//! Logs of references, written where and as Git writes them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_ref::FullName;

use super::{Error, value};
use crate::durable::{Error as WriteError, Fs, Kind};
use crate::repository::Repository;

/// Whether a reference gets a log when it has none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// No new logs.
    Existing,
    /// For branches, remote branches, notes and `HEAD`.
    Usual,
    /// For all.
    All,
}

impl Policy {
    /// What `core.logAllRefUpdates` says.
    pub fn of(repository: &Repository) -> Policy {
        let config = repository.config();
        if config
            .string("core.logAllRefUpdates")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"always"))
        {
            return Policy::All;
        }
        match config.boolean("core.logAllRefUpdates") {
            Ok(Some(true)) => Policy::Usual,
            Ok(Some(false)) => Policy::Existing,
            _ if repository.work_dir().is_some() => Policy::Usual,
            _ => Policy::Existing,
        }
    }

    fn wants(self, name: &BStr) -> bool {
        match self {
            Policy::Existing => false,
            Policy::All => true,
            Policy::Usual => {
                name == "HEAD"
                    || ["refs/heads/", "refs/remotes/", "refs/notes/"]
                        .iter()
                        .any(|prefix| name.starts_with(prefix.as_bytes()))
            }
        }
    }
}

/// One line of a log.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: FullName,
    pub old: Option<ObjectId>,
    pub new: Option<ObjectId>,
    pub message: BString,
}

/// Writes lines for one transaction, all with the same committer.
pub(super) struct Logger<'r> {
    repository: &'r Repository,
    policy: Policy,
    committer: Option<BString>,
}

impl<'r> Logger<'r> {
    pub fn new(repository: &'r Repository) -> Logger<'r> {
        Logger {
            repository,
            policy: Policy::of(repository),
            committer: None,
        }
    }

    /// Where the log of a reference is.
    pub fn path(&self, name: &FullName) -> Result<PathBuf, Error> {
        value::path(
            &value::base(self.repository, name.as_bstr()).join("logs"),
            name.as_ref(),
        )
    }

    /// Appends a line if the reference has a log or is to get one. Logs are a convenience that Git never syncs: a
    /// power cut may take lines, but nothing that they describe.
    pub fn append(&mut self, fs: &dyn Fs, entry: &Entry) -> Result<(), Error> {
        let path = self.path(&entry.name)?;
        let failed = |action, error| Error::Durable(WriteError::new(action, &path, error));
        let exists = match fs.kind(&path).map_err(|error| failed("examine", error))? {
            Some(Kind::Folder) => {
                // Left behind by deleted references below this name.
                remove_empty(fs, &path);
                false
            }
            found => found.is_some(),
        };
        if !exists {
            if !self.policy.wants(entry.name.as_bstr()) {
                return Ok(());
            }
            if let Some(folder) = path.parent() {
                create(fs, folder).map_err(|error| failed("create the folder of", error))?;
            }
        }
        let line = self.line(entry);
        fs.append(&path, 0o666)
            .and_then(|mut file| file.write_all(&line))
            .map_err(|error| failed("append to", error))
    }

    fn line(&mut self, entry: &Entry) -> Vec<u8> {
        let none = ObjectId::null(self.repository.format());
        let mut line = format!("{} {} ", entry.old.unwrap_or(none), entry.new.unwrap_or(none)).into_bytes();
        let repository = self.repository;
        line.extend_from_slice(self.committer.get_or_insert_with(|| committer(repository)));
        let mut words = entry.message.fields().peekable();
        line.push(if words.peek().is_some() { b'\t' } else { b'\n' });
        while let Some(word) = words.next() {
            line.extend_from_slice(word);
            line.push(if words.peek().is_some() { b' ' } else { b'\n' });
        }
        line
    }
}

/// Name, address and time. Unlike a commit, a log is written even when nobody has said who they are.
fn committer(repository: &Repository) -> BString {
    if let Some(Ok(known)) = repository.gix().committer() {
        let clean = |part: &BStr| -> BString {
            part.trim()
                .iter()
                .copied()
                .filter(|byte| !b"\n<>".contains(byte))
                .collect::<Vec<u8>>()
                .into()
        };
        return format!("{} <{}> {}", clean(known.name), clean(known.email), known.time).into();
    }
    let name = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .ok()
        .filter(|name| !name.is_empty() && !name.contains(['<', '>', '\n']))
        .unwrap_or_else(|| "unknown".to_owned());
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    format!("{name} <{name}@localhost> {seconds} +0000").into()
}

/// Creates a folder that may be lost in a power cut, and those above it.
pub(super) fn create(fs: &dyn Fs, folder: &Path) -> io::Result<()> {
    if fs.kind(folder)?.is_some() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        create(fs, above)?;
    }
    match fs.create_dir(folder, 0o777) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Removes a folder if there is nothing but folders in it. Failing is no harm: the caller's next call tells.
pub(super) fn remove_empty(fs: &dyn Fs, folder: &Path) {
    for name in fs.read_dir(folder).unwrap_or_default() {
        let path = folder.join(name);
        if matches!(fs.kind(&path), Ok(Some(Kind::Folder))) {
            remove_empty(fs, &path);
        }
    }
    let _ = fs.remove_dir(folder);
}

/// Removes the folders above `path` that have become empty, up to `stop`, which stays.
pub(super) fn remove_empty_above(fs: &dyn Fs, path: &Path, stop: &Path) {
    let mut at = path.parent();
    while let Some(folder) = at {
        if folder == stop || !folder.starts_with(stop) || fs.remove_dir(folder).is_err() {
            return;
        }
        at = folder.parent();
    }
}
