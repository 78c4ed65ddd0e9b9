//! Add, commit, switch and restore without Git, judged by Git.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use ingot_testdata::git;
use ingot_testdata::random::Numbers;
use ingot_testdata::repo::{Format, Repo};
use support::*;

fn read(dir: &Path, path: &str) -> Vec<u8> {
    fs::read(dir.join(path)).unwrap()
}

/// The same files twice: one repository for Git, one for the program.
struct Twins {
    git: Repo,
    own: Repo,
}

impl Twins {
    fn new(format: Format) -> Twins {
        Twins {
            git: ready(format),
            own: ready(format),
        }
    }

    fn write(&self, path: &str, content: &[u8]) {
        self.git.write(path, content);
        self.own.write(path, content);
    }

    fn remove(&self, path: &str) {
        for repo in [&self.git, &self.own] {
            let place = repo.path().join(path);
            if place.is_dir() {
                fs::remove_dir_all(place).unwrap();
            } else {
                fs::remove_file(place).unwrap();
            }
        }
    }

    /// Commits in both and compares everything that Git can see.
    #[track_caller]
    fn commit(&self, message: &str) {
        git_ok(self.git.path(), &["add", "-A"]);
        chunk(self.own.path(), &["-q", "add", "-A"]);
        let index = |repo: &Repo| git_ok(repo.path(), &["ls-files", "-s"]);
        assert_eq!(index(&self.own), index(&self.git));
        git_ok(self.git.path(), &["commit", "-qm", message]);
        chunk(self.own.path(), &["-q", "commit", "-m", message]);
        let head = |repo: &Repo| git_ok(repo.path(), &["rev-parse", "HEAD", "HEAD^{tree}"]);
        assert_eq!(head(&self.own), head(&self.git));
        clean(self.own.path());
        assert_eq!(chunk(self.own.path(), &["status"]), "");
        let log = |repo: &Repo| git_ok(repo.path(), &["reflog", "--format=%H %gs"]);
        assert_eq!(log(&self.own), log(&self.git));
    }
}

