//! Bitmaps and commit-graphs of real repositories, compared with what Git's own walk says.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::object::links;
use ingot_engine::store::{Bitmap, Bits, Cache, CommitGraph, Store};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

fn hash(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn open(repo: &Repo, format: Format) -> Store {
    Store::open(&repo.objects(), hash(format)).unwrap()
}

/// A history long enough that not every commit gets a set.
fn long(format: Format) -> Repo {
    let repo = Repo::scripted("history", format);
    let mut stream = String::new();
    for step in 1..500 {
        // Without a `from` line, a commit follows the last one of its branch.
        let (branch, from) = match step {
            1 => ("main", "from refs/heads/main^0\n"),
            _ if step % 7 == 0 => ("topic", "from refs/heads/main\n"),
            _ => ("main", ""),
        };
        stream += &format!(
            "commit refs/heads/{branch}\ncommitter A <a@example.org> {} +0000\ndata 1\nx\n{from}",
            1_700_100_000 + step,
        );
        if step % 14 == 10 {
            stream += "merge refs/heads/topic\n";
        }
        stream += &format!("M 644 inline src/file{}\ndata 5\n{step:05}\n", step % 40);
    }
    git::with_input(
        repo.path(),
        &["fast-import", "--quiet", "--force"],
        stream.as_bytes(),
    );
    repo
}

fn ids(store: &Store, bitmap: &Bitmap, bits: &Bits) -> Vec<String> {
    let mut ids: Vec<String> = bits
        .iter()
        .map(|bit| store.id(bitmap.position(store, bit).unwrap()).to_string())
        .collect();
    ids.sort();
    ids
}

/// Every set of the bitmap against Git's walk without bitmaps; only some if there are many.
#[track_caller]
fn check(repo: &Repo, format: Format, bitmap: &Bitmap) {
    let store = open(repo, format);
    bitmap.verify().unwrap();
    let commits: Vec<ObjectId> = bitmap.commits(&store).map(|at| store.id(at).to_owned()).collect();
    assert!(commits.len() > 10, "{}", commits.len());
    for commit in commits.iter().step_by(commits.len().div_ceil(25)) {
        let bits = bitmap.reachable(&store, commit).unwrap().unwrap();
        let expected = git::objects(repo.path(), &[&commit.to_string()]);
        assert_eq!(ids(&store, bitmap, &bits), expected);
        assert_eq!(bits.count() as usize, expected.len());
    }
    let mut cache = Cache::new(1 << 20);
    let mut out = Vec::new();
    let mut all = 0;
    for kind in [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag] {
        let bits = bitmap.kind(kind).unwrap();
        all += bits.count();
        for bit in bits.iter() {
            let at = bitmap.position(&store, bit).unwrap();
            assert_eq!(store.read_at(at, &mut cache, &mut out).unwrap(), kind);
            assert_eq!(bitmap.bit(&store, store.id(at)), Some(bit));
            assert_eq!(store.canonical(at), at);
        }
    }
    assert_eq!(all, bitmap.len());
    assert_eq!(bitmap.position(&store, bitmap.len()), None);
    let blob = ObjectId::from_hex(repo.git(&["rev-parse", "HEAD:src/numbers.txt"]).as_bytes()).unwrap();
    assert!(bitmap.reachable(&store, &blob).is_none());
}

#[test]
fn one_pack() {
    for format in Format::BOTH {
        let repo = long(format);
        assert!(open(&repo, format).bitmap().is_none());
        for lookup_table in [
            "pack.writeBitmapLookupTable=false",
            "pack.writeBitmapLookupTable=true",
        ] {
            repo.git(&["-c", lookup_table, "repack", "-adfbq"]);
            let store = open(&repo, format);
            let bitmap = store.bitmap().unwrap();
            assert_eq!(bitmap.pack(), Some(0));
            check(&repo, format, &bitmap);
            // Git's hash of a name: the last characters weigh most.
            let file = ObjectId::from_hex(repo.git(&["rev-parse", "main:src/file7"]).as_bytes()).unwrap();
            let expected = b"src/file7"
                .iter()
                .fold(0u32, |hash, &byte| (hash >> 2) + (u32::from(byte) << 24));
            assert_eq!(bitmap.name_hash(&store, &file), Some(expected));
        }
    }
}

#[test]
fn beside_other_packs() {
    for format in Format::BOTH {
        let repo = long(format);
        repo.git(&["repack", "-adfbq"]);
        let name = repo.objects().join("pack/pack");
        for commit in ["main~3", "main~100", "v1.0", "topic"] {
            let some = git::objects(repo.path(), &[commit]).join("\n");
            git::with_input(
                repo.path(),
                &["pack-objects", "-q", name.to_str().unwrap()],
                some.as_bytes(),
            );
        }
        let store = open(&repo, format);
        assert_eq!(store.packs().len(), 5);
        check(&repo, format, &store.bitmap().unwrap());
    }
}

#[test]
fn several_packs() {
    for format in Format::BOTH {
        for settings in [
            &["-c", "pack.writeBitmapLookupTable=false"][..],
            &["-c", "pack.writeBitmapLookupTable=true"],
            &[
                "-c",
                "bitmapPseudoMerge.all.pattern=refs/",
                "-c",
                "bitmapPseudoMerge.all.threshold=now",
                "-c",
                "bitmapPseudoMerge.all.stableThreshold=never",
            ],
        ] {
            let repo = long(format);
            let name = repo.objects().join("pack/pack");
            for revisions in [
                &["main~300"][..],
                &["main~100", "^main~300"],
                &["--all", "^main~100"],
            ] {
                let some = git::objects(repo.path(), revisions).join("\n");
                git::with_input(
                    repo.path(),
                    &["pack-objects", "-q", name.to_str().unwrap()],
                    some.as_bytes(),
                );
            }
            repo.git(&["prune-packed"]);
            let mut args = settings.to_vec();
            args.extend(["multi-pack-index", "write", "--bitmap"]);
            repo.git(&args);
            let store = open(&repo, format);
            let bitmap = store.bitmap().unwrap();
            assert_eq!(bitmap.pack(), None);
            check(&repo, format, &bitmap);
        }
    }
}

fn overwrite(path: &Path, content: &[u8]) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Some hundred variants of a file: cut off, a byte changed, a stretch filled.
fn damaged(good: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let step = (good.len() / 250).max(1);
    let cut = (0..good.len())
        .step_by(step)
        .map(|length| good[..length].to_vec());
    let changed = (0..good.len()).step_by(step).map(|at| {
        let mut bytes = good.to_vec();
        bytes[at] ^= 0xa5;
        bytes
    });
    let wide = (0..good.len().saturating_sub(8)).step_by(step * 3).map(|at| {
        let mut bytes = good.to_vec();
        bytes[at..at + 8].fill(0xff);
        bytes
    });
    cut.chain(changed).chain(wide)
}

#[test]
fn damaged_bitmaps_never_panic() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["-c", "pack.writeBitmapLookupTable=true", "repack", "-adfbq"]);
    repo.git(&["multi-pack-index", "write", "--bitmap"]);
    let folder = repo.objects().join("pack");
    let files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "bitmap")
                || path.ends_with("multi-pack-index")
        })
        .collect();
    assert_eq!(files.len(), 3);
    let head = ObjectId::from_hex(repo.git(&["rev-parse", "HEAD"]).as_bytes()).unwrap();
    for path in files {
        let good = std::fs::read(&path).unwrap();
        for bad in damaged(&good) {
            overwrite(&path, &bad);
            let store = open(&repo, Format::Sha1);
            let single = store.pack_bitmap(0).unwrap().ok();
            if path.extension().is_some_and(|extension| extension == "bitmap")
                && let Some(single) = &single
                && !path.to_str().unwrap().contains("multi")
            {
                single.verify().unwrap_err();
            }
            for bitmap in [single, store.bitmap()].into_iter().flatten() {
                let _ = bitmap.kind(Kind::Tree);
                if let Some(Ok(bits)) = bitmap.reachable(&store, &head) {
                    for bit in bits.iter() {
                        let _ = bitmap.position(&store, bit);
                    }
                }
                let _ = bitmap.bit(&store, &head);
                assert!(bitmap.commits(&store).count() < 1000);
            }
        }
        overwrite(&path, &good);
    }
}

