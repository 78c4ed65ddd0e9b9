//! Opening, configuring and making repositories, with Git as judge.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use ingot_engine::repository::{Error, Init, Repository, init};
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;

fn kind(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap()
}

#[test]
fn every_shape_of_repository_opens() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let inside = repo.path().join("src");
        for found in [
            Repository::open(repo.path()).unwrap(),
            Repository::open(&repo.git_dir()).unwrap(),
            Repository::discover(&inside).unwrap(),
        ] {
            assert_eq!(real(found.git_dir()), real(&repo.git_dir()));
            assert_eq!(found.common_dir(), found.git_dir());
            assert_eq!(real(found.work_dir().unwrap()), real(repo.path()));
            assert_eq!(found.format(), kind(format));
            assert_eq!(real(found.objects_dir()), real(&repo.objects()));
            assert!(!found.is_shallow().unwrap());
            assert!(!found.is_partial().unwrap());
        }

        let temp = TempDir::new().unwrap();
        let bare = temp.path().join("bare.git");
        git::git(
            repo.path(),
            &["clone", "-q", "--bare", ".", bare.to_str().unwrap()],
        );
        let found = Repository::discover(&bare.join("refs")).unwrap();
        assert_eq!(real(found.git_dir()), real(&bare));
        assert_eq!(found.work_dir(), None);

        let linked = temp.path().join("linked");
        git::git(
            repo.path(),
            &["worktree", "add", "-q", "--detach", linked.to_str().unwrap()],
        );
        for found in [
            Repository::open(&linked).unwrap(),
            Repository::discover(&linked.join("src")).unwrap(),
            Repository::open(&repo.git_dir().join("worktrees/linked")).unwrap(),
        ] {
            assert_eq!(
                real(found.git_dir()),
                real(&repo.git_dir().join("worktrees/linked"))
            );
            assert_eq!(real(found.common_dir()), real(&repo.git_dir()));
            assert_eq!(real(found.work_dir().unwrap()), real(&linked));
        }

        let apart = temp.path().join("apart");
        let storage = temp.path().join("storage");
        git::git(
            repo.path(),
            &[
                "clone",
                "-q",
                "--separate-git-dir",
                storage.to_str().unwrap(),
                ".",
                apart.to_str().unwrap(),
            ],
        );
        let found = Repository::discover(&apart.join("src")).unwrap();
        assert_eq!(real(found.git_dir()), real(&storage));
        assert_eq!(real(found.work_dir().unwrap()), real(&apart));
    }
}

#[test]
fn shallow_and_partial_clones_are_recognised() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    let temp = TempDir::new().unwrap();
    let url = format!("file://{}", repo.path().display());
    let shallow = temp.path().join("shallow");
    git::git(temp.path(), &["clone", "-q", "--depth", "1", &url, "shallow"]);
    let found = Repository::open(&shallow).unwrap();
    assert!(found.is_shallow().unwrap());
    assert_eq!(
        found.shallow_commits().unwrap()[0].to_string(),
        git::git(&shallow, &["rev-parse", "HEAD"])
    );
    assert!(!found.is_partial().unwrap());

    git::git(
        temp.path(),
        &["clone", "-q", "--bare", "--filter=blob:none", &url, "partial"],
    );
    let partial = Repository::open(&temp.path().join("partial"))
        .unwrap()
        .partial()
        .unwrap();
    assert_eq!(partial.remotes, ["origin"]);
    assert!(partial.packs[0].ends_with(".promisor"));
}

