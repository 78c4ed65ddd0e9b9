//! Policies: which devices may read, write and administer a repository. Each is signed by an administrator of the
//! one before, down to the first, which the founding device signs itself.

use serde::{Deserialize, Serialize};

use super::FORMAT_VERSION;
use super::crypto;
use super::encoding::{base64_array, base64_bytes, compact_json, domain};
use super::ids::{ContentId, DeviceId, RepositoryRoot};
use super::keys::{self, DeviceKey, PublicDevice};

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
    fn new(public: &PublicDevice, roles: Roles) -> Self {
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

    fn same_identity(&self, other: &Self) -> bool {
        self.repository_root == other.repository_root
            && self.device_id == other.device_id
            && self.signing_public_key == other.signing_public_key
            && self.wrapping_public_key == other.wrapping_public_key
    }
}

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

/// One change of membership.
#[derive(Debug, Clone)]
pub enum Change {
    /// A new device joins.
    Add {
        /// Its record.
        device: PublicDevice,
        /// Its role.
        role: Role,
    },
    /// A device loses all rights, for good.
    Revoke(DeviceId),
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

    /// The first policy of a repository: the founding device, with every right.
    pub fn genesis(founder: &DeviceKey) -> Result<Self, Error> {
        let devices = vec![Device::new(founder.public(), Role::Admin.into())];
        let policy = Self::sign(founder, *founder.root(), 0, None, devices)?;
        policy.verify_genesis()?;
        Ok(policy)
    }

    /// The next policy, signed by an administrator of this one.
    ///
    /// All changes happen together, so a device can be replaced in one step.
    pub fn transition(&self, administrator: &DeviceKey, changes: &[Change]) -> Result<Self, Error> {
        if !self
            .device(administrator.id())
            .is_some_and(Device::is_active_administrator)
        {
            return Err(Error::NotAdministrator(*administrator.id()));
        }
        let generation = self.generation().checked_add(1).ok_or(Error::Exhausted)?;
        let mut devices = self.body.devices.clone();
        for change in changes {
            match change {
                Change::Add { device, role } => {
                    if devices.iter().any(|known| known.device_id == device.device_id) {
                        return Err(Error::DeviceExists(device.device_id));
                    }
                    devices.push(Device::new(device, (*role).into()));
                }
                Change::Revoke(id) => {
                    let device = devices
                        .iter_mut()
                        .find(|device| device.device_id == *id && device.is_active());
                    device.ok_or(Error::DeviceNotActive(*id))?.revoked_at = Some(generation);
                }
            }
        }
        if !devices.iter().any(Device::is_active_reader) {
            return Err(Error::LastReader);
        }
        if !devices.iter().any(Device::is_active_administrator) {
            return Err(Error::LastAdministrator);
        }
        devices.sort_by_key(|device| device.device_id);
        let policy = Self::sign(administrator, *self.root(), generation, Some(self.id), devices)?;
        policy.verify_successor(self)?;
        Ok(policy)
    }

    fn sign(
        signer: &DeviceKey,
        repository_root: RepositoryRoot,
        generation: u64,
        previous: Option<ContentId>,
        devices: Vec<Device>,
    ) -> Result<Self, Error> {
        let format_version = u64::from(FORMAT_VERSION);
        let body = compact_json(&Body {
            format_version,
            repository_root,
            generation,
            previous,
            admin_threshold: 1,
            devices,
        });
        let signature = signer.sign(domain::POLICY_SIGNATURE, &crypto::digest_of(&[&body]));
        let signatures = vec![ObjectSignature {
            device_id: *signer.id(),
            signature,
        }];
        // Read back, so that nothing is published that a reader would refuse.
        Self::parse(&compact_json(&Object { body, signatures }))
    }

    /// Checks that this policy can begin a repository.
    pub fn verify_genesis(&self) -> Result<(), Error> {
        if self.body.generation != 0 {
            return Err(Error::Generation {
                seen: self.body.generation,
                expected: 0,
            });
        }
        if self.body.previous.is_some() {
            return Err(Error::Genesis("it names a policy before it"));
        }
        let [founder] = self.body.devices.as_slice() else {
            return Err(Error::Genesis("it must list exactly one device"));
        };
        if !(founder.is_active_writer() && founder.is_active_administrator()) {
            return Err(Error::Genesis("its device must be active and have every role"));
        }
        if keys::repository_root(&founder.signing_public_key, &founder.wrapping_public_key) != *self.root() {
            return Err(Error::Genesis(
                "its device's keys are not those that the repository root names",
            ));
        }
        self.verify_signature(self)
    }

    /// Checks that this policy may replace `parent`.
    pub fn verify_successor(&self, parent: &Self) -> Result<(), Error> {
        if self.root() != parent.root() {
            let (seen, expected) = (*self.root(), *parent.root());
            return Err(Error::ForeignRoot {
                what: "policy".into(),
                seen,
                expected,
            });
        }
        let expected = parent.generation().checked_add(1).ok_or(Error::Exhausted)?;
        if self.generation() != expected {
            return Err(Error::Generation {
                seen: self.generation(),
                expected,
            });
        }
        if self.body.previous != Some(parent.id) {
            return Err(Error::Previous {
                seen: self.body.previous,
                expected: parent.id,
            });
        }
        let by_id: std::collections::HashMap<_, _> = self
            .body
            .devices
            .iter()
            .map(|device| (device.device_id, device))
            .collect();
        for before in &parent.body.devices {
            match by_id.get(&before.device_id) {
                Some(now) if now.same_identity(before) => {
                    if before.revoked_at.is_some() && now.revoked_at != before.revoked_at {
                        return Err(Error::RevocationAltered(before.device_id));
                    }
                }
                _ => return Err(Error::DeviceAltered(before.device_id)),
            }
        }
        for now in &self.body.devices {
            let known_revoked = || {
                parent
                    .device(&now.device_id)
                    .is_some_and(|before| before.revoked_at.is_some())
            };
            if let Some(seen) = now.revoked_at
                && seen != expected
                && !known_revoked()
            {
                return Err(Error::RevocationGeneration {
                    device: now.device_id,
                    seen,
                    expected,
                });
            }
        }
        self.verify_signature(parent)
    }

    /// Checks the one signature against an administrator of `authority`.
    fn verify_signature(&self, authority: &Self) -> Result<(), Error> {
        let administrator = authority
            .device(&self.signer)
            .filter(|device| device.is_active_administrator())
            .ok_or(Error::SignerNotAdministrator(self.signer))?;
        let public = &administrator.signing_public_key;
        if !crypto::verify(
            public,
            domain::POLICY_SIGNATURE,
            &self.signed_digest,
            &self.signature,
        ) {
            return Err(Error::Signature(self.signer));
        }
        Ok(())
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
