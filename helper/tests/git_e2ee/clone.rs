//! Cloning without Git, judged by Git.

use ingot_testdata::repo::Format;

use super::world::{World, sound, text};

#[test]
fn a_clone_is_what_git_would_have_made() {
    for format in Format::BOTH {
        let world = World::new();
        let source = world.source("vault", format);
        world
            .git(source.path(), &["push", "-q", "vault", "main", "topic", "second"])
            .good();
        world
            .git(source.path(), &["push", "-q", "--tags", "vault"])
            .good();
        world
            .e2ee(
                world.root(),
                &["clone", "--key", text(&world.key), &world.url(), "ours"],
            )
            .good();
        let ours = world.path("ours");
        let theirs = world.clone("theirs", &[]);
        sound(&world, &ours);
        assert_eq!(
            world.git(&ours, &["status", "--porcelain", "--branch"]).good(),
            "## main...origin/main"
        );
        let refs = |dir| {
            world
                .git(
                    dir,
                    &["for-each-ref", "--format=%(refname) %(objectname) %(symref)"],
                )
                .good()
        };
        assert_eq!(refs(&ours), refs(&theirs));
        for name in [
            "remote.origin.url",
            "remote.origin.fetch",
            "remote.origin.e2ee-key",
            "branch.main.remote",
            "branch.main.merge",
            "core.bare",
        ] {
            let config = |dir| world.git(dir, &["config", "--local", name]).good();
            assert_eq!(config(&ours), config(&theirs), "{name}");
        }
        assert_eq!(
            world.git(&ours, &["rev-parse", "--show-object-format"]).good(),
            format.name()
        );
        let listing = |dir| world.git(dir, &["ls-files", "--stage"]).good();
        assert_eq!(listing(&ours), listing(&theirs));
        world.git(&ours, &["fetch", "-q"]).good();
        world.e2ee(&ours, &["fetch"]).good();
    }
}

#[test]
fn the_forms_of_a_clone() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world
        .git(source.path(), &["push", "-q", "vault", "main", "topic", "v1.0"])
        .good();
    let url = world.url();
    let clone = |options: &[&str]| {
        let mut args = vec!["clone", "--key", text(&world.key)];
        args.extend_from_slice(options);
        world.e2ee(world.root(), &args).good();
    };
    clone(&["--bare", &url, "bare.git"]);
    let refs = world
        .git(
            &world.path("bare.git"),
            &["for-each-ref", "--format=%(refname) %(objectname)"],
        )
        .good();
    assert_eq!(refs.lines().collect::<Vec<_>>(), world.refs());
    assert_eq!(
        world
            .git(&world.path("bare.git"), &["config", "core.bare"])
            .good(),
        "true"
    );
    sound(&world, &world.path("bare.git"));

    clone(&["--branch", "topic", &url, "topic"]);
    assert_eq!(
        world
            .git(&world.path("topic"), &["status", "--porcelain", "--branch"])
            .good(),
        "## topic...origin/topic"
    );
    clone(&["--branch", "v1.0", &url, "tag"]);
    assert_eq!(
        world
            .git(&world.path("tag"), &["status", "--porcelain", "--branch"])
            .good(),
        "## HEAD (no branch)"
    );
    assert_eq!(
        world.git(&world.path("tag"), &["rev-parse", "HEAD"]).good(),
        source.git(&["rev-parse", "v1.0^{commit}"])
    );
    clone(&["--no-checkout", "--origin", "up/stream", &url, "none"]);
    assert!(!world.path("none/src").exists());
    assert_eq!(
        world
            .git(&world.path("none"), &["rev-parse", "up/stream/main", "HEAD"])
            .good()
            .lines()
            .count(),
        2
    );
    let elsewhere = world.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let args = ["clone", "--key", text(&world.key), &url];
    world.e2ee(&elsewhere, &args).good();
    sound(&world, &elsewhere.join("store"));
}

