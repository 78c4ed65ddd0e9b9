//! `doctor` finds what is wrong, and what to do.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use ingot_testdata::repo::Format;
use serde_json::Value;

use super::world::{Said, World, text};

/// States by check.
fn states(said: &Said) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let field = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|one| (field(one, "check"), field(one, "state")))
        .collect()
}

fn has(said: &Said, check: &str, state: &str) -> bool {
    states(said).contains(&(check.to_owned(), state.to_owned()))
}

#[test]
fn a_look_at_everything() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let doctor = |more: &[&str]| {
        let mut args = vec!["doctor", "--json", "vault"];
        args.extend_from_slice(more);
        world.e2ee(source.path(), &args)
    };
    world.e2ee(source.path(), &["push", "vault", "main"]).good();
    let said = doctor(&[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        has(&said, "key", "ok") && has(&said, "pin", "ok") && has(&said, "staging", "ok"),
        "{}",
        said.out
    );
    assert!(
        has(&said, "store", "note"),
        "the only administrator: {}",
        said.out
    );
    let lines = world.e2ee(source.path(), &["doctor", "vault"]).good();
    assert_eq!(lines.lines().count(), states(&said).len(), "{lines}");

    // Files of interrupted pushes: the old one goes, the new one stays, and only when it is said.
    let staging = world.store.join(".staging");
    let (old, new, other) = (
        staging.join(".stage-old"),
        staging.join(".stage-new"),
        staging.join("mine"),
    );
    for path in [&old, &new, &other] {
        std::fs::write(path, [0; 100]).unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    for path in [&old, &other] {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    let said = doctor(&[]);
    assert!(has(&said, "staging", "note") && old.exists(), "{}", said.out);
    assert!(has(&doctor(&["--remove-stale"]), "staging", "ok"));
    assert!(!old.exists() && new.exists() && other.exists());
    assert!(has(&doctor(&[]), "staging", "ok"));

    // Each trouble has the code that the other commands end with.
    std::fs::set_permissions(&world.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = doctor(&[]);
    assert!(
        said.code == Some(1) && has(&said, "key", "trouble") && said.out.contains("chmod 600"),
        "{}",
        said.out
    );
    std::fs::set_permissions(&world.key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let head = std::fs::read(world.store.join("HEAD")).unwrap();
    std::fs::write(world.store.join("HEAD"), "x").unwrap();
    let said = doctor(&[]);
    assert!(
        said.code == Some(13) && has(&said, "store", "trouble"),
        "{}",
        said.out
    );
    std::fs::write(world.store.join("HEAD"), head).unwrap();
    let pin = source.git_dir().join("git-remote-e2ee/vault/state.json");
    let whole = std::fs::read(&pin).unwrap();
    std::fs::write(&pin, &whole[..20]).unwrap();
    let said = doctor(&[]);
    assert!(
        said.code == Some(1) && has(&said, "pin", "trouble"),
        "{}",
        said.out
    );
    std::fs::write(&pin, whole).unwrap();
    let absent = world.path("absent");
    let said = world.e2ee(
        world.root(),
        &[
            "doctor",
            "--json",
            "--storage",
            text(&absent),
            "--key",
            text(&world.key),
        ],
    );
    assert!(
        said.code == Some(10) && has(&said, "store", "trouble"),
        "{}",
        said.out
    );

    // A key that could be committed.
    let inside = source.path().join("key.json");
    super::client::copy_key(&world.key, &inside);
    let said = doctor(&["--key", "key.json"]);
    assert!(
        said.code == Some(1) && has(&said, "key", "trouble"),
        "{}",
        said.out
    );
}

#[test]
fn what_is_kept_here_and_the_clock() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let doctor = |more: &[&str]| {
        let mut args = vec!["doctor", "--json", "vault"];
        args.extend_from_slice(more);
        world.e2ee(source.path(), &args)
    };
    world.e2ee(source.path(), &["push", "vault", "main"]).good();
    let said = doctor(&[]);
    assert!(
        has(&said, "known chain", "ok") && has(&said, "clock", "ok"),
        "{}",
        said.out
    );

    // What is damaged is told, removed when somebody says so, and made anew by whatever reads the chain next.
    let kept = source.path().join(".git/git-remote-e2ee/vault/state.chain");
    std::fs::write(&kept, "x").unwrap();
    assert!(has(&doctor(&[]), "known chain", "note"));
    std::fs::write(&kept, "x").unwrap();
    let said = doctor(&["--remove-stale"]);
    assert!(
        has(&said, "known chain", "ok") && said.out.contains("removed"),
        "{}",
        said.out
    );
    assert!(has(&doctor(&[]), "known chain", "ok"));

    let head = std::fs::File::options()
        .write(true)
        .open(world.store.join("HEAD"))
        .unwrap();
    head.set_modified(SystemTime::now() + Duration::from_secs(3600))
        .unwrap();
    let said = doctor(&[]);
    assert!(
        has(&said, "clock", "note") && said.code == Some(0),
        "{}",
        said.out
    );
}
