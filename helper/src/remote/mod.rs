//! What is done with an encrypted remote: init, list, push, fetch, verify, status, and who may do it.
//!
//! [`Remote`] is one store, one device key and, where there is a repository, the memory of what that repository has
//! seen of the store. Each operation takes the memory's lock for as long as it runs, reads and authenticates the
//! chain, and compares it with the memory before anything else is done with it.

pub mod decide;
mod error;
mod fetch;
mod floor;
pub mod history;
mod init;
mod local;
mod members;
mod push;
pub mod refnames;
pub mod rejection;
mod rotate;
mod status;
mod tags;
mod told;
mod verify;
mod view;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use ingot_engine::durable::Fs;
use ingot_engine::progress::Progress;

pub use error::{Error, Kind};
pub use fetch::{FetchOptions, Fetched};
pub use floor::Floor;
pub use init::{Founded, init};
pub use local::Local;
pub use members::Changed;
pub use push::{PushOptions, Pushed, Sent};
pub use rotate::{Rotated, next_key_file, settle};
pub use status::{RefStatus, Relation, Status};
pub use verify::Verified;
pub use view::View;

use crate::flock::Patience;
use crate::protocol::{ContentId, DeviceKey, chain};
use crate::state::{self, Alarm, Continuity, Owner};
use crate::storage::Storage;

/// Where a repository remembers what it has seen of a store.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The git folder of the worktree.
    pub git_dir: PathBuf,
    /// The git folder that all worktrees share.
    pub common_dir: PathBuf,
    /// The name of the remote, as bytes; `None` for a URL without one.
    pub name: Option<Vec<u8>>,
    /// Identities of all stores that the remote leads to, fetch URLs first. See [`Continuity::open`].
    pub stores: Vec<String>,
}

/// A store and a key to it.
pub struct Remote<'a> {
    /// The store.
    pub storage: &'a dyn Storage,
    /// The key of this device.
    pub key: &'a DeviceKey,
    /// What is remembered of the store; `None` outside a repository, where nothing can be compared.
    pub memory: Option<Memory>,
    /// What the invitation demands that came with the key.
    pub floor: Option<Floor>,
    /// How the memory is written.
    pub fs: Arc<dyn Fs>,
    /// How long to wait for other processes.
    pub patience: Patience<'a>,
    /// Who is told how far the work is.
    pub progress: &'a dyn Progress,
    /// Threads to use for work that has many.
    pub threads: usize,
    /// What this process has verified of the store already.
    pub seen: &'a Seen,
}

/// The newest state of a store that this process has verified. A verified chain cannot change: as long as the head is the
/// same, nothing has to be read and verified again. Git lists and fetches in one conversation.
#[derive(Debug, Default)]
pub struct Seen(RefCell<Option<View>>);

impl Seen {
    fn at(&self, head: &ContentId) -> Option<View> {
        self.0
            .borrow()
            .as_ref()
            .filter(|view| view.head() == head)
            .cloned()
    }

    fn forget(&self) {
        *self.0.borrow_mut() = None;
    }

    fn remember(&self, view: &View) {
        *self.0.borrow_mut() = Some(view.clone());
    }
}

impl Remote<'_> {
    /// The store as it is now, compared with what is remembered of it, and the memory, locked.
    fn look(&self) -> Result<(View, Option<Continuity>), Error> {
        let mut memory = self.remember()?;
        let view = self.view(&mut memory)?;
        Ok((view, memory))
    }

    /// The same before a push.
    fn look_to_push(&self) -> Result<(View, Option<Continuity>), Error> {
        let mut memory = self.remember()?;
        let head = View::head_to_move(self.storage)?;
        let view = self.view_at(&head, &mut memory)?;
        Ok((view, memory))
    }

    fn remember(&self) -> Result<Option<Continuity>, Error> {
        let Some(memory) = &self.memory else {
            return Ok(None);
        };
        let owner = memory.name.as_deref().map_or(Owner::Url, Owner::Remote);
        let identity = self.storage.identity();
        let fs = Arc::clone(&self.fs);
        Ok(Some(Continuity::open(
            fs,
            &memory.git_dir,
            &memory.common_dir,
            owner,
            &identity,
            &memory.stores,
            self.patience,
        )?))
    }

    fn view(&self, memory: &mut Option<Continuity>) -> Result<View, Error> {
        let head = View::head_of(self.storage).map_err(|error| match (error.kind(), memory.as_ref()) {
            (Kind::NoStore, Some(memory)) => match memory.newest_generation() {
                Some(generation) => Error::Vanished {
                    store: self.storage.describe(),
                    generation,
                },
                None => error,
            },
            _ => error,
        })?;
        self.view_at(&head, memory)
    }

    fn view_at(&self, head: &ContentId, memory: &mut Option<Continuity>) -> Result<View, Error> {
        // What this clone verified before has not to be proved again.
        let pinned = memory.as_ref().and_then(Continuity::state);
        let verified = pinned.map(|state| (state.generation, state.head_id));
        self.view_since(head, memory, verified)
    }

    /// The store and the memory, with everything proved that can be, whatever was proved before.
    fn look_at_all(&self) -> Result<(View, Option<Continuity>), Error> {
        self.seen.forget();
        let mut memory = self.remember()?;
        let head = View::head_of(self.storage)?;
        let view = self.view_since(&head, &mut memory, None)?;
        Ok((view, memory))
    }

    fn view_since(
        &self,
        head: &ContentId,
        memory: &mut Option<Continuity>,
        verified: Option<(u64, ContentId)>,
    ) -> Result<View, Error> {
        let view = match self.seen.at(head) {
            Some(view) => view,
            None => View::read_since(self.storage, head, self.key, verified)
                .map_err(|error| self.explain(error, head, memory.as_ref()))?,
        };
        self.seen.remember(&view);
        if let Some(memory) = memory {
            memory.check(&view.observed(&|number| view.id_at(number)))?;
        }
        if let Some(floor) = &self.floor {
            floor.check(&view)?;
        }
        Ok(view)
    }

    /// Why a head cannot be opened, by what is known of the store: one that could be opened before was rolled back or
    /// replaced, or this device was revoked. What the head claims of itself decides no more than which of the refusals it
    /// is.
    fn explain(&self, error: Error, head: &ContentId, memory: Option<&Continuity>) -> Error {
        let Error::Chain(refused) = &error else {
            return error;
        };
        if refused.kind() != chain::Kind::WrongKey {
            return error;
        }
        let claims = self
            .storage
            .manifest(head)
            .ok()
            .and_then(|bytes| chain::claims(head, &bytes));
        let Some((root, generation)) = claims else {
            return error;
        };
        let pinned = memory.and_then(|memory| Some((memory.path(), memory.state()?.clone())));
        let floor = || self.floor.as_ref().map(|floor| (floor.path(), floor.state()));
        let Some((path, state)) = pinned.or_else(floor) else {
            if root != *self.key.root() {
                return error;
            }
            return Error::NotReader {
                device: *self.key.id(),
                head: *head,
                generation,
            };
        };
        let alarm = if root != state.repository_root {
            Alarm::RootChanged {
                expected: state.repository_root,
                seen: root,
            }
        } else if generation < state.generation {
            Alarm::RolledBack {
                expected: state.generation,
                seen: generation,
                expected_id: state.head_id,
                seen_id: *head,
            }
        } else {
            return Error::Revoked {
                device: *self.key.id(),
                head: *head,
                generation,
                known: state.generation,
                known_id: state.head_id,
            };
        };
        state::Error::Alarm {
            path: path.to_owned(),
            alarm,
        }
        .into()
    }
}
