//! Changes and rotations that end in the middle: a key that opens the store is always there, and the next command
//! finishes the job.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::durable::{self, Fs};
use ingot_helper::flock::Patience;
use ingot_helper::keys::KeyFiles;
use ingot_helper::protocol::policy::{Change, Device};
use ingot_helper::protocol::{DeviceId, DeviceKey, Role, key_file};
use ingot_helper::remote::{Error, View, next_key_file, settle};
use ingot_helper::state::{AdminPin, load};
use ingot_testdata::checker::check_store;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

use super::client::{Client, copy, copy_key, new_key};

struct Scene {
    source: Repo,
    folder: TempDir,
    guest: DeviceKey,
}

impl Scene {
    /// A store with one push.
    fn new() -> Scene {
        let source = Repo::empty(Format::Sha1);
        source.write("file", "one\n");
        source.commit("one");
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("client")).unwrap();
        let key = folder.path().join("key.json");
        new_key(&key);
        let guest = DeviceKey::generate(Some(*key_file::read(&key).unwrap().root())).unwrap();
        let scene = Scene {
            source,
            folder,
            guest,
        };
        let client = scene.client(scene.folder.path(), durable::real());
        client.init().unwrap();
        client.push(&[client.change("heads/main", "main")]).unwrap();
        scene
    }

    fn client(&self, root: &Path, fs: Arc<dyn Fs>) -> Client {
        Client {
            repository: self.source.path().to_owned(),
            memory: root.join("client"),
            store: root.join("store"),
            key: root.join("key.json"),
            fs,
        }
    }

    /// Adds the guest, as often as it takes.
    fn add(&self, client: &Client) -> Result<(), Error> {
        let device = self.guest.public().clone();
        let changes = [Change::Add {
            device,
            role: Role::Write,
        }];
        let view = client.remote(|remote, _| remote.members(&client.key))?;
        if view.chain().device(self.guest.id()).is_some() {
            return Ok(());
        }
        client
            .remote(|remote, _| remote.change_members(&client.key, &changes))
            .map(drop)
    }
}

/// Opens the key as the commands do, and with it the store.
fn opened(client: &Client) -> Result<(DeviceId, View), Error> {
    let storage = client.directory();
    let keys = KeyFiles::silent();
    let opened = keys.read(&client.key)?;
    let patience = Patience::silent(Duration::from_secs(20));
    let fs = Arc::clone(&client.fs);
    let key = settle(&storage, &keys, opened, &client.key, fs, patience)?.key;
    let head = View::head_of(&storage)?;
    Ok((*key.id(), View::read(&storage, &head, &key)?))
}

#[track_caller]
fn pinned(client: &Client, view: &View, story: &dyn std::fmt::Display) {
    let pin = load(&AdminPin::path_for(&client.key)).unwrap().unwrap();
    assert_eq!(pin.head_id, *view.head(), "{story}");
}

#[test]
fn every_crash_of_a_change_and_of_a_rotation_leaves_a_usable_key() {
    let scene = Scene::new();
    let first = *key_file::read(&scene.folder.path().join("key.json"))
        .unwrap()
        .id();
    let recording = Arc::new(Recording::new(scene.folder.path()).unwrap());
    let client = scene.client(scene.folder.path(), recording.clone());
    scene.add(&client).unwrap();
    recording.mark("added");
    let rotated = client
        .remote(|remote, _| remote.rotate(&KeyFiles::silent(), &client.key))
        .unwrap();
    recording.mark("rotated");
    let mut old_and_new = [0, 0];
    let states = recording.each_crash(|crash| {
        restrict(crash.root());
        let client = scene.client(crash.root(), durable::real());
        let (id, view) = opened(&client).unwrap_or_else(|error| panic!("{error}\n{crash}"));
        assert!(view.chain().device(&id).is_some_and(Device::is_active), "{crash}");
        old_and_new[usize::from(id != first)] += 1;
        if crash.reached("rotated") {
            assert_eq!(id, rotated.new, "{crash}");
            assert!(!next_key_file(&client.key).exists(), "{crash}");
        }
        if crash.reached("added") {
            assert!(view.chain().device(scene.guest.id()).is_some(), "{crash}");
        }
        scene
            .add(&client)
            .unwrap_or_else(|error| panic!("{error}\n{crash}"));
        if id == first {
            client
                .remote(|remote, _| remote.rotate(&KeyFiles::silent(), &client.key))
                .unwrap_or_else(|error| panic!("{error}\n{crash}"));
        }
        let (id, view) = opened(&client).unwrap_or_else(|error| panic!("{error}\n{crash}"));
        assert_ne!(id, first, "{crash}");
        assert!(!next_key_file(&client.key).exists(), "{crash}");
        client.remote(|remote, _| remote.members(&client.key)).unwrap();
        pinned(&client, &view, crash);
    });
    assert!(states > 100, "only {states} states");
    assert!(old_and_new[0] > 10 && old_and_new[1] > 10, "{old_and_new:?}");
    check_store(&client.store, &client.key, &[]).unwrap();
}

