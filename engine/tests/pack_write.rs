//! Packs that the engine writes, with Git as the judge.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gix_hash::ObjectId;
use ingot_engine::pack::write::{Error, Options, Summary, plan};
use ingot_engine::progress::{Progress, Silent};
use ingot_engine::store::Store;
use ingot_engine::walk;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

fn hash_kind(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn options(threads: usize) -> Options {
    Options {
        threads,
        ..Options::default()
    }
}

/// Ids of revisions.
fn ids(repo: &Repo, revisions: &[&str]) -> Vec<ObjectId> {
    let id = |revision: &&str| ObjectId::from_hex(repo.git(&["rev-parse", revision]).as_bytes()).unwrap();
    revisions.iter().map(id).collect()
}

fn enumerate(store: &Store, wants: &[ObjectId], haves: &[ObjectId]) -> walk::Objects {
    let request = walk::Request {
        wants,
        haves,
        threads: 1,
        ..walk::Request::default()
    };
    walk::enumerate(store, &request, &Silent).unwrap()
}

/// Packs what `wants` reach and `haves` do not.
fn try_pack(
    repo: &Repo,
    format: Format,
    wants: &[&str],
    haves: &[&str],
    options: &Options,
) -> Result<(Vec<u8>, Summary), Error> {
    let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
    let members = enumerate(&store, &ids(repo, wants), &ids(repo, haves));
    let mut out = Vec::new();
    let summary = plan(&store, &members, options, &Silent)?.stream(&mut out, &Silent)?;
    Ok((out, summary))
}

fn pack(repo: &Repo, format: Format, wants: &[&str], haves: &[&str]) -> Vec<u8> {
    let (one, summary) = try_pack(repo, format, wants, haves, &options(1)).unwrap();
    assert_eq!(summary.bytes, one.len() as u64);
    assert!(one.ends_with(summary.checksum.as_slice()));
    let (four, _) = try_pack(repo, format, wants, haves, &options(4)).unwrap();
    assert!(one == four, "one thread and four write different packs");
    one
}

/// Lets Git index a pack in `receiver`, and checks the ids in it and the length of its chains.
fn judge(receiver: &Repo, pack: &[u8], expected: &[String]) {
    let answer = git::with_input(receiver.path(), &["index-pack", "--strict", "--stdin"], pack);
    let answer = String::from_utf8(answer).unwrap();
    let name = answer.trim().split('\t').next_back().unwrap();
    let index = receiver.objects().join(format!("pack/pack-{name}.idx"));
    let listed = receiver.git(&["verify-pack", "-v", index.to_str().unwrap()]);
    let hex = expected.first().map_or(40, String::len);
    let mut ids = Vec::new();
    for line in listed.lines() {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        if words[0].len() == hex {
            ids.push(words[0].to_owned());
            if let Some(depth) = words.get(5) {
                assert!(depth.parse::<u32>().unwrap() <= 50, "{line}");
            }
        }
    }
    ids.sort();
    assert_eq!(ids, expected);
}

/// Packs everything that `HEAD` reaches and lets Git judge it.
fn check_all(repo: &Repo, format: Format) -> Vec<u8> {
    let pack = pack(repo, format, &["HEAD"], &[]);
    judge(&Repo::empty(format), &pack, &git::objects(repo.path(), &["HEAD"]));
    pack
}

/// Packs what is new in `HEAD` since `base` and lets Git judge it beside everything of `base`.
fn check_since(repo: &Repo, format: Format, base: &str) -> Vec<u8> {
    let pack = pack(repo, format, &["HEAD"], &[base]);
    let receiver = Repo::empty(format);
    repo.git(&["update-ref", "refs/heads/base", base]);
    receiver.git(&["fetch", "-q", repo.path().to_str().unwrap(), "base"]);
    let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
    let members = enumerate(&store, &ids(repo, &["HEAD"]), &ids(repo, &[base]));
    let mut sent: Vec<String> = members.ids(&store).map(|id| id.to_string()).collect();
    sent.sort();
    judge(&receiver, &pack, &sent);
    pack
}

/// The pack files of a repository.
fn packs(repo: &Repo) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(repo.objects().join("pack")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut packs: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "pack"))
        .collect();
    packs.sort();
    packs
}

/// Makes a pack of what `revisions` name, beside what is there.
fn add_pack(repo: &Repo, revisions: &[&str], extra: &[&str]) {
    let base = repo.objects().join("pack/pack");
    let mut args = vec!["pack-objects", "-q", "--revs", "--delta-base-offset"];
    args.extend_from_slice(extra);
    args.push(base.to_str().unwrap());
    git::with_input(repo.path(), &args, (revisions.join("\n") + "\n").as_bytes());
}

