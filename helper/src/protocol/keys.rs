//! Devices: the private keys of one's own, the public record of any, and the names derived from them.

use std::fmt;

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::crypto::{self, RandomUnavailable, Secret};
use super::encoding::{base64_array, domain};
use super::envelope;
pub use super::ids::{DeviceId, RepositoryRoot};

/// Version of the private key file.
pub const KEY_FORMAT_VERSION: u32 = 3;

/// Why a key or a public record was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key file of another version.
    #[error("unsupported key file format {0}; this program reads format {KEY_FORMAT_VERSION}")]
    UnsupportedFormat(u64),
    /// Not a key file.
    #[error("not a device key: {0}")]
    MalformedKey(#[source] serde_json::Error),
    /// Not a public device record.
    #[error("not a public device record: {0}")]
    MalformedRecord(#[source] serde_json::Error),
    /// The id in a record is not that of its keys.
    #[error("device id {claimed} does not belong to the public keys beside it, whose id is {computed}")]
    IdMismatch {
        /// The id in the record.
        claimed: DeviceId,
        /// The id of the keys.
        computed: DeviceId,
    },
    /// A public key on which nothing secure can be built.
    #[error("the {which} key of device {device} is weak or malformed")]
    WeakKey {
        /// "signing" or "wrapping".
        which: &'static str,
        /// The device.
        device: DeviceId,
    },
    /// See [`RandomUnavailable`].
    #[error(transparent)]
    Random(#[from] RandomUnavailable),
}

/// The public half of a device, as handed to an administrator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicDevice {
    /// The repository for which the device was made.
    pub repository_root: RepositoryRoot,
    /// Name of the device.
    pub device_id: DeviceId,
    /// Ed25519 public key.
    #[serde(with = "base64_array")]
    pub signing_public_key: [u8; 32],
    /// X25519 public key.
    #[serde(with = "base64_array")]
    pub wrapping_public_key: [u8; 32],
}

impl PublicDevice {
    /// Reads a record and checks that its id belongs to its keys and that both keys are usable.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let device: Self = serde_json::from_slice(json).map_err(Error::MalformedRecord)?;
        let computed = device_id(&device.signing_public_key, &device.wrapping_public_key);
        if computed != device.device_id {
            return Err(Error::IdMismatch {
                claimed: device.device_id,
                computed,
            });
        }
        if !crypto::is_strong_signing_key(&device.signing_public_key) {
            return Err(Error::WeakKey {
                which: "signing",
                device: computed,
            });
        }
        if !envelope::is_usable_wrapping_key(&device.wrapping_public_key) {
            return Err(Error::WeakKey {
                which: "wrapping",
                device: computed,
            });
        }
        Ok(device)
    }

    /// Whether it was made as the first device of a repository, or before it knew to which it would belong.
    pub fn is_founder(&self) -> bool {
        repository_root(&self.signing_public_key, &self.wrapping_public_key) == self.repository_root
    }

    /// The record as it is written to a file: indented JSON without a line end.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("plain fields are always serialisable")
    }
}

/// A device's private keys, and the repository they are for. Overwritten in memory when dropped.
#[derive(Clone)]
pub struct DeviceKey {
    public: PublicDevice,
    signing: Secret,
    wrapping: Secret,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    format_version: u64,
    repository_root: RepositoryRoot,
    signing_private_key: Secret,
    wrapping_private_key: Secret,
}

impl DeviceKey {
    /// Makes a new device: for an existing repository, or the first of a new one, which gives that its root.
    pub fn generate(root: Option<RepositoryRoot>) -> Result<Self, Error> {
        Ok(Self::from_secrets(root, Secret::generate()?, Secret::generate()?))
    }

    pub(crate) fn from_secrets(root: Option<RepositoryRoot>, signing: Secret, wrapping: Secret) -> Self {
        let signing_public_key = crypto::signing_public(&signing);
        let wrapping_public_key = envelope::wrapping_public(&wrapping);
        let repository_root =
            root.unwrap_or_else(|| repository_root(&signing_public_key, &wrapping_public_key));
        let device_id = device_id(&signing_public_key, &wrapping_public_key);
        let public = PublicDevice {
            repository_root,
            device_id,
            signing_public_key,
            wrapping_public_key,
        };
        Self {
            public,
            signing,
            wrapping,
        }
    }

    /// The same keys for another repository: a device that was made before it knew where it would belong.
    pub fn with_root(&self, root: RepositoryRoot) -> Self {
        let mut key = self.clone();
        key.public.repository_root = root;
        key
    }

