//! Changes of membership that nobody may make, each made with real keys and right but for one thing: refused by name.

use ingot_testdata::checker::forged;

use super::client::copy_key;
use super::world::{Bare, text};

/// The story, and what the refusal has to say.
const HOSTILE: [(&str, &str); 24] = [
    ("policy-unsigned", "policy has 0 signatures, expected exactly 1"),
    ("policy-signed-twice", "policy has 2 signatures"),
    ("policy-signed-by-writer", "which is not an active administrator"),
    (
        "policy-signed-by-new-admin",
        "which is not an active administrator",
    ),
    ("policy-by-writer", "is not an active administrator"),
    ("policy-reactivates", "changes the revocation of device"),
    ("policy-moves-revocation", "changes the revocation of device"),
    ("policy-backdates", "revokes device"),
    ("policy-forgets-device", "drops or alters device"),
    ("policy-other-keys", "device"),
    ("policy-other-root", "belongs to repository"),
    ("policy-device-twice", "is listed twice"),
    ("policy-without-admin", "no active administrator"),
    ("policy-generation-skipped", "policy generation is 4, expected 3"),
    ("policy-previous-wrong", "policy continues"),
    ("transition-changes-refs", "must not change refs or add packs"),
    ("transition-with-pack", "must not change refs or add packs"),
    ("signed-by-revoked", "is not an active writer"),
    ("audit-of-nobody", "has no envelope"),
    ("audit-short", "envelope audit must match active readers exactly"),
    ("audit-wrong-seed", "does not match its sealed audit entry"),
    (
        "envelope-for-second-broken",
        "does not match its sealed audit entry",
    ),
    ("envelopes-unsorted", "not in strictly increasing order"),
    ("envelopes-3", "envelopes"),
];

#[test]
fn hostile_transitions_are_refused_by_name() {
    let bare = Bare::new();
    let names: Vec<&str> = HOSTILE.iter().map(|(name, _)| *name).collect();
    let stories = forged(bare.root(), &names);
    assert_eq!(stories.len(), HOSTILE.len());
    for story in stories {
        let (_, expected) = HOSTILE.iter().find(|(name, _)| *name == story.name).unwrap();
        let key = bare.path(&format!("{}.json", story.name));
        copy_key(&story.owner_key, &key);
        let (store, key) = (text(&story.store).to_owned(), text(&key).to_owned());
        let before = std::fs::read(story.store.join("HEAD")).unwrap();
        for command in ["device-list", "device-rotate", "ls-remote"] {
            let said = bare
                .e2ee(bare.root(), &[command, "--storage", &store, "--key", &key])
                .bad(&[expected]);
            assert_eq!(said.code, Some(13), "{}: {}", story.name, said.err);
            assert_eq!(said.err.lines().count(), 1, "{}: {}", story.name, said.err);
        }
        assert_eq!(
            std::fs::read(story.store.join("HEAD")).unwrap(),
            before,
            "{}",
            story.name
        );
    }
}
