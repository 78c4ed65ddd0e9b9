//! References, with Git as judge.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;
use ingot_engine::durable::testing::{Fault, Faulty, Recording};
use ingot_engine::durable::{Fs, real};
use ingot_engine::refs::{
    Edit, Error, Expected, Head, Options, Packing, Transaction, apply, apply_each, head, list, peel, resolve,
    validate,
};
use ingot_engine::repository::Repository;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

fn open(repo: &Repo) -> Repository {
    Repository::open(repo.path()).unwrap()
}

fn id(repo: &Repo, spec: &str) -> ObjectId {
    ObjectId::from_hex(repo.git(&["rev-parse", spec]).as_bytes()).unwrap()
}

fn set(name: &str, id: ObjectId) -> Edit {
    Edit::set(validate(name).unwrap(), id)
}

fn delete(name: &str) -> Edit {
    Edit::delete(validate(name).unwrap())
}

/// What Git lists.
fn listed(path: &Path) -> BTreeMap<String, String> {
    git::git(path, &["for-each-ref", "--format=%(refname) %(objectname)"])
        .lines()
        .map(|line| {
            let (name, id) = line.split_once(' ').unwrap();
            (name.to_owned(), id.to_owned())
        })
        .collect()
}

fn ours(repository: &Repository) -> BTreeMap<String, String> {
    list(repository, "")
        .unwrap()
        .into_iter()
        .map(|reference| (reference.name.to_string(), reference.id.to_string()))
        .collect()
}

#[test]
fn listing_equals_for_each_ref() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        assert_eq!(ours(&open(&repo)), listed(repo.path()));
        repo.git(&["pack-refs", "--all"]);
        repo.git(&["branch", "after-packing"]);
        repo.git(&["branch", "-f", "topic", "HEAD~3"]);
        repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main"]);
        repo.git(&["symbolic-ref", "refs/remotes/dangling/HEAD", "refs/heads/none"]);
        std::fs::write(repo.git_dir().join("refs/heads/x.lock"), "").unwrap();
        let repository = open(&repo);
        assert_eq!(ours(&repository), listed(repo.path()));
        let names = |prefix: &str| -> Vec<String> {
            list(&repository, prefix)
                .unwrap()
                .iter()
                .map(|reference| reference.name.to_string())
                .collect()
        };
        assert_eq!(names("refs/heads/t"), ["refs/heads/topic"]);
        assert_eq!(names("refs/tags/").len(), 5);
        assert_eq!(names("refs/none/"), Vec::<String>::new());
        let origin = &list(&repository, "refs/remotes/").unwrap()[0];
        assert_eq!(origin.symbolic.as_ref().unwrap().as_bstr(), "refs/heads/main");
        std::fs::write(repo.git_dir().join("refs/heads/broken"), "junk").unwrap();
        let error = list(&repository, "").unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
    }
}

#[test]
fn revisions_resolve_as_git_resolves_them() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let repository = open(&repo);
        let full = repo.git(&["rev-parse", "HEAD~1"]);
        for spec in [
            "HEAD",
            "@",
            "main",
            "heads/main",
            "refs/heads/main",
            "HEAD~2",
            "main~3^3",
            "v1.0",
            "nested",
            "v1.0^{}",
            "nested^{commit}",
            "HEAD^{tree}",
            "HEAD:src/numbers.txt",
            "blob-tag",
            "main@{0}",
            &full,
            &full[..12],
            &format!("{}^{{tree}}", &full[..9].to_uppercase()),
        ] {
            let found = resolve(&repository, spec).unwrap_or_else(|error| panic!("{format:?}: {error}"));
            assert_eq!(found.id, id(&repo, spec), "{spec}");
        }
        repo.git(&["repack", "-adq"]);
        assert_eq!(resolve(&open(&repo), &full[..12]).unwrap().id.to_string(), full);
        let repository = open(&repo);
        let found = resolve(&repository, "HEAD").unwrap();
        assert_eq!(found.name.unwrap().as_bstr(), "HEAD");
        assert_eq!(found.target.unwrap().as_bstr(), "refs/heads/main");
        assert_eq!(
            resolve(&repository, "topic").unwrap().name.unwrap().as_bstr(),
            "refs/heads/topic"
        );
        assert_eq!(resolve(&repository, "HEAD~1").unwrap().name, None);
        for spec in [
            "none",
            "HEAD~999",
            "",
            "..",
            &"0".repeat(full.len()),
            "refs/heads/",
        ] {
            let error = resolve(&repository, spec).unwrap_err();
            assert!(error.to_string().contains(&format!("'{spec}'")), "{error}");
            assert!(!error.to_string().contains('\n'));
        }
        for name in ["nested", "v1.0", "main", "blob-tag", "tree-tag"] {
            let (object, kind) = peel(&repository, id(&repo, name)).unwrap();
            assert_eq!(object, id(&repo, &format!("{name}^{{}}")));
            assert_eq!(
                kind.to_string(),
                repo.git(&["cat-file", "-t", &object.to_string()])
            );
        }
    }
}

