mod golden;
mod rules;

use std::collections::HashMap;
use std::io;

use super::*;
use crate::protocol::crypto::Secret;
use crate::protocol::golden::Golden;
use crate::protocol::keys::DeviceKey;
use crate::protocol::manifest::{self, Draft};
use crate::protocol::pack_stream::SealedPack;
use crate::protocol::policy::{self, Change, Role};
use crate::protocol::publication::{self, Publication, Writer};

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
    let result = super::read::walk(
        fetch,
        repository.chain.head().id(),
        &repository.founder,
        3000,
        None,
    );
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