#[test]
fn what_cannot_be_handled_is_refused_by_name() {
    let temp = TempDir::new().unwrap();
    git::git(temp.path(), &["init", "-q", "--ref-format=reftable", "tables"]);
    let error = Repository::open(&temp.path().join("tables")).unwrap_err();
    assert!(matches!(error, Error::RefStorage { .. }), "{error}");
    assert!(error.to_string().contains("reftable"), "{error}");
    assert!(!error.to_string().contains('\n'));

    let repo = Repo::empty(Format::Sha256);
    repo.git(&["config", "extensions.bogus", "1"]);
    let error = Repository::discover(repo.path()).unwrap_err();
    assert!(
        matches!(error, Error::Extension { ref name, .. } if name == "bogus"),
        "{error}"
    );
    let error = Repository::open(temp.path()).unwrap_err();
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
    let error = Repository::discover(temp.path()).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[test]
fn repositories_of_other_people_are_refused_with_advice() {
    let repo = Repo::scripted("history", Format::Sha1);
    let status = Command::new("chown")
        .arg("-R")
        .arg("12345")
        .arg(repo.path())
        .output()
        .unwrap();
    if !status.status.success() {
        return; // only root can give files away
    }
    let error = Repository::discover(repo.path()).unwrap_err();
    assert!(matches!(error, Error::Ownership { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("git config --global --add safe.directory"),
        "{error}"
    );
    assert!(Repository::open(&repo.git_dir()).is_err());
}

/// Runs one of the tests below in a process of its own, with `environment`.
fn in_child(test: &str, dir: &Path, environment: &[(&str, &str)]) {
    let mut command = git::isolated(Command::new(std::env::current_exe().unwrap()), dir);
    command.args(["--exact", test, "--include-ignored", "--nocapture"]);
    command.env("INGOT_TEST_CHILD", "1");
    for (name, value) in environment {
        if value.is_empty() {
            command.env_remove(name);
        } else {
            command.env(name, value);
        }
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn is_child() -> bool {
    std::env::var_os("INGOT_TEST_CHILD").is_some()
}

#[test]
fn configuration_comes_from_everywhere() {
    let repo = Repo::scripted("history", Format::Sha1);
    repo.write("more.inc", "[e2ee]\n\tkey = included\n\tkey = ~/second\n");
    repo.git(&["config", "include.path", "../more.inc"]);
    repo.git(&["config", "remote.a.b/c.e2ee-key", "of the remote"]);
    repo.git(&["config", "--add", "remote.a.b/c.url", "one"]);
    repo.git(&["config", "--add", "remote.a.b/c.url", "two"]);
    let home = TempDir::new().unwrap();
    std::fs::write(
        home.path().join("global"),
        "[e2ee]\n\tkey = global\n[user]\n\tname = G\n",
    )
    .unwrap();
    std::fs::write(home.path().join("system"), "[e2ee]\n\tkey = system\n").unwrap();
    let home_text = home.path().to_str().unwrap();
    in_child(
        "child_reads_configuration",
        repo.path(),
        &[
            ("HOME", home_text),
            ("GIT_CONFIG_NOSYSTEM", ""),
            ("GIT_CONFIG_SYSTEM", &format!("{home_text}/system")),
            ("GIT_CONFIG_GLOBAL", &format!("{home_text}/global")),
            (
                "GIT_CONFIG_PARAMETERS",
                "'e2ee.key'='last, by -c' 'e2ee.flag' 'x.a=b.y'=' kept '",
            ),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "e2ee.key"),
            ("GIT_CONFIG_VALUE_0", "counted"),
        ],
    );
}

#[test]
fn child_reads_configuration() {
    if !is_child() {
        return;
    }
    let repository = Repository::from_env().unwrap();
    let config = repository.config();
    assert_eq!(
        config.strings("e2ee.key"),
        [
            "system",
            "global",
            "included",
            "~/second",
            "counted",
            "last, by -c"
        ]
    );
    assert_eq!(config.string("e2ee.key").unwrap(), "last, by -c");
    assert_eq!(config.boolean("e2ee.flag").unwrap(), Some(true));
    assert_eq!(config.string("x.a=b.y").unwrap(), " kept ");
    assert_eq!(config.string("remote.a.b/c.e2ee-key").unwrap(), "of the remote");
    assert_eq!(config.strings("remote.a.b/c.url"), ["one", "two"]);
    assert_eq!(config.names("remote"), ["a.b/c"]);
    assert_eq!(config.string("nodot"), None);
    assert_eq!(config.boolean("nodot").unwrap(), None);
    assert!(config.boolean("remote.a.b/c.url").is_err());
    assert_eq!(config.integer("nothing.here").unwrap(), None);

    let settings = ingot_engine::repository::Settings::load().unwrap();
    let config = settings.config();
    assert_eq!(
        config.strings("e2ee.key"),
        ["system", "global", "counted", "last, by -c"]
    );
    assert_eq!(config.string("user.name").unwrap(), "G");
    assert_eq!(config.string("x.a=b.y").unwrap(), " kept ");
}

#[test]
fn the_environment_chooses_the_repository() {
    let repo = Repo::scripted("history", Format::Sha1);
    let objects = TempDir::new().unwrap();
    std::fs::create_dir_all(objects.path().join("info")).unwrap();
    std::fs::write(
        objects.path().join("info/alternates"),
        format!("{}\n", repo.objects().display()),
    )
    .unwrap();
    repo.git(&["worktree", "add", "-q", "--detach", "wt"]);
    in_child(
        "child_opens_from_environment",
        repo.path(),
        &[("GIT_DIR", ".git")],
    );
    in_child(
        "child_opens_from_environment",
        repo.path(),
        &[("GIT_DIR", ".git/worktrees/wt"), ("GIT_COMMON_DIR", ".git")],
    );
    in_child(
        "child_opens_from_environment",
        &repo.git_dir(),
        &[
            ("GIT_DIR", "."),
            ("GIT_OBJECT_DIRECTORY", objects.path().to_str().unwrap()),
        ],
    );
    in_child("child_opens_from_environment", &repo.path().join("wt/src"), &[]);
    let other = Repo::empty(Format::Sha1);
    let borrowed = format!("/nowhere:{}", repo.objects().display());
    in_child(
        "child_borrows_objects",
        other.path(),
        &[
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", &borrowed),
            ("INGOT_TEST_WANTED", &repo.git(&["rev-parse", "HEAD"])),
        ],
    );
    let status = Command::new("chown")
        .arg("-R")
        .arg("12345")
        .arg(repo.path())
        .output()
        .unwrap();
    if status.status.success() {
        // Named explicitly, it is trusted, as Git does.
        in_child(
            "child_opens_from_environment",
            repo.path(),
            &[("GIT_DIR", ".git")],
        );
    }
}

#[test]
fn child_opens_from_environment() {
    if !is_child() {
        return;
    }
    let repository = Repository::from_env().unwrap();
    assert!(repository.git_dir().is_absolute());
    assert!(repository.common_dir().join("refs/heads/main").is_file());
    let expected = std::env::var_os("GIT_OBJECT_DIRECTORY")
        .map_or_else(|| repository.common_dir().join("objects"), PathBuf::from);
    assert_eq!(real(repository.objects_dir()), real(&expected));
    repository.gix().head_commit().unwrap();
}

#[test]
fn child_borrows_objects() {
    if !is_child() {
        return;
    }
    let wanted = std::env::var("INGOT_TEST_WANTED").unwrap();
    let wanted = gix_hash::ObjectId::from_hex(wanted.as_bytes()).unwrap();
    let mut repository = Repository::from_env().unwrap();
    assert!(repository.store().unwrap().contains(&wanted));
    repository.reload().unwrap();
    assert!(repository.store().unwrap().contains(&wanted));
}

#[test]
fn configuration_is_written_as_git_reads_it() {
    let repo = Repo::empty(Format::Sha1);
    let path = repo.git_dir().join("config");
    let before = std::fs::read_to_string(&path).unwrap() + "# a remark\n[user]\n  name = Al ; who\n";
    std::fs::write(&path, &before).unwrap();
    let mut repository = Repository::open(repo.path()).unwrap();
    repository
        .edit_config(|edit| {
            edit.set("remote.my.store/x.url", "e2ee::/some where/\"odd\"#;\\path")?;
            edit.add(
                "remote.my.store/x.fetch",
                "+refs/heads/*:refs/remotes/my.store/x/*",
            )?;
            edit.add("remote.my.store/x.fetch", "+refs/tags/*:refs/tags/*")?;
            edit.set("user.name", " Zoë\tand\nmore ")?;
            edit.set("e2ee.empty", "")?;
            edit.set("e2ee.once", "first")?;
            edit.set("e2ee.once", "second")?;
            assert_eq!(edit.values("e2ee.once"), ["second"]);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(
        repo.git(&["config", "remote.my.store/x.url"]),
        "e2ee::/some where/\"odd\"#;\\path"
    );
    assert_eq!(
        repo.git(&["config", "--get-all", "remote.my.store/x.fetch"]),
        "+refs/heads/*:refs/remotes/my.store/x/*\n+refs/tags/*:refs/tags/*"
    );
    let name = git::run(repo.path(), &["config", "-z", "user.name"]);
    assert_eq!(String::from_utf8(name.stdout).unwrap(), " Zoë\tand\nmore \0");
    assert_eq!(repo.git(&["config", "e2ee.empty"]), "");
    assert_eq!(repo.git(&["config", "--get-all", "e2ee.once"]), "second");
    assert_eq!(repository.config().string("e2ee.once").unwrap(), "second");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("# a remark\n"), "{text}");
    assert!(text.contains("\tlogallrefupdates = true\n"), "{text}");

    repository
        .edit_config(|edit| {
            assert_eq!(edit.unset("remote.my.store/x.fetch")?, 2);
            assert_eq!(edit.unset("no.such")?, 0);
            assert_eq!(edit.remove_section("e2ee", None), 1);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(
        git::run(repo.path(), &["config", "--get-all", "remote.my.store/x.fetch"])
            .status
            .code(),
        Some(1)
    );
    assert_eq!(
        git::run(repo.path(), &["config", "e2ee.once"]).status.code(),
        Some(1)
    );
}

#[test]
fn configuration_stays_when_the_change_fails_or_somebody_else_writes() {
    let repo = Repo::empty(Format::Sha1);
    let path = repo.git_dir().join("config");
    let before = std::fs::read(&path).unwrap();
    let mut repository = Repository::open(repo.path()).unwrap();
    for key in ["nodot", "a b.c", "x.1y", ".y"] {
        let result = repository.edit_config(|edit| {
            edit.set("e2ee.good", "1")?;
            edit.set(key, "1")
        });
        assert!(result.is_err(), "{key}");
    }
    std::fs::write(repo.git_dir().join("config.lock"), "").unwrap();
    let error = repository
        .edit_config(|edit| edit.set("e2ee.key", "1"))
        .unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn new_repositories_are_what_git_would_make() {
    for format in Format::BOTH {
        for bare in [false, true] {
            let temp = TempDir::new().unwrap();
            let ours = temp.path().join("new/ours");
            let what = Init {
                bare,
                format: kind(format),
                branch: Some("trunk".to_owned()),
                settings: Vec::new(),
            };
            let repository = init(&ours, &what).unwrap();
            assert_eq!(repository.format(), kind(format));
            assert_eq!(repository.work_dir().is_none(), bare);
            let mut args = vec!["init", "-q", "-b", "trunk", "--object-format", format.name()];
            if bare {
                args.push("--bare");
            }
            args.push("theirs");
            git::git(temp.path(), &args);
            let theirs = temp.path().join("theirs");
            let inner = if bare { "" } else { ".git" };
            for file in ["config", "HEAD", "description"] {
                assert_eq!(
                    std::fs::read_to_string(ours.join(inner).join(file)).unwrap(),
                    std::fs::read_to_string(theirs.join(inner).join(file)).unwrap()
                );
            }
            git::fsck(&ours);
            if !bare {
                std::fs::write(ours.join("file"), "text").unwrap();
                git::git(&ours, &["add", "."]);
                git::git(&ours, &["commit", "-q", "-m", "works"]);
                assert_eq!(git::git(&ours, &["branch", "--show-current"]), "trunk");
            }
            assert!(matches!(init(&ours, &what), Err(Error::Exists { .. })));
        }
    }
    let temp = TempDir::new().unwrap();
    let bad = Init {
        branch: Some("../escape".to_owned()),
        ..Init::default()
    };
    assert!(init(&temp.path().join("x"), &bad).is_err());
    assert!(!temp.path().join("x").exists());
}
