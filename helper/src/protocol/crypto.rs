//! The small constructions that everything sealed or signed is made of: secrets, subkeys, the commitment, the
//! authenticated encryption of short documents, and signatures over domain-separated digests.

use std::fmt;

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use data_encoding::BASE64;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use hkdf::Hkdf;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::encoding::{base64_array, domain};
use super::ids::{Digest, RepositoryRoot};

/// The operating system gave no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system's random source failed: {0}")]
pub struct RandomUnavailable(#[from] getrandom::Error);

/// `N` fresh bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, RandomUnavailable> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(bytes.as_mut_slice())?;
    Ok(bytes)
}

/// 32 secret bytes: overwritten when dropped, never shown.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    pub(crate) fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    pub(crate) fn generate() -> Result<Self, RandomUnavailable> {
        random().map(Self)
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        let mut secret = Zeroizing::new([0; 32]);
        if bytes.len() != secret.len() {
            return None;
        }
        secret.copy_from_slice(bytes);
        Some(Self(secret))
    }

    pub(crate) fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = Zeroizing::new(BASE64.encode(self.expose()));
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        base64_array::deserialize(deserializer).map(|bytes| Self(Zeroizing::new(bytes)))
    }
}

/// What a subkey is for. The numbers are part of the derivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Body = 1,
    Pack = 2,
    Link = 3,
    SealedHeader = 4,
}

/// The random key of one manifest generation. Every key of that generation is derived from it.
#[derive(Debug, Clone)]
pub struct GenerationKey(Secret);

impl GenerationKey {
    pub(crate) fn generate() -> Result<Self, RandomUnavailable> {
        Secret::generate().map(Self)
    }

    pub(crate) fn from_secret(secret: Secret) -> Self {
        Self(secret)
    }

    pub(crate) fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }

    /// The public value by which a reader recognises the right key before using it.
    pub(crate) fn commitment(&self) -> Digest {
        let mut hash = Sha256::new();
        hash.update(domain::COMMITMENT);
        hash.update(self.expose());
        Digest::from_bytes(hash.finalize().into())
    }

    pub(crate) fn matches(&self, commitment: &Digest) -> bool {
        self.commitment().as_bytes().ct_eq(commitment.as_bytes()).into()
    }

    /// The key for one purpose. `ordinal` numbers the packs of a generation and is 0 for all else.
    pub(crate) fn subkey(
        &self,
        root: &RepositoryRoot,
        generation: u64,
        purpose: Purpose,
        ordinal: u64,
    ) -> Secret {
        let mut info = [0; 49];
        info[..32].copy_from_slice(root.as_bytes());
        info[32..40].copy_from_slice(&generation.to_le_bytes());
        info[40] = purpose as u8;
        info[41..].copy_from_slice(&ordinal.to_le_bytes());
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(domain::SUBKEY), self.expose())
            .expand(&info, key.as_mut_slice())
            .expect("32 bytes are within what HKDF can give");
        Secret(key)
    }
}

pub(crate) fn cipher(key: &Secret) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.expose().into())
}

const MAGIC: &[u8; 8] = b"E2EES05\0";
const NONCE: usize = 24;
pub(crate) const TAG: usize = 16;

/// Why a sealed document could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Too short, or another magic number.
    #[error("not a sealed document")]
    Format,
    /// Another key, other associated data, or changed bytes.
    #[error("authentication failed")]
    Authentication,
}

