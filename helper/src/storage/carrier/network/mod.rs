//! A carrier on a Git server.
//!
//! Of the branch, a client keeps the tip's commit and trees, the manifests and the head; see [`cache`]. Packs are fetched
//! when they are read, into a spool that goes as soon as it was used, and never kept.

mod cache;
mod session;
mod upload;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix_hash::ObjectId;
use ingot_engine::durable::Fs;
use ingot_engine::store::Store;
use ingot_engine::transport;

pub use cache::{folder_of as cache_folder, root as cache_root};

use super::super::Error;
use super::outer::{Outer, Purpose, Upload};
use super::snapshot::Snapshot;
use cache::Cache;
use session::Session;

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
            }),
        })
    }
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Repositories on servers are made by other means.
    fn create(&self) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, snapshot: &Snapshot) -> Result<Box<dyn Upload>, Error> {
        Ok(Box::new(upload::NetworkUpload::begin(&self.shared, snapshot)?))
    }
}
