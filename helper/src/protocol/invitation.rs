//! Invitations: what an administrator signs for a new device, so that it needs no trust in the storage.
//!
//! The record names the repository, and the least that its storage has to show: a manifest and a policy. It is handed over
//! on a channel that both trust, as one line or as a file, and never stored remotely. Whether the signer was an
//! administrator can be told once the chain is read, and the chain has to hold the named manifest first.

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::chain::Chain;
use super::crypto;
use super::encoding::{base64_array, compact_json, domain};
use super::ids::{ContentId, DeviceId, RepositoryRoot};
use super::keys::{self, DeviceKey, PublicDevice};

/// What the line of an invitation begins with.
const INVITATION: &str = "e2ee-invitation-1:";
/// What the line of a request begins with.
const REQUEST: &str = "e2ee-request-1:";

/// Why an invitation or a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither the line nor the record.
    #[error("not an invitation: {0}")]
    Malformed(String),
    /// Neither the line nor the record.
    #[error("not a request of a device: {0}")]
    MalformedRequest(String),
    /// The record in a request does not hold together.
    #[error(transparent)]
    Device(#[from] keys::Error),
    /// It is for somebody else.
    #[error("the invitation is for device {recipient}, this is {device}")]
    Recipient {
        /// For whom it is.
        recipient: DeviceId,
        /// Whose key is at hand.
        device: DeviceId,
    },
    /// The device is no administrator, or was none at that generation.
    #[error("the invitation is signed by {signer}, which was no administrator at generation {generation}")]
    Signer {
        /// Who signed it.
        signer: DeviceId,
        /// The manifest generation that it names.
        generation: u64,
    },
    /// Signed by somebody else, or changed since.
    #[error("the signature of the invitation by {0} does not verify: it was altered")]
    Signature(DeviceId),
    /// The chain has another policy there.
    #[error("the invitation names policy {expected} at generation {generation}, the store shows {seen}")]
    Policy {
        /// The manifest generation that it names.
        generation: u64,
        /// The policy that it names.
        expected: ContentId,
        /// The policy of the store.
        seen: ContentId,
    },
}

/// A signed invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invitation {
    /// The repository: the new device's trust anchor.
    pub repository_root: RepositoryRoot,
    /// A manifest that every genuine history holds.
    pub minimum_manifest_id: ContentId,
    /// Its generation.
    pub minimum_manifest_generation: u64,
    /// The policy in force there.
    pub minimum_policy_id: ContentId,
    /// Its generation.
    pub minimum_policy_generation: u64,
    /// For whom it is.
    pub recipient_device_id: DeviceId,
    /// Who vouches for it.
    pub signing_administrator_device_id: DeviceId,
    /// Ed25519 over the compact JSON of the fields before.
    #[serde(with = "base64_array")]
    signature: [u8; 64],
}

/// What is signed: the record without its signature.
#[derive(Serialize)]
struct Signed<'a> {
    repository_root: &'a RepositoryRoot,
    minimum_manifest_id: &'a ContentId,
    minimum_manifest_generation: u64,
    minimum_policy_id: &'a ContentId,
    minimum_policy_generation: u64,
    recipient_device_id: &'a DeviceId,
    signing_administrator_device_id: &'a DeviceId,
}

impl Invitation {
    /// Invites a device into the repository as it is at the head of `chain`.
    pub fn sign(chain: &Chain, administrator: &DeviceKey, recipient: DeviceId) -> Invitation {
        let (head, policy) = (chain.head(), chain.policy());
        let mut invitation = Invitation {
            repository_root: *chain.root(),
            minimum_manifest_id: *head.id(),
            minimum_manifest_generation: head.number(),
            minimum_policy_id: *policy.id(),
            minimum_policy_generation: policy.generation(),
            recipient_device_id: recipient,
            signing_administrator_device_id: *administrator.id(),
            signature: [0; 64],
        };
        invitation.signature = administrator.sign(domain::INVITATION_SIGNATURE, &invitation.digest());
        invitation
    }

    /// Reads the line or the record.
    pub fn parse(text: &str) -> Result<Invitation, Error> {
        let json = document(text, INVITATION).map_err(Error::Malformed)?;
        serde_json::from_slice(&json).map_err(|error| Error::Malformed(error.to_string()))
    }

    /// The record: compact JSON.
    pub fn to_json(&self) -> Vec<u8> {
        compact_json(self)
    }

