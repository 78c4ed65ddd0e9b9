//! Chunks travel with everything that the engine sends, above all with encrypted remotes.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use gix_hash::ObjectId;
use ingot_engine::chunked;
use ingot_engine::connectivity::{self, Connectivity, Question};
use ingot_engine::import::{self, Import, Limits};
use ingot_engine::pack::write;
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use ingot_engine::walk::{self, Request};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use support::*;

fn head(repo: &Repo, name: &str) -> ObjectId {
    ObjectId::from_hex(git_ok(repo.path(), &["rev-parse", name]).as_bytes()).unwrap()
}

fn found(store: &Store, wants: &[ObjectId], haves: &[ObjectId], threads: usize) -> walk::Objects {
    let request = Request {
        wants,
        haves,
        threads,
        ..Request::default()
    };
    walk::enumerate(store, &request, &Silent).unwrap()
}

fn chunks_of(store: &Store, id: &gix_hash::oid) -> BTreeSet<ObjectId> {
    let pointer = chunked::read_pointer(store, id, &mut Cache::new(0))
        .unwrap()
        .unwrap();
    let mut all = BTreeSet::new();
    chunked::reach(
        store,
        &pointer,
        &mut Cache::new(0),
        |_| false,
        |reached| {
            all.insert(reached.id);
        },
    )
    .unwrap();
    all
}

#[test]
fn walks_find_chunks_and_only_new_ones() {
    for format in Format::BOTH {
        let repo = ready(format);
        let mut content = noise(1, 4 << 20);
        repo.write("a.bin", &content);
        repo.write("b.bin", noise(2, 300_000));
        chunk(repo.path(), &["-q", "add", "."]);
        chunk(repo.path(), &["-q", "commit", "-m", "one"]);
        content[2_000_000] ^= 1;
        repo.write("a.bin", &content);
        chunk(repo.path(), &["-q", "add", "."]);
        chunk(repo.path(), &["-q", "commit", "-m", "two"]);
        let repository = Repository::open(repo.path()).unwrap();
        let store = repository.store().unwrap();
        let (one, two) = (head(&repo, "HEAD~1"), head(&repo, "HEAD"));
        let ids = |set: &walk::Objects| set.ids(&store).map(ToOwned::to_owned).collect::<BTreeSet<_>>();

        let all = found(&store, &[two], &[], 2);
        assert_eq!(ids(&all), ids(&found(&store, &[two], &[], 1)));
        let gits: BTreeSet<ObjectId> = git::objects(repo.path(), &["HEAD"])
            .iter()
            .map(|hex| ObjectId::from_hex(hex.as_bytes()).unwrap())
            .collect();
        let mut expected = gits.clone();
        for name in ["HEAD:a.bin", "HEAD~1:a.bin", "HEAD:b.bin"] {
            expected.extend(chunks_of(&store, &head(&repo, name)));
        }
        assert_eq!(ids(&all), expected);
        assert_eq!(all.absent_chunks(), 0);
        assert!(all.counts().blobs > 64);

        // Commit, tree, pointer, two or three lists, one or two deltas: no more.
        let new = found(&store, &[two], &[one], 1);
        let (old, fresh) = (
            chunks_of(&store, &head(&repo, "HEAD~1:a.bin")),
            chunks_of(&store, &head(&repo, "HEAD:a.bin")),
        );
        let mut expected: BTreeSet<ObjectId> = fresh.difference(&old).copied().collect();
        assert!((3..6).contains(&expected.len()), "{}", expected.len());
        expected.extend([two, head(&repo, "HEAD^{tree}"), head(&repo, "HEAD:a.bin")]);
        assert_eq!(ids(&new), expected);
        let with_base = new
            .iter()
            .filter(|object| new.predecessor(object.number).is_some())
            .count();
        // All but the commit and the deltas, which have their base already.
        assert!(
            with_base + 3 >= new.len() as usize,
            "{with_base} of {}",
            new.len()
        );

        // For a receiver who has the former version, a byte is a few hundred.
        let options = write::Options {
            thin: true,
            ..write::Options::default()
        };
        let mut thin = Vec::new();
        let plan = write::plan(&store, &new, &options, &Silent).unwrap();
        plan.stream(&mut thin, &Silent).unwrap();
        assert!(thin.len() < 1600, "{}", thin.len());

        // An unmarked repository is not searched; what is absent is counted, not refused.
        let marker = chunked::marker(repository.objects_dir());
        fs::remove_file(&marker).unwrap();
        assert_eq!(ids(&found(&store, &[two], &[], 1)), gits);
        fs::write(&marker, b"").unwrap();
        let question = Question {
            tips: &[two],
            ..Question::default()
        };
        let answer = connectivity::check(&store, &question, &Silent).unwrap();
        assert_eq!(answer, Connectivity::Connected { objects: all.len() });
        let bare = Repo::empty(format);
        git_ok(
            bare.path(),
            &["fetch", "-q", repo.path().to_str().unwrap(), "HEAD:refs/heads/x"],
        );
        fs::write(bare.objects().join("info/chunked"), b"").unwrap();
        let other = Repository::open(bare.path()).unwrap().store().unwrap();
        let poor = found(&other, &[two], &[], 1);
        assert!(poor.absent_chunks() > 0);
        let answer = connectivity::check(&other, &question, &Silent).unwrap();
        assert!(matches!(answer, Connectivity::Connected { .. }));
    }
}

