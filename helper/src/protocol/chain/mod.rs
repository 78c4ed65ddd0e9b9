//! Chains: every generation of a repository, from the head back to the first, verified.
//!
//! Reading has two passes. The first walks from the head to generation 0, because the key of each manifest is found
//! in the one after it. The second goes forwards and checks who was allowed to do what, because each policy is
//! vouched for by the one before. What the first pass keeps of a manifest is small: of the refs only what changed.
//!
//! A client that returns reads what is new alone, down to a manifest that it verified before: see [`Known`].

mod error;
mod known;
mod read;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

pub use error::{Error, Kind, ReadError, Rule};
pub use known::Known;

use super::crypto::GenerationKey;
use super::ids::{ContentId, DeviceId, RepositoryRoot};
use super::keys::DeviceKey;
use super::manifest::{Authorization, PackDescriptor};
use super::pack_stream::PackKey;
use super::policy::{Device, Policy};
use super::refs::{self, RefChange, RefMap};

/// The repository and the generation that a manifest claims to belong to, for telling a person why it was refused.
/// Nothing vouches for them. `None` if it is no manifest.
pub fn claims(id: &ContentId, bytes: &[u8]) -> Option<(RepositoryRoot, u64)> {
    let unopened = super::manifest::Unopened::parse(id, bytes).ok()?;
    Some(unopened.claims())
}

/// The device that claims to have published a manifest, for a report about one that was refused. Nothing vouches for it:
/// the signature is not looked at. `None` if the manifest does not open with `key`.
pub fn claimed_signer(id: &ContentId, bytes: &[u8], key: &DeviceKey) -> Option<DeviceId> {
    let unopened = super::manifest::Unopened::parse(id, bytes).ok()?;
    let generation_key = unopened.own_key(key).ok()?;
    Some(unopened.open(generation_key).ok()?.content.signer_device_id)
}

/// How many envelopes a manifest claims to hold: what opening it costs. 0 if it is no manifest.
pub fn envelopes(id: &ContentId, bytes: &[u8]) -> usize {
    let unopened = super::manifest::Unopened::parse(id, bytes);
    unopened.map_or(0, |unopened| unopened.header.generation_key_envelopes.len())
}

/// One verified generation.
#[derive(Debug, Clone)]
pub struct Generation {
    id: ContentId,
    number: u64,
    signer: DeviceId,
    authorization: Authorization,
    policy: Arc<Policy>,
    ref_changes: Vec<RefChange>,
    new_packs: Vec<PackDescriptor>,
    total_packs: u64,
    key: GenerationKey,
}

impl Generation {
    /// Name of the manifest.
    pub fn id(&self) -> &ContentId {
        &self.id
    }

    /// Its place in the chain, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The device that published it.
    pub fn signer(&self) -> &DeviceId {
        &self.signer
    }

    /// By what right.
    pub fn authorization(&self) -> Authorization {
        self.authorization
    }

    /// The policy in force from this generation on.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// What it did to the refs, in byte order of their names.
    pub fn ref_changes(&self) -> &[RefChange] {
        &self.ref_changes
    }

    /// The packs that came with it, in the order in which they must be imported.
    pub fn new_packs(&self) -> &[PackDescriptor] {
        &self.new_packs
    }

    /// Packs in the chain up to here, its own included.
    pub fn total_packs(&self) -> u64 {
        self.total_packs
    }

    pub(crate) fn key(&self) -> &GenerationKey {
        &self.key
    }
}

/// A verified repository state: its head, and the generations that led there: all of them, or those from the one on that
/// the client knew already.
#[derive(Clone)]
pub struct Chain {
    root: RepositoryRoot,
    /// Oldest first, never empty, without gaps. The first is generation 0, or the head of `since`, of which the changes
    /// of refs are not known.
    generations: Vec<Generation>,
    /// What was verified before.
    since: Option<Arc<Known>>,
    refs: RefMap,
    /// Packs of the generations that are held.
    pack_ids: HashSet<ContentId>,
}

impl Chain {
    /// The repository.
    pub fn root(&self) -> &RepositoryRoot {
        &self.root
    }

    /// The newest generation.
    pub fn head(&self) -> &Generation {
        self.generations
            .last()
            .expect("a chain has at least generation 0")
    }

    /// The generations that are held, oldest first: all of them if the chain [is whole](Self::is_whole).
    pub fn generations(&self) -> &[Generation] {
        &self.generations
    }

    /// A generation by its number, if it is held.
    pub fn generation(&self, number: u64) -> Option<&Generation> {
        let index = number.checked_sub(self.first_held())?;
        self.generations.get(usize::try_from(index).ok()?)
    }

    /// The refs at the head.
    pub fn refs(&self) -> &RefMap {
        &self.refs
    }

    /// The refs as they were at an earlier generation that is held.
    pub fn refs_at(&self, number: u64) -> Option<RefMap> {
        self.generation(number)?;
        let mut refs = self.refs.clone();
        for later in self
            .generations
            .iter()
            .rev()
            .take_while(|later| later.number > number)
        {
            refs::undo(&mut refs, &later.ref_changes);
        }
        Some(refs)
    }

    /// The policy in force.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.head().policy
    }

    /// The packs of the generations that are held, in the order in which they must be imported.
    pub fn packs(&self) -> impl DoubleEndedIterator<Item = &PackDescriptor> {
        self.generations
            .iter()
            .flat_map(|generation| &generation.new_packs)
    }

    /// Number of packs in the whole chain.
    pub fn pack_count(&self) -> u64 {
        self.head().total_packs
    }

    /// Whether some generation carries this pack.
    pub fn has_pack(&self, id: &ContentId) -> bool {
        self.pack_ids.contains(id) || self.since.as_ref().is_some_and(|known| known.has_pack(id))
    }

    /// What opens a pack of this chain. `None` if the descriptor is not one of the generations that are held.
    pub fn pack_key(&self, pack: &PackDescriptor) -> Option<PackKey> {
        let generation = self.generation(pack.generation)?;
        let listed = generation.new_packs.get(usize::try_from(pack.ordinal).ok()?)?;
        (listed == pack).then(|| PackKey::derive(&generation.key, &self.root, pack.generation, pack.ordinal))
    }

    /// A device under the policy in force.
    pub fn device(&self, id: &DeviceId) -> Option<&Device> {
        self.policy().device(id)
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.head();
        f.debug_struct("Chain")
            .field("root", &self.root)
            .field("head", &head.id)
            .field("generation", &head.number)
            .field("refs", &self.refs.len())
            .field("packs", &head.total_packs)
            .finish()
    }
}
