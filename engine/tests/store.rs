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
    check_as(&expected(dir), objects, format)
}

#[track_caller]
fn check_as(expected: &BTreeMap<ObjectId, (Kind, Vec<u8>)>, objects: &Path, format: Format) -> Store {
    let store = Store::open(objects, hash(format)).unwrap();
    assert!(!expected.is_empty());
    for budget in [0, 4 << 20] {
        let mut cache = Cache::new(budget);
        let (mut out, mut streamed) = (Vec::new(), Vec::new());
        for (id, (kind, content)) in expected {
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
    positions(&store, expected);
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
            assert!(std::ptr::eq(store.pack_of(at).0, &**pack));
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

#[test]
fn several_packs_and_loose_objects() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        // Each pack holds what the one before it does not; the second repack with -a would make it one.
        for revisions in ["HEAD~4", "HEAD~2", "v1.0", "nested"] {
            let name = repo.objects().join("pack/pack");
            let ids = git::objects(repo.path(), &[revisions]).join("\n");
            git::with_input(
                repo.path(),
                &["pack-objects", "-q", name.to_str().unwrap()],
                ids.as_bytes(),
            );
        }
        let store = check(repo.path(), &repo.objects(), format);
        assert_eq!(store.packs().len(), 4);
        repo.git(&["prune-packed"]);
        check(repo.path(), &repo.objects(), format);
        // A multi-pack-index beside the packs changes nothing.
        repo.git(&["multi-pack-index", "write"]);
        check(repo.path(), &repo.objects(), format);
    }
}

#[test]
fn many_small_packs() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let ids = git::objects(repo.path(), &["--all"]);
        for id in &ids {
            let name = repo.objects().join("pack/pack");
            git::with_input(
                repo.path(),
                &["pack-objects", "-q", name.to_str().unwrap()],
                id.as_bytes(),
            );
        }
        repo.git(&["prune-packed"]);
        let store = check(repo.path(), &repo.objects(), format);
        assert!(store.packs().len() > 64);
    }
}

#[test]
fn deltas_that_name_their_base_by_id() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        repo.git(&["-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"]);
        let store = check(repo.path(), &repo.objects(), format);
        let pack = &store.packs()[0];
        let by_id = (0..pack.len())
            .map(|local| pack.entry(pack.offset(local)).unwrap().header)
            .filter(|header| matches!(header, gix_pack::data::entry::Header::RefDelta { .. }));
        assert!(by_id.count() > 5);
    }
}

#[test]
fn deep_chains_of_deltas() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        let mut lines: Vec<String> = (0..300).map(|line| format!("line {line}\n")).collect();
        let mut stream = String::from("reset refs/heads/main\n");
        for step in 0..400 {
            lines[step % 300] = format!("line {step} as changed in step {step}\n");
            let text = lines.concat();
            stream += &format!(
                "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata 1\nx\nM 644 inline file\ndata {}\n{text}\n",
                1_700_000_000 + step,
                text.len()
            );
        }
        git::with_input(
            repo.path(),
            &["fast-import", "--quiet", "--depth=4000"],
            stream.as_bytes(),
        );
        // The pack as it was imported: each version is a delta of the one before.
        let store = check(repo.path(), &repo.objects(), format);
        let pack = &store.packs()[0];
        let longest = (0..pack.len())
            .map(|local| {
                let mut depth = 0;
                let mut entry = pack.entry(pack.offset(local)).unwrap();
                while let gix_pack::data::entry::Header::OfsDelta { base_distance } = entry.header {
                    entry = pack.entry(entry.base_pack_offset(base_distance)).unwrap();
                    depth += 1;
                }
                depth
            })
            .max();
        assert!(longest > Some(300), "{longest:?}");
    }
}

