//! Packs taken into quarantine, checked, and published or dropped.

#![allow(clippy::unwrap_used)] // in tests, failing is the point

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gix_hash::ObjectId;
use gix_object::Kind;
use gix_pack::data::entry::Header;
use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::durable::{Fs, real};
use ingot_engine::import::{Connectivity, Error, Import, Limits, Options};
use ingot_engine::pack;
use ingot_engine::pack::inflate::{Level, deflate};
use ingot_engine::progress::{Progress, Silent};
use ingot_engine::store::Store;
use ingot_engine::walk;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

#[cfg(unix)]
#[path = "support/killing.rs"]
mod killing;

fn kind(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).unwrap()
}

/// A pack of what `revisions` reach.
fn pack(repo: &Repo, revisions: &[&str]) -> Vec<u8> {
    let args = ["pack-objects", "--stdout", "-q", "--revs", "--delta-base-offset"];
    git::with_input(repo.path(), &args, (revisions.join("\n") + "\n").as_bytes())
}

/// A pack of exactly these objects.
fn pack_of(repo: &Repo, objects: &[String]) -> Vec<u8> {
    git::with_input(
        repo.path(),
        &["pack-objects", "--stdout", "-q"],
        (objects.join("\n") + "\n").as_bytes(),
    )
}

fn begin(repo: &Repo, format: Format) -> Import {
    Import::begin(&repo.objects(), kind(format), Options::default()).unwrap()
}

fn add(import: &mut Import, mut pack: &[u8]) -> Result<ObjectId, Error> {
    import
        .add_pack(&mut pack, &Limits::default(), &Silent)
        .map(|received| received.id)
}

/// Every file and folder below `root`.
fn everything(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() {
                waiting.push(path);
            }
        }
    }
    found
}

#[test]
fn a_whole_history_and_then_one_commit() {
    for format in Format::BOTH {
        let source = Repo::scripted("history", format);
        let target = Repo::empty(format);
        let old = source.git(&["rev-parse", "main~2"]);
        let new = source.git(&["rev-parse", "main"]);

        let mut import = begin(&target, format);
        add(&mut import, &pack(&source, &["main~2"])).unwrap();
        let answer = import.check(&[id(&old)], &[], &Silent).unwrap();
        assert!(matches!(answer, Connectivity::Connected { objects } if objects > 10));
        assert_eq!(everything(&target.objects().join("pack")).len(), 0);
        let published = import.publish(false).unwrap();
        assert_eq!(published.len(), 1);
        assert_eq!(published[0].keep, None);
        target.git(&["update-ref", "refs/heads/main", &old]);
        git::fsck(target.path());

        // The second pack leads out of itself, into the first.
        let mut import = begin(&target, format);
        add(&mut import, &pack(&source, &["main", "^main~2"])).unwrap();
        let answer = import.check(&[id(&new)], &[id(&old)], &Silent).unwrap();
        assert!(matches!(answer, Connectivity::Connected { .. }));
        let published = import.publish(true).unwrap();
        let keep = published[0].keep.clone().unwrap();
        assert_eq!(std::fs::read_to_string(&keep).unwrap(), "ingot import\n");
        assert_eq!(keep, published[0].pack.with_extension("keep"));
        target.git(&["update-ref", "refs/heads/main", &new]);
        git::fsck(target.path());
        assert_eq!(
            git::objects(target.path(), &["main"]),
            git::objects(source.path(), &["main"])
        );
        assert_eq!(
            everything(&target.objects())
                .iter()
                .filter(|name| name.contains("tmp_"))
                .count(),
            0
        );
    }
}

