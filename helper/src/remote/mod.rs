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
mod joined;
mod local;
mod members;
mod push;
pub mod recover;
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
use crate::protocol::chain::{self, Known};
use crate::protocol::{ContentId, DeviceKey};
use crate::state::{self, Alarm, Continuity, Owner, State};
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

/// How far back a chain is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// To what is known.
    New,
    /// To its beginning.
    Whole,
}

/// The newest manifest that was verified before.
fn pinned(memory: Option<&Continuity>) -> Option<(u64, ContentId)> {
    let state = memory.and_then(Continuity::state);
    state.map(|state| (state.generation, state.head_id))
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
        // What this clone verified before has not to be proved, nor read again.
        let verified = pinned(memory.as_ref());
        let view = self.read(head, memory.as_ref(), verified, Extent::New)?;
        self.accept(view, memory)
    }

    /// The same with all generations.
    fn look_whole(&self) -> Result<(View, Option<Continuity>), Error> {
        let (view, mut memory) = self.look()?;
        let view = self.whole(view, &mut memory)?;
        Ok((view, memory))
    }

    /// The store and the memory, with everything proved that can be, whatever was proved before.
    fn look_at_all(&self) -> Result<(View, Option<Continuity>), Error> {
        self.seen.forget();
        let mut memory = self.remember()?;
        let head = View::head_of(self.storage)?;
        let view = self.read(&head, memory.as_ref(), None, Extent::Whole)?;
        let view = self.accept(view, &mut memory)?;
        Ok((view, memory))
    }

    /// The view of `head`, as far back as is wanted; not compared with anything yet.
    fn read(
        &self,
        head: &ContentId,
        memory: Option<&Continuity>,
        verified: Option<(u64, ContentId)>,
        extent: Extent,
    ) -> Result<View, Error> {
        let enough = |view: &View| extent == Extent::New || view.chain().is_whole();
        if let Some(view) = self.seen.at(head).filter(enough) {
            return Ok(view);
        }
        let explain = |error| self.explain(error, head, memory);
        if extent == Extent::New
            && let Some(known) = memory.and_then(|memory| self.known(memory))
            && let Some(view) =
                View::read_onto(self.storage, head, self.key, &known, verified).map_err(explain)?
        {
            return Ok(view);
        }
        View::read_since(self.storage, head, self.key, verified).map_err(explain)
    }

    /// Compares a view with what is remembered. Nothing of it is used before.
    fn accept(&self, view: View, memory: &mut Option<Continuity>) -> Result<View, Error> {
        self.seen.remember(&view);
        if let Some(memory) = memory {
            memory.check(&view.observed(&|number| view.id_at(number)))?;
        }
        if let Some(floor) = &self.floor {
            floor.check(&view)?;
        }
        // Where nothing was known of the pinned head, it is from now on.
        if let Some(memory) = memory
            && view.chain().is_whole()
            && memory.state().is_some_and(|state| state.head_id == *view.head())
            && self.known(memory).is_none()
        {
            self.keep(memory, &view);
        }
        Ok(view)
    }

    /// What is known of the chain up to the pin, if it tells all that a command needs.
    fn known(&self, memory: &Continuity) -> Option<Arc<Known>> {
        let known = memory.known()?;
        let tells_all = |floor: &Floor| known.proven() == Some(&floor.id());
        self.floor.as_ref().is_none_or(tells_all).then(|| Arc::new(known))
    }

    /// Remembers a state that `view` led to, and then what is known of the chain, for which nothing has to be read next
    /// time.
    fn record(&self, memory: &mut Continuity, state: State, view: &View) -> Result<(), Error> {
        let old = memory.state().map(|state| state.head_id);
        memory.record(state)?;
        if old != Some(*view.head()) {
            self.keep(memory, view);
        }
        Ok(())
    }

    fn keep(&self, memory: &Continuity, view: &View) {
        let proven = self.floor.as_ref().map(Floor::id);
        memory.keep(&Known::of(view.chain(), proven));
    }

    /// The same view with everything that it holds, for what needs more than the newest generations.
    fn whole(&self, view: View, memory: &mut Option<Continuity>) -> Result<View, Error> {
        if view.chain().is_whole() {
            return Ok(view);
        }
        let verified = pinned(memory.as_ref());
        let whole = self.read(view.head(), memory.as_ref(), verified, Extent::Whole)?;
        self.accept(whole, memory)
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
