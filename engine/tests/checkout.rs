//! Checkout, with Git as judge.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use gix_hash::ObjectId;
use ingot_engine::checkout::{Error, Summary, checkout};
use ingot_engine::progress::{Progress, Silent, Unit};
use ingot_engine::refs::{Edit, apply, validate};
use ingot_engine::repository::{Init, Repository, init};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

fn kind(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

/// A new repository that borrows the objects of `source` and is configured by `configure`.
fn target(source: &Repo, format: Format, configure: &[(&str, &str)]) -> (TempDir, Repository) {
    let temp = TempDir::new().unwrap();
    let what = Init {
        format: kind(format),
        branch: Some("main".to_owned()),
        ..Init::default()
    };
    let work = temp.path().join("work");
    let mut repository = init(&work, &what).unwrap();
    std::fs::write(
        repository.objects_dir().join("info/alternates"),
        format!("{}\n", source.objects().display()),
    )
    .unwrap();
    repository
        .edit_config(|edit| {
            for (key, value) in configure {
                edit.set(key, value)?;
            }
            Ok::<_, ingot_engine::repository::Error>(())
        })
        .unwrap();
    (temp, repository)
}

fn id(repo: &Repo, spec: &str) -> ObjectId {
    ObjectId::from_hex(repo.git(&["rev-parse", spec]).as_bytes()).unwrap()
}

/// Paths with kind, permissions and content.
fn tree(root: &Path) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::MetadataExt as _;
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if path == root.join(".git") {
                continue;
            }
            let content = if meta.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                std::fs::read(&path).unwrap()
            };
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            found.insert(name, (meta.mode(), content));
        }
    }
    found
}

fn work(temp: &TempDir) -> std::path::PathBuf {
    temp.path().join("work")
}

fn clean(temp: &TempDir) {
    let work = work(temp);
    assert_eq!(git::git(&work, &["status", "--porcelain", "--ignored"]), "");
    assert_eq!(git::git(&work, &["diff", "--stat"]), "");
    assert_eq!(git::git(&work, &["diff", "--cached", "--stat"]), "");
    git::git(&work, &["update-index", "--refresh"]);
    git::git(&work, &["fsck", "--strict"]);
}

#[test]
fn the_work_tree_is_the_one_that_git_makes() {
    for (script, configure) in [
        ("history", &[][..]),
        (
            "worktree",
            &[
                ("filter.upper.smudge", "tr a-z A-Z"),
                ("filter.upper.clean", "tr A-Z a-z"),
                ("core.autocrlf", "input"),
            ][..],
        ),
        ("worktree", &[("core.eol", "crlf"), ("core.autocrlf", "true")][..]),
        ("worktree", &[("core.symlinks", "false")][..]),
    ] {
        for format in Format::BOTH {
            let source = Repo::scripted(script, format);
            let tip = id(&source, "main");
            let theirs = TempDir::new().unwrap();
            let mut args = vec!["clone", "-q"];
            let settings: Vec<String> = configure
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            for setting in &settings {
                args.extend(["-c", setting]);
            }
            let (from, to) = (source.path().to_str().unwrap(), theirs.path().join("work"));
            args.extend([from, to.to_str().unwrap()]);
            git::git(theirs.path(), &args);

            let (temp, repository) = target(&source, format, configure);
            let main = validate("refs/heads/main").unwrap();
            apply(&repository, vec![Edit::set(main, tip)]).unwrap();
            let summary = checkout(&repository, tip, &work(&temp), &Silent).unwrap();
            let (ours, mut expected) = (tree(&work(&temp)), tree(&to));
            for (name, found) in ours {
                let name = String::from_utf8_lossy(&name).into_owned();
                let wanted = expected
                    .remove(name.as_bytes())
                    .or_else(|| expected.remove(b"names/latin-\xe9".as_slice()));
                let short = |(mode, content): (u32, Vec<u8>)| {
                    (
                        mode,
                        String::from_utf8_lossy(&content[..content.len().min(200)]).into_owned(),
                        content.len(),
                    )
                };
                assert_eq!(
                    Some(short(found)),
                    wanted.map(short),
                    "{name} {script} {configure:?}"
                );
            }
            assert!(expected.is_empty(), "{expected:?}");
            clean(&temp);
            let entries = git::git(&work(&temp), &["ls-files", "-s"]);
            assert_eq!(entries, git::git(&to, &["ls-files", "-s"]));
            let count = |mode: &str| entries.lines().filter(|line| line.starts_with(mode)).count() as u64;
            assert_eq!(summary.submodules, count("160000"));
            assert_eq!(summary.links, count("120000"));
            assert_eq!(summary.files, count("1") - summary.submodules);
            assert!(summary.bytes > 0);
            assert!(summary.collisions.is_empty());
        }
    }
}

