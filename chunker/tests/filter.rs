//! The filter under stock Git.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};
use support::*;

fn read(repo: &Repo, path: &str) -> Vec<u8> {
    fs::read(repo.path().join(path)).unwrap()
}

#[test]
fn add_commit_checkout_switch_merge_stash_and_worktree() {
    for format in Format::BOTH {
        let repo = ready(format);
        let first = noise(1, 900_000);
        repo.write("a.bin", &first);
        repo.write("small.bin", b"few bytes");
        repo.write("plain.txt", b"text\n");
        git_ok(repo.path(), &["add", "-A"]);
        git_ok(repo.path(), &["commit", "-qm", "one"]);
        clean(repo.path());
        let pointer = git_ok(repo.path(), &["cat-file", "blob", "HEAD:a.bin"]);
        assert!(
            pointer.starts_with("chunked-file v1\nsize               900000\nblake3 "),
            "{pointer}"
        );
        assert_eq!(
            git_ok(repo.path(), &["cat-file", "blob", "HEAD:small.bin"]),
            "few bytes"
        );

        let mut second = first.clone();
        second.splice(400_000..400_000, *b"inserted");
        git_ok(repo.path(), &["switch", "-qc", "topic"]);
        repo.write("a.bin", &second);
        git_ok(repo.path(), &["commit", "-qam", "two"]);
        git_ok(repo.path(), &["switch", "-q", "main"]);
        assert!(read(&repo, "a.bin") == first);
        git_ok(repo.path(), &["checkout", "-q", "topic"]);
        assert!(read(&repo, "a.bin") == second);
        clean(repo.path());

        // A change beside it merges, a change of the same file does not.
        git_ok(repo.path(), &["switch", "-q", "main"]);
        repo.write("plain.txt", b"other text\n");
        git_ok(repo.path(), &["commit", "-qam", "three"]);
        git_ok(repo.path(), &["merge", "-q", "--no-edit", "topic"]);
        assert!(read(&repo, "a.bin") == second);
        clean(repo.path());
        git_ok(repo.path(), &["switch", "-qc", "left", "HEAD~1"]);
        repo.write("a.bin", noise(2, 500_000));
        git_ok(repo.path(), &["commit", "-qam", "left"]);
        let merged = git_run(repo.path(), &["merge", "topic"]);
        assert!(!merged.status.success());
        let told = String::from_utf8_lossy(&merged.stderr).into_owned();
        assert!(told.contains("changed on both sides"), "{told}");
        git_ok(repo.path(), &["checkout", "--theirs", "a.bin"]);
        assert!(read(&repo, "a.bin") == second);
        git_ok(repo.path(), &["add", "a.bin"]);
        git_ok(repo.path(), &["commit", "-qm", "merged"]);
        clean(repo.path());

        let third = noise(3, 700_000);
        repo.write("a.bin", &third);
        git_ok(repo.path(), &["stash", "-q"]);
        assert!(read(&repo, "a.bin") == second);
        git_ok(repo.path(), &["stash", "pop", "-q"]);
        assert!(read(&repo, "a.bin") == third);
        git_ok(repo.path(), &["checkout", "-q", "--", "a.bin"]);

        let other = tempfile::tempdir().unwrap();
        let place = other.path().join("linked");
        git_ok(
            repo.path(),
            &["worktree", "add", "-q", place.to_str().unwrap(), "main"],
        );
        assert!(fs::read(place.join("a.bin")).unwrap() == second);
        assert_eq!(git_ok(&place, &["status", "--porcelain"]), "");

        // Git's own collection leaves chunks alone.
        git_ok(repo.path(), &["gc", "-q", "--prune=now"]);
        fs::remove_file(repo.path().join("a.bin")).unwrap();
        git_ok(repo.path(), &["checkout", "-q", "--", "a.bin"]);
        assert!(read(&repo, "a.bin") == second);
        chunk(repo.path(), &["fsck"]);
    }
}

