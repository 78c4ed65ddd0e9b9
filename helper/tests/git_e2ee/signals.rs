//! Waiting and stopping.

use std::process::Stdio;
use std::time::{Duration, Instant};

use ingot_testdata::repo::Format;

use super::world::{Bare, World, commit, text};

/// A fetch that waits for a lock which this process holds.
fn waiting(world: &World) -> (std::process::Child, std::fs::File) {
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = world.clone("clone", &[]);
    let lock = clone.join(".git/git-remote-e2ee/origin/state.json.lock");
    let held = std::fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    let mut command = world.program(&clone, &["fetch"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line says that it waits; from then on its signals are handled.
    let mut first = [0; 7];
    std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"Waiting");
    (child, held)
}

#[test]
fn an_interrupt_ends_a_wait_with_its_own_code() {
    for signal in ["INT", "TERM"] {
        let world = World::new();
        let (child, _held) = waiting(&world);
        let start = Instant::now();
        world
            .shell(world.root(), &format!("kill -{signal} {}", child.id()))
            .good();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        assert!(start.elapsed() < Duration::from_secs(10));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.lines().last().unwrap().starts_with("git-e2ee: "), "{said}");
    }
}

#[test]
fn a_wait_ends_when_the_lock_is_free() {
    let world = World::new();
    let (child, held) = waiting(&world);
    held.unlock().unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_locked_configuration_has_its_code_and_the_set_up_is_finished_later() {
    let bare = Bare::new();
    let path = bare.path("notes");
    bare.git(bare.root(), &["init", "-q", text(&path)]).good();
    commit(&bare, &path, "first");
    std::fs::write(path.join(".git/config.lock"), "").unwrap();
    let said = bare.e2ee(&path, &["push"]).bad(&["git-e2ee: ", "config.lock"]);
    assert_eq!(said.code, Some(11));
    std::fs::remove_file(path.join(".git/config.lock")).unwrap();
    bare.e2ee(&path, &["push"]).good();
    let stores = bare.path("home/.local/share/ingot/stores");
    // The lock that lets one set-up run at a time stays.
    let made = std::fs::read_dir(stores)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != ".set-up.lock");
    assert_eq!(made.count(), 1, "what was half made was finished");
}