#[test]
fn large_files_are_whole_whatever_has_to_be_done_to_them() {
    let source = Repo::empty(Format::Sha1);
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(20 << 20)
    .collect();
    source.write("big.bin", &noise);
    source.write("big.crlf", "a line of text\r\n".repeat(1_200_000));
    source.write(".gitattributes", "*.crlf text eol=crlf\n");
    source.commit("one");
    let mut longer = noise.clone();
    longer.extend_from_slice(b"more");
    source.write("big.bin", &longer);
    source.commit("two");
    source.git(&["repack", "-adq"]);
    for (spec, expected) in [("main", &longer), ("main~1", &noise)] {
        let (temp, repository) = target(&source, Format::Sha1, &[]);
        let tip = id(&source, spec);
        apply(
            &repository,
            vec![Edit::set(validate("refs/heads/main").unwrap(), tip)],
        )
        .unwrap();
        checkout(&repository, tip, &work(&temp), &Silent).unwrap();
        assert!(std::fs::read(work(&temp).join("big.bin")).unwrap() == *expected);
        assert!(
            std::fs::read(work(&temp).join("big.crlf"))
                .unwrap()
                .starts_with(b"a line of text\r\na")
        );
        clean(&temp);
    }
}

#[test]
fn tags_trees_and_nothing_at_all_can_be_checked_out() {
    let source = Repo::scripted("history", Format::Sha1);
    for spec in ["nested", "main^{tree}"] {
        let (temp, repository) = target(&source, Format::Sha1, &[]);
        checkout(&repository, id(&source, spec), &work(&temp), &Silent).unwrap();
        assert!(work(&temp).join("src/numbers.txt").is_file());
    }
    let (temp, repository) = target(&source, Format::Sha1, &[]);
    let empty = ObjectId::empty_tree(gix_hash::Kind::Sha1);
    assert_eq!(
        checkout(&repository, empty, &work(&temp), &Silent).unwrap(),
        Summary::default()
    );
    assert_eq!(git::git(&work(&temp), &["ls-files"]), "");
    let error = checkout(&repository, id(&source, "blob-tag"), &work(&temp), &Silent).unwrap_err();
    assert!(matches!(error, Error::NoTree { .. }), "{error}");
    let absent = ObjectId::from_hex(b"0123456789abcdef0123456789abcdef01234567").unwrap();
    let error = checkout(&repository, absent, &work(&temp), &Silent).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}