    /// The record as one line of text without blanks.
    pub fn to_line(&self) -> String {
        format!("{INVITATION}{}", BASE64URL_NOPAD.encode(&self.to_json()))
    }

    /// Digits by which two people find out whether they hold the same invitation.
    pub fn fingerprint(&self) -> String {
        fingerprint(domain::INVITATION_FINGERPRINT, &self.to_json())
    }

    /// Requires that it is for this device.
    pub fn check_recipient(&self, device: &DeviceId) -> Result<(), Error> {
        if self.recipient_device_id != *device {
            return Err(Error::Recipient {
                recipient: self.recipient_device_id,
                device: *device,
            });
        }
        Ok(())
    }

    /// Requires that an administrator of the repository signed it. `chain` must hold the manifest that it names.
    pub fn verify(&self, chain: &Chain) -> Result<(), Error> {
        let generation = self.minimum_manifest_generation;
        let signer = self.signing_administrator_device_id;
        let policy = chain.generation(generation).map(|named| named.policy());
        let policy = policy.ok_or(Error::Signer { signer, generation })?;
        if *policy.id() != self.minimum_policy_id || policy.generation() != self.minimum_policy_generation {
            return Err(Error::Policy {
                generation,
                expected: self.minimum_policy_id,
                seen: *policy.id(),
            });
        }
        let administrator = policy
            .device(&signer)
            .filter(|device| device.is_active_administrator())
            .ok_or(Error::Signer { signer, generation })?;
        let public = &administrator.signing_public_key;
        if !crypto::verify(
            public,
            domain::INVITATION_SIGNATURE,
            &self.digest(),
            &self.signature,
        ) {
            return Err(Error::Signature(signer));
        }
        Ok(())
    }

    fn digest(&self) -> [u8; 32] {
        crypto::digest_of(&[&compact_json(&Signed {
            repository_root: &self.repository_root,
            minimum_manifest_id: &self.minimum_manifest_id,
            minimum_manifest_generation: self.minimum_manifest_generation,
            minimum_policy_id: &self.minimum_policy_id,
            minimum_policy_generation: self.minimum_policy_generation,
            recipient_device_id: &self.recipient_device_id,
            signing_administrator_device_id: &self.signing_administrator_device_id,
        })])
    }
}

/// A request to join as one line: the public record of a device.
pub fn request_line(device: &PublicDevice) -> String {
    format!("{REQUEST}{}", BASE64URL_NOPAD.encode(&compact_json(device)))
}

/// Reads a request: the line, or a public record. The repository that it names is that of a key that may not know yet
/// where it will belong.
pub fn parse_request(text: &str) -> Result<PublicDevice, Error> {
    let json = document(text, REQUEST).map_err(Error::MalformedRequest)?;
    Ok(PublicDevice::parse(&json)?)
}

/// Whether a text is the line of an invitation or request, and not the name of a file.
pub fn is_line(text: &str) -> bool {
    text.starts_with(INVITATION) || text.starts_with(REQUEST)
}

/// Digits by which two people find out whether they mean the same device.
pub fn device_fingerprint(device: &DeviceId) -> String {
    fingerprint(domain::DEVICE_FINGERPRINT, device.as_bytes())
}

/// Whether two fingerprints have the same digits, however they are grouped.
pub fn same_fingerprint(a: &str, b: &str) -> bool {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    digits(a) == digits(b) && !digits(a).is_empty()
}

/// Six groups of five digits: 99 bits, more than anybody can search for a second text with the same ones.
fn fingerprint(domain: &[u8], content: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(domain);
    hash.update(content);
    let hash: [u8; 32] = hash.finalize().into();
    let group = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0u64, |value, byte| value << 8 | u64::from(*byte))
            % 100_000
    };
    let groups: Vec<String> = hash
        .chunks_exact(5)
        .map(|bytes| format!("{:05}", group(bytes)))
        .collect();
    groups.join(" ")
}

