//! What is shown of long work, on a terminal and elsewhere.

use std::path::Path;
use std::process::Command;

use super::places::{Served, Way};
use super::world::{Bare, World, commit, text};

/// Runs a program on a terminal of its own and prints what the terminal showed.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
shown = b""
while True:
    try:
        data = os.read(terminal, 10000)
    except OSError:
        break
    if not data:
        break
    shown += data
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

/// What a terminal shows of a program that draws without delay.
#[track_caller]
fn on_terminal(world: &Bare, dir: &Path, program: &str, args: &[&str]) -> String {
    // Everything in the environment of Git in these tests, but for the program itself.
    let mut command: Command = world.python(dir);
    let output = command
        .args(["-c", TERMINAL, program])
        .args(args)
        .env("TERM", "xterm")
        .env("GIT_PROGRESS_DELAY", "0")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{shown}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    shown
}

#[track_caller]
fn has(shown: &str, phases: &[&str]) {
    for phase in phases {
        let after = shown.split_once(phase).map(|(_, after)| after);
        let line = after.and_then(|after| after.split(['\r', '\n', '\u{1b}']).next());
        assert!(
            line.is_some_and(|line| line.contains("B/s")),
            "no rate of {phase:?} in {shown:?}"
        );
    }
}

const PHASES: [&str; 4] = [
    "Encrypting",
    "Uploading",
    "Downloading",
    "Decrypting and indexing",
];

#[track_caller]
fn has_none(shown: &str) {
    for phase in PHASES {
        assert!(!shown.contains(phase), "{phase:?} in {shown:?}");
    }
}

const E2EE: &str = env!("CARGO_BIN_EXE_git-e2ee");

#[test]
fn bars_have_bytes_and_rates() {
    let served = Served::new(Way::Daemon);
    served.filter(true);
    let world = &served.world;
    let source = served.source();
    let shown = on_terminal(world, source.path(), E2EE, &["push", "vault", "main"]);
    has(&shown, &["Encrypting objects", "Uploading"]);
    let clone = world.path("clone");
    let args = ["clone", "--key", text(&world.key), &served.url, text(&clone)];
    let shown = on_terminal(world, world.root(), E2EE, &args);
    has(&shown, &["Downloading", "Decrypting and indexing"]);
    // The same through Git, which says whether there is a terminal.
    commit(world, source.path(), "more");
    let shown = on_terminal(world, source.path(), "git", &["push", "vault", "main"]);
    has(&shown, &["Encrypting objects", "Uploading"]);
    let shown = on_terminal(world, &clone, "git", &["fetch", "origin"]);
    has(&shown, &["Downloading", "Decrypting and indexing"]);
}

#[test]
fn folders_have_them_too() {
    let world = World::new();
    let source = world.source("vault", ingot_testdata::repo::Format::Sha1);
    let shown = on_terminal(&world, source.path(), E2EE, &["push", "vault", "main"]);
    has(&shown, &["Encrypting objects"]);
    let url = world.url();
    let args = ["clone", "--key", text(&world.key), &url, "clone"];
    let shown = on_terminal(&world, world.root(), E2EE, &args);
    has(&shown, &["Decrypting and indexing"]);
    let args = ["verify", "--key", text(&world.key), &url];
    has(
        &on_terminal(&world, world.root(), E2EE, &args),
        &["Verifying packs"],
    );
}

#[test]
fn nothing_is_shown_to_whoever_does_not_look() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let source = served.source();
    let delay = [("GIT_PROGRESS_DELAY", "0")];
    // Into a pipe.
    let said = world.e2ee_with(source.path(), &["push", "vault", "main"], &delay);
    assert!(said.ok && said.err.is_empty(), "{}", said.err);
    commit(world, source.path(), "piped");
    let said = world.git(source.path(), &["push", "vault", "main"]);
    assert!(said.ok, "{}", said.err);
    has_none(&said.err);
    // On a terminal whose user wants it quiet.
    let push: [(&str, &[&str]); 3] = [
        (E2EE, &["push", "--quiet", "vault", "main"]),
        ("git", &["push", "--no-progress", "vault", "main"]),
        ("git", &["push", "--quiet", "vault", "main"]),
    ];
    for (number, (program, args)) in push.into_iter().enumerate() {
        commit(world, source.path(), &format!("quiet {number}"));
        has_none(&on_terminal(world, source.path(), program, args));
    }
    assert_eq!(world.generation(), 5);
    // Who insists gets a line for each phase.
    commit(world, source.path(), "lines");
    let said = world.git(source.path(), &["push", "--progress", "vault", "main"]);
    assert!(said.ok, "{}", said.err);
    let line = said
        .err
        .lines()
        .find(|line| line.starts_with("Encrypting objects: "));
    assert!(
        line.is_some_and(|line| line.contains(" objects, ")),
        "{}",
        said.err
    );
    assert!(said.err.contains("Uploading: "), "{}", said.err);
}