#[test]
fn head_is_known_in_every_state() {
    let repo = Repo::empty(Format::Sha1);
    let expected = |id| Head::Branch {
        name: validate("refs/heads/main").unwrap(),
        id,
    };
    assert_eq!(head(&open(&repo)).unwrap(), expected(None));
    repo.commit("one");
    let one = id(&repo, "HEAD");
    assert_eq!(head(&open(&repo)).unwrap(), expected(Some(one)));
    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(head(&open(&repo)).unwrap(), Head::Detached(one));
}

#[test]
fn changes_are_what_update_ref_makes() {
    for format in Format::BOTH {
        for packed in [false, true] {
            let repo = Repo::scripted("history", format);
            if packed {
                repo.git(&["pack-refs", "--all"]);
            }
            let repository = open(&repo);
            let (tip, older) = (id(&repo, "main"), id(&repo, "main~3"));
            let tag = id(&repo, "v1.0");
            let topic = id(&repo, "topic");
            let mut expected = listed(repo.path());
            let applied = apply(
                &repository,
                vec![
                    set("refs/heads/new/branch", tip).expecting(Expected::Absent),
                    set("refs/heads/topic", older).expecting(Expected::Is(topic)),
                    set("refs/tags/copy", tag),
                    set("refs/heads/main", tip),
                    delete("refs/heads/second"),
                    delete("refs/tags/light").expecting(Expected::Is(id(&repo, "light"))),
                    delete("refs/heads/never-was"),
                ],
            )
            .unwrap();
            assert_eq!(applied.len(), 7);
            assert_eq!(
                applied
                    .iter()
                    .find(|done| done.name.as_bstr() == "refs/heads/topic")
                    .unwrap()
                    .old,
                Some(topic)
            );
            expected.insert("refs/heads/new/branch".into(), tip.to_string());
            expected.insert("refs/heads/topic".into(), older.to_string());
            expected.insert("refs/tags/copy".into(), tag.to_string());
            expected.remove("refs/heads/second");
            expected.remove("refs/tags/light");
            assert_eq!(listed(repo.path()), expected);
            assert_eq!(ours(&open(&repo)), expected);
            git::fsck(repo.path());
            assert!(!repo.git_dir().join("packed-refs.lock").exists());
            assert!(!repo.git_dir().join("logs/refs/heads/second").exists());
        }
    }
}

