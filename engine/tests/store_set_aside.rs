//! Packs, indexes and helping files that cannot be used do not keep a repository from being read.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use ingot_engine::import::{self, Import};
use ingot_engine::pack::index::Limits;
use ingot_engine::progress::Silent;
use ingot_engine::store::{Cache, Store};
use ingot_engine::walk;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

fn hash(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn overwrite(path: &Path, content: &[u8]) {
    if path.exists() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    std::fs::write(path, content).unwrap();
}

fn ids(repo: &Repo, revisions: &[&str]) -> Vec<ObjectId> {
    git::objects(repo.path(), revisions)
        .iter()
        .map(|hex| ObjectId::from_hex(hex.as_bytes()).unwrap())
        .collect()
}

fn id(repo: &Repo, revision: &str) -> ObjectId {
    ObjectId::from_hex(repo.git(&["rev-parse", revision]).as_bytes()).unwrap()
}

/// Some commits in one pack, some more in a second, and the objects of each.
fn two_packs(format: Format) -> (Repo, Vec<ObjectId>, Vec<ObjectId>, PathBuf) {
    let repo = Repo::empty(format);
    let commit = |step| {
        repo.write("file", format!("{step}\n{}", "a line\n".repeat(40)));
        repo.write(&format!("folder/{step}"), format!("{step}\n"));
        repo.commit("One");
    };
    (0..5).for_each(commit);
    repo.git(&["repack", "-adq"]);
    let first: Vec<PathBuf> = packs(&repo);
    let old = ids(&repo, &["HEAD"]);
    (5..9).for_each(commit);
    repo.git(&["repack", "-dq"]);
    repo.git(&["prune-packed"]);
    let all = ids(&repo, &["HEAD"]);
    let new = all.into_iter().filter(|id| !old.contains(id)).collect();
    let second = packs(&repo)
        .into_iter()
        .find(|pack| !first.contains(pack))
        .unwrap();
    (repo, old, new, second)
}

fn packs(repo: &Repo) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repo.objects().join("pack")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|name| name == "pack"))
        .collect()
}

fn enumerate(store: &Store, want: ObjectId, threads: usize) -> Result<walk::Objects, walk::Error> {
    let request = walk::Request {
        wants: &[want],
        threads,
        ..walk::Request::default()
    };
    walk::enumerate(store, &request, &Silent)
}

#[test]
fn the_other_packs_are_read() {
    for format in Format::BOTH {
        let (repo, old, new, damaged) = two_packs(format);
        let (head, older) = (id(&repo, "HEAD"), id(&repo, "HEAD~4"));
        for extension in ["pack", "idx"] {
            let path = damaged.with_extension(extension);
            let good = std::fs::read(&path).unwrap();
            let mut other_end = good.clone();
            *other_end.last_mut().unwrap() ^= 1;
            other_end[4] ^= 1;
            for bad in [&b""[..], &good[..10], &good[..good.len() - 1], &other_end] {
                overwrite(&path, bad);
                let store = Store::open(&repo.objects(), hash(format)).unwrap();
                let [error] = store.set_aside() else {
                    panic!("{:?}", store.set_aside());
                };
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                assert_eq!(store.packs().len(), 1);
                let (mut cache, mut out) = (Cache::new(0), Vec::new());
                for id in &old {
                    assert!(store.read_verified(id, &mut cache, &mut out).unwrap().is_some());
                }
                for id in &new {
                    assert!(!store.contains(id), "it was in the damaged pack alone");
                }
                for threads in [1, 4] {
                    assert_eq!(
                        enumerate(&store, older, threads).unwrap().len() as usize,
                        old.len()
                    );
                    let error = enumerate(&store, head, threads).unwrap_err();
                    assert!(
                        matches!(&error, walk::Error::Missing { id, .. } if *id == head),
                        "{error}"
                    );
                }
            }
            overwrite(&path, &good);
        }
        // A pack that cannot be opened, which root can always; a folder in its place cannot be read by anybody.
        std::fs::remove_file(&damaged).unwrap();
        std::fs::create_dir(&damaged).unwrap();
        let store = Store::open(&repo.objects(), hash(format)).unwrap();
        assert_eq!((store.packs().len(), store.set_aside().len()), (1, 1));
    }
}

#[test]
fn objects_that_are_somewhere_else_too_are_not_missing() {
    for format in Format::BOTH {
        let (repo, old, new, damaged) = two_packs(format);
        let listed: String = new.iter().map(|id| format!("{id}\n")).collect();
        let folder = repo.objects().join("pack/other");
        git::with_input(
            repo.path(),
            &["pack-objects", "-q", "--window=0", folder.to_str().unwrap()],
            listed.as_bytes(),
        );
        overwrite(&damaged, &std::fs::read(&damaged).unwrap()[..20]);
        let store = Store::open(&repo.objects(), hash(format)).unwrap();
        assert_eq!(store.set_aside().len(), 1);
        let found = enumerate(&store, id(&repo, "HEAD"), 2).unwrap();
        assert_eq!(found.len() as usize, old.len() + new.len());
    }
}

