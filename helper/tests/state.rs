//! Continuity state: its file format, where it lives, what it refuses, and what crashes leave of it.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::durable::{self, Fs};
use ingot_helper::flock::{self, Patience};
use ingot_helper::protocol::{ContentId, RepositoryRoot};
use ingot_helper::state::{AdminPin, Alarm, Continuity, Error, Observed, Owner, State, load, state_file};
use ingot_testdata::golden;
use tempfile::TempDir;

const ORIGIN: Owner<'static> = Owner::Remote(b"origin");
const HERE: &str = "directory:/srv/here";
const THERE: &str = "directory:/srv/there";

fn samples() -> Vec<PathBuf> {
    let keys = golden("e2ee-v5/dir-store-keys");
    [
        "client-state.owner-source.json",
        "client-state.fresh-clone.json",
        "owner.key.json.admin-state.json",
    ]
    .iter()
    .map(|name| keys.join(name))
    .collect()
}

/// A history whose ids say which store and generation they are of.
fn id_of(store: u8, generation: u64) -> ContentId {
    ContentId::of(&[&[store][..], &generation.to_le_bytes()].concat())
}

fn with_history<T>(store: u8, generation: u64, then: impl FnOnce(&Observed<'_>) -> T) -> T {
    let id_at = |at| (at <= generation).then(|| id_of(store, at));
    then(&Observed {
        repository_root: RepositoryRoot::from_bytes([1; 32]),
        head_id: id_of(store, generation),
        generation,
        policy_generation: 0,
        id_at: &id_at,
    })
}

fn state_of(store: u8, generation: u64) -> State {
    with_history(store, generation, State::new)
}

fn now() -> Patience<'static> {
    Patience::silent(Duration::ZERO)
}

fn open_on(fs: Arc<dyn Fs>, git_dir: &Path, identity: &str, stores: &[&str]) -> Result<Continuity, Error> {
    let stores: Vec<String> = stores.iter().map(|store| (*store).to_owned()).collect();
    Continuity::open(fs, git_dir, git_dir, ORIGIN, identity, &stores, now())
}

fn open(git_dir: &Path, identity: &str, stores: &[&str]) -> Continuity {
    open_on(durable::real(), git_dir, identity, stores).expect("opened")
}

fn check(continuity: &mut Continuity, store: u8, generation: u64) -> Result<(), Error> {
    with_history(store, generation, |observed| continuity.check(observed))
}

/// One whole operation.
fn see(continuity: &mut Continuity, store: u8, generation: u64) -> Result<(), Error> {
    check(continuity, store, generation)?;
    continuity.record(state_of(store, generation))
}

fn first_level(git_dir: &Path) -> PathBuf {
    git_dir.join("git-remote-e2ee/origin/state.json")
}

#[test]
fn golden_states_are_read_and_written_to_the_byte() {
    for sample in samples() {
        let temp = TempDir::new().expect("temporary folder");
        let text = fs::read(&sample).expect("sample");
        let state = load(&sample).expect("readable").expect("there");
        assert_eq!((state.generation, state.policy_generation), (9, 2));
        open(temp.path(), HERE, &[HERE])
            .record(state.clone())
            .expect("recorded");
        assert_eq!(
            fs::read(first_level(temp.path())).expect("written"),
            text,
            "{}",
            sample.display()
        );
        assert_eq!(open(temp.path(), HERE, &[HERE]).state(), Some(&state));
    }
}

