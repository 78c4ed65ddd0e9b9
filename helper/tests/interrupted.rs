//! Commands that end in the middle, and those that meet another: what is left is old or new, and the same command again
//! finishes the job.

#![allow(clippy::unwrap_used)]

#[path = "support/client.rs"]
mod client;
#[path = "support/meddled.rs"]
mod meddled;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gix_hash::ObjectId;
use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::durable::{self, Fs};
use ingot_helper::remote::decide::{Change, Decision, Target};
use ingot_helper::remote::rejection::Rejection;
use ingot_helper::remote::{Error, FetchOptions, Kind, PushOptions, Pushed};
use ingot_helper::state::{self, AdminPin};
use ingot_testdata::checker::check_store;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

use client::{Client, copy, new_key};
use meddled::Meddled;

/// The two kinds of stores on this machine.
const STORES: [&str; 2] = ["store", "store.git"];

/// A small repository, and a folder with a key for what is founded in it.
struct Scene {
    store: &'static str,
    source: Repo,
    folder: TempDir,
    first: ObjectId,
    second: ObjectId,
}

fn main_to(id: ObjectId) -> Change {
    Change {
        name: "refs/heads/main".into(),
        target: Target::Object(id),
        force: false,
        lease: None,
    }
}

impl Scene {
    fn new(store: &'static str) -> Scene {
        let source = Repo::empty(Format::Sha1);
        source.write("file", "one\n");
        source.commit("one");
        source.write("file", "one\ntwo\n");
        source.commit("two");
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("client")).unwrap();
        new_key(&folder.path().join("key.json"));
        make_carrier(&folder.path().join(store));
        let id = |revision| source.git(&["rev-parse", revision]).parse().unwrap();
        let (first, second) = (id("main~1"), id("main"));
        Scene {
            store,
            source,
            folder,
            first,
            second,
        }
    }

    /// The source with store, memory and key below `root`.
    fn client(&self, root: &Path, fs: Arc<dyn Fs>) -> Client {
        Client {
            repository: self.source.path().to_owned(),
            memory: root.join("client"),
            store: root.join(self.store),
            key: root.join("key.json"),
            fs,
        }
    }

    /// What Git tells to do about the locks that a power cut left, once nothing runs any more.
    fn unlock(&self, root: &Path) {
        let branches = root.join(self.store).join("refs/heads");
        for entry in std::fs::read_dir(branches).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "lock") {
                std::fs::remove_file(path).unwrap();
            }
        }
    }

    /// Founds a repository, as often as it takes.
    fn begin(&self, client: &Client) -> Result<(), Error> {
        match client.init() {
            Err(Error::AlreadyInitialized { .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    fn push(&self, client: &Client) -> Result<(), Error> {
        let pushed = client.push(&[main_to(self.second)])?;
        assert!(
            !matches!(pushed.decisions[0], Decision::Rejected(_)),
            "{:?}",
            pushed.decisions
        );
        Ok(())
    }

    fn push_before(&self, client: &Client) -> Result<(), Error> {
        // Once main has gone further, there is nothing left to do.
        if client.list()?.refs().values().any(|id| *id == self.second) {
            return Ok(());
        }
        client.push(&[main_to(self.first)]).map(drop)
    }

    /// Requires that everything was done: store, memory and pin.
    #[track_caller]
    fn done(&self, client: &Client, story: &dyn std::fmt::Display) {
        let view = client.list().unwrap_or_else(|error| panic!("{error}\n{story}"));
        assert_eq!(view.refs()["refs/heads/main"], self.second, "{story}");
        assert!(AdminPin::path_for(&client.key).is_file(), "no pin\n{story}");
        let path = client.memory.join("git-remote-e2ee/vault/state.json");
        let state = state::load(&path)
            .unwrap()
            .unwrap_or_else(|| panic!("no state\n{story}"));
        assert_eq!(state.head_id, *view.head(), "{story}");
        client
            .remote(|remote, _| remote.verify(false))
            .unwrap_or_else(|error| panic!("{error}\n{story}"));
    }
}

/// A bare repository where a carrier is to be.
fn make_carrier(path: &Path) {
    if path.extension().is_some_and(|end| end == "git") {
        let git = |dir: &Path, args: &[&str]| ingot_testdata::git::git(dir, args);
        git(
            path.parent().unwrap(),
            &["init", "-q", "--bare", "--template=", path.to_str().unwrap()],
        );
    }
}

#[test]
fn every_crash_of_init_and_push_leaves_old_or_new_and_the_same_again_finishes() {
    STORES.into_iter().for_each(crashes_of_init_and_push);
}

fn crashes_of_init_and_push(store: &'static str) {
    let scene = Scene::new(store);
    let recording = Arc::new(Recording::new(scene.folder.path()).unwrap());
    let client = scene.client(scene.folder.path(), recording.clone());
    client.init().unwrap();
    recording.mark("begun");
    scene.push_before(&client).unwrap();
    recording.mark("first");
    scene.push(&client).unwrap();
    recording.mark("second");
    let (first, second) = (scene.first, scene.second);
    let mut number = 0;
    let states = recording.each_crash(|crash| {
        number += 1;
        scene.unlock(crash.root());
        let client = scene.client(crash.root(), durable::real());
        let main = match client.list() {
            Ok(view) => Some(view.refs().get("refs/heads/main").copied()),
            Err(error) if error.kind() == Kind::NoStore => None,
            Err(error) => panic!("{error}\n{crash}"),
        };
        match main {
            None => assert!(!crash.reached("begun"), "{crash}"),
            Some(None) => assert!(!crash.reached("first"), "{crash}"),
            Some(Some(id)) => {
                assert!(id == first && !crash.reached("second") || id == second, "{crash}");
            }
        }
        scene
            .begin(&client)
            .and_then(|()| scene.push_before(&client))
            .and_then(|()| scene.push(&client))
            .unwrap_or_else(|error| panic!("{error}\n{crash}"));
        scene.done(&client, crash);
        if number % 16 == 0 {
            client
                .remote(|remote, _| remote.verify(true))
                .unwrap_or_else(|error| panic!("{error}\n{crash}"));
        }
    });
    assert!(states > 200, "only {states} states");
}

#[test]
fn leaving_out_syncs_would_be_noticed() {
    STORES.into_iter().for_each(left_out_syncs);
}

fn left_out_syncs(store: &'static str) {
    let scene = Scene::new(store);
    let client = scene.client(scene.folder.path(), durable::real());
    client.init().unwrap();
    scene.push_before(&client).unwrap();
    let recording = Arc::new(Recording::new(scene.folder.path()).unwrap());
    let client = client.with_fs(recording.clone());
    scene.push(&client).unwrap();
    recording.mark("pushed");
    let wanted = client.id("main");
    for (files, folders) in [(true, false), (false, true)] {
        let mut broken = 0;
        recording.each_crash_without_syncs(files, folders, |crash| {
            let client = scene.client(crash.root(), durable::real());
            let whole = client
                .list()
                .is_ok_and(|view| view.refs()["refs/heads/main"] == wanted);
            broken += usize::from(crash.reached("pushed") && !whole);
        });
        assert!(broken > 0, "files {files}, folders {folders}");
    }
}

/// How calls fail: once or from then on.
const WAYS: [(Fault, bool); 4] = [
    (Fault::Broken, false),
    (Fault::Broken, true),
    (Fault::Full, true),
    (Fault::Short, false),
];

#[test]
fn every_failing_call_of_init_and_push_is_told_and_the_same_again_finishes() {
    STORES.into_iter().for_each(failing_calls_of_init_and_push);
}

fn failing_calls_of_init_and_push(store: &'static str) {
    let template = Scene::new(store);
    let mut failures = 0;
    // What is the engine's own is tested there in every way.
    let ways = match store {
        "store" => &WAYS[..],
        _ => &WAYS[2..],
    };
    for &(fault, stays) in ways {
        for at in 1.. {
            let temp = TempDir::new().unwrap();
            copy(template.folder.path(), temp.path());
            client::copy_key(
                &template.folder.path().join("key.json"),
                &temp.path().join("key.json"),
            );
            // Without the flushes of the real disk, which are slow and not the matter here.
            let quick = || Arc::new(Recording::new(temp.path()).unwrap());
            let faulty = Arc::new(Faulty::new(quick(), fault, at, stays));
            let broken = template.client(temp.path(), faulty.clone());
            let result = broken
                .init()
                .map(drop)
                .and_then(|()| template.push_before(&broken))
                .and_then(|()| template.push(&broken));
            let story = format!("{fault:?} at {at}, stays: {stays}, {result:?}");
            if !faulty.failed() {
                result.unwrap_or_else(|error| panic!("nothing failed: {error}"));
                break;
            }
            template.unlock(temp.path());
            let sound = template.client(temp.path(), quick());
            if let Err(error) = result {
                failures += 1;
                assert!(!error.to_string().contains('\n'), "{story}");
                assert_eq!(error.kind(), Kind::Failed, "{story}");
            }
            template
                .begin(&sound)
                .and_then(|()| template.push_before(&sound))
                .and_then(|()| template.push(&sound))
                .unwrap_or_else(|error| panic!("{error}\n{story}"));
            template.done(&sound, &story);
            assert!(at < 500, "the loop ends");
        }
    }
    assert!(failures > 60, "only {failures} failures");
}

/// A store with two generations, and a repository that has neither.
struct Served {
    scene: Scene,
}

impl Served {
    fn new() -> Served {
        let scene = Scene::new("store");
        let client = scene.client(scene.folder.path(), durable::real());
        client.init().unwrap();
        scene.push_before(&client).unwrap();
        scene.push(&client).unwrap();
        Served { scene }
    }

    fn at(&self, repository: PathBuf, fs: Arc<dyn Fs>) -> Client {
        let folder = self.scene.folder.path();
        Client::new(&repository, &folder.join("store"), &folder.join("key.json")).with_fs(fs)
    }

    /// Requires that a fetch in `client` ends well and brings what it should.
    #[track_caller]
    fn fetches(&self, client: &Client, story: &dyn std::fmt::Display) {
        let fetched = client.fetch().unwrap_or_else(|error| panic!("{error}\n{story}"));
        let tips: Vec<_> = fetched.view.refs().values().copied().collect();
        let whole =
            client.remote(|_, local| local.is_connected(&tips, &[], 1, &ingot_engine::progress::Silent));
        assert!(whole, "incomplete\n{story}");
    }
}

#[test]
fn every_crash_of_a_fetch_leaves_a_repository_that_fetches() {
    let served = Served::new();
    let repo = Repo::empty(Format::Sha1);
    std::fs::remove_dir_all(repo.git_dir().join("hooks")).unwrap();
    let recording = Arc::new(Recording::new(&repo.git_dir()).unwrap());
    let client = served.at(repo.git_dir(), recording.clone());
    client.fetch().unwrap();
    recording.mark("fetched");
    let states = recording.each_crash(|crash| {
        let client = served.at(crash.root().to_owned(), durable::real());
        if crash.reached("fetched") {
            let fetched = client.remote(|remote, local| remote.fetch(local, FetchOptions::default()));
            let fetched = fetched.unwrap_or_else(|error| panic!("{error}\n{crash}"));
            assert_eq!(fetched.packs, 0, "fetched again\n{crash}");
        }
        served.fetches(&client, crash);
    });
    assert!(states > 50, "only {states} states");
}

#[test]
fn every_failing_call_of_a_fetch_is_told_and_the_same_again_finishes() {
    let served = Served::new();
    let mut failures = 0;
    for (fault, stays) in WAYS {
        for at in 1.. {
            let repo = Repo::empty(Format::Sha1);
            let quick = || Arc::new(Recording::new(&repo.git_dir()).unwrap());
            let faulty = Arc::new(Faulty::new(quick(), fault, at, stays));
            let result = served.at(repo.git_dir(), faulty.clone()).fetch();
            let story = format!("{fault:?} at {at}, stays: {stays}, {result:?}");
            if !faulty.failed() {
                result.unwrap_or_else(|error| panic!("nothing failed: {error}"));
                break;
            }
            if let Err(error) = result {
                failures += 1;
                assert_eq!(error.kind(), Kind::Failed, "{story}");
                if !stays {
                    assert!(!has_keep_files(&repo), "{story}");
                }
            }
            served.fetches(&served.at(repo.git_dir(), quick()), &story);
            repo.git(&["fsck", "--full", "--strict", "--no-progress"]);
            assert!(at < 500, "the loop ends");
        }
    }
    assert!(failures > 50, "only {failures} failures");
}

fn has_keep_files(repo: &Repo) -> bool {
    std::fs::read_dir(repo.objects().join("pack"))
        .unwrap()
        .any(|entry| entry.unwrap().path().extension().is_some_and(|end| end == "keep"))
}

/// Two clones of one store, both with a commit of their own on main.
struct Two {
    _folder: TempDir,
    alice: Client,
    bob: Client,
    _repos: [Repo; 2],
}

impl Two {
    fn new(store: &str) -> Two {
        let folder = TempDir::new().unwrap();
        let key = folder.path().join("key.json");
        let store = folder.path().join(store);
        make_carrier(&store);
        new_key(&key);
        let repos = [(); 2].map(|()| Repo::scripted("history", Format::Sha1));
        let [alice, bob] = [0, 1].map(|at: usize| Client::new(repos[at].path(), &store, &key));
        alice.init().unwrap();
        alice.push(&[alice.change("heads/main", "main")]).unwrap();
        bob.list().unwrap();
        for (name, repo) in ["alice", "bob"].iter().zip(&repos) {
            repo.write("who", name);
            repo.commit(name);
        }
        Two {
            _folder: folder,
            alice,
            bob,
            _repos: repos,
        }
    }

    /// Alice pushes while something else happens before each of her tries.
    fn alice_pushes(&self, name: &str, meddle: impl FnMut() + Send) -> Result<Pushed, Error> {
        let storage = Meddled {
            inner: self.alice.storage(),
            meddle: Mutex::new(Box::new(meddle)),
            limit: None,
        };
        let change = self.alice.change(name, "main");
        self.alice.remote_on(&storage, |remote, local| {
            remote.push(local, &[change], &PushOptions::default())
        })
    }

    #[track_caller]
    fn bob_pushes(&self, name: &str) {
        let pushed = self.bob.push(&[self.bob.change(name, "main")]).unwrap();
        assert!(matches!(pushed.decisions[0], Decision::Move { .. }));
    }

    #[track_caller]
    fn sound(&self) {
        let options: &[&str] = match self.alice.store.extension() {
            Some(_) => &["--carrier", "--clean"],
            None => &[],
        };
        check_store(&self.alice.store, &self.alice.key, options).unwrap();
        self.alice.remote(|remote, _| remote.verify(true)).unwrap();
    }
}

#[test]
fn a_pack_that_is_too_large_is_refused_before_anything_is_stored() {
    for store in STORES {
        let two = Two::new(store);
        let repository = &two.alice.repository;
        ingot_testdata::git::git(repository, &["repack", "-a", "-d", "-q"]);
        let mut limited = Meddled {
            inner: two.alice.storage(),
            meddle: Mutex::new(Box::new(|| ())),
            limit: Some(10),
        };
        let push = |storage: &Meddled<'_>| {
            let change = two.alice.change("heads/alice", "main");
            two.alice.remote_on(storage, |remote, local| {
                remote.push(local, &[change], &PushOptions::default())
            })
        };
        let files = |path: &Path| walk(path).len();
        let before = files(&two.alice.store);
        let error = push(&limited).unwrap_err().to_string();
        assert!(error.contains("larger than 10 bytes"), "{error}");
        assert_eq!(files(&two.alice.store), before);
        limited.limit = None;
        push(&limited).unwrap();
        two.sound();
    }
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => walk(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn pushes_of_different_branches_at_the_same_time_both_succeed() {
    for store in STORES {
        let two = Two::new(store);
        let mut once = true;
        let pushed = two.alice_pushes("heads/alice", || {
            if std::mem::take(&mut once) {
                two.bob_pushes("heads/bob");
            }
        });
        let pushed = pushed.unwrap();
        assert!(matches!(pushed.decisions[0], Decision::Move { .. }));
        for client in [&two.alice, &two.bob] {
            let view = client.list().unwrap();
            assert_eq!(view.generation(), 3);
            assert_eq!(view.refs()["refs/heads/alice"], two.alice.id("main"));
            assert_eq!(view.refs()["refs/heads/bob"], two.bob.id("main"));
        }
        two.sound();
    }
}

#[test]
fn of_two_pushes_to_the_same_branch_one_has_to_fetch_first() {
    for store in STORES {
        let two = Two::new(store);
        let mut once = true;
        let pushed = two.alice_pushes("heads/main", || {
            if std::mem::take(&mut once) {
                two.bob_pushes("heads/main");
            }
        });
        let pushed = pushed.unwrap();
        assert_eq!(pushed.decisions, [Decision::Rejected(Rejection::FetchFirst)]);
        assert_eq!(pushed.sent, None);
        let view = two.alice.list().unwrap();
        assert_eq!(view.generation(), 2);
        assert_eq!(view.refs()["refs/heads/main"], two.bob.id("main"));
        two.sound();
    }
}

#[test]
fn who_always_comes_second_is_told_in_the_end() {
    for store in STORES {
        let two = Two::new(store);
        let mut number = 0;
        let error = two
            .alice_pushes("heads/alice", || {
                number += 1;
                two.bob_pushes(&format!("tags/{number}"));
            })
            .unwrap_err();
        assert_eq!(error.kind(), Kind::Failed, "{error}");
        assert!(error.to_string().contains("concurrently"), "{error}");
        assert!(!two.bob.list().unwrap().refs().contains_key("refs/heads/alice"));
        // The same again, with nobody in the way.
        two.alice_pushes("heads/alice", || {}).unwrap();
        two.sound();
    }
}

#[test]
fn two_programs_pushing_for_real_lose_nothing() {
    for store in STORES {
        let two = Two::new(store);
        std::thread::scope(|scope| {
            for (name, client) in [("alice", &two.alice), ("bob", &two.bob)] {
                scope.spawn(move || {
                    for number in 0..5 {
                        let change = client.change(&format!("tags/{name}-{number}"), "main");
                        let pushed = client.push(&[change]).unwrap();
                        assert!(matches!(pushed.decisions[0], Decision::Move { .. }));
                    }
                });
            }
        });
        let view = two.alice.list().unwrap();
        assert_eq!(view.refs().len(), 11);
        assert_eq!(view.generation(), 11);
        two.sound();
    }
}