#[test]
fn with_very_many_packs_too() {
    let repo = Repo::empty(Format::Sha1);
    for step in 0..70 {
        repo.write("file", format!("{step}\n"));
        repo.commit("One");
        repo.git(&["repack", "-dq"]);
    }
    let (head, parent) = (id(&repo, "HEAD"), id(&repo, "HEAD~1"));
    let store = Store::open(&repo.objects(), gix_hash::Kind::Sha1).unwrap();
    assert_eq!((store.packs().len(), store.set_aside().len()), (70, 0));
    let (pack, _) = store.pack_of(store.find(&head).unwrap());
    overwrite(pack.path(), b"PACK");
    let store = Store::open(&repo.objects(), gix_hash::Kind::Sha1).unwrap();
    assert_eq!((store.packs().len(), store.set_aside().len()), (69, 1));
    assert!(!store.contains(&head) && store.contains(&parent));
}

#[test]
fn a_pack_that_comes_again_replaces_a_damaged_one() {
    for format in Format::BOTH {
        let (repo, _, new, damaged) = two_packs(format);
        let good = std::fs::read(&damaged).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1; // of the same length
        overwrite(&damaged, &bad);
        let mut import = Import::begin(&repo.objects(), hash(format), import::Options::default()).unwrap();
        import
            .add_pack(&mut &good[..], &Limits::default(), &Silent)
            .unwrap();
        let published = import.publish(false).unwrap();
        assert_eq!(published[0].pack, damaged);
        assert_eq!(std::fs::read(&damaged).unwrap(), good);
        let store = Store::open(&repo.objects(), hash(format)).unwrap();
        assert!(store.set_aside().is_empty() && new.iter().all(|id| store.contains(id)));
    }
}

/// What is stored beside the packs to make walks faster.
#[derive(Debug, Clone, Copy)]
enum Aid {
    Graph,
    Chain,
    Bitmap,
    Multi,
}

/// Cut off at any length, or with any byte changed, they never change what is found.
#[test]
fn damaged_aids_are_passed_over() {
    for aid in [Aid::Graph, Aid::Chain, Aid::Bitmap, Aid::Multi] {
        let (repo, old, new, _) = two_packs(Format::Sha1);
        let pack = |name: &str| {
            let entries = std::fs::read_dir(repo.objects().join("pack")).unwrap();
            let mut paths = entries.map(|entry| entry.unwrap().path());
            paths.find(|path| path.to_str().unwrap().ends_with(name)).unwrap()
        };
        let files = match aid {
            Aid::Graph => {
                repo.git(&["commit-graph", "write", "--reachable"]);
                vec![repo.objects().join("info/commit-graph")]
            }
            Aid::Chain => {
                repo.git(&["commit-graph", "write", "--reachable", "--split"]);
                let folder = repo.objects().join("info/commit-graphs");
                let entries = std::fs::read_dir(folder).unwrap();
                entries.map(|entry| entry.unwrap().path()).collect()
            }
            Aid::Bitmap => {
                repo.git(&["repack", "-adbq"]);
                vec![pack(".bitmap")]
            }
            Aid::Multi => {
                repo.git(&["multi-pack-index", "write", "--bitmap"]);
                vec![pack("multi-pack-index"), pack(".bitmap")]
            }
        };
        let head = id(&repo, "HEAD");
        let expected = old.len() + new.len();
        for path in files {
            let good = std::fs::read(&path).unwrap();
            let step = (good.len() / 120).max(1);
            let cut = (0..good.len())
                .step_by(step)
                .map(|length| good[..length].to_vec());
            let changed = (0..good.len()).step_by(step).map(|at| {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << (at % 8);
                bytes
            });
            for bad in cut.chain(changed) {
                overwrite(&path, &bad);
                let store = Store::open(&repo.objects(), gix_hash::Kind::Sha1).unwrap();
                let found = enumerate(&store, head, 1);
                assert_eq!(found.unwrap().len() as usize, expected, "{aid:?}");
            }
            overwrite(&path, &good);
        }
    }
}

/// A commit-graph that is whole but says something wrong, in a walk that does not read all of it.
#[test]
fn a_commit_graph_that_contradicts_the_objects_is_passed_over() {
    let (repo, ..) = two_packs(Format::Sha1);
    repo.git(&["commit-graph", "write", "--reachable"]);
    let (head, older) = (id(&repo, "HEAD"), id(&repo, "HEAD~4"));
    let tree = id(&repo, "HEAD~1^{tree}");
    let expected = ids(&repo, &["HEAD", "^HEAD~4"]);
    let path = repo.objects().join("info/commit-graph");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(20)
        .position(|window| window == tree.as_bytes())
        .unwrap();
    bytes[at] ^= 0x55;
    overwrite(&path, &bytes);
    let store = Store::open(&repo.objects(), gix_hash::Kind::Sha1).unwrap();
    let request = walk::Request {
        wants: &[head],
        haves: &[older],
        ..walk::Request::default()
    };
    let found = walk::enumerate(&store, &request, &Silent).unwrap();
    assert!(found.contains(&store, &tree));
    let mine: Vec<ObjectId> = found.ids(&store).map(ToOwned::to_owned).collect();
    for id in expected {
        assert!(mine.contains(&id), "{id}");
    }
}
