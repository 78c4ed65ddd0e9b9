//! Restoring, and taking it back.

use std::os::unix::fs::PermissionsExt;

use crate::home::{Home, ran};

fn two_snapshots() -> Home {
    let home = Home::new();
    home.write("t/same", "same");
    home.write("t/changed", "old");
    home.write("t/gone", "gone");
    std::os::unix::fs::symlink("same", home.path("t/link")).unwrap();
    home.rivet(&["snapshot", "-m", "first"]).good();
    home.write("t/changed", "new");
    std::fs::remove_file(home.path("t/gone")).unwrap();
    std::fs::remove_file(home.path("t/link")).unwrap();
    std::os::unix::fs::symlink("changed", home.path("t/link")).unwrap();
    home.write("t/sub/added", "added");
    home.rivet(&["snapshot", "-m", "second"]).good();
    home
}

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let home = two_snapshots();
    let said = home.rivet(&["restore", "--dry-run", "--delete", "HEAD~1"]).good();
    for line in [
        "replace  t/changed",
        "create   t/gone",
        "replace  t/link",
        "delete   t/sub/added",
        "delete   t/sub",
    ] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    assert_eq!(home.read("t/changed"), "new");
    assert!(home.rivet(&["undo"]).ends(1).contains("nothing to undo"));
    home.write("t/changed", "in no snapshot");
    let said = home.rivet(&["restore", "-n", "HEAD~1", "t/changed"]).good();
    assert!(said.contains("is in no snapshot"), "{said}");
}

#[test]
fn what_is_restored_can_be_taken_back() {
    let home = two_snapshots();
    home.rivet(&["restore", "--delete", "HEAD~1"]).good();
    assert_eq!(home.read("t/changed"), "old");
    assert_eq!(home.read("t/gone"), "gone");
    assert!(!home.path("t/sub").exists());
    assert!(
        home.rivet(&["restore", "-n", "--delete", "HEAD~1"])
            .good()
            .contains("as the snapshot has it")
    );
    home.rivet(&["undo"]).good();
    assert!(
        home.rivet(&["restore", "-n", "--delete", "HEAD"])
            .good()
            .contains("as the snapshot has it")
    );
    assert_eq!(home.read("t/sub/added"), "added");
    home.rivet(&["undo"]).ends(1);
}

#[test]
fn what_changed_after_a_restore_is_not_taken_back() {
    let home = two_snapshots();
    home.rivet(&["restore", "HEAD~1"]).good();
    home.write("t/changed", "newer than all");
    let said = home.rivet(&["undo"]).ends(1);
    assert!(said.contains("conflict t/changed"), "{said}");
    assert_eq!(home.read("t/changed"), "newer than all");
    assert!(!home.path("t/gone").exists());
}

#[test]
fn single_paths_and_other_folders() {
    let home = two_snapshots();
    home.rivet(&["restore", "HEAD~1", "t/gone"]).good();
    assert_eq!(
        (home.read("t/gone").as_str(), home.read("t/changed").as_str()),
        ("gone", "new")
    );
    // A first word that is no snapshot is a path.
    std::fs::remove_file(home.path("t/changed")).unwrap();
    home.rivet(&["restore", "t/changed"]).good();
    assert_eq!(home.read("t/changed"), "new");
    home.rivet(&["restore", "HEAD~1", "--to", "out/deep"]).good();
    assert_eq!(home.read("out/deep/t/changed"), "old");
    assert!(
        home.rivet(&["restore", "HEAD", "t/nothing"])
            .ends(1)
            .contains("nothing at t/nothing")
    );
    assert!(home.rivet(&["restore", "HEAD~9"]).ends(1).contains("neither"));
    assert!(home.rivet(&["show", "HEAD~9"]).ends(1).contains("shorter"));
}

