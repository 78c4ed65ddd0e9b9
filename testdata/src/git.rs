//! Runs the real Git, the judge of every result.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A Git command in `dir` with an isolated environment: no system, user or inherited configuration, no prompts,
/// fixed identity and dates, automatic maintenance off.
pub fn command(dir: &Path) -> Command {
    isolated(Command::new("git"), dir)
}

/// Gives any program the environment that [`command`] gives Git.
pub fn isolated(mut command: Command, dir: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Alice")
        .env("GIT_AUTHOR_EMAIL", "alice@example.org")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_NAME", "Bob")
        .env("GIT_COMMITTER_EMAIL", "bob@example.org")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .env("GIT_CONFIG_COUNT", "4")
        .env("GIT_CONFIG_KEY_0", "init.defaultBranch")
        .env("GIT_CONFIG_VALUE_0", "main")
        .env("GIT_CONFIG_KEY_1", "maintenance.auto")
        .env("GIT_CONFIG_VALUE_1", "false")
        .env("GIT_CONFIG_KEY_2", "gc.auto")
        .env("GIT_CONFIG_VALUE_2", "0")
        .env("GIT_CONFIG_KEY_3", "protocol.file.allow")
        .env("GIT_CONFIG_VALUE_3", "always");
    command
}

/// Runs Git and returns its trimmed standard output. Panics with both outputs when it fails.
#[track_caller]
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert!(
        output.status.success(),
        "git {args:?} in {} failed\n{}{}",
        dir.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Runs Git and returns whatever it did.
#[track_caller]
pub fn run(dir: &Path, args: &[&str]) -> Output {
    command(dir)
        .args(args)
        .output()
        .expect("git is installed where tests run")
}

/// Runs Git with `input` on its standard input; returns raw standard output. Panics when it fails.
#[track_caller]
pub fn with_input(dir: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = command(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is installed where tests run");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        // A git that fails early closes its end; the assertion below tells why.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(
        output.status.success(),
        "git {args:?} failed\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Every object id that `revisions` reach, sorted.
#[track_caller]
pub fn objects(dir: &Path, revisions: &[&str]) -> Vec<String> {
    let mut args = vec!["rev-list", "--objects", "--no-object-names"];
    args.extend_from_slice(revisions);
    let mut ids: Vec<String> = git(dir, &args).lines().map(str::to_owned).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Asserts that `git fsck --full --strict` finds nothing wrong.
#[track_caller]
pub fn fsck(dir: &Path) {
    git(dir, &["fsck", "--full", "--strict", "--no-progress"]);
}
