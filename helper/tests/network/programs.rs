//! Which programs are started: those that a user names for reaching a server, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use ingot_testdata::git;
use ingot_testdata::serve::http::Server;
use ingot_testdata::serve::ssh::write_program;

use super::places::{Served, Way};
use super::world::{Said, World, commit, sound, text};

/// Whether programs can be watched here: `strace` may be missing, or not be allowed to.
fn can_watch(scratch: &Path) -> bool {
    let log = scratch.join("probe.strace");
    let probe = Command::new("strace")
        .args(["-f", "-o", text(&log), "true"])
        .output();
    probe.is_ok_and(|output| output.status.success())
}

/// A call of a process, whole, and its result.
struct Call {
    process: String,
    text: String,
    result: String,
}

/// The calls of a log, in the order in which they ended.
fn calls(log: &str) -> Vec<Call> {
    // Calls that were in the middle when another process was heard of.
    let mut halves: BTreeMap<&str, &str> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((process, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            halves.insert(process, begun);
            continue;
        }
        let rest = call
            .strip_prefix("<... ")
            .and_then(|call| call.split_once("resumed>"));
        let whole = match rest {
            Some((_, rest)) => halves.remove(process).unwrap_or_default().to_owned() + rest,
            None => call.to_owned(),
        };
        if let Some((text, result)) = whole.rsplit_once(" = ") {
            calls.push(Call {
                process: process.to_owned(),
                text: text.to_owned(),
                result: result.trim().to_owned(),
            });
        }
    }
    calls
}

/// What a process and its threads started: the programs that their children became, not what those started in turn.
fn started(log: &str) -> BTreeSet<String> {
    let calls = calls(log);
    let first = log.split(' ').next().unwrap_or_default().to_owned();
    let makes = |call: &&Call| {
        ["clone", "fork", "vfork"]
            .iter()
            .any(|name| call.text.starts_with(name))
    };
    let mut own = BTreeSet::from([first]);
    loop {
        let before = own.len();
        for call in calls.iter().filter(makes) {
            if own.contains(&call.process) && call.text.contains("CLONE_THREAD") {
                own.insert(call.result.clone());
            }
        }
        if own.len() == before {
            break;
        }
    }
    let mut children: BTreeSet<&str> = BTreeSet::new();
    for call in calls.iter().filter(makes) {
        if own.contains(&call.process) && !call.text.contains("CLONE_THREAD") {
            children.insert(&call.result);
        }
    }
    let mut programs = BTreeSet::new();
    for call in &calls {
        let succeeded = call.text.starts_with("execve(") && call.result == "0";
        // What a child becomes after that is its own affair.
        if succeeded && (own.contains(&call.process) || children.remove(call.process.as_str())) {
            programs.insert(call.text.split('"').nth(1).unwrap_or_default().to_owned());
        }
    }
    programs
}

/// Runs `git-e2ee` with nothing but a shell on PATH, and returns what it started if that can be seen.
#[track_caller]
fn run(world: &World, watch: bool, dir: &Path, args: &[&str]) -> BTreeSet<String> {
    let nothing = world.path("nothing");
    std::fs::create_dir_all(&nothing).unwrap();
    // The shell that credential helpers are started with.
    let _ = std::os::unix::fs::symlink("/bin/sh", nothing.join("sh"));
    let log = world.path("strace");
    let plain = world.program(dir, args);
    let mut command = match watch {
        true => {
            let mut traced = Command::new("strace");
            traced.args(["-f", "-qq", "-e", "trace=execve,clone,clone3,fork,vfork"]);
            traced
                .args(["-o", text(&log)])
                .arg("-E")
                .arg(format!("PATH={}", nothing.display()));
            traced
                .arg(plain.get_program())
                .args(plain.get_args())
                .current_dir(dir);
            for (name, value) in plain.get_envs().filter(|(name, _)| *name != "PATH") {
                match value {
                    Some(value) => traced.env(name, value),
                    None => traced.env_remove(name),
                };
            }
            traced
        }
        false => {
            let mut plain = plain;
            plain.env("PATH", &nothing);
            plain
        }
    };
    let said = Said::of(&command.output().unwrap());
    said.good();
    match watch {
        true => started(&std::fs::read_to_string(&log).unwrap()),
        false => BTreeSet::new(),
    }
}

