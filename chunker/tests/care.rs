//! gc, fsck, stats, fetch, push, prune and migrate.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use ingot_testdata::serve::daemon::Daemon;
use ingot_testdata::serve::http::Server;
use support::*;

fn commit(repo: &Repo, message: &str) {
    chunk(repo.path(), &["-q", "add", "-A"]);
    chunk(repo.path(), &["-q", "commit", "-m", message]);
}

#[test]
fn nothing_is_removed_while_a_pack_cannot_be_read() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    for number in 0..3 {
        repo.write("file.bin", noise(number, 300_000));
        commit(&repo, "version");
    }
    let packs = kept_packs(&repo.git_dir());
    assert!(packs.len() >= 3);
    let cut = fs::read(&packs[0]).unwrap()[..40].to_vec();
    fs::remove_file(&packs[0]).unwrap();
    fs::write(&packs[0], cut).unwrap();
    let mut left = kept_packs(&repo.git_dir());
    for args in [&["gc", "--grace", "0"][..], &["gc", "--grace", "0", "--dry-run"]] {
        let output = chunk_run(dir, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("nothing is removed"),
            "{said}"
        );
        let mut now = kept_packs(&repo.git_dir());
        now.sort();
        left.sort();
        assert_eq!(now, left);
    }
}

#[test]
fn garbage_goes_and_everything_else_stays() {
    for format in Format::BOTH {
        let repo = ready(format);
        let dir = repo.path();
        repo.write("kept.bin", noise(1, 500_000));
        commit(&repo, "one");
        // Held by a log, by the stash, by the index, by a linked work tree, by nothing.
        git_ok(dir, &["switch", "-qc", "side"]);
        repo.write("logged.bin", noise(2, 400_000));
        commit(&repo, "logged");
        git_ok(dir, &["switch", "-q", "main"]);
        git_ok(dir, &["branch", "-qD", "side"]);
        repo.write("kept.bin", noise(3, 450_000));
        git_ok(dir, &["stash", "-q"]);
        let linked = tempfile::tempdir().unwrap();
        let place = linked.path().join("w");
        git_ok(
            dir,
            &["worktree", "add", "-q", "--detach", place.to_str().unwrap()],
        );
        fs::write(place.join("linked.bin"), noise(4, 350_000)).unwrap();
        git_ok(&place, &["add", "linked.bin"]);
        repo.write("staged.bin", noise(5, 300_000));
        chunk(dir, &["-q", "add", "staged.bin"]);
        repo.write("garbage.bin", noise(6, 600_000));
        chunk(dir, &["-q", "add", "garbage.bin"]);
        git_ok(dir, &["rm", "-q", "--cached", "garbage.bin"]);
        fs::remove_file(dir.join("garbage.bin")).unwrap();

        let packs = kept_packs(&repo.git_dir());
        let young = json(dir, &["gc"]);
        assert_eq!(
            (&young["removed_packs"], &young["young"]),
            (&0.into(), &packs.len().into())
        );
        let dry = json(dir, &["gc", "--grace", "0", "--dry-run"]);
        assert_eq!(dry["removed_packs"], 1, "{dry}");
        assert_eq!(kept_packs(&repo.git_dir()), packs);
        let done = json(dir, &["gc", "--grace", "0"]);
        assert_eq!(done["removed_packs"], 1);
        assert!(done["freed"].as_u64().unwrap() > 590_000);
        assert_eq!(json(dir, &["gc", "--grace", "0"])["removed_packs"], 0);
        git::fsck(dir);
        assert_eq!(json(dir, &["fsck"])["damage"].as_array().unwrap().len(), 0);

        git_ok(dir, &["rm", "-q", "--cached", "staged.bin"]);
        fs::remove_file(dir.join("staged.bin")).unwrap();
        git_ok(dir, &["stash", "pop", "-q"]);
        assert!(fs::read(dir.join("kept.bin")).unwrap() == noise(3, 450_000));
        git_ok(dir, &["checkout", "-q", "-f", "main"]);
        git_ok(dir, &["checkout", "-q", "HEAD@{2}"]);
        git_ok(&place, &["checkout", "-q", "--", "linked.bin"]);
        assert!(fs::read(place.join("linked.bin")).unwrap() == noise(4, 350_000));
        // Without logs and the rest, only the last commit is left.
        git_ok(dir, &["checkout", "-q", "-f", "main"]);
        git_ok(dir, &["worktree", "remove", "-f", place.to_str().unwrap()]);
        git_ok(dir, &["reflog", "expire", "--expire=now", "--all"]);
        fs::remove_file(repo.git_dir().join("ORIG_HEAD")).ok();
        chunk(dir, &["gc", "--grace", "0"]);
        let stats = json(dir, &["stats"]);
        assert!(stats["stored"].as_u64().unwrap() < 520_000, "{stats}");
        fs::remove_file(dir.join("kept.bin")).unwrap();
        git_ok(dir, &["checkout", "-q", "--", "kept.bin"]);
        assert!(fs::read(dir.join("kept.bin")).unwrap() == noise(1, 500_000));
    }
}