fn remove_reverse_indexes(repo: &Repo) {
    for pack in packs(repo) {
        let _ = std::fs::remove_file(pack.with_extension("rev"));
    }
}

#[test]
fn an_empty_set_is_gits_empty_pack() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
        let members = enumerate(&store, &[], &[]);
        let mut out = Vec::new();
        let summary = plan(&store, &members, &options(2), &Silent)
            .unwrap()
            .stream(&mut out, &Silent)
            .unwrap();
        assert_eq!(summary.objects, 0);
        assert_eq!(
            out,
            git::with_input(repo.path(), &["pack-objects", "-q", "--stdout"], b"")
        );
    }
}

#[test]
fn loose_objects() {
    for format in Format::BOTH {
        let repo = Repo::textual(format, 60);
        assert!(packs(&repo).is_empty());
        let full = check_all(&repo, format);
        let few = check_since(&repo, format, "HEAD~3");
        assert!(few.len() * 5 < full.len());
    }
}

#[test]
fn scripted_history() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        check_all(&repo, format);
        repo.git(&["repack", "-adfq"]);
        check_all(&repo, format);
    }
}

#[test]
fn one_pack_is_copied() {
    for format in Format::BOTH {
        let repo = Repo::textual(format, 60);
        repo.git(&["repack", "-adfq"]);
        let full = check_all(&repo, format);
        let stored = std::fs::read(&packs(&repo)[0]).unwrap();
        assert!(full == stored, "a whole pack is copied byte for byte");
        for base in ["HEAD~1", "HEAD~7", "HEAD~40"] {
            check_since(&repo, format, base);
        }
        remove_reverse_indexes(&repo);
        for base in ["HEAD~1", "HEAD~40"] {
            check_since(&repo, format, base);
        }
    }
}

#[test]
fn deltas_by_id_become_deltas_by_distance() {
    let format = Format::Sha1;
    let repo = Repo::textual(format, 40);
    let by_id = git::with_input(
        repo.path(),
        &["pack-objects", "-q", "--revs", "--stdout"],
        b"HEAD\n",
    );
    let packed = Repo::empty(format);
    git::with_input(packed.path(), &["index-pack", "--stdin"], &by_id);
    packed.git(&["update-ref", "refs/heads/main", &repo.git(&["rev-parse", "HEAD"])]);
    let full = check_all(&packed, format);
    assert!(full.len() < by_id.len());
    check_since(&packed, format, "HEAD~9");
}

#[test]
fn packs_that_overlap_and_loose_objects() {
    for format in Format::BOTH {
        let repo = Repo::textual(format, 80);
        add_pack(&repo, &["HEAD~50"], &[]);
        add_pack(&repo, &["HEAD~20", "^HEAD~60"], &[]);
        add_pack(&repo, &["HEAD~10", "^HEAD~30"], &["--no-reuse-delta"]);
        repo.git(&["prune-packed", "-q"]);
        assert_eq!(packs(&repo).len(), 3);
        check_all(&repo, format);
        for base in ["HEAD~5", "HEAD~15", "HEAD~55", "HEAD~70"] {
            check_since(&repo, format, base);
        }
    }
}

#[test]
fn packs_that_git_completed() {
    let format = Format::Sha1;
    let source = Repo::textual(format, 60);
    let repo = Repo::empty(format);
    let url = source.path().to_str().unwrap();
    for (step, commit) in ["main~40", "main~25", "main~12", "main"].into_iter().enumerate() {
        source.git(&["branch", "-f", "step", commit]);
        repo.git(&[
            "-c",
            "fetch.unpackLimit=1",
            "fetch",
            "-q",
            &format!("file://{url}"),
            "+step:refs/heads/step",
        ]);
        assert_eq!(packs(&repo).len(), step + 1);
    }
    repo.git(&["update-ref", "refs/heads/main", "step"]);
    check_all(&repo, format);
    for base in ["HEAD~5", "HEAD~20", "HEAD~50"] {
        check_since(&repo, format, base);
    }
}

#[test]
fn objects_of_alternates() {
    for format in Format::BOTH {
        let lender = Repo::textual(format, 50);
        lender.git(&["repack", "-adfq"]);
        let repo = Repo::empty(format);
        let line = format!("{}\n", lender.objects().display());
        std::fs::write(repo.objects().join("info/alternates"), line).unwrap();
        repo.git(&["reset", "-q", "--hard", &lender.git(&["rev-parse", "main"])]);
        repo.write("src/new.txt", "a line of the borrower\n".repeat(40));
        repo.commit("borrow");
        check_all(&repo, format);
        check_since(&repo, format, "HEAD~1");
        check_since(&repo, format, "HEAD~30");
    }
}

