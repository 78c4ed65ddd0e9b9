//! What a client keeps of a chain makes it read less, and changes nothing else.

use std::path::PathBuf;
use std::sync::Arc;

use ingot_helper::protocol::chain::Known;
use ingot_helper::protocol::publication::Writer;
use ingot_helper::protocol::{Chain, ContentId, DeviceKey, key_file};
use ingot_helper::remote::Error;
use ingot_helper::state::Alarm;
use ingot_helper::storage::Storage;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

use super::client::{Client, copy, new_key};
use super::counting::Counting;

struct Scene {
    folder: TempDir,
    source: Repo,
}

impl Scene {
    /// A store of some generations, all of which the source published.
    fn new(store: &str, generations: u64) -> Scene {
        let scene = Scene {
            folder: TempDir::new().unwrap(),
            source: Repo::scripted("history", Format::Sha1),
        };
        let client = scene.client(store);
        new_key(&client.key);
        client.init().unwrap();
        client.push(&[client.change("heads/main", "main~2")]).unwrap();
        grow(&client, generations - 1);
        scene
    }

    fn client(&self, store: &str) -> Client {
        let (store, key) = (
            self.folder.path().join(store),
            self.folder.path().join("key.json"),
        );
        Client::new(self.source.path(), &store, &key)
    }

    fn other(&self, name: &str, like: &Client) -> Client {
        let path = self.folder.path().join(name);
        ingot_testdata::git::git(self.folder.path(), &["init", "-q", name]);
        Client::new(&path, &like.store, &like.key)
    }
}

fn chain(client: &Client, storage: &dyn Storage) -> (Chain, DeviceKey) {
    let key = key_file::read(&client.key).unwrap();
    let head = storage.head().unwrap().unwrap().id().unwrap();
    (Chain::read(|id| storage.manifest(id), &head, &key).unwrap(), key)
}

/// Publishes generations in which nothing changes, without any client's knowledge.
fn grow(client: &Client, generations: u64) {
    let storage = client.storage();
    let (mut chain, key) = chain(client, &*storage);
    for _ in 0..generations {
        let writer = Writer::begin(&chain, &key).unwrap();
        let next = writer.publish(&chain.refs().clone()).unwrap();
        storage.put_manifest(next.bytes()).unwrap();
        storage.swap_head(Some(chain.head().id()), next.id()).unwrap();
        chain = next.into_chain();
    }
}

/// Manifests read by a listing and, after it, by a fetch.
fn reads(client: &Client) -> [usize; 2] {
    let storage = client.storage();
    let counting = Counting::new(&*storage);
    client
        .remote_on(&counting, |remote, local| remote.list(Some(local)))
        .unwrap();
    let listing = counting.take().len();
    client
        .remote_on(&counting, |remote, local| remote.fetch(local, Default::default()))
        .unwrap();
    [listing, counting.take().len()]
}

fn kept(client: &Client) -> PathBuf {
    client.memory.join("git-remote-e2ee/vault/state.chain")
}

#[test]
fn a_returning_client_reads_what_is_new_and_the_manifest_that_it_knows() {
    for store in ["store", "carrier.git"] {
        let scene = Scene::new(store, 40);
        let source = scene.client(store);
        let follower = scene.other("follower", &source);
        // All 41 the first time; where nothing is new, the one that the head names.
        assert_eq!(
            reads(&follower),
            [41, 41],
            "{store}: the listing brings no objects, so nothing is pinned"
        );
        assert_eq!(reads(&follower), [1, 1]);
        grow(&source, 7);
        assert_eq!(reads(&follower), [8, 1]);
        // The source knew two generations, has all objects, and goes on from there.
        assert_eq!(reads(&source), [47, 1]);
        let storage = source.storage();
        let counting = Counting::new(&*storage);
        let push = [source.change("heads/main", "main")];
        source
            .remote_on(&counting, |remote, local| {
                remote.push(local, &push, &Default::default())
            })
            .unwrap();
        assert_eq!(counting.take().len(), 1);
        assert_eq!(reads(&follower), [2, 2]);
        assert_eq!(follower.list().unwrap().generation(), 48);
        assert_eq!(follower.list().unwrap().refs(), source.list().unwrap().refs());
        // A pack that the known generations brought is still noticed, and so is what everything takes.
        let view = follower.list().unwrap();
        let (whole, _) = chain(&source, &*storage);
        assert!(!view.chain().is_whole() && whole.is_whole());
        assert_eq!(view.chain().pack_count(), 2);
        assert!(whole.packs().all(|pack| view.chain().has_pack(&pack.id)));
        assert_eq!(view.chain().stored_bytes(), whole.stored_bytes());
        assert_eq!(view.chain().newest_pack(), whole.newest_pack());
        for generation in whole.generations() {
            let at = view.chain().manifest_at(generation.number());
            assert_eq!(at.as_ref(), Some(generation.id()));
        }
    }
}

