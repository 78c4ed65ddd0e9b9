//! A store at one moment: its chain, verified, and its references, ready for Git.

use std::sync::Arc;

use super::decide::Refs;
use super::{Error, refnames};
use crate::protocol::chain::Known;
use crate::protocol::manifest::PackDescriptor;
use crate::protocol::{Chain, ContentId, DeviceKey, pack_stream, refs};
use crate::state::{Observed, State};
use crate::storage::{RawHead, Storage};

/// A store at one moment.
#[derive(Debug, Clone)]
pub struct View {
    chain: Chain,
    refs: Refs,
    format: Option<gix_hash::Kind>,
}

impl View {
    /// The manifest that the head of `storage` names.
    pub fn head_of(storage: &dyn Storage) -> Result<ContentId, Error> {
        View::named(storage, storage.head()?)
    }

    /// The same for a caller who wants to move the head.
    pub fn head_to_move(storage: &dyn Storage) -> Result<ContentId, Error> {
        View::named(storage, storage.head_for_push()?)
    }

    fn named(storage: &dyn Storage, head: Option<RawHead>) -> Result<ContentId, Error> {
        match head {
            Some(head) => head.id().ok_or_else(|| Error::HeadUnreadable {
                store: storage.describe(),
            }),
            None => Err(Error::NoRepository {
                store: storage.describe(),
            }),
        }
    }

    /// Reads and authenticates the chain that ends in `head`.
    pub fn read(storage: &dyn Storage, head: &ContentId, key: &DeviceKey) -> Result<View, Error> {
        View::read_since(storage, head, key, None)
    }

    /// The same where the chain up to a manifest, given by generation and name, was verified before.
    pub fn read_since(
        storage: &dyn Storage,
        head: &ContentId,
        key: &DeviceKey,
        verified: Option<(u64, ContentId)>,
    ) -> Result<View, Error> {
        View::of(Chain::read_since(|id| storage.manifest(id), head, key, verified)?)
    }

    /// The same without what is known already; `None` where that does not fit.
    pub(super) fn read_onto(
        storage: &dyn Storage,
        head: &ContentId,
        key: &DeviceKey,
        known: &Arc<Known>,
        verified: Option<(u64, ContentId)>,
    ) -> Result<Option<View>, Error> {
        Chain::read_onto(|id| storage.manifest(id), head, key, known, verified)?
            .map(View::of)
            .transpose()
    }

    /// The view of a chain that was verified already.
    pub(super) fn of(chain: Chain) -> Result<View, Error> {
        refs::check(chain.refs())?;
        let mut refs = Refs::new();
        for (name, value) in chain.refs() {
            refs.insert(name.clone(), refs::object_id(name, value)?);
        }
        // Git cannot hold both, so nobody's Git made them.
        for name in refs.keys() {
            if let Some(other) = refnames::conflict(name, &refs) {
                return Err(Error::RefConflict {
                    name: name.clone(),
                    other: other.to_owned(),
                });
            }
        }
        // A store whose branches are all deleted still holds packs of one format.
        let format = chain.format();
        Ok(View { chain, refs, format })
    }

    /// The verified chain.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// All references of the head.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }

    /// The branch that a clone checks out, by full name.
    pub fn default_branch(&self) -> Option<&str> {
        refnames::default_branch(&self.refs)
    }

    /// The object format of what is stored; `None` while nothing is.
    pub fn format(&self) -> Option<gix_hash::Kind> {
        self.format
    }

    /// Number of the newest generation.
    pub fn generation(&self) -> u64 {
        self.chain.head().number()
    }

    /// The newest manifest.
    pub fn head(&self) -> &ContentId {
        self.chain.head().id()
    }

    /// The manifest of a generation, also of one that is not held.
    pub(super) fn id_at(&self, number: u64) -> Option<ContentId> {
        self.chain.manifest_at(number)
    }

    /// The packs of all generations after `imported`, or of all; `None` where the view does not reach so far back.
    pub(super) fn packs_after(&self, imported: Option<u64>) -> Option<Vec<&PackDescriptor>> {
        let first = self.chain.first_held();
        let reaches = first == 0 || imported.is_some_and(|imported| imported.saturating_add(1) >= first);
        let new = |pack: &&PackDescriptor| imported.is_none_or(|imported| pack.generation > imported);
        reaches.then(|| self.chain.packs().filter(new).collect())
    }

    pub(super) fn observed<'a>(&self, id_at: &'a dyn Fn(u64) -> Option<ContentId>) -> Observed<'a> {
        Observed {
            repository_root: *self.chain.root(),
            head_id: *self.head(),
            generation: self.generation(),
            policy_generation: self.chain.policy().generation(),
            id_at,
        }
    }

    /// The state of a clone in which all references of this view are complete.
    pub(super) fn state(&self) -> State {
        let mut state = State::new(&self.observed(&|_| None));
        state.imported_generation = Some(self.generation());
        state.verified_refs = self.refs.clone();
        state
    }

    /// Refuses to mix object formats in one store.
    pub(super) fn check_format(&self, local: gix_hash::Kind) -> Result<(), Error> {
        match self.format {
            Some(stored) if stored != local => Err(Error::ObjectFormat { stored, local }),
            _ => Ok(()),
        }
    }
}

/// Bytes that a pack takes in the store. A descriptor that claims more than any stream can hold fails when it is opened;
/// until then its own claim is shown.
pub(super) fn stored_size(pack: &PackDescriptor) -> u64 {
    pack_stream::stored_size(pack.plaintext_size).unwrap_or(pack.plaintext_size)
}

/// The sum of sizes that the store claims, which may be any numbers.
pub(super) fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}
