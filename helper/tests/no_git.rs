//! Every command with no Git on PATH, nor anything else.

#![allow(clippy::unwrap_used)]

use ingot_testdata::repo::Format;

#[path = "support/world.rs"]
mod world;

use world::{Bare, commit, sound, text};

#[test]
fn every_command_works_without_git() {
    for format in Format::BOTH {
        let bare = Bare::new();
        let source = ingot_testdata::repo::Repo::scripted("history", format);
        let nothing = bare.path("nothing");
        std::fs::create_dir(&nothing).unwrap();
        let alone =
            |dir: &std::path::Path, args: &[&str]| bare.e2ee_with(dir, args, &[("PATH", text(&nothing))]);

        let (key, store) = (bare.path("k.json"), bare.path("store"));
        let place = ["--storage", text(&store), "--key", text(&key)];
        alone(bare.root(), &["keygen", "--output", text(&key)]).good();
        alone(
            bare.root(),
            &[
                "device-export",
                "--key",
                text(&key),
                "--output",
                text(&bare.path("d.json")),
            ],
        )
        .good();
        alone(bare.root(), &[&["init"], &place[..]].concat()).good();
        alone(
            source.path(),
            &[&["push", "--all", "--force"], &place[..]].concat(),
        )
        .good();
        alone(source.path(), &[&["push", "--tags"], &place[..]].concat()).good();
        alone(bare.root(), &[&["ls-remote"], &place[..]].concat()).good();
        alone(bare.root(), &[&["verify"], &place[..]].concat()).good();
        alone(bare.root(), &[&["verify", "--full"], &place[..]].concat()).good();
        alone(source.path(), &[&["status"], &place[..]].concat()).good();
        alone(
            bare.root(),
            &["clone", "--key", text(&key), text(&store), "clone"],
        )
        .good();
        alone(
            bare.root(),
            &["clone", "--bare", "--key", text(&key), text(&store), "clone.git"],
        )
        .good();
        let clone = bare.path("clone");
        sound(&bare, &clone);
        sound(&bare, &bare.path("clone.git"));
        assert_eq!(bare.git(&clone, &["status", "--porcelain"]).good(), "");

        let id = commit(&bare, source.path(), "more");
        alone(source.path(), &[&["push"], &place[..], &["main"]].concat()).good();
        alone(&clone, &["fetch"]).good();
        assert_eq!(bare.git(&clone, &["rev-parse", "origin/main"]).good(), id);
        alone(&clone, &["status"]).good();

        // With nothing configured.
        alone(source.path(), &["push"]).good();
        alone(source.path(), &["push", "e2ee", ":gone", "topic"]).bad(&[]);
        alone(source.path(), &["key", "show"]).good();
        alone(source.path(), &["key", "backup"]).good();
        alone(bare.root(), &["completions", "bash"]).good();
        alone(bare.root(), &["man", text(&nothing)]).good();

        let git_dir = source.git_dir();
        let environment = [("PATH", text(&nothing)), ("GIT_DIR", text(&git_dir))];
        let url = format!("e2ee::{}", store.display());
        let input = "capabilities\noption object-format true\nlist\n\n";
        let parameters = format!("'e2ee.key={}'", key.display());
        let mut environment = environment.to_vec();
        environment.push(("GIT_CONFIG_PARAMETERS", &parameters));
        let said = bare
            .helper_with(source.path(), &[&url, text(&store)], &environment, input)
            .good();
        assert!(said.contains(&format!("{id} refs/heads/main")), "{said}");
    }
}

#[test]
fn nobody_needs_configuration_files() {
    let bare = Bare::new();
    let home = bare.path("new home");
    std::fs::create_dir(&home).unwrap();
    let mut command = bare.program(
        bare.root(),
        &["ls-remote", "--storage", "store", "--key", "k.json"],
    );
    command.env_remove("GIT_CONFIG_GLOBAL").env("HOME", &home);
    bare.e2ee(bare.root(), &["keygen", "--output", "k.json"]).good();
    bare.e2ee(bare.root(), &["init", "--storage", "store", "--key", "k.json"])
        .good();
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn carriers_work_without_git() {
    let bare = Bare::new();
    let source = ingot_testdata::repo::Repo::scripted("history", Format::Sha1);
    let nothing = bare.path("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let daemon = ingot_testdata::serve::daemon::Daemon::start(bare.root());
    let alone = |dir: &std::path::Path, args: &[&str]| bare.e2ee_with(dir, args, &[("PATH", text(&nothing))]);
    let served = bare.path("served.git");
    bare.git(bare.root(), &["init", "-q", "--bare", text(&served)])
        .good();
    let local = format!("git+{}", bare.path("local.git").display());
    for (name, url) in [
        ("local", local),
        ("served", format!("git+{}", daemon.url("served.git"))),
    ] {
        let key = bare.path(&format!("{name}.json"));
        let place = ["--key", text(&key), &url];
        alone(bare.root(), &["keygen", "--output", text(&key)]).good();
        alone(
            bare.root(),
            &["carrier-init", "--remote", &url, "--key", text(&key)],
        )
        .good();
        alone(
            source.path(),
            &[&["push"], &place[..], &["main", "v1.0"]].concat(),
        )
        .good();
        alone(bare.root(), &[&["ls-remote"], &place[..]].concat()).good();
        alone(bare.root(), &[&["verify", "--full"], &place[..]].concat()).good();
        let clone = bare.path(&format!("{name}-clone"));
        alone(bare.root(), &[&["clone"], &place[..], &[text(&clone)]].concat()).good();
        sound(&bare, &clone);
        let id = commit(&bare, source.path(), name);
        alone(source.path(), &[&["push"], &place[..], &["main"]].concat()).good();
        alone(&clone, &["fetch"]).good();
        assert_eq!(bare.git(&clone, &["rev-parse", "origin/main"]).good(), id);
    }
}