#[test]
fn several_packs_that_need_each_other() {
    for format in Format::BOTH {
        let source = Repo::scripted("history", format);
        let target = Repo::empty(format);
        let tip = source.git(&["rev-parse", "main"]);
        let tag = source.git(&["rev-parse", "nested"]);
        let mut all = git::objects(source.path(), &["main", "nested"]);
        // No pack is complete: objects are dealt out in turn.
        let mut hands = [Vec::new(), Vec::new(), Vec::new()];
        for (at, object) in all.iter().enumerate() {
            hands[at % 3].push(object.clone());
        }
        let mut import = begin(&target, format);
        for hand in &hands {
            add(&mut import, &pack_of(&source, hand)).unwrap();
        }
        // The same again, and one without anything.
        add(&mut import, &pack_of(&source, &hands[1])).unwrap();
        add(&mut import, &pack(&source, &["main", "^main"])).unwrap();
        let answer = import.check(&[id(&tip), id(&tag)], &[], &Silent).unwrap();
        assert!(matches!(answer, Connectivity::Connected { .. }));
        let published = import.publish(true).unwrap();
        assert_eq!(published.len(), 3);
        assert!(published.iter().all(|pack| pack.keep.is_some()));
        let store = Store::open(&target.objects(), kind(format)).unwrap();
        all.retain(|object| !store.contains(&id(object)));
        assert!(all.is_empty());
        target.git(&["update-ref", "refs/heads/main", &tip]);
        git::fsck(target.path());
    }
}

#[test]
fn what_is_missing_is_named_with_its_referrer() {
    for format in Format::BOTH {
        let source = Repo::scripted("history", format);
        let target = Repo::empty(format);
        let tip = source.git(&["rev-parse", "main"]);
        let blob = source.git(&["rev-parse", "main:src/numbers.txt"]);
        let tree = source.git(&["rev-parse", "main:src"]);
        let mut objects = git::objects(source.path(), &["main"]);
        objects.retain(|object| *object != blob);
        let before = everything(&target.objects());
        let mut import = begin(&target, format);
        add(&mut import, &pack_of(&source, &objects)).unwrap();
        match import.check(&[id(&tip)], &[], &Silent).unwrap() {
            Connectivity::Missing {
                id: missing,
                referrer,
            } => {
                assert_eq!(missing, id(&blob));
                let referrer = referrer.unwrap().to_string();
                assert!(
                    source.git(&["ls-tree", &referrer]).contains(&blob),
                    "{referrer}, not {tree}"
                );
            }
            other => panic!("{other:?}"),
        }
        let absent = ObjectId::from_bytes_or_panic(&vec![7; kind(format).len_in_bytes()]);
        match import.check(&[absent], &[], &Silent).unwrap() {
            Connectivity::Missing { id, referrer: None } => assert_eq!(id, absent),
            other => panic!("{other:?}"),
        }
        drop(import);
        assert_eq!(everything(&target.objects()), before);
    }
}

/// Objects that are here but lead nowhere do not make a new commit complete.
#[test]
fn leftovers_are_not_believed() {
    let format = Format::Sha1;
    let source = Repo::scripted("history", format);
    let target = Repo::empty(format);
    let parent = source.git(&["rev-parse", "main~1"]);
    let commit = git::run(source.path(), &["cat-file", "commit", &parent]).stdout;
    let made = git::with_input(
        target.path(),
        &["hash-object", "-t", "commit", "-w", "--stdin"],
        &commit,
    );
    assert_eq!(String::from_utf8(made).unwrap().trim(), parent);
    let mut import = begin(&target, format);
    add(&mut import, &pack(&source, &["main", "^main~1"])).unwrap();
    let tip = id(&source.git(&["rev-parse", "main"]));
    let answer = import.check(&[tip], &[], &Silent).unwrap();
    assert!(matches!(answer, Connectivity::Missing { .. }), "{answer:?}");
}

#[test]
fn a_refused_pack_leaves_the_others() {
    let format = Format::Sha1;
    let source = Repo::scripted("history", format);
    let target = Repo::empty(format);
    let before = everything(&target.objects());
    let mut import = begin(&target, format);
    let good = pack(&source, &["main"]);
    let mut bad = good.clone();
    bad[200] ^= 4;
    add(&mut import, &bad).unwrap_err();
    add(&mut import, b"").unwrap_err();
    add(&mut import, &good).unwrap();
    add(&mut import, &bad).unwrap_err();
    let tip = id(&source.git(&["rev-parse", "main"]));
    assert!(matches!(
        import.check(&[tip], &[], &Silent).unwrap(),
        Connectivity::Connected { .. }
    ));
    assert_eq!(everything(import.quarantine()).len(), 6);
    drop(import);
    assert_eq!(everything(&target.objects()), before);
}

#[test]
fn an_empty_pack_publishes_nothing() {
    for format in Format::BOTH {
        let source = Repo::scripted("history", format);
        let target = Repo::empty(format);
        let before = everything(&target.objects());
        let mut import = begin(&target, format);
        add(&mut import, &pack(&source, &["main", "^main"])).unwrap();
        assert!(import.publish(true).unwrap().is_empty());
        assert_eq!(everything(&target.objects()), before);
    }
}

