//! Snapshots go to an encrypted store and come back elsewhere, with no Git program at hand.

use crate::home::{Home, Ran, ran};

/// Runs the program where there is no other program.
fn alone(home: &Home, args: &[&str]) -> Ran {
    let nothing = home.path("nothing");
    std::fs::create_dir_all(&nothing).unwrap();
    ran(home.command().env("PATH", &nothing).args(args).output().unwrap())
}

#[test]
fn from_one_machine_to_another_without_git() {
    for format in ["sha1", "sha256"] {
        let store = tempfile::tempdir().unwrap();
        let url = format!("e2ee::{}", store.path().join("store").display());
        let desk = Home::bare();
        alone(
            &desk,
            &[
                "init",
                "--machine",
                "desk",
                "--object-format",
                format,
                "--remote",
                &url,
            ],
        )
        .good();
        desk.write(".bashrc", "alias ll='ls -l'\n");
        desk.write(".config/app/large", vec![3u8; 2 << 20]);
        alone(&desk, &["track", ".bashrc", ".config/app"]).good();
        let config = desk.read(".config/rivet/config.toml");
        std::fs::write(
            desk.path(".config/rivet/config.toml"),
            format!("packages = false\n{config}"),
        )
        .unwrap();
        alone(&desk, &["push"]).ends(1);
        alone(&desk, &["snapshot"]).good();
        let said = alone(&desk, &["push"]).good();
        assert!(
            said.contains("Device key made") && said.contains("generation 1"),
            "{said}"
        );
        assert!(alone(&desk, &["push"]).good().contains("has everything"));
        // Nothing of it can be read in the store.
        let mut open = vec![store.path().to_owned()];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            } else {
                let bytes = std::fs::read(&path).unwrap();
                let found = bytes
                    .windows(7)
                    .any(|window| window == b"alias l" || window == b".bashrc");
                assert!(!found, "{}", path.display());
            }
        }

        let laptop = Home::bare();
        alone(
            &laptop,
            &[
                "init",
                "--machine",
                "laptop",
                "--object-format",
                format,
                "--remote",
                &url,
            ],
        )
        .good();
        alone(&laptop, &["pull"]).ends(12);
        laptop.write(
            ".config/ingot/keys/rivet.key.json",
            desk.read(".config/ingot/keys/rivet.key.json"),
        );
        std::fs::set_permissions(
            laptop.path(".config/ingot/keys/rivet.key.json"),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
        let said = alone(&laptop, &["pull"]).good();
        assert!(said.starts_with("desk: "), "{said}");
        assert!(alone(&laptop, &["pull"]).good().contains("Nothing is new"));
        alone(&laptop, &["restore", "desk"]).good();
        assert_eq!(laptop.read(".bashrc"), "alias ll='ls -l'\n");
        assert_eq!(
            std::fs::read(laptop.path(".config/app/large")).unwrap(),
            vec![3u8; 2 << 20]
        );
        assert!(alone(&laptop, &["list", "--all"]).good().contains("desk"));
        alone(&laptop, &["verify"]).good();
        alone(&laptop, &["doctor"]).good();
        laptop.sound();
    }
}

#[test]
fn a_key_behind_a_passphrase_is_asked_for_once() {
    use ingot_helper::keys::{KeyFiles, Wrapping};

    let home = Home::new();
    home.configure("[remote]\nurl = \"e2ee::~/store\"");
    home.write("t/file", "one");
    home.rivet(&["snapshot"]).good();
    home.rivet(&["push"]).good();
    let path = home.path(".config/ingot/keys/rivet.key.json");
    let files = KeyFiles::silent();
    let key = files.read(&path).unwrap().key;
    let wrapping = Wrapping::Passphrase {
        passphrase: "open sesame".into(),
        work_factor: 4,
    };
    files
        .replace(&ingot_engine::durable::Real, &path, &key, &wrapping)
        .unwrap();
    home.write("t/file", "two");
    home.rivet(&["snapshot"]).good();
    let switched_off = home
        .command()
        .env("GIT_TERMINAL_PROMPT", "0")
        .arg("push")
        .output();
    let said = ran(switched_off.unwrap()).ends(15);
    assert!(said.contains("protected by a passphrase"), "{said}");
    let (askpass, log) = (home.path("askpass"), home.path("asked"));
    let script = format!("#!/bin/sh\necho >> '{}'\necho open sesame\n", log.display());
    std::fs::write(&askpass, script).unwrap();
    std::fs::set_permissions(&askpass, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (number, command) in ["push", "pull", "doctor"].into_iter().enumerate() {
        let output = home.command().env("GIT_ASKPASS", &askpass).arg(command).output();
        ran(output.unwrap()).good();
        assert_eq!(std::fs::read(&log).unwrap().len(), number + 1, "{command}");
    }
}

#[test]
fn history_that_was_pruned_is_pushed_and_foreign_history_is_not_overwritten() {
    let home = Home::new();
    home.configure("[remote]\nurl = \"e2ee::~/store\"");
    for number in 0..3 {
        home.write("t/file", format!("{number}"));
        home.rivet(&["snapshot"]).good();
        home.rivet(&["push"]).good();
    }
    home.rivet(&["prune", "--keep-last", "1"]).good();
    home.rivet(&["push"]).good();
    home.write("t/file", "more");
    home.rivet(&["snapshot"]).good();
    home.rivet(&["push"]).good();
    assert!(home.rivet(&["doctor"]).good().contains("generation 5"));

    // The same machine, set up anew, goes on where the store has it.
    let tip = home.git(&["rev-parse", "desk"]);
    std::fs::rename(home.repository(), home.path("old.git")).unwrap();
    home.rivet(&["init", "--machine", "desk"]).good();
    assert!(home.rivet(&["pull"]).good().contains("desk continues"));
    assert_eq!(home.git(&["rev-parse", "desk"]), tip);

    // Another one of the same name does not.
    std::fs::remove_dir_all(home.repository()).unwrap();
    home.rivet(&["init", "--machine", "desk"]).good();
    home.write("t/file", "another history");
    home.rivet(&["snapshot"]).good();
    let said = home.rivet(&["push"]).ends(1);
    assert!(said.contains("another name"), "{said}");
}

#[test]
fn stores_that_are_not_there_or_not_configured() {
    let home = Home::new();
    home.write("t/x", "x");
    home.rivet(&["snapshot"]).good();
    assert!(home.rivet(&["push"]).ends(1).contains("rivet init --remote"));
    home.rivet(&["pull", "--remote", "nowhere"]).ends(10);
    home.rivet(&["push", "--remote", "s3://bucket/x"]).ends(1);
}