#[test]
fn a_state_of_another_implementation_is_taken_up() {
    let temp = TempDir::new().expect("temporary folder");
    fs::create_dir_all(first_level(temp.path()).parent().expect("folder")).expect("folder");
    fs::copy(&samples()[0], first_level(temp.path())).expect("copied");
    let mut continuity = open(temp.path(), HERE, &[HERE]);
    let pinned = continuity.state().expect("in force at once").clone();
    let alarm = check(&mut continuity, 1, 9).expect_err("another repository");
    assert!(
        matches!(
            alarm,
            Error::Alarm {
                alarm: Alarm::RootChanged { .. },
                ..
            }
        ),
        "{alarm}"
    );
    let newer = State {
        generation: 10,
        head_id: id_of(1, 10),
        ..pinned.clone()
    };
    continuity
        .record(State {
            packs: Default::default(),
            imported_generation: None,
            ..newer
        })
        .expect("newer");
    let state = load(&first_level(temp.path())).expect("readable").expect("there");
    assert_eq!((state.generation, state.imported_generation), (10, Some(9)));
    assert_eq!(state.packs, pinned.packs, "packs only grow");
}

#[test]
fn unknown_fields_are_passed_over_and_everything_else_is_damage() {
    let temp = TempDir::new().expect("temporary folder");
    let path = temp.path().join("state.json");
    let text = fs::read_to_string(&samples()[0]).expect("sample");
    let read = |text: &str| {
        fs::write(&path, text).expect("written");
        load(&path)
    };
    let known = read(&text).expect("readable");
    assert_eq!(
        read(&text.replacen('{', "{\"of the future\": [1, {}],", 1)).expect("readable"),
        known
    );
    assert_eq!(
        read(&text.replace("\"imported_generation\": 9,", ""))
            .expect("readable")
            .expect("there")
            .imported_generation,
        None
    );
    for (from, to) in [
        ("\"generation\": 9", "\"generation\": -9"),
        ("\"generation\": 9", "\"generation\": 99999999999999999999"),
        ("\"generation\": 9,", ""),
        ("\"head_id\": \"57", "\"head_id\": \"5x"),
        ("\"head_id\": \"57", "\"head_id\": \"5"),
        ("\"01ce7b4f", "\"01ce7b4"),
        ("\"packs\": [", "\"packs\": [null,"),
        ("\"packs\"", "\"generation\": 3, \"packs\""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let error = read(&changed).expect_err(to);
        assert!(
            matches!(&error, Error::Damaged { path: named, .. } if *named == path),
            "{to}: {error}"
        );
    }
    for text in [
        "",
        "null",
        "{}",
        "[]",
        &text[..text.len() - 1],
        &text[..100],
        "\0\0\0\0",
    ] {
        assert!(
            matches!(
                read(text),
                Err(Error::Damaged { .. } | Error::UnsupportedFormat { .. })
            ),
            "{text}"
        );
    }
    for (format, named) in [("4", "4"), ("6", "6"), ("\"5\"", "\"5\""), ("5.5", "5.5")] {
        let error = read(&text.replacen(
            "\"format_version\": 5",
            &format!("\"format_version\": {format}"),
            1,
        ));
        let message = error.expect_err(format).to_string();
        assert!(
            message.starts_with(&format!(
                "unsupported git-remote-e2ee client state format {named} in "
            )),
            "{message}"
        );
    }
}

#[test]
fn damage_is_never_replaced() {
    let temp = TempDir::new().expect("temporary folder");
    see(&mut open(temp.path(), HERE, &[HERE]), 1, 3).expect("recorded");
    fs::write(first_level(temp.path()), "{").expect("damaged");
    for _ in 0..2 {
        let error = open_on(durable::real(), temp.path(), HERE, &[HERE]).expect_err("damaged");
        assert!(error.to_string().contains("state.json is damaged"), "{error}");
    }
    assert_eq!(fs::read(first_level(temp.path())).expect("kept"), b"{");
    fs::remove_file(first_level(temp.path())).expect("removed");
    fs::write(first_level(temp.path()).with_file_name("store.json"), "{").expect("damaged");
    let error = open_on(durable::real(), temp.path(), HERE, &[HERE]).expect_err("damaged");
    assert!(error.to_string().contains("store.json is damaged"), "{error}");
}

#[test]
fn alarms_name_what_was_expected_and_what_was_seen() {
    let temp = TempDir::new().expect("temporary folder");
    see(&mut open(temp.path(), HERE, &[HERE]), 1, 5).expect("recorded");
    let mut continuity = open(temp.path(), HERE, &[HERE]);
    let before = fs::read(first_level(temp.path())).expect("written");
    let message = check(&mut continuity, 1, 4).expect_err("rolled back").to_string();
    assert!(
        message.starts_with("remote manifest rolled back from generation 5 to 4: expected manifest "),
        "{message}"
    );
    for text in [
        id_of(1, 5).to_hex(),
        id_of(1, 4).to_hex(),
        "(pinned in ".to_owned(),
    ] {
        assert!(message.contains(&text), "{message}");
    }
    let message = check(&mut continuity, 2, 7).expect_err("forked").to_string();
    assert!(
        message.starts_with("remote manifest history forked from the locally pinned head"),
        "{message}"
    );
    for store in [1, 2] {
        assert!(message.contains(&id_of(store, 5).to_hex()), "{message}");
    }
    assert!(matches!(
        continuity.record(state_of(2, 5)),
        Err(Error::Alarm {
            alarm: Alarm::Forked { .. },
            ..
        })
    ));
    continuity
        .record(state_of(2, 4))
        .expect("an older state is passed over");
    assert_eq!(fs::read(first_level(temp.path())).expect("there"), before);
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let temp = TempDir::new().expect("temporary folder");
    see(&mut open(temp.path(), HERE, &[HERE]), 1, 5).expect("recorded");
    let recording = Arc::new(Recording::new(temp.path()).expect("recording"));
    let mut continuity = open_on(recording.clone(), temp.path(), HERE, &[HERE]).expect("opened");
    see(&mut continuity, 1, 5).expect("recorded");
    assert_eq!(recording.calls().all, 0);
    see(&mut continuity, 1, 6).expect("recorded");
    let calls = recording.calls();
    // The state of the remote, and what is known of the place.
    assert_eq!((calls.file_syncs, calls.folder_syncs), (2, 2));
}

#[test]
fn the_lock_is_held_as_long_as_the_value_lives() {
    let temp = TempDir::new().expect("temporary folder");
    let held = open(temp.path(), HERE, &[HERE]);
    let told = Cell::new(0);
    let waiting = |path: &Path| {
        assert!(path.ends_with("git-remote-e2ee/origin/state.json.lock"));
        told.set(told.get() + 1);
    };
    let patience = Patience {
        wait: Duration::from_millis(50),
        waiting: &waiting,
        ..now()
    };
    // A sibling store of the same remote shares the lock: they may share the file.
    let error = Continuity::open(
        durable::real(),
        temp.path(),
        temp.path(),
        ORIGIN,
        THERE,
        &[],
        patience,
    )
    .expect_err("locked");
    assert!(
        matches!(error, Error::Locked(flock::Error::Held { .. })),
        "{error}"
    );
    assert_eq!(told.get(), 1);
    Continuity::open(
        durable::real(),
        temp.path(),
        temp.path(),
        Owner::Url,
        THERE,
        &[],
        now(),
    )
    .expect("another owner, and another place");
    drop(held);
    open(temp.path(), THERE, &[]);
    assert_eq!(
        fs::read(first_level(temp.path()).with_extension("json.lock")).expect("stays"),
        b""
    );
}

#[test]
fn siblings_have_states_of_their_own() {
    let temp = TempDir::new().expect("temporary folder");
    let both = [HERE, THERE];
    see(&mut open(temp.path(), HERE, &both), 1, 5).expect("first");
    let mut there = open(temp.path(), THERE, &both);
    assert_eq!(
        there.state(),
        None,
        "not known yet whether the first state is about this store"
    );
    see(&mut there, 2, 3).expect("another store, not an alarm");
    drop(there);
    assert_eq!(open(temp.path(), HERE, &both).state(), Some(&state_of(1, 5)));
    assert_eq!(open(temp.path(), THERE, &both).state(), Some(&state_of(2, 3)));
    // From now on, each is held to what it showed, whatever the configuration says.
    for stores in [&both[..], &[THERE], &[]] {
        assert!(check(&mut open(temp.path(), THERE, stores), 1, 9).is_err());
        assert!(check(&mut open(temp.path(), THERE, stores), 2, 2).is_err());
    }
    assert!(check(&mut open(temp.path(), HERE, &both), 1, 4).is_err());
    assert!(check(&mut open(temp.path(), HERE, &both), 2, 9).is_err());
    see(&mut open(temp.path(), HERE, &both), 1, 6).expect("goes on");
}

#[test]
fn two_ways_to_one_store_share_its_state() {
    let temp = TempDir::new().expect("temporary folder");
    let both = [HERE, THERE];
    see(&mut open(temp.path(), HERE, &both), 1, 5).expect("first");
    see(&mut open(temp.path(), THERE, &both), 1, 6).expect("the same store");
    assert_eq!(
        load(&first_level(temp.path())).expect("readable"),
        Some(state_of(1, 6))
    );
    assert_eq!(
        open(temp.path(), HERE, &both).state(),
        Some(&state_of(1, 6)),
        "still known as the first one's"
    );
}

#[test]
fn a_new_url_does_not_shake_off_the_pin() {
    let temp = TempDir::new().expect("temporary folder");
    see(&mut open(temp.path(), HERE, &[HERE]), 1, 5).expect("first");
    let mut moved = open(temp.path(), THERE, &[THERE]);
    assert_eq!(moved.state(), Some(&state_of(1, 5)));
    assert!(check(&mut moved, 2, 9).is_err());
    assert!(check(&mut moved, 1, 4).is_err());
    see(&mut moved, 1, 6).expect("the same store at another place");
    drop(moved);
    // It is that place's state now: the old place is a sibling again if it comes back.
    let both = [HERE, THERE];
    assert_eq!(open(temp.path(), HERE, &both).state(), None);
    assert_eq!(open(temp.path(), THERE, &both).state(), Some(&state_of(1, 6)));
}

#[test]
fn a_state_that_says_nothing_belongs_to_the_store_that_it_names() {
    let both = [HERE, THERE];
    let foreign = || {
        let temp = TempDir::new().expect("temporary folder");
        see(&mut open(temp.path(), HERE, &[HERE]), 1, 5).expect("first");
        fs::remove_file(first_level(temp.path()).with_file_name("store.json")).expect("as others leave it");
        temp
    };
    // The fetch URL is held to it.
    let temp = foreign();
    assert_eq!(open(temp.path(), HERE, &both).state(), Some(&state_of(1, 5)));
    assert!(check(&mut open(temp.path(), HERE, &both), 2, 9).is_err());
    // The push URL is held to it if it is the one.
    let mut there = open(temp.path(), THERE, &both);
    check(&mut there, 1, 7).expect("it is the one");
    assert_eq!(there.state(), Some(&state_of(1, 5)));
    there.record(state_of(1, 7)).expect("recorded");
    drop(there);
    assert_eq!(
        load(&first_level(temp.path())).expect("readable"),
        Some(state_of(1, 7))
    );
    // And gets its own if it is not.
    let temp = foreign();
    see(&mut open(temp.path(), THERE, &both), 2, 1).expect("another one");
    assert_eq!(
        load(&first_level(temp.path())).expect("readable"),
        Some(state_of(1, 5))
    );
    assert_eq!(open(temp.path(), THERE, &both).state(), Some(&state_of(2, 1)));
}

#[test]
fn owners_never_meet() {
    let temp = TempDir::new().expect("temporary folder");
    let owners = [
        ORIGIN,
        Owner::Remote(b"or.igin"),
        Owner::Remote(b"or/igin"),
        Owner::Remote(b"\xff"),
        Owner::Url,
    ];
    for (number, owner) in (0..).zip(owners) {
        let store = format!("directory:/srv/{number}");
        let open = || {
            Continuity::open(
                durable::real(),
                temp.path(),
                temp.path(),
                owner,
                &store,
                &[],
                now(),
            )
            .expect("opened")
        };
        see(&mut open(), number, 5).expect("nothing of the others is seen");
        assert_eq!(open().state(), Some(&state_of(number, 5)));
        assert_eq!(
            load(&state_file(temp.path(), owner, &store)).expect("readable"),
            Some(state_of(number, 5))
        );
    }
}

#[test]
fn the_admin_pin_is_written_as_others_write_it() {
    let temp = TempDir::new().expect("temporary folder");
    let key = temp.path().join("owner.key.json");
    let text = fs::read(&samples()[2]).expect("sample");
    fs::write(AdminPin::path_for(&key), &text).expect("copied");
    let mut pin = AdminPin::open(durable::real(), &key, now()).expect("opened");
    let pinned = pin.state().expect("there").clone();
    assert!(matches!(
        AdminPin::open(durable::real(), &key, now()),
        Err(Error::Locked(flock::Error::Held { .. }))
    ));
    let id_at = |at| Some(if at == 9 { pinned.head_id } else { id_of(1, at) });
    let mut observed = Observed {
        repository_root: pinned.repository_root,
        head_id: id_of(1, 10),
        generation: 10,
        policy_generation: 3,
        id_at: &id_at,
    };
    pin.check(&observed).expect("goes on");
    pin.record(&observed).expect("recorded");
    let expected = String::from_utf8(text)
        .expect("JSON")
        .replace(&pinned.head_id.to_hex(), &id_of(1, 10).to_hex())
        .replace("\"generation\": 9", "\"generation\": 10")
        .replace("imported_generation\": 9", "imported_generation\": 10")
        .replace("policy_generation\": 2", "policy_generation\": 3");
    assert_eq!(
        fs::read_to_string(AdminPin::path_for(&key)).expect("written"),
        expected
    );
    observed.generation = 9;
    assert!(pin.check(&observed).is_err());
}

#[test]
fn a_key_path_without_a_folder_is_no_trouble() {
    assert_eq!(
        AdminPin::path_for(Path::new("key.json")),
        Path::new("key.json.admin-state.json")
    );
}

/// Two operations, the second after the first is over.
fn two_operations(fs: &Arc<dyn Fs>, git_dir: &Path, mark: &dyn Fn(&str)) -> Result<(), Error> {
    for generation in [5, 6] {
        see(&mut open_on(fs.clone(), git_dir, HERE, &[HERE])?, 1, generation)?;
        mark(if generation == 5 { "first" } else { "second" });
    }
    Ok(())
}

fn pinned(git_dir: &Path) -> Option<u64> {
    let state = load(&first_level(git_dir)).expect("absent, old or new, never damaged");
    state.map(|state| {
        assert_eq!(state, state_of(1, state.generation));
        state.generation
    })
}

#[test]
fn every_crash_leaves_the_old_pin_or_the_new() {
    let temp = TempDir::new().expect("temporary folder");
    let recording = Arc::new(Recording::new(temp.path()).expect("recording"));
    let fs: Arc<dyn Fs> = recording.clone();
    two_operations(&fs, temp.path(), &|mark| recording.mark(mark)).expect("recorded");
    let states = recording.each_crash(|crash| {
        let pinned_there = pinned(crash.root());
        let expected: &[Option<u64>] = match (crash.reached("first"), crash.reached("second")) {
            (_, true) => &[Some(6)],
            (true, false) => &[Some(5), Some(6)],
            (false, false) => &[None, Some(5)],
        };
        assert!(expected.contains(&pinned_there), "{pinned_there:?}\n{crash}");
        let next: Arc<dyn Fs> = Arc::new(Recording::new(crash.root()).expect("recording"));
        if pinned_there == Some(6) {
            see(
                &mut open_on(next, crash.root(), HERE, &[HERE]).expect("opened"),
                1,
                6,
            )
            .expect("goes on");
        } else {
            two_operations(&next, crash.root(), &|_| {}).unwrap_or_else(|error| panic!("{error}\n{crash}"));
        }
        assert_eq!(pinned(crash.root()), Some(6));
    });
    assert!(states > 15, "only {states} states");
    for (files, folders) in [(true, false), (false, true)] {
        let mut broken = 0;
        recording.each_crash_without_syncs(files, folders, |crash| {
            let found = load(&first_level(crash.root()));
            if crash.reached("second") && !matches!(&found, Ok(Some(state)) if *state == state_of(1, 6)) {
                broken += 1;
            }
        });
        assert!(
            broken > 0,
            "the test would not notice missing syncs: files {files}, folders {folders}"
        );
    }
}

#[test]
fn every_failing_call_leaves_the_old_pin_or_the_new() {
    for fault in Fault::ALL {
        for stays in [false, true] {
            for at in 1.. {
                let temp = TempDir::new().expect("temporary folder");
                let faulty = Arc::new(Faulty::new(durable::real(), fault, at, stays));
                let fs: Arc<dyn Fs> = faulty.clone();
                let result = two_operations(&fs, temp.path(), &|_| {});
                let pinned_there = pinned(temp.path());
                if !faulty.failed() {
                    result.expect("nothing failed");
                    break;
                }
                let error = result.expect_err("a failing call is not passed over").to_string();
                assert!(!error.is_empty() && at < 100, "{error}");
                if pinned_there != Some(6) {
                    two_operations(&durable::real(), temp.path(), &|_| {}).expect("the next run finishes");
                }
                assert_eq!(pinned(temp.path()), Some(6));
            }
        }
    }
}

/// A new work tree and a renamed remote know nothing of the store yet; the repository does.
#[test]
fn what_one_name_has_seen_binds_the_others() {
    let temp = TempDir::new().expect("temporary folder");
    let (common, worktree) = (temp.path().join("git"), temp.path().join("git/worktrees/second"));
    fs::create_dir_all(&worktree).expect("folder");
    let open = |git_dir: &Path, owner: Owner<'_>| {
        let stores = [HERE.to_owned()];
        Continuity::open(durable::real(), git_dir, &common, owner, HERE, &stores, now()).expect("opened")
    };
    see(&mut open(&common, ORIGIN), 1, 5).expect("the first look");
    for (git_dir, owner) in [
        (&worktree, ORIGIN),
        (&common, Owner::Remote(b"renamed")),
        (&common, Owner::Remote(b"with/slash")),
        (&worktree, Owner::Url),
        (&common, Owner::Url),
    ] {
        let mut other = open(git_dir, owner);
        assert_eq!(other.newest_generation(), Some(5));
        check(&mut other, 1, 3).expect_err("an older state of the store");
        check(&mut other, 1, 5).expect("the store as it was seen");
        check(&mut other, 1, 6).expect("the store as it went on");
    }
}

/// Whoever begins a new repository under an old name keeps what was known of the old one out of the way.
#[test]
fn the_state_of_another_repository_is_set_aside() {
    let temp = TempDir::new().expect("temporary folder");
    see(&mut open(temp.path(), HERE, &[HERE]), 1, 5).expect("seen");
    let aside = first_level(temp.path()).with_file_name("state.before-1.json");
    let set_aside = |root: u8| {
        let root = RepositoryRoot::from_bytes([root; 32]);
        ingot_helper::state::set_aside(&*durable::real(), temp.path(), ORIGIN, &root, now()).expect("done")
    };
    set_aside(1);
    assert!(
        first_level(temp.path()).exists() && !aside.exists(),
        "it is the same repository"
    );
    let before = fs::read(first_level(temp.path())).expect("state");
    set_aside(2);
    assert!(!first_level(temp.path()).exists());
    assert_eq!(fs::read(aside).expect("kept"), before);
    set_aside(2);
}
