//! Changing references: all or nothing until the first one is in place, and durable.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::Kind;
use gix_ref::FullName;

use super::packed::{self, Packed};
use super::reflog::{self, Entry, Logger};
use super::value::{self, Value};
use super::{Error, resolve};
use crate::durable::{self, Fs, Lock, create_dirs};
use crate::repository::Repository;

/// What becomes of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It holds this object.
    Set(ObjectId),
    /// It becomes symbolic, or stays so, and points to this reference.
    Point(FullName),
    /// It goes, and its log with it.
    Delete,
}

/// What must be there for the change to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    Any,
    /// No reference of that name.
    Absent,
    /// This object, after following symbolic references.
    Is(ObjectId),
}

/// One change to one reference.
#[derive(Debug, Clone)]
pub struct Edit {
    name: FullName,
    change: Change,
    expected: Expected,
    follow: bool,
    message: BString,
}

impl Edit {
    fn new(name: FullName, change: Change) -> Edit {
        Edit {
            name,
            change,
            expected: Expected::Any,
            follow: true,
            message: BString::default(),
        }
    }

    /// Sets a reference, and where it is symbolic, the one that it leads to.
    pub fn set(name: FullName, id: ObjectId) -> Edit {
        Edit::new(name, Change::Set(id))
    }

    /// Makes a reference symbolic.
    pub fn point(name: FullName, target: FullName) -> Edit {
        Edit::new(name, Change::Point(target))
    }

    /// Deletes a reference; a symbolic one itself, not what it leads to.
    pub fn delete(name: FullName) -> Edit {
        Edit::new(name, Change::Delete)
    }

    /// Makes the change depend on what is there.
    pub fn expecting(mut self, expected: Expected) -> Edit {
        self.expected = expected;
        self
    }

    /// Sets the text of the log entry.
    pub fn because(mut self, message: impl Into<BString>) -> Edit {
        self.message = message.into();
        self
    }

    /// Sets the reference itself even where it is symbolic: this is how `HEAD` leaves its branch.
    pub fn detached(mut self) -> Edit {
        self.follow = false;
        self
    }
}

/// How a transaction works.
#[derive(Clone)]
pub struct Options {
    /// Where it writes.
    pub fs: Arc<dyn Fs>,
    /// Puts references that are new into `packed-refs`, without logs and without locks of their own: one file instead
    /// of one for each. This is for a fresh clone, which nobody else writes to.
    pub pack: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fs: durable::real(),
            pack: false,
        }
    }
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The reference, after following symbolic ones.
    pub name: FullName,
    /// What it led to before.
    pub old: Option<ObjectId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The lock file holds the new content.
    Write,
    /// The new `packed-refs` has it.
    Pack,
    /// The file, if there is one, has to go.
    Delete { loose: bool },
    /// It is so already.
    Keep,
}

struct Step {
    name: FullName,
    base: PathBuf,
    path: PathBuf,
    lock: Option<Lock>,
    action: Action,
    old: Option<ObjectId>,
}

/// Changes that are prepared: checked, locked, and written beside what they replace. [`commit`](Self::commit) puts them
/// into place; dropping the transaction takes everything back.
pub struct Transaction<'r> {
    repository: &'r Repository,
    fs: Arc<dyn Fs>,
    steps: Vec<Step>,
    packed: Option<Lock>,
    rewrite: bool,
    logs: Vec<Entry>,
}

/// Prepares and commits.
pub fn apply(repository: &Repository, edits: Vec<Edit>) -> Result<Vec<Applied>, Error> {
    Transaction::prepare(repository, edits, &Options::default())?.commit()
}

/// Everything that preparing looks things up in.
struct Preparation<'r> {
    repository: &'r Repository,
    fs: Arc<dyn Fs>,
    packed: Packed,
    patience: Duration,
    pack: bool,
    /// Names that the transaction creates.
    created: BTreeSet<BString>,
    /// Names that the transaction has locked.
    taken: BTreeSet<BString>,
}

fn patience(repository: &Repository, key: &str, default: u64) -> Duration {
    let wanted = repository.config().integer(key).ok().flatten();
    match wanted.map(u64::try_from) {
        None => Duration::from_millis(default),
        Some(Ok(milliseconds)) => Duration::from_millis(milliseconds),
        // Git waits without end; a day is as good.
        Some(Err(_)) => Duration::from_secs(24 * 60 * 60),
    }
}

