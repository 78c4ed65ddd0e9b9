//! Stores that are properly sealed and signed but for one thing, all the way to the objects.

use ingot_helper::remote::Kind;
use ingot_testdata::checker::{Verdict, forged};
use ingot_testdata::repo::{Format, Repo};

use super::client::{Client, listing};
use super::good::{clear, unchanged};

/// What other kinds than an alarm there may be: things of a format to come, and headers that nothing authenticates
/// before a key is found.
fn kinds(name: &str) -> &'static [Kind] {
    match name {
        "format-4" | "format-6" | "policy-format-4" | "policy-threshold-2" | "authorization-checkpoint" => {
            &[Kind::Failed, Kind::Alarm]
        }
        "another-root" | "commitment-wrong" | "commitment-only" => &[Kind::Key, Kind::Alarm],
        _ => &[Kind::Alarm],
    }
}

#[test]
fn every_wrong_store_is_refused_before_anything_moves() {
    let temp = tempfile::tempdir().unwrap();
    let victim = Repo::empty(Format::Sha1);
    let before = listing(&victim.git_dir());
    let (mut wrong, mut problems) = (0, Vec::new());
    for story in forged(temp.path(), &[]) {
        let repo;
        let path = if story.verdict == Verdict::Wrong {
            victim.path()
        } else {
            repo = Repo::empty(Format::Sha1);
            repo.path()
        };
        let client = Client::new(path, &story.store, &story.owner_key);
        let fetched = client.fetch();
        if story.verdict != Verdict::Wrong {
            if let Err(error) = fetched {
                problems.push(format!("{}: refused: {error}", story.name));
            }
            continue;
        }
        wrong += 1;
        match fetched {
            Ok(_) => problems.push(format!("{}: accepted; expected: {}", story.name, story.reason)),
            Err(error) => {
                clear(&story.name, &error);
                if !kinds(&story.name).contains(&error.kind()) {
                    problems.push(format!("{}: {:?}: {error}", story.name, error.kind()));
                }
            }
        }
        unchanged(&story.name, &before, &listing(&victim.git_dir()));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(wrong > 100, "only {wrong} wrong stores");
}