#[test]
fn a_clone_that_fails_leaves_nothing() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let (url, key) = (world.url(), text(&world.key));
    world
        .e2ee(
            world.root(),
            &["clone", "--key", key, "--branch", "absent", &url, "c"],
        )
        .bad(&["absent"]);
    assert!(!world.path("c").exists());
    std::fs::create_dir(world.path("full")).unwrap();
    std::fs::write(world.path("full/file"), "precious").unwrap();
    world
        .e2ee(world.root(), &["clone", "--key", key, &url, "full"])
        .bad(&["full"]);
    assert_eq!(std::fs::read_dir(world.path("full")).unwrap().count(), 1);
    std::fs::create_dir(world.path("empty")).unwrap();
    world
        .e2ee(world.root(), &["clone", "--key", key, &url, "empty"])
        .good();
    sound(&world, &world.path("empty"));

    let packs = world.store.join("objects");
    let pack = std::fs::read_dir(&packs).unwrap().next().unwrap().unwrap().path();
    let pack = std::fs::read_dir(pack).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    assert_eq!(
        world
            .e2ee(world.root(), &["clone", "--key", key, &url, "damaged"])
            .bad(&["git-e2ee: "])
            .code,
        Some(13)
    );
    assert!(!world.path("damaged").exists());
}

#[test]
fn an_empty_store() {
    let world = World::new();
    world
        .e2ee(
            world.root(),
            &["clone", "--key", text(&world.key), &world.url(), "c"],
        )
        .good();
    assert!(
        !world
            .git(&world.path("c"), &["rev-parse", "-q", "--verify", "HEAD"])
            .ok
    );
    world.git(&world.path("c"), &["fetch", "-q"]).good();
}

/// Chunked files whose chunks were never here: history travels, pointers stay, and everybody is told.
#[test]
fn absent_chunks_are_told_by_pushes_and_clones() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let dir = source.path();
    source.write(".gitattributes", "*.bin filter=chunk\n");
    let pointer = format!(
        "chunked-file v1\nsize {:>20}\nblake3 {}\nlist {}\n",
        100_000,
        "7".repeat(64),
        "8".repeat(40)
    );
    source.write("big.bin", &pointer);
    world.git(dir, &["add", "-A"]).good();
    world.git(dir, &["commit", "-qm", "a pointer"]).good();
    // Not in a repository that knows of no chunks: there it is a text like any other.
    let said = world.git(dir, &["push", "-q", "vault", "main:refs/heads/unmarked"]);
    assert!(!said.err.contains("chunks"), "{}", said.err);
    said.good();
    std::fs::write(source.objects().join("info/chunked"), "").unwrap();
    source.write("more.bin", pointer.replace('8', "9"));
    world.git(dir, &["add", "-A"]).good();
    world.git(dir, &["commit", "-qm", "another pointer"]).good();
    let said = world.e2ee(dir, &["--json", "push", "vault", "main"]);
    assert!(
        said.err
            .contains("1 lists or chunks of chunked files are not here"),
        "{}",
        said.err
    );
    assert!(said.good().contains("\"absent_chunks\":1"));
    source.write("third.bin", pointer.replace('8', "a"));
    world.git(dir, &["add", "-A"]).good();
    world.git(dir, &["commit", "-qm", "third"]).good();
    let said = world.git(dir, &["push", "-q", "vault", "main"]);
    assert!(
        said.err
            .contains("1 lists or chunks of chunked files are not here"),
        "{}",
        said.err
    );
    said.good();
    let said = world.e2ee(
        world.root(),
        &["clone", "--key", text(&world.key), &world.url(), "ours"],
    );
    for told in ["'big.bin' stays a pointer", "git chunk fetch REPOSITORY"] {
        assert!(said.err.contains(told), "{}", said.err);
    }
    said.good();
    let ours = world.path("ours");
    assert_eq!(std::fs::read_to_string(ours.join("big.bin")).unwrap(), pointer);
    sound(&world, &ours);
}