/// Pushes, lists, clones and fetches, and requires that only `allowed` was started, each of it.
fn only(served: &Served, allowed: &[&str]) {
    let world = &served.world;
    let watch = can_watch(world.root());
    let source = served.source();
    let clone = world.path("clone");
    let key = text(&world.key);
    let mut seen = BTreeSet::new();
    let mut each = |dir: &Path, args: &[&str]| seen.extend(run(world, watch, dir, args));
    each(source.path(), &["push", "vault", "main", "v1.0"]);
    each(world.root(), &["ls-remote", "--key", key, &served.url]);
    each(world.root(), &["clone", "--key", key, &served.url, text(&clone)]);
    commit(world, source.path(), "more");
    each(source.path(), &["push", "vault", "main"]);
    each(&clone, &["fetch"]);
    each(&clone, &["verify", "--full"]);
    sound(world, &clone);
    if watch {
        let mut expected: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        expected.insert(env!("CARGO_BIN_EXE_git-e2ee").to_owned());
        assert_eq!(seen, expected);
    }
}

/// A setting of the world's user.
fn set(world: &World, name: &str, value: &str) {
    let config = world.path("home/.gitconfig");
    git::git(world.root(), &["config", "-f", text(&config), name, value]);
}

#[test]
fn none_for_what_needs_none() {
    only(&Served::new(Way::Daemon), &[]);
    only(&Served::new(Way::Http), &[]);
    only(&Served::new(Way::HttpPassword), &[]);
    let mut local = Served::new(Way::Daemon);
    local.url = local.world.url();
    only(&local, &[]);
}

#[test]
fn ssh_is_the_users() {
    let served = Served::new(Way::Ssh);
    let config = std::fs::read_to_string(served.world.path("home/.gitconfig")).unwrap();
    let program = config.split("sshCommand = ").nth(1).unwrap().trim().to_owned();
    // The stand-in needs a shell and Git for the other side.
    let path = std::env::var("PATH").unwrap();
    let script = std::fs::read_to_string(&program).unwrap();
    let with_path = script.replacen('\n', &format!("\nPATH='{path}'\nexport PATH\n"), 1);
    write_program(Path::new(&program), &with_path);
    only(&served, &[&program]);
}

#[test]
fn credentials_come_from_the_helper_or_from_askpass() {
    let mut served = Served::new(Way::Http);
    let world = &served.world;
    let server = Server::with_password(world.root(), "alice", "open sesame");
    let helper = world.path("helper");
    write_program(
        &helper,
        "#!/bin/sh\ntest \"$1\" = get && printf 'username=alice\\npassword=open sesame\\n'\nexit 0\n",
    );
    set(world, "credential.helper", text(&helper));
    served.url = format!("e2ee::git+{}", server.url("carrier.git"));
    // Git starts helpers with a shell, because they may have arguments.
    only(&served, &[text(&served.world.path("nothing/sh"))]);

    let mut served = Served::new(Way::Http);
    let world = &served.world;
    let server = Server::with_password(world.root(), "alice", "open sesame");
    let askpass = world.path("askpass");
    write_program(
        &askpass,
        "#!/bin/sh\ncase $1 in User*) echo alice;; *) echo open sesame;; esac\n",
    );
    set(world, "core.askPass", text(&askpass));
    served.url = format!("e2ee::git+{}", server.url("carrier.git"));
    only(&served, &[text(&served.world.path("askpass"))]);
}

#[test]
fn the_watch_sees_what_is_started() {
    let folder = tempfile::tempdir().unwrap();
    if !can_watch(folder.path()) {
        return;
    }
    let log = folder.path().join("log");
    let line = "/bin/ls / >/dev/null; /bin/sh -c '/bin/cat /dev/null; /bin/true'; exit 0";
    let status = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=execve,clone,clone3,fork,vfork",
            "-o",
            text(&log),
        ])
        .args(["/bin/bash", "-c", line])
        .output()
        .unwrap();
    assert!(status.status.success());
    let seen = started(&std::fs::read_to_string(&log).unwrap());
    let seen: Vec<&str> = seen
        .iter()
        .map(|program| program.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(seen, ["bash", "ls", "sh"], "of the shell's own children nothing");
}
