//! The directory backend against golden stores, hostile folders and rivals.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use ingot_engine::durable;
use ingot_helper::protocol::ContentId;
use ingot_helper::storage::directory::Directory;
use ingot_helper::storage::{Error, Kind, MANIFEST_LIMIT, Storage};
use ingot_testdata::checker::check_store;
use ingot_testdata::golden;
use tempfile::TempDir;

const GENESIS: &str = "2ff0004e88327717bf8145bbffac863f8006fa8333e4aee4343fa7d8a94c300d";
const HEAD: &str = "57adddf153c9716955da5e5f0c238edcdde3320a1edd9f6c3679d076363110da";
const SOME_PACK: &str = "f31c70a99ce939dd0287f3ed1bbc9437d769b5daf8394b8fd04abbc0f77e4bde";

fn id(text: &str) -> ContentId {
    text.parse().expect("an id")
}

fn store_at(path: &Path) -> Directory {
    Directory::new(path, durable::real()).expect("a path")
}

fn empty() -> (TempDir, Directory) {
    let temp = TempDir::new().expect("temporary folder");
    let store = store_at(&temp.path().join("store"));
    store.create().expect("a place");
    (temp, store)
}

/// The ids of all things of a kind in a store's folder.
fn ids(store: &Path, folder: &str) -> Vec<ContentId> {
    let mut ids = Vec::new();
    for fan_out in fs::read_dir(store.join(folder)).expect("folder") {
        for entry in fs::read_dir(fan_out.expect("entry").path()).expect("fan-out") {
            ids.push(id(&entry.expect("entry").file_name().to_string_lossy()));
        }
    }
    ids
}

fn place(store: &Path, folder: &str, id: &str) -> PathBuf {
    store.join(folder).join(&id[..2]).join(id)
}

fn store_pack(store: &Directory, bytes: &[u8]) -> Result<ContentId, Error> {
    let mut staged = store.stage_object()?;
    staged.write_all(bytes).expect("written");
    let id = ContentId::of(bytes);
    staged.finish(&id).map(|()| id)
}

/// A copy of the golden store.
fn copied() -> (TempDir, Directory) {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir(to).expect("folder");
        for entry in fs::read_dir(from).expect("folder") {
            let (from, to) = entry
                .map(|entry| (entry.path(), to.join(entry.file_name())))
                .expect("entry");
            if from.is_dir() {
                copy(&from, &to);
            } else {
                fs::write(to, fs::read(from).expect("file")).expect("file");
            }
        }
    }
    let temp = TempDir::new().expect("temporary folder");
    let store = store_at(&temp.path().join("store"));
    copy(&golden("e2ee-v5/dir-store"), store.path());
    (temp, store)
}

/// A store that holds what the golden one holds, written piece by piece.
fn rewritten() -> (TempDir, Directory) {
    let from = store_at(&golden("e2ee-v5/dir-store"));
    let (temp, to) = empty();
    for id in ids(from.path(), "manifests") {
        assert_eq!(
            to.put_manifest(&from.manifest(&id).expect("golden manifest"))
                .expect("stored"),
            id
        );
    }
    for id in ids(from.path(), "objects") {
        let mut bytes = Vec::new();
        from.open_pack(&id)
            .expect("golden pack")
            .read_to_end(&mut bytes)
            .expect("read");
        assert_eq!(from.pack_size(&id).expect("golden pack"), bytes.len() as u64);
        assert_eq!(store_pack(&to, &bytes).expect("stored"), id);
    }
    fs::write(to.path().join("HEAD"), format!("{GENESIS}\n")).expect("a begun repository");
    to.swap_head(Some(&id(GENESIS)), &id(HEAD)).expect("head moved");
    (temp, to)
}

#[test]
fn golden_store_is_read() {
    let store = store_at(&golden("e2ee-v5/dir-store"));
    let head = store.head().expect("readable").expect("initialised");
    assert_eq!(head.bytes(), format!("{HEAD}\n").as_bytes());
    assert_eq!(head.id(), Some(id(HEAD)));
    assert_eq!(ids(store.path(), "manifests").len(), 10);
    for id in ids(store.path(), "manifests") {
        assert_eq!(ContentId::of(&store.manifest(&id).expect("manifest")), id);
    }
}

