//! What is kept of a carrier, lost and damaged.

use ingot_testdata::git;

use super::places::{Served, Way, objects_in};
use super::world::{commit, text};

#[test]
fn a_lost_or_damaged_cache_is_made_anew_without_a_word() {
    for filter in [true, false] {
        let served = Served::new(Way::Daemon);
        served.filter(filter);
        let world = &served.world;
        let source = served.source();
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        let clone = served.clone("clone");
        let cache = served.cache();
        let packs = cache.join("objects/pack");
        let each_pack = |extension: &str, change: &dyn Fn(&std::path::Path)| {
            for entry in std::fs::read_dir(&packs).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|end| end == extension) {
                    change(&path);
                }
            }
        };
        let overwrite = |path: &std::path::Path, bytes: &[u8]| {
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let damages: [(&str, &dyn Fn()); 9] = [
            ("all gone", &|| std::fs::remove_dir_all(&cache).unwrap()),
            ("tip gone", &|| std::fs::remove_file(cache.join("tip")).unwrap()),
            ("tip garbage", &|| std::fs::write(cache.join("tip"), "x").unwrap()),
            ("objects gone", &|| {
                std::fs::remove_dir_all(cache.join("objects")).unwrap()
            }),
            ("packs gone", &|| {
                each_pack("pack", &|path| std::fs::remove_file(path).unwrap())
            }),
            ("indexes gone", &|| {
                each_pack("idx", &|path| std::fs::remove_file(path).unwrap())
            }),
            ("indexes garbage", &|| {
                each_pack("idx", &|path| overwrite(path, b"garbage"))
            }),
            ("packs short", &|| {
                each_pack("pack", &|path| {
                    let bytes = std::fs::read(path).unwrap();
                    overwrite(path, &bytes[..bytes.len() / 2]);
                });
            }),
            ("packs changed", &|| {
                each_pack("pack", &|path| {
                    let mut bytes = std::fs::read(path).unwrap();
                    let end = bytes.len() - 20;
                    bytes[20..end].iter_mut().for_each(|byte| *byte ^= 0x55);
                    overwrite(path, &bytes);
                });
            }),
        ];
        for (number, (name, damage)) in damages.into_iter().enumerate() {
            // Over both kinds of servers, each damage meets a reader and a writer.
            let reads = number % 2 == usize::from(filter);
            damage();
            let said = if reads {
                world.e2ee(&clone, &["verify", "--full", "--quiet"])
            } else {
                commit(world, source.path(), &format!("{name} {filter}"));
                world.git(source.path(), &["push", "-q", "vault", "main"])
            };
            assert!(
                said.ok && said.err.is_empty(),
                "{name}, filter {filter}: {}",
                said.err
            );
            served.sound();
        }
    }
}

#[test]
fn the_variable_names_the_folder_and_may_not_be_empty() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let elsewhere = world.path("elsewhere");
    let args = ["status", "--key", text(&world.key), &served.url];
    let with = |value: &str| world.e2ee_with(world.root(), &args, &[("GIT_REMOTE_E2EE_CACHE_DIR", value)]);
    with("").bad(&["GIT_REMOTE_E2EE_CACHE_DIR"]);
    with(text(&elsewhere)).good();
    assert!(elsewhere.is_dir());
    assert!(!world.path("home/.cache").exists());
    // Where nothing can be kept, everything works all the same.
    std::fs::write(world.path("file"), "").unwrap();
    with(text(&world.path("file/below"))).good();
}

#[test]
fn branches_that_were_moved_back_and_carriers_that_were_replaced_are_seen() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let source = served.source();
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let clone = served.clone("clone");
    let branch = super::places::BRANCH;
    let before = git::git(&world.store, &["rev-parse", &format!("{branch}~1")]);
    git::git(&world.store, &["update-ref", branch, &before]);
    let said = world.e2ee(&clone, &["fetch"]);
    assert_eq!(said.code, Some(13), "{}", said.err);
    assert!(said.err.contains("rolled back"), "{}", said.err);
    // Who saw nothing before sees what is there now.
    let seen = objects_in(&served.cache().join("objects"), world.root());
    assert!(seen.contains(&before));
    let args = ["status", "--key", text(&world.key), &served.url];
    assert!(world.e2ee(world.root(), &args).good().contains("generation 0"));
}
