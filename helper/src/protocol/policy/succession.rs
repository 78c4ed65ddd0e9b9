//! Which policy may begin a repository, and which may follow another.

use std::collections::HashMap;

use super::super::crypto;
use super::super::encoding::domain;
use super::super::keys;
use super::{Error, Policy};

impl Policy {
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
        let by_id: HashMap<_, _> = self
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
}
