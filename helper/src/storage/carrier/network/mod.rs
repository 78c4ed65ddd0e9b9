//! A carrier on a Git server.
//!
//! Of the branch, a client keeps the tip's commit and trees, the manifests and the head; see [`cache`]. Packs are fetched
//! when they are read, into a spool that goes as soon as it was used, and never kept.

mod cache;
mod group;
mod hosts;
mod session;
mod unfinished;
mod upload;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;
use ingot_engine::durable::Fs;
use ingot_engine::progress::{Progress, Silent};
use ingot_engine::store::Store;
use ingot_engine::transport::{self, Command, Push, Status};

pub use cache::{folder_of as cache_folder, root as cache_root};

use super::super::Error;
use super::layout::UPLOADS;
use super::outer::{Outer, Purpose, Sealed, Upload};
use super::snapshot::Snapshot;
use cache::Cache;
use session::Session;
use unfinished::Unfinished;

use crate::storage::Leftover;

/// Where a carrier is, and how it is reached.
pub struct Place {
    /// What it is fetched from.
    pub fetch: transport::Remote,
    /// What it is pushed to: the same repository, perhaps by another way.
    pub push: transport::Remote,
    /// The folder of caches; see [`cache_root`].
    pub cache: PathBuf,
    /// How the cache is written.
    pub fs: Arc<dyn Fs>,
}

/// See [`crate::storage::Storage::identity`]. Nothing is connected to.
pub fn identity_of(address: &transport::Address) -> String {
    let url = address.redacted().to_string();
    format!("carrier:{}", url.trim().trim_end_matches('/'))
}

/// A repository on a server.
#[derive(Clone)]
pub(super) struct Network {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    place: Place,
    cache: Cache,
    session: Mutex<Session>,
    progress: RwLock<Arc<dyn Progress>>,
    /// What an earlier push has left, once it was asked for.
    unfinished: Mutex<Option<Unfinished>>,
}

impl Network {
    pub fn new(place: Place) -> Result<Network, Error> {
        let name = place.fetch.address().redacted().to_string();
        let cache = Cache::new(&place.cache, &name, Arc::clone(&place.fs))?;
        Ok(Network {
            shared: Arc::new(Shared {
                name,
                place,
                cache,
                session: Mutex::default(),
                progress: RwLock::new(Arc::new(Silent)),
                unfinished: Mutex::default(),
            }),
        })
    }
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn unfinished(&self) -> MutexGuard<'_, Option<Unfinished>> {
        let mut unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        if unfinished.is_none() {
            *unfinished = Unfinished::find(self.cache.folder());
        }
        unfinished
    }

    /// Removes a branch that kept parts on the server. One that stays takes room there: the user is told.
    fn remove_upload(&self, branch: &str) {
        if let Err(error) = self.try_to_remove_upload(branch, None) {
            self.place
                .push
                .messages()
                .warning(&format!("the branch {branch} is left on the server: {error}"));
        }
    }

    fn try_to_remove_upload(&self, branch: &str, wanted: Option<ObjectId>) -> Result<(), Error> {
        let receive = self.place.push.receive_pack().map_err(failed)?;
        let Some(at) = receive.find(BStr::new(branch)) else {
            return Ok(());
        };
        if wanted.is_some_and(|wanted| wanted != at) {
            return Ok(());
        }
        let refused = |reason: String| Error::Refused {
            store: self.name.clone(),
            reason,
        };
        let push = Push {
            commands: vec![Command::delete(branch, at)],
            quiet: true,
            ..Push::default()
        };
        let report = receive
            .push(push, |_| Ok::<(), std::convert::Infallible>(()))
            .map_err(|error| match error {
                transport::PushError::Remote(error) => failed(error),
                transport::PushError::Pack(never) => match never {},
            })?;
        match report.refs.into_iter().next().map(|one| one.status) {
            Some(Status::Rejected(reason)) => Err(refused(reason.to_string())),
            _ => Ok(()),
        }
    }

    /// Who is told what comes and goes.
    fn progress(&self) -> Arc<dyn Progress> {
        Arc::clone(&self.progress.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a conversation with a server came to.
fn failed(source: transport::Error) -> Error {
    Error::Transport(Box::new(source))
}

impl Outer for Network {
    fn describe(&self) -> String {
        self.shared.name.clone()
    }

    fn identity(&self) -> String {
        identity_of(self.shared.place.fetch.address())
    }

    fn show(&self, progress: Arc<dyn Progress>) {
        *self
            .shared
            .progress
            .write()
            .unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn look(&self, purpose: Purpose) -> Result<Snapshot, Error> {
        let mut session = self.shared.session();
        session.look(&self.shared, purpose)
    }

    fn look_back(&self) -> Result<Snapshot, Error> {
        self.shared.session().look_back(&self.shared)
    }

    fn bring(&self, snapshot: &Snapshot, blobs: &[ObjectId]) -> Result<Arc<Store>, Error> {
        let mut session = self.shared.session();
        session.bring(&self.shared, snapshot, blobs)
    }

    fn expect(&self, packs: Vec<(Vec<ObjectId>, u64)>) {
        self.shared.session().expect(packs);
    }

    fn distrust(&self) -> bool {
        self.shared.session().distrust(&self.shared)
    }

    fn unfinished(&self) -> Option<Sealed> {
        Some(self.shared.unfinished().as_ref()?.sealed.clone())
    }

    fn resume(&self, snapshot: &Snapshot) -> Result<Box<dyn Upload>, Error> {
        let unfinished = self.shared.unfinished().take();
        Ok(match unfinished {
            Some(unfinished) => Box::new(upload::NetworkUpload::resume(&self.shared, snapshot, unfinished)?),
            None => Box::new(upload::NetworkUpload::begin(&self.shared, snapshot)?),
        })
    }

    fn give_up(&self) {
        let unfinished = self.shared.unfinished().take();
        if let Some(unfinished) = unfinished {
            let branch = upload::branch_for(&unfinished.sealed.pack);
            unfinished.remove();
            self.shared.remove_upload(&branch);
        }
    }

    fn leftovers(&self) -> Result<Vec<Leftover>, Error> {
        let own = self.unfinished().map(|sealed| upload::branch_for(&sealed.pack));
        let receive = self.shared.place.push.receive_pack().map_err(failed)?;
        let uploads = receive
            .refs()
            .iter()
            .filter(|known| known.name.starts_with_str(UPLOADS));
        Ok(uploads
            .map(|known| Leftover {
                name: known.name.to_string(),
                id: known.id,
                resumable: own.as_ref().is_some_and(|own| known.name == own.as_str()),
            })
            .collect())
    }

    fn remove_leftover(&self, leftover: &Leftover) -> Result<(), Error> {
        match leftover.name.starts_with(UPLOADS) {
            true => self
                .shared
                .try_to_remove_upload(&leftover.name, Some(leftover.id)),
            false => Ok(()),
        }
    }

    /// Repositories on servers are made by other means.
    fn create(&self) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, snapshot: &Snapshot) -> Result<Box<dyn Upload>, Error> {
        Ok(Box::new(upload::NetworkUpload::begin(&self.shared, snapshot)?))
    }
}
