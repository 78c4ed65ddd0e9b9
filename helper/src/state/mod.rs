//! Continuity state: what this clone has already seen and checked.
//!
//! Storage can always show an old state that was once genuine, or a different genuine history to each reader. What a
//! client remembers is its only defence: the pinned head ([`State`]) must be part of every history shown later
//! ([`State::check`]), and only moves forward ([`State::merge`]).
//!
//! [`Continuity`] is the state of one store in one clone, [`AdminPin`] the one that an administrator's key file carries
//! from clone to clone. Both are locked from opening to dropping. A damaged file is an error that names it: to replace
//! it silently would be to forget.

mod continuity;
mod file;
mod json;
mod known;
pub mod names;
mod pin;
mod place;
mod rejected;

use std::collections::{BTreeMap, BTreeSet};

use gix_hash::ObjectId;

pub use continuity::{Continuity, set_aside};
pub use file::{AdminPin, Error, load};
pub use known::path_for as known_file;
pub use names::DeviceNames;
pub use pin::{Alarm, Observed};
pub use place::{Owner, state_file};
pub use rejected::Rejected;

use crate::protocol::{ContentId, RepositoryRoot};

/// What is remembered of one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Packs whose objects were imported. A hint only: objects can be gone again.
    pub packs: BTreeSet<ContentId>,
    /// The pinned head.
    pub head_id: ContentId,
    /// The manifest generation of the pinned head.
    pub generation: u64,
    /// The last generation whose packs were imported and whose refs were complete; `None` before the first import.
    pub imported_generation: Option<u64>,
    /// The generation of the policy in force at the pinned head.
    pub policy_generation: u64,
    /// The repository that this is about.
    pub repository_root: RepositoryRoot,
    /// The refs whose history was complete when last checked: the frontier of the next check.
    pub verified_refs: BTreeMap<String, ObjectId>,
}

impl State {
    /// The state of a clone that has authenticated a history and imported nothing of it.
    pub fn new(observed: &Observed<'_>) -> State {
        State {
            packs: BTreeSet::new(),
            head_id: observed.head_id,
            generation: observed.generation,
            imported_generation: None,
            policy_generation: observed.policy_generation,
            repository_root: observed.repository_root,
            verified_refs: BTreeMap::new(),
        }
    }
}