#[test]
fn the_same_trees_index_commits_and_logs_as_git() {
    for format in Format::BOTH {
        let twins = Twins::new(format);
        twins.write("big.bin", &noise(1, 1_500_000));
        twins.write("zeros.bin", &vec![0; 700_000]);
        twins.write("text.bin", &text(1, 400_000));
        twins.write("small.bin", b"small");
        twins.write("empty", b"");
        twins.write("folder/deeper/file.txt", b"text\n");
        twins.write("folder.txt", b"sorts before its folder\n");
        twins.write("folder-x/y", b"1");
        #[cfg(unix)]
        for repo in [&twins.git, &twins.own] {
            use std::os::unix::fs::PermissionsExt as _;
            std::os::unix::fs::symlink("folder/deeper", repo.path().join("link")).unwrap();
            let script = repo.path().join("script.sh");
            fs::write(&script, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        }
        twins.write(".gitignore", b"*.log\nbuild/\n");
        twins.write("noise.log", b"ignored");
        twins.write("build/out", b"ignored");
        twins.commit("one");

        let mut big = noise(1, 1_500_000);
        big.insert(0, 7);
        twins.write("big.bin", &big);
        twins.remove("folder");
        twins.write("folder", b"a file now");
        twins.remove("folder-x/y");
        twins.write("folder-x/y/z", b"a folder now");
        twins.commit("two");
        twins.remove("small.bin");
        twins.write("noise.log", b"still ignored");
        twins.write("added.txt", b"new\r\nlines\r\n");
        twins.commit("three");
    }
}

#[test]
fn conversions_are_gits() {
    let twins = Twins::new(Format::Sha1);
    twins.write(
        ".gitattributes",
        b"*.bin filter=chunk diff=chunk merge=chunk -text\n*.txt text\n*.crlf text eol=crlf\n*.id ident\n",
    );
    twins.write("a.txt", b"one\r\ntwo\r\n");
    twins.write("a.crlf", b"one\r\ntwo\r\n");
    twins.write("a.id", b"$Id$\n");
    twins.write("a.bin", &noise(3, 100_000));
    twins.commit("one");
    chunk(twins.own.path(), &["switch", "-c", "topic"]);
    fs::remove_file(twins.own.path().join("a.crlf")).unwrap();
    chunk(twins.own.path(), &["restore", "a.crlf"]);
    assert_eq!(read(twins.own.path(), "a.crlf"), b"one\r\ntwo\r\n");
    clean(twins.own.path());
}

#[test]
fn switching_moves_files_as_git_does() {
    for format in Format::BOTH {
        let repo = ready(format);
        let dir = repo.path();
        let big = noise(4, 3_000_000);
        repo.write("big.bin", &big);
        repo.write("kept.txt", b"kept\n");
        repo.write("gone/file", b"gone\n");
        chunk(dir, &["-q", "add", "-A"]);
        chunk(dir, &["-q", "commit", "-m", "one"]);
        chunk(dir, &["switch", "-c", "topic"]);
        assert_eq!(git_ok(dir, &["symbolic-ref", "HEAD"]), "refs/heads/topic");
        let longer = [big.clone(), noise(5, 100_000)].concat();
        repo.write("big.bin", &longer);
        fs::remove_dir_all(dir.join("gone")).unwrap();
        repo.write("new/file", b"new\n");
        chunk(dir, &["-q", "add", "-A"]);
        chunk(dir, &["-q", "commit", "-m", "two"]);
        for _ in 0..2 {
            chunk(dir, &["switch", "main"]);
            assert!(read(dir, "big.bin") == big);
            assert!(!dir.join("new").exists() && dir.join("gone/file").exists());
            clean(dir);
            chunk(dir, &["checkout", "topic"]);
            assert!(read(dir, "big.bin") == longer);
            assert!(!dir.join("gone").exists() && dir.join("new/file").exists());
            clean(dir);
        }
        chunk(dir, &["switch", "--detach", "main"]);
        assert_eq!(
            git_run(dir, &["symbolic-ref", "-q", "HEAD"]).status.code(),
            Some(1)
        );
        clean(dir);
        // What Git checks out, the program finds clean, and the reverse.
        git_ok(dir, &["checkout", "-q", "topic"]);
        assert_eq!(chunk(dir, &["status"]), "");
        let oneline = chunk(dir, &["log", "--oneline"]);
        assert_eq!(
            oneline.trim_end(),
            git_ok(dir, &["log", "--format=%h %s", "--abbrev=7"])
        );
        let diff = chunk(dir, &["diff", "main", "topic"]);
        assert!(
            diff.contains("M\tbig.bin\t") && diff.contains("A\tnew/file") && diff.contains("D\tgone/file"),
            "{diff}"
        );
        chunk(dir, &["fsck"]);
    }
}

#[test]
fn local_changes_are_never_lost_without_force() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    repo.write("a.bin", noise(1, 200_000));
    repo.write("b.txt", b"one\n");
    chunk(dir, &["-q", "add", "-A"]);
    chunk(dir, &["-q", "commit", "-m", "one"]);
    chunk(dir, &["switch", "-c", "topic"]);
    repo.write("a.bin", noise(2, 200_000));
    repo.write("b.txt", b"two\n");
    repo.write("c.txt", b"from topic\n");
    chunk(dir, &["-q", "add", "-A"]);
    chunk(dir, &["-q", "commit", "-m", "two"]);
    chunk(dir, &["switch", "main"]);

    let refused = |args: &[&str], name: &str| {
        let output = chunk_run(dir, args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(name), "{told}");
        assert_eq!(git_ok(dir, &["symbolic-ref", "--short", "HEAD"]), "main");
    };
    // Modified, same length and all; staged; untracked in the way.
    repo.write("a.bin", noise(3, 200_000));
    refused(&["switch", "topic"], "a.bin");
    assert!(read(dir, "a.bin") == noise(3, 200_000));
    refused(&["restore", "a.bin"], "a.bin");
    chunk(dir, &["-q", "add", "a.bin"]);
    refused(&["switch", "topic"], "a.bin");
    git_ok(dir, &["reset", "-q", "--hard"]);
    repo.write("c.txt", b"untracked\n");
    refused(&["switch", "topic"], "c.txt");
    assert_eq!(read(dir, "c.txt"), b"untracked\n");
    fs::remove_file(dir.join("c.txt")).unwrap();
    // A folder with untracked files where a file belongs, and a file where a folder belongs.
    fs::create_dir(dir.join("c.txt")).unwrap();
    repo.write("c.txt/mine", b"untracked\n");
    refused(&["switch", "topic"], "c.txt/mine");
    fs::remove_dir_all(dir.join("c.txt")).unwrap();
    // What both branches have alike may be changed.
    repo.write("d.txt", b"untracked and in nobody's way\n");
    repo.write("b.txt", b"local\n");
    refused(&["switch", "topic"], "b.txt");
    chunk(dir, &["switch", "--force", "topic"]);
    assert_eq!(read(dir, "b.txt"), b"two\n");
    assert_eq!(read(dir, "d.txt"), b"untracked and in nobody's way\n");
    repo.write("a.bin", noise(9, 70_000));
    chunk(dir, &["restore", "--force", "a.bin"]);
    assert!(read(dir, "a.bin") == noise(2, 200_000));
    chunk(dir, &["restore", "-s", "main", "a.bin"]);
    assert!(read(dir, "a.bin") == noise(1, 200_000));
}

