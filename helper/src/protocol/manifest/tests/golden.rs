use super::*;

fn generation_key(vector: &Vector) -> GenerationKey {
    let bytes = HEXLOWER.decode(vector.generation_key.as_bytes()).expect("hex");
    GenerationKey::from_secret(Secret::from_slice(&bytes).expect("32 bytes"))
}

/// Opens a sealed document and seals it again with the nonce it has.
fn reopen(key: &Secret, aad: &[u8], sealed: &[u8]) -> Vec<u8> {
    let plaintext = crypto::open(key, aad, sealed).expect("opens");
    let nonce = sealed[8..32].try_into().expect("24 bytes");
    assert_eq!(
        crypto::seal_with_nonce(key, nonce, aad, &plaintext),
        sealed,
        "sealed again"
    );
    plaintext.to_vec()
}

#[test]
fn every_golden_value_is_derived_again() {
    for golden in Golden::both() {
        assert_eq!(golden.owner.root().to_string(), golden.vectors.repository_root);
        assert_eq!(golden.owner.id().to_string(), golden.vectors.reader_device_id);
        assert!(golden.owner.is_founder() && !golden.second.is_founder());
        for vector in &golden.vectors.generations {
            check_vector(&golden, vector);
        }
    }
}

fn check_vector(golden: &Golden, vector: &Vector) {
    let (root, generation) = (golden.owner.root(), vector.generation);
    let bytes = golden.manifest(&vector.manifest_id).expect("stored");
    assert_eq!(bytes.len(), vector.manifest_bytes);
    assert_eq!(ContentId::of(&bytes), vector.manifest_id);

    // Keys.
    let key = generation_key(vector);
    assert_eq!(key.commitment().to_string(), vector.key_commitment);
    let subkey = |purpose| key.subkey(root, generation, purpose, 0);
    for (purpose, expected) in [
        (Purpose::Body, &vector.subkey_body),
        (Purpose::Link, &vector.subkey_link),
        (Purpose::SealedHeader, &vector.subkey_sealed_header),
    ] {
        assert_eq!(
            &HEXLOWER.encode(subkey(purpose).expose()),
            expected,
            "{purpose:?}"
        );
    }

    // Documents, as bytes and as what this program would write.
    let outer: Outer = serde_json::from_slice(&bytes).expect("outer JSON");
    assert_eq!(text(&compact_json(&outer)), text(&bytes));
    assert_eq!(text(&outer.header), vector.header_json);
    let header: Header = serde_json::from_slice(&outer.header).expect("header");
    assert_eq!(text(&compact_json(&header)), vector.header_json);
    let sealed = reopen(
        &subkey(Purpose::SealedHeader),
        &outer.header,
        &outer.sealed_header_ciphertext,
    );
    assert_eq!(text(&sealed), vector.sealed_envelope_json);
    let sealed: SealedHeader = serde_json::from_slice(&sealed).expect("sealed header");
    assert_eq!(text(&compact_json(&sealed)), vector.sealed_envelope_json);
    assert_eq!(text(&sealed.content), vector.sealed_content_json);
    let content: Content = serde_json::from_slice(&sealed.content).expect("content");
    assert_eq!(text(&compact_json(&content)), vector.sealed_content_json);
    let body = reopen(
        &subkey(Purpose::Body),
        &body_aad(root, generation),
        &outer.body_ciphertext,
    );
    assert_eq!(text(&body), vector.body_json);
    let body: Body = serde_json::from_slice(&body).expect("body");
    assert_eq!(text(&compact_json(&body)), vector.body_json);
    if let (Some(previous), Some(wrap)) = (&header.previous, &body.predecessor_key_wrap) {
        let parent = reopen(
            &subkey(Purpose::Link),
            &link_aad(root, generation, previous),
            wrap,
        );
        let before = &golden.vectors.generations[generation as usize - 1];
        assert_eq!(HEXLOWER.encode(&parent), before.generation_key);
    }
    let policy = body.introduced_policy.as_deref().map(|object| {
        assert_eq!(Some(text(object)), vector.introduced_policy_object.as_deref());
        Policy::parse(object).expect("policy")
    });
    assert_eq!(policy.is_some(), vector.introduced_policy_object.is_some());

    // Facts and signature.
    assert_eq!(
        serde_json::to_value(content.authorization).expect("word"),
        vector.authorization.as_str()
    );
    assert_eq!(content.policy_id.to_string(), vector.policy_id);
    assert_eq!(content.policy_generation, vector.policy_generation);
    assert_eq!(content.signer_device_id.to_string(), vector.signer);
    assert_eq!(content.total_pack_count, vector.total_pack_count);
    let digest = signed_digest(&outer.header, &sealed.content, &header.body_digest);
    assert_eq!(HEXLOWER.encode(&digest), vector.signed_bytes_sha256);
    let signer = [&golden.owner, &golden.second]
        .into_iter()
        .find(|key| key.id().to_string() == vector.signer);
    let signature = signer
        .expect("a known device")
        .sign(domain::MANIFEST_SIGNATURE, &digest);
    assert_eq!(signature, sealed.signature, "Ed25519 is deterministic");

    // Envelopes.
    let scope = Scope {
        root,
        generation,
        commitment: &header.key_commitment,
    };
    for (entry, envelope) in content
        .envelope_audit
        .iter()
        .zip(&header.generation_key_envelopes)
    {
        let AuditEntry::Recipient {
            device_id,
            encapsulation_seed,
        } = entry
        else {
            continue;
        };
        let device = [&golden.owner, &golden.second]
            .into_iter()
            .find(|key| key.id() == device_id);
        let device = device.expect("a known device");
        let public = &device.public().wrapping_public_key;
        let again = envelope::seal(&scope, device_id, public, encapsulation_seed, &key);
        assert_eq!(again.as_ref(), Some(envelope));
        let unopened = Unopened::parse(&vector.manifest_id, &bytes).expect("parses");
        assert_eq!(
            unopened.own_key(device).expect("own envelope").expose(),
            key.expose()
        );
    }
    let second_reads = (6..=8).contains(&generation);
    let unopened = Unopened::parse(&vector.manifest_id, &bytes).expect("parses");
    assert_eq!(
        unopened.own_key(&golden.second).is_ok(),
        second_reads,
        "generation {generation}"
    );
}

#[test]
fn golden_policies_are_made_again() {
    for golden in Golden::both() {
        let vector = |generation: usize| &golden.vectors.generations[generation];
        let check = |policy: &Policy, vector: &Vector| {
            assert_eq!(
                Some(text(policy.object())),
                vector.introduced_policy_object.as_deref()
            );
            assert_eq!(policy.id().to_string(), vector.policy_id);
            let object: serde_json::Value = serde_json::from_slice(policy.object()).expect("JSON");
            let body = object["body"]
                .as_str()
                .and_then(crate::protocol::encoding::decode_base64);
            assert_eq!(
                body.as_deref().map(text),
                vector.introduced_policy_body.as_deref()
            );
        };
        let genesis = Policy::genesis(&golden.owner).expect("policy");
        check(&genesis, vector(0));
        let add = Change::Add {
            device: golden.second.public().clone(),
            role: Role::Write,
        };
        let added = genesis.transition(&golden.owner, &[add]).expect("policy");
        check(&added, vector(6));
        let revoked = added
            .transition(&golden.owner, &[Change::Revoke(*golden.second.id())])
            .expect("policy");
        check(&revoked, vector(9));
    }
}
