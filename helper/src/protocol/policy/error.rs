//! Why a policy was refused.

use super::super::FORMAT_VERSION;
use super::super::ids::{ContentId, DeviceId, RepositoryRoot};

/// Why a policy was refused, or could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a policy document.
    #[error("malformed policy {part}: {source}")]
    Malformed {
        /// "object" or "body".
        part: &'static str,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// A policy of another version.
    #[error("unsupported policy format {0}; this program reads format {FORMAT_VERSION}")]
    UnsupportedFormat(u64),
    /// A threshold other than one administrator.
    #[error("unsupported policy: admin threshold is {0}, expected 1")]
    Threshold(u64),
    /// The policy or a device in it belongs elsewhere.
    #[error("{what} belongs to repository {seen}, expected {expected}")]
    ForeignRoot {
        /// "policy", or which device.
        what: String,
        /// The root it names.
        seen: RepositoryRoot,
        /// The root of this repository.
        expected: RepositoryRoot,
    },
    /// An id that is not that of the keys beside it.
    #[error("policy device {claimed} has the keys of device {computed}")]
    DeviceIdMismatch {
        /// The id in the policy.
        claimed: DeviceId,
        /// The id of the keys.
        computed: DeviceId,
    },
    /// The same device twice.
    #[error("device {0} is listed twice in the policy")]
    DuplicateDevice(DeviceId),
    /// Writer or administrator, but not reader.
    #[error("device {0} may write or administer but not read")]
    RolesWithoutReader(DeviceId),
    /// Nobody could read what is published.
    #[error("policy has no active reader")]
    NoReader,
    /// Nobody could change it again.
    #[error("policy has no active administrator")]
    NoAdministrator,
    /// Exactly one signature is expected.
    #[error("policy has {0} signatures, expected exactly 1")]
    SignatureCount(usize),
    /// A signature by a device that has no right to sign this policy.
    #[error("policy is signed by {0}, which is not an active administrator")]
    SignerNotAdministrator(DeviceId),
    /// A signature that does not verify.
    #[error("policy signature verification failed for device {0}")]
    Signature(DeviceId),
    /// A first policy that is not one.
    #[error("first policy of the repository is invalid: {0}")]
    Genesis(&'static str),
    /// The generation does not follow the one before.
    #[error("policy generation is {seen}, expected {expected}")]
    Generation {
        /// In the policy.
        seen: u64,
        /// One more than its parent's.
        expected: u64,
    },
    /// The parent is another policy.
    #[error("policy continues {}, expected {expected}", .seen.map_or_else(|| "nothing".to_owned(), |id| id.to_string()))]
    Previous {
        /// In the policy.
        seen: Option<ContentId>,
        /// The policy in force.
        expected: ContentId,
    },
    /// A device of the parent is gone, or its keys differ.
    #[error("policy drops or alters device {0} of the policy before")]
    DeviceAltered(DeviceId),
    /// A revocation undone or redated.
    #[error("policy changes the revocation of device {0}")]
    RevocationAltered(DeviceId),
    /// A revocation dated elsewhere than now.
    #[error("policy revokes device {device} as of policy generation {seen}, expected {expected}")]
    RevocationGeneration {
        /// The device.
        device: DeviceId,
        /// In the policy.
        seen: u64,
        /// The generation of that policy.
        expected: u64,
    },
    /// A device to add is known already, possibly revoked: a revoked device needs new keys to come back.
    #[error("device already exists in policy: {0}")]
    DeviceExists(DeviceId),
    /// A device to change is unknown or revoked.
    #[error("device is not active in the current policy: {0}")]
    DeviceNotActive(DeviceId),
    /// Two changes of one device at once contradict each other, or say the same twice.
    #[error("device is changed twice at once: {0}")]
    ChangedTwice(DeviceId),
    /// Refused, since nobody could read afterwards.
    #[error("cannot revoke the last active reader")]
    LastReader,
    /// Refused, since nobody could administer afterwards.
    #[error("cannot revoke the last active administrator")]
    LastAdministrator,
    /// The key at hand may not change the policy.
    #[error("device is not an active administrator: {0}")]
    NotAdministrator(DeviceId),
    /// The counter is used up.
    #[error("policy generation counter is exhausted")]
    Exhausted,
}