#[test]
fn status_letters_are_gits() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    for name in ["kept", "changed", "gone", "staged", "staged-gone", "type"] {
        repo.write(name, format!("{name}\n"));
    }
    repo.write("big.bin", noise(1, 100_000));
    chunk(dir, &["-q", "add", "-A"]);
    chunk(dir, &["-q", "commit", "-m", "one"]);
    repo.write("changed", b"other\n");
    repo.write("big.bin", noise(2, 100_000));
    fs::remove_file(dir.join("gone")).unwrap();
    repo.write("staged", b"staged\nmore\n");
    repo.write("staged-new", b"new\n");
    fs::remove_file(dir.join("staged-gone")).unwrap();
    chunk(dir, &["-q", "add", "staged", "staged-new", "staged-gone"]);
    repo.write("staged-new", b"newer\n");
    repo.write("untracked", b"x");
    repo.write("folder/one", b"x");
    repo.write("folder/two", b"x");
    repo.write("ignored.log", b"x");
    repo.write(".git/info/exclude", b"*.log\n");
    let mut ours: Vec<String> = chunk(dir, &["status"]).lines().map(str::to_owned).collect();
    let mut gits: Vec<String> = git_ok(dir, &["status", "--porcelain"])
        .lines()
        .map(str::to_owned)
        .collect();
    // `trim_end` of the helper takes nothing away but line ends; the first line may start with a blank.
    ours.sort();
    gits.sort();
    assert_eq!(ours, gits);
    let json = json(dir, &["status"]);
    assert_eq!(json["branch"], "main");
    assert_eq!(json["files"].as_array().unwrap().len(), gits.len());
}

#[test]
fn appending_inserting_and_touching_store_little() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    chunk(dir, &["-q", "add", "."]);
    let mut content = noise(1, 8 << 20);
    let add = |content: &[u8]| {
        repo.write("a.bin", content);
        let bytes = json(dir, &["add", "a.bin"])["new_chunk_bytes"].as_u64().unwrap();
        chunk(dir, &["-q", "commit", "--allow-empty", "-m", "next"]);
        bytes
    };
    assert_eq!(add(&content), 8 << 20);
    let packs = kept_packs(&repo.git_dir()).len();
    assert_eq!(add(&content), 0);
    assert_eq!(
        kept_packs(&repo.git_dir()).len(),
        packs,
        "equal content makes no pack"
    );
    content.extend_from_slice(&noise(2, 1 << 20));
    let appended = add(&content);
    assert!((1 << 20..(1 << 20) + 300_000).contains(&appended), "{appended}");
    content.insert(0, 1);
    let inserted = add(&content);
    assert!(inserted < 1000, "{inserted}");
    content[5_000_000..5_000_016].copy_from_slice(b"sixteen new byte");
    let edited = add(&content);
    assert!(edited < 1000, "{edited}");
    content.drain(3_000_000..3_500_000);
    let deleted = add(&content);
    assert!(deleted < 600_000, "{deleted}");
    content.truncate(4_000_000);
    let cut = add(&content);
    assert!(cut < 300_000, "{cut}");
    content.clear();
    assert_eq!(add(&content), 0);
    clean(dir);
    // Every version comes back.
    let versions = git_ok(dir, &["rev-list", "HEAD"]);
    for commit in versions.lines() {
        chunk(dir, &["switch", "--detach", commit]);
        clean(dir);
    }
    chunk(dir, &["fsck"]);
}

