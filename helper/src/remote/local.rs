//! The local repository, as far as a remote needs it.

use std::cell::RefCell;
use std::sync::Arc;

use gix::object::Kind;
use gix_hash::ObjectId;
use ingot_engine::connectivity::{self, Connectivity};
use ingot_engine::durable::Fs;
use ingot_engine::import::{self, Import};
use ingot_engine::progress::{Progress, Silent};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use ingot_engine::walk;

use super::Error;
use super::decide::History;

/// Memory for decoded bases while single objects are read.
const CACHE: usize = 4 << 20;

/// The local repository and a view of its objects, taken when this was made.
pub struct Local<'a> {
    repository: &'a Repository,
    store: Arc<Store>,
    cache: RefCell<Cache>,
}

impl<'a> Local<'a> {
    /// Opens the objects of a repository.
    pub fn open(repository: &'a Repository) -> Result<Local<'a>, Error> {
        Ok(Local::with_store(repository, Arc::new(repository.store()?)))
    }

    /// The objects of a repository as `store` sees them, which [`Repository::store`] opened.
    pub fn with_store(repository: &'a Repository, store: Arc<Store>) -> Local<'a> {
        Local {
            repository,
            store,
            cache: RefCell::new(Cache::new(CACHE)),
        }
    }

    /// The repository.
    pub fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// Its objects.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Its object format.
    pub fn format(&self) -> gix_hash::Kind {
        self.repository.format()
    }

    /// Whether history ends where it really ends: neither shallow nor partial.
    pub fn is_complete(&self) -> Result<bool, Error> {
        Ok(!self.repository.is_shallow()? && !self.repository.is_partial()?)
    }

    /// The objects that `wants` need and a receiver of `haves` lacks.
    pub fn enumerate(
        &self,
        wants: &[ObjectId],
        haves: &[ObjectId],
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<walk::Objects, Error> {
        let request = walk::Request {
            wants,
            haves,
            threads,
            ..walk::Request::default()
        };
        walk::enumerate(&self.store, &request, progress).map_err(|error| match error {
            walk::Error::Missing { id, referrer } => {
                self.incomplete(id, referrer).unwrap_or_else(|error| error)
            }
            other => other.into(),
        })
    }

    /// Why an object that history needs is not here, and what to do about it.
    fn incomplete(&self, id: ObjectId, referrer: Option<ObjectId>) -> Result<Error, Error> {
        Ok(if self.repository.is_shallow()? {
            Error::Shallow { id }
        } else if self.repository.is_partial()? {
            Error::Partial { id }
        } else {
            Error::LocalMissing { id, referrer }
        })
    }

    /// Whether everything reachable from `tips` is here, given that what `frontier` reaches is.
    pub fn is_connected(
        &self,
        tips: &[ObjectId],
        frontier: &[ObjectId],
        threads: usize,
        progress: &dyn Progress,
    ) -> bool {
        let question = connectivity::Question {
            tips,
            frontier,
            threads,
            ..connectivity::Question::default()
        };
        matches!(
            connectivity::check(&self.store, &question, progress),
            Ok(Connectivity::Connected { .. })
        )
    }

    /// Begins to take packs into the repository, which are written through `fs`.
    pub fn begin_import(&self, threads: usize, fs: Arc<dyn Fs>) -> Result<Import, Error> {
        let options = import::Options {
            threads,
            fs,
            ..import::Options::default()
        };
        Ok(Import::into_store(Arc::clone(&self.store), options)?)
    }
}

impl History for Local<'_> {
    type Error = Error;

    fn kind(&self, id: ObjectId) -> Result<Option<Kind>, Error> {
        if id.kind() != self.format() {
            return Ok(None);
        }
        Ok(self.store.header(&id)?.map(|(kind, _)| kind))
    }

    fn peel(&self, id: ObjectId) -> Result<Option<(ObjectId, Kind)>, Error> {
        let mut id = id;
        let mut data = Vec::new();
        loop {
            match self.kind(id)? {
                None => return Ok(None),
                Some(Kind::Tag) => {}
                Some(kind) => return Ok(Some((id, kind))),
            }
            self.store.read(&id, &mut self.cache.borrow_mut(), &mut data)?;
            let tag = gix::objs::TagRefIter::from_bytes(&data, self.format());
            id = tag.target_id().map_err(|_| Error::TagUnreadable { id })?;
        }
    }

    fn is_ancestor(&self, ancestor: ObjectId, descendant: ObjectId) -> Result<bool, Error> {
        let shallow = self.repository.shallow_commits()?;
        Ok(walk::is_ancestor(
            &self.store,
            &ancestor,
            &descendant,
            &shallow,
            &Silent,
        )?)
    }
}