#[test]
fn indexes_without_crc() {
    let format = Format::Sha1;
    let repo = Repo::textual(format, 20);
    repo.git(&["-c", "pack.indexVersion=1", "repack", "-adfq"]);
    check_all(&repo, format);
    check_since(&repo, format, "HEAD~4");
    let (id, offset, size) = last_blob(&repo);
    let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
    let members = enumerate(&store, &ids(&repo, &["HEAD"]), &[]);
    damage(&packs(&repo)[0], offset + size - 3);
    let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
    let error = plan(&store, &members, &options(1), &Silent)
        .and_then(|plan| plan.stream(&mut Vec::new(), &Silent))
        .unwrap_err();
    assert!(error.to_string().contains(&id), "{error}");
}

/// Turns a bit of a file, which may be read-only.
fn damage(path: &Path, at: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at as usize] ^= 0x10;
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// The blob of `HEAD` whose compressed bytes lie deepest in the pack: id, offset and size in the pack.
fn last_blob(repo: &Repo) -> (String, u64, u64) {
    let index = packs(repo)[0].with_extension("idx");
    let listed = repo.git(&["verify-pack", "-v", index.to_str().unwrap()]);
    let blobs = listed.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        (words.get(1) == Some(&"blob")).then(|| (words[0].to_owned(), number(4), number(3)))
    });
    blobs.max_by_key(|(_, offset, _)| *offset).unwrap()
}

#[test]
fn a_damaged_pack_is_refused_by_the_name_of_the_object() {
    for format in Format::BOTH {
        let repo = Repo::textual(format, 20);
        repo.git(&["repack", "-adfq"]);
        let (id, offset, size) = last_blob(&repo);
        let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
        let members = enumerate(&store, &ids(&repo, &["HEAD"]), &[]);
        damage(&packs(&repo)[0], offset + size - 3);
        let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
        for threads in [1, 4] {
            let mut out = Vec::new();
            let error = plan(&store, &members, &options(threads), &Silent)
                .and_then(|plan| plan.stream(&mut out, &Silent))
                .unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
            assert!(error.to_string().contains(&id), "{error}");
            assert!(
                !out.ends_with(&std::fs::read(&packs(&repo)[0]).unwrap()[offset as usize + size as usize..])
            );
        }
    }
}

#[test]
fn a_damaged_loose_object_is_refused_by_its_name() {
    let format = Format::Sha1;
    let repo = Repo::empty(format);
    repo.write("a", "some content\n".repeat(100));
    repo.write("b", "other content\n".repeat(100));
    repo.commit("both");
    let (a, b) = (
        repo.git(&["rev-parse", "HEAD:a"]),
        repo.git(&["rev-parse", "HEAD:b"]),
    );
    let file = |id: &str| repo.objects().join(&id[..2]).join(&id[2..]);
    let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
    let members = enumerate(&store, &ids(&repo, &["HEAD"]), &[]);
    let run = || {
        plan(&store, &members, &options(1), &Silent)
            .and_then(|plan| plan.stream(&mut Vec::new(), &Silent))
            .unwrap_err()
    };
    // Sound compression, but the content of another object.
    std::fs::remove_file(file(&a)).unwrap();
    std::fs::copy(file(&b), file(&a)).unwrap();
    let error = run();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    assert!(error.to_string().contains(&a), "{error}");
    damage(&file(&a), 20);
    assert!(run().to_string().contains(&a[2..]));
    std::fs::remove_file(file(&a)).unwrap();
    let error = run();
    assert!(matches!(error, Error::Disappeared(_)), "{error}");
    assert!(error.to_string().contains(&a), "{error}");
}

