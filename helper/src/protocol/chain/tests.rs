use std::collections::HashMap;
use std::io;

use super::*;
use crate::protocol::crypto::{self, Secret};
use crate::protocol::golden::Golden;
use crate::protocol::keys::DeviceKey;
use crate::protocol::manifest::{self, Draft};
use crate::protocol::pack_stream::SealedPack;
use crate::protocol::policy::{self, Change, Role};
use crate::protocol::publication::{self, Publication, Writer};

#[test]
fn golden_chains_read_as_expected() {
    for golden in Golden::both() {
        let expected = &golden.expected;
        let chain = Chain::read(
            |id| golden.manifest(id),
            &expected.head_manifest_id,
            &golden.owner,
        );
        let chain = chain.expect("golden chain");
        assert_eq!(chain.root().to_string(), expected.repository_root);
        assert_eq!(*chain.head().id(), expected.head_manifest_id);
        assert_eq!(chain.head().number(), expected.generation);
        assert_eq!(chain.policy().id().to_string(), expected.policy_id);
        assert_eq!(chain.policy().generation(), expected.policy_generation);
        assert_eq!(chain.pack_count(), expected.pack_count);
        assert_eq!(chain.refs(), &expected.refs);
        let devices = chain.policy().devices();
        assert_eq!(devices.len(), expected.devices.len());
        for (device, expected) in devices.iter().zip(&expected.devices) {
            assert_eq!(device.device_id.to_string(), expected.device_id);
            assert_eq!(
                device.roles.highest().map(Role::as_str),
                Some(expected.role.as_str())
            );
            assert_eq!(device.revoked_at, expected.revoked_at);
        }
        assert_eq!(chain.generations().len(), expected.generations.len());
        for (number, (generation, expected)) in
            (0..).zip(chain.generations().iter().zip(&expected.generations))
        {
            assert_eq!(
                (generation.number(), *generation.id()),
                (number, expected.manifest_id)
            );
            assert_eq!(
                chain.refs_at(number).as_ref(),
                Some(&expected.refs),
                "generation {number}"
            );
        }
        assert_eq!(chain.refs_at(10), None);
    }
}

#[test]
fn the_second_device_reads_while_it_is_active() {
    for golden in Golden::both() {
        let generations = &golden.expected.generations;
        let read = |number: usize| {
            Chain::read(
                |id| golden.manifest(id),
                &generations[number].manifest_id,
                &golden.second,
            )
        };
        for number in [6, 7, 8] {
            let chain = read(number).expect("an active reader");
            assert_eq!(chain.refs(), &generations[number].refs);
            assert_eq!(
                chain.generations().len(),
                number + 1,
                "all history is open to a new reader"
            );
        }
        for number in [0, 5, 9] {
            let error = read(number).expect_err("not an active reader");
            let ReadError::Chain(error) = error else {
                panic!("{error}")
            };
            assert_eq!(error.kind(), Kind::WrongKey);
            assert!(error.to_string().ends_with(
                "device is not an active reader of the current generation (revoked, never added, or envelope malformed)"
            ));
        }
    }
}

/// Manifests in memory.
#[derive(Default, Clone)]
struct Store(HashMap<ContentId, Vec<u8>>);

impl Store {
    fn put(&mut self, publication: Publication) -> Chain {
        self.0.insert(*publication.id(), publication.bytes().to_vec());
        publication.into_chain()
    }

    fn read(&self, head: &ContentId, key: &DeviceKey) -> Result<Chain, ReadError<io::Error>> {
        Chain::read(
            |id| {
                self.0
                    .get(id)
                    .cloned()
                    .ok_or_else(|| io::ErrorKind::NotFound.into())
            },
            head,
            key,
        )
    }
}

fn refs(names: &[&str]) -> RefMap {
    names
        .iter()
        .map(|name| (format!("refs/heads/{name}"), "1".repeat(40)))
        .collect()
}

fn sealed(name: &[u8]) -> SealedPack {
    SealedPack {
        id: ContentId::of(name),
        plaintext_size: 32,
        stored_size: 79,
    }
}

/// A repository of a founder and a guest who may write: genesis, the guest's addition, two pushes.
struct Repository {
    store: Store,
    founder: DeviceKey,
    guest: DeviceKey,
    chain: Chain,
}

