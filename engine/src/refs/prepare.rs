//! Checks and locks single references for a transaction.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::Kind;
use gix_ref::FullName;

use super::edit::{Change, Edit, Expected};
use super::packed::Packed;
use super::reflog::{self, Entry};
use super::transaction::Packing;
use super::value::{self, Below, Value};
use super::{Error, resolve};
use crate::durable::{self, Fs, Lock, create_dirs};
use crate::repository::Repository;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// The lock file holds the new content.
    Write,
    /// The new `packed-refs` has it, with what is behind an annotated tag; the file, if there is one, has to go.
    Pack {
        id: ObjectId,
        peeled: Option<ObjectId>,
        loose: bool,
    },
    /// The file, if there is one, has to go.
    Delete { loose: bool },
    /// It is so already.
    Keep,
}

pub(super) struct Step {
    pub name: FullName,
    pub base: PathBuf,
    pub path: PathBuf,
    pub lock: Option<Lock>,
    pub action: Action,
    pub old: Option<ObjectId>,
}

impl Step {
    /// Gives the lock up, and removes folders that were made for it and are of no use any more.
    pub fn release(&mut self, fs: &dyn Fs) {
        if self.lock.take().is_none() {
            return;
        }
        let mut parts = self.name.as_bstr().splitn_str(3, "/");
        if let (Some(b"refs"), Some(second), Some(_)) = (parts.next(), parts.next(), parts.next())
            && let Ok(second) = second.to_os_str()
        {
            reflog::remove_empty_above(fs, &self.path, &self.base.join("refs").join(second));
        }
    }
}

/// Everything that preparing looks things up in.
pub(super) struct Preparation<'r> {
    pub repository: &'r Repository,
    pub fs: Arc<dyn Fs>,
    pub packed: Packed,
    pub patience: Duration,
    pub packing: Packing,
    /// Commits that will be there when the transaction is committed.
    pub incoming: &'r [ObjectId],
    /// Names that the transaction creates.
    pub created: BTreeSet<BString>,
    /// Names that the transaction has locked.
    pub taken: BTreeSet<BString>,
}

pub(super) fn patience(repository: &Repository, key: &str, default: u64) -> Duration {
    let wanted = repository.config().integer(key).ok().flatten();
    match wanted.map(u64::try_from) {
        None => Duration::from_millis(default),
        Some(Ok(milliseconds)) => Duration::from_millis(milliseconds),
        // Git waits without end; a day is as good.
        Some(Err(_)) => Duration::from_secs(24 * 60 * 60),
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
    /// Locks one reference, checks it, and writes what it is to hold beside it.
    pub fn step(&mut self, edit: &Edit, logs: &mut Vec<Entry>) -> Result<Step, Error> {
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
            let packable = matches!(edit.change, Change::Set(_)) && !value::is_private(name.as_bstr());
            let pack = packable
                && match self.packing {
                    Packing::None => false,
                    Packing::All => true,
                    Packing::New => matches!(
                        self.fs.kind(&path).map_err(unreadable)?,
                        None | Some(durable::Kind::Folder)
                    ),
                };
            let lock = match self.packing {
                Packing::New if pack => None,
                _ => {
                    let stays = !pack && edit.change != Change::Delete;
                    Some(self.lock(&path, name.as_bstr(), stays)?)
                }
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
            let mut step = Step {
                name,
                base,
                path,
                lock,
                action: Action::Keep,
                old: None,
            };
            return match self.fill(&mut step, edit, loose, pack, followed, logs) {
                Ok(()) => Ok(step),
                Err(error) => {
                    step.release(&*self.fs);
                    Err(error)
                }
            };
        }
    }

    /// Decides what is to be done about a locked reference and writes its new content into the lock file.
    fn fill(
        &mut self,
        step: &mut Step,
        edit: &Edit,
        loose: Option<Value>,
        pack: bool,
        followed: Vec<FullName>,
        logs: &mut Vec<Entry>,
    ) -> Result<(), Error> {
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
        let fresh = !exists && edit.change != Change::Delete;
        if fresh {
            self.check_below(step, pack)?;
        }
        let content = match &edit.change {
            Change::Set(id) => {
                let kind = self.check_object(step.name.as_bstr(), *id)?;
                if step.old == Some(*id) && !matches!(loose, Some(Value::Symbolic(_))) {
                    None
                } else if step.lock.is_none() || pack && matches!(loose, None | Some(Value::Object(_))) {
                    let peeled = match kind {
                        Some(Kind::Tag) => Some(resolve::peel(self.repository, *id)?.0),
                        _ => None,
                    };
                    step.action = Action::Pack {
                        id: *id,
                        peeled,
                        loose: loose.is_some() && step.lock.is_some(),
                    };
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
        if fresh {
            self.created.insert(step.name.as_bstr().to_owned());
        }
        let logged = match step.action {
            Action::Write => true,
            Action::Pack { .. } => self.packing == Packing::All,
            Action::Delete { .. } | Action::Keep => false,
        };
        let new = match edit.change {
            Change::Set(id) if logged => Some(id),
            Change::Delete if exists => None,
            _ => return Ok(()),
        };
        for name in followed.into_iter().chain([step.name.clone()]) {
            logs.push(Entry {
                name,
                old: step.old,
                new,
                message: edit.message.clone(),
            });
        }
        Ok(())
    }

    /// Locks the file of a reference. Its folder has to outlast a power cut only where the file `stays` in it.
    fn lock(&self, path: &Path, name: &BStr, stays: bool) -> Result<Lock, Error> {
        let folder = durable::parent(path);
        let mut attempts = 0;
        loop {
            if stays {
                create_dirs(&*self.fs, folder, 0o777)?;
            } else {
                reflog::create(&*self.fs, folder)
                    .map_err(|error| durable::Error::new("create folder", folder, error))?;
            }
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
            if loose || self.packed.get(above).is_some() || self.created.contains(above) {
                return Err(Error::Conflict {
                    name: full.to_owned(),
                    other: above.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// No reference may have a name that needs this one's to be a folder.
    fn check_below(&self, step: &Step, pack: bool) -> Result<(), Error> {
        let name = step.name.as_bstr();
        let conflict = |other: &BStr| Error::Conflict {
            name: name.to_owned(),
            other: other.to_owned(),
        };
        let below = BString::from([name.as_bytes(), b"/"].concat());
        if let Some(other) = self.created.range(below.clone()..).next()
            && other.starts_with(&below)
        {
            return Err(conflict(other.as_bstr()));
        }
        if let Some(other) = self.packed.below(name) {
            return Err(conflict(other));
        }
        match value::below(&*self.fs, &step.path, name)? {
            Some(Below::Reference(other)) => Err(conflict(other.as_bstr())),
            // The folder stays as long as this file does, and takes the place of the file of the reference.
            Some(Below::Lock(lock)) if !pack => Err(Error::Locked {
                name: name.to_owned(),
                lock,
            }),
            _ => Ok(()),
        }
    }

    /// Checks that a reference may hold this object, and returns its kind where it is here already.
    fn check_object(&self, name: &BStr, id: ObjectId) -> Result<Option<Kind>, Error> {
        if self.incoming.contains(&id) {
            return Ok(None);
        }
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
            kind => Ok(kind),
        }
    }
}