impl<'r> Transaction<'r> {
    /// Checks all edits against what is there, under Git's locks, and writes what they need. Fails, leaving everything
    /// as it was, if one of them cannot be made.
    pub fn prepare(
        repository: &'r Repository,
        mut edits: Vec<Edit>,
        options: &Options,
    ) -> Result<Transaction<'r>, Error> {
        edits.sort_by(|a, b| a.name.cmp(&b.name));
        for edit in &edits {
            super::validate(edit.name.as_bstr())?;
            if let Change::Point(target) = &edit.change {
                super::validate(target.as_bstr())?;
            }
        }
        let fs = Arc::clone(&options.fs);
        let mut transaction = Transaction {
            repository,
            fs: Arc::clone(&fs),
            steps: Vec::with_capacity(edits.len()),
            packed: None,
            rewrite: false,
            logs: Vec::new(),
        };
        if edits.is_empty() {
            return Ok(transaction);
        }
        // Git may pack references at any time; a deletion must not be undone by that.
        if options.pack || edits.iter().any(|edit| edit.change == Change::Delete) {
            let path = packed::file(repository.common_dir());
            let wait = patience(repository, "core.packedRefsTimeout", 1000);
            transaction.packed = Some(
                Lock::acquire(Arc::clone(&fs), &path, 0o666, wait)
                    .map_err(|error| locked(error, "packed-refs".into()))?,
            );
        }
        let mut preparation = Preparation {
            repository,
            packed: Packed::read(&*fs, repository.common_dir(), repository.format())?,
            patience: patience(repository, "core.filesRefLockTimeout", 100),
            pack: options.pack,
            fs,
            created: BTreeSet::new(),
            taken: BTreeSet::new(),
        };
        for edit in &edits {
            let mut step = preparation.step(edit, &mut transaction.logs)?;
            if let Some(lock) = &mut step.lock {
                lock.close(); // there may be more references than files can be open
            }
            transaction.steps.push(step);
        }
        preparation.check_created()?;
        transaction.add_point_logs(&edits)?;
        transaction.add_head_logs()?;
        for step in &mut transaction.steps {
            if step.action == Action::Write
                && let Some(lock) = &mut step.lock
            {
                lock.seal()?;
            }
        }
        transaction.rewrite_packed(preparation.packed, &edits)?;
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

