//! Opening a stored manifest. The order of the checks is that of the format: nothing is decrypted with a key that
//! the manifest does not commit to, and nothing is parsed before its digest is known to be right.

use std::collections::HashSet;

use serde::de::DeserializeOwned;

use super::{
    Body, Content, Error, Header, MAX_BYTES, Outer, PackDescriptor, SealedHeader, body_aad, link_aad,
    signed_digest,
};
use crate::protocol::FORMAT_VERSION;
use crate::protocol::crypto::{self, GenerationKey, OpenError, Purpose, Secret};
use crate::protocol::encoding::compact_json;
use crate::protocol::envelope::{self, MAX_ENVELOPES, MIN_ENVELOPES, Scope};
use crate::protocol::ids::{ContentId, Digest, RepositoryRoot};
use crate::protocol::keys::{self, DeviceKey};
use crate::protocol::refs::RefMap;

/// A manifest of which only the header has been read.
pub(crate) struct Unopened {
    id: ContentId,
    outer: Outer,
    pub(crate) header: Header,
}

/// A manifest that opened with the right key. Its signature, and whether its signer had the right, are a matter of
/// the chain.
#[derive(Debug)]
pub(crate) struct Opened {
    pub id: ContentId,
    pub header: Header,
    pub content: Content,
    pub signature: [u8; 64],
    pub signed_digest: [u8; 32],
    pub refs: RefMap,
    pub new_packs: Vec<PackDescriptor>,
    pub introduced_policy: Option<Vec<u8>>,
    pub key: GenerationKey,
    /// Id and key of the manifest before; `None` at generation 0 alone.
    pub parent: Option<(ContentId, GenerationKey)>,
}

fn parse<T: DeserializeOwned>(part: &'static str, json: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(json).map_err(|source| Error::Malformed { part, source })
}

impl Unopened {
    /// Reads the bytes stored under `id` as far as the header.
    pub(crate) fn parse(id: &ContentId, bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_BYTES {
            return Err(Error::TooLarge);
        }
        let seen = ContentId::of(bytes);
        if seen != *id {
            return Err(Error::IdMismatch { expected: *id, seen });
        }
        let outer: Outer = parse("document", bytes)?;
        let header: Header =
            parse("header", &outer.header).map_err(|error| match keys::claimed_version(&outer.header) {
                Some(version) if version != u64::from(FORMAT_VERSION) => Error::UnsupportedFormat(version),
                _ => error,
            })?;
        if header.format_version != u64::from(FORMAT_VERSION) {
            return Err(Error::UnsupportedFormat(header.format_version));
        }
        let envelopes = header.generation_key_envelopes.len();
        if !envelopes.is_power_of_two() || !(MIN_ENVELOPES..=MAX_ENVELOPES).contains(&envelopes) {
            return Err(Error::EnvelopeCount(envelopes));
        }
        Ok(Self {
            id: *id,
            outer,
            header,
        })
    }

    /// The repository and the generation that the manifest claims. Nothing has vouched for either yet.
    pub(crate) fn claims(&self) -> (RepositoryRoot, u64) {
        (self.header.repository_root, self.header.generation)
    }

    /// The generation key out of the envelope for this device.
    pub(crate) fn own_key(&self, device: &DeviceKey) -> Result<GenerationKey, Error> {
        let header = &self.header;
        if header.repository_root != *device.root() {
            return Err(Error::ForeignRepository {
                expected: *device.root(),
                seen: header.repository_root,
            });
        }
        let scope = Scope {
            root: &header.repository_root,
            generation: header.generation,
            commitment: &header.key_commitment,
        };
        let mut opened_any = false;
        for envelope in &header.generation_key_envelopes {
            if let Some(key) = envelope::open(&scope, device.id(), device.wrapping(), envelope) {
                if key.matches(&header.key_commitment) {
                    return Ok(key);
                }
                opened_any = true;
            }
        }
        Err(if opened_any {
            Error::Commitment
        } else {
            Error::NotReader
        })
    }

    /// Opens all parts with the generation key.
    pub(crate) fn open(self, key: GenerationKey) -> Result<Opened, Error> {
        let Self { id, outer, header } = self;
        if !key.matches(&header.key_commitment) {
            return Err(Error::Commitment);
        }
        let body_digest = Digest::of(&outer.body_ciphertext);
        if body_digest != header.body_digest {
            return Err(Error::BodyDigest {
                expected: header.body_digest,
                seen: body_digest,
            });
        }
        let (root, generation) = (&header.repository_root, header.generation);
        let subkey = |purpose| key.subkey(root, generation, purpose, 0);
        let sealed_error = |part| move |source| Error::Sealed { part, source };

        let sealed = crypto::open(
            &subkey(Purpose::SealedHeader),
            &outer.header,
            &outer.sealed_header_ciphertext,
        )
        .map_err(sealed_error("sealed header"))?;
        let SealedHeader {
            content: content_json,
            signature,
        } = parse("sealed header", &sealed)?;
        let content_json = zeroize::Zeroizing::new(content_json);
        let content_digest = Digest::of(&content_json);
        if content_digest != header.sealed_header_digest {
            return Err(Error::ContentDigest {
                expected: header.sealed_header_digest,
                seen: content_digest,
            });
        }
        let content: Content = parse("sealed content", &content_json)?;
        if zeroize::Zeroizing::new(compact_json(&content)) != content_json {
            return Err(Error::NotCanonical);
        }

        let body = crypto::open(
            &subkey(Purpose::Body),
            &body_aad(root, generation),
            &outer.body_ciphertext,
        )
        .map_err(sealed_error("body"))?;
        let body: Body = parse("body", &body)?;
        check_packs(&body.new_packs, generation)?;

        let parent = match (generation, header.previous, &body.predecessor_key_wrap) {
            (0, None, None) => None,
            (0, ..) => {
                return Err(Error::Link {
                    generation,
                    present: true,
                });
            }
            (_, Some(previous), Some(wrap)) => {
                let aad = link_aad(root, generation, &previous);
                let secret = crypto::open(&subkey(Purpose::Link), &aad, wrap)
                    .and_then(|secret| Secret::from_slice(&secret).ok_or(OpenError::Format))
                    .map_err(sealed_error("predecessor link"))?;
                Some((previous, GenerationKey::from_secret(secret)))
            }
            _ => {
                return Err(Error::Link {
                    generation,
                    present: false,
                });
            }
        };
        Ok(Opened {
            id,
            signed_digest: signed_digest(&outer.header, &content_json, &body_digest),
            header,
            content,
            signature,
            refs: body.refs,
            new_packs: body.new_packs,
            introduced_policy: body.introduced_policy,
            key,
            parent,
        })
    }
}

fn check_packs(packs: &[PackDescriptor], generation: u64) -> Result<(), Error> {
    let mut ids = HashSet::with_capacity(packs.len());
    for (expected, pack) in (0u64..).zip(packs) {
        let id = pack.id;
        if pack.generation != generation {
            return Err(Error::PackGeneration {
                id,
                seen: pack.generation,
                expected: generation,
            });
        }
        if pack.ordinal != expected {
            return Err(Error::PackOrdinal {
                id,
                seen: pack.ordinal,
                expected,
            });
        }
        if pack.plaintext_size == 0 {
            return Err(Error::EmptyPack { id });
        }
        if !ids.insert(id) {
            return Err(Error::DuplicatePack { id });
        }
    }
    Ok(())
}
