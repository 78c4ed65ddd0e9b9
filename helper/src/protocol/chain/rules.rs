//! Second pass: the rules of the chain, oldest generation first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::super::crypto::{self, GenerationKey};
use super::super::encoding::domain;
use super::super::envelope::{self, AuditEntry, Envelope, Scope};
use super::super::ids::{ContentId, DeviceId, Digest, RepositoryRoot};
use super::super::manifest::{Authorization, Opened};
use super::super::policy::{Device, Policy};
use super::read::Unverified;
use super::{Error, Generation, Known, Rule};

/// Where the verified part of a chain ends: all that the next manifest is judged by.
#[derive(Default)]
pub(super) struct Tip {
    /// `None` before generation 0.
    head: Option<Head>,
    /// Packs of the manifests that were followed.
    pack_ids: HashSet<ContentId>,
    /// What was verified before them.
    since: Option<Arc<Known>>,
}

struct Head {
    id: ContentId,
    number: u64,
    root: RepositoryRoot,
    policy: Arc<Policy>,
    total_packs: u64,
}

/// What remains to be proved of a manifest that keeps all other rules: that its signer signed it, and that every
/// reader was given its key.
pub(super) struct Claim {
    id: ContentId,
    number: u64,
    root: RepositoryRoot,
    commitment: Digest,
    policy: Arc<Policy>,
    signer: DeviceId,
    signer_public: [u8; 32],
    signed_digest: [u8; 32],
    signature: [u8; 64],
    envelopes: Vec<Envelope>,
    audit: Vec<AuditEntry>,
    key: GenerationKey,
}

impl Tip {
    /// The tip of a verified chain.
    pub(super) fn of(chain: &super::Chain) -> Self {
        let head = chain.head();
        let head = Head {
            id: head.id,
            number: head.number,
            root: chain.root,
            policy: Arc::clone(&head.policy),
            total_packs: head.total_packs,
        };
        Self {
            head: Some(head),
            pack_ids: chain.pack_ids.clone(),
            since: chain.since.clone(),
        }
    }

    /// The tip at the manifest that `known` ends with, and its generation. `None` where the two do not fit together: see
    /// [`Known`] for what is believed of it.
    pub(super) fn at(base: Opened, known: &Arc<Known>) -> Option<(Self, Generation)> {
        let (id, number) = (base.id, base.header.generation);
        let content = &base.content;
        let policy = Policy::parse(&known.policy).ok()?;
        let fits = id == *known.head()
            && number == known.generation()
            && base.header.repository_root == known.root
            && *policy.id() == content.policy_id
            && policy.generation() == content.policy_generation
            && *policy.root() == known.root
            && content.total_pack_count == known.packs.len() as u64
            && base.new_packs.iter().all(|pack| known.has_pack(&pack.id));
        if !fits {
            return None;
        }
        let policy = Arc::new(policy);
        let head = Head {
            id,
            number,
            root: known.root,
            policy: Arc::clone(&policy),
            total_packs: content.total_pack_count,
        };
        let tip = Self {
            head: Some(head),
            pack_ids: base.new_packs.iter().map(|pack| pack.id).collect(),
            since: Some(Arc::clone(known)),
        };
        let generation = Generation {
            id,
            number,
            signer: content.signer_device_id,
            authorization: content.authorization,
            policy,
            ref_changes: Vec::new(),
            new_packs: base.new_packs,
            total_packs: content.total_pack_count,
            key: base.key,
        };
        Some((tip, generation))
    }

    fn has_pack(&self, id: &ContentId) -> bool {
        self.pack_ids.contains(id) || self.since.as_ref().is_some_and(|known| known.has_pack(id))
    }

    /// The repository, what was verified before, and the packs of what was followed.
    pub(super) fn into_parts(self) -> (Option<RepositoryRoot>, Option<Arc<Known>>, HashSet<ContentId>) {
        (self.head.map(|head| head.root), self.since, self.pack_ids)
    }

    /// Checks everything about the next manifest but the claim that is returned, and moves on to it.
    pub(super) fn follow(&mut self, next: Unverified) -> Result<(Generation, Claim), Error> {
        let (id, number) = (next.opened.id, next.opened.header.generation);
        self.judge(&next)
            .map(|(policy, signer_public)| self.accept(next, policy, signer_public))
            .map_err(|rule| Error::rule(id, number, rule))
    }