#[test]
fn a_store_written_piece_by_piece_is_the_golden_one() {
    let (_temp, store) = rewritten();
    let summary = check_store(
        store.path(),
        &golden("e2ee-v5/dir-store-keys/owner.key.json"),
        &["--clean"],
    )
    .expect("valid");
    assert!(summary.contains("\"generation\": 9"), "{summary}");
    let golden = golden("e2ee-v5/dir-store");
    for (folder, kind) in [("manifests", 10), ("objects", 6)] {
        let ids = ids(store.path(), folder);
        assert_eq!(ids.len(), kind);
        for id in ids {
            let [ours, theirs] =
                [store.path(), golden.as_path()].map(|root| place(root, folder, &id.to_hex()));
            assert_eq!(fs::read(ours).expect("ours"), fs::read(theirs).expect("theirs"));
        }
    }
    assert_eq!(
        fs::read(store.path().join("HEAD")).expect("HEAD"),
        format!("{HEAD}\n").as_bytes()
    );
    assert_eq!(fs::read(store.path().join("HEAD.lock")).expect("lock file"), b"");
    assert_eq!(
        fs::read_dir(store.path().join(".staging"))
            .expect("folder")
            .count(),
        0
    );
    let mut names: Vec<_> = fs::read_dir(store.path())
        .expect("folder")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("ASCII"))
        .collect();
    names.sort();
    assert_eq!(names, [".staging", "HEAD", "HEAD.lock", "manifests", "objects"]);
}

#[cfg(unix)]
#[test]
fn permissions_are_the_umasks() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_temp, store) = rewritten();
    let probe = store.path().join("probe");
    fs::write(&probe, "").expect("file");
    fs::create_dir(store.path().join("probe-folder")).expect("folder");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    for path in [
        store.path().join("HEAD"),
        place(store.path(), "objects", SOME_PACK),
    ] {
        assert_eq!(mode(&path), mode(&probe), "{}", path.display());
    }
    for path in [store.path().join("objects"), store.path().join("manifests/2f")] {
        assert_eq!(
            mode(&path),
            mode(&store.path().join("probe-folder")),
            "{}",
            path.display()
        );
    }
}

#[test]
fn absent_uninitialised_and_unreachable_are_different_things() {
    let (temp, store) = empty();
    assert!(matches!(store.head(), Ok(None)));
    assert!(matches!(
        store.manifest(&id(HEAD)),
        Err(Error::Absent {
            kind: Kind::Manifest,
            ..
        })
    ));
    assert!(matches!(
        store.pack_size(&id(HEAD)),
        Err(Error::Absent { kind: Kind::Pack, .. })
    ));

    let missing = store_at(&temp.path().join("other"));
    assert!(matches!(missing.head(), Ok(None)));
    assert!(matches!(
        missing.manifest(&id(HEAD)),
        Err(Error::NotInitialized { .. })
    ));
    assert!(matches!(
        missing.put_manifest(b"x"),
        Err(Error::NotInitialized { .. })
    ));
    assert!(matches!(
        missing.stage_object().map(drop),
        Err(Error::NotInitialized { .. })
    ));
    assert!(matches!(
        missing.swap_head(None, &id(HEAD)),
        Err(Error::NotInitialized { .. })
    ));
    assert!(!missing.path().exists(), "nothing may be made by accident");

    let unmounted = store_at(&temp.path().join("no/such/place"));
    for error in [
        unmounted.head().map(drop),
        unmounted.manifest(&id(HEAD)).map(drop),
        unmounted.put_manifest(b"x").map(drop),
        unmounted.swap_head(None, &id(HEAD)),
    ] {
        assert!(matches!(error, Err(Error::Unreachable { .. })), "{error:?}");
    }
    unmounted.create().expect("made on request");
    assert!(matches!(unmounted.head(), Ok(None)));

    let file = temp.path().join("file");
    fs::write(&file, "").expect("file");
    assert!(matches!(store_at(&file).head(), Err(Error::Corrupt { .. })));
    assert!(matches!(
        store_at(&file.join("below")).head(),
        Err(Error::Unreachable { .. })
    ));
}

