//! What happened in a store, and who could read it.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::{Error, Remote, View};
use crate::protocol::chain::{Chain, Generation};
use crate::protocol::policy::{Policy, Roles};
use crate::protocol::{ContentId, DeviceId};

/// What a change of membership did to one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// It joined.
    Added(DeviceId, Roles),
    /// It lost all rights.
    Revoked(DeviceId),
    /// It got other rights: before, after.
    Changed(DeviceId, Roles, Roles),
}

/// What a generation did to the membership; nothing for a push.
pub fn membership(chain: &Chain, generation: &Generation) -> Vec<Membership> {
    let now = generation.policy();
    let before = generation
        .number()
        .checked_sub(1)
        .and_then(|number| chain.generation(number));
    match before {
        Some(before) if before.policy().id() == now.id() => Vec::new(),
        before => differences(before.map(|before| &**before.policy()), now),
    }
}

fn differences(before: Option<&Policy>, now: &Policy) -> Vec<Membership> {
    let known: BTreeMap<_, _> = before
        .map(Policy::devices)
        .unwrap_or_default()
        .iter()
        .map(|device| (device.device_id, device))
        .collect();
    let mut all = Vec::new();
    for device in now.devices() {
        let id = device.device_id;
        match known.get(&id) {
            None => {
                all.push(Membership::Added(id, device.roles));
                if !device.is_active() {
                    all.push(Membership::Revoked(id));
                }
            }
            Some(old) if old.is_active() && !device.is_active() => all.push(Membership::Revoked(id)),
            Some(old) if old.roles != device.roles => {
                all.push(Membership::Changed(id, old.roles, device.roles));
            }
            Some(_) => {}
        }
    }
    all
}

/// Generations under one policy, and who got their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The first generation.
    pub first: u64,
    /// The last one so far.
    pub last: u64,
    /// The policy.
    pub policy: ContentId,
    /// Its generation.
    pub policy_generation: u64,
    /// The devices that were given the keys, with their rights.
    pub readers: Vec<(DeviceId, Roles)>,
}

/// What one device could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The device.
    pub device: DeviceId,
    /// The first generation whose key it was given.
    pub since: u64,
    /// The last one. Each generation leads to the keys of all before it, so it could open everything up to here.
    pub until: u64,
    /// Whether that is the newest generation.
    pub active: bool,
}

/// Who could read what: by generation, and by device.
pub fn audit(chain: &Chain) -> (Vec<Period>, Vec<Access>) {
    let mut periods: Vec<Period> = Vec::new();
    for generation in chain.generations() {
        let policy = generation.policy();
        match periods.last_mut() {
            Some(period) if period.policy == *policy.id() => period.last = generation.number(),
            _ => periods.push(Period {
                first: generation.number(),
                last: generation.number(),
                policy: *policy.id(),
                policy_generation: policy.generation(),
                readers: policy
                    .active_readers()
                    .map(|device| (device.device_id, device.roles))
                    .collect(),
            }),
        }
    }
    let newest = chain.head().number();
    let mut devices: BTreeMap<DeviceId, Access> = BTreeMap::new();
    for period in &periods {
        for (device, _) in &period.readers {
            let access = devices.entry(*device).or_insert(Access {
                device: *device,
                since: period.first,
                until: period.last,
                active: false,
            });
            access.until = period.last;
            access.active = period.last == newest;
        }
    }
    (periods, devices.into_values().collect())
}

/// What storage says of a manifest.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    /// Its bytes.
    pub bytes: u64,
    /// When it was stored, where storage knows. Nothing vouches for it.
    pub time: Option<SystemTime>,
}

impl Remote<'_> {
    /// The store with all its generations, verified and compared with what is remembered.
    pub fn history(&self) -> Result<View, Error> {
        Ok(self.look_whole()?.0)
    }

    /// What storage says of one of the manifests.
    pub fn stored(&self, id: &ContentId) -> Result<Stored, Error> {
        Ok(Stored {
            bytes: self.storage.manifest(id)?.len() as u64,
            time: self.storage.manifest_time(id),
        })
    }
}
