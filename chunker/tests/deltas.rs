//! Chunks that are stored as deltas against those that stood in their place.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use gix_hash::ObjectId;
use ingot_engine::chunked::{self, Pieces, Pointer, Source};
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use ingot_testdata::repo::{Format, Repo};
use support::*;

fn commit(repo: &Repo, content: &[u8]) {
    repo.write("a.bin", content);
    chunk(repo.path(), &["-q", "add", "-A"]);
    chunk(repo.path(), &["-q", "commit", "-m", "next"]);
}

fn pointer(repo: &Repo, name: &str) -> (Store, Pointer) {
    let store = Repository::open(repo.path()).unwrap().store().unwrap();
    let id = ObjectId::from_hex(git_ok(repo.path(), &["rev-parse", name]).as_bytes()).unwrap();
    let pointer = chunked::read_pointer(&store, &id, &mut Cache::new(0))
        .unwrap()
        .unwrap();
    (store, pointer)
}

/// The bases of the chunks that are deltas.
fn bases(repo: &Repo, name: &str) -> Vec<ObjectId> {
    let (store, pointer) = pointer(repo, name);
    Pieces::new(&store, &pointer)
        .filter_map(|piece| match piece.unwrap().source {
            Source::Delta { base, .. } => Some(base),
            _ => None,
        })
        .collect()
}

#[test]
fn chains_have_one_link_and_versions_come_back() {
    for format in Format::BOTH {
        let repo = ready(format);
        let dir = repo.path();
        let first = noise(1, 1_500_000);
        let mut content = first.clone();
        commit(&repo, &content);
        assert!(bases(&repo, "HEAD:a.bin").is_empty());
        let mut versions = vec![(git_ok(dir, &["rev-parse", "HEAD"]), content.clone())];
        // The same chunk again and again.
        let mut base = None;
        for step in 0..5u8 {
            content[700_000 + usize::from(step) * 7] ^= 1;
            commit(&repo, &content);
            let now = bases(&repo, "HEAD:a.bin");
            assert_eq!(now.len(), 1);
            assert_eq!(*base.get_or_insert(now[0]), now[0]);
            versions.push((git_ok(dir, &["rev-parse", "HEAD"]), content.clone()));
        }
        // What a chunk was before, it is again, be it a delta or none.
        commit(&repo, &versions[4].1);
        let same = |left: &str, right: &str| {
            assert_eq!(
                git_ok(dir, &["rev-parse", left]),
                git_ok(dir, &["rev-parse", right])
            );
        };
        same("HEAD:a.bin", "HEAD~2:a.bin");
        commit(&repo, &first);
        same("HEAD:a.bin", "HEAD~7:a.bin");
        // Insertions move what follows; deltas are found all the same.
        content = [b"front".as_slice(), &noise(2, 300_000), &first].concat();
        content[1_200_000] ^= 1;
        commit(&repo, &content);
        assert!(!bases(&repo, "HEAD:a.bin").is_empty());
        versions.push((git_ok(dir, &["rev-parse", "HEAD"]), content));
        for (commit, content) in &versions {
            chunk(dir, &["-q", "switch", "--detach", commit]);
            assert!(&fs::read(dir.join("a.bin")).unwrap() == content);
            git_ok(dir, &["checkout", "-q", "main"]);
            git_ok(dir, &["checkout", "-q", commit]);
            assert!(&fs::read(dir.join("a.bin")).unwrap() == content);
        }
        clean(dir);
        chunk(dir, &["fsck"]);
    }
}

#[test]
fn equal_content_keeps_its_pointer() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    let mut content = noise(1, 900_000);
    commit(&repo, &content);
    content[400_000] ^= 1;
    commit(&repo, &content);
    assert_eq!(bases(&repo, "HEAD:a.bin").len(), 1);
    // New times, same bytes: Git asks the filter again and has to get the same answer, and so has this program.
    for _ in 0..2 {
        repo.write("a.bin", &content);
        assert_eq!(git_ok(dir, &["status", "--porcelain"]), "");
        repo.write("a.bin", &content);
        assert_eq!(chunk(dir, &["status"]), "");
        repo.write("a.bin", &content);
        git_ok(dir, &["add", "a.bin"]);
        assert_eq!(git_ok(dir, &["diff", "--cached", "--name-only"]), "");
        repo.write("a.bin", &content);
        assert_eq!(json(dir, &["add", "a.bin"])["new_chunk_bytes"], 0);
        assert_eq!(git_ok(dir, &["diff", "--cached", "--name-only"]), "");
    }
    // An edit under Git's own commands is a delta, too, against the same chunk.
    content[400_009] ^= 1;
    repo.write("a.bin", &content);
    git_ok(dir, &["commit", "-qam", "with git"]);
    assert_eq!(bases(&repo, "HEAD:a.bin"), bases(&repo, "HEAD~1:a.bin"));
    let packs = kept_packs(&repo.git_dir());
    let newest = packs
        .iter()
        .map(|pack| fs::metadata(pack).unwrap().len())
        .min()
        .unwrap();
    assert!(newest < 2000, "{newest}");
    // The same file under another name has no earlier version, and is no other file for that.
    fs::copy(dir.join("a.bin"), dir.join("b.bin")).unwrap();
    git_ok(dir, &["add", "b.bin"]);
    git_ok(dir, &["commit", "-qm", "copy"]);
    let (_, copy) = pointer(&repo, "HEAD:b.bin");
    let (_, original) = pointer(&repo, "HEAD:a.bin");
    assert_eq!(copy.blake3, original.blake3);
    clean(dir);
    chunk(dir, &["fsck"]);
}