#[test]
fn a_pack_that_is_needed_in_part_is_written_anew() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    repo.write("a.bin", noise(1, 500_000));
    repo.write("b.bin", noise(2, 500_000));
    chunk(dir, &["-q", "add", "-A"]);
    git_ok(dir, &["rm", "-q", "--cached", "b.bin"]);
    fs::remove_file(dir.join("b.bin")).unwrap();
    chunk(dir, &["-q", "commit", "-m", "one"]);
    let before = kept_packs(&repo.git_dir());
    assert_eq!(before.len(), 1);
    let done = json(dir, &["gc", "--grace", "0"]);
    assert!(done["freed"].as_u64().unwrap() > 490_000, "{done}");
    let after = kept_packs(&repo.git_dir());
    assert!(after.len() == 1 && after != before);
    git::fsck(dir);
    chunk(dir, &["fsck"]);
}

#[test]
fn many_small_packs_become_one() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    for number in 0..20 {
        repo.write("a.bin", noise(number, 70_000));
        chunk(dir, &["-q", "add", "-A"]);
        chunk(dir, &["-q", "commit", "-m", "next"]);
    }
    assert_eq!(kept_packs(&repo.git_dir()).len(), 20);
    assert_eq!(json(dir, &["gc"])["united_packs"], 20);
    assert_eq!(kept_packs(&repo.git_dir()).len(), 1);
    assert_eq!(json(dir, &["gc"])["united_packs"], 0);
    chunk(dir, &["fsck"]);
    clean(dir);
}

#[test]
fn adders_and_collectors_do_not_meet() {
    let repo = ready(Format::Sha1);
    let dir = repo.path().to_owned();
    repo.write("a.bin", noise(1, 200_000));
    commit(&repo, "one");
    // Two processes add different files at once while a third one collects.
    for round in 0..4u64 {
        let linked: Vec<_> = (0..2)
            .map(|number| {
                let place = tempfile::tempdir().unwrap();
                let path = place.path().join("w");
                git_ok(
                    &dir,
                    &["worktree", "add", "-q", "--detach", path.to_str().unwrap()],
                );
                fs::write(path.join("same.bin"), noise(100 + round, 400_000)).unwrap();
                fs::write(
                    path.join(format!("{number}.bin")),
                    noise(200 + round * 2 + number, 300_000),
                )
                .unwrap();
                (place, path)
            })
            .collect();
        let start = |place: &Path, args: &[&str]| {
            git::isolated(Command::new(program()), place)
                .args(args)
                .spawn()
                .unwrap()
        };
        let mut running: Vec<_> = linked
            .iter()
            .map(|(_, path)| start(path, &["-q", "add", "-A"]))
            .collect();
        let mut collector = start(&dir, &["-q", "gc", "--grace", "0"]);
        for child in &mut running {
            assert!(child.wait().unwrap().success());
        }
        let code = collector.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 11)), "{code:?}");
        for (_, path) in &linked {
            chunk(path, &["-q", "commit", "-m", "x"]);
            for name in fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()) {
                if name.extension().is_some_and(|extension| extension == "bin") {
                    let content = fs::read(&name).unwrap();
                    fs::remove_file(&name).unwrap();
                    chunk(
                        path,
                        &["-q", "restore", name.file_name().unwrap().to_str().unwrap()],
                    );
                    assert!(fs::read(&name).unwrap() == content);
                }
            }
            clean(path);
        }
        chunk(&dir, &["fsck"]);
    }
}