#[test]
fn nothing_happens_unless_everything_can() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["branch", "deep/er"]);
    repo.git(&["branch", "packed/one"]);
    repo.git(&["pack-refs", "--all"]);
    repo.git(&["branch", "loose/one"]);
    let repository = open(&repo);
    let tip = id(&repo, "main");
    let blob = id(&repo, "blob-tag");
    let absent = ObjectId::from_hex(b"0123456789abcdef0123456789abcdef01234567").unwrap();
    let before = listed(repo.path());
    let bad = |edit: Edit| {
        let error = apply(
            &repository,
            vec![set("refs/heads/aaa/good", tip), edit, set("refs/tags/zzz", tip)],
        )
        .unwrap_err();
        assert_eq!(listed(repo.path()), before, "{error}");
        assert!(!repo.git_dir().join("refs/heads/aaa").exists());
        let left = git::git(repo.path(), &["rev-parse", "--git-dir"]);
        let locks = std::process::Command::new("find")
            .args([repo.path().join(left).to_str().unwrap(), "-name", "*.lock"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&locks.stdout), "");
        error
    };
    let conflict = |edit| {
        let error = bad(edit);
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
        error.to_string()
    };
    assert!(conflict(set("refs/heads/deep", tip)).contains("'refs/heads/deep/er'"));
    conflict(set("refs/heads/packed", tip));
    conflict(set("refs/heads/loose", tip));
    conflict(set("refs/heads/main/x", tip));
    conflict(set("refs/heads/loose/one/two/three", tip));
    conflict(set("refs/heads/aaa/good/more", tip));
    assert!(matches!(
        bad(set("refs/heads/main", tip).expecting(Expected::Absent)),
        Error::Changed { actual: Some(actual), .. } if actual == tip
    ));
    assert!(matches!(
        bad(delete("refs/heads/none").expecting(Expected::Is(tip))),
        Error::Changed { actual: None, .. }
    ));
    assert!(matches!(bad(set("refs/tags/zzz", tip)), Error::Duplicate { .. }));
    assert!(matches!(
        bad(set("refs/heads/x", absent)),
        Error::MissingObject { .. }
    ));
    assert!(matches!(bad(set("refs/heads/x", blob)), Error::NotACommit { .. }));
    let held = repo.git_dir().join("refs/heads/topic.lock");
    std::fs::write(&held, "").unwrap();
    let error = apply(&repository, vec![set("refs/heads/topic", tip)]).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    std::fs::remove_file(&held).unwrap();

    let prepared = Transaction::prepare(
        &repository,
        vec![set("refs/heads/aaa/good", tip)],
        &Options::default(),
    )
    .unwrap();
    assert!(repo.git_dir().join("refs/heads/aaa/good.lock").exists());
    drop(prepared);
    assert!(!repo.git_dir().join("refs/heads/aaa").exists());
    assert_eq!(listed(repo.path()), before);
}

#[test]
fn empty_folders_are_no_conflict() {
    let repo = Repo::scripted("history", Format::Sha1);
    let tip = id(&repo, "main");
    std::fs::create_dir_all(repo.git_dir().join("refs/heads/was/a/folder")).unwrap();
    std::fs::create_dir_all(repo.git_dir().join("logs/refs/heads/was/a/folder")).unwrap();
    let repository = open(&repo);
    apply(&repository, vec![set("refs/heads/was", tip)]).unwrap();
    assert_eq!(repo.git(&["rev-parse", "was"]), tip.to_string());
    assert_eq!(repo.git(&["reflog", "was"]).lines().count(), 1);
    apply(&repository, vec![delete("refs/heads/was")]).unwrap();
    apply(&repository, vec![set("refs/heads/was/again", tip)]).unwrap();
    apply(&repository, vec![delete("refs/heads/was/again")]).unwrap();
    assert!(!repo.git_dir().join("refs/heads/was").exists());
    assert!(!repo.git_dir().join("logs/refs/heads/was").exists());
    assert!(repo.git_dir().join("refs/heads").exists());
}

