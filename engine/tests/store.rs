//! Every object of real repositories, in every way that Git stores them, as `git cat-file` has it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use gix_hash::ObjectId;
use gix_object::Kind;
use ingot_engine::store::{Cache, Store};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

fn hash(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

/// Every object that Git finds here and in alternates.
fn expected(dir: &Path) -> BTreeMap<ObjectId, (Kind, Vec<u8>)> {
    let batch = git::with_input(
        dir,
        &["cat-file", "--batch", "--batch-all-objects", "--unordered"],
        b"",
    );
    let mut objects = BTreeMap::new();
    let mut rest = &batch[..];
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap();
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let fields: Vec<&str> = line.split(' ').collect();
        let size: usize = fields[2].parse().unwrap();
        let content = rest[end + 1..][..size].to_vec();
        rest = &rest[end + 1 + size + 1..];
        let id = ObjectId::from_hex(fields[0].as_bytes()).unwrap();
        objects.insert(id, (Kind::from_bytes(fields[1].as_bytes()).unwrap(), content));
    }
    objects
}

/// Reads everything in every way and compares.
#[track_caller]
fn check(dir: &Path, objects: &Path, format: Format) -> Store {
    let store = Store::open(objects, hash(format)).unwrap();
    let expected = expected(dir);
    assert!(!expected.is_empty());
    for budget in [0, 4 << 20] {
        let mut cache = Cache::new(budget);
        let (mut out, mut streamed) = (Vec::new(), Vec::new());
        for (id, (kind, content)) in &expected {
            assert!(store.contains(id));
            assert_eq!(
                store.header(id).unwrap(),
                Some((*kind, content.len() as u64)),
                "{id}"
            );
            assert_eq!(
                store.read_verified(id, &mut cache, &mut out).unwrap(),
                Some(*kind),
                "{id}"
            );
            assert!(out == *content, "{id}");
            streamed.clear();
            let header = store.stream(id, &mut cache, &mut streamed).unwrap();
            assert_eq!(header, Some((*kind, content.len() as u64)), "{id}");
            assert!(streamed == *content, "{id}");
        }
    }
    let absent = ObjectId::from_hex("7".repeat(hash(format).len_in_hex()).as_bytes()).unwrap();
    assert!(!store.contains(&absent));
    assert_eq!(store.header(&absent).unwrap(), None);
    assert_eq!(
        store.read(&absent, &mut Cache::new(0), &mut Vec::new()).unwrap(),
        None
    );
    positions(&store, &expected);
    store
}

/// Positions, offsets and orders fit together.
fn positions(store: &Store, expected: &BTreeMap<ObjectId, (Kind, Vec<u8>)>) {
    let mut cache = Cache::new(1 << 20);
    let mut next = 0;
    for (number, pack) in store.packs().iter().enumerate() {
        let file = std::fs::read(pack.path()).unwrap();
        let order = pack.by_offset();
        assert_eq!(order.len(), pack.len() as usize);
        for (rank, &local) in order.iter().enumerate() {
            let (start, end) = (pack.offset(local), pack.end(local).unwrap());
            assert_eq!(pack.rank(start), Some(rank as u32));
            assert_eq!(pack.local_at(start), Some(local));
            assert_eq!(pack.local_at(start + 1), None);
            match order.get(rank + 1) {
                Some(&following) => assert_eq!(pack.offset(following), end),
                None => assert_eq!(pack.data_end().unwrap(), end),
            }
            if let Some(crc) = pack.crc(local) {
                assert_eq!(crc32fast::hash(&file[start as usize..end as usize]), crc);
            }
            let entry = cache.reader().entry(pack, start).unwrap();
            assert_eq!(entry, pack.entry(start).unwrap());
            let mut raw = Vec::new();
            assert_eq!(cache.reader().inflate(pack, &entry, &mut raw).unwrap(), end);
        }
        for local in 0..pack.len() {
            let at = store.position(number, local);
            assert_eq!(at.0, next);
            next += 1;
            assert_eq!(store.id(at), pack.id(local));
            assert!(std::ptr::eq(store.pack_of(at).0, pack));
            assert_eq!(store.pack_of(at).1, local);
            let canonical = store.find(pack.id(local)).unwrap();
            assert!(canonical <= at);
            assert_eq!(store.id(canonical), pack.id(local));
            let mut out = Vec::new();
            let kind = store.read_at(at, &mut cache, &mut out).unwrap();
            assert!(expected[pack.id(local)] == (kind, out));
        }
    }
    assert_eq!(store.packed_len(), next);
}

#[test]
fn loose_only() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let store = check(repo.path(), &repo.objects(), format);
        assert_eq!(store.packed_len(), 0);
        let mut loose: Vec<ObjectId> = store.loose().map(Result::unwrap).collect();
        loose.sort();
        assert_eq!(loose, expected(repo.path()).into_keys().collect::<Vec<_>>());
    }
}

#[test]
fn one_pack() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        repo.git(&["repack", "-adq"]);
        let store = check(repo.path(), &repo.objects(), format);
        assert_eq!(store.packs().len(), 1);
        repo.git(&["prune-packed"]);
        check(repo.path(), &repo.objects(), format);
    }
}