/// Seals a short document: magic number, random nonce, ciphertext and tag.
pub(crate) fn seal(key: &Secret, aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, RandomUnavailable> {
    Ok(seal_with_nonce(key, &*random::<NONCE>()?, aad, plaintext))
}

pub(crate) fn seal_with_nonce(key: &Secret, nonce: &[u8; NONCE], aad: &[u8], plaintext: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(MAGIC.len() + NONCE + plaintext.len() + TAG);
    sealed.extend_from_slice(MAGIC);
    sealed.extend_from_slice(nonce);
    sealed.extend_from_slice(plaintext);
    let tag = cipher(key)
        .encrypt_inout_detached(
            &XNonce::from(*nonce),
            aad,
            (&mut sealed[MAGIC.len() + NONCE..]).into(),
        )
        .expect("a document in memory is shorter than the 256 GiB the cipher allows");
    sealed.extend_from_slice(&tag);
    sealed
}

/// Opens what [`seal`] made.
pub(crate) fn open(key: &Secret, aad: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let rest = sealed.strip_prefix(MAGIC).ok_or(OpenError::Format)?;
    let (nonce, rest) = rest.split_first_chunk::<NONCE>().ok_or(OpenError::Format)?;
    let (ciphertext, tag) = rest.split_last_chunk::<TAG>().ok_or(OpenError::Format)?;
    let mut plaintext = Zeroizing::new(ciphertext.to_vec());
    cipher(key)
        .decrypt_inout_detached(
            &XNonce::from(*nonce),
            aad,
            plaintext.as_mut_slice().into(),
            &Tag::from(*tag),
        )
        .map_err(|_| OpenError::Authentication)?;
    Ok(plaintext)
}

/// SHA-256 of the concatenated parts: what a signature is made over, behind its domain string.
pub(crate) fn digest_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// Ed25519 over the domain string and the digest of the signed bytes.
pub(crate) fn sign(seed: &Secret, domain: &[u8], digest: &[u8; 32]) -> [u8; 64] {
    SigningKey::from_bytes(seed.expose())
        .sign(&[domain, digest].concat())
        .to_bytes()
}

/// Whether `signature` is that of `public` in the strict sense, which refuses weak and non-canonical points.
pub(crate) fn verify(public: &[u8; 32], domain: &[u8], digest: &[u8; 32], signature: &[u8; 64]) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(public) else {
        return false;
    };
    key.verify_strict(&[domain, digest].concat(), &Signature::from_bytes(signature))
        .is_ok()
}

/// The Ed25519 public key of a seed.
pub(crate) fn signing_public(seed: &Secret) -> [u8; 32] {
    SigningKey::from_bytes(seed.expose()).verifying_key().to_bytes()
}

/// Whether these bytes are a public key that a strict verifier can accept signatures of.
pub(crate) fn is_strong_signing_key(public: &[u8; 32]) -> bool {
    VerifyingKey::from_bytes(public).is_ok_and(|key| !key.is_weak() && key.to_bytes() == *public)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_documents_open_with_the_same_key_and_data_only() {
        let key = Secret::generate().expect("random bytes");
        let sealed = seal(&key, b"about", b"text").expect("random bytes");
        assert_eq!(sealed.len(), 8 + 24 + 4 + 16);
        assert_eq!(
            open(&key, b"about", &sealed).map(|p| p.to_vec()),
            Ok(b"text".to_vec())
        );
        assert_eq!(
            open(&key, b"other", &sealed).err(),
            Some(OpenError::Authentication)
        );
        let other = Secret::generate().expect("random bytes");
        assert_eq!(
            open(&other, b"about", &sealed).err(),
            Some(OpenError::Authentication)
        );
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&key, b"about", &changed).is_err(), "byte {at}");
            assert!(open(&key, b"about", &sealed[..at]).is_err(), "cut at {at}");
        }
        let empty = seal(&key, b"", b"").expect("random bytes");
        assert_eq!(empty.len(), 48, "the shortest sealed document");
        assert!(open(&key, b"", &empty).is_ok());
    }

    #[test]
    fn signatures_are_bound_to_domain_and_bytes() {
        let seed = Secret::generate().expect("random bytes");
        let public = signing_public(&seed);
        let digest = digest_of(&[b"a", b"b"]);
        assert_eq!(digest, digest_of(&[b"ab"]));
        let signature = sign(&seed, domain::MANIFEST_SIGNATURE, &digest);
        assert!(verify(&public, domain::MANIFEST_SIGNATURE, &digest, &signature));
        assert!(!verify(&public, domain::POLICY_SIGNATURE, &digest, &signature));
        assert!(!verify(
            &public,
            domain::MANIFEST_SIGNATURE,
            &digest_of(&[b"c"]),
            &signature
        ));
        assert!(is_strong_signing_key(&public));
        let mut identity = [0; 32];
        identity[0] = 1;
        assert!(
            !is_strong_signing_key(&identity),
            "the identity is a small-order point"
        );
        assert!(!verify(&identity, domain::MANIFEST_SIGNATURE, &digest, &[0; 64]));
    }

    #[test]
    fn secrets_are_not_shown() {
        let key = GenerationKey::from_secret(Secret::new(Zeroizing::new([0x41; 32])));
        assert_eq!(format!("{key:?}"), "GenerationKey(Secret(…))");
    }
}