#[test]
fn logs_are_written_as_git_writes_them() {
    let theirs = Repo::scripted("history", Format::Sha1);
    let mine = Repo::scripted("history", Format::Sha1);
    for repo in [&theirs, &mine] {
        for (key, value) in [("user.name", "Bob"), ("user.email", "bob@example.org")] {
            repo.git(&["config", key, value]);
        }
    }
    let names = [
        "refs/heads/main",
        "refs/heads/new",
        "refs/remotes/r/x",
        "refs/tags/t",
        "refs/e2ee/x",
    ];
    let target = id(&theirs, "main~1");
    for name in names {
        theirs.git(&[
            "update-ref",
            "-m",
            "push:  two\nlines ",
            name,
            &target.to_string(),
        ]);
    }
    theirs.git(&[
        "symbolic-ref",
        "-m",
        "pointing",
        "refs/remotes/r/HEAD",
        "refs/remotes/r/x",
    ]);
    let repository = open(&mine);
    apply(
        &repository,
        names
            .map(|name| set(name, target).because("push:  two\nlines "))
            .to_vec(),
    )
    .unwrap();
    apply(&repository, vec![set("refs/heads/main", target).because("again")]).unwrap();
    apply(
        &repository,
        vec![
            Edit::point(
                validate("refs/remotes/r/HEAD").unwrap(),
                validate("refs/remotes/r/x").unwrap(),
            )
            .because("pointing"),
        ],
    )
    .unwrap();
    // The time differs; the rest must not.
    let read = |repo: &Repo, name: &str| -> Option<Vec<String>> {
        let text = std::fs::read_to_string(repo.git_dir().join("logs").join(name)).ok()?;
        Some(
            text.lines()
                .map(|line| {
                    let (head, message) = line.split_once('\t').unwrap();
                    let (who, _) = head.split_once("> ").unwrap();
                    format!("{who}> {message}")
                })
                .collect(),
        )
    };
    for name in names.into_iter().chain(["HEAD", "refs/remotes/r/HEAD"]) {
        assert_eq!(read(&mine, name), read(&theirs, name), "{name}");
    }
    assert!(
        read(&mine, "HEAD")
            .unwrap()
            .last()
            .unwrap()
            .ends_with("> push: two lines")
    );
    assert_eq!(
        mine.git(&["rev-parse", "main@{1}"]),
        theirs.git(&["rev-parse", "main@{1}"])
    );

    mine.git(&["config", "core.logAllRefUpdates", "always"]);
    apply(&open(&mine), vec![set("refs/tags/logged", target)]).unwrap();
    assert!(read_exists(&mine, "refs/tags/logged"));
    mine.git(&["config", "core.logAllRefUpdates", "false"]);
    apply(&open(&mine), vec![set("refs/heads/unlogged", target)]).unwrap();
    assert!(!read_exists(&mine, "refs/heads/unlogged"));
}

fn read_exists(repo: &Repo, name: &str) -> bool {
    repo.git_dir().join("logs").join(name).exists()
}

#[test]
fn head_moves_on_and_off_branches() {
    let repo = Repo::scripted("history", Format::Sha1);
    let repository = open(&repo);
    let head = validate("HEAD").unwrap();
    let tip = id(&repo, "main");
    let older = id(&repo, "main~2");
    // Through HEAD, the branch is set.
    apply(&repository, vec![Edit::set(head.clone(), older).because("reset")]).unwrap();
    assert_eq!(repo.git(&["rev-parse", "main"]), older.to_string());
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    apply(
        &repository,
        vec![Edit::point(head.clone(), validate("refs/heads/topic").unwrap()).because("switching")],
    )
    .unwrap();
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/topic");
    apply(&repository, vec![Edit::set(head.clone(), tip).detached()]).unwrap();
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), tip.to_string());
    assert_eq!(
        git::run(repo.path(), &["symbolic-ref", "-q", "HEAD"])
            .status
            .code(),
        Some(1)
    );
    repo.git(&["fsck", "--strict"]);

    // A linked work tree has a HEAD of its own and shares the branches.
    repo.git(&["worktree", "add", "-q", "-b", "linked", "wt"]);
    let linked = Repository::open(&repo.path().join("wt")).unwrap();
    apply(&linked, vec![Edit::set(head.clone(), older)]).unwrap();
    assert_eq!(repo.git(&["rev-parse", "linked"]), older.to_string());
    apply(&linked, vec![Edit::set(head, tip).detached()]).unwrap();
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), tip.to_string());
    assert_eq!(
        git::git(&repo.path().join("wt"), &["rev-parse", "HEAD"]),
        tip.to_string()
    );
}

