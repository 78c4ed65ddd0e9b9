//! Many pushes into one repository on this machine.

use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::Format;

use super::world::{World, commit, sound};

/// Packs and loose objects of the carrier.
fn counts(world: &World) -> (u64, u64) {
    let counted = git::git(&world.store, &["count-objects", "-v"]);
    let number = |name: &str| {
        let line = counted.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    assert_eq!(number("garbage:"), 0, "{counted}");
    (number("packs:"), number("count:"))
}

#[test]
fn packs_do_not_become_ever_more() {
    for format in Format::BOTH {
        let world = World::carrier(format);
        let source = world.source("vault", Format::Sha1);
        let push = |message: &str| {
            commit(&world, source.path(), message);
            world.e2ee(source.path(), &["push", "-q", "vault", "main"]).good();
        };
        // The beginning of the carrier was the first.
        (1..32).for_each(|number| push(&number.to_string()));
        assert_eq!(counts(&world), (32, 0));
        push("the first in files");
        let (packs, loose) = counts(&world);
        assert!(packs == 32 && (6..100).contains(&loose), "{packs} {loose}");
        git::fsck(&world.store);
        check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();

        // As the owner wants it.
        git::git(&world.store, &["config", "transfer.unpackLimit", "1"]);
        push("no files");
        assert_eq!(counts(&world), (33, loose));
        git::git(&world.store, &["config", "receive.unpackLimit", "100"]);
        push("files again");
        assert_eq!(counts(&world).0, 33);
        // What is large stays a pack.
        source.write("noise", noise(2 << 20));
        source.commit("noise");
        push("large");
        assert_eq!(counts(&world).0, 34);
        push("small");

        git::fsck(&world.store);
        check_store(&world.store, &world.key, &["--carrier", "--clean"]).unwrap();
        sound(&world, &world.clone("clone", &[]));
        git::git(&world.store, &["gc", "-q"]);
        push("after a collection");
        assert_eq!(counts(&world), (2, 0));
        sound(&world, &world.clone("again", &[]));
    }
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    (0..bytes / 8)
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state ^ state >> 31).to_le_bytes()
        })
        .collect()
}

#[test]
fn hooks_see_what_becomes_files() {
    let world = World::carrier(Format::Sha1);
    let source = world.source("vault", Format::Sha1);
    for number in 0..32 {
        commit(&world, source.path(), &number.to_string());
        world.e2ee(source.path(), &["push", "-q", "vault", "main"]).good();
    }
    let hooks = world.store.join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    super::shape::script(&hooks.join("update"), "git cat-file -e \"$3^{tree}\" && exit 1");
    let before = counts(&world);
    commit(&world, source.path(), "refused");
    world
        .git(source.path(), &["push", "vault", "main"])
        .bad(&["update hook declined"]);
    assert_eq!(counts(&world), before, "nothing of a push that is refused stays");
    super::shape::script(&hooks.join("update"), "git cat-file -e \"$3^{tree}\"");
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    assert!(counts(&world).1 > before.1);
}