    /// The policy in force after the manifest, and the public key that must have signed it.
    fn judge(&self, next: &Unverified) -> Result<(Arc<Policy>, [u8; 32]), Rule> {
        let content = &next.opened.content;
        if content.authorization == Authorization::Checkpoint {
            return Err(Rule::Checkpoint);
        }
        self.check_position(&next.opened)?;
        self.check_packs(&next.opened)?;
        let Some(head) = &self.head else {
            return judge_genesis(next);
        };
        match content.authorization {
            Authorization::Writer => {
                if next.opened.introduced_policy.is_some() {
                    return Err(Rule::WriterPolicy);
                }
                check_policy_name(&next.opened, &head.policy)?;
                let signer = signer(&next.opened, &head.policy, Device::is_active_writer);
                let signer = signer.ok_or(Rule::SignerNotWriter(content.signer_device_id))?;
                Ok((Arc::clone(&head.policy), signer))
            }
            _ => {
                let policy = introduced(&next.opened)?.ok_or(Rule::TransitionWithoutPolicy)?;
                policy.verify_successor(&head.policy).map_err(Rule::Policy)?;
                check_policy_name(&next.opened, &policy)?;
                if !next.ref_changes.is_empty() || !next.opened.new_packs.is_empty() {
                    return Err(Rule::TransitionContent);
                }
                let signer = signer(&next.opened, &head.policy, Device::is_active_administrator);
                let signer = signer.ok_or(Rule::SignerNotAdministrator(content.signer_device_id))?;
                Ok((Arc::new(policy), signer))
            }
        }
    }

    fn check_position(&self, next: &Opened) -> Result<(), Rule> {
        let header = &next.header;
        let (expected, previous) = match &self.head {
            Some(head) => (head.number.checked_add(1), Some(head.id)),
            None => (Some(0), None),
        };
        if let Some(head) = &self.head
            && head.root != header.repository_root
        {
            return Err(Rule::Root {
                seen: header.repository_root,
                expected: head.root,
            });
        }
        if Some(header.generation) != expected {
            let expected = expected.unwrap_or(u64::MAX);
            return Err(Rule::Generation {
                seen: header.generation,
                expected,
            });
        }
        if header.previous != previous {
            return Err(Rule::Previous {
                seen: header.previous,
                expected: previous,
            });
        }
        Ok(())
    }

    fn check_packs(&self, next: &Opened) -> Result<(), Rule> {
        let before = self.head.as_ref().map_or(0, |head| head.total_packs);
        let expected = before.saturating_add(next.new_packs.len() as u64);
        let seen = next.content.total_pack_count;
        if seen != expected {
            return Err(Rule::PackCount { seen, expected });
        }
        match next.new_packs.iter().find(|pack| self.has_pack(&pack.id)) {
            Some(pack) => Err(Rule::PackReused(pack.id)),
            None => Ok(()),
        }
    }

    fn accept(
        &mut self,
        next: Unverified,
        policy: Arc<Policy>,
        signer_public: [u8; 32],
    ) -> (Generation, Claim) {
        let Unverified { opened, ref_changes } = next;
        let (id, number) = (opened.id, opened.header.generation);
        let total_packs = opened.content.total_pack_count;
        let root = opened.header.repository_root;
        self.pack_ids.extend(opened.new_packs.iter().map(|pack| pack.id));
        self.head = Some(Head {
            id,
            number,
            root,
            policy: Arc::clone(&policy),
            total_packs,
        });
        let claim = Claim {
            id,
            number,
            root,
            commitment: opened.header.key_commitment,
            policy: Arc::clone(&policy),
            signer: opened.content.signer_device_id,
            signer_public,
            signed_digest: opened.signed_digest,
            signature: opened.signature,
            envelopes: opened.header.generation_key_envelopes,
            audit: opened.content.envelope_audit,
            key: opened.key.clone(),
        };
        let generation = Generation {
            id,
            number,
            signer: opened.content.signer_device_id,
            authorization: opened.content.authorization,
            policy,
            ref_changes,
            new_packs: opened.new_packs,
            total_packs,
            key: opened.key,
        };
        (generation, claim)
    }
}