#[test]
fn bases_stay_as_long_as_their_deltas() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    let mut content = noise(1, 600_000);
    commit(&repo, &content);
    content[300_000] ^= 1;
    commit(&repo, &content);
    let base = bases(&repo, "HEAD:a.bin")[0];
    // History now begins with the second version.
    git_ok(dir, &["checkout", "-q", "--orphan", "fresh"]);
    git_ok(dir, &["commit", "-qm", "only"]);
    git_ok(dir, &["branch", "-qD", "main"]);
    git_ok(dir, &["reflog", "expire", "--expire=now", "--all"]);
    chunk(dir, &["gc", "--grace", "0"]);
    assert!(Repository::open(dir).unwrap().store().unwrap().contains(&base));
    fs::remove_file(dir.join("a.bin")).unwrap();
    chunk(dir, &["restore", "a.bin"]);
    assert!(fs::read(dir.join("a.bin")).unwrap() == content);
    chunk(dir, &["fsck"]);
}

#[test]
fn a_damaged_base_is_named_and_another_file_is_no_base() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    let mut content = noise(1, 600_000);
    commit(&repo, &content);
    // Nothing in common: chunks as they are.
    commit(&repo, &noise(2, 600_000));
    assert!(bases(&repo, "HEAD:a.bin").is_empty());
    commit(&repo, &content);
    content[300_000] ^= 1;
    commit(&repo, &content);
    let base = bases(&repo, "HEAD:a.bin")[0];
    // Every copy of the base is damaged: the pack of the first version has it.
    let store = Repository::open(dir).unwrap().store().unwrap();
    let at = store.find(&base).unwrap();
    let (pack, local) = store.pack_of(at);
    let (path, place) = (pack.path().to_owned(), pack.offset(local) as usize + 1000);
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    bytes[place] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    let told = chunk_run(dir, &["fsck"]);
    assert_eq!(told.status.code(), Some(13));
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains(&base.to_string()), "{told}");
}

#[test]
fn collecting_makes_differences_of_earlier_chunks() {
    for format in Format::BOTH {
        let repo = ready(format);
        let dir = repo.path();
        let mut content = noise(1, 1_500_000);
        let mut versions = Vec::new();
        for step in 0..4usize {
            // Without an earlier version in the index, all chunks are stored as they are.
            git_ok(dir, &["rm", "-q", "--cached", "--ignore-unmatch", "a.bin"]);
            content[100_000 + step * 300_000] ^= 1;
            content[700_000] ^= 1 << step;
            commit(&repo, &content);
            assert!(bases(&repo, "HEAD:a.bin").is_empty());
            versions.push((git_ok(dir, &["rev-parse", "HEAD"]), content.clone()));
        }
        let stored = || json(dir, &["stats"])["stored"].as_u64().unwrap();
        let before = stored();
        let packs = kept_packs(&repo.git_dir());
        assert_eq!(json(dir, &["gc"])["deltas"], 0, "young packs stay as they are");
        let dry = json(dir, &["gc", "--grace", "0", "--dry-run"]);
        let saved = dry["saved"].as_u64().unwrap();
        assert!(saved > 300_000, "{dry}");
        assert_eq!((stored(), kept_packs(&repo.git_dir())), (before, packs));
        let done = json(dir, &["gc", "--grace", "0"]);
        assert_eq!((&done["saved"], &done["deltas"]), (&dry["saved"], &dry["deltas"]));
        let after = stored();
        assert!(before - after > saved * 9 / 10, "{before} {after} {saved}");
        assert_eq!(json(dir, &["gc", "--grace", "0"])["deltas"], 0);
        assert_eq!(stored(), after);
        clean(dir);
        chunk(dir, &["fsck"]);
        for (commit, content) in &versions {
            chunk(dir, &["-q", "switch", "--detach", commit]);
            assert!(&fs::read(dir.join("a.bin")).unwrap() == content);
        }
        // The newest version goes, and with it what earlier chunks were made of.
        git_ok(dir, &["checkout", "-qB", "main", &versions[0].0]);
        git_ok(dir, &["reflog", "expire", "--expire=now", "--all"]);
        fs::remove_file(repo.git_dir().join("ORIG_HEAD")).ok();
        let done = json(dir, &["gc", "--grace", "0"]);
        assert!(done["removed_objects"].as_u64().unwrap() > 0, "{done}");
        fs::remove_file(dir.join("a.bin")).unwrap();
        chunk(dir, &["restore", "a.bin"]);
        assert!(fs::read(dir.join("a.bin")).unwrap() == versions[0].1);
        clean(dir);
        chunk(dir, &["fsck"]);
    }
}