#[test]
fn every_failing_call_of_a_rotation_is_told_and_the_same_again_finishes() {
    let template = Scene::new();
    let first = *key_file::read(&template.folder.path().join("key.json"))
        .unwrap()
        .id();
    let mut failures = 0;
    for (fault, stays) in [
        (Fault::Broken, false),
        (Fault::Broken, true),
        (Fault::Full, true),
        (Fault::Short, false),
    ] {
        for at in 1.. {
            let temp = TempDir::new().unwrap();
            copy(template.folder.path(), temp.path());
            copy_key(
                &template.folder.path().join("key.json"),
                &temp.path().join("key.json"),
            );
            let quick = || Arc::new(Recording::new(temp.path()).unwrap());
            let faulty = Arc::new(Faulty::new(quick(), fault, at, stays));
            let broken = template.client(temp.path(), faulty.clone());
            let result = broken.remote(|remote, _| remote.rotate(&KeyFiles::silent(), &broken.key));
            let story = format!("{fault:?} at {at}, stays: {stays}, {result:?}");
            if !faulty.failed() {
                result.unwrap_or_else(|error| panic!("nothing failed: {error}"));
                break;
            }
            failures += usize::from(result.is_err());
            let sound = template.client(temp.path(), quick());
            let (id, _) = opened(&sound).unwrap_or_else(|error| panic!("{error}\n{story}"));
            if id == first {
                sound
                    .remote(|remote, _| remote.rotate(&KeyFiles::silent(), &sound.key))
                    .unwrap_or_else(|error| panic!("{error}\n{story}"));
            }
            let (id, view) = opened(&sound).unwrap_or_else(|error| panic!("{error}\n{story}"));
            assert_ne!(id, first, "{story}");
            sound.remote(|remote, _| remote.members(&sound.key)).unwrap();
            pinned(&sound, &view, &story);
            assert!(at < 200, "the loop ends");
        }
    }
    assert!(failures > 20, "only {failures} failures");
}

/// What a power cut does not change, and the replay does not know: the modes of key files.
fn restrict(root: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

#[test]
fn only_a_store_that_proves_it_makes_the_waiting_key_the_one_in_use() {
    let scene = Scene::new();
    let client = scene.client(scene.folder.path(), durable::real());
    let key = key_file::read(&client.key).unwrap();
    let patience = || Patience::silent(Duration::from_secs(20));
    let settled = || {
        let keys = KeyFiles::silent();
        let opened = keys.read(&client.key).unwrap();
        let (store, fs) = (client.directory(), durable::real());
        let settled = settle(&store, &keys, opened, &client.key, fs, patience());
        *settled.unwrap().key.id()
    };
    key_file::create(&next_key_file(&client.key), &scene.guest).unwrap();
    assert_eq!(settled(), *key.id(), "not published");
    // Published, but shown as it was before: still the old key.
    let head = client.store.join("HEAD");
    let before = std::fs::read(&head).unwrap();
    let rotated = client
        .remote(|remote, _| remote.rotate(&KeyFiles::silent(), &client.key))
        .unwrap();
    assert_eq!(rotated.new, *scene.guest.id(), "the waiting key is used");
    key_file::replace_content(&durable::Real, &client.key, &key.to_json()).unwrap();
    key_file::create(&next_key_file(&client.key), &scene.guest).unwrap();
    let after = std::fs::read(&head).unwrap();
    std::fs::write(&head, before).unwrap();
    assert_eq!(settled(), *key.id());
    std::fs::write(&head, "nonsense").unwrap();
    assert_eq!(settled(), *key.id());
    std::fs::write(&head, after).unwrap();
    assert_eq!(settled(), rotated.new);
    assert_eq!(*key_file::read(&client.key).unwrap().id(), rotated.new);
    assert!(!next_key_file(&client.key).exists());
}
