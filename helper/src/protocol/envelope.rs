//! Envelopes: the generation key sealed to each reader with HPKE (RFC 9180, base mode), padded with dummies.
//!
//! The randomness of every real envelope comes from a 32-byte seed that is recorded, sealed, in the same manifest.
//! So any reader can repeat the sealing and see that every other reader was given the same key: a writer cannot
//! show one reader another history, nor shut one out, without all of them noticing.

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem, OpModeR, OpModeS, Serializable as _};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::crypto::{GenerationKey, RandomUnavailable, Secret, random};
use super::encoding::{base64_array, domain, push_lp};
use super::ids::{DeviceId, Digest, RepositoryRoot};

/// Fewest envelopes in a manifest, however few readers there are.
pub const MIN_ENVELOPES: usize = 4;
/// Most envelopes in a manifest, hence most active readers of a repository.
pub const MAX_ENVELOPES: usize = 4096;

type KemPublic = <X25519HkdfSha256 as Kem>::PublicKey;
type KemPrivate = <X25519HkdfSha256 as Kem>::PrivateKey;
type KemEncapped = <X25519HkdfSha256 as Kem>::EncappedKey;

/// One sealed copy of the generation key, or a dummy that looks the same from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Envelope {
    /// The ephemeral public key of HPKE.
    #[serde(with = "base64_array")]
    pub encapsulated_key: [u8; 32],
    /// The generation key, encrypted, and the tag.
    #[serde(with = "base64_array")]
    pub ciphertext: [u8; 48],
}

/// What the sealed header records about the envelope at the same place in the list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "AuditFields", try_from = "AuditFields")]
pub(crate) enum AuditEntry {
    /// A real envelope, and all that is needed to make it again.
    Recipient {
        device_id: DeviceId,
        encapsulation_seed: Secret,
    },
    /// Padding.
    Dummy,
}

/// The JSON form of an audit entry. A flat record, so that no seed passes through a buffer of the JSON reader.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditFields {
    kind: AuditKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encapsulation_seed: Option<Secret>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AuditKind {
    Recipient,
    Dummy,
}

impl From<AuditEntry> for AuditFields {
    fn from(entry: AuditEntry) -> Self {
        match entry {
            AuditEntry::Recipient {
                device_id,
                encapsulation_seed,
            } => Self {
                kind: AuditKind::Recipient,
                device_id: Some(device_id),
                encapsulation_seed: Some(encapsulation_seed),
            },
            AuditEntry::Dummy => Self {
                kind: AuditKind::Dummy,
                device_id: None,
                encapsulation_seed: None,
            },
        }
    }
}

impl TryFrom<AuditFields> for AuditEntry {
    type Error = &'static str;

    fn try_from(fields: AuditFields) -> Result<Self, &'static str> {
        match (fields.kind, fields.device_id, fields.encapsulation_seed) {
            (AuditKind::Recipient, Some(device_id), Some(encapsulation_seed)) => Ok(Self::Recipient {
                device_id,
                encapsulation_seed,
            }),
            (AuditKind::Recipient, ..) => Err("a recipient needs `device_id` and `encapsulation_seed`"),
            (AuditKind::Dummy, None, None) => Ok(Self::Dummy),
            (AuditKind::Dummy, ..) => Err("a dummy has no fields but `kind`"),
        }
    }
}

/// Why envelopes could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More readers than one manifest can serve.
    #[error(
        "{readers} active readers are more than the {MAX_ENVELOPES} that one manifest can serve; revoke devices that are no longer used"
    )]
    TooManyReaders {
        /// Active readers of the policy.
        readers: usize,
    },
    /// A wrapping key to which nothing can be sealed.
    #[error("the wrapping key of device {device} is not usable")]
    UnusableKey {
        /// The device.
        device: DeviceId,
    },
    /// See [`RandomUnavailable`].
    #[error(transparent)]
    Random(#[from] RandomUnavailable),
}

