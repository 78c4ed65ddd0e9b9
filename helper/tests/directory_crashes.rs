//! What power cuts and failing calls may leave in a store: the old head or the new one, each with everything it needs,
//! and the same command again finishes the job.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::durable::{self, Fs, Handle};
use ingot_helper::protocol::ContentId;
use ingot_helper::storage::directory::Directory;
use ingot_helper::storage::{Error, Storage};
use ingot_testdata::golden;
use tempfile::TempDir;

const GENESIS: &str = "2ff0004e88327717bf8145bbffac863f8006fa8333e4aee4343fa7d8a94c300d";
const PACK: &[u8] = b"a sealed pack, as far as storage cares";
const SECOND: &[u8] = b"the manifest that names it";

fn genesis() -> (ContentId, Vec<u8>) {
    let path = golden("e2ee-v5/dir-store").join("manifests/2f").join(GENESIS);
    (GENESIS.parse().expect("an id"), fs::read(path).expect("golden"))
}

fn store_at(root: &Path, fs: Arc<dyn Fs>) -> Directory {
    Directory::new(&root.join("store"), fs).expect("a path")
}

/// What `init` asks of storage.
fn init(store: &Directory) -> Result<(), Error> {
    store.create()?;
    if store.head()?.is_none() {
        store.put_manifest(&genesis().1)?;
        store.swap_head(None, &genesis().0)?;
    }
    Ok(())
}

/// What `push` asks of storage.
fn publish(store: &Directory) -> Result<(), Error> {
    if head(store)? == Some(ContentId::of(SECOND)) {
        return Ok(());
    }
    let mut staged = store.stage_object()?;
    staged.write_all(PACK).map_err(|source| Error::Io {
        action: "write",
        path: store.path().to_owned(),
        source,
    })?;
    staged.finish(&ContentId::of(PACK))?;
    store.put_manifest(SECOND)?;
    store.swap_head(Some(&genesis().0), &ContentId::of(SECOND))
}

fn head(store: &Directory) -> Result<Option<ContentId>, Error> {
    Ok(store
        .head()?
        .map(|head| head.id().expect("HEAD is whole or absent")))
}

/// The head, if everything that it needs is there.
fn inspect(store: &Directory) -> Result<Option<ContentId>, String> {
    let described = |error: Error| error.to_string();
    let Some(raw) = store.head().map_err(described)? else {
        return Ok(None);
    };
    let id = raw.id().ok_or("HEAD is not whole")?;
    store.manifest(&genesis().0).map_err(described)?;
    if id == genesis().0 {
        return Ok(Some(id));
    }
    let mut pack = Vec::new();
    let mut file = store.open_pack(&ContentId::of(PACK)).map_err(described)?;
    file.read_to_end(&mut pack).map_err(|error| error.to_string())?;
    if pack != PACK || store.manifest(&id).map_err(described)? != SECOND {
        return Err("content is not whole".to_owned());
    }
    Ok(Some(id))
}

#[track_caller]
fn consistent(store: &Directory) -> Option<ContentId> {
    inspect(store).unwrap_or_else(|problem| panic!("{problem}"))
}

fn recorded() -> (TempDir, Arc<Recording>) {
    let temp = TempDir::new().expect("temporary folder");
    let recording = Arc::new(Recording::new(temp.path()).expect("recording"));
    let store = store_at(temp.path(), recording.clone());
    init(&store).expect("begun");
    recording.mark("begun");
    publish(&store).expect("published");
    recording.mark("published");
    (temp, recording)
}

#[test]
fn every_crash_leaves_the_old_state_or_the_new_and_the_next_run_finishes() {
    let (_temp, recording) = recorded();
    let states = recording.each_crash(|crash| {
        let store = store_at(crash.root(), durable::real());
        let head = inspect(&store).unwrap_or_else(|problem| panic!("{problem}\n{crash}"));
        if crash.reached("begun") {
            assert!(head.is_some(), "{crash}");
        }
        if crash.reached("published") {
            assert_eq!(head, Some(ContentId::of(SECOND)), "{crash}");
        }
        init(&store)
            .and_then(|()| publish(&store))
            .unwrap_or_else(|error| panic!("{error}\n{crash}"));
        assert_eq!(consistent(&store), Some(ContentId::of(SECOND)), "{crash}");
    });
    assert!(states > 100, "only {states} states");
}

#[test]
fn leaving_out_syncs_would_be_noticed() {
    let temp = TempDir::new().expect("temporary folder");
    init(&store_at(temp.path(), durable::real())).expect("begun");
    let recording = Arc::new(Recording::new(temp.path()).expect("recording"));
    publish(&store_at(temp.path(), recording.clone())).expect("published");
    recording.mark("published");
    for (files, folders) in [(true, false), (false, true)] {
        let mut broken = 0;
        recording.each_crash_without_syncs(files, folders, |crash| {
            let store = store_at(crash.root(), durable::real());
            if crash.reached("published") && inspect(&store) != Ok(Some(ContentId::of(SECOND))) {
                broken += 1;
            }
        });
        assert!(broken > 0, "files {files}, folders {folders}");
    }
}

