use super::*;

#[test]
fn writers_may_change_refs_and_nothing_else() {
    let mut repository = Repository::new();
    assert_eq!(repository.forge(|_| ()), "accepted");
    let none = RefMap::new();
    assert_eq!(repository.forge(|forgery| forgery.draft.refs = &none), "accepted");

    let message = repository.forge(|forgery| forgery.draft.introduces_policy = true);
    assert_eq!(message, "a writer's manifest must not introduce a policy");
    let message = repository.forge(|forgery| forgery.draft.authorization = Authorization::Checkpoint);
    assert_eq!(message, "checkpoint transitions are reserved but not implemented");
    let message = repository.forge(|forgery| forgery.draft.total_pack_count = 4);
    assert_eq!(message, "total pack count is 4, expected 3");
    let genesis = std::sync::Arc::clone(repository.chain.generations()[0].policy());
    let message = repository.forge(|forgery| forgery.draft.policy = &genesis);
    assert!(
        message.starts_with(&format!("manifest names policy {}", genesis.id())),
        "{message}"
    );

    let again = [PackDescriptor {
        id: ContentId::of(b"one"),
        plaintext_size: 1,
        generation: 4,
        ordinal: 0,
    }];
    let message = repository.forge(|forgery| {
        forgery.draft.new_packs = &again;
        forgery.draft.total_pack_count = 4;
    });
    assert_eq!(
        message,
        format!(
            "manifest delta reuses previously imported pack ID {}",
            again[0].id
        )
    );

    let stranger = DeviceKey::generate(Some(*repository.founder.root())).expect("random bytes");
    let message = repository.forge(|forgery| forgery.signer = &stranger);
    assert_eq!(
        message,
        format!("signer {} is not an active writer", stranger.id())
    );

    // A revoked writer, and one that may only read.
    let reader = DeviceKey::generate(Some(*repository.founder.root())).expect("random bytes");
    let changes = [
        Change::Revoke(*repository.guest.id()),
        Change::Add {
            device: reader.public().clone(),
            role: Role::Read,
        },
    ];
    let transition = publication::transition(&repository.chain, &repository.founder, &changes);
    repository.chain = repository.store.put(transition.expect("transition"));
    let message = repository.forge(|_| ());
    assert_eq!(
        message,
        format!("signer {} is not an active writer", repository.guest.id())
    );
    let message = repository.forge(|forgery| forgery.signer = &reader);
    assert_eq!(message, format!("signer {} is not an active writer", reader.id()));
    assert!(matches!(
        Writer::begin(&repository.chain, &reader),
        Err(publication::Error::ReadOnly)
    ));
    assert!(matches!(
        Writer::begin(&repository.chain, &repository.guest),
        Err(publication::Error::NotWriter)
    ));
    let error = repository
        .store
        .read(repository.chain.head().id(), &repository.guest)
        .expect_err("revoked");
    assert!(matches!(error, ReadError::Chain(error) if error.kind() == Kind::WrongKey));
    assert!(
        repository
            .store
            .read(repository.chain.head().id(), &reader)
            .is_ok()
    );
}

#[test]
fn transitions_change_the_policy_and_nothing_else() {
    let repository = Repository::new();
    let next = repository
        .chain
        .policy()
        .transition(&repository.founder, &[])
        .expect("policy");
    let transition = |forgery: &mut Forgery<'_>| {
        forgery.draft.authorization = Authorization::PolicyTransition;
        forgery.draft.introduces_policy = true;
    };
    let message = repository.forge(|forgery| {
        transition(forgery);
        forgery.draft.policy = &next;
        forgery.signer = &repository.founder;
    });
    assert_eq!(message, "accepted", "a policy that changes nothing is valid");
    let message = repository.forge(|forgery| {
        transition(forgery);
        forgery.draft.policy = &next;
    });
    assert_eq!(
        message,
        format!("signer {} is not an active administrator", repository.guest.id())
    );
    let message = repository.forge(|forgery| {
        transition(forgery);
        forgery.signer = &repository.founder;
    });
    assert_eq!(message, "policy generation is 1, expected 2");
    let message = repository.forge(|forgery| {
        transition(forgery);
        forgery.draft.introduces_policy = false;
    });
    assert_eq!(message, "policy transition does not introduce a policy");
    let none = RefMap::new();
    let message = repository.forge(|forgery| {
        transition(forgery);
        forgery.draft.policy = &next;
        forgery.draft.refs = &none;
    });
    assert_eq!(message, "policy transition must not change refs or add packs");
}