impl Repository {
    fn new() -> Self {
        let mut store = Store::default();
        let founder = DeviceKey::generate(None).expect("random bytes");
        let guest = DeviceKey::generate(Some(*founder.root())).expect("random bytes");
        let chain = store.put(publication::genesis(&founder).expect("genesis"));
        let add = Change::Add {
            device: guest.public().clone(),
            role: Role::Write,
        };
        let chain = store.put(publication::transition(&chain, &founder, &[add]).expect("transition"));
        let mut this = Self {
            store,
            founder,
            guest,
            chain,
        };
        this.push(&["main"], &[b"one"]);
        this.push(&["main", "topic"], &[b"two", b"three"]);
        this
    }

    fn push(&mut self, names: &[&str], packs: &[&[u8]]) {
        let mut writer = Writer::begin(&self.chain, &self.guest).expect("a writer");
        packs.iter().for_each(|pack| writer.add_pack(&sealed(pack)));
        let publication = writer.publish(&refs(names)).expect("published");
        self.chain = self.store.put(publication);
    }

    /// Stores a manifest that no checked way makes, on top of the chain, and gives the rule it breaks.
    fn forge<'a>(&'a self, change: impl FnOnce(&mut Forgery<'a>)) -> String {
        let mut forgery = Forgery {
            draft: Draft {
                generation: self.chain.head().number() + 1,
                parent: Some((self.chain.head().id(), self.chain.head().key())),
                authorization: Authorization::Writer,
                policy: self.chain.policy(),
                introduces_policy: false,
                total_pack_count: self.chain.pack_count(),
                refs: self.chain.refs(),
                new_packs: &[],
            },
            signer: &self.guest,
        };
        change(&mut forgery);
        let key = GenerationKey::generate().expect("random bytes");
        let bytes = manifest::seal(&forgery.draft, &key, forgery.signer).expect("sealed");
        let id = ContentId::of(&bytes);
        let mut store = self.store.clone();
        store.0.insert(id, bytes);
        match store.read(&id, &self.founder) {
            Ok(_) => "accepted".to_owned(),
            Err(ReadError::Chain(Error::Rule { rule, .. })) => rule.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

struct Forgery<'a> {
    draft: Draft<'a>,
    signer: &'a DeviceKey,
}

#[test]
fn what_is_published_is_read_by_every_reader() {
    let mut repository = Repository::new();
    for key in [&repository.founder, &repository.guest] {
        let chain = repository
            .store
            .read(repository.chain.head().id(), key)
            .expect("a reader");
        assert_eq!(chain.refs(), &refs(&["main", "topic"]));
        assert_eq!(chain.pack_count(), 3);
        assert_eq!(chain.generations().len(), 4);
        assert_eq!(chain.generation(3).expect("exists").ref_changes().len(), 1);
        assert_eq!(chain.head().signer(), repository.guest.id());
        assert!(chain.has_pack(&ContentId::of(b"two")));
        assert!(!chain.has_pack(&ContentId::of(b"four")));
        let first = chain.packs().next().expect("a pack").clone();
        assert!(chain.pack_key(&first).is_some());
        assert!(chain.pack_key(&PackDescriptor { ordinal: 1, ..first }).is_none());
    }
    // Deleting everything, with no pack, is a generation like any other.
    repository.push(&[], &[]);
    let chain = repository
        .store
        .read(repository.chain.head().id(), &repository.founder)
        .expect("a reader");
    assert!(chain.refs().is_empty());
    assert_eq!(chain.refs_at(3), Some(refs(&["main", "topic"])));
}

#[test]
fn a_long_chain_is_verified_on_all_cores() {
    let mut repository = Repository::new();
    for number in 0..20 {
        repository.push(&["main", &format!("b{number}")], &[]);
    }
    let head = *repository.chain.head().id();
    let chain = repository
        .store
        .read(&head, &repository.founder)
        .expect("a reader");
    assert_eq!(chain.generations().len(), 24);
}

#[test]
fn memory_is_bounded() {
    let repository = Repository::new();
    let fetch = |id: &ContentId| {
        repository
            .store
            .0
            .get(id)
            .cloned()
            .ok_or(io::Error::from(io::ErrorKind::NotFound))
    };
    let result = super::read::walk(fetch, repository.chain.head().id(), &repository.founder, 3000);
    let Err(ReadError::Chain(Error::TooLarge { limit: 3000, .. })) = result else {
        panic!("not refused")
    };
}

#[test]
fn missing_and_wrong_manifests_are_named() {
    let repository = Repository::new();
    let head = *repository.chain.head().id();
    for generation in repository.chain.generations() {
        let mut store = repository.store.clone();
        store.0.remove(generation.id());
        let error = store.read(&head, &repository.founder).expect_err("missing");
        assert!(
            matches!(error, ReadError::Storage { id, .. } if id == *generation.id()),
            "{error}"
        );

        let mut store = repository.store.clone();
        store.0.get_mut(generation.id()).expect("stored").push(b' ');
        let error = store.read(&head, &repository.founder).expect_err("changed");
        assert!(
            error
                .to_string()
                .contains("manifest ciphertext hash mismatch: expected"),
            "{error}"
        );
    }
    // One manifest in the place of another.
    let mut store = repository.store.clone();
    let other = store.0[repository.chain.generations()[1].id()].clone();
    store.0.insert(head, other);
    assert!(store.read(&head, &repository.founder).is_err());
}

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
    let walked = super::read::walk(fetch, head, &repository.founder, usize::MAX);
    let (mut unverified, refs) = walked.unwrap_or_else(|error| panic!("{error}"));
    change(&mut unverified.last_mut().expect("a chain").opened);
    match super::read::verify(unverified, refs) {
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

#[test]
fn publications_are_checked_before_they_are_made() {
    let repository = Repository::new();
    let chain = &repository.chain;
    let publish = |refs: &RefMap| {
        Writer::begin(chain, &repository.guest)
            .expect("a writer")
            .publish(refs)
    };
    let bad = RefMap::from([("refs/notes/x".to_owned(), "1".repeat(40))]);
    assert!(matches!(publish(&bad), Err(publication::Error::Refs(_))));
    let bad = RefMap::from([("refs/heads/x".to_owned(), "1".repeat(39))]);
    assert!(matches!(publish(&bad), Err(publication::Error::Refs(_))));
    let many: RefMap = (0..200_000)
        .map(|n| (format!("refs/heads/branch-{n:06}"), format!("{n:040x}")))
        .skip(1)
        .collect();
    let error = publish(&many).expect_err("more than readers accept");
    assert!(matches!(error, publication::Error::TooLarge { size } if size > manifest::MAX_BYTES));

    let mut writer = Writer::begin(chain, &repository.guest).expect("a writer");
    writer.add_pack(&sealed(b"one"));
    let error = writer.publish(chain.refs()).expect_err("known pack");
    assert!(matches!(error, publication::Error::SelfCheck(Error::Rule { .. })));

    let stranger = DeviceKey::generate(None).expect("random bytes");
    assert!(matches!(
        Writer::begin(chain, &stranger),
        Err(publication::Error::ForeignRepository { .. })
    ));
    let error = publication::transition(chain, &repository.guest, &[]).expect_err("no administrator");
    assert!(
        error
            .to_string()
            .starts_with("device is not an active administrator"),
        "{error}"
    );
}

mod policies {
    use super::*;
    use crate::protocol::policy::{Error, Policy};

    fn device(founder: &DeviceKey) -> DeviceKey {
        DeviceKey::generate(Some(*founder.root())).expect("random bytes")
    }

    fn add(key: &DeviceKey, role: Role) -> Change {
        Change::Add {
            device: key.public().clone(),
            role,
        }
    }

    #[test]
    fn membership_changes() {
        let founder = DeviceKey::generate(None).expect("random bytes");
        let (second, third) = (device(&founder), device(&founder));
        let genesis = Policy::genesis(&founder).expect("policy");
        let two = genesis
            .transition(&founder, &[add(&second, Role::Admin)])
            .expect("policy");
        assert!(matches!(
            two.transition(&founder, &[add(&second, Role::Read)]),
            Err(Error::DeviceExists(_))
        ));
        let unknown = two.transition(&founder, &[Change::Revoke(*third.id())]);
        assert!(matches!(unknown, Err(Error::DeviceNotActive(_))));

        // Replaced in one step, by the other administrator.
        let replace = [add(&third, Role::Write), Change::Revoke(*founder.id())];
        let replaced = two.transition(&second, &replace).expect("policy");
        assert_eq!(replaced.generation(), 2);
        assert_eq!(
            replaced.device(founder.id()).and_then(|device| device.revoked_at),
            Some(2)
        );
        assert!(replaced.devices().is_sorted_by_key(|device| device.device_id));
        assert_eq!(replaced.active_readers().count(), 2);
        assert!(matches!(
            replaced.transition(&founder, &[]),
            Err(Error::NotAdministrator(_))
        ));
        let twice = replaced.transition(&second, &[Change::Revoke(*founder.id())]);
        assert!(matches!(twice, Err(Error::DeviceNotActive(_))));
        let back = replaced.transition(&second, &[add(&founder, Role::Read)]);
        assert!(
            matches!(back, Err(Error::DeviceExists(_))),
            "a revoked device does not come back"
        );
        let last = replaced.transition(&second, &[Change::Revoke(*second.id())]);
        assert_eq!(
            last.expect_err("last").to_string(),
            "cannot revoke the last active administrator"
        );
        let last = genesis.transition(&founder, &[Change::Revoke(*founder.id())]);
        assert_eq!(
            last.expect_err("last").to_string(),
            "cannot revoke the last active reader"
        );
        let foreign = DeviceKey::generate(None).expect("random bytes");
        assert!(matches!(
            genesis.transition(&founder, &[add(&foreign, Role::Read)]),
            Err(Error::ForeignRoot { .. })
        ));
    }

    /// Signs a changed body, as a dishonest administrator could.
    fn forged(
        signer: &DeviceKey,
        policy: &Policy,
        change: &dyn Fn(&mut serde_json::Value),
    ) -> Result<Policy, Error> {
        let object: serde_json::Value = serde_json::from_slice(policy.object()).expect("JSON");
        let body = object["body"]
            .as_str()
            .and_then(|text| data_encoding::BASE64.decode(text.as_bytes()).ok());
        let mut body: serde_json::Value = serde_json::from_slice(&body.expect("base64")).expect("JSON");
        change(&mut body);
        let body = body.to_string();
        let digest = crypto::digest_of(&[body.as_bytes()]);
        let signature = signer.sign(crate::protocol::encoding::domain::POLICY_SIGNATURE, &digest);
        let object = serde_json::json!({
            "body": data_encoding::BASE64.encode(body.as_bytes()),
            "signatures": [{
                "device_id": signer.id(),
                "signature": data_encoding::BASE64.encode(&signature),
            }],
        });
        Policy::parse(object.to_string().as_bytes())
    }

    #[test]
    fn forgeries() {
        let founder = DeviceKey::generate(None).expect("random bytes");
        let second = device(&founder);
        let genesis = Policy::genesis(&founder).expect("policy");
        let two = genesis
            .transition(&founder, &[add(&second, Role::Write)])
            .expect("policy");
        let index = |policy: &Policy, key: &DeviceKey| {
            policy
                .devices()
                .iter()
                .position(|device| device.device_id == *key.id())
                .expect("listed")
        };
        let parse =
            |change: &dyn Fn(&mut serde_json::Value)| forged(&founder, &two, change).expect_err("refused");
        let follow = |change: &dyn Fn(&mut serde_json::Value)| {
            let policy = forged(&founder, &two, change).expect("holds in itself");
            policy.verify_successor(&genesis).expect_err("refused")
        };
        let (first_at, second_at) = (index(&two, &founder), index(&two, &second));
        assert!(
            forged(&founder, &two, &|_| ())
                .expect("unchanged")
                .verify_successor(&genesis)
                .is_ok()
        );

        assert!(matches!(
            parse(&|body| body["format_version"] = 6.into()),
            Error::UnsupportedFormat(6)
        ));
        assert!(matches!(
            parse(&|body| body["admin_threshold"] = 2.into()),
            Error::Threshold(2)
        ));
        assert!(matches!(
            parse(&|body| body["more"] = 2.into()),
            Error::Malformed { part: "body", .. }
        ));
        assert!(matches!(
            parse(&|body| body["devices"][second_at]["device_id"] = founder.id().to_string().into()),
            Error::DeviceIdMismatch { .. }
        ));
        assert!(matches!(
            parse(&|body| body["devices"][second_at] = body["devices"][first_at].clone()),
            Error::DuplicateDevice(_)
        ));
        assert!(matches!(
            parse(&|body| body["devices"][second_at]["roles"]["reader"] = false.into()),
            Error::RolesWithoutReader(_)
        ));
        assert!(matches!(
            parse(&|body| body["devices"][first_at]["roles"]["administrator"] = false.into()),
            Error::NoAdministrator
        ));
        assert!(matches!(
            parse(&|body| body["devices"] = serde_json::json!([])),
            Error::NoReader
        ));

        assert!(matches!(
            follow(&|body| body["generation"] = 2.into()),
            Error::Generation { seen: 2, expected: 1 }
        ));
        assert!(matches!(
            follow(&|body| body["previous"] = serde_json::Value::Null),
            Error::Previous { .. }
        ));
        assert!(matches!(
            follow(&|body| body["devices"][second_at]["revoked_at"] = 0.into()),
            Error::RevocationGeneration {
                seen: 0,
                expected: 1,
                ..
            }
        ));
        let born_revoked = |body: &mut serde_json::Value| body["devices"][second_at]["revoked_at"] = 1.into();
        assert!(
            forged(&founder, &two, &born_revoked)
                .expect("valid")
                .verify_successor(&genesis)
                .is_ok()
        );

        // Signed by somebody without the right.
        let own = forged(&second, &two, &|_| ()).expect("holds in itself");
        assert!(matches!(
            own.verify_successor(&genesis),
            Err(Error::SignerNotAdministrator(_))
        ));
        let mut object: serde_json::Value = serde_json::from_slice(two.object()).expect("JSON");
        object["signatures"][0]["signature"] = data_encoding::BASE64.encode(&[7; 64]).into();
        let unsigned = Policy::parse(object.to_string().as_bytes()).expect("holds in itself");
        assert!(matches!(
            unsigned.verify_successor(&genesis),
            Err(Error::Signature(_))
        ));
        object["signatures"] = serde_json::json!([]);
        assert!(matches!(
            Policy::parse(object.to_string().as_bytes()),
            Err(Error::SignatureCount(0))
        ));

        // Taking back a revocation, or a device.
        let revoked = two
            .transition(&founder, &[Change::Revoke(*second.id())])
            .expect("policy");
        let later = revoked.transition(&founder, &[]).expect("policy");
        for value in [serde_json::Value::Null, 1.into(), 3.into()] {
            let change =
                |body: &mut serde_json::Value| body["devices"][second_at]["revoked_at"] = value.clone();
            let policy = forged(&founder, &later, &change).expect("holds in itself");
            assert!(
                matches!(
                    policy.verify_successor(&revoked),
                    Err(Error::RevocationAltered(_))
                ),
                "{value}"
            );
        }
        let drop_second = |body: &mut serde_json::Value| {
            body["devices"].as_array_mut().expect("a list").remove(second_at);
        };
        let policy = forged(&founder, &later, &drop_second).expect("holds in itself");
        assert!(matches!(
            policy.verify_successor(&revoked),
            Err(Error::DeviceAltered(_))
        ));

        // Rights of a device may change.
        let promote =
            |body: &mut serde_json::Value| body["devices"][second_at]["roles"]["administrator"] = true.into();
        let next = two.transition(&founder, &[]).expect("policy");
        assert!(
            forged(&founder, &next, &promote)
                .expect("valid")
                .verify_successor(&two)
                .is_ok()
        );

        // As first policies.
        let first = |change: &dyn Fn(&mut serde_json::Value)| {
            forged(&founder, &genesis, change)
                .expect("holds in itself")
                .verify_genesis()
        };
        assert!(first(&|_| ()).is_ok());
        assert!(matches!(
            first(&|body| body["generation"] = 1.into()),
            Err(Error::Generation { .. })
        ));
        let previous = |body: &mut serde_json::Value| body["previous"] = genesis.id().to_string().into();
        assert!(matches!(first(&previous), Err(Error::Genesis(_))));
        let no_writer = |body: &mut serde_json::Value| body["devices"][0]["roles"]["writer"] = false.into();
        assert!(matches!(first(&no_writer), Err(Error::Genesis(_))));
        assert!(matches!(two.verify_genesis(), Err(Error::Generation { .. })));
        let usurper = device(&founder);
        let taken = Policy::genesis(&usurper);
        assert!(
            matches!(taken, Err(Error::Genesis(_))),
            "a root belongs to the keys that it names"
        );
    }
}