#[test]
fn a_circle_of_references_ends() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["symbolic-ref", "refs/heads/a", "refs/heads/b"]);
    repo.git(&["symbolic-ref", "refs/heads/b", "refs/heads/a"]);
    let repository = open(&repo);
    assert!(resolve(&repository, "refs/heads/a").is_err());
    let error = apply(&repository, vec![set("refs/heads/a", id(&repo, "main"))]).unwrap_err();
    assert!(matches!(error, Error::Circular { .. }), "{error}");
}

#[test]
fn damaged_references_can_be_replaced_but_not_relied_on() {
    let repo = Repo::scripted("history", Format::Sha1);
    let tip = id(&repo, "main");
    let repository = open(&repo);
    std::fs::write(repo.git_dir().join("refs/heads/topic"), "").unwrap();
    let careful = set("refs/heads/topic", tip).expecting(Expected::Is(tip));
    assert!(matches!(
        apply(&repository, vec![careful]),
        Err(Error::Unreadable { .. })
    ));
    apply(&repository, vec![set("refs/heads/topic", tip)]).unwrap();
    assert_eq!(repo.git(&["rev-parse", "topic"]), tip.to_string());
}

#[test]
fn many_references_go_into_one_file() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let repository = open(&repo);
        let tip = id(&repo, "main");
        let mut edits: Vec<Edit> = (0..1500)
            .map(|number| set(&format!("refs/remotes/origin/b{number}"), tip))
            .collect();
        edits.push(set("refs/remotes/origin/tags/v1.0", id(&repo, "v1.0")));
        edits.push(set("refs/tags/nested-copy", id(&repo, "nested")));
        let options = Options {
            packing: Packing::New,
            ..Options::default()
        };
        Transaction::prepare(&repository, edits, &options)
            .unwrap()
            .commit()
            .unwrap();
        assert_eq!(listed(repo.path()), ours(&open(&repo)));
        assert_eq!(listed(repo.path()).len(), 1500 + 2 + 8);
        assert!(!repo.git_dir().join("refs/remotes").exists());
        assert!(!repo.git_dir().join("logs/refs/remotes").exists());
        let peeled = repo.git(&["show-ref", "-d", "nested-copy"]);
        assert!(
            peeled.contains(&repo.git(&["rev-parse", "nested^{}"])),
            "{peeled}"
        );
        let text = std::fs::read(repo.git_dir().join("packed-refs")).unwrap();
        assert!(text.starts_with(b"# pack-refs with: peeled fully-peeled sorted \n"));
        repo.git(&["pack-refs", "--all"]);
        // As many at once as single files.
        let edits = (0..1200)
            .map(|number| {
                set(
                    &format!("refs/remotes/origin/b{number}"),
                    id_of(&repository, "main~1"),
                )
            })
            .collect();
        apply(&repository, edits).unwrap();
        let edits = (0..1200)
            .map(|number| delete(&format!("refs/remotes/origin/b{number}")))
            .collect();
        apply(&repository, edits).unwrap();
        assert_eq!(listed(repo.path()).len(), 300 + 2 + 8);
    }
}

fn id_of(repository: &Repository, spec: &str) -> ObjectId {
    resolve(repository, BStr::new(spec)).unwrap().id
}

/// A repository without what does not matter here, for states that are written out many times.
fn small() -> (TempDir, ObjectId, ObjectId) {
    let temp = TempDir::new().unwrap();
    let root = temp.path();
    git::git(root, &["init", "-q", "--bare", "--template="]);
    let tree = String::from_utf8(git::with_input(root, &["mktree"], b"")).unwrap();
    let commit = |message: &str| -> ObjectId {
        let out = git::git(root, &["commit-tree", "-m", message, tree.trim()]);
        ObjectId::from_hex(out.as_bytes()).unwrap()
    };
    let (one, two) = (commit("one"), commit("two"));
    for name in ["moved", "gone", "packed-moved", "packed-gone"] {
        git::git(
            root,
            &["update-ref", &format!("refs/heads/{name}"), &one.to_string()],
        );
    }
    git::git(root, &["pack-refs", "--all"]);
    for name in ["moved", "gone"] {
        // Loose and packed, with different values.
        git::git(
            root,
            &["update-ref", &format!("refs/heads/{name}"), &two.to_string()],
        );
        git::git(
            root,
            &["update-ref", &format!("refs/heads/{name}"), &one.to_string()],
        );
    }
    (temp, one, two)
}