#[test]
fn hundreds_of_files_are_one_conversation() {
    let repo = ready(Format::Sha1);
    for number in 0..200 {
        repo.write(
            &format!("folder{}/{number}.bin", number % 7),
            noise(number, 66_000 + number as usize * 11),
        );
    }
    git_ok(repo.path(), &["add", "-A"]);
    git_ok(repo.path(), &["commit", "-qm", "many"]);
    clean(repo.path());
    let packs = kept_packs(&repo.git_dir());
    assert!(packs.len() <= 2, "{} packs", packs.len());
    let again = tempfile::tempdir().unwrap();
    git_ok(
        repo.path(),
        &[
            "worktree",
            "add",
            "-q",
            "--detach",
            again.path().join("w").to_str().unwrap(),
        ],
    );
    for number in 0..200 {
        let name = format!("folder{}/{number}.bin", number % 7);
        assert!(
            fs::read(again.path().join("w").join(&name)).unwrap()
                == noise(number, 66_000 + number as usize * 11)
        );
    }
}

#[test]
fn missing_chunks_leave_pointers_that_stay_clean_until_they_are_fetched() {
    let repo = ready(Format::Sha1);
    let content = noise(5, 800_000);
    repo.write("a.bin", &content);
    repo.commit_with_filter("one");
    let temp = tempfile::tempdir().unwrap();
    let clone = temp.path().join("clone");
    // A host that knows nothing of chunks has only what is reachable.
    git_ok(
        temp.path(),
        &[
            "clone",
            "-q",
            "--no-local",
            "--no-checkout",
            repo.path().to_str().unwrap(),
            "clone",
        ],
    );
    chunk(&clone, &["install"]);
    git_ok(&clone, &["config", "chunk.remote", "nowhere"]);
    let checkout = git_run(&clone, &["checkout", "-q", "main"]);
    assert!(checkout.status.success());
    let told = String::from_utf8_lossy(&checkout.stderr).into_owned();
    assert!(
        told.contains("'a.bin' stays a pointer") && told.contains("git chunk fetch"),
        "{told}"
    );
    assert_eq!(fs::read(clone.join("a.bin")).unwrap().len(), 160);
    assert_eq!(git_ok(&clone, &["status", "--porcelain"]), "");
    assert!(chunk(&clone, &["status"]).contains("only the pointer is here: a.bin"));
    // Adding it again does not make a file of the pointer.
    git_ok(&clone, &["add", "a.bin"]);
    assert_eq!(git_ok(&clone, &["status", "--porcelain"]), "");

    chunk(&clone, &["fetch", "origin"]);
    chunk(&clone, &["restore"]);
    assert!(fs::read(clone.join("a.bin")).unwrap() == content);
    clean(&clone);
    // With the remote at hand, Git's checkout gets them by itself.
    let other = temp.path().join("other");
    git_ok(
        temp.path(),
        &[
            "clone",
            "-q",
            "--no-local",
            "--no-checkout",
            repo.path().to_str().unwrap(),
            "other",
        ],
    );
    chunk(&other, &["install"]);
    git_ok(&other, &["checkout", "-q", "main"]);
    assert!(fs::read(other.join("a.bin")).unwrap() == content);
    clean(&other);
}