    fn rewrite_packed(&mut self, mut packed: Packed, edits: &[Edit]) -> Result<(), Error> {
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
        let wanted: BTreeMap<&BStr, ObjectId> = edits
            .iter()
            .filter_map(|edit| match edit.change {
                Change::Set(id) => Some((edit.name.as_bstr(), id)),
                _ => None,
            })
            .collect();
        for step in self.steps.iter().filter(|step| step.action == Action::Pack) {
            if let Some(&id) = wanted.get(step.name.as_bstr()) {
                let (object, _) = resolve::peel(self.repository, id)?;
                let peeled = (object != id).then_some(object);
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
            .and_then(|()| self.delete(&logger, &mut done));
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

    fn delete(&mut self, logger: &Logger<'_>, done: &mut Vec<BString>) -> Result<(), Error> {
        let Some(packed) = self.packed.take() else {
            return Ok(());
        };
        let deleted = |step: &&mut Step| matches!(step.action, Action::Delete { .. });
        // A log without a reference would be worse than a reference without a log.
        for step in self.steps.iter_mut().filter(deleted) {
            let path = logger.path(&step.name)?;
            remove(&*self.fs, &path)?;
            reflog::remove_empty_above(&*self.fs, &path, &step.base.join("logs"));
        }
        // First the packed value goes, so that no moment shows an older one than the file that still hides it.
        if self.rewrite {
            packed.commit()?;
            done.extend(
                self.steps
                    .iter()
                    .filter(|step| matches!(step.action, Action::Pack | Action::Delete { loose: false }))
                    .map(|step| step.name.as_bstr().to_owned()),
            );
        } else {
            drop(packed);
        }
        let mut folders = BTreeSet::new();
        for step in self.steps.iter_mut().filter(deleted) {
            if step.action == (Action::Delete { loose: true }) {
                remove(&*self.fs, &step.path)?;
                done.push(step.name.as_bstr().to_owned());
                folders.insert(durable::parent(&step.path).to_owned());
            }
        }
        self.sync(&folders)?;
        for step in self.steps.iter_mut().filter(deleted) {
            step.lock = None;
            tidy(&*self.fs, step);
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
            if step.lock.take().is_some() {
                tidy(&*self.fs, step);
            }
        }
    }
}

/// Removes folders that were made for a lock and are of no use any more.
fn tidy(fs: &dyn Fs, step: &Step) {
    let mut parts = step.name.as_bstr().splitn_str(3, "/");
    if let (Some(b"refs"), Some(second), Some(_)) = (parts.next(), parts.next(), parts.next())
        && let Ok(second) = second.to_os_str()
    {
        reflog::remove_empty_above(fs, &step.path, &step.base.join("refs").join(second));
    }
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

fn locked(error: durable::Error, name: BString) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        Error::Locked {
            name,
            lock: error.path().to_owned(),
        }
    } else {
        error.into()
    }
}

impl Preparation<'_> {
    fn step(&mut self, edit: &Edit, logs: &mut Vec<Entry>) -> Result<Step, Error> {
        let mut name = edit.name.clone();
        let mut followed = Vec::new();
        loop {
            let base = value::base(self.repository, name.as_bstr()).to_owned();
            let path = value::path(&base, name.as_ref())?;
            if self.taken.contains(name.as_bstr()) {
                return Err(Error::Duplicate {
                    name: name.as_bstr().to_owned(),
                });
            }
            self.check_above(&base, &name)?;
            let unreadable = |error: io::Error| Error::Unreadable {
                name: name.as_bstr().to_owned(),
                message: error.to_string(),
            };
            let packs = self.pack
                && matches!(edit.change, Change::Set(_))
                && !value::is_private(name.as_bstr())
                && matches!(
                    self.fs.kind(&path).map_err(unreadable)?,
                    None | Some(durable::Kind::Folder)
                );
            let lock = match packs {
                true => None,
                false => Some(self.lock(&path, name.as_bstr())?),
            };
            let loose = value::loose(&*self.fs, &path, name.as_bstr(), self.repository.format())?;
            if let (Some(Value::Symbolic(next)), Change::Set(_), true) = (&loose, &edit.change, edit.follow) {
                if followed.len() == resolve::DEPTH {
                    return Err(Error::Circular {
                        name: edit.name.as_bstr().to_owned(),
                    });
                }
                let next = next.clone();
                followed.push(std::mem::replace(&mut name, next));
                continue;
            }
            self.taken.insert(name.as_bstr().to_owned());
            let step = Step {
                name,
                base,
                path,
                lock,
                action: Action::Keep,
                old: None,
            };
            return self.fill(step, edit, loose, followed, logs);
        }
    }

    /// Decides what is to be done about a locked reference and writes its new content into the lock file.
    fn fill(
        &mut self,
        mut step: Step,
        edit: &Edit,
        loose: Option<Value>,
        followed: Vec<FullName>,
        logs: &mut Vec<Entry>,
    ) -> Result<Step, Error> {
        let packed = match value::is_private(step.name.as_bstr()) {
            true => None,
            false => self.packed.get(step.name.as_bstr()),
        };
        step.old = match &loose {
            Some(Value::Object(id)) => Some(*id),
            Some(Value::Symbolic(target)) => {
                resolve::follow(self.repository, target.as_ref())?.map(|(_, id)| id)
            }
            Some(Value::Broken) if edit.expected != Expected::Any => {
                return Err(Error::Unreadable {
                    name: step.name.as_bstr().to_owned(),
                    message: "its content is damaged".to_owned(),
                });
            }
            Some(Value::Broken) => None,
            None => packed,
        };
        let exists = loose.is_some() || packed.is_some();
        let expected = match edit.expected {
            Expected::Any => step.old,
            Expected::Absent => None,
            Expected::Is(id) => Some(id),
        };
        if expected != step.old || (edit.expected == Expected::Absent && exists) {
            return Err(Error::Changed {
                name: step.name.as_bstr().to_owned(),
                expected,
                actual: step.old,
            });
        }
        if !exists && edit.change != Change::Delete {
            self.check_below(&step)?;
            self.created.insert(step.name.as_bstr().to_owned());
        }
        let content = match &edit.change {
            Change::Set(id) => {
                self.check_object(step.name.as_bstr(), *id)?;
                if step.old == Some(*id) && !matches!(loose, Some(Value::Symbolic(_))) {
                    None
                } else if step.lock.is_none() {
                    step.action = Action::Pack;
                    None
                } else {
                    Some(format!("{id}\n").into_bytes())
                }
            }
            Change::Point(target) => {
                let same = matches!(&loose, Some(Value::Symbolic(current)) if current == target);
                (!same).then(|| [b"ref: ".as_slice(), target.as_bstr(), b"\n"].concat())
            }
            Change::Delete => {
                if exists {
                    step.action = Action::Delete {
                        loose: loose.is_some(),
                    };
                }
                None
            }
        };
        if let (Some(content), Some(lock)) = (content, &mut step.lock) {
            lock.write_all(&content)
                .map_err(|error| durable::Error::new("write", lock.path(), error))?;
            step.action = Action::Write;
        }
        let new = match edit.change {
            Change::Set(id) if step.action == Action::Write => Some(id),
            Change::Delete if exists => None,
            _ => return Ok(step),
        };
        for name in followed.into_iter().chain([step.name.clone()]) {
            logs.push(Entry {
                name,
                old: step.old,
                new,
                message: edit.message.clone(),
            });
        }
        Ok(step)
    }

    fn lock(&self, path: &Path, name: &BStr) -> Result<Lock, Error> {
        let mut attempts = 0;
        loop {
            create_dirs(&*self.fs, durable::parent(path), 0o777)?;
            match Lock::acquire(Arc::clone(&self.fs), path, 0o666, self.patience) {
                Ok(lock) => return Ok(lock),
                // Somebody tidied up the folder in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < 3 => attempts += 1,
                Err(error) => return Err(locked(error, name.to_owned())),
            }
        }
    }

    /// No reference may have a name that is a folder of this one's.
    fn check_above(&self, base: &Path, name: &FullName) -> Result<(), Error> {
        let full = name.as_bstr();
        for slash in full.find_iter("/").skip(1) {
            let above = BStr::new(&full[..slash]);
            let path = base.join(gix::path::from_bstr(above).map_err(|error| Error::Invalid {
                name: full.to_owned(),
                reason: crate::repository::explain(&error),
            })?);
            let loose = value::loose(&*self.fs, &path, above, self.repository.format())?.is_some();
            if loose || self.packed.get(above).is_some() {
                return Err(Error::Conflict {
                    name: full.to_owned(),
                    other: above.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// No reference may have a name that needs this one's to be a folder.
    fn check_below(&self, step: &Step) -> Result<(), Error> {
        let name = step.name.as_bstr();
        let other = match self.packed.below(name) {
            Some(other) => Some(other.to_owned()),
            None => value::below(&*self.fs, &step.path, name)?,
        };
        match other {
            Some(other) => Err(Error::Conflict {
                name: name.to_owned(),
                other,
            }),
            None => Ok(()),
        }
    }

    /// The same for names that the transaction itself creates.
    fn check_created(&self) -> Result<(), Error> {
        for name in &self.created {
            for slash in name.find_iter("/") {
                if self.created.contains(BStr::new(&name[..slash])) {
                    return Err(Error::Conflict {
                        name: name.clone(),
                        other: name[..slash].into(),
                    });
                }
            }
        }
        Ok(())
    }

    fn check_object(&self, name: &BStr, id: ObjectId) -> Result<(), Error> {
        let header = self
            .repository
            .gix()
            .try_find_header(id)
            .map_err(|error| Error::Object {
                id,
                message: crate::repository::explain(&error),
            })?;
        match header.map(|header| header.kind()) {
            None => Err(Error::MissingObject {
                name: name.to_owned(),
                id,
            }),
            Some(kind) if kind != Kind::Commit && (name.starts_with(b"refs/heads/") || name == "HEAD") => {
                Err(Error::NotACommit {
                    name: name.to_owned(),
                    id,
                    kind,
                })
            }
            Some(_) => Ok(()),
        }
    }
}
