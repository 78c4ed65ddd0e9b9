//! Making the next generation: the founding manifest, a change of refs, a change of policy.
//!
//! What is made is opened and verified again, as a reader would, before it is handed out: a manifest that a reader
//! refuses would end the repository for everyone.

use super::chain::{self, Chain};
use super::crypto::GenerationKey;
use super::envelope;
use super::ids::{ContentId, RepositoryRoot};
use super::keys::DeviceKey;
use super::manifest::{self, Authorization, Draft, PackDescriptor};
use super::pack_stream::{PackKey, SealedPack};
use super::policy::{self, Change, Policy};
use super::refs::{self, RefMap};

/// Why the next manifest could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device may read, but not write.
    #[error("this device is read-only")]
    ReadOnly,
    /// The device may do nothing.
    #[error("device is not an active writer")]
    NotWriter,
    /// The key is for another repository.
    #[error("key file belongs to a different repository: it is for {seen}, this is {expected}")]
    ForeignRepository {
        /// Root in the key file.
        seen: RepositoryRoot,
        /// Root of the chain.
        expected: RepositoryRoot,
    },
    /// A ref that no client would accept.
    #[error(transparent)]
    Refs(#[from] super::refs::Error),
    /// A policy that cannot follow.
    #[error(transparent)]
    Policy(#[from] policy::Error),
    /// Envelopes could not be made.
    #[error(transparent)]
    Envelope(#[from] envelope::Error),
    /// The operating system gave no random bytes.
    #[error(transparent)]
    Random(#[from] super::crypto::RandomUnavailable),
    /// A counter is used up.
    #[error("manifest generation counter is exhausted")]
    Exhausted,
    /// Nobody could read the manifest.
    #[error(
        "manifest would have {size} bytes, more than the {} that readers accept; delete refs that are no longer needed",
        manifest::MAX_BYTES
    )]
    TooLarge {
        /// Its size.
        size: usize,
    },
    /// Reading back what was made failed: a fault of this program, found before anything was published.
    #[error("new manifest does not verify: {0}")]
    SelfCheck(#[from] chain::Error),
}

/// A manifest that is ready to be stored, and the chain as it is once the head names it.
pub struct Publication {
    bytes: Vec<u8>,
    chain: Chain,
}

impl std::fmt::Debug for Publication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publication")
            .field("size", &self.bytes.len())
            .field("chain", &self.chain)
            .finish()
    }
}

impl Publication {
    /// What to store.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Name of the manifest, for the head.
    pub fn id(&self) -> &ContentId {
        self.chain.head().id()
    }

    /// The chain that ends in this manifest. It is true once the head has been moved, not before.
    pub fn into_chain(self) -> Chain {
        self.chain
    }

    /// See [`Self::into_chain`].
    pub fn chain(&self) -> &Chain {
        &self.chain
    }
}

/// The first manifest of a new repository, which `founder` owns.
pub fn genesis(founder: &DeviceKey) -> Result<Publication, Error> {
    let policy = Policy::genesis(founder)?;
    let key = GenerationKey::generate()?;
    let draft = Draft {
        generation: 0,
        parent: None,
        authorization: Authorization::PolicyTransition,
        policy: &policy,
        introduces_policy: true,
        total_pack_count: 0,
        refs: &RefMap::new(),
        new_packs: &[],
    };
    finish(None, &draft, &key, founder)
}

/// The manifest after `chain` that changes the policy and nothing else.
pub fn transition(
    chain: &Chain,
    administrator: &DeviceKey,
    changes: &[Change],
) -> Result<Publication, Error> {
    check_root(chain, administrator)?;
    let policy = chain.policy().transition(administrator, changes)?;
    let key = GenerationKey::generate()?;
    let draft = Draft {
        generation: next_generation(chain)?,
        parent: Some((chain.head().id(), chain.head().key())),
        authorization: Authorization::PolicyTransition,
        policy: &policy,
        introduces_policy: true,
        total_pack_count: chain.pack_count(),
        refs: chain.refs(),
        new_packs: &[],
    };
    finish(Some(chain), &draft, &key, administrator)
}

/// The next generation of refs, in the making. Its key exists first, because its packs are sealed under it.
///
/// If another generation is published meanwhile, this one can no longer follow, and its packs have to be sealed
/// again: their keys depend on the generation.
#[derive(Debug)]
pub struct Writer<'a> {
    chain: &'a Chain,
    device: &'a DeviceKey,
    key: GenerationKey,
    generation: u64,
    packs: Vec<PackDescriptor>,
}

impl<'a> Writer<'a> {
    /// Begins the generation after `chain`, if the device may write.
    pub fn begin(chain: &'a Chain, device: &'a DeviceKey) -> Result<Self, Error> {
        check_root(chain, device)?;
        match chain.device(device.id()) {
            Some(member) if member.is_active_writer() => {}
            Some(member) if member.is_active_reader() => return Err(Error::ReadOnly),
            _ => return Err(Error::NotWriter),
        }
        let generation = next_generation(chain)?;
        Ok(Self {
            chain,
            device,
            key: GenerationKey::generate()?,
            generation,
            packs: Vec::new(),
        })
    }

    /// Number of the generation in the making.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The key for the pack that will be added next.
    pub fn pack_key(&self) -> PackKey {
        PackKey::derive(
            &self.key,
            self.chain.root(),
            self.generation,
            self.packs.len() as u64,
        )
    }

    /// Adds a pack that was sealed under [`Self::pack_key`] and is stored already.
    pub fn add_pack(&mut self, pack: &SealedPack) {
        self.packs.push(PackDescriptor {
            id: pack.id,
            plaintext_size: pack.plaintext_size,
            generation: self.generation,
            ordinal: self.packs.len() as u64,
        });
    }

    /// Completes the generation: from now on these are all the refs of the repository.
    pub fn publish(self, refs: &RefMap) -> Result<Publication, Error> {
        refs::check(refs)?;
        let new_packs = u64::try_from(self.packs.len()).map_err(|_| Error::Exhausted)?;
        let draft = Draft {
            generation: self.generation,
            parent: Some((self.chain.head().id(), self.chain.head().key())),
            authorization: Authorization::Writer,
            policy: self.chain.policy(),
            introduces_policy: false,
            total_pack_count: self
                .chain
                .pack_count()
                .checked_add(new_packs)
                .ok_or(Error::Exhausted)?,
            refs,
            new_packs: &self.packs,
        };
        finish(Some(self.chain), &draft, &self.key, self.device)
    }
}

fn check_root(chain: &Chain, device: &DeviceKey) -> Result<(), Error> {
    if device.root() != chain.root() {
        return Err(Error::ForeignRepository {
            seen: *device.root(),
            expected: *chain.root(),
        });
    }
    Ok(())
}

fn next_generation(chain: &Chain) -> Result<u64, Error> {
    chain.head().number().checked_add(1).ok_or(Error::Exhausted)
}

fn finish(
    parent: Option<&Chain>,
    draft: &Draft<'_>,
    key: &GenerationKey,
    signer: &DeviceKey,
) -> Result<Publication, Error> {
    let bytes = manifest::seal(draft, key, signer)?;
    if bytes.len() > manifest::MAX_BYTES {
        return Err(Error::TooLarge { size: bytes.len() });
    }
    let chain = Chain::extend(parent, &bytes, key)?;
    Ok(Publication { bytes, chain })
}