#[test]
fn a_pack_that_is_there_already() {
    let format = Format::Sha1;
    let source = Repo::scripted("history", format);
    let target = Repo::empty(format);
    let bytes = pack(&source, &["main"]);
    let publish = |keep| {
        let mut import = begin(&target, format);
        add(&mut import, &bytes).unwrap();
        import.publish(keep).unwrap()
    };
    let first = publish(true);
    let files = everything(&target.objects().join("pack"));
    assert_eq!(files.len(), 4);
    // Somebody else's keep file is not taken over.
    let second = publish(true);
    assert_eq!(second[0].pack, first[0].pack);
    assert!(first[0].keep.is_some() && second[0].keep.is_none());
    assert_eq!(everything(&target.objects().join("pack")), files);
    // One that was cut off is replaced.
    std::fs::remove_file(&first[0].idx).unwrap();
    std::fs::remove_file(&first[0].pack).unwrap();
    std::fs::write(&first[0].pack, &bytes[..100]).unwrap();
    publish(false);
    assert_eq!(std::fs::read(&first[0].pack).unwrap(), bytes);
    target.git(&["verify-pack", first[0].pack.to_str().unwrap()]);
}

#[test]
fn git_prunes_what_a_crash_left_behind() {
    let format = Format::Sha1;
    let source = Repo::scripted("history", format);
    let target = Repo::empty(format);
    let before = everything(&target.objects());
    let mut import = begin(&target, format);
    add(&mut import, &pack(&source, &["main"])).unwrap();
    std::mem::forget(import);
    assert_ne!(everything(&target.objects()), before);
    git::fsck(target.path());
    target.git(&["prune", "--expire=now"]);
    assert_eq!(everything(&target.objects()), before);
}

/// An object with the id of another one, as only a forged index can show it.
#[test]
fn an_object_that_differs_from_the_one_here() {
    for format in Format::BOTH {
        for size in [100, 3_000_000] {
            let target = Repo::empty(format);
            let (mine, theirs) = (vec![b'm'; size], vec![b't'; size]);
            let wanted = gix_object::compute_hash(kind(format), Kind::Blob, &theirs).unwrap();
            // Stored under the name of the other.
            let hex = wanted.to_string();
            let path = target.objects().join(&hex[..2]).join(&hex[2..]);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut loose = format!("blob {size}\0").into_bytes();
            loose.extend_from_slice(&mine);
            let mut compressed = Vec::new();
            deflate(&loose, Level::DEFAULT, &mut compressed);
            std::fs::write(&path, compressed).unwrap();

            let mut import = begin(&target, format);
            match add(&mut import, &blob_pack(format, &theirs)) {
                Err(Error::Pack(pack::index::Error::Collision { id })) => assert_eq!(id, wanted),
                other => panic!("{other:?}"),
            }
            // The same as what is here is fine.
            loose.truncate(loose.len() - size);
            loose.extend_from_slice(&theirs);
            let mut compressed = Vec::new();
            deflate(&loose, Level::DEFAULT, &mut compressed);
            std::fs::write(&path, compressed).unwrap();
            add(&mut import, &blob_pack(format, &theirs)).unwrap();
        }
    }
}

fn blob_pack(format: Format, content: &[u8]) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    Header::Blob.write_to(content.len() as u64, &mut pack).unwrap();
    deflate(content, Level::DEFAULT, &mut pack);
    let mut hasher = gix_hash::hasher(kind(format));
    hasher.update(&pack);
    pack.write_all(hasher.try_finalize().unwrap().as_bytes()).unwrap();
    pack
}

#[test]
fn a_shallow_repository() {
    let format = Format::Sha1;
    let source = Repo::scripted("history", format);
    let target = Repo::empty(format);
    let tip = source.git(&["rev-parse", "main"]);
    let objects = source.git(&["rev-list", "--objects", "--no-object-names", "main^{tree}"]);
    let objects: Vec<String> = objects.lines().map(str::to_owned).chain([tip.clone()]).collect();
    for shallow in [true, false] {
        let options = Options {
            shallow: if shallow { vec![id(&tip)] } else { Vec::new() },
            ..Options::default()
        };
        let mut import = Import::begin(&target.objects(), kind(format), options).unwrap();
        add(&mut import, &pack_of(&source, &objects)).unwrap();
        let answer = import.check(&[id(&tip)], &[], &Silent).unwrap();
        assert_eq!(
            matches!(answer, Connectivity::Connected { .. }),
            shallow,
            "{answer:?}"
        );
    }
}

