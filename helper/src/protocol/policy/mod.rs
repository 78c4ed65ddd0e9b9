//! Policies: which devices may read, write and administer a repository. Each is signed by an administrator of the
//! one before, down to the first, which the founding device signs itself.

mod change;
mod device;
mod error;
mod succession;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::FORMAT_VERSION;
use super::crypto;
use super::encoding::{base64_array, base64_bytes};
use super::ids::{ContentId, DeviceId, RepositoryRoot};
use super::keys;

pub use change::Change;
pub use device::{Device, Role, Roles};
pub use error::Error;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    #[serde(with = "base64_bytes")]
    body: Vec<u8>,
    signatures: Vec<ObjectSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectSignature {
    device_id: DeviceId,
    #[serde(with = "base64_array")]
    signature: [u8; 64],
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    format_version: u64,
    repository_root: RepositoryRoot,
    generation: u64,
    previous: Option<ContentId>,
    admin_threshold: u64,
    devices: Vec<Device>,
}

/// A policy that holds in itself: its devices are consistent, and somebody can read and administer. That it may
/// follow another, or begin a repository, is shown by [`Policy::verify_successor`] or [`Policy::verify_genesis`].
#[derive(Debug, Clone)]
pub struct Policy {
    id: ContentId,
    object: Vec<u8>,
    body: Body,
    signed_digest: [u8; 32],
    signer: DeviceId,
    signature: [u8; 64],
}

impl Policy {
    /// Reads a policy object and checks everything that does not depend on the policy before.
    pub fn parse(object: &[u8]) -> Result<Self, Error> {
        let parsed: Object = serde_json::from_slice(object).map_err(|source| Error::Malformed {
            part: "object",
            source,
        })?;
        let body: Body =
            serde_json::from_slice(&parsed.body).map_err(|source| {
                match keys::claimed_version(&parsed.body) {
                    Some(version) if version != u64::from(FORMAT_VERSION) => {
                        Error::UnsupportedFormat(version)
                    }
                    _ => Error::Malformed { part: "body", source },
                }
            })?;
        if body.format_version != u64::from(FORMAT_VERSION) {
            return Err(Error::UnsupportedFormat(body.format_version));
        }
        body.check()?;
        let [ObjectSignature { device_id, signature }] = parsed.signatures.as_slice() else {
            return Err(Error::SignatureCount(parsed.signatures.len()));
        };
        Ok(Self {
            id: ContentId::of(object),
            object: object.to_vec(),
            signed_digest: crypto::digest_of(&[&parsed.body]),
            signer: *device_id,
            signature: *signature,
            body,
        })
    }

    /// Its name: the SHA-256 of the object.
    pub fn id(&self) -> &ContentId {
        &self.id
    }

    /// The exact bytes, as a manifest introduces them.
    pub fn object(&self) -> &[u8] {
        &self.object
    }

    /// The repository it governs.
    pub fn root(&self) -> &RepositoryRoot {
        &self.body.repository_root
    }

    /// Number of membership changes before it.
    pub fn generation(&self) -> u64 {
        self.body.generation
    }

    /// The policy before it; `None` for the first.
    pub fn previous(&self) -> Option<&ContentId> {
        self.body.previous.as_ref()
    }

    /// The administrator who signed it.
    pub fn signer(&self) -> &DeviceId {
        &self.signer
    }

    /// All devices, the revoked ones included.
    pub fn devices(&self) -> &[Device] {
        &self.body.devices
    }

    /// A device by its name.
    pub fn device(&self, id: &DeviceId) -> Option<&Device> {
        self.body.devices.iter().find(|device| device.device_id == *id)
    }

    /// The devices that get an envelope.
    pub fn active_readers(&self) -> impl Iterator<Item = &Device> {
        self.body
            .devices
            .iter()
            .filter(|device| device.is_active_reader())
    }
}

impl Body {
    fn check(&self) -> Result<(), Error> {
        if self.admin_threshold != 1 {
            return Err(Error::Threshold(self.admin_threshold));
        }
        let mut seen_ids = std::collections::HashSet::with_capacity(self.devices.len());
        for device in &self.devices {
            let id = device.device_id;
            if device.repository_root != self.repository_root {
                let (seen, expected) = (device.repository_root, self.repository_root);
                return Err(Error::ForeignRoot {
                    what: format!("device {id}"),
                    seen,
                    expected,
                });
            }
            let computed = keys::device_id(&device.signing_public_key, &device.wrapping_public_key);
            if computed != id {
                return Err(Error::DeviceIdMismatch {
                    claimed: id,
                    computed,
                });
            }
            if !seen_ids.insert(id) {
                return Err(Error::DuplicateDevice(id));
            }
            if !device.roles.reader && (device.roles.writer || device.roles.administrator) {
                return Err(Error::RolesWithoutReader(id));
            }
        }
        if !self.devices.iter().any(Device::is_active_reader) {
            return Err(Error::NoReader);
        }
        if !self.devices.iter().any(Device::is_active_administrator) {
            return Err(Error::NoAdministrator);
        }
        Ok(())
    }
}