/// Which manifest, and whose envelope in it: associated data of the sealing.
pub(crate) struct Scope<'a> {
    pub root: &'a RepositoryRoot,
    pub generation: u64,
    pub commitment: &'a Digest,
}

impl Scope<'_> {
    fn aad(&self, device: &DeviceId) -> Vec<u8> {
        let mut aad = Vec::with_capacity(255);
        aad.extend_from_slice(domain::ENVELOPE);
        push_lp(&mut aad, self.root.to_hex().as_bytes());
        aad.extend_from_slice(&super::FORMAT_VERSION.to_le_bytes());
        aad.extend_from_slice(&self.generation.to_le_bytes());
        push_lp(&mut aad, self.commitment.to_hex().as_bytes());
        push_lp(&mut aad, device.to_hex().as_bytes());
        aad
    }
}

/// The X25519 public key that belongs to a private one.
pub(crate) fn wrapping_public(private: &Secret) -> [u8; 32] {
    array(&X25519HkdfSha256::sk_to_pk(&kem_private(private)).to_bytes())
}

/// Whether something can be sealed to this public key: not so for points of small order.
pub(crate) fn is_usable_wrapping_key(public: &[u8; 32]) -> bool {
    let probe = Secret::new(Zeroizing::new([7; 32]));
    seal_to(public, &probe, b"", probe.expose()).is_some()
}

/// Seals the key to one device, always to the same bytes for the same seed.
pub(crate) fn seal(
    scope: &Scope<'_>,
    device: &DeviceId,
    wrapping_public_key: &[u8; 32],
    seed: &Secret,
    key: &GenerationKey,
) -> Option<Envelope> {
    seal_to(wrapping_public_key, seed, &scope.aad(device), key.expose())
}

/// Opens an envelope with one's own key. `None` if it is a dummy, somebody else's, or damaged.
pub(crate) fn open(
    scope: &Scope<'_>,
    device: &DeviceId,
    wrapping_private_key: &Secret,
    envelope: &Envelope,
) -> Option<GenerationKey> {
    let encapped = KemEncapped::from_bytes(&envelope.encapsulated_key).ok()?;
    let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeR::Base,
        &kem_private(wrapping_private_key),
        &encapped,
        domain::ENVELOPE_INFO,
        &envelope.ciphertext,
        &scope.aad(device),
    );
    Secret::from_slice(&Zeroizing::new(opened.ok()?)).map(GenerationKey::from_secret)
}

/// The envelopes of a manifest, one for each reader and dummies up to a power of two, in the order of their
/// encapsulated keys, with the audit entries in the same order.
///
/// The padding hides the number of readers, and the order, which is that of random values, hides who is who.
pub(crate) fn seal_all<'a>(
    scope: &Scope<'_>,
    readers: impl ExactSizeIterator<Item = (&'a DeviceId, &'a [u8; 32])>,
    key: &GenerationKey,
) -> Result<(Vec<Envelope>, Vec<AuditEntry>), Error> {
    let count = readers.len().next_power_of_two().max(MIN_ENVELOPES);
    if count > MAX_ENVELOPES {
        return Err(Error::TooManyReaders {
            readers: readers.len(),
        });
    }
    let mut pairs = Vec::with_capacity(count);
    for (device, public) in readers {
        let seed = Secret::generate()?;
        let envelope =
            seal(scope, device, public, &seed, key).ok_or(Error::UnusableKey { device: *device })?;
        pairs.push((
            envelope,
            AuditEntry::Recipient {
                device_id: *device,
                encapsulation_seed: seed,
            },
        ));
    }
    while pairs.len() < count {
        pairs.push((dummy()?, AuditEntry::Dummy));
    }
    pairs.sort_by_key(|(envelope, _)| envelope.encapsulated_key);
    Ok(pairs.into_iter().unzip())
}

/// An envelope that nobody can open. It is a real sealing, because random bytes are recognisable: the top bit of an
/// X25519 public key is never set.
fn dummy() -> Result<Envelope, RandomUnavailable> {
    let public = wrapping_public(&Secret::generate()?);
    let (seed, aad, plaintext) = (Secret::generate()?, random::<32>()?, random::<32>()?);
    Ok(seal_to(&public, &seed, &*aad, &plaintext).expect("a generated public key has full order"))
}

