//! Making a manifest.

use super::{
    Authorization, Body, Content, Header, Outer, PackDescriptor, SealedHeader, body_aad, link_aad,
    signed_digest,
};
use crate::protocol::FORMAT_VERSION;
use crate::protocol::crypto::{self, GenerationKey, Purpose};
use crate::protocol::encoding::{compact_json, domain};
use crate::protocol::envelope::{self, Scope};
use crate::protocol::ids::{ContentId, Digest};
use crate::protocol::keys::DeviceKey;
use crate::protocol::policy::Policy;
use crate::protocol::refs::RefMap;

/// All that a manifest says, before it is sealed.
#[derive(Clone, Copy)]
pub(crate) struct Draft<'a> {
    pub generation: u64,
    /// Id and key of the manifest before; `None` at generation 0 alone.
    pub parent: Option<(&'a ContentId, &'a GenerationKey)>,
    pub authorization: Authorization,
    /// The policy in force from this manifest on. Its active readers get the envelopes.
    pub policy: &'a Policy,
    pub introduces_policy: bool,
    /// Packs in the chain, the new ones included.
    pub total_pack_count: u64,
    pub refs: &'a RefMap,
    pub new_packs: &'a [PackDescriptor],
}

/// Seals and signs a manifest under its fresh key; the bytes are ready to be stored.
///
/// Whether the signer has the right, and whether the draft follows its parent, is for the caller to check.
pub(crate) fn seal(
    draft: &Draft<'_>,
    key: &GenerationKey,
    signer: &DeviceKey,
) -> Result<Vec<u8>, envelope::Error> {
    let (root, generation) = (draft.policy.root(), draft.generation);
    let key_commitment = key.commitment();
    let subkey = |purpose| key.subkey(root, generation, purpose, 0);

    let scope = Scope {
        root,
        generation,
        commitment: &key_commitment,
    };
    let readers: Vec<_> = draft
        .policy
        .active_readers()
        .map(|device| (&device.device_id, &device.wrapping_public_key))
        .collect();
    let (generation_key_envelopes, envelope_audit) = envelope::seal_all(&scope, readers.into_iter(), key)?;

    let predecessor_key_wrap = match draft.parent {
        Some((id, parent_key)) => Some(crypto::seal(
            &subkey(Purpose::Link),
            &link_aad(root, generation, id),
            parent_key.expose(),
        )?),
        None => None,
    };
    let body = compact_json(&Body {
        refs: draft.refs.clone(),
        new_packs: draft.new_packs.to_vec(),
        predecessor_key_wrap,
        introduced_policy: draft.introduces_policy.then(|| draft.policy.object().to_vec()),
    });
    let body_ciphertext = crypto::seal(&subkey(Purpose::Body), &body_aad(root, generation), &body)?;
    let body_digest = Digest::of(&body_ciphertext);

    let content = zeroize::Zeroizing::new(compact_json(&Content {
        policy_id: *draft.policy.id(),
        policy_generation: draft.policy.generation(),
        signer_device_id: *signer.id(),
        authorization: draft.authorization,
        total_pack_count: draft.total_pack_count,
        envelope_audit,
    }));
    let header = compact_json(&Header {
        format_version: u64::from(FORMAT_VERSION),
        repository_root: *root,
        generation,
        previous: draft.parent.map(|(id, _)| *id),
        key_commitment,
        generation_key_envelopes,
        body_digest,
        sealed_header_digest: Digest::of(&content),
    });
    let signature = signer.sign(
        domain::MANIFEST_SIGNATURE,
        &signed_digest(&header, &content, &body_digest),
    );
    let sealed_header = zeroize::Zeroizing::new(compact_json(&SealedHeader {
        content: content.to_vec(),
        signature,
    }));
    let sealed_header_ciphertext = crypto::seal(&subkey(Purpose::SealedHeader), &header, &sealed_header)?;
    Ok(compact_json(&Outer {
        header,
        sealed_header_ciphertext,
        body_ciphertext,
    }))
}