#[test]
fn links_must_fit() {
    let repository = Repository::new();
    // A grandparent as parent: the generation does not fit.
    let grandparent = &repository.chain.generations()[2];
    let message = repository.forge(|forgery| {
        forgery.draft.parent = Some((grandparent.id(), grandparent.key()));
    });
    assert_eq!(message, "generation is 2, expected 3 from the manifest after it");
    // Another key in the link.
    let message = repository.forge(|forgery| {
        forgery.draft.parent = Some((repository.chain.head().id(), grandparent.key()));
    });
    assert!(
        message.ends_with("generation key does not match the signed commitment"),
        "{message}"
    );
    // The first manifest of another repository.
    let other = Repository::new();
    let mut store = repository.store.clone();
    store.0.extend(other.store.0.clone());
    let head = repository.chain.head();
    let foreign = other.chain.head();
    let key = GenerationKey::generate().expect("random bytes");
    let draft = Draft {
        generation: 4,
        parent: Some((foreign.id(), foreign.key())),
        authorization: Authorization::Writer,
        policy: head.policy(),
        introduces_policy: false,
        total_pack_count: 3,
        refs: &RefMap::new(),
        new_packs: &[],
    };
    let bytes = manifest::seal(&draft, &key, &repository.founder).expect("sealed");
    let id = ContentId::of(&bytes);
    store.0.insert(id, bytes);
    let error = store
        .read(&id, &repository.founder)
        .expect_err("foreign history")
        .to_string();
    assert!(
        error.contains(&format!("repository root is {}", other.chain.root())),
        "{error}"
    );
}