fn edits(two: ObjectId) -> Vec<Edit> {
    vec![
        set("refs/heads/moved", two),
        set("refs/heads/packed-moved", two),
        set("refs/heads/fresh/deep", two),
        delete("refs/heads/gone"),
        delete("refs/heads/packed-gone"),
    ]
}

/// Every reference at its old or its new value; returns whether all are new.
fn old_or_new(root: &Path, one: ObjectId, two: ObjectId, story: &dyn std::fmt::Display) -> bool {
    state(root, one, two).unwrap_or_else(|error| panic!("{error}\n{story}"))
}

fn state(root: &Path, one: ObjectId, two: ObjectId) -> Result<bool, String> {
    let repository = Repository::open(root).map_err(|error| error.to_string())?;
    let found: BTreeMap<String, ObjectId> = list(&repository, "")
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(|reference| (reference.name.to_string(), reference.id))
        .collect();
    let mut all = true;
    for (name, old, new) in [
        ("refs/heads/moved", Some(one), Some(two)),
        ("refs/heads/packed-moved", Some(one), Some(two)),
        ("refs/heads/fresh/deep", None, Some(two)),
        ("refs/heads/gone", Some(one), None),
        ("refs/heads/packed-gone", Some(one), None),
    ] {
        let is = found.get(name).copied();
        if is != old && is != new {
            return Err(format!("{name} is {is:?}"));
        }
        all &= is == new;
    }
    Ok(all)
}

#[test]
fn every_power_cut_leaves_old_or_new_references() {
    for packing in [Packing::None, Packing::New, Packing::All] {
        let (temp, one, two) = small();
        let repository = Repository::open(temp.path()).unwrap();
        let fs = Arc::new(Recording::new(temp.path()).unwrap());
        let options = Options {
            fs: Arc::clone(&fs) as Arc<dyn Fs>,
            packing,
            ..Options::default()
        };
        Transaction::prepare(&repository, edits(two), &options)
            .unwrap()
            .commit()
            .unwrap();
        fs.mark("done");
        let states = fs.each_crash(|crash| {
            let all = old_or_new(crash.root(), one, two, crash);
            assert!(all || !crash.reached("done"), "reported, but lost\n{crash}");
        });
        assert!(states > 20, "{states}");
        for (files, folders) in [(true, false), (false, true)] {
            let mut broken = 0;
            fs.each_crash_without_syncs(files, folders, |crash| {
                let sound = state(crash.root(), one, two).is_ok_and(|all| all || !crash.reached("done"));
                broken += usize::from(!sound);
            });
            assert!(broken > 0, "nobody notices: files {files}, folders {folders}");
        }
    }
}

#[test]
fn every_failing_call_leaves_old_or_new_references() {
    for (fault, packing) in [
        (Fault::Broken, Packing::None),
        (Fault::Short, Packing::None),
        (Fault::Broken, Packing::All),
    ] {
        for at in 1.. {
            let (temp, one, two) = small();
            let repository = Repository::open(temp.path()).unwrap();
            let fs = Arc::new(Faulty::new(real(), fault, at, false));
            let options = Options {
                fs: Arc::clone(&fs) as Arc<dyn Fs>,
                packing,
                ..Options::default()
            };
            let result =
                Transaction::prepare(&repository, edits(two), &options).and_then(Transaction::commit);
            let all = old_or_new(temp.path(), one, two, &format!("{fault:?} at {at}"));
            assert_eq!(result.is_ok(), result.is_ok() && all, "{fault:?} at {at}");
            if !fs.failed() {
                result.unwrap();
                assert!(at > 30, "only {at} calls");
                break;
            }
            // The same again finishes the job.
            let again = match apply(&repository, edits(two)) {
                // The failing call was the one that gives a lock up.
                Err(Error::Locked { lock, .. }) => {
                    std::fs::remove_file(lock).unwrap();
                    apply(&repository, edits(two))
                }
                result => result,
            };
            again.unwrap_or_else(|error| panic!("{fault:?} at {at}: {error}"));
            assert!(old_or_new(temp.path(), one, two, &"second run"));
        }
    }
}