#[test]
fn alternates_relative_quoted_nested_and_in_a_circle() {
    for format in Format::BOTH {
        let far = Repo::scripted("history", format);
        far.git(&["repack", "-adq"]);
        let near = Repo::empty(format);
        near.write("file", "only near");
        near.commit("Near");
        let here = Repo::empty(format);
        here.write("file", "only here");
        here.commit("Here");
        let alternates = |repo: &Repo, content: String| {
            std::fs::create_dir_all(repo.objects().join("info")).unwrap();
            std::fs::write(repo.objects().join("info/alternates"), content).unwrap();
        };
        let name = |repo: &Repo| repo.path().file_name().unwrap().to_str().unwrap().to_owned();
        alternates(
            &here,
            format!(
                "# a comment\n\n../../../{}/.git/objects\n/nowhere/at/all\n",
                name(&near)
            ),
        );
        let quoted = far.objects().to_str().unwrap().replace('g', "\\147");
        alternates(&near, format!("\"{quoted}\"\n{}\n", here.objects().display()));
        alternates(&far, format!("{}\n", near.objects().display()));
        let store = check(here.path(), &here.objects(), format);
        assert_eq!(store.alternates().len(), 2);
        assert_eq!(store.ignored_alternates(), [Path::new("/nowhere/at/all")]);
        assert_eq!(store.packs().len(), 1);
    }
}

#[test]
fn alternates_of_alternates_end_where_git_ends_them() {
    let repos: Vec<Repo> = (0..9)
        .map(|number| {
            let repo = Repo::empty(Format::Sha1);
            repo.write("file", format!("in {number}"));
            repo.commit("One");
            repo
        })
        .collect();
    for pair in repos.windows(2) {
        std::fs::create_dir_all(pair[0].objects().join("info")).unwrap();
        std::fs::write(
            pair[0].objects().join("info/alternates"),
            format!("{}\n", pair[1].objects().display()),
        )
        .unwrap();
    }
    let store = check(repos[0].path(), &repos[0].objects(), Format::Sha1);
    for repo in &repos {
        let blob = repo.git(&["rev-parse", "HEAD:file"]);
        let here = git::run(repos[0].path(), &["cat-file", "-e", &blob])
            .status
            .success();
        assert_eq!(
            store.contains(&ObjectId::from_hex(blob.as_bytes()).unwrap()),
            here
        );
    }
    assert_eq!(store.ignored_alternates().len(), 1);
}

#[test]
fn indexes_of_version_1_and_without_reverse_index() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        repo.git(&[
            "-c",
            "pack.indexVersion=1",
            "-c",
            "pack.writeReverseIndex=false",
            "repack",
            "-adq",
        ]);
        let store = check(repo.path(), &repo.objects(), format);
        assert_eq!(store.packs()[0].crc(0), None);
        assert!(!store.packs()[0].path().with_extension("rev").exists());
    }
}

#[test]
fn a_reverse_index_is_used_only_if_it_fits() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["-c", "pack.writeReverseIndex=true", "repack", "-adq"]);
    // Git itself goes wrong with some of the damage below, so it is asked before.
    let expected = expected(repo.path());
    let store = check_as(&expected, &repo.objects(), Format::Sha1);
    let path = store.packs()[0].path().with_extension("rev");
    let good = std::fs::read(&path).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let tables = 12..good.len() - 40;
    for damage in 0..5 {
        let mut bad = good.clone();
        match damage {
            0 => bad[tables.clone()].reverse(),
            1 => bad[tables.clone()].fill(0),
            2 => bad[tables.clone()].fill(0xff),
            3 => bad[4..8].fill(9),
            _ => bad.truncate(100),
        }
        std::fs::write(&path, bad).unwrap();
        check_as(&expected, &repo.objects(), Format::Sha1);
        // Single questions, before anyone asks for the whole order.
        let store = Store::open(&repo.objects(), gix_hash::Kind::Sha1).unwrap();
        let fresh = Store::open(&repo.objects(), gix_hash::Kind::Sha1).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (pack, sorted) = (&store.packs()[0], &fresh.packs()[0]);
        sorted.by_offset();
        std::fs::write(&path, &good).unwrap();
        for local in 0..pack.len() {
            assert_eq!(pack.end(local).unwrap(), sorted.end(local).unwrap());
        }
    }
}