/// Writes a tree with exactly these entries.
fn raw_tree(repo: &Repo, entries: &[(&str, &[u8], &str)]) -> ObjectId {
    let mut bytes = Vec::new();
    for (mode, name, hex) in entries {
        bytes.extend_from_slice(mode.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(ObjectId::from_hex(hex.as_bytes()).unwrap().as_slice());
    }
    let out = git::with_input(
        repo.path(),
        &["hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        &bytes,
    );
    ObjectId::from_hex(String::from_utf8(out).unwrap().trim().as_bytes()).unwrap()
}

#[test]
fn names_that_git_refuses_are_refused_before_anything_is_written() {
    for format in Format::BOTH {
        let source = Repo::scripted("history", format);
        let blob = source.git(&["rev-parse", "main:empty"]);
        let link = String::from_utf8(git::with_input(
            source.path(),
            &["hash-object", "-w", "--stdin"],
            b"../../outside",
        ))
        .unwrap();
        let link = link.trim();
        let inner = raw_tree(&source, &[("100644", b"inner", &blob)]).to_string();
        let hostile: Vec<(&str, Vec<u8>, &str)> = [
            ".git",
            ".GIT",
            ".Git",
            ".git ",
            ".git.",
            "git~1",
            "GIT~1",
            ".git::$INDEX_ALLOCATION",
            ".git\\hooks",
            "a\\.git\\b",
            "..",
            ".",
            "",
            "a/b",
            "../up",
            "/etc",
        ]
        .iter()
        .flat_map(|name| {
            [
                ("100644", name.as_bytes().to_vec(), blob.as_str()),
                ("40000", name.as_bytes().to_vec(), inner.as_str()),
            ]
        })
        .chain([
            ("120000", b".gitmodules".to_vec(), link),
            ("120000", b".GitModules".to_vec(), link),
        ])
        .collect();
        for (mode, name, object) in &hostile {
            let tree = raw_tree(&source, &[(mode, name, object)]);
            let shown = String::from_utf8_lossy(name).into_owned();
            // Git's own opinion, to keep this list honest.
            let index = TempDir::new().unwrap();
            let theirs = git::command(source.path())
                .env("GIT_INDEX_FILE", index.path().join("index"))
                .args(["read-tree", &tree.to_string()])
                .output()
                .unwrap();
            // It takes this one for a file in a folder; nothing honest writes such trees.
            let stricter = shown == "a/b";
            assert!(stricter || !theirs.status.success(), "Git takes {mode} {shown:?}");
            let (temp, repository) = target(&source, format, &[]);
            let error = checkout(&repository, tree, &work(&temp), &Silent)
                .err()
                .unwrap_or_else(|| panic!("took {mode} {shown:?}"));
            assert!(!error.to_string().contains('\n'), "{error}");
            assert!(
                tree_is_empty(&work(&temp)),
                "{mode} {shown:?} wrote something: {error}"
            );
            assert!(!repository.git_dir().join("index").exists());
        }
        // Protection that is off by default, and protection that is switched off.
        let hfs = raw_tree(&source, &[("40000", ".g\u{200c}it".as_bytes(), &inner)]);
        let (temp, repository) = target(&source, format, &[("core.protectHFS", "true")]);
        assert!(checkout(&repository, hfs, &work(&temp), &Silent).is_err());
        let ntfs = raw_tree(&source, &[("40000", b"git~1", &inner)]);
        let (temp2, repository) = target(&source, format, &[("core.protectNTFS", "false")]);
        checkout(&repository, ntfs, &work(&temp2), &Silent).unwrap();
        assert!(tree_is_empty(&work(&temp)));
    }
}

fn tree_is_empty(work: &Path) -> bool {
    tree(work).is_empty()
}

#[test]
fn a_name_that_is_link_and_folder_leads_nowhere() {
    let source = Repo::scripted("history", Format::Sha1);
    let outside = TempDir::new().unwrap();
    let link = String::from_utf8(git::with_input(
        source.path(),
        &["hash-object", "-w", "--stdin"],
        outside.path().to_str().unwrap().as_bytes(),
    ))
    .unwrap();
    let blob = source.git(&["rev-parse", "main:empty"]);
    let inner = raw_tree(&source, &[("100644", b"inner", &blob)]).to_string();
    for entries in [
        [
            ("120000", b"a".as_slice(), link.trim()),
            ("40000", b"a".as_slice(), inner.as_str()),
        ],
        [("40000", b"a", &inner), ("120000", b"a", link.trim())],
        [("100644", b"a", &blob), ("100644", b"a", &blob)],
        [("100644", b"b", &blob), ("100644", b"a", &blob)],
    ] {
        let bad = raw_tree(&source, &entries);
        let (temp, repository) = target(&source, Format::Sha1, &[]);
        let error = checkout(&repository, bad, &work(&temp), &Silent).unwrap_err();
        assert!(matches!(error, Error::Twice { .. }), "{error}");
        assert!(tree_is_empty(&work(&temp)) && tree_is_empty(outside.path()));
    }
    // With something sorted in between.
    let bad = raw_tree(
        &source,
        &[
            ("120000", b"a", link.trim()),
            ("100644", b"a-b", &blob),
            ("40000", b"a", &inner),
        ],
    );
    let (temp, repository) = target(&source, Format::Sha1, &[]);
    let error = checkout(&repository, bad, &work(&temp), &Silent).unwrap_err();
    assert!(matches!(error, Error::Twice { .. }), "{error}");
}

#[test]
fn what_was_there_stays_and_is_reported() {
    let source = Repo::scripted("history", Format::Sha1);
    let (temp, repository) = target(&source, Format::Sha1, &[]);
    std::fs::write(work(&temp).join("empty"), "mine").unwrap();
    let summary = checkout(&repository, id(&source, "main"), &work(&temp), &Silent).unwrap();
    assert_eq!(summary.collisions, ["empty"]);
    assert_eq!(std::fs::read(work(&temp).join("empty")).unwrap(), b"mine");
}

#[test]
fn damage_and_failing_filters_are_named() {
    let source = Repo::scripted("worktree", Format::Sha1);
    let (temp, repository) = target(
        &source,
        Format::Sha1,
        &[
            ("filter.upper.smudge", "false"),
            ("filter.upper.required", "true"),
        ],
    );
    let error = checkout(&repository, id(&source, "main"), &work(&temp), &Silent).unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
    assert!(!repository.git_dir().join("index").exists());

    let lost = source.git(&["rev-parse", "main:many/7.txt"]);
    std::fs::remove_file(source.objects().join(&lost[..2]).join(&lost[2..])).unwrap();
    let (temp, repository) = target(&source, Format::Sha1, &[]);
    let error = checkout(&repository, id(&source, "main"), &work(&temp), &Silent).unwrap_err();
    assert!(error.to_string().contains("many/7.txt"), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

#[derive(Default)]
struct Counting {
    total: AtomicU64,
    done: AtomicU64,
    stop_at: Option<u64>,
}

impl Progress for Counting {
    fn begin(&self, _phase: &'static str, total: Option<u64>, unit: Unit) {
        assert_eq!(unit, Unit::Files);
        self.total.store(total.unwrap(), Ordering::SeqCst);
    }

    fn advance(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::SeqCst);
    }

    fn interrupted(&self) -> bool {
        self.stop_at
            .is_some_and(|at| self.done.load(Ordering::SeqCst) >= at)
    }
}

#[test]
fn progress_is_told_and_listened_to() {
    let source = Repo::scripted("worktree", Format::Sha1);
    let (temp, repository) = target(&source, Format::Sha1, &[]);
    let counting = Counting::default();
    checkout(&repository, id(&source, "main"), &work(&temp), &counting).unwrap();
    assert_eq!(counting.done.into_inner(), counting.total.into_inner());

    let (temp, repository) = target(&source, Format::Sha1, &[]);
    let counting = Counting {
        stop_at: Some(0),
        ..Counting::default()
    };
    let error = checkout(&repository, id(&source, "main"), &work(&temp), &counting).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(!repository.git_dir().join("index").exists());
}

/// However many threads write a large tree, they write the same.
#[test]
fn a_tree_of_five_thousand_files() {
    let source = Repo::empty(Format::Sha1);
    let mut stream =
        String::from("commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nx\n");
    for number in 0..5_000 {
        let mode = match number % 50 {
            0 => "120000",
            1 => "100755",
            _ => "100644",
        };
        let content = match mode {
            "120000" => format!("../{}", number + 1),
            _ => format!("file {number}\n").repeat(1 + number % 90 * (number % 3)),
        };
        stream.push_str(&format!(
            "M {mode} inline f{}/g{}/{number}\ndata {}\n{content}\n",
            number % 17,
            number % 23,
            content.len()
        ));
    }
    let import = ["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet"];
    git::with_input(source.path(), &import, stream.as_bytes());
    let tip = id(&source, "main");
    let mut first = None;
    for workers in ["1", "4"] {
        let (temp, repository) = target(&source, Format::Sha1, &[("checkout.workers", workers)]);
        apply(
            &repository,
            vec![Edit::set(validate("refs/heads/main").unwrap(), tip)],
        )
        .unwrap();
        let summary = checkout(&repository, tip, &work(&temp), &Silent).unwrap();
        assert_eq!((summary.files, summary.links), (5_000, 100));
        clean(&temp);
        let made = (
            tree(&work(&temp)),
            git::git(&work(&temp), &["ls-files", "-s"]),
            summary,
        );
        match &first {
            None => first = Some(made),
            Some(first) => assert!(*first == made, "{workers} threads write something else"),
        }
    }
    // And as Git does it.
    let theirs = TempDir::new().unwrap();
    let to = theirs.path().join("work");
    git::git(
        theirs.path(),
        &[
            "clone",
            "-q",
            source.path().to_str().unwrap(),
            to.to_str().unwrap(),
        ],
    );
    assert!(first.is_some_and(|(ours, ..)| ours == tree(&to)));
}

/// With a `git` on the search path that leaves a note when it is called.
#[test]
fn no_program_is_started() {
    use std::os::unix::fs::PermissionsExt as _;
    let source = Repo::scripted("worktree", Format::Sha1);
    let temp = TempDir::new().unwrap();
    let note = temp.path().join("note");
    let fake = temp.path().join("git");
    std::fs::write(&fake, format!("#!/bin/sh\necho \"$@\" >> {}\n", note.display())).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = git::isolated(
        std::process::Command::new(std::env::current_exe().unwrap()),
        source.path(),
    )
    .args(["--exact", "child_without_git", "--nocapture"])
    .env("PATH", temp.path())
    .env("INGOT_TEST_CHILD", temp.path())
    .env_remove("GIT_CONFIG_NOSYSTEM")
    .output()
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!note.exists(), "git {}", std::fs::read_to_string(&note).unwrap());
    assert!(temp.path().join("new/bin/run").exists());
}

#[test]
fn child_without_git() {
    let Some(temp) = std::env::var_os("INGOT_TEST_CHILD") else {
        return;
    };
    let source = Repository::from_env().unwrap();
    let found = ingot_engine::refs::resolve(&source, "HEAD~0").unwrap();
    let mut made = init(&Path::new(&temp).join("new"), &Init::default()).unwrap();
    std::fs::write(
        made.objects_dir().join("info/alternates"),
        format!("{}\n", source.objects_dir().display()),
    )
    .unwrap();
    made.edit_config(|edit| edit.set("e2ee.key", "x")).unwrap();
    ingot_engine::repository::Settings::load().unwrap();
    apply(
        &made,
        vec![Edit::set(validate("refs/heads/main").unwrap(), found.id)],
    )
    .unwrap();
    checkout(&made, found.id, made.work_dir().unwrap(), &Silent).unwrap();
}
