//! Protected keys under Git and `git-e2ee`, with an askpass program.

use std::path::Path;

use ingot_helper::keys::age;
use ingot_helper::protocol::key_file;
use ingot_testdata::repo::Format;

use super::protect::{Askpass, PASSPHRASE, protect};
use super::world::{Said, World, text};

fn git(world: &World, dir: &Path, args: &[&str], askpass: &Askpass) -> Said {
    let mut command = world.command("git", dir);
    let (name, value) = askpass.variable();
    Said::of(&command.args(args).env(name, value).output().unwrap())
}

fn e2ee(world: &World, dir: &Path, args: &[&str], askpass: &Askpass) -> Said {
    world.e2ee_with(dir, args, &[askpass.variable()])
}

fn is_protected(path: &Path) -> bool {
    age::is_age(&key_file::load(path).unwrap())
}

#[test]
fn git_asks_once_for_each_conversation() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    protect(&world.key);
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    git(&world, source.path(), &["push", "-q", "vault", "main"], &askpass).good();
    let asked = askpass.questions();
    assert_eq!(
        asked,
        [format!("Passphrase for key file '{}': ", world.key.display())]
    );
    git(&world, source.path(), &["fetch", "-q", "vault"], &askpass).good();
    assert_eq!(askpass.questions().len(), 1);
    let key = format!("e2ee.key={}", world.key.display());
    let (url, copy) = (world.url(), world.path("copy"));
    let clone = ["-c", &key, "clone", "-q", &url, text(&copy)];
    git(&world, world.root(), &clone, &askpass).good();
    assert_eq!(askpass.questions().len(), 1);
    git(&world, &copy, &["fsck"], &askpass).good();
}

#[test]
fn one_command_asks_once_however_many_stores() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    // A copy of the store on another disk.
    world.shell(world.root(), "cp -a store copy").good();
    for url in [world.url(), format!("e2ee::{}", world.path("copy").display())] {
        world
            .git(source.path(), &["config", "--add", "remote.vault.pushurl", &url])
            .good();
    }
    protect(&world.key);
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    e2ee(&world, source.path(), &["push", "vault", "main"], &askpass).good();
    assert_eq!(askpass.questions().len(), 1);
    for command in [
        "fetch",
        "verify",
        "status",
        "doctor",
        "device-list",
        "log",
        "audit",
    ] {
        e2ee(&world, source.path(), &[command, "vault"], &askpass).good();
        assert_eq!(askpass.questions().len(), 1, "{command}");
    }
    e2ee(&world, source.path(), &["device-rotate", "vault"], &askpass).good();
    assert_eq!(askpass.questions().len(), 1);
    assert!(is_protected(&world.key));
    e2ee(&world, source.path(), &["fetch", "vault"], &askpass).good();
}

#[test]
fn without_somebody_to_ask_it_says_how() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    protect(&world.key);
    let said = world.e2ee(source.path(), &["push", "vault", "main"]).bad(&[
        "protected by a passphrase",
        "GIT_TERMINAL_PROMPT",
        "GIT_ASKPASS",
    ]);
    assert_eq!(said.code, Some(15));
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["protected by a passphrase", "GIT_ASKPASS"]);
    // A program is asked all the same, as Git asks it.
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    git(&world, source.path(), &["push", "-q", "vault", "main"], &askpass).good();
    // So is the one of the configuration.
    let by_config = format!("core.askPass={}", askpass.variable().1);
    world
        .git(source.path(), &["-c", &by_config, "fetch", "-q", "vault"])
        .good();
    assert_eq!(askpass.questions().len(), 2);
    let refusing = world.e2ee_with(
        source.path(),
        &["fetch", "vault"],
        &[("GIT_ASKPASS", "/bin/false")],
    );
    assert_eq!(refusing.bad(&["protected"]).code, Some(15));
}

#[test]
fn wrong_passphrases_end_with_their_own_message() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    protect(&world.key);
    let before = std::fs::read(&world.key).unwrap();
    let askpass = Askpass::new(&world, "askpass", "wrong");
    let said = e2ee(&world, source.path(), &["push", "vault", "main"], &askpass).bad(&[
        "that passphrase does not open",
        "is another one; nothing was done with it",
    ]);
    assert_eq!(said.code, Some(15));
    assert_eq!(askpass.questions().len(), 3);
    git(&world, source.path(), &["push", "vault", "main"], &askpass).bad(&["is another one"]);
    assert_eq!(std::fs::read(&world.key).unwrap(), before);
}