#[test]
fn what_is_in_the_way_stays() {
    let home = two_snapshots();
    std::fs::remove_file(home.path("t/changed")).unwrap();
    home.write("t/changed/mine", "mine");
    std::fs::remove_dir_all(home.path("t/sub")).unwrap();
    home.write("t/sub", "a file");
    std::fs::remove_file(home.path("t/same")).unwrap();
    let json = home.json(&["restore"]);
    let conflicts: Vec<_> = json["conflicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            format!(
                "{} {}",
                row["path"].as_str().unwrap(),
                row["obstacle"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(conflicts, ["t/changed folder", "t/sub not-a-folder"]);
    assert_eq!(home.read("t/changed/mine"), "mine");
    assert_eq!(home.read("t/sub"), "a file");
    assert_eq!(home.read("t/same"), "same"); // the rest is restored
    assert_eq!(home.rivet(&["restore"]).code, 1);
}

#[test]
fn only_permissions_and_times() {
    let home = two_snapshots();
    std::fs::set_permissions(home.path("t/same"), PermissionsExt::from_mode(0o600)).unwrap();
    home.age("t/changed");
    let json = home.json(&["restore"]);
    assert_eq!(
        (json["adjusted"].as_u64(), json["written"].as_u64()),
        (Some(2), Some(0))
    );
    home.rivet(&["undo"]).good();
    let mode = std::fs::metadata(home.path("t/same"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn damaged_content_is_not_restored() {
    let home = Home::new();
    // Incompressible, so that a changed byte is a changed byte of content.
    let bytes: Vec<u8> = (0..200_000u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    home.write("t/file", &bytes);
    home.rivet(&["snapshot"]).good();
    std::fs::remove_file(home.path("t/file")).unwrap();
    let pack = std::fs::read_dir(home.repository().join("objects/pack")).unwrap();
    let pack = pack
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "pack"))
        .unwrap();
    let mut stored = std::fs::read(&pack).unwrap();
    let middle = stored.len() / 2;
    stored[middle] ^= 0x10;
    std::fs::set_permissions(&pack, PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(&pack, stored).unwrap();
    home.rivet(&["restore"]).ends(13);
    assert!(!home.path("t/file").exists());
    assert_eq!(
        std::fs::read_dir(home.path("t")).unwrap().count(),
        0,
        "nothing is left behind"
    );
    home.rivet(&["verify"]).ends(13);
}

#[test]
fn a_thousand_files_at_once() {
    let home = Home::new();
    for number in 0..1000 {
        home.write(
            &format!("t/{}/{number}", number % 10),
            format!("content {number}"),
        );
    }
    home.rivet(&["snapshot"]).good();
    std::fs::remove_dir_all(home.path("t")).unwrap();
    let json = home.json(&["restore"]);
    assert_eq!(json["written"], 1000);
    assert_eq!(home.read("t/7/997"), "content 997");
    home.rivet(&["undo"]).good();
    assert!(!home.path("t").exists());
}

#[test]
fn packages_are_only_printed() {
    let home = Home::new();
    home.write("t/x", "x");
    let config = home
        .read(".config/rivet/config.toml")
        .replace("packages = false", "packages = true");
    std::fs::write(home.path(".config/rivet/config.toml"), config).unwrap();
    home.rivet(&["snapshot"]).good();
    assert!(
        home.git(&["ls-tree", "--name-only", "desk"])
            .contains("packages.json")
    );
    assert!(
        home.rivet(&["packages", "--diff"])
            .good()
            .contains("same packages")
    );
    assert!(home.rivet(&["restore", "--packages"]).good().starts_with('#'));
    home.rivet(&["packages"]).good();
    home.sound();
}

#[test]
fn a_closed_pipe_is_silent_and_documents_are_made() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.rivet(&["completions", shell]).good().contains("snapshot"));
    }
    std::fs::create_dir(home.path("man")).unwrap();
    home.rivet(&["man", "man"]).good();
    assert!(home.path("man/rivet-secrets-scan.1").exists() && home.path("man/rivet.1").exists());
    let out = home.command().arg("--version").output().unwrap();
    assert!(ran(out).good().starts_with("rivet "));
}