/// The pack of what is new in a push, as encrypted remotes carry it: complete in itself.
fn pack_bytes(repo: &Repo) -> usize {
    let store = Repository::open(repo.path()).unwrap().store().unwrap();
    let new = found(&store, &[head(repo, "HEAD")], &[head(repo, "HEAD~1")], 1);
    let mut pack = Vec::new();
    write::plan(&store, &new, &write::Options::default(), &Silent)
        .unwrap()
        .stream(&mut pack, &Silent)
        .unwrap();
    pack.len()
}

/// Sixteen bytes in a file whose former version the receiver has: commit and trees are counted, too.
#[test]
fn small_edits_make_small_packs() {
    for (mebibytes, most) in [(2, 1229), (100, 4096)] {
        let repo = ready(Format::Sha1);
        let mut content = noise(1, mebibytes << 20);
        repo.write("a.bin", &content);
        chunk(repo.path(), &["-q", "add", "."]);
        chunk(repo.path(), &["-q", "commit", "-m", "one"]);
        for (place, with_git) in [(1_000_000, false), (500_000, true), (1_000_100, false)] {
            content[place..place + 16].copy_from_slice(b"sixteen new byte");
            repo.write("a.bin", &content);
            match with_git {
                true => drop(git_ok(repo.path(), &["commit", "-qam", "edit"])),
                false => {
                    chunk(repo.path(), &["-q", "add", "."]);
                    chunk(repo.path(), &["-q", "commit", "-m", "edit"]);
                }
            }
            let bytes = pack_bytes(&repo);
            assert!(bytes <= most, "{bytes} bytes for {mebibytes} MiB at {place}");
        }
    }
}

#[test]
fn imports_keep_packs_with_chunks() {
    let repo = ready(Format::Sha1);
    repo.write("a.bin", noise(1, 500_000));
    chunk(repo.path(), &["-q", "add", "."]);
    chunk(repo.path(), &["-q", "commit", "-m", "one"]);
    let store = Repository::open(repo.path()).unwrap().store().unwrap();
    let tip = head(&repo, "HEAD");
    let objects = found(&store, &[tip], &[], 1);
    let mut pack = Vec::new();
    write::plan(&store, &objects, &write::Options::default(), &Silent)
        .unwrap()
        .stream(&mut pack, &Silent)
        .unwrap();
    let target = Repo::empty(Format::Sha1);
    let options = import::Options::default();
    let mut import = Import::begin(&target.objects(), gix_hash::Kind::Sha1, options).unwrap();
    import
        .add_pack(&mut pack.as_slice(), &Limits::default(), &Silent)
        .unwrap();
    assert!(matches!(
        import.check(&[tip], &[], &Silent).unwrap(),
        Connectivity::Connected { .. }
    ));
    let published = import.publish(false).unwrap();
    assert_eq!(published[0].keep, None, "nobody is to remove it");
    assert!(published[0].pack.with_extension("keep").exists());
    assert!(chunked::marker(&target.objects()).exists());
    git_ok(
        target.path(),
        &["update-ref", "refs/heads/main", &tip.to_string()],
    );
    git_ok(target.path(), &["gc", "-q", "--prune=now"]);
    chunk(target.path(), &["install"]);
    git_ok(target.path(), &["checkout", "-q", "-f", "main"]);
    assert!(fs::read(target.path().join("a.bin")).unwrap() == noise(1, 500_000));
}

#[track_caller]
fn e2ee(args: &[&dyn AsRef<Path>]) {
    let args = std::iter::once(OsString::from("git-e2ee"))
        .chain([OsString::from("--quiet")])
        .chain(args.iter().map(|arg| arg.as_ref().as_os_str().to_owned()));
    let code = ingot_helper::cli::main(args);
    assert_eq!(code, ingot_helper::cli::exit::Code::Done);
}