fn seal_to(public: &[u8; 32], seed: &Secret, aad: &[u8], plaintext: &[u8; 32]) -> Option<Envelope> {
    let mut rng = ChaCha20Rng::from_seed(*seed.expose());
    let (encapped, ciphertext) =
        hpke::single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeS::Base,
            &KemPublic::from_bytes(public).ok()?,
            domain::ENVELOPE_INFO,
            plaintext,
            aad,
            &mut rng,
        )
        .ok()?;
    Some(Envelope {
        encapsulated_key: array(&encapped.to_bytes()),
        ciphertext: ciphertext.try_into().ok()?,
    })
}

fn kem_private(private: &Secret) -> KemPrivate {
    KemPrivate::from_bytes(private.expose()).expect("32 bytes are an X25519 private key")
}

fn array(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().expect("X25519 keys have 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_sorted_and_openable_by_the_reader_alone() {
        let root = RepositoryRoot::from_bytes([1; 32]);
        let key = GenerationKey::generate().expect("random bytes");
        let commitment = key.commitment();
        let scope = Scope {
            root: &root,
            generation: 3,
            commitment: &commitment,
        };
        for readers in [0usize, 1, 4, 5, 9] {
            let devices: Vec<_> = (0..readers)
                .map(|n| {
                    let private = Secret::generate().expect("random bytes");
                    (
                        DeviceId::from_bytes([n as u8; 32]),
                        wrapping_public(&private),
                        private,
                    )
                })
                .collect();
            let list = devices.iter().map(|(id, public, _)| (id, public));
            let (envelopes, audit) = seal_all(&scope, list, &key).expect("sealed");
            assert_eq!(envelopes.len(), readers.next_power_of_two().max(4));
            assert_eq!(audit.len(), envelopes.len());
            assert!(
                envelopes
                    .windows(2)
                    .all(|w| w[0].encapsulated_key < w[1].encapsulated_key)
            );
            assert!(envelopes.iter().all(|e| e.encapsulated_key[31] < 0x80));
            for (id, public, private) in &devices {
                let mine: Vec<_> = (0..envelopes.len())
                    .filter(|&n| open(&scope, id, private, &envelopes[n]).is_some())
                    .collect();
                assert_eq!(mine.len(), 1);
                let AuditEntry::Recipient {
                    device_id,
                    encapsulation_seed,
                } = &audit[mine[0]]
                else {
                    panic!("a real envelope is recorded as a dummy");
                };
                assert_eq!(device_id, id);
                let again = seal(&scope, id, public, encapsulation_seed, &key);
                assert_eq!(again.as_ref(), Some(&envelopes[mine[0]]));
                let other = Scope {
                    root: &root,
                    generation: 4,
                    commitment: &commitment,
                };
                assert!(open(&other, id, private, &envelopes[mine[0]]).is_none());
            }
        }
    }

    #[test]
    fn too_many_readers_are_refused_before_any_work() {
        let root = RepositoryRoot::from_bytes([1; 32]);
        let key = GenerationKey::generate().expect("random bytes");
        let commitment = key.commitment();
        let scope = Scope {
            root: &root,
            generation: 0,
            commitment: &commitment,
        };
        let id = DeviceId::from_bytes([0; 32]);
        let readers = vec![(&id, &[0; 32]); MAX_ENVELOPES + 1];
        let error = seal_all(&scope, readers.into_iter(), &key).err();
        assert_eq!(
            error,
            Some(Error::TooManyReaders {
                readers: MAX_ENVELOPES + 1
            })
        );
    }

    #[test]
    fn points_of_small_order_are_unusable() {
        assert!(!is_usable_wrapping_key(&[0; 32]));
        let private = Secret::generate().expect("random bytes");
        assert!(is_usable_wrapping_key(&wrapping_public(&private)));
    }
}