#[test]
fn a_damaged_chunk_is_named_and_nothing_else_is_lost() {
    let repo = ready(Format::Sha1);
    repo.write("good.bin", noise(6, 300_000));
    repo.commit_with_filter("good");
    let bad = noise(7, 700_000);
    repo.write("bad.bin", &bad);
    repo.commit_with_filter("bad");
    // A byte in the middle of the newest chunk pack.
    let packs = kept_packs(&repo.git_dir());
    let pack = packs
        .iter()
        .max_by_key(|pack| fs::metadata(pack).unwrap().len())
        .unwrap();
    let mut bytes = fs::read(pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let mut permissions = fs::metadata(pack).unwrap().permissions();
    #[allow(clippy::permissions_set_readonly_false)]
    permissions.set_readonly(false);
    fs::set_permissions(pack, permissions).unwrap();
    fs::write(pack, bytes).unwrap();

    fs::remove_file(repo.path().join("bad.bin")).unwrap();
    fs::remove_file(repo.path().join("good.bin")).unwrap();
    let checkout = git_run(repo.path(), &["checkout", "--", "bad.bin"]);
    assert!(!checkout.status.success());
    let told = String::from_utf8_lossy(&checkout.stderr).into_owned();
    assert!(
        told.contains("the chunk ") && told.contains("is damaged"),
        "{told}"
    );
    git_ok(repo.path(), &["checkout", "--", "good.bin"]);
    assert!(read(&repo, "good.bin") == noise(6, 300_000));
    let fsck = chunk_run(repo.path(), &["fsck"]);
    assert_eq!(fsck.status.code(), Some(13));
    let text = String::from_utf8_lossy(&fsck.stdout).into_owned();
    assert!(
        text.contains("'bad.bin': the chunk") && text.contains("1 faults"),
        "{text}"
    );
    // The same file again repairs nothing by itself, but its neighbours can still be added.
    repo.write("new.bin", noise(8, 100_000));
    git_ok(repo.path(), &["add", "new.bin"]);
}

#[test]
fn diffs_are_readable_and_settings_can_be_taken_away() {
    let repo = ready(Format::Sha1);
    repo.write("a.bin", noise(1, 200_000));
    repo.commit_with_filter("one");
    repo.write("a.bin", noise(2, 250_000));
    repo.commit_with_filter("two");
    let diff = git_ok(repo.path(), &["diff", "HEAD~1", "HEAD"]);
    assert!(
        diff.contains("-size 200000") && diff.contains("+size 250000"),
        "{diff}"
    );
    chunk(repo.path(), &["install", "--remove"]);
    assert!(
        !fs::read_to_string(repo.git_dir().join("config"))
            .unwrap()
            .contains("chunk")
    );
}

#[test]
fn an_interrupted_add_leaves_the_old_state() {
    use std::io::Write as _;
    use std::process::Stdio;
    let repo = ready(Format::Sha1);
    repo.commit_with_filter("attributes");
    // The conversation breaks off in the middle of a file.
    let mut child = git::isolated(std::process::Command::new(program()), repo.path())
        .arg("filter-process")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let line = |text: &str| format!("{:04x}{text}\n", text.len() + 5);
    let mut hello = line("git-filter-client") + &line("version=2") + "0000";
    hello += &(line("capability=clean") + "0000");
    hello += &(line("command=clean") + &line("pathname=a.bin") + "0000");
    stdin.write_all(hello.as_bytes()).unwrap();
    stdin.write_all(b"fff0").unwrap();
    stdin.write_all(&noise(1, 0xffec)).unwrap();
    stdin.write_all(b"fff0").unwrap();
    stdin.write_all(&noise(2, 0x7000)).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("filter protocol"));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("chunked-file"));
    assert!(kept_packs(&repo.git_dir()).is_empty());
    clean(repo.path());
    let alone = chunk_run(repo.path(), &["filter-process"]);
    assert_eq!(alone.status.code(), Some(1));
}

/// Git goes away in the middle of a file, or says nonsense: the program ends, and nothing has changed.
#[test]
fn an_interrupted_smudge_harms_nothing() {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;
    let repo = ready(Format::Sha1);
    repo.write("a.bin", noise(1, 5_000_000));
    repo.commit_with_filter("one");
    let pointer = git_ok(repo.path(), &["cat-file", "blob", "HEAD:a.bin"]) + "\n";
    let before = kept_packs(&repo.git_dir());
    let line = |text: &str| format!("{:04x}{text}\n", text.len() + 5);
    let hello = line("git-filter-client")
        + &line("version=2")
        + "0000"
        + &line("capability=smudge")
        + "0000"
        + &line("command=smudge")
        + &line("pathname=a.bin")
        + "0000"
        + &format!("{:04x}{pointer}0000", pointer.len() + 4);
    for taken in [0, 100, 200_000] {
        let mut child = git::isolated(std::process::Command::new(program()), repo.path())
            .arg("filter-process")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(hello.as_bytes()).unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut some = vec![0; taken];
        stdout.read_exact(&mut some).unwrap();
        drop(stdout);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success(), "{taken}");
    }
    assert_eq!(kept_packs(&repo.git_dir()), before);
    fs::remove_file(repo.path().join("a.bin")).unwrap();
    git_ok(repo.path(), &["checkout", "-q", "--", "a.bin"]);
    assert!(read(&repo, "a.bin") == noise(1, 5_000_000));
    clean(repo.path());
}

trait Commit {
    fn commit_with_filter(&self, message: &str);
}

impl Commit for Repo {
    fn commit_with_filter(&self, message: &str) {
        git_ok(self.path(), &["add", "-A"]);
        git_ok(self.path(), &["commit", "-qm", message]);
    }
}