#[test]
fn an_encrypted_remote_carries_chunked_files() {
    for format in Format::BOTH {
        let temp = tempfile::tempdir().unwrap();
        let (key, store) = (temp.path().join("key.json"), temp.path().join("store"));
        let repo = ready(format);
        let first = noise(1, 3 << 20);
        repo.write("a.bin", &first);
        repo.write("plain.txt", b"text\n");
        chunk(repo.path(), &["-q", "add", "."]);
        chunk(repo.path(), &["-q", "commit", "-m", "one"]);
        e2ee(&[&"keygen", &"--output", &key]);
        e2ee(&[&"init", &"--storage", &store, &"--key", &key]);
        let push = || {
            e2ee(&[
                &"push",
                &"--storage",
                &store,
                &"--key",
                &key,
                &"--repo",
                &repo.path(),
                &"main",
            ])
        };
        push();
        let size = |folder: &Path| -> u64 {
            let mut sum = 0;
            let mut waiting = vec![folder.to_owned()];
            while let Some(folder) = waiting.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let entry = entry.unwrap();
                    match entry.file_type().unwrap().is_dir() {
                        true => waiting.push(entry.path()),
                        false => sum += entry.metadata().unwrap().len(),
                    }
                }
            }
            sum
        };
        let before = size(&store);
        assert!(before > 3 << 20);
        let mut second = first.clone();
        second[1_000_000] ^= 1;
        repo.write("a.bin", &second);
        chunk(repo.path(), &["-q", "add", "."]);
        chunk(repo.path(), &["-q", "commit", "-m", "two"]);
        push();
        // A pack, its seal and a manifest that lists it.
        let growth = size(&store) - before;
        assert!(growth < 8000, "{growth}");

        let clone = temp.path().join("clone");
        e2ee(&[&"clone", &"--key", &key, &store, &clone]);
        assert!(fs::read(clone.join("a.bin")).unwrap() == second);
        assert_eq!(fs::read(clone.join("plain.txt")).unwrap(), b"text\n");
        chunk(&clone, &["install"]);
        clean(&clone);
        git_ok(&clone, &["gc", "-q", "--prune=now"]);
        git_ok(&clone, &["checkout", "-q", "HEAD~1"]);
        assert!(fs::read(clone.join("a.bin")).unwrap() == first);
        chunk(&clone, &["fsck"]);

        // What comes later comes with its chunks, too.
        let third = [second.as_slice(), &noise(3, 200_000)].concat();
        repo.write("a.bin", &third);
        chunk(repo.path(), &["-q", "add", "."]);
        chunk(repo.path(), &["-q", "commit", "-m", "three"]);
        push();
        e2ee(&[
            &"fetch",
            &"--storage",
            &store,
            &"--key",
            &key,
            &"--repo",
            &clone,
            &"--remote-name",
            &"origin",
        ]);
        git_ok(&clone, &["checkout", "-q", "origin/main"]);
        assert!(fs::read(clone.join("a.bin")).unwrap() == third);
        clean(&clone);
    }
}

/// With many objects, the pack index decides which blobs are looked at; pointers that Git stored as deltas are among them.
#[test]
fn pointers_are_found_among_many_blobs_and_as_deltas() {
    let repo = ready(Format::Sha1);
    for number in 0..1500 {
        repo.write(
            &format!("many/{number}"),
            format!("{number}\n").repeat(1 + number % 90),
        );
    }
    let mut content = noise(1, 400_000);
    for version in 0..12 {
        content[version * 30_000] ^= 1;
        repo.write("a.bin", &content);
        git_ok(repo.path(), &["add", "-A"]);
        git_ok(repo.path(), &["commit", "-qm", "next"]);
    }
    git_ok(repo.path(), &["repack", "-qadf", "--window=50"]);
    let verify = git_ok(repo.path(), &["rev-parse", "HEAD"]);
    let tip = ObjectId::from_hex(verify.as_bytes()).unwrap();
    let store = Repository::open(repo.path()).unwrap().store().unwrap();
    let found = found(&store, &[tip], &[], 2);
    assert!(found.len() > 1500 + 12);
    assert_eq!(found.absent_chunks(), 0);
    for version in 0..12 {
        let name = format!("HEAD~{version}:a.bin");
        for id in chunks_of(&store, &head(&repo, &name)) {
            assert!(found.contains(&store, &id), "{name}");
        }
    }
}
