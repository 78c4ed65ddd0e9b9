//! Manifests: one generation of a repository, as stored.
//!
//! A manifest has a readable *header* (position in the chain, envelopes, digests), a *sealed header* (who signed it,
//! under which policy) and a *body* (refs, new packs, the key of the generation before).

mod open;
mod seal;
#[cfg(test)]
mod tests;

pub(crate) use open::{Opened, Unopened};
pub(crate) use seal::{Draft, seal};

use serde::{Deserialize, Serialize};

use super::FORMAT_VERSION;
use super::crypto::OpenError;
use super::encoding::{base64_array, base64_bytes, base64_optional, domain, push_lp};
use super::envelope::{AuditEntry, Envelope, MAX_ENVELOPES, MIN_ENVELOPES};
use super::ids::{ContentId, DeviceId, Digest, RepositoryRoot};
use super::refs::RefMap;

/// No reader accepts a manifest of more bytes than this.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Why a single manifest was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More bytes than any manifest may have.
    #[error("manifest is larger than the limit of {MAX_BYTES} bytes")]
    TooLarge,
    /// Other bytes than the id names.
    #[error("manifest ciphertext hash mismatch: expected {expected}, stored bytes hash to {seen}")]
    IdMismatch {
        /// The id asked for.
        expected: ContentId,
        /// The id of what was read.
        seen: ContentId,
    },
    /// Not the document it should be.
    #[error("malformed manifest {part}: {source}")]
    Malformed {
        /// Which of the nested documents.
        part: &'static str,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// A manifest of another version.
    #[error("unsupported manifest format {0}; this program reads format {FORMAT_VERSION}")]
    UnsupportedFormat(u64),
    /// A number of envelopes that no writer makes.
    #[error("manifest has {0} envelopes, expected a power of two from {MIN_ENVELOPES} to {MAX_ENVELOPES}")]
    EnvelopeCount(usize),
    /// The key at hand is for another repository.
    #[error("key file belongs to a different repository: it is for {expected}, the manifest is of {seen}")]
    ForeignRepository {
        /// Root in the key file.
        expected: RepositoryRoot,
        /// Root in the manifest.
        seen: RepositoryRoot,
    },
    /// No envelope opens with the key at hand.
    #[error(
        "device is not an active reader of the current generation (revoked, never added, or envelope malformed)"
    )]
    NotReader,
    /// The key from an envelope or link is not the one the manifest commits to.
    #[error("generation key does not match the signed commitment")]
    Commitment,
    /// The body is not the one the header names.
    #[error("manifest body digest mismatch: header says {expected}, body hashes to {seen}")]
    BodyDigest {
        /// In the header.
        expected: Digest,
        /// Of the body.
        seen: Digest,
    },
    /// The sealed content is not the one the header names.
    #[error("sealed manifest header digest mismatch: header says {expected}, content hashes to {seen}")]
    ContentDigest {
        /// In the header.
        expected: Digest,
        /// Of the content.
        seen: Digest,
    },
    /// One of the sealed parts does not open.
    #[error("cannot open the {part} of the manifest: {source}")]
    Sealed {
        /// Which part.
        part: &'static str,
        /// Why.
        source: OpenError,
    },
    /// The content is written in another way than the one allowed.
    #[error("sealed manifest header is not in canonical form")]
    NotCanonical,
    /// A pack that claims another generation.
    #[error("pack {id} claims generation {seen}, expected {expected}")]
    PackGeneration {
        /// The pack.
        id: ContentId,
        /// In its descriptor.
        seen: u64,
        /// Of the manifest.
        expected: u64,
    },
    /// Packs that are not numbered one after another.
    #[error("pack {id} has ordinal {seen}, expected {expected}")]
    PackOrdinal {
        /// The pack.
        id: ContentId,
        /// In its descriptor.
        seen: u64,
        /// Its place in the list.
        expected: u64,
    },
    /// A pack without content.
    #[error("pack {id} claims to be empty")]
    EmptyPack {
        /// The pack.
        id: ContentId,
    },
    /// The same pack twice in one manifest.
    #[error("manifest lists pack {id} twice")]
    DuplicatePack {
        /// The pack.
        id: ContentId,
    },
    /// A link where none may be, or none where one must be.
    #[error("manifest generation {generation} {}", if *.present { "names a predecessor, which only later generations do" } else { "lacks the link to its predecessor" })]
    Link {
        /// Of the manifest.
        generation: u64,
        /// Whether a link or a predecessor is there.
        present: bool,
    },
}

/// By what right a manifest was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authorization {
    /// A writer changes refs.
    Writer,
    /// An administrator changes the policy.
    PolicyTransition,
    /// Reserved by the format; never valid.
    Checkpoint,
}

/// A pack that came with a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackDescriptor {
    /// Name of the sealed bytes.
    pub id: ContentId,
    /// Bytes of the Git pack inside.
    pub plaintext_size: u64,
    /// Generation of the manifest that lists it.
    pub generation: u64,
    /// Its place in that list, from 0.
    pub ordinal: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    #[serde(with = "base64_bytes")]
    header: Vec<u8>,
    #[serde(with = "base64_bytes")]
    sealed_header_ciphertext: Vec<u8>,
    #[serde(with = "base64_bytes")]
    body_ciphertext: Vec<u8>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub format_version: u64,
    pub repository_root: RepositoryRoot,
    pub generation: u64,
    pub previous: Option<ContentId>,
    pub key_commitment: Digest,
    pub generation_key_envelopes: Vec<Envelope>,
    pub body_digest: Digest,
    pub sealed_header_digest: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedHeader {
    #[serde(with = "base64_bytes")]
    content: Vec<u8>,
    #[serde(with = "base64_array")]
    signature: [u8; 64],
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Content {
    pub policy_id: ContentId,
    pub policy_generation: u64,
    pub signer_device_id: DeviceId,
    pub authorization: Authorization,
    pub total_pack_count: u64,
    pub envelope_audit: Vec<AuditEntry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    refs: RefMap,
    new_packs: Vec<PackDescriptor>,
    #[serde(with = "base64_optional", default)]
    predecessor_key_wrap: Option<Vec<u8>>,
    #[serde(with = "base64_optional", default)]
    introduced_policy: Option<Vec<u8>>,
}

fn body_aad(root: &RepositoryRoot, generation: u64) -> Vec<u8> {
    let mut aad = domain::BODY.to_vec();
    push_lp(&mut aad, root.to_hex().as_bytes());
    aad.extend_from_slice(&generation.to_le_bytes());
    aad
}

/// `generation` is that of the child, which holds the link; `parent` is the manifest whose key is in it.
fn link_aad(root: &RepositoryRoot, generation: u64, parent: &ContentId) -> Vec<u8> {
    let mut aad = domain::LINK.to_vec();
    push_lp(&mut aad, root.to_hex().as_bytes());
    aad.extend_from_slice(&generation.to_le_bytes());
    push_lp(&mut aad, parent.to_hex().as_bytes());
    aad
}

/// The digest that the signature is over, behind the domain string.
fn signed_digest(header: &[u8], content: &[u8], body_digest: &Digest) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(header.len() + content.len() + 76);
    push_lp(&mut bytes, header);
    push_lp(&mut bytes, content);
    push_lp(&mut bytes, body_digest.to_hex().as_bytes());
    super::crypto::digest_of(&[&bytes])
}