fn import_with(fs: Arc<dyn Fs>, objects: &Path, packs: &[&[u8]], loose: bool) -> Result<(), Error> {
    let options = Options {
        fs,
        threads: 1,
        ..Options::default()
    };
    let mut import = Import::begin(objects, gix_hash::Kind::Sha1, options)?;
    for pack in packs {
        add(&mut import, pack)?;
    }
    match loose {
        true => import.publish_loose()?,
        false => drop(import.publish(true)?),
    }
    Ok(())
}

/// After any power cut each pack is whole or absent, and all are whole once that was reported.
#[test]
fn power_cuts() {
    power_cuts_of(false);
}

/// The same where objects become files of their own.
#[test]
fn power_cuts_of_objects() {
    power_cuts_of(true);
}

fn power_cuts_of(loose: bool) {
    let format = Format::Sha1;
    let packs = [blob_pack(format, b"one"), blob_pack(format, b"two")];
    let packs: Vec<&[u8]> = packs.iter().map(Vec::as_slice).collect();
    let target = Repo::empty(format);
    let fs = Arc::new(Recording::new(&target.objects()).unwrap());
    import_with(Arc::clone(&fs) as Arc<dyn Fs>, &target.objects(), &packs, loose).unwrap();
    fs.mark("done");
    let ids =
        [b"one", b"two"].map(|content| gix_object::compute_hash(kind(format), Kind::Blob, content).unwrap());
    let sound = |root: &Path, done: bool| {
        let Ok(store) = Store::open(root, kind(format)) else {
            return false;
        };
        let mut cache = ingot_engine::store::Cache::new(0);
        let mut bytes = Vec::new();
        let mut readable = 0;
        for id in &ids {
            match store.read(id, &mut cache, &mut bytes) {
                Ok(Some(_)) => readable += 1,
                Ok(None) if !done => {}
                _ => return false,
            }
        }
        readable == 2 || !done
    };
    let states = fs.each_crash(|crash| assert!(sound(crash.root(), crash.reached("done")), "{crash}"));
    assert!(states > 20, "only {states} states");
    for (files, folders) in [(true, false), (false, true)] {
        let mut broken = 0;
        fs.each_crash_without_syncs(files, folders, |crash| {
            broken += usize::from(!sound(crash.root(), crash.reached("done")));
        });
        assert!(broken > 0, "nobody notices: files {files}, folders {folders}");
    }
}

/// Every pack that has an index is whole.
fn whole_or_absent(repo: &Repo) {
    let names = everything(&repo.objects().join("pack"));
    for index in names.iter().filter(|name| name.ends_with(".idx")) {
        let name = index.trim_end_matches(".idx");
        assert!(names.contains(&format!("{name}.pack")) && names.contains(&format!("{name}.rev")));
        repo.git(&[
            "verify-pack",
            repo.objects().join("pack").join(index).to_str().unwrap(),
        ]);
    }
}

/// Whatever call fails, the repository is whole, and the next import works.
#[test]
fn failing_calls() {
    let format = Format::Sha1;
    let content = blob_pack(format, b"content");
    let object = gix_object::compute_hash(kind(format), Kind::Blob, b"content").unwrap();
    let faults = [(Fault::Full, false), (Fault::Broken, true), (Fault::Short, false)];
    for ((fault, stays), loose) in faults
        .into_iter()
        .flat_map(|fault| [(fault, false), (fault, true)])
    {
        for nth in 1.. {
            let target = Repo::empty(format);
            let fs = Arc::new(Faulty::new(real(), fault, nth, stays));
            let result = import_with(
                Arc::clone(&fs) as Arc<dyn Fs>,
                &target.objects(),
                &[&content],
                loose,
            );
            whole_or_absent(&target);
            git::fsck(target.path());
            import_with(real(), &target.objects(), &[&content], loose).unwrap();
            assert_eq!(target.git(&["cat-file", "blob", &object.to_string()]), "content");
            if !fs.failed() {
                assert!(result.is_ok() && nth > 20, "{nth}: {result:?}");
                break;
            }
        }
    }
}