#[test]
fn a_lost_head_is_not_an_empty_place() {
    // Only first manifests: a beginning that was interrupted, to be begun again.
    let (_temp, store) = empty();
    let first = fs::read(place(&golden("e2ee-v5/dir-store"), "manifests", GENESIS)).expect("golden");
    store.put_manifest(&first).expect("stored");
    assert!(matches!(store.head(), Ok(None)));
    store.swap_head(None, &id(GENESIS)).expect("begun");
    assert!(matches!(
        store.swap_head(None, &id(HEAD)),
        Err(Error::HeadChanged { expected: None, actual: Some(actual) }) if actual == id(GENESIS)
    ));

    // Anything else: a repository.
    let lost = |prepare: &dyn Fn(&Directory)| {
        let (_temp, store) = empty();
        store.put_manifest(&first).expect("stored");
        prepare(&store);
        for error in [
            store.head().map(drop),
            store.swap_head(None, &id(GENESIS)),
            store.swap_head(Some(&id(HEAD)), &id(GENESIS)),
        ] {
            assert!(matches!(error, Err(Error::HeadMissing { .. })), "{error:?}");
        }
    };
    lost(&|store| {
        store_pack(store, b"pack").expect("stored");
    });
    lost(&|store| {
        let second = store_at(&golden("e2ee-v5/dir-store"))
            .manifest(&id(HEAD))
            .expect("golden");
        store.put_manifest(&second).expect("stored");
    });
    lost(&|store| {
        store.put_manifest(b"{}").expect("stored");
    });
    lost(&|store| {
        let path = place(store.path(), "manifests", GENESIS);
        fs::write(&path, [&first[..], b" "].concat()).expect("changed");
    });
}