    /// Reads the content of a key file.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let file: KeyFile = serde_json::from_slice(json).map_err(|error| match claimed_version(json) {
            Some(version) if version != u64::from(KEY_FORMAT_VERSION) => Error::UnsupportedFormat(version),
            _ => Error::MalformedKey(error),
        })?;
        if file.format_version != u64::from(KEY_FORMAT_VERSION) {
            return Err(Error::UnsupportedFormat(file.format_version));
        }
        Ok(Self::from_secrets(
            Some(file.repository_root),
            file.signing_private_key,
            file.wrapping_private_key,
        ))
    }

    /// The content of the key file: indented JSON without a line end.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        // Written by hand into a buffer that never grows, for a buffer that grows leaves the keys behind.
        let mut json = Zeroizing::new(Vec::with_capacity(512));
        json.extend_from_slice(b"{\n  \"format_version\": ");
        json.extend_from_slice(KEY_FORMAT_VERSION.to_string().as_bytes());
        json.extend_from_slice(b",\n  \"repository_root\": \"");
        json.extend_from_slice(self.root().to_hex().as_bytes());
        for (field, secret) in [
            ("signing_private_key", &self.signing),
            ("wrapping_private_key", &self.wrapping),
        ] {
            let text = Zeroizing::new(BASE64.encode(secret.expose()));
            json.extend_from_slice(b"\",\n  \"");
            json.extend_from_slice(field.as_bytes());
            json.extend_from_slice(b"\": \"");
            json.extend_from_slice(text.as_bytes());
        }
        json.extend_from_slice(b"\"\n}");
        json
    }

    /// The public record of this device.
    pub fn public(&self) -> &PublicDevice {
        &self.public
    }

    /// The name of this device.
    pub fn id(&self) -> &DeviceId {
        &self.public.device_id
    }

    /// The repository this key is for.
    pub fn root(&self) -> &RepositoryRoot {
        &self.public.repository_root
    }

    /// Whether this is the device with which its repository begins.
    pub fn is_founder(&self) -> bool {
        self.public.is_founder()
    }

    pub(crate) fn sign(&self, domain: &[u8], digest: &[u8; 32]) -> [u8; 64] {
        crypto::sign(&self.signing, domain, digest)
    }

    pub(crate) fn signing(&self) -> &Secret {
        &self.signing
    }

    pub(crate) fn wrapping(&self) -> &Secret {
        &self.wrapping
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceKey")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// The `format_version` of a document that could not be read, if it has one: a newer format should be called that,
/// and not malformed.
pub(crate) fn claimed_version(json: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Versioned {
        format_version: u64,
    }
    serde_json::from_slice::<Versioned>(json)
        .ok()
        .map(|document| document.format_version)
}

pub(crate) fn device_id(signing_public: &[u8; 32], wrapping_public: &[u8; 32]) -> DeviceId {
    DeviceId::from_bytes(name(domain::DEVICE_ID, signing_public, wrapping_public))
}

pub(crate) fn repository_root(signing_public: &[u8; 32], wrapping_public: &[u8; 32]) -> RepositoryRoot {
    RepositoryRoot::from_bytes(name(domain::REPOSITORY_ROOT, signing_public, wrapping_public))
}

fn name(domain: &[u8], signing_public: &[u8; 32], wrapping_public: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(domain);
    hash.update(signing_public);
    hash.update(wrapping_public);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_files_round_trip_and_are_checked() {
        let key = DeviceKey::generate(None).expect("random bytes");
        assert!(key.is_founder());
        let json = key.to_json();
        let again = DeviceKey::parse(&json).expect("own file");
        assert_eq!(again.public(), key.public());
        assert_eq!(again.to_json(), json);

        let guest = DeviceKey::generate(Some(*key.root())).expect("random bytes");
        assert!(!guest.is_founder());
        assert_eq!(
            DeviceKey::parse(&guest.to_json()).expect("own file").root(),
            key.root()
        );

        let text = String::from_utf8(json.to_vec()).expect("JSON is text");
        let newer = text.replace("\"format_version\": 3", "\"format_version\": 4, \"x\": 1");
        assert!(matches!(
            DeviceKey::parse(newer.as_bytes()),
            Err(Error::UnsupportedFormat(4))
        ));
        let unknown = text.replace("\"format_version\": 3", "\"format_version\": 3, \"x\": 1");
        assert!(matches!(
            DeviceKey::parse(unknown.as_bytes()),
            Err(Error::MalformedKey(_))
        ));
        let twice = text.replace(
            "\"format_version\": 3",
            "\"format_version\": 3, \"format_version\": 3",
        );
        assert!(matches!(
            DeviceKey::parse(twice.as_bytes()),
            Err(Error::MalformedKey(_))
        ));
    }

    #[test]
    fn private_keys_are_not_shown() {
        let key = DeviceKey::generate(None).expect("random bytes");
        let shown = format!("{key:?}");
        for secret in [&key.signing, &key.wrapping] {
            assert!(!shown.contains(&BASE64.encode(secret.expose())));
        }
        assert!(shown.contains(&key.id().to_string()));
    }

    #[test]
    fn public_records_are_checked() {
        let device = DeviceKey::generate(None).expect("random bytes").public().clone();
        assert_eq!(
            PublicDevice::parse(&device.to_json()).ok().as_ref(),
            Some(&device)
        );

        let other = DeviceKey::generate(None).expect("random bytes").public().clone();
        let swapped = PublicDevice {
            device_id: other.device_id,
            ..device.clone()
        };
        assert!(matches!(
            PublicDevice::parse(&swapped.to_json()),
            Err(Error::IdMismatch { .. })
        ));

        let mut weak = PublicDevice {
            wrapping_public_key: [0; 32],
            ..device
        };
        weak.device_id = device_id(&weak.signing_public_key, &weak.wrapping_public_key);
        assert!(matches!(
            PublicDevice::parse(&weak.to_json()),
            Err(Error::WeakKey {
                which: "wrapping",
                ..
            })
        ));
    }
}
