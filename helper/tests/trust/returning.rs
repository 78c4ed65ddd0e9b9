//! A client that returns proves what is new since its pin, and refuses all that one without a pin refuses.

use ingot_engine::durable;
use ingot_helper::protocol::{Chain, ContentId, key_file};
use ingot_helper::storage::Storage;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::checker::{Verdict, forged};

#[test]
fn wrong_generations_above_the_pin_are_refused_and_those_below_were_before() {
    let temp = tempfile::tempdir().unwrap();
    let mut refused = 0;
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
                    let again = read(Some(entry)).err().map(text);
                    assert!(
                        again.is_some(),
                        "{}: accepted above a pin; without: {error}",
                        story.name
                    );
                }
            }
            Err(_) => {}
        }
    }
    assert!(refused > 60, "only {refused} wrong chains");
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Every manifest of a store that ends a chain that can be read, with its generation: what a client may have pinned.
fn parents(
    folder: &std::path::Path,
    store: &Directory,
    key: &ingot_helper::protocol::DeviceKey,
) -> Vec<(u64, ContentId)> {
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
                found.push((chain.head().number(), id));
            }
        }
    }
    found
}