#[test]
fn empty_objects_and_empty_stores() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        let store = Store::open(&repo.objects(), hash(format)).unwrap();
        assert_eq!((store.packs().len(), store.packed_len()), (0, 0));
        assert_eq!(store.loose().count(), 0);
        repo.write("empty", "");
        repo.commit("Empty");
        git::with_input(repo.path(), &["hash-object", "-w", "-t", "tree", "--stdin"], b"");
        check(repo.path(), &repo.objects(), format);
        repo.git(&["repack", "-adq"]);
        check(repo.path(), &repo.objects(), format);
    }
}

#[test]
fn a_pack_without_index_does_not_count_as_in_git() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["repack", "-adq"]);
    let pack = Store::open(&repo.objects(), gix_hash::Kind::Sha1)
        .unwrap()
        .packs()[0]
        .path()
        .to_owned();
    std::fs::remove_file(pack.with_extension("idx")).unwrap();
    let store = Store::open(&repo.objects(), gix_hash::Kind::Sha1).unwrap();
    assert_eq!(store.packs().len(), 0);
}

#[test]
fn blobs_larger_than_any_window() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        let mut state = 1u64;
        let noise: Vec<u8> = (0..5_000_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (state >> 56) as u8
            })
            .collect();
        repo.write("noise", &noise);
        repo.write("zeroes", vec![0; 9_000_000]);
        repo.commit("Large");
        check(repo.path(), &repo.objects(), format);
        repo.git(&["repack", "-adq"]);
        check(repo.path(), &repo.objects(), format);
    }
}

/// Time on the processor, which other work on the machine does not change.
struct Cpu(u64);

impl Cpu {
    fn now() -> Cpu {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        Cpu(text
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0))
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(Cpu::now().0 - self.0)
    }
}

/// Opens and reads a repository named by INGOT_LARGE_REPOSITORY (its object folder) and says what that costs.
#[test]
#[ignore = "needs a large repository"]
fn a_large_repository() {
    let Some(objects) = std::env::var_os("INGOT_LARGE_REPOSITORY") else {
        return;
    };
    let objects = Path::new(&objects);
    let clock = Cpu::now();
    let store = Store::open(objects, gix_hash::Kind::Sha1).unwrap();
    println!("open {:?}, {} objects", clock.elapsed(), store.packed_len());
    let first = store.id(ingot_engine::store::Position(12_345)).to_owned();
    let clock = Cpu::now();
    let header = store.header(&first).unwrap();
    println!("header {:?} {header:?}", clock.elapsed());
    let mut cache = Cache::new(8 << 20);
    let mut out = Vec::new();
    let clock = Cpu::now();
    let mut bytes = 0;
    for number in (0..store.packed_len()).step_by(100) {
        let id = store.id(ingot_engine::store::Position(number));
        store.read_verified(id, &mut cache, &mut out).unwrap().unwrap();
        bytes += out.len();
    }
    println!(
        "every 100th by id, verified: {:?}, {bytes} bytes",
        clock.elapsed()
    );
    let pack = &store.packs()[0];
    let clock = Cpu::now();
    let order = pack.by_offset();
    println!("order {:?}", clock.elapsed());
    let clock = Cpu::now();
    for &local in &order[..order.len().min(100_000)] {
        store
            .read_entry(pack, pack.offset(local), &mut cache, &mut out)
            .unwrap();
    }
    println!("first 100,000 in pack order: {:?}", clock.elapsed());
    let clock = Cpu::now();
    for &local in order {
        let entry = cache.reader().entry(pack, pack.offset(local)).unwrap();
        if !matches!(entry.header, gix_pack::data::entry::Header::Blob) {
            cache.reader().inflate(pack, &entry, &mut out).unwrap();
        }
    }
    println!(
        "all entries but whole blobs inflated in pack order: {:?}",
        clock.elapsed()
    );
    let ids: Vec<ObjectId> = (0..store.packed_len())
        .map(|number| {
            store.id(ingot_engine::store::Position(
                number.wrapping_mul(2_654_435_761) % store.packed_len(),
            ))
        })
        .map(ToOwned::to_owned)
        .collect();
    let clock = Cpu::now();
    let found = ids.iter().filter(|id| store.find(id).is_some()).count();
    println!("{found} lookups {:?}", clock.elapsed());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("Rss"))
    {
        println!("{line}");
    }
}