/// The document in what was passed on: a record as it is, or the line, with whatever was shown around it.
fn document(text: &str, prefix: &str) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let begin = text
        .lines()
        .position(|line| line.trim_start().starts_with(prefix));
    match begin {
        Some(begin) => {
            // Mail programs break lines, so it goes on until a line of words.
            let lines = text.lines().skip(begin).map(str::trim);
            let encoded: String = lines
                .take_while(|line| !line.contains(char::is_whitespace))
                .collect();
            let encoded = encoded.strip_prefix(prefix).unwrap_or_default();
            BASE64URL_NOPAD
                .decode(encoded.as_bytes())
                .map_err(|_| "the line is damaged or not complete".to_owned())
        }
        None if text.starts_with('{') => Ok(text.as_bytes().to_vec()),
        None => Err(format!("expected a line that begins with {prefix}, or a record")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::{Change, Role};
    use super::super::publication;
    use super::*;

    fn chain() -> (DeviceKey, DeviceKey, Chain) {
        let owner = DeviceKey::generate(None).expect("random bytes");
        let guest = DeviceKey::generate(None)
            .expect("random bytes")
            .with_root(*owner.root());
        let chain = publication::genesis(&owner).expect("genesis").into_chain();
        let device = guest.public().clone();
        let changes = [Change::Add {
            device,
            role: Role::Write,
        }];
        let chain = publication::transition(&chain, &owner, &changes)
            .expect("added")
            .into_chain();
        (owner, guest, chain)
    }

    #[test]
    fn lines_and_records_say_the_same() {
        let (owner, guest, chain) = chain();
        let invitation = Invitation::sign(&chain, &owner, *guest.id());
        invitation.verify(&chain).expect("genuine");
        invitation.check_recipient(guest.id()).expect("the guest's");
        assert!(matches!(
            invitation.check_recipient(owner.id()),
            Err(Error::Recipient { .. })
        ));
        let line = invitation.to_line();
        assert!(is_line(&line) && !line.contains(char::is_whitespace));
        let (head, tail) = line.split_at(100);
        let record = String::from_utf8(invitation.to_json()).expect("text");
        for text in [
            line.clone(),
            format!(" {line}\n"),
            format!("{head}\r\n  {tail}"),
            record,
        ] {
            assert_eq!(Invitation::parse(&text).expect("readable"), invitation);
        }
        for text in [
            "",
            "x",
            "{}",
            "e2ee-invitation-1:",
            &line[..line.len() - 9],
            &request_line(guest.public()),
        ] {
            assert!(Invitation::parse(text).is_err(), "{text}");
        }
        let request = request_line(guest.public());
        assert_eq!(&parse_request(&request).expect("readable"), guest.public());
        assert!(parse_request(&line).is_err());
        assert_eq!(device_fingerprint(guest.id()).split(' ').count(), 6);
        assert!(
            same_fingerprint("12 34", "1234")
                && !same_fingerprint("1234", "1235")
                && !same_fingerprint("", "")
        );
    }

    #[test]
    fn a_line_is_found_in_what_was_shown_around_it() {
        let (_, guest, _) = chain();
        let line = request_line(guest.public());
        let (first, second) = line.split_at(100);
        let mail =
            format!("Here it is:\n\n  {first}\n  {second}\nfingerprint 12345 67890\nGive the line on\n");
        assert_eq!(&parse_request(&mail).expect("found"), guest.public());
        assert!(parse_request(&mail.replace(second, "")).is_err(), "half a line");
    }

    #[test]
    fn whatever_is_altered_is_noticed() {
        let (owner, guest, chain) = chain();
        let good = Invitation::sign(&chain, &owner, *guest.id());
        let refused = |change: &dyn Fn(&mut Invitation)| {
            let mut altered = good.clone();
            change(&mut altered);
            altered.verify(&chain).expect_err("altered").to_string()
        };
        refused(&|it| it.repository_root = RepositoryRoot::from_bytes([1; 32]));
        refused(&|it| it.minimum_manifest_id = ContentId::of(b"x"));
        refused(&|it| it.minimum_manifest_generation = 0);
        refused(&|it| it.minimum_manifest_generation = u64::MAX);
        refused(&|it| it.minimum_policy_id = ContentId::of(b"x"));
        refused(&|it| it.minimum_policy_generation += 1);
        refused(&|it| it.recipient_device_id = *owner.id());
        refused(&|it| it.signature[5] ^= 1);
        let guests = Invitation::sign(&chain, &guest, *guest.id());
        assert!(matches!(guests.verify(&chain), Err(Error::Signer { .. })));
        let own = refused(&|it| it.signing_administrator_device_id = *guest.id());
        assert!(own.contains("no administrator"), "{own}");
    }
}