/// Bytes that do not compress, the same for the same seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn objects_beyond_the_budget_pass_through() {
    let format = Format::Sha1;
    let repo = Repo::empty(format);
    repo.write("noise", noise(1, 3 << 20));
    repo.write("text", "the same line again and again\n".repeat(100_000));
    repo.write("small", "small\n".repeat(30));
    repo.commit("first");
    let mut changed = noise(1, 3 << 20);
    changed[1_000_000] ^= 1;
    repo.write("noise", changed);
    repo.commit("second");
    let objects = git::objects(repo.path(), &["HEAD"]);
    let small = |threads| Options {
        memory: 1 << 20,
        ..options(threads)
    };
    let (one, _) = try_pack(&repo, format, &["HEAD"], &[], &small(1)).unwrap();
    let (four, _) = try_pack(&repo, format, &["HEAD"], &[], &small(4)).unwrap();
    assert!(one == four);
    judge(&Repo::empty(format), &one, &objects);
    // With room for them, the second version is a delta.
    let (roomy, _) = try_pack(&repo, format, &["HEAD"], &[], &options(2)).unwrap();
    judge(&Repo::empty(format), &roomy, &objects);
    assert!(roomy.len() < one.len() - (2 << 20));
    repo.git(&["repack", "-adfq"]);
    judge(
        &Repo::empty(format),
        &try_pack(&repo, format, &["HEAD"], &[], &small(2)).unwrap().0,
        &objects,
    );
}

#[test]
fn results_without_room_to_keep_them_are_made_again() {
    let format = Format::Sha1;
    let repo = Repo::textual(format, 40);
    let tight = |threads| Options {
        memory: 300 << 10,
        ..options(threads)
    };
    let (one, _) = try_pack(&repo, format, &["HEAD"], &[], &tight(1)).unwrap();
    let (four, _) = try_pack(&repo, format, &["HEAD"], &[], &tight(4)).unwrap();
    assert!(one == four);
    judge(&Repo::empty(format), &one, &git::objects(repo.path(), &["HEAD"]));
}

/// The bytes that Git's own packs of the same objects take.
fn gits_size(repo: &Repo, wants: &[&str], haves: &[&str]) -> usize {
    let mut revisions = wants.join("\n");
    for have in haves {
        write!(revisions, "\n^{have}").unwrap();
    }
    revisions.push('\n');
    let args = ["pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset"];
    git::with_input(repo.path(), &args, revisions.as_bytes()).len()
}

#[test]
fn packs_are_about_as_small_as_gits() {
    let format = Format::Sha1;
    let repo = Repo::textual(format, 250);
    let compare = |what: &str, haves: &[&str]| {
        let (ours, gits) = (
            pack(&repo, format, &["HEAD"], haves).len(),
            gits_size(&repo, &["HEAD"], haves),
        );
        println!(
            "{what} since {haves:?}: {ours} bytes, Git {gits}, ratio {:.3}",
            ours as f64 / gits as f64
        );
        assert!(
            ours as f64 <= gits as f64 * 1.10,
            "{what} since {haves:?}: {ours} bytes, Git {gits}"
        );
    };
    for what in ["loose", "packed"] {
        for haves in [&[][..], &["HEAD~1"], &["HEAD~20"], &["HEAD~100"]] {
            compare(what, haves);
        }
        repo.git(&["repack", "-adfq"]);
    }
}

/// Counts what it is told, and interrupts after so many calls.
#[derive(Default)]
struct Interrupting {
    after: u64,
    asked: AtomicU64,
    advanced: AtomicU64,
}

impl Progress for Interrupting {
    fn advance(&self, amount: u64) {
        self.advanced.fetch_add(amount, Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.after
    }
}

#[test]
fn an_interruption_ends_the_work_wherever_it_comes() {
    let format = Format::Sha1;
    let repo = Repo::textual(format, 10);
    let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
    let members = enumerate(&store, &ids(&repo, &["HEAD"]), &[]);
    let mut finished = false;
    for after in 0.. {
        let progress = Interrupting {
            after: after * 23,
            ..Interrupting::default()
        };
        match plan(&store, &members, &options(1), &progress)
            .and_then(|plan| plan.stream(&mut Vec::new(), &progress))
        {
            Err(Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
            Ok(summary) => {
                assert!(progress.advanced.into_inner() >= u64::from(summary.objects));
                finished = true;
                break;
            }
        }
    }
    assert!(finished);
}

/// Takes some bytes, then no more.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_is_reported() {
    let format = Format::Sha1;
    let repo = Repo::textual(format, 20);
    repo.write("large", noise(5, 9 << 20)); // enough for the copy to use a second thread
    repo.commit("large");
    repo.git(&["repack", "-adfq"]);
    let store = Store::open(&repo.objects(), hash_kind(format)).unwrap();
    let members = enumerate(&store, &ids(&repo, &["HEAD"]), &[]);
    for room in [0, 100, 1 << 20, 5 << 20] {
        let error = plan(&store, &members, &options(2), &Silent)
            .and_then(|plan| plan.stream(&mut Full(room), &Silent))
            .unwrap_err();
        assert!(matches!(error, Error::Output(_)), "{error}");
    }
}
