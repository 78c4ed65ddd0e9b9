//! Changing references: all or nothing until the first one is in place, and durable.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, BString};
use gix_hash::ObjectId;

use super::edit::{Applied, Change, Edit};
use super::packed::{self, Packed};
use super::prepare::{Action, Preparation, Step, patience};
use super::reflog::{self, Entry, Logger};
use super::value::{self, Value};
use super::{Error, resolve};
use crate::durable::{self, Fs, Lock};
use crate::repository::Repository;

/// How a transaction works.
#[derive(Clone)]
pub struct Options {
    /// Where it writes.
    pub fs: Arc<dyn Fs>,
    /// Which references go into `packed-refs`.
    pub packing: Packing,
    /// Commits that are not in the repository yet, because the caller brings them in between preparing and committing:
    /// so nothing is brought in for a change that cannot be made.
    pub incoming: Vec<ObjectId>,
}

/// Which references that a transaction sets go into `packed-refs`: one file that is synced, instead of one for each.
/// While another process holds that file, none do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Packing {
    /// None of them.
    #[default]
    None,
    /// Those that are new, without logs and without locks of their own. This is for a fresh clone, which nobody else
    /// writes to.
    New,
    /// All but those that are symbolic or belong to one work tree, with locks and logs; the files of those that had
    /// one go. This is for changing many.
    All,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fs: durable::real(),
            packing: Packing::None,
            incoming: Vec::new(),
        }
    }
}

/// Changes that are prepared: checked, locked, and written beside what they replace. [`commit`](Self::commit) puts them
/// into place; dropping the transaction takes everything back.
///
/// As with Git, a name cannot take the place of a folder of names, or the other way round, in the transaction that
/// deletes what is in the way: the lock on one would have to be a file in the other. [`apply_each`](super::apply_each)
/// does it in two.
pub struct Transaction<'r> {
    repository: &'r Repository,
    fs: Arc<dyn Fs>,
    steps: Vec<Step>,
    /// Which of the edits that were given each step is.
    pub(super) order: Vec<usize>,
    packed: Option<Lock>,
    rewrite: bool,
    logs: Vec<Entry>,
}

/// Prepares and commits.
pub fn apply(repository: &Repository, edits: Vec<Edit>) -> Result<Vec<Applied>, Error> {
    Transaction::prepare(repository, edits, &Options::default())?.commit()
}