#[test]
fn what_is_kept_and_damaged_is_made_anew_in_silence() {
    let scene = Scene::new("store", 6);
    let source = scene.client("store");
    let follower = scene.other("follower", &source);
    follower.fetch().unwrap();
    let good = std::fs::read(kept(&follower)).unwrap();
    let foreign = {
        let scene = Scene::new("store", 6);
        let other = scene.client("store");
        let follower = scene.other("follower", &other);
        follower.fetch().unwrap();
        std::fs::read(kept(&follower)).unwrap()
    };
    let mut flipped = good.clone();
    flipped[100] ^= 1;
    let mut newer = good.clone();
    newer[7] = b'2';
    let cases: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("cut", &good[..good.len() - 1]),
        ("flipped", &flipped),
        ("newer", &newer),
        ("foreign", &foreign),
        ("text", b"{}"),
    ];
    for (name, bytes) in cases {
        std::fs::write(kept(&follower), bytes).unwrap();
        // The whole chain once, for the listing; then what is kept is good again.
        assert_eq!(reads(&follower), [7, 1], "{name}");
        assert_eq!(std::fs::read(kept(&follower)).unwrap(), good, "{name}");
    }
    std::fs::remove_file(kept(&follower)).unwrap();
    assert_eq!(reads(&follower), [7, 1]);
    // What a process that was killed left does no harm, and what belongs to a newer pin is not believed.
    std::fs::write(kept(&follower).with_extension("chain.tmp"), b"x").unwrap();
    let state = kept(&follower).with_extension("json");
    let old = std::fs::read(&state).unwrap();
    grow(&source, 1);
    assert_eq!(reads(&follower), [2, 1]);
    std::fs::write(&state, old).unwrap();
    assert_eq!(reads(&follower)[0], 8);
    // Without a pin nothing is known.
    std::fs::remove_file(&state).unwrap();
    assert_eq!(reads(&follower)[0], 8);
}

/// What storage can do to a client that knows a part of the chain meets the same alarms as without.
#[test]
fn no_alarm_depends_on_what_is_kept() {
    for keep in [true, false] {
        let scene = Scene::new("store", 5);
        let source = scene.client("store");
        let follower = scene.other("follower", &source);
        let old = scene.folder.path().join("old");
        copy(&source.store, &old);
        grow(&source, 3);
        follower.fetch().unwrap();
        let forget = || {
            if !keep {
                std::fs::remove_file(kept(&follower)).unwrap();
            }
        };
        let head = |client: &Client| client.storage().head().unwrap().unwrap().id().unwrap();
        let set = |id: &ContentId| std::fs::write(source.store.join("HEAD"), format!("{id}\n")).unwrap();
        let new = head(&source);
        let alarm = || match follower.list() {
            Err(Error::State(ingot_helper::state::Error::Alarm { alarm, .. })) => alarm,
            other => panic!("no alarm: {other:?}"),
        };
        let olds = Client::new(scene.source.path(), &old, &source.key);
        forget();
        set(&head(&olds));
        assert!(matches!(
            alarm(),
            Alarm::RolledBack {
                expected: 8,
                seen: 5,
                ..
            }
        ));
        // Another history, first of the same length, then a longer one.
        for generations in [3, 1] {
            grow(&olds, generations);
            copy(&old.join("manifests"), &source.store.join("manifests"));
            set(&head(&olds));
            assert!(matches!(alarm(), Alarm::Forked { generation: 8, .. }));
        }
        set(&new);
        follower.list().unwrap();
        std::fs::remove_dir_all(source.store.join("manifests")).unwrap();
        copy(&old.join("manifests"), &source.store.join("manifests"));
        forget();
        assert!(follower.list().unwrap_err().to_string().contains("is missing"));
    }
}

/// What was known, and the key to it, gives the same chain as reading everything: whatever the known part is.
#[test]
fn a_chain_is_the_same_from_wherever_it_is_read() {
    let scene = Scene::new("store", 9);
    let source = scene.client("store");
    let storage = source.storage();
    let (whole, key) = chain(&source, &*storage);
    for generation in whole.generations() {
        let up_to = Chain::read(|id| storage.manifest(id), generation.id(), &key).unwrap();
        let known = Arc::new(Known::of(&up_to, None));
        let read = Chain::read_onto(|id| storage.manifest(id), whole.head().id(), &key, &known, None);
        let chain = read.unwrap().expect("it fits");
        assert_eq!(chain.refs(), whole.refs());
        assert_eq!(Known::of(&chain, None), Known::of(&whole, None));
        // On an older head it says nothing.
        if generation.number() > 0 {
            let older = whole.manifest_at(generation.number() - 1).unwrap();
            let read = Chain::read_onto(|id| storage.manifest(id), &older, &key, &known, None);
            assert!(read.unwrap().is_none());
        }
    }
}