#[test]
fn a_publication_syncs_each_thing_once() {
    let (temp, _) = recorded();
    let recording = Arc::new(Recording::new(temp.path()).expect("recording"));
    let store = store_at(temp.path(), recording.clone());
    store.put_manifest(b"third").expect("stored");
    store
        .swap_head(Some(&ContentId::of(SECOND)), &ContentId::of(b"third"))
        .expect("moved");
    let calls = recording.calls();
    // The manifest and the head; the fan-out folder, the one above it, and the one that holds the head.
    assert_eq!((calls.file_syncs, calls.folder_syncs), (2, 4), "{calls:?}");
}

#[test]
fn every_failing_call_is_reported_and_the_next_run_finishes() {
    for fault in Fault::ALL {
        for stays in [false, true] {
            for at in 1.. {
                let temp = TempDir::new().expect("temporary folder");
                // Without the flushes of the real disk, which are slow and not the matter here.
                let quick = || Arc::new(Recording::new(temp.path()).expect("recording"));
                let faulty = Arc::new(Faulty::new(quick(), fault, at, stays));
                let broken = store_at(temp.path(), faulty.clone());
                let result = init(&broken).and_then(|()| publish(&broken));
                if !faulty.failed() {
                    result.expect("nothing failed");
                    break;
                }
                let sound = store_at(temp.path(), quick());
                let head = consistent(&sound);
                match result {
                    // A call whose failure harms nothing: removing the staged name, a link where a rename does.
                    Ok(()) => assert_eq!(head, Some(ContentId::of(SECOND)), "{fault:?} at {at}"),
                    Err(Error::Uncertain { .. }) => assert!(head.is_some(), "{fault:?} at {at}"),
                    Err(error) => {
                        assert_ne!(head, Some(ContentId::of(SECOND)), "{fault:?} at {at}: {error}");
                    }
                }
                init(&sound)
                    .and_then(|()| publish(&sound))
                    .expect("the next run finishes");
                assert_eq!(
                    consistent(&sound),
                    Some(ContentId::of(SECOND)),
                    "{fault:?} at {at}"
                );
                assert!(at < 200, "the loop ends");
            }
        }
    }
}

/// A file system whose changing calls give one error.
struct Refusing(io::ErrorKind, bool);

impl Refusing {
    fn no<T>(&self) -> io::Result<T> {
        Err(io::Error::from(self.0))
    }
}

impl Fs for Refusing {
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn Handle>> {
        if self.1 {
            durable::Real.create_new(path, mode)
        } else {
            self.no()
        }
    }
    fn append(&self, _: &Path, _: u32) -> io::Result<Box<dyn Handle>> {
        self.no()
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        durable::Real.read(path)
    }
    fn read_dir(&self, path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        durable::Real.read_dir(path)
    }
    fn kind(&self, path: &Path) -> io::Result<Option<durable::Kind>> {
        durable::Real.kind(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.1 {
            durable::Real.rename(from, to)
        } else {
            self.no()
        }
    }
    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        self.no()
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        if self.1 {
            durable::Real.unlink(path)
        } else {
            self.no()
        }
    }
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        if self.1 {
            durable::Real.create_dir(path, mode)
        } else {
            self.no()
        }
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        self.no()
    }
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        durable::Real.sync_file(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        durable::Real.sync_dir(path)
    }
}

#[test]
fn what_the_system_forbids_is_denied_and_what_is_gone_is_unreachable() {
    for (kind, denied) in [
        (io::ErrorKind::PermissionDenied, true),
        (io::ErrorKind::ReadOnlyFilesystem, true),
        (io::ErrorKind::StaleNetworkFileHandle, false),
        (io::ErrorKind::NotConnected, false),
    ] {
        let temp = TempDir::new().expect("temporary folder");
        init(&store_at(temp.path(), durable::real())).expect("begun");
        let store = store_at(temp.path(), Arc::new(Refusing(kind, false)));
        assert_eq!(consistent(&store), Some(genesis().0), "reading goes on");
        for error in [
            store.stage_object().map(drop),
            store.put_manifest(SECOND).map(drop),
            store.swap_head(Some(&genesis().0), &ContentId::of(SECOND)),
        ] {
            match error.expect_err("refused") {
                Error::Denied { .. } if denied => {}
                Error::Unreachable { .. } if !denied => {}
                error => panic!("{kind:?}: {error:?}"),
            }
        }
    }
}

#[test]
fn file_systems_without_hard_links_will_do() {
    for kind in [
        io::ErrorKind::Unsupported,
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::TooManyLinks,
    ] {
        let temp = TempDir::new().expect("temporary folder");
        let store = store_at(temp.path(), Arc::new(Refusing(kind, true)));
        init(&store).and_then(|()| publish(&store)).expect("published");
        assert_eq!(consistent(&store), Some(ContentId::of(SECOND)));
        store.put_manifest(SECOND).expect("again");
        assert_eq!(
            fs::read_dir(temp.path().join("store/.staging"))
                .expect("folder")
                .count(),
            0
        );
    }
}