#[test]
fn chunks_are_published_fetched_and_pruned() {
    for format in Format::BOTH {
        let repo = ready(format);
        let dir = repo.path();
        let mut content = noise(1, 2 << 20);
        repo.write("a.bin", &content);
        commit(&repo, "one");
        content[1_000_000] ^= 1;
        repo.write("a.bin", &content);
        commit(&repo, "two");
        let temp = tempfile::tempdir().unwrap();
        let host = temp.path().join("host.git");
        git_ok(
            temp.path(),
            &[
                "init",
                "-q",
                "--bare",
                "--object-format",
                format.name(),
                "host.git",
            ],
        );
        git_ok(dir, &["remote", "add", "origin", host.to_str().unwrap()]);
        chunk(dir, &["install", "--pre-push"]);
        git_ok(dir, &["push", "-q", "origin", "main"]);
        // The hook has published; Git alone keeps it all.
        git_ok(&host, &["gc", "-q", "--prune=now"]);
        git::fsck(&host);
        assert_eq!(json(dir, &["push", "origin"])["objects"], 0);
        content[10] ^= 1;
        repo.write("a.bin", &content);
        commit(&repo, "three");
        let pushed = json(dir, &["push", "origin"]);
        assert!(pushed["objects"].as_u64().unwrap() < 8, "{pushed}");
        git_ok(dir, &["push", "-q", "origin", "main"]);
        git_ok(&host, &["gc", "-q", "--prune=now"]);

        git_ok(
            temp.path(),
            &[
                "clone",
                "-q",
                "--no-local",
                "--no-checkout",
                host.to_str().unwrap(),
                "clone",
            ],
        );
        let clone = temp.path().join("clone");
        chunk(&clone, &["install"]);
        git_ok(&clone, &["checkout", "-q", "main"]);
        assert!(fs::read(clone.join("a.bin")).unwrap() == content);
        assert_eq!(json(&clone, &["fetch", "--all"])["absent"], 0);
        chunk(&clone, &["fsck"]);

        // What the host has may go here, but for what is needed now.
        let before = json(dir, &["stats"])["stored"].as_u64().unwrap();
        let pruned = json(dir, &["prune", "origin"]);
        assert!(pruned["removed_objects"].as_u64().unwrap() > 0, "{pruned}");
        assert!(json(dir, &["stats"])["stored"].as_u64().unwrap() < before);
        fs::remove_file(dir.join("a.bin")).unwrap();
        chunk(dir, &["restore", "a.bin"]);
        assert!(fs::read(dir.join("a.bin")).unwrap() == content);
        let quick = chunk_run(dir, &["fsck", "--quick"]);
        assert_eq!(quick.status.code(), Some(1), "older versions are incomplete");
        chunk(dir, &["fetch", "--all", "origin"]);
        chunk(dir, &["fsck"]);
        chunk(dir, &["prune", "--all", "origin"]);
        let left = json(dir, &["stats"])["stored"].as_u64().unwrap();
        assert!(left < 10_000, "only pointers are left, not {left} bytes");
        git::fsck(dir);
        chunk(dir, &["fetch"]);
        clean(dir);
    }
}

#[test]
fn servers_get_and_give_chunks() {
    let temp = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(temp.path());
    let http = Server::start(temp.path());
    for (number, format) in Format::BOTH.into_iter().enumerate() {
        let name = format!("{number}.git");
        git_ok(
            temp.path(),
            &["init", "-q", "--bare", "--object-format", format.name(), &name],
        );
        git_ok(&temp.path().join(&name), &["config", "http.receivepack", "true"]);
        let repo = ready(format);
        let dir = repo.path();
        let mut content = noise(1, 2 << 20);
        repo.write("a.bin", &content);
        commit(&repo, "one");
        git_ok(dir, &["remote", "add", "origin", &http.url(&name)]);
        git_ok(
            dir,
            &["push", "-q", &temp.path().join(&name).to_string_lossy(), "main"],
        );
        assert!(json(dir, &["push"])["objects"].as_u64().unwrap() > 20);
        assert_eq!(json(dir, &["push"])["objects"], 0);
        // Sixteen bytes in a file that the server has the former version of.
        content[1_000_000..1_000_016].copy_from_slice(b"sixteen new byte");
        repo.write("a.bin", &content);
        commit(&repo, "two");
        let pushed = json(dir, &["push"]);
        assert!(pushed["bytes"].as_u64().unwrap() < 1229, "{pushed}");
        git_ok(
            dir,
            &["push", "-q", &temp.path().join(&name).to_string_lossy(), "main"],
        );
        git::fsck(&temp.path().join(&name));

        for (kind, url) in [("http", http.url(&name)), ("git", daemon.url(&name))] {
            let place = temp.path().join(format!("{kind}-{number}"));
            git_ok(
                temp.path(),
                &["clone", "-q", "--no-checkout", &url, place.to_str().unwrap()],
            );
            chunk(&place, &["install"]);
            git_ok(&place, &["checkout", "-q", "main"]);
            assert!(fs::read(place.join("a.bin")).unwrap() == content, "{kind}");
            assert_eq!(json(&place, &["fetch", "--all"])["absent"], 0);
            chunk(&place, &["fsck"]);
            clean(&place);
        }
        // Somebody else goes on from there.
        let other = temp.path().join(format!("http-{number}"));
        content.extend_from_slice(&noise(7, 100_000));
        fs::write(other.join("a.bin"), &content).unwrap();
        chunk(&other, &["-q", "add", "-A"]);
        chunk(&other, &["-q", "commit", "-m", "three"]);
        assert!(json(&other, &["push"])["objects"].as_u64().unwrap() < 8);
        git::fsck(&temp.path().join(&name));
    }
}

