//! Changes that meet others, and pins.

use std::sync::Mutex;

use ingot_helper::keys::KeyFiles;
use ingot_helper::protocol::policy::Change;
use ingot_helper::protocol::{DeviceKey, Role, key_file};
use ingot_helper::remote::{Changed, Error, Kind};
use ingot_helper::state::{AdminPin, load};
use ingot_testdata::checker::check_store;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

use super::client::{Client, copy_key, new_key};
use super::meddled::Meddled;

/// Two administrators of one store.
struct Two {
    folder: TempDir,
    _repos: [Repo; 2],
    alice: Client,
    bob: Client,
}

impl Two {
    fn new() -> Two {
        let folder = TempDir::new().unwrap();
        let store = folder.path().join("store");
        let key = |name: &str| folder.path().join(name);
        new_key(&key("alice.json"));
        let repos = [(); 2].map(|()| Repo::scripted("history", Format::Sha1));
        let alice = Client::new(repos[0].path(), &store, &key("alice.json"));
        let bob = Client::new(repos[1].path(), &store, &key("bob.json"));
        alice.init().unwrap();
        alice.push(&[alice.change("heads/main", "main")]).unwrap();
        let two = Two {
            alice,
            bob,
            _repos: repos,
            folder,
        };
        let bobs = two.guest();
        key_file::create(&two.bob.key, &bobs).unwrap();
        two.change(&two.alice, &[add(&bobs, Role::Admin)]).unwrap();
        two
    }

    fn guest(&self) -> DeviceKey {
        let root = *key_file::read(&self.alice.key).unwrap().root();
        DeviceKey::generate(Some(root)).unwrap()
    }

    fn change(&self, client: &Client, changes: &[Change]) -> Result<Changed, Error> {
        client.remote(|remote, _| remote.change_members(&client.key, changes))
    }

    fn alice_changes(&self, changes: &[Change], meddle: impl FnMut() + Send) -> Result<Changed, Error> {
        let storage = Meddled {
            inner: self.alice.storage(),
            meddle: Mutex::new(Box::new(meddle)),
            limit: None,
        };
        self.alice.remote_on(&storage, |remote, _| {
            remote.change_members(&self.alice.key, changes)
        })
    }

    fn check(&self) {
        check_store(&self.alice.store, &self.alice.key, &[]).unwrap();
        check_store(&self.alice.store, &self.bob.key, &[]).unwrap();
    }
}

fn add(key: &DeviceKey, role: Role) -> Change {
    Change::Add {
        device: key.public().clone(),
        role,
    }
}

#[test]
fn of_two_administrators_one_wins_and_the_other_is_told_to_look_again() {
    let two = Two::new();
    let (one, other) = (two.guest(), two.guest());
    let mut once = true;
    let error = two
        .alice_changes(&[add(&one, Role::Write)], || {
            if std::mem::take(&mut once) {
                two.change(&two.bob, &[add(&other, Role::Write)]).unwrap();
            }
        })
        .unwrap_err();
    let Error::MembershipChanged {
        expected: 1,
        seen: 2,
        by,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(by, key_file::read(&two.bob.key).unwrap().id());
    assert_eq!(error.kind(), Kind::Failed);
    assert!(error.to_string().contains("device-list"), "{error}");
    // Having looked, she may.
    let view = two.change(&two.alice, &[add(&one, Role::Write)]).unwrap().after;
    assert_eq!(view.chain().policy().active_readers().count(), 4);
    two.check();
}

#[test]
fn a_push_in_between_does_not_stop_a_change() {
    let two = Two::new();
    let guest = two.guest();
    let mut number = 0;
    let changed = two.alice_changes(&[add(&guest, Role::Read)], || {
        if number < 3 {
            number += 1;
            two.bob
                .push(&[two.bob.change(&format!("tags/{number}"), "main")])
                .unwrap();
        }
    });
    let view = changed.unwrap().after;
    assert_eq!(view.generation(), 6);
    assert_eq!(view.refs().len(), 4);
    two.check();
}

#[test]
fn the_pin_goes_from_clone_to_clone_and_sees_a_rollback() {
    let two = Two::new();
    let head = two.alice.store.join("HEAD");
    let old = std::fs::read(&head).unwrap();
    two.change(&two.alice, &[add(&two.guest(), Role::Read)]).unwrap();
    let new = std::fs::read(&head).unwrap();
    std::fs::write(&head, &old).unwrap();
    // Another clone, in which nothing is remembered, and the same key.
    let repo = Repo::empty(Format::Sha1);
    let fresh = Client::new(repo.path(), &two.alice.store, &two.alice.key);
    for result in [
        two.change(&fresh, &[add(&two.guest(), Role::Read)]).map(drop),
        fresh.remote(|remote, _| remote.members(&fresh.key)).map(drop),
        fresh
            .remote(|remote, _| remote.rotate(&KeyFiles::silent(), &fresh.key))
            .map(drop),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), Kind::Alarm, "{error}");
        assert!(error.to_string().contains("rolled back"), "{error}");
    }
    assert_eq!(std::fs::read(&head).unwrap(), old, "nothing was published");
    std::fs::write(&head, &new).unwrap();
    two.change(&fresh, &[add(&two.guest(), Role::Read)]).unwrap();
    two.check();
}

#[test]
fn a_pin_that_fell_behind_catches_up() {
    let two = Two::new();
    let pin = AdminPin::path_for(&two.alice.key);
    let old = std::fs::read(&pin).unwrap();
    two.change(&two.alice, &[add(&two.guest(), Role::Read)]).unwrap();
    // As after a crash between the publication and the pin.
    std::fs::write(&pin, &old).unwrap();
    let view = two
        .alice
        .remote(|remote, _| remote.members(&two.alice.key))
        .unwrap();
    assert_eq!(load(&pin).unwrap().unwrap().head_id, *view.head());
    // A reader's look makes no pin.
    let guest = two.folder.path().join("guest.json");
    copy_key(&two.bob.key, &guest);
    two.bob.remote(|remote, _| remote.members(&guest)).unwrap();
    assert!(!AdminPin::path_for(&guest).exists());
}