#[test]
fn commit_graphs() {
    for format in Format::BOTH {
        for split in [false, true] {
            let repo = long(format);
            assert!(open(&repo, format).commit_graph().is_none());
            if split {
                for tip in ["main~400", "main~20", "main"] {
                    let id = repo.git(&["rev-parse", tip]);
                    git::with_input(
                        repo.path(),
                        &["commit-graph", "write", "--split=no-merge", "--stdin-commits"],
                        format!("{id}\n").as_bytes(),
                    );
                }
            } else {
                repo.git(&["commit-graph", "write", "--reachable"]);
            }
            let store = open(&repo, format);
            let graph = store.commit_graph().unwrap();
            check_graph(&repo, &store, &graph);
            let borrower = Repo::empty(format);
            std::fs::create_dir_all(borrower.objects().join("info")).unwrap();
            std::fs::write(
                borrower.objects().join("info/alternates"),
                format!("{}\n", repo.objects().display()),
            )
            .unwrap();
            assert_eq!(open(&borrower, format).commit_graph().unwrap().len(), graph.len());
        }
    }
}

fn check_graph(repo: &Repo, store: &Store, graph: &CommitGraph) {
    let mut cache = Cache::new(1 << 20);
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    for line in repo.git(&["log", "--format=%H %ct", "main"]).lines() {
        let (hex, time) = line.split_once(' ').unwrap();
        let id = ObjectId::from_hex(hex.as_bytes()).unwrap();
        let at = graph.find(&id).unwrap();
        assert_eq!(graph.id(at), id);
        let commit = graph.commit(at);
        assert_eq!(commit.id(), id);
        assert_eq!(commit.time().to_string(), time);
        let mut expected = Vec::new();
        store.read(&id, &mut cache, &mut out).unwrap();
        links(Kind::Commit, &out, store.format(), |link| {
            expected.push(link.id.to_owned())
        })
        .unwrap();
        let mut found = vec![commit.tree().to_owned()];
        let parents: Vec<_> = commit.parents().map(Result::unwrap).collect();
        found.extend(parents.iter().map(|&parent| graph.id(parent).to_owned()));
        assert_eq!(found, expected);
        let above = parents
            .iter()
            .map(|&parent| graph.commit(parent).generation().unwrap())
            .max();
        assert_eq!(commit.generation(), Some(above.unwrap_or(0) + 1));
        seen.insert(at);
    }
    assert!(graph.len() as usize >= seen.len());
    assert!(graph.find(&ObjectId::null(store.format())).is_none());
}

#[test]
fn damaged_commit_graphs_never_panic() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["commit-graph", "write", "--reachable"]);
    let path = repo.objects().join("info/commit-graph");
    let good = std::fs::read(&path).unwrap();
    for bad in damaged(&good) {
        overwrite(&path, &bad);
        if let Some(graph) = CommitGraph::open(&repo.objects(), gix_hash::Kind::Sha1) {
            for number in 0..graph.len().min(100) {
                let commit = graph.commit(ingot_engine::store::commit_graph::GraphPosition(number));
                let _ = (
                    commit.id(),
                    commit.tree(),
                    commit.generation(),
                    graph.find(commit.id()),
                );
                let _ = commit.parents().count();
            }
        }
    }
}