#[test]
fn the_loser_of_a_race_learns_both_ids() {
    let (_temp, store) = copied();
    let error = store
        .swap_head(Some(&id(GENESIS)), &id(SOME_PACK))
        .expect_err("stale");
    assert_eq!(
        error.to_string(),
        format!("head changed concurrently (expected {GENESIS}, actual {HEAD})")
    );

    let rivals: Vec<_> = (0..16_u8).map(|n| ContentId::of(&[n])).collect();
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = rivals
            .iter()
            .map(|rival| {
                let store = store_at(store.path());
                scope.spawn(move || store.swap_head(Some(&id(HEAD)), rival))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let winner = store
        .head()
        .expect("readable")
        .and_then(|head| head.id())
        .expect("an id");
    for (rival, result) in rivals.iter().zip(results) {
        match result {
            Ok(()) => assert_eq!(*rival, winner),
            Err(Error::HeadChanged { expected, actual }) => {
                assert_eq!((expected, actual), (Some(id(HEAD)), Some(winner)));
                assert_ne!(*rival, winner);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn writers_that_follow_each_other_lose_no_step() {
    let (_temp, store) = copied();
    std::thread::scope(|scope| {
        for writer in 0..4_u8 {
            let store = store_at(store.path());
            scope.spawn(move || {
                for step in 0..10_u8 {
                    loop {
                        let seen = store
                            .head()
                            .expect("readable")
                            .and_then(|head| head.id())
                            .expect("an id");
                        // The next head says what it follows: if a step were lost, the last one could not be computed.
                        let next = ContentId::of(&[seen.as_bytes().as_slice(), &[writer, step]].concat());
                        let log = store.path().with_extension("log");
                        match store.swap_head(Some(&seen), &next) {
                            Ok(()) => {
                                let mut file = fs::File::options()
                                    .append(true)
                                    .create(true)
                                    .open(log)
                                    .expect("log");
                                writeln!(file, "{seen} {next}").expect("logged");
                                break;
                            }
                            Err(Error::HeadChanged { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    let log = fs::read_to_string(store.path().with_extension("log")).expect("log");
    let steps: std::collections::HashMap<_, _> =
        log.lines().filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(steps.len(), 40);
    let (mut at, mut count) = (HEAD, 0);
    while let Some(next) = steps.get(at) {
        (at, count) = (next, count + 1);
    }
    assert_eq!(count, 40, "one unbroken line of heads");
    assert_eq!(
        store.head().expect("readable").and_then(|head| head.id()),
        Some(id(at))
    );
}

#[test]
fn what_is_there_already_is_kept_and_checked() {
    let (_temp, store) = empty();
    let pack = store_pack(&store, b"content").expect("stored");
    assert_eq!(store_pack(&store, b"content").expect("again"), pack);
    fs::write(place(store.path(), "objects", &pack.to_hex()), b"conten7").expect("damaged");
    let error = store_pack(&store, b"content").expect_err("collision");
    assert!(error.to_string().contains("object id collision"), "{error}");
    assert_eq!(
        fs::read(place(store.path(), "objects", &pack.to_hex())).expect("kept"),
        b"conten7"
    );
    assert_eq!(
        fs::read_dir(store.path().join(".staging"))
            .expect("folder")
            .count(),
        0
    );
}

#[test]
fn an_abandoned_pack_leaves_nothing() {
    let (_temp, store) = empty();
    let mut staged = store.stage_object().expect("staged");
    // Long enough to be brought to the disk while it is written.
    let block = vec![7; 1 << 20];
    for _ in 0..70 {
        staged.write_all(&block).expect("written");
    }
    drop(staged);
    assert_eq!(
        fs::read_dir(store.path().join(".staging"))
            .expect("folder")
            .count(),
        0
    );
    assert!(!store.path().join("objects").exists());
}

#[test]
fn a_long_pack_arrives_whole() {
    let (_temp, store) = empty();
    let bytes: Vec<u8> = (0..70_u32 << 20).map(|n| (n >> 8) as u8).collect();
    let id = store_pack(&store, &bytes).expect("stored");
    let mut found = Vec::new();
    store
        .open_pack(&id)
        .expect("there")
        .read_to_end(&mut found)
        .expect("read");
    assert!(found == bytes);
}

#[test]
fn absurd_sizes_are_refused() {
    let (_temp, store) = copied();
    let huge = vec![b'x'; usize::try_from(MANIFEST_LIMIT).expect("fits") + 1];
    assert!(matches!(
        store.put_manifest(&huge),
        Err(Error::ManifestTooLarge { .. })
    ));
    store
        .put_manifest(&huge[1..])
        .expect("the most that readers take");
    // A sparse file of a terabyte costs the attacker nothing, and must cost the reader nothing either.
    let path = place(store.path(), "manifests", GENESIS);
    fs::File::options()
        .write(true)
        .open(&path)
        .expect("open")
        .set_len(1 << 40)
        .expect("sparse");
    let error = store.manifest(&id(GENESIS)).expect_err("huge");
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    fs::File::create(store.path().join("HEAD"))
        .expect("open")
        .set_len(1 << 40)
        .expect("sparse");
    assert!(matches!(store.head(), Err(Error::Corrupt { .. })));
}

#[test]
fn heads_that_are_no_ids_are_kept_for_the_report_and_never_replaced() {
    let (_temp, store) = copied();
    let upper = HEAD.to_uppercase();
    for bad in [
        "",
        "\n",
        "ref: refs/heads/main\n",
        &HEAD[1..],
        &upper,
        &format!("{HEAD}\n{HEAD}\n"),
        "../../x",
    ] {
        fs::write(store.path().join("HEAD"), bad).expect("written");
        let head = store.head().expect("readable").expect("there");
        assert_eq!((head.id(), head.bytes()), (None, bad.as_bytes()));
        for expected in [None, Some(&id(HEAD))] {
            let error = store.swap_head(expected, &id(GENESIS)).expect_err("not an id");
            assert!(matches!(error, Error::Corrupt { .. }), "{bad:?}: {error}");
        }
        assert_eq!(fs::read(store.path().join("HEAD")).expect("kept"), bad.as_bytes());
    }
    for good in [HEAD.to_owned(), format!(" {HEAD}\r\n\n")] {
        fs::write(store.path().join("HEAD"), good).expect("written");
        assert_eq!(
            store.head().expect("readable").expect("there").id(),
            Some(id(HEAD))
        );
    }
    fs::write(store.path().join("HEAD"), [0xff; 64]).expect("written");
    assert_eq!(store.head().expect("readable").expect("there").id(), None);
}

#[test]
fn changed_manifests_are_refused() {
    let (_temp, store) = copied();
    let path = place(store.path(), "manifests", HEAD);
    let mut bytes = fs::read(&path).expect("manifest");
    bytes[100] ^= 1;
    fs::write(&path, bytes).expect("changed");
    assert!(matches!(store.manifest(&id(HEAD)), Err(Error::Corrupt { .. })));
}

#[cfg(unix)]
#[test]
fn links_and_other_odd_things_are_refused() {
    use std::os::unix::fs::symlink;

    /// Puts something else in the place of a file or folder of a good store, and expects a refusal.
    fn hostile(at: &str, put: &dyn Fn(&Path), ask: &dyn Fn(&Directory) -> Result<(), Error>) {
        let (temp, store) = copied();
        let path = store.path().join(at);
        // What was there goes on to exist elsewhere, so that a link can lead to the very same thing.
        if at == ".staging" {
            fs::create_dir(&path).expect("folder");
        }
        fs::rename(&path, temp.path().join("moved")).expect("moved");
        put(&path);
        let before = listing(temp.path());
        let error = ask(&store).expect_err(at);
        assert!(
            matches!(error, Error::Corrupt { .. } | Error::Io { .. }),
            "{at}: {error:?}"
        );
        assert_eq!(listing(temp.path()), before, "{at}: nothing is written anywhere");
    }

    fn listing(path: &Path) -> Vec<PathBuf> {
        let mut found = vec![path.to_owned()];
        if fs::symlink_metadata(path).expect("there").is_dir() {
            let mut below: Vec<_> = fs::read_dir(path)
                .expect("folder")
                .map(|entry| entry.expect("entry").path())
                .collect();
            below.sort();
            found.extend(
                below
                    .iter()
                    .filter(|path| !path.ends_with(".staging"))
                    .flat_map(|path| listing(path)),
            );
        }
        found
    }

    let link =
        |path: &Path| symlink(path.ancestors().nth(1).expect("above").join("../moved"), path).expect("link");
    let link_up = |path: &Path| {
        let moved = path.ancestors().find_map(|above| {
            let moved = above.join("moved");
            moved.exists().then_some(moved)
        });
        symlink(moved.expect("moved"), path).expect("link");
    };
    let folder = |path: &Path| fs::create_dir(path).expect("folder");
    let file = |path: &Path| fs::write(path, "x").expect("file");
    let pipe = |path: &Path| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_bits_truncate(0o600),
            0,
        )
        .expect("pipe");
    };
    let head = |store: &Directory| store.head().map(drop);
    let swap = |store: &Directory| store.swap_head(Some(&id(HEAD)), &id(GENESIS));
    for put in [&link as &dyn Fn(&Path), &folder, &pipe] {
        hostile("HEAD", put, &head);
        hostile("HEAD", put, &swap);
    }
    for put in [&link as &dyn Fn(&Path), &folder] {
        hostile("HEAD.lock", put, &swap);
    }
    let manifest = |store: &Directory| store.manifest(&id(GENESIS)).map(drop);
    let pack = |store: &Directory| store.open_pack(&id(SOME_PACK)).map(drop);
    for put in [&link_up as &dyn Fn(&Path), &file] {
        hostile("manifests", put, &manifest);
        hostile("manifests/2f", put, &manifest);
        hostile("objects", put, &pack);
        hostile("objects/f3", put, &pack);
        hostile("objects", put, &|store| store_pack(store, b"new").map(drop));
        hostile("manifests", put, &|store| store.put_manifest(b"new").map(drop));
        hostile(".staging", put, &|store| store_pack(store, b"new").map(drop));
    }
    for put in [&link_up as &dyn Fn(&Path), &folder, &pipe] {
        hostile(&format!("manifests/2f/{GENESIS}"), put, &manifest);
        hostile(&format!("objects/f3/{SOME_PACK}"), put, &pack);
        hostile(&format!("objects/f3/{SOME_PACK}"), put, &|store| {
            let bytes = fs::read(place(&golden("e2ee-v5/dir-store"), "objects", SOME_PACK)).expect("golden");
            store_pack(store, &bytes).map(drop)
        });
    }
}

#[cfg(unix)]
#[test]
fn a_missing_fan_out_folder_is_an_absent_thing() {
    let (_temp, store) = copied();
    fs::remove_dir_all(store.path().join("objects/f3")).expect("removed");
    let error = store.open_pack(&id(SOME_PACK)).map(drop).expect_err("gone");
    assert!(matches!(error, Error::Absent { kind: Kind::Pack, id, .. } if id == self::id(SOME_PACK)));
    fs::remove_dir_all(store.path().join("manifests")).expect("removed");
    assert!(matches!(
        store.manifest(&id(HEAD)),
        Err(Error::Absent {
            kind: Kind::Manifest,
            ..
        })
    ));
}

#[cfg(unix)]
#[test]
fn a_link_to_the_store_itself_is_the_users_business() {
    let (temp, store) = copied();
    let link = temp.path().join("link");
    std::os::unix::fs::symlink(store.path(), &link).expect("link");
    let linked = store_at(&link);
    assert_eq!(
        linked.head().expect("readable").expect("there").id(),
        Some(id(HEAD))
    );
    assert_eq!(linked.identity(), store.identity());
    store_pack(&linked, b"new").expect("stored");
    std::os::unix::fs::symlink(temp.path().join("gone"), temp.path().join("dangling")).expect("link");
    assert!(matches!(
        store_at(&temp.path().join("dangling")).head(),
        Err(Error::Unreachable { .. })
    ));
}