#[test]
fn a_passphrase_is_added_changed_and_removed() {
    let world = World::new();
    let id = key_file::read(&world.key).unwrap().id().to_string();
    let link = world.path("link.json");
    std::os::unix::fs::symlink(&world.key, &link).unwrap();
    let first = Askpass::new(&world, "first", "first passphrase");
    let change = ["key", "change-passphrase", "--key", text(&link)];
    let said = e2ee(&world, world.root(), &change, &first).good();
    assert!(said.contains("now protects"), "{said}");
    assert_eq!(
        first.questions().len(),
        2,
        "twice, since nobody sees what is typed"
    );
    assert!(is_protected(&world.key));
    assert!(
        std::fs::symlink_metadata(&link).unwrap().is_symlink(),
        "the link stays"
    );
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&world.key).unwrap());
    assert_eq!(mode & 0o777, 0o600);

    let show = ["--json", "key", "show", "--key", text(&world.key)];
    let shown = e2ee(&world, world.root(), &show, &first).good();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["device_id"], id);
    assert_eq!(shown["protected"], true);
    assert_eq!(shown["work_factor"], 17);

    let remove = ["key", "change-passphrase", "--remove", "--key", text(&world.key)];
    e2ee(&world, world.root(), &remove, &first).good();
    assert_eq!(key_file::read(&world.key).unwrap().id().to_string(), id);
    e2ee(&world, world.root(), &remove, &first).bad(&["has no passphrase"]);
    let entries = std::fs::read_dir(world.root()).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !names.iter().any(|name| name.to_string_lossy().contains("tmp")),
        "{names:?}"
    );
    // An empty one is none.
    let empty = Askpass::new(&world, "empty", "");
    e2ee(&world, world.root(), &change, &empty).bad(&["protects nothing"]);
    key_file::read(&world.key).unwrap();
}

#[test]
fn a_waiting_rotation_comes_first() {
    let world = World::new();
    std::fs::copy(&world.key, world.path("alice.key.json.next")).unwrap();
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    let change = ["key", "change-passphrase", "--key", text(&world.key)];
    e2ee(&world, world.root(), &change, &askpass).bad(&["rotation", "finish it first"]);
    key_file::read(&world.key).unwrap();
}

#[test]
fn keys_are_made_protected() {
    let world = World::new();
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    let (key, device) = (world.path("new.key.json"), world.path("new.device.json"));
    let keygen = ["keygen", "--passphrase", "--output", text(&key)];
    e2ee(&world, world.root(), &keygen, &askpass).good();
    assert!(is_protected(&key));
    let export = ["device-export", "--key", text(&key), "--output", text(&device)];
    e2ee(&world, world.root(), &export, &askpass).good();
    key_file::read_public(&device).unwrap();
    e2ee(&world, world.root(), &keygen, &askpass).bad(&["exists already"]);
    assert_eq!(
        world
            .e2ee(world.root(), &["keygen", "--passphrase", "--output", "x.json"])
            .code,
        Some(15)
    );
    assert!(!world.path("x.json").exists());
    let store = world.path("other");
    let init = ["init", "--storage", text(&store), "--key", text(&key)];
    e2ee(&world, world.root(), &init, &askpass).good();
}

/// The key of a device that joins is written anew, for its repository, and stays protected.
#[test]
fn joining_keeps_the_passphrase() {
    let world = World::new();
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    let key = world.path("bob.key.json");
    world
        .e2ee(world.root(), &["keygen", "--output", text(&key)])
        .good();
    protect(&key);
    let request = ["--json", "join", "--request", "--key", text(&key)];
    let request = e2ee(&world, world.root(), &request, &askpass).good();
    let request: serde_json::Value = serde_json::from_str(&request).unwrap();
    let (line, digits) = (
        request["request"].as_str().unwrap(),
        request["fingerprint"].as_str().unwrap(),
    );
    let invite = [
        "--json",
        "invite",
        "--storage",
        text(&world.store),
        "--key",
        text(&world.key),
        "--request",
        line,
        "--fingerprint",
        digits,
    ];
    let invitation = world.e2ee(world.root(), &invite).good();
    let invitation: serde_json::Value = serde_json::from_str(&invitation).unwrap();
    let (line, url) = (invitation["invitation"].as_str().unwrap(), world.url());
    let join = ["join", "--key", text(&key), "--invitation", line, &url];
    askpass.questions();
    e2ee(&world, world.root(), &join, &askpass).good();
    assert_eq!(askpass.questions().len(), 1);
    assert!(is_protected(&key));
}

/// Programs that are started on the way see nothing of it.
#[test]
fn no_secret_is_in_arguments_or_environment() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    protect(&world.key);
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    let seen = world.path("seen");
    let spy = format!(
        "{{ env; printf '%s\\n' \"$@\"; tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' '\\n' < /proc/$PPID/cmdline; }} > '{}'; \
         exit 1; :",
        text(&seen)
    );
    let url = "e2ee::git+ssh://host.example.org/store.git";
    world
        .git(source.path(), &["config", "remote.vault.url", url])
        .good();
    let variables = [
        askpass.variable(),
        ("GIT_SSH_COMMAND", &*spy),
        ("GIT_SSH_VARIANT", "simple"),
    ];
    let said = world
        .e2ee_with(source.path(), &["fetch", "vault"], &variables)
        .bad(&[]);
    assert_eq!(askpass.questions().len(), 1, "{}", said.err);
    let seen = std::fs::read_to_string(&seen).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    assert!(
        seen.contains("GIT_ASKPASS") && seen.contains("host.example.org"),
        "{seen}"
    );
    assert!(
        !seen.contains(PASSPHRASE) && !said.err.contains(PASSPHRASE),
        "{seen}"
    );
}