/// Interrupts at the n-th question whether to go on.
struct Interrupting(AtomicU64);

impl Progress for Interrupting {
    fn interrupted(&self) -> bool {
        // Whoever asks again gets the same answer.
        let before = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            Some(left.saturating_sub(1))
        });
        before.unwrap() <= 1
    }
}

#[test]
fn an_interruption_leaves_nothing_wherever_it_comes() {
    let format = Format::Sha1;
    let source = Repo::textual(format, 30);
    let target = Repo::empty(format);
    let (old, new) = (
        source.git(&["rev-parse", "main~20"]),
        source.git(&["rev-parse", "main"]),
    );
    let mut import = begin(&target, format);
    add(&mut import, &pack(&source, &["main~20"])).unwrap();
    import.publish(false).unwrap();
    let before = everything(&target.objects());
    let bytes = pack(&source, &["main", "^main~20"]);
    for threads in [1, 3] {
        let mut interrupted = [0, 0];
        for nth in 1.. {
            let progress = Interrupting(AtomicU64::new(nth));
            let options = Options {
                threads,
                ..Options::default()
            };
            let mut import = Import::begin(&target.objects(), kind(format), options).unwrap();
            let added = import.add_pack(&mut &bytes[..], &Limits::default(), &progress);
            if let Err(error) = added {
                assert!(
                    matches!(error, Error::Pack(pack::index::Error::Interrupted)),
                    "{error}"
                );
                assert_eq!(
                    everything(import.quarantine()).len(),
                    3,
                    "folders and the alternates"
                );
                drop(import);
                assert_eq!(everything(&target.objects()), before);
                interrupted[0] += 1;
                continue;
            }
            let answer = import.check(&[id(&new)], &[id(&old)], &progress);
            drop(import);
            assert_eq!(everything(&target.objects()), before);
            match answer {
                Err(Error::Walk(walk::Error::Interrupted)) => interrupted[1] += 1,
                answer => {
                    assert!(matches!(answer, Ok(Connectivity::Connected { .. })), "{answer:?}");
                    break;
                }
            }
        }
        assert!(interrupted[0] > 1, "{interrupted:?} with {threads} threads");
    }
}

const KILLED: &str = "INGOT_TEST_KILLED";

/// Whenever the process is killed, each pack is whole or absent, and the next import works.
#[cfg(unix)]
#[test]
fn killed_at_any_call() {
    use std::os::unix::process::ExitStatusExt as _;
    let format = Format::Sha1;
    let content = blob_pack(format, b"content");
    let object = gix_object::compute_hash(kind(format), Kind::Blob, b"content").unwrap();
    let mut points = Vec::new();
    for nth in 1.. {
        let target = Repo::empty(format);
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "killed_child",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(KILLED, target.objects())
            .env("INGOT_TEST_AT", nth.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let killed = output.status.signal() == Some(9);
        assert!(killed || output.status.success(), "{text}");
        points.extend(
            text.lines()
                .filter_map(|line| line.strip_prefix("killed before "))
                .map(str::to_owned),
        );
        whole_or_absent(&target);
        git::fsck(target.path());
        import_with(real(), &target.objects(), &[&content], false).unwrap();
        assert_eq!(target.git(&["cat-file", "blob", &object.to_string()]), "content");
        target.git(&["prune", "--expire=now"]);
        let rest = everything(&target.objects());
        assert!(rest.iter().all(|name| !name.contains("tmp_")), "{rest:?}");
        if !killed {
            break;
        }
    }
    for point in [
        "write to",
        "sync file",
        "rename to",
        "sync folder",
        "unlink",
        "remove folder",
    ] {
        assert!(
            points.iter().any(|other| other.starts_with(point)),
            "{point}: {points:?}"
        );
    }
}

#[cfg(unix)]
#[test]
#[ignore = "run by killed_at_any_call"]
fn killed_child() {
    let at = std::env::var("INGOT_TEST_AT").unwrap().parse().unwrap();
    let objects = std::env::var_os(KILLED).unwrap();
    let content = blob_pack(Format::Sha1, b"content");
    let fs = Arc::new(killing::Killing::new(at));
    import_with(fs, Path::new(&objects), &[&content], false).unwrap();
}
