//! Making policies: the first, and the one after this.

use std::collections::HashSet;

use super::super::FORMAT_VERSION;
use super::super::crypto;
use super::super::encoding::{compact_json, domain};
use super::super::ids::{ContentId, DeviceId, RepositoryRoot};
use super::super::keys::{DeviceKey, PublicDevice};
use super::{Body, Device, Error, Object, ObjectSignature, Policy, Role};

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
    /// An active device gets another role.
    Role {
        /// Which.
        device: DeviceId,
        /// Its role from now on.
        role: Role,
    },
}

impl Change {
    /// The device that it is about.
    pub fn device(&self) -> &DeviceId {
        match self {
            Self::Add { device, .. } => &device.device_id,
            Self::Revoke(id) => id,
            Self::Role { device, .. } => device,
        }
    }
}

impl Policy {
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
        let mut changed = HashSet::with_capacity(changes.len());
        for change in changes {
            if !changed.insert(*change.device()) {
                return Err(Error::ChangedTwice(*change.device()));
            }
            match change {
                Change::Add { device, role } => {
                    if devices.iter().any(|known| known.device_id == device.device_id) {
                        return Err(Error::DeviceExists(device.device_id));
                    }
                    devices.push(Device::new(device, (*role).into()));
                }
                Change::Revoke(id) => active(&mut devices, id)?.revoked_at = Some(generation),
                Change::Role { device, role } => active(&mut devices, device)?.roles = (*role).into(),
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

    /// Those of `changes` that would change anything: a device that has the wanted role already is left alone.
    pub fn effective(&self, changes: &[Change]) -> Vec<Change> {
        let idle = |change: &&Change| match change {
            Change::Role { device, role } => self
                .device(device)
                .is_some_and(|device| device.is_active() && device.roles == (*role).into()),
            _ => false,
        };
        changes.iter().filter(|change| !idle(change)).cloned().collect()
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
}

fn active<'a>(devices: &'a mut [Device], id: &DeviceId) -> Result<&'a mut Device, Error> {
    devices
        .iter_mut()
        .find(|device| device.device_id == *id && device.is_active())
        .ok_or(Error::DeviceNotActive(*id))
}