/// Reads the last manifest of the repository, changed after it was opened, and gives the rule it breaks.
fn judged(repository: &Repository, change: impl FnOnce(&mut manifest::Opened)) -> String {
    let fetch = |id: &ContentId| {
        repository
            .store
            .0
            .get(id)
            .cloned()
            .ok_or(io::Error::from(io::ErrorKind::NotFound))
    };
    let head = repository.chain.head().id();
    let walked = super::read::walk(fetch, head, &repository.founder, usize::MAX, None);
    let mut walked = walked.unwrap_or_else(|error| panic!("{error}"));
    change(&mut walked.above.last_mut().expect("a chain").opened);
    match super::read::verify(walked.above, walked.refs, None) {
        Ok(_) => "accepted".to_owned(),
        Err(Error::Rule { rule, .. }) => rule.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn signatures_and_envelopes_are_audited() {
    use crate::protocol::envelope::AuditEntry;
    let repository = Repository::new();
    let guest = *repository.guest.id();
    assert_eq!(judged(&repository, |_| ()), "accepted");
    let message = judged(&repository, |opened| opened.signature[0] ^= 1);
    assert_eq!(
        message,
        format!("signature verification failed for signer {guest}")
    );
    let message = judged(&repository, |opened| opened.signed_digest[0] ^= 1);
    assert_eq!(
        message,
        format!("signature verification failed for signer {guest}")
    );
    let message = judged(&repository, |opened| {
        opened.header.generation_key_envelopes.swap(0, 1)
    });
    assert_eq!(
        message,
        "generation envelopes are not in strictly increasing order"
    );
    let message = judged(&repository, |opened| {
        let envelopes = &mut opened.header.generation_key_envelopes;
        envelopes[1] = envelopes[0].clone();
    });
    assert_eq!(
        message,
        "generation envelopes are not in strictly increasing order"
    );

    let recipient = |audit: &[AuditEntry], id: &DeviceId| {
        let is_it =
            |entry: &AuditEntry| matches!(entry, AuditEntry::Recipient { device_id, .. } if device_id == id);
        audit.iter().position(is_it).expect("a recipient")
    };
    let exactly = "envelope audit must match active readers exactly: ";
    let message = judged(&repository, |opened| {
        let at = recipient(&opened.content.envelope_audit, &guest);
        opened.content.envelope_audit[at] = AuditEntry::Dummy;
    });
    assert_eq!(message, format!("{exactly}device {guest} has no envelope"));
    let message = judged(&repository, |opened| {
        let audit = &mut opened.content.envelope_audit;
        let at = recipient(audit, &guest);
        let dummy = audit
            .iter()
            .position(|entry| matches!(entry, AuditEntry::Dummy))
            .expect("a dummy");
        audit[dummy] = audit[at].clone();
    });
    assert_eq!(
        message,
        format!("{exactly}device {guest} is no active reader or is listed twice")
    );
    let message = judged(&repository, |opened| {
        opened.content.envelope_audit.pop();
    });
    assert_eq!(message, format!("{exactly}3 entries for 4 envelopes"));
    let message = judged(&repository, |opened| {
        let at = recipient(&opened.content.envelope_audit, &guest);
        let encapsulation_seed = Secret::generate().expect("random bytes");
        opened.content.envelope_audit[at] = AuditEntry::Recipient {
            device_id: guest,
            encapsulation_seed,
        };
    });
    assert_eq!(
        message,
        format!("generation envelope does not match its sealed audit entry for device {guest}")
    );
    let message = judged(&repository, |opened| {
        let at = recipient(&opened.content.envelope_audit, &guest);
        opened.header.generation_key_envelopes[at].ciphertext[3] ^= 1;
    });
    assert_eq!(
        message,
        format!("generation envelope does not match its sealed audit entry for device {guest}")
    );
    // Another generation key than the envelopes hold: what a writer who serves two histories would do.
    let message = judged(&repository, |opened| {
        let key = GenerationKey::generate().expect("random bytes");
        opened.header.key_commitment = key.commitment();
        opened.key = key;
    });
    assert!(
        message.starts_with("generation envelope does not match its sealed audit entry"),
        "{message}"
    );
}

#[test]
fn the_first_manifest_has_rules_of_its_own() {
    let founder = DeviceKey::generate(None).expect("random bytes");
    let guest = DeviceKey::generate(Some(*founder.root())).expect("random bytes");
    let genesis = policy::Policy::genesis(&founder).expect("policy");
    let add = Change::Add {
        device: guest.public().clone(),
        role: Role::Admin,
    };
    let later = genesis.transition(&founder, &[add]).expect("policy");
    let none = RefMap::new();
    let draft = Draft {
        generation: 0,
        parent: None,
        authorization: Authorization::PolicyTransition,
        policy: &genesis,
        introduces_policy: true,
        total_pack_count: 0,
        refs: &none,
        new_packs: &[],
    };
    let judge = |draft: Draft<'_>, signer: &DeviceKey| {
        let key = GenerationKey::generate().expect("random bytes");
        let bytes = manifest::seal(&draft, &key, signer).expect("sealed");
        match Chain::extend(None, &bytes, &key) {
            Ok(_) => "accepted".to_owned(),
            Err(Error::Rule { rule, .. }) => rule.to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(judge(draft, &founder), "accepted");
    let must = "first manifest must be a policy transition that introduces a policy";
    assert_eq!(
        judge(
            Draft {
                authorization: Authorization::Writer,
                ..draft
            },
            &founder
        ),
        must
    );
    assert_eq!(
        judge(
            Draft {
                introduces_policy: false,
                ..draft
            },
            &founder
        ),
        must
    );
    assert_eq!(
        judge(
            Draft {
                policy: &later,
                ..draft
            },
            &founder
        ),
        "policy generation is 1, expected 0"
    );
    assert_eq!(
        judge(
            Draft {
                total_pack_count: 1,
                ..draft
            },
            &founder
        ),
        "total pack count is 1, expected 0"
    );
    let message = judge(draft, &guest);
    assert_eq!(
        message,
        format!("signer {} is not an active administrator", guest.id())
    );
    let empty = "first manifest must have no refs and no packs";
    assert_eq!(
        judge(
            Draft {
                refs: &refs(&["main"]),
                ..draft
            },
            &founder
        ),
        empty
    );
    let packs = [PackDescriptor {
        id: ContentId::of(b"p"),
        plaintext_size: 1,
        generation: 0,
        ordinal: 0,
    }];
    assert_eq!(
        judge(
            Draft {
                new_packs: &packs,
                total_pack_count: 1,
                ..draft
            },
            &founder
        ),
        empty
    );
}
