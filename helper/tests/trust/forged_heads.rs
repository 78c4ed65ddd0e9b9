//! Heads that are wrong in ways that only somebody with real keys can make: `recover` replaces them.

use std::path::Path;

use ingot_engine::durable;
use ingot_helper::protocol::{Chain, key_file};
use ingot_helper::remote::recover::{Class, Options};
use ingot_helper::storage::Storage as _;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::checker::{Verdict, check_store, forged};

use super::client::Client;

#[test]
fn wrongly_made_heads_are_invalid_and_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let mut recovered = 0;
    for story in forged(temp.path(), &[]) {
        if story.verdict != Verdict::Wrong || recovered == 12 {
            continue;
        }
        let store = Directory::new(&story.store, durable::real()).unwrap();
        let key = key_file::read(&story.owner_key).unwrap();
        let Some(head) = store.head().ok().flatten() else {
            continue;
        };
        let Some(parent) = newest_good(&story.store, &store, &key) else {
            continue;
        };
        // A clone that has seen the parent.
        let repository = tempfile::tempdir().unwrap();
        ingot_testdata::git::git(repository.path(), &["init", "-q", "."]);
        let client = Client::new(repository.path(), &story.store, &story.owner_key);
        std::fs::write(story.store.join("HEAD"), format!("{}\n", parent.head().id())).unwrap();
        if client.fetch().is_err() {
            continue; // its packs are no Git packs
        }
        let remembered = client.memory.join("git-remote-e2ee/vault/state.json");
        if !remembered.exists() {
            continue; // it has no references
        }
        std::fs::write(story.store.join("HEAD"), head.bytes()).unwrap();
        if client.list().is_ok() {
            continue; // what is wrong is in a pack
        }
        let recover = |publish| {
            let options = Options {
                publish,
                accept_stale_floor: true,
                ..Options::default()
            };
            let report = client.remote(|remote, _| remote.recover(&story.owner_key, &options));
            report.unwrap_or_else(|error| panic!("{}: {error}", story.name))
        };
        let report = recover(false);
        if report.class != Class::Invalid {
            continue; // another format, or a store in which things are missing
        }
        assert_eq!(
            report.default_base.as_ref(),
            Some(parent.head().id()),
            "{}",
            story.name
        );
        let report = recover(true);
        assert_eq!(report.refused, None, "{}", story.name);
        assert!(report.published.is_some(), "{}: {report:?}", story.name);
        client
            .list()
            .unwrap_or_else(|error| panic!("{}: {error}", story.name));
        check_store(&story.store, &story.owner_key, &[])
            .unwrap_or_else(|reason| panic!("{}: {reason}", story.name));
        recovered += 1;
    }
    assert!(recovered >= 8, "only {recovered} stories");
}

/// The longest chain of a store that can be read.
fn newest_good(folder: &Path, store: &Directory, key: &ingot_helper::protocol::DeviceKey) -> Option<Chain> {
    super::returning::parents(folder, store, key)
        .into_iter()
        .max_by_key(|chain| chain.head().number())
}
