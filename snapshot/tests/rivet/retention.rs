//! History, letting go of it, and reading all of it again.

use crate::home::Home;

fn history(format: &'static str) -> Home {
    let home = Home::with(format);
    for number in 0..6 {
        home.write("t/file", format!("version {number}\n").repeat(100));
        home.write(&format!("t/{number}"), format!("{number}"));
        home.rivet(&["snapshot", "-m", &format!("number {number}")])
            .good();
    }
    home
}

#[test]
fn lists_and_names_of_snapshots() {
    let home = history("sha1");
    let list = home.rivet(&["list"]).good();
    assert_eq!(list.lines().count(), 6);
    assert!(list.lines().next().unwrap().ends_with("number 5"), "{list}");
    assert_eq!(home.rivet(&["list", "-n", "2"]).good().lines().count(), 2);
    let json = home.json(&["list"]);
    let id = json["snapshots"][3]["snapshot"].as_str().unwrap().to_owned();
    for spec in ["HEAD~3", "desk~3", "~3", &id, &id[..8]] {
        assert!(home.rivet(&["show", spec]).good().contains("number 2"), "{spec}");
    }
    home.rivet(&["show", "nobody"]).ends(1);
    let diff = home.rivet(&["diff", "~1", "desk"]).good();
    assert!(
        diff.contains("-version 4") && diff.contains("+version 5"),
        "{diff}"
    );
}

#[test]
fn what_no_rule_keeps_goes_and_the_rest_is_whole() {
    for format in ["sha1", "sha256"] {
        let home = history(format);
        let tree = home.git(&["rev-parse", "desk^{tree}"]);
        let said = home.rivet(&["prune", "--keep-last", "2", "--dry-run"]).good();
        assert!(said.contains("4 of 6 snapshots would go"), "{said}");
        assert_eq!(home.git(&["rev-list", "--count", "desk"]), "6");
        let json = home.json(&["prune", "--keep-last", "2"]);
        assert_eq!(json["kept"], 2);
        assert_eq!(home.git(&["rev-list", "--count", "desk"]), "2");
        assert_eq!(home.git(&["rev-parse", "desk^{tree}"]), tree);
        assert_eq!(home.git(&["log", "--format=%s", "desk"]), "number 5\nnumber 4");
        assert!(home.git(&["count-objects", "-v"]).contains("packs: 1\n"));
        home.sound();
        home.rivet(&["verify"]).good();
        // Nothing has changed, so nothing is captured anew; and then everything is known again.
        let json = home.json(&["snapshot"]);
        assert!(json["snapshot"].is_null(), "{json}");
        home.write("t/file", "after");
        home.rivet(&["snapshot"]).good();
        home.sound();
        home.rivet(&["restore", "HEAD~1", "t/file"]).good();
        assert_eq!(home.read("t/file"), "version 5\n".repeat(100));
        home.rivet(&["prune"]).good();
        assert_eq!(home.git(&["rev-list", "--count", "desk"]), "3");
    }
}

#[test]
fn verify_notices_what_git_does_not() {
    let home = history("sha1");
    home.rivet(&["verify"]).good();
    // A snapshot whose tree is not what its manifest says: every object is sound.
    let repository = home.repository();
    let git = |args: &[&str]| ingot_testdata::git::git(&repository, args);
    let blob = ingot_testdata::git::with_input(&repository, &["hash-object", "-w", "--stdin"], b"forged");
    let blob = String::from_utf8(blob).unwrap();
    let index = repository.join("forged-index");
    let run = |args: &[&str]| {
        let output = ingot_testdata::git::command(&repository)
            .env("GIT_INDEX_FILE", &index)
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&["read-tree", "desk"]);
    run(&[
        "update-index",
        "--cacheinfo",
        &format!("100644,{},files/t/file", blob.trim()),
    ]);
    let tree = run(&["write-tree"]);
    let commit = git(&["commit-tree", &tree, "-p", "desk", "-m", "forged"]);
    git(&["update-ref", "refs/heads/desk", &commit]);
    let said = home.rivet(&["verify"]).ends(13);
    assert!(said.contains("t/file: the tree has something else"), "{said}");
}
