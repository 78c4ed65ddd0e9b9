//! Every command over every way to a server, with and without filters, in the old and the new protocol.

use ingot_testdata::git;

use super::places::{BRANCH, Served, Way};
use super::world::{commit, sound, text};

/// Pushes, clones, pushes again, fetches.
fn works(way: Way, filter: bool, version: &str) {
    let served = Served::new(way);
    served.filter(filter);
    let world = &served.world;
    let config = world.path("home/.gitconfig");
    git::git(
        world.root(),
        &["config", "-f", text(&config), "protocol.version", version],
    );
    let source = served.source();
    let story = format!("{way:?}, filter {filter}, version {version}");
    let quiet = |said: super::world::Said| {
        // The page that asks for a password is nobody's news when there is one.
        assert!(said.ok && said.err.is_empty(), "{story}: {}", said.err);
        said.out
    };
    quiet(world.git(source.path(), &["push", "-q", "vault", "main"]));
    let clone = served.clone("clone");
    sound(world, &clone);
    let id = commit(world, source.path(), "more");
    quiet(world.git(source.path(), &["push", "-q", "vault", "main", "v1.0", "topic"]));
    quiet(world.git(&clone, &["fetch", "-q"]));
    assert_eq!(git::git(&clone, &["rev-parse", "origin/main"]), id, "{story}");
    quiet(world.e2ee(&clone, &["verify", "--full", "--quiet"]));
    assert!(quiet(world.e2ee(&clone, &["ls-remote"])).contains("refs/tags/v1.0"));
    assert!(quiet(world.e2ee(&clone, &["status"])).contains("generation 2"));
    // From the other side, which has to take in what came before.
    git::git(&clone, &["merge", "-q", "--ff-only", "origin/main"]);
    let id = commit(world, &clone, "from the clone");
    quiet(world.git(&clone, &["push", "-q", "origin", "HEAD:main"]));
    quiet(world.git(source.path(), &["pull", "-q", "vault", "main"]));
    assert_eq!(git::git(source.path(), &["rev-parse", "HEAD"]), id, "{story}");
    // Without anything kept.
    std::fs::remove_dir_all(world.path("home/.cache")).unwrap();
    let again = served.clone("again");
    sound(world, &again);
    assert_eq!(git::git(&again, &["rev-parse", "HEAD"]), id, "{story}");
    served.sound();
}

#[test]
fn git_daemon() {
    for filter in [true, false] {
        for version in ["0", "2"] {
            works(Way::Daemon, filter, version);
        }
    }
}

#[test]
fn http() {
    works(Way::Http, true, "2");
    works(Way::Http, false, "2");
    works(Way::Http, false, "0");
}

#[test]
fn http_with_a_password() {
    works(Way::HttpPassword, true, "2");
}

#[test]
fn ssh() {
    works(Way::Ssh, true, "2");
    works(Way::SshShort, false, "2");
    works(Way::SshShort, true, "0");
}

#[test]
fn a_carrier_is_begun_over_the_network() {
    for way in Way::ALL {
        let served = Served::new(way);
        let world = &served.world;
        let key = world.path("second.key.json");
        world
            .e2ee(world.root(), &["keygen", "--output", text(&key)])
            .good();
        let url = served.url.strip_prefix("e2ee::git+").unwrap();
        let init = ["carrier-init", "--remote", url, "--key", text(&key)];
        world.e2ee(world.root(), &init).bad(&["already initialized"]);
        git::git(&world.store, &["update-ref", "-d", BRANCH]);
        let said = world.e2ee(world.root(), &["ls-remote", "--key", text(&key), &served.url]);
        assert_eq!(said.code, Some(10), "{way:?}: {}", said.err);
        world.e2ee(world.root(), &init).good();
        world
            .e2ee(world.root(), &["verify", "--key", text(&key), &served.url])
            .good();
    }
}

#[test]
fn large_packs_and_many_small_ones() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let source = served.source();
    let mut state = 1u64;
    let noise: Vec<u8> = (0..(33 << 20) / 8)
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state ^ state >> 31).to_le_bytes()
        })
        .collect();
    source.write("noise", &noise);
    source.commit("large");
    for filter in [true, false] {
        served.filter(filter);
        world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        for number in 0..10 {
            commit(world, source.path(), &format!("{filter} {number}"));
            world.git(source.path(), &["push", "-q", "vault", "main"]).good();
        }
        std::fs::remove_dir_all(world.path("home/.cache")).unwrap();
        let clone = served.clone(&format!("clone-{filter}"));
        assert!(std::fs::read(clone.join("noise")).unwrap() == noise);
        sound(world, &clone);
        served.sound();
    }
    // Many packs of the cache were made few.
    let packs = std::fs::read_dir(served.cache().join("objects/pack"))
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|end| end == "pack")
        })
        .count();
    assert!(packs <= 17, "{packs} packs");
}

#[test]
fn url_rewriting_applies_to_the_inner_url() {
    let served = Served::new(Way::Daemon);
    let world = &served.world;
    let source = served.source();
    let inner = served.url.strip_prefix("e2ee::git+").unwrap();
    let base = inner.strip_suffix("carrier.git").unwrap();
    source.git(&["config", &format!("url.{base}.insteadOf"), "work:"]);
    source.git(&["config", "remote.vault.url", "e2ee::git+work:carrier.git"]);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    world.e2ee(source.path(), &["status", "vault"]).good();
}
