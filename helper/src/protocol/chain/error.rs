//! Why a chain was refused.

use super::super::ids::{ContentId, DeviceId, RepositoryRoot};
use super::super::{manifest, policy};

/// A chain could not be read, or was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError<E: std::error::Error + 'static> {
    /// Storage did not give a manifest.
    #[error("cannot read manifest {id}: {source}")]
    Storage {
        /// The manifest.
        id: ContentId,
        /// What storage says.
        source: E,
    },
    /// Storage gave something that is not this repository's history.
    #[error(transparent)]
    Chain(#[from] Error),
}

/// A chain was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A single manifest does not open.
    #[error("manifest {id}: {source}")]
    Manifest {
        /// The manifest.
        id: ContentId,
        /// Why.
        source: Box<manifest::Error>,
    },
    /// A manifest opens, but may not stand where it stands.
    #[error("manifest {id} (generation {generation}): {rule}")]
    Rule {
        /// The manifest.
        id: ContentId,
        /// Its generation, as it claims.
        generation: u64,
        /// What it breaks.
        rule: Box<Rule>,
    },
    /// More than this program will hold.
    #[error(
        "manifest chain needs more than {limit} bytes of memory at generation {generation}; it was not read further"
    )]
    TooLarge {
        /// Where reading stopped.
        generation: u64,
        /// The limit.
        limit: usize,
    },
}

/// What a refused chain means to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The key at hand cannot open it.
    WrongKey,
    /// A newer format, or one that is reserved.
    Unsupported,
    /// It is provably not what its writers published.
    Integrity,
}

impl Error {
    /// What the refusal means to the user.
    pub fn kind(&self) -> Kind {
        use manifest::Error as M;
        use policy::Error as P;
        match self {
            Self::Manifest { source, .. } => match **source {
                M::NotReader | M::ForeignRepository { .. } => Kind::WrongKey,
                M::UnsupportedFormat(_) => Kind::Unsupported,
                _ => Kind::Integrity,
            },
            Self::Rule { rule, .. } => match **rule {
                Rule::Checkpoint | Rule::Policy(P::UnsupportedFormat(_) | P::Threshold(_)) => {
                    Kind::Unsupported
                }
                _ => Kind::Integrity,
            },
            Self::TooLarge { .. } => Kind::Integrity,
        }
    }

    /// Whether the key at hand is one of another repository.
    pub fn is_foreign(&self) -> bool {
        use manifest::Error as M;
        matches!(self, Self::Manifest { source, .. } if matches!(**source, M::ForeignRepository { .. }))
    }

    pub(super) fn rule(id: ContentId, generation: u64, rule: Rule) -> Self {
        Self::Rule {
            id,
            generation,
            rule: Box::new(rule),
        }
    }
}

/// A rule of the chain, broken.
#[derive(Debug, thiserror::Error)]
pub enum Rule {
    /// A link into another repository.
    #[error("repository root is {seen}, expected {expected}")]
    Root {
        /// Of this manifest.
        seen: RepositoryRoot,
        /// Of the head.
        expected: RepositoryRoot,
    },
    /// Generations that do not count down by one.
    #[error("generation is {seen}, expected {expected} from the manifest after it")]
    Generation {
        /// Of this manifest.
        seen: u64,
        /// One less than that of its child.
        expected: u64,
    },
    /// A manifest that continues another one than the one before it.
    #[error("manifest continues {}, expected {}", id_or_none(.seen), id_or_none(.expected))]
    Previous {
        /// In the header.
        seen: Option<ContentId>,
        /// The manifest before.
        expected: Option<ContentId>,
    },
    /// Generation 0 must introduce the first policy.
    #[error("first manifest must be a policy transition that introduces a policy")]
    GenesisPolicy,
    /// Generation 0 must be empty.
    #[error("first manifest must have no refs and no packs")]
    GenesisContent,
    /// Pack counts that do not add up.
    #[error("total pack count is {seen}, expected {expected}")]
    PackCount {
        /// In the sealed header.
        seen: u64,
        /// That of the parent and the new packs.
        expected: u64,
    },
    /// A pack that an earlier generation brought.
    #[error("manifest delta reuses previously imported pack ID {0}")]
    PackReused(ContentId),
    /// A writer's manifest with a policy.
    #[error("a writer's manifest must not introduce a policy")]
    WriterPolicy,
    /// A manifest under another policy than the one in force.
    #[error(
        "manifest names policy {seen} (policy generation {seen_generation}), expected {expected} (policy generation {expected_generation})"
    )]
    PolicyId {
        /// In the sealed header.
        seen: ContentId,
        /// In the sealed header.
        seen_generation: u64,
        /// Of the policy in force.
        expected: ContentId,
        /// Of the policy in force.
        expected_generation: u64,
    },
    /// A policy transition without a policy.
    #[error("policy transition does not introduce a policy")]
    TransitionWithoutPolicy,
    /// A policy transition that does more than that.
    #[error("policy transition must not change refs or add packs")]
    TransitionContent,
    /// A policy that may not follow.
    #[error(transparent)]
    Policy(policy::Error),
    /// Reserved by the format.
    #[error("checkpoint transitions are reserved but not implemented")]
    Checkpoint,
    /// A signer without the right to write.
    #[error("signer {0} is not an active writer")]
    SignerNotWriter(DeviceId),
    /// A signer without the right to administer.
    #[error("signer {0} is not an active administrator")]
    SignerNotAdministrator(DeviceId),
    /// Envelopes out of order.
    #[error("generation envelopes are not in strictly increasing order")]
    EnvelopeOrder,
    /// A link that does not hold the key of the manifest before.
    #[error("predecessor link does not hold the key of the manifest before")]
    LinkKey,
    /// A signature by somebody else, or over something else.
    #[error("signature verification failed for signer {0}")]
    Signature(DeviceId),
    /// An audit that lists other devices than the active readers, or lists one twice, or is of another length.
    #[error("envelope audit must match active readers exactly: {0}")]
    Audit(String),
    /// An envelope with another content than the audit says.
    #[error("generation envelope does not match its sealed audit entry for device {0}")]
    Envelope(DeviceId),
}

fn id_or_none(id: &Option<ContentId>) -> String {
    id.map_or_else(|| "nothing".to_owned(), |id| id.to_string())
}