fn judge_genesis(next: &Unverified) -> Result<(Arc<Policy>, [u8; 32]), Rule> {
    let content = &next.opened.content;
    let policy = introduced(&next.opened)?.ok_or(Rule::GenesisPolicy)?;
    if content.authorization != Authorization::PolicyTransition {
        return Err(Rule::GenesisPolicy);
    }
    if *policy.root() != next.opened.header.repository_root {
        return Err(Rule::Root {
            seen: *policy.root(),
            expected: next.opened.header.repository_root,
        });
    }
    policy.verify_genesis().map_err(Rule::Policy)?;
    check_policy_name(&next.opened, &policy)?;
    if !next.ref_changes.is_empty() || !next.opened.new_packs.is_empty() {
        return Err(Rule::GenesisContent);
    }
    let signer = signer(&next.opened, &policy, Device::is_active_administrator);
    let signer = signer.ok_or(Rule::SignerNotAdministrator(content.signer_device_id))?;
    Ok((Arc::new(policy), signer))
}

fn introduced(next: &Opened) -> Result<Option<Policy>, Rule> {
    next.introduced_policy
        .as_deref()
        .map(Policy::parse)
        .transpose()
        .map_err(Rule::Policy)
}

fn check_policy_name(next: &Opened, policy: &Policy) -> Result<(), Rule> {
    let (seen, seen_generation) = (next.content.policy_id, next.content.policy_generation);
    if seen == *policy.id() && seen_generation == policy.generation() {
        return Ok(());
    }
    let (expected, expected_generation) = (*policy.id(), policy.generation());
    Err(Rule::PolicyId {
        seen,
        seen_generation,
        expected,
        expected_generation,
    })
}

fn signer(next: &Opened, policy: &Policy, may: impl Fn(&Device) -> bool) -> Option<[u8; 32]> {
    let device = policy.device(&next.content.signer_device_id)?;
    may(device).then_some(device.signing_public_key)
}

/// Verifies the claims, on all cores when there are many. The error is that of the oldest manifest that fails.
pub(super) fn authenticate(claims: &[Claim]) -> Result<(), Error> {
    // Below this, starting threads costs more than the work.
    const FEW: usize = 8;
    let failure = if claims.len() < FEW {
        claims.iter().find_map(|claim| claim.verify().err())
    } else {
        claims.par_iter().find_map_first(|claim| claim.verify().err())
    };
    failure.map_or(Ok(()), Err)
}

impl Claim {
    pub(super) fn verify(&self) -> Result<(), Error> {
        self.check()
            .map_err(|rule| Error::rule(self.id, self.number, rule))
    }

    fn check(&self) -> Result<(), Rule> {
        if !self
            .envelopes
            .is_sorted_by(|a, b| a.encapsulated_key < b.encapsulated_key)
        {
            return Err(Rule::EnvelopeOrder);
        }
        let domain = domain::MANIFEST_SIGNATURE;
        if !crypto::verify(&self.signer_public, domain, &self.signed_digest, &self.signature) {
            return Err(Rule::Signature(self.signer));
        }
        self.check_audit()
    }

    /// Every active reader has exactly one envelope, and it holds this key.
    fn check_audit(&self) -> Result<(), Rule> {
        if self.audit.len() != self.envelopes.len() {
            return Err(Rule::Audit(format!(
                "{} entries for {} envelopes",
                self.audit.len(),
                self.envelopes.len()
            )));
        }
        let mut waiting: HashMap<&DeviceId, &Device> = self
            .policy
            .active_readers()
            .map(|device| (&device.device_id, device))
            .collect();
        let scope = Scope {
            root: &self.root,
            generation: self.number,
            commitment: &self.commitment,
        };
        let mut recipients = Vec::with_capacity(waiting.len());
        for (entry, envelope) in self.audit.iter().zip(&self.envelopes) {
            let AuditEntry::Recipient {
                device_id,
                encapsulation_seed,
            } = entry
            else {
                continue;
            };
            let Some(device) = waiting.remove(device_id) else {
                return Err(Rule::Audit(format!(
                    "device {device_id} is no active reader or is listed twice"
                )));
            };
            recipients.push((device, encapsulation_seed, envelope));
        }
        if let Some(left_out) = waiting.keys().min() {
            return Err(Rule::Audit(format!("device {left_out} has no envelope")));
        }
        for (device, seed, envelope) in recipients {
            let (id, public) = (&device.device_id, &device.wrapping_public_key);
            if envelope::seal(&scope, id, public, seed, &self.key).as_ref() != Some(envelope) {
                return Err(Rule::Envelope(*id));
            }
        }
        Ok(())
    }
}
