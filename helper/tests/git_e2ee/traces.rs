//! What is said beside results: warnings about damage that does not stop the work, and where time goes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ingot_testdata::repo::Format;

use super::world::{World, commit, text};

/// Cuts the pack off that has what `revisions` reach, made for this, and returns its path.
fn damaged_pack(world: &World, repo: &Path, revisions: &str) -> PathBuf {
    let made = format!("printf '{revisions}' | git pack-objects -q --revs .git/objects/pack/pack");
    let name = world.shell(repo, &made).good();
    world.git(repo, &["prune-packed"]).good();
    let pack = repo.join(format!(".git/objects/pack/pack-{name}.pack"));
    let bytes = std::fs::read(&pack).unwrap();
    std::fs::set_permissions(&pack, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&pack, &bytes[..bytes.len() / 2]).unwrap();
    pack
}

#[test]
fn a_damaged_pack_is_warned_of_once_and_its_objects_are_refused_by_name() {
    let world = World::new();
    let repo = world.source("store", Format::Sha1);
    world.git(repo.path(), &["repack", "-adq"]).good();
    world.git(repo.path(), &["branch", "-f", "sound", "HEAD"]).good();
    let lost = commit(&world, repo.path(), "more");
    let pack = damaged_pack(&world, repo.path(), "HEAD\\n^sound\\n");
    // What is elsewhere is pushed.
    let said = world.e2ee(repo.path(), &["push", "store", "sound"]);
    assert!(said.ok, "{}", said.err);
    let warnings: Vec<&str> = said
        .err
        .lines()
        .filter(|line| line.starts_with("warning:"))
        .collect();
    assert_eq!(warnings.len(), 1, "{}", said.err);
    assert!(warnings[0].contains(text(&pack)) && warnings[0].contains("git fsck"));
    // What is lost is named.
    let said = world
        .e2ee(
            repo.path(),
            &["push", "store", &format!("{lost}:refs/heads/lost")],
        )
        .bad(&[text(&pack)]);
    assert!(said.err.contains(&lost), "{}", said.err);
}

#[test]
fn phases_are_told_on_demand() {
    let world = World::new();
    let repo = world.source("store", Format::Sha1);
    let push = |branch: &str, flags: &[&str], environment: &[(&str, &str)]| {
        let mut args = flags.to_vec();
        let target = format!("HEAD:{branch}");
        args.extend(["push", "store", &target]);
        commit(&world, repo.path(), branch);
        world.e2ee_with(repo.path(), &args, environment)
    };
    for quiet in [&[][..], &[("INGOT_TRACE", "0")], &[("INGOT_TRACE", "")]] {
        let said = push("none", &[], quiet);
        assert!(said.ok && !said.err.contains("trace:"), "{}", said.err);
    }
    for name in ["INGOT_TRACE", "GIT_REMOTE_E2EE_TRACE"] {
        let said = push("screen", &[], &[(name, "1")]);
        assert!(said.ok, "{}", said.err);
        for phase in ["trace: enumerate ", "trace: plan ", "trace: write "] {
            assert!(said.err.contains(phase), "{}", said.err);
        }
        assert!(said.err.contains(" objects") && said.err.contains(" bytes"));
    }
    let said = push("json", &["--trace-json"], &[]);
    let lines: Vec<serde_json::Value> = said
        .err
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let write = lines.iter().find(|line| line["phase"] == "write").unwrap();
    assert!(write["micros"].is_u64() && write["bytes"].as_u64().unwrap() > 32);
    // To a file, from the program that Git starts; nothing but phases and numbers in it.
    let file = world.path("trace");
    commit(&world, repo.path(), "file");
    let line = format!("INGOT_TRACE={} git push -q store HEAD:file", text(&file));
    let said = world.shell(repo.path(), &line);
    assert!(said.ok && !said.err.contains("trace:"), "{}", said.err);
    let told = std::fs::read_to_string(&file).unwrap();
    assert!(told.contains("trace: enumerate "), "{told}");
    for secret in ["alice", "refs/", text(world.root())] {
        assert!(!told.contains(secret), "{told}");
    }
}