/// Options that pack all, and what writes.
fn packing_all(repo: &Repo) -> (Options, Arc<Recording>) {
    let fs = Arc::new(Recording::new(&repo.git_dir()).unwrap());
    let options = Options {
        fs: Arc::clone(&fs) as Arc<dyn Fs>,
        packing: Packing::All,
        ..Options::default()
    };
    (options, fs)
}

#[test]
fn many_changes_cost_as_many_syncs_as_few() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let repository = open(&repo);
        let (tip, older, tag) = (id(&repo, "main"), id(&repo, "main~1"), id(&repo, "nested"));
        let name = |number: u32| format!("refs/remotes/origin/{}/b{number}", number % 7);
        let change = |id: ObjectId, expected: Expected| -> Vec<Edit> {
            let edit = |number| set(&name(number), id).expecting(expected).because("many");
            (0..300).map(edit).collect()
        };
        let few = |syncs: ingot_engine::durable::testing::Calls| {
            assert!(syncs.file_syncs + syncs.folder_syncs < 20, "{syncs:?}");
        };
        // New ones, among them a branch that HEAD is on and a tag.
        repo.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
        let mut edits = change(older, Expected::Absent);
        edits.extend([set("refs/tags/copy", tag), set("HEAD", older).because("born")]);
        let (options, fs) = packing_all(&repo);
        apply_each(&repository, edits, &options)
            .unwrap()
            .into_iter()
            .for_each(|result| drop(result.unwrap()));
        few(fs.calls());
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), older.to_string());
        assert!(repo.git(&["reflog", "HEAD"]).contains("born"));
        let peeled = repo.git(&["show-ref", "-d", "copy"]);
        assert!(
            peeled.contains(&repo.git(&["rev-parse", "nested^{}"])),
            "{peeled}"
        );
        assert!(!repo.git_dir().join("refs/remotes/origin/0").exists());
        // Some are files by now.
        for number in 0..20 {
            repo.git(&["update-ref", &name(number), &format!("{older}~1")]);
            repo.git(&["update-ref", &name(number), &older.to_string()]);
        }
        assert!(repo.git_dir().join(name(19)).exists());
        let (options, fs) = packing_all(&repo);
        let applied = apply_each(&repository, change(tip, Expected::Is(older)), &options).unwrap();
        assert!(
            applied
                .iter()
                .all(|result| result.as_ref().unwrap().old == Some(older))
        );
        few(fs.calls());
        assert_eq!(listed(repo.path()), ours(&open(&repo)));
        let there = listed(repo.path());
        for number in 0..300 {
            assert_eq!(there[&name(number)], tip.to_string());
            assert!(!repo.git_dir().join(name(number)).exists());
        }
        assert!(repo.git(&["reflog", "show", &name(299)]).lines().count() == 2);
        git::fsck(repo.path());
        let locks = repo.git_dir().join("refs/remotes/origin");
        assert!(!locks.exists() || std::fs::read_dir(locks).unwrap().count() == 0);
    }
}

