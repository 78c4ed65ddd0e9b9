//! A client that returns proves what is new since its pin, and refuses all that one without a pin refuses.

use ingot_engine::durable;
use std::sync::Arc;

use ingot_helper::protocol::chain::Known;
use ingot_helper::protocol::{Chain, ContentId, key_file};
use ingot_helper::storage::Storage;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::checker::{Verdict, forged};

#[test]
fn wrong_generations_above_the_pin_are_refused_and_those_below_were_before() {
    let temp = tempfile::tempdir().unwrap();
    let (mut refused, mut onto) = (0, 0);
    for story in forged(temp.path(), &[]) {
        let Ok(store) = Directory::new(&story.store, durable::real()) else {
            continue;
        };
        let key = key_file::read(&story.owner_key).unwrap();
        let Some(head) = store.head().ok().flatten().and_then(|head| head.id()) else {
            continue;
        };
        let read = |verified: Option<(u64, ContentId)>| {
            Chain::read_since(|id| store.manifest(id), &head, &key, verified)
        };
        let plain = read(None);
        // Every generation of the stories but the last is sound, and so is every pin below it. A pin that the history
        // does not hold changes nothing.
        let foreign = Some((1, ContentId::of(b"another")));
        let above = Some((u64::MAX, head));
        for pin in [foreign, above] {
            assert_eq!(
                read(pin).map(|_| ()).map_err(text),
                plain.as_ref().map(|_| ()).map_err(text),
                "{}",
                story.name
            );
        }
        match &plain {
            Ok(chain) => {
                for pinned in chain.generations() {
                    let again =
                        read(Some((pinned.number(), *pinned.id()))).unwrap_or_else(|error| panic!("{error}"));
                    assert_eq!(again.refs(), chain.refs());
                    // What follows from the pin is what follows without it.
                    assert_eq!(again.head().id(), chain.head().id());
                    assert_eq!(again.policy().id(), chain.policy().id());
                }
            }
            Err(error) if story.verdict == Verdict::Wrong => {
                refused += 1;
                // The parent of the head, as far as the store can be read from there.
                for entry in parents(&story.store, &store, &key) {
                    let pin = (entry.head().number(), *entry.head().id());
                    let again = read(Some(pin)).err().map(text);
                    assert!(
                        again.is_some(),
                        "{}: accepted above a pin; without: {error}",
                        story.name
                    );
                    // With what is kept of the chain up to the pin the refusal is the same, or comes from the whole chain.
                    let known = Arc::new(Known::of(&entry, None));
                    match Chain::read_onto(|id| store.manifest(id), &head, &key, &known, Some(pin)) {
                        Ok(Some(_)) => panic!("{}: accepted above what is known", story.name),
                        Ok(None) => {}
                        Err(refused) => {
                            onto += 1;
                            assert_eq!(Some(text(refused)), again, "{}", story.name);
                        }
                    }
                }
            }
            Err(_) => {}
        }
    }
    assert!(refused > 60, "only {refused} wrong chains");
    assert!(onto > 60, "only {onto} wrong chains above what was known");
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Every chain of a store that can be read: what a client may have pinned.
pub fn parents(
    folder: &std::path::Path,
    store: &Directory,
    key: &ingot_helper::protocol::DeviceKey,
) -> Vec<Chain> {
    let mut found = Vec::new();
    for shelf in std::fs::read_dir(folder.join("manifests")).unwrap() {
        let Ok(entries) = std::fs::read_dir(shelf.unwrap().path()) else {
            continue;
        };
        for entry in entries {
            let name = entry.unwrap().file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<ContentId>().ok()) else {
                continue;
            };
            if let Ok(chain) = Chain::read(|id| store.manifest(id), &id, key) {
                found.push(chain);
            }
        }
    }
    found
}