#[test]
fn any_sequence_of_edits_comes_back() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    let mut numbers = Numbers::new(11);
    let mut content = noise(0, 600_000);
    let mut versions = Vec::new();
    for step in 0..15u64 {
        let at = numbers.below(content.len().max(1)).min(content.len());
        let length = numbers.below(200_000);
        match numbers.below(6) {
            0 => drop(content.splice(at..at, noise(step, length))),
            1 => drop(content.drain(at..(at + length).min(content.len()))),
            2 => content.extend(noise(step, length)),
            3 => content.extend(vec![0; length * 4]),
            4 => drop(content.splice(at..at, text(step, length))),
            _ => {
                let copy = content[at..(at + length).min(content.len())].to_vec();
                content.splice(0..0, copy);
            }
        }
        repo.write("a.bin", &content);
        chunk(dir, &["-q", "add", "."]);
        chunk(dir, &["-q", "commit", "--allow-empty", "-m", "step"]);
        versions.push((git_ok(dir, &["rev-parse", "HEAD"]), content.clone()));
    }
    for (commit, content) in versions.iter().rev() {
        chunk(dir, &["-q", "switch", "--detach", commit]);
        assert!(&read(dir, "a.bin") == content);
    }
    clean(dir);
    chunk(dir, &["fsck"]);
}

#[test]
fn a_sparse_file_of_five_gigabytes() {
    use std::os::unix::fs::FileExt as _;
    use std::os::unix::fs::MetadataExt as _;
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    let path = dir.join("disk.bin");
    let file = fs::File::create(&path).unwrap();
    file.set_len(5 << 30).unwrap();
    file.write_all_at(&noise(1, 1 << 20), 3 << 30).unwrap();
    file.write_all_at(b"end", (5 << 30) - 3).unwrap();
    drop(file);
    chunk(dir, &["-q", "add", "."]);
    chunk(dir, &["-q", "commit", "-m", "disk"]);
    let stats = json(dir, &["stats"]);
    assert_eq!(stats["logical"], 5u64 << 30);
    assert!(stats["stored"].as_u64().unwrap() < 3 << 20, "{stats}");
    fs::remove_file(&path).unwrap();
    chunk(dir, &["restore", "disk.bin"]);
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.len(), 5 << 30);
    assert!(meta.blocks() * 512 < 16 << 20, "holes are holes again");
    let mut bytes = vec![0; 1 << 20];
    fs::File::open(&path)
        .unwrap()
        .read_exact_at(&mut bytes, 3 << 30)
        .unwrap();
    assert!(bytes == noise(1, 1 << 20));
    assert_eq!(chunk(dir, &["status"]), "");
}

#[test]
fn refusals_have_reasons() {
    let repo = ready(Format::Sha1);
    let dir = repo.path();
    let refused = |args: &[&str], text: &str, code: i32| {
        let output = chunk_run(dir, args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(text) && told.lines().count() == 1, "{told}");
    };
    refused(&["commit", "-m", "x"], "nothing to commit", 1);
    refused(&["add", "absent"], "'absent' matches no file", 1);
    refused(&["add", ".git/config"], "belongs to the repository", 1);
    refused(&["add", "/etc/hostname"], "outside", 1);
    refused(&["switch", "nowhere"], "no branch 'nowhere'", 1);
    refused(&["add"], "git-chunk --help", 2);
    repo.write("a.log", b"x");
    repo.write(".gitignore", b"*.log\n");
    refused(&["add", "a.log"], "ignored", 1);
    chunk(dir, &["add", "--force", "a.log"]);
    fs::write(repo.git_dir().join("index.lock"), b"").unwrap();
    refused(&["add", "."], "is locked", 11);
    fs::remove_file(repo.git_dir().join("index.lock")).unwrap();
    git_ok(dir, &["config", "commit.gpgSign", "true"]);
    refused(&["commit", "-m", "x"], "does not sign", 1);
    chunk(dir, &["commit", "--no-gpg-sign", "-m", "x"]);
    chunk(dir, &["commit", "--no-gpg-sign", "--amend", "-m", "y"]);
    assert_eq!(git_ok(dir, &["log", "--format=%s"]), "y");
    git::fsck(dir);
    let outside = tempfile::tempdir().unwrap();
    assert_eq!(chunk_run(outside.path(), &["status"]).status.code(), Some(1));
    chunk(
        outside.path(),
        &["init", "new", "--track", "*.mov", "-b", "trunk"],
    );
    assert_eq!(
        git_ok(&outside.path().join("new"), &["symbolic-ref", "--short", "HEAD"]),
        "trunk"
    );
    assert!(chunk(&outside.path().join("new"), &["track"]).contains("*.mov"));
}
