//! Devices and what they may do.

use serde::{Deserialize, Serialize};

use super::super::encoding::base64_array;
use super::super::ids::{DeviceId, RepositoryRoot};
use super::super::keys::PublicDevice;

/// What a device may do. The three flags of the format, in the combinations that the command line offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Fetch.
    Read,
    /// Fetch and push.
    Write,
    /// Fetch, push, and decide who else may.
    Admin,
}

impl Role {
    /// The word used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The three rights of a device. Whoever writes or administers also reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    /// May open manifests and packs.
    pub reader: bool,
    /// May publish refs and packs.
    pub writer: bool,
    /// May publish policies.
    pub administrator: bool,
}

impl From<Role> for Roles {
    fn from(role: Role) -> Self {
        Self {
            reader: true,
            writer: role >= Role::Write,
            administrator: role >= Role::Admin,
        }
    }
}

impl Roles {
    /// The highest role, for lists. `None` if there is no right at all.
    pub fn highest(self) -> Option<Role> {
        match self {
            Self {
                administrator: true, ..
            } => Some(Role::Admin),
            Self { writer: true, .. } => Some(Role::Write),
            Self { reader: true, .. } => Some(Role::Read),
            _ => None,
        }
    }
}

/// A device in a policy. Devices are never taken out, only revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Root of the repository it belongs to.
    pub repository_root: RepositoryRoot,
    /// Its name.
    pub device_id: DeviceId,
    /// Ed25519 public key.
    #[serde(with = "base64_array")]
    pub signing_public_key: [u8; 32],
    /// X25519 public key.
    #[serde(with = "base64_array")]
    pub wrapping_public_key: [u8; 32],
    /// Its rights, while it is active.
    pub roles: Roles,
    /// Policy generation that revoked it.
    pub revoked_at: Option<u64>,
}

impl Device {
    pub(super) fn new(public: &PublicDevice, roles: Roles) -> Self {
        Self {
            repository_root: public.repository_root,
            device_id: public.device_id,
            signing_public_key: public.signing_public_key,
            wrapping_public_key: public.wrapping_public_key,
            roles,
            revoked_at: None,
        }
    }

    /// Whether it is not revoked.
    pub fn is_active(&self) -> bool {
        self.revoked_at.is_none()
    }

    /// Whether it may open what is published under this policy.
    pub fn is_active_reader(&self) -> bool {
        self.is_active() && self.roles.reader
    }

    /// Whether it may publish under this policy.
    pub fn is_active_writer(&self) -> bool {
        self.is_active() && self.roles.writer
    }

    /// Whether it may replace this policy.
    pub fn is_active_administrator(&self) -> bool {
        self.is_active() && self.roles.administrator
    }

    pub(super) fn same_identity(&self, other: &Self) -> bool {
        self.repository_root == other.repository_root
            && self.device_id == other.device_id
            && self.signing_public_key == other.signing_public_key
            && self.wrapping_public_key == other.wrapping_public_key
    }
}