#[test]
fn each_change_stands_for_itself() {
    for (packing, format) in [
        (Packing::None, Format::Sha1),
        (Packing::All, Format::Sha1),
        (Packing::All, Format::Sha256),
    ] {
        let repo = Repo::scripted("history", format);
        for name in ["gone", "now/a/name", "in/the/way", "stuck"] {
            repo.git(&["branch", name]);
        }
        repo.git(&["pack-refs", "--all"]);
        for name in ["loose", "held"] {
            repo.git(&["branch", name]);
        }
        let held = repo.git_dir().join("refs/heads/held.lock");
        std::fs::write(&held, "").unwrap();
        let stale = repo.git_dir().join("refs/heads/below/x.lock");
        std::fs::create_dir_all(stale.parent().unwrap()).unwrap();
        std::fs::write(&stale, "").unwrap();
        let repository = open(&repo);
        let (tip, older) = (id(&repo, "main"), id(&repo, "main~1"));
        let absent = ObjectId::from_hex("1".repeat(tip.kind().len_in_hex()).as_bytes()).unwrap();
        let options = Options {
            packing,
            ..Options::default()
        };
        let edits = vec![
            set("refs/heads/stuck", older).expecting(Expected::Is(absent)),
            set("refs/heads/loose", older),
            set("refs/heads/gone/below", tip),
            delete("refs/heads/gone"),
            set("refs/heads/held", older),
            delete("refs/heads/now/a/name"),
            set("refs/heads/now", tip),
            set("refs/heads/in", tip),
            set("refs/heads/new", absent),
            set("refs/heads/new/one", tip),
            set("refs/heads/new/one/more", tip),
            set("refs/heads/below", tip),
            set("refs/heads/topic", older),
        ];
        let count = edits.len();
        let results = apply_each(&repository, edits, &options).unwrap();
        assert_eq!(results.len(), count);
        let said: Vec<&str> = results
            .iter()
            .map(|result| match result {
                Ok(_) => "done",
                Err(Error::Changed { .. }) => "changed",
                Err(Error::Locked { .. }) => "locked",
                Err(Error::Conflict { .. }) => "conflict",
                Err(Error::MissingObject { .. }) => "missing",
                Err(other) => panic!("{other}"),
            })
            .collect();
        let below = match packing {
            Packing::All => "done", // no file has to take the place of the folder
            _ => "locked",
        };
        let expected = [
            "changed", "done", "done", "done", "locked", "done", "done", "conflict", "missing", "done",
            "conflict", below, "done",
        ];
        assert_eq!(said, expected, "{packing:?}");
        assert_eq!(results[1].as_ref().unwrap().old, Some(tip));
        for (name, value) in [
            ("stuck", tip),
            ("loose", older),
            ("gone/below", tip),
            ("held", tip),
            ("now", tip),
            ("new/one", tip),
            ("topic", older),
        ] {
            assert_eq!(
                repo.git(&["rev-parse", &format!("refs/heads/{name}")]),
                value.to_string()
            );
        }
        assert_eq!(listed(repo.path()), ours(&open(&repo)));
        std::fs::remove_file(held).unwrap();
        std::fs::remove_file(stale).unwrap();
        git::fsck(repo.path());
        repo.git(&["pack-refs", "--all"]);
    }
}

#[test]
fn a_lock_on_packed_references_holds_up_deletions_alone() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["config", "core.packedRefsTimeout", "1"]);
    let lock = repo.git_dir().join("packed-refs.lock");
    std::fs::write(&lock, "").unwrap();
    let repository = open(&repo);
    let tip = id(&repo, "main");
    let edits = || vec![delete("refs/heads/topic"), set("refs/heads/new", tip)];
    let options = Options {
        packing: Packing::All,
        ..Options::default()
    };
    let results = apply_each(&repository, edits(), &options).unwrap();
    assert!(matches!(&results[0], Err(Error::Locked { lock: path, .. }) if *path == lock));
    assert!(results[1].is_ok());
    assert_eq!(repo.git(&["rev-parse", "new"]), tip.to_string());
    assert!(repo.git_dir().join("refs/heads/new").exists());
    assert!(matches!(apply(&repository, edits()), Err(Error::Locked { .. })));
    std::fs::remove_file(&lock).unwrap();
    let results = apply_each(&repository, edits(), &options).unwrap();
    assert!(results.iter().all(Result::is_ok));
    assert!(!listed(repo.path()).contains_key("refs/heads/topic"));
}

#[test]
fn names_that_are_not_utf8_pass() {
    let repo = Repo::scripted("history", Format::Sha1);
    let repository = open(&repo);
    let name = validate(b"refs/heads/caf\xe9").unwrap();
    apply(&repository, vec![Edit::set(name, id(&repo, "main"))]).unwrap();
    let found = list(&repository, "refs/heads/caf").unwrap();
    assert_eq!(found[0].name.as_bstr(), b"refs/heads/caf\xe9".as_bstr());
}