#[test]
fn history_is_migrated_there_and_back() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        let dir = repo.path();
        chunk(dir, &["install"]);
        repo.write("assets/big.dat", noise(1, 300_000));
        repo.write("small.dat", b"small");
        repo.commit("one");
        git_ok(dir, &["tag", "-am", "first", "v1"]);
        git_ok(dir, &["switch", "-qc", "topic"]);
        repo.write("assets/big.dat", noise(2, 310_000));
        repo.commit("two");
        git_ok(dir, &["switch", "-q", "main"]);
        repo.write("text", b"x");
        repo.commit("three");
        git_ok(dir, &["merge", "-q", "--no-edit", "topic"]);
        let subjects = git_ok(dir, &["log", "--format=%s %an %ad", "--topo-order"]);
        let old = git_ok(dir, &["rev-parse", "HEAD^{tree}"]);

        let dry = json(dir, &["migrate", "*.dat", "--above", "100000", "--dry-run"]);
        assert_eq!((&dry["files"], &dry["commits"]), (&2.into(), &4.into()));
        let done = json(dir, &["migrate", "*.dat", "--above", "100000"]);
        assert_eq!((&done["files"], &done["changed_commits"]), (&2.into(), &4.into()));
        clean(dir);
        assert_eq!(
            git_ok(dir, &["log", "--format=%s %an %ad", "--topo-order"]),
            subjects
        );
        assert!(git_ok(dir, &["cat-file", "blob", "v1:assets/big.dat"]).starts_with("chunked-file v1"));
        assert_eq!(git_ok(dir, &["cat-file", "blob", "HEAD:small.dat"]), "small");
        git_ok(dir, &["checkout", "-q", "v1"]);
        assert!(fs::read(dir.join("assets/big.dat")).unwrap() == noise(1, 300_000));
        git_ok(dir, &["checkout", "-q", "main"]);
        chunk(dir, &["fsck"]);

        chunk(dir, &["migrate", "--back", "*.dat"]);
        clean(dir);
        assert_eq!(git_ok(dir, &["rev-parse", "HEAD^{tree}"]), old);
        assert!(fs::read(dir.join("assets/big.dat")).unwrap() == noise(2, 310_000));
    }
}

#[test]
fn statistics_add_up() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    let content = noise(1, 1 << 20);
    repo.write("a.bin", &content);
    repo.write("copy.bin", &content);
    commit(&repo, "one");
    repo.write("a.bin", [content.as_slice(), &noise(2, 100_000)].concat());
    commit(&repo, "two");
    let stats = json(dir, &["stats", "--history", "--svg", "growth.svg"]);
    assert_eq!(stats["versions"], 2, "a copy is no version");
    assert_eq!(stats["logical"], (2 << 20) + 100_000);
    let deduplicated = stats["deduplicated"].as_u64().unwrap();
    assert!((1 << 20..(1 << 20) + 400_000).contains(&deduplicated));
    let history = stats["history"].as_array().unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0]["logical"], 1 << 20);
    assert_eq!(stats["files"].as_array().unwrap().len(), 2);
    let svg = fs::read_to_string(dir.join("growth.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("polyline"));
    assert!(chunk(dir, &["stats"]).contains("copy.bin"));
}