impl<'r> Transaction<'r> {
    /// Checks all edits against what is there, under Git's locks, and writes what they need. Fails, leaving everything
    /// as it was, if one of them cannot be made.
    pub fn prepare(
        repository: &'r Repository,
        edits: Vec<Edit>,
        options: &Options,
    ) -> Result<Transaction<'r>, Error> {
        let edits = edits.into_iter().enumerate().collect();
        Transaction::begin(repository, edits, options, &mut |_, error| Err(error))
    }

    /// Prepares numbered edits. One that cannot be made is left out where `refuse` takes its error.
    pub(super) fn begin(
        repository: &'r Repository,
        mut edits: Vec<(usize, Edit)>,
        options: &Options,
        refuse: &mut dyn FnMut(usize, Error) -> Result<(), Error>,
    ) -> Result<Transaction<'r>, Error> {
        edits.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        let fs = Arc::clone(&options.fs);
        let mut transaction = Transaction {
            repository,
            fs: Arc::clone(&fs),
            steps: Vec::with_capacity(edits.len()),
            order: Vec::with_capacity(edits.len()),
            packed: None,
            rewrite: false,
            logs: Vec::new(),
        };
        if edits.is_empty() {
            return Ok(transaction);
        }
        let mut packing = options.packing;
        let deletes = |edit: &Edit| edit.change == Change::Delete;
        // Git may pack references at any time; a deletion must not be undone by that.
        if packing != Packing::None || edits.iter().any(|(_, edit)| deletes(edit)) {
            let path = packed::file(repository.common_dir());
            let wait = patience(repository, "core.packedRefsTimeout", 1000);
            match Lock::acquire(Arc::clone(&fs), &path, 0o666, wait) {
                Ok(lock) => transaction.packed = Some(lock),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // Only deletions depend on that file.
                    packing = Packing::None;
                    let (stuck, others): (Vec<_>, Vec<_>) =
                        edits.into_iter().partition(|(_, edit)| deletes(edit));
                    edits = others;
                    for (at, edit) in stuck {
                        let lock = error.path().to_owned();
                        let name = edit.name.as_bstr().to_owned();
                        refuse(at, Error::Locked { name, lock })?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mut preparation = Preparation {
            repository,
            packed: Packed::read(&*fs, repository.common_dir(), repository.format())?,
            patience: patience(repository, "core.filesRefLockTimeout", 100),
            packing,
            incoming: &options.incoming,
            fs,
            created: BTreeSet::new(),
            taken: BTreeSet::new(),
        };
        let mut accepted = Vec::with_capacity(edits.len());
        for (at, edit) in edits {
            match valid(&edit).and_then(|()| preparation.step(&edit, &mut transaction.logs)) {
                Ok(mut step) => {
                    if let Some(lock) = &mut step.lock {
                        lock.close(); // there may be more references than files can be open
                    }
                    transaction.steps.push(step);
                    transaction.order.push(at);
                    accepted.push(edit);
                }
                Err(error) => refuse(at, error)?,
            }
        }
        transaction.add_point_logs(&accepted)?;
        transaction.add_head_logs()?;
        for step in &mut transaction.steps {
            if step.action == Action::Write
                && let Some(lock) = &mut step.lock
            {
                lock.seal()?;
            }
        }
        transaction.rewrite_packed(preparation.packed)?;
        Ok(transaction)
    }

    /// A symbolic reference that is set gets a log entry when there is something to say and something to point to.
    fn add_point_logs(&mut self, edits: &[Edit]) -> Result<(), Error> {
        for edit in edits {
            let Change::Point(target) = &edit.change else {
                continue;
            };
            let Some(step) = self.steps.iter().find(|step| step.name == edit.name) else {
                continue;
            };
            if edit.message.is_empty() || step.action == Action::Keep {
                continue;
            }
            let set_here = edits.iter().find_map(|other| match other.change {
                Change::Set(id) if other.name == *target => Some(id),
                _ => None,
            });
            let new = match set_here {
                Some(id) => Some(id),
                None => resolve::follow(self.repository, target.as_ref())?.map(|(_, id)| id),
            };
            if new.is_some() {
                let old = step.old;
                self.logs.push(Entry {
                    name: edit.name.clone(),
                    old,
                    new,
                    message: edit.message.clone(),
                });
            }
        }
        Ok(())
    }

    /// Whoever changes the branch that `HEAD` is on has moved `HEAD` as well.
    fn add_head_logs(&mut self) -> Result<(), Error> {
        let path = self.repository.git_dir().join("HEAD");
        let head = value::loose(&*self.fs, &path, "HEAD".into(), self.repository.format())?;
        let Some(Value::Symbolic(branch)) = head else {
            return Ok(());
        };
        if self.logs.iter().any(|entry| entry.name.as_bstr() == "HEAD") {
            return Ok(());
        }
        if let Some(entry) = self.logs.iter().find(|entry| entry.name == branch) {
            let mut entry = entry.clone();
            entry.name = super::validate("HEAD")?;
            self.logs.push(entry);
        }
        Ok(())
    }

    fn rewrite_packed(&mut self, mut packed: Packed) -> Result<(), Error> {
        let Some(lock) = &mut self.packed else {
            return Ok(());
        };
        let deleted: BTreeSet<&BStr> = self
            .steps
            .iter()
            .filter(|step| matches!(step.action, Action::Delete { .. }))
            .map(|step| step.name.as_bstr())
            .collect();
        let mut changed = packed.remove(&deleted);
        for step in &self.steps {
            if let Action::Pack { id, peeled, .. } = step.action {
                packed.set(step.name.as_bstr().to_owned(), id, peeled);
                changed = true;
            }
        }
        if changed {
            lock.write_all(&packed.to_bytes())
                .map_err(|error| durable::Error::new("write", lock.path(), error))?;
            lock.seal()?;
            self.rewrite = true;
        }
        Ok(())
    }

    /// Makes the changes, durably. When a call fails on the way, some references may have their new value; the error
    /// then names them.
    pub fn commit(mut self) -> Result<Vec<Applied>, Error> {
        let mut logger = Logger::new(self.repository);
        let logs = std::mem::take(&mut self.logs);
        for entry in logs.iter().filter(|entry| entry.new.is_some()) {
            logger.append(&*self.fs, entry)?;
        }
        let mut done = Vec::new();
        let result = self
            .write(&mut done)
            .and_then(|()| self.replace_packed(&logger, &mut done));
        match result {
            Ok(()) => {
                for entry in logs
                    .iter()
                    .filter(|entry| entry.new.is_none() && entry.name.as_bstr() == "HEAD")
                {
                    logger.append(&*self.fs, entry)?;
                }
                let applied = self.steps.iter().map(|step| Applied {
                    name: step.name.clone(),
                    old: step.old,
                });
                Ok(applied.collect())
            }
            Err(source) if done.is_empty() => Err(source),
            Err(source) => Err(Error::Incomplete {
                done,
                source: Box::new(source),
            }),
        }
    }

    fn write(&mut self, done: &mut Vec<BString>) -> Result<(), Error> {
        let mut folders = BTreeSet::new();
        for step in self.steps.iter_mut().filter(|step| step.action == Action::Write) {
            let Some(mut lock) = step.lock.take() else {
                continue;
            };
            if let Err(error) = lock.rename() {
                // Empty folders of deleted references may be in the way of a file.
                if !matches!(
                    error.kind(),
                    io::ErrorKind::IsADirectory
                        | io::ErrorKind::DirectoryNotEmpty
                        | io::ErrorKind::AlreadyExists
                ) {
                    return Err(error.into());
                }
                reflog::remove_empty(&*self.fs, &step.path);
                lock.rename()?;
            }
            done.push(step.name.as_bstr().to_owned());
            folders.insert(durable::parent(&step.path).to_owned());
        }
        self.sync(&folders)
    }

    /// Puts `packed-refs` into place, and removes files of references that are deleted or that it has now.
    fn replace_packed(&mut self, logger: &Logger<'_>, done: &mut Vec<BString>) -> Result<(), Error> {
        let Some(packed) = self.packed.take() else {
            return Ok(());
        };
        let deleted = |step: &&Step| matches!(step.action, Action::Delete { .. });
        // A log without a reference would be worse than a reference without a log.
        for step in self.steps.iter().filter(deleted) {
            let path = logger.path(&step.name)?;
            remove(&*self.fs, &path)?;
            reflog::remove_empty_above(&*self.fs, &path, &step.base.join("logs"));
        }
        // First the packed value changes, so that no moment shows an older one than the file that still hides it.
        if self.rewrite {
            packed.commit()?;
            done.extend(
                self.steps
                    .iter()
                    .filter(|step| {
                        matches!(
                            step.action,
                            Action::Pack { loose: false, .. } | Action::Delete { loose: false }
                        )
                    })
                    .map(|step| step.name.as_bstr().to_owned()),
            );
        } else {
            drop(packed);
        }
        let mut folders = BTreeSet::new();
        for step in &self.steps {
            if matches!(
                step.action,
                Action::Pack { loose: true, .. } | Action::Delete { loose: true }
            ) {
                remove(&*self.fs, &step.path)?;
                done.push(step.name.as_bstr().to_owned());
                folders.insert(durable::parent(&step.path).to_owned());
            }
        }
        self.sync(&folders)?;
        for step in &mut self.steps {
            step.release(&*self.fs);
        }
        Ok(())
    }

    fn sync(&self, folders: &BTreeSet<PathBuf>) -> Result<(), Error> {
        for folder in folders {
            self.fs
                .sync_dir(folder)
                .map_err(|error| durable::Error::new("sync folder", folder, error))?;
        }
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        for step in &mut self.steps {
            step.release(&*self.fs);
        }
    }
}

fn valid(edit: &Edit) -> Result<(), Error> {
    super::validate(edit.name.as_bstr())?;
    if let Change::Point(target) = &edit.change {
        super::validate(target.as_bstr())?;
    }
    Ok(())
}

fn remove(fs: &dyn Fs, path: &Path) -> Result<(), Error> {
    match fs.unlink(path) {
        Ok(()) => Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(durable::Error::new("remove", path, error).into()),
    }
}
