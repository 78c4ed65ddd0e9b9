//! What cannot be seen from outside: both ways of walking from a frontier, and how far they go.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use ingot_testdata::random::Numbers;
use ingot_testdata::repo::{Format, Repo};

use super::*;
use crate::progress::Silent;

const COMMITS: usize = 50;

fn store(repo: &Repo) -> Store {
    let sha1 = repo.git(&["rev-parse", "--show-object-format"]) == "sha1";
    let format = if sha1 {
        gix_hash::Kind::Sha1
    } else {
        gix_hash::Kind::Sha256
    };
    Store::open(&repo.objects(), format).unwrap()
}

fn id(repo: &Repo, name: &str) -> ObjectId {
    ObjectId::from_hex(repo.git(&["rev-parse", name]).as_bytes()).unwrap()
}

fn set(store: &Store, objects: &Objects) -> BTreeSet<ObjectId> {
    objects.ids(store).map(ToOwned::to_owned).collect()
}

#[test]
fn level_by_level_finds_what_is_lacking_and_nothing_that_the_edge_has() {
    for (seed, format) in [(7, Format::Sha1), (8, Format::Sha256)] {
        let repo = Repo::random(seed, format, COMMITS);
        for packed in [false, true] {
            if packed {
                repo.pack();
            }
            let store = store(&repo);
            let mut numbers = Numbers::new(seed);
            for _ in 0..25 {
                let mut pick = || id(&repo, &format!("c{}", 1 + numbers.below(COMMITS)));
                let (wants, haves) = ([pick(), pick()], [pick(), pick()]);
                let request = |haves, threads| Request {
                    wants: &wants,
                    haves,
                    threads,
                    ..Request::default()
                };
                let bulk = enumerate_with(&store, &request(&haves, 1), 0, &Silent).unwrap();
                assert_eq!(
                    bulk,
                    enumerate_with(&store, &request(&haves, 4), 0, &Silent).unwrap()
                );
                let reached = set(&store, &enumerate(&store, &request(&[], 1), &Silent).unwrap());
                let present = Request {
                    wants: &haves,
                    ..Request::default()
                };
                let present = set(&store, &enumerate(&store, &present, &Silent).unwrap());
                let sent = set(&store, &bulk);
                assert!(sent.is_subset(&reached));
                assert!(reached.iter().all(|id| sent.contains(id) || present.contains(id)));
                let single = enumerate(&store, &request(&haves, 1), &Silent).unwrap();
                assert_eq!(single.counts().commits, bulk.counts().commits);
            }
        }
    }
}

#[test]
fn bitmaps_change_nothing_but_the_time() {
    for (seed, format) in [(17, Format::Sha1), (18, Format::Sha256)] {
        let repo = Repo::random(seed, format, COMMITS);
        for multi in [false, true] {
            match multi {
                false => repo.git(&["repack", "-q", "-a", "-d", "-b"]),
                true => {
                    repo.git(&["repack", "-q", "-d"]);
                    repo.git(&["multi-pack-index", "write", "--bitmap"])
                }
            };
            if !multi {
                repo.add_commits(seed, COMMITS, 8);
            }
            let store = store(&repo);
            assert!(store.bitmap().is_some());
            let mut numbers = Numbers::new(seed);
            for _ in 0..25 {
                let mut pick = || match numbers.below(3) {
                    0 => id(&repo, &format!("n{}", 1 + numbers.below(8))),
                    1 => id(&repo, &format!("t{}", numbers.below(6))),
                    _ => id(&repo, &format!("c{}", 1 + numbers.below(COMMITS))),
                };
                let (wants, haves) = ([pick(), pick(), pick()], [pick(), pick()]);
                let find = |wants, haves, verify, threads| {
                    let request = Request {
                        wants,
                        haves,
                        verify,
                        threads,
                        ..Request::default()
                    };
                    enumerate_with(&store, &request, 0, &Silent).unwrap()
                };
                let full = find(&wants, &[], false, 1);
                assert_eq!(full, find(&wants, &[], false, 4));
                let reached = set(&store, &full);
                assert_eq!(reached, set(&store, &find(&wants, &[], true, 1)));
                assert_eq!(full.counts(), find(&wants, &[], true, 1).counts());
                let present = set(&store, &find(&haves, &[], true, 1));
                let sent = set(&store, &find(&wants, &haves, false, 1));
                let lacking: BTreeSet<ObjectId> = reached.difference(&present).copied().collect();
                assert_eq!(sent, lacking);
            }
        }
    }
}

/// Counts how often the walk asks whether to go on, which it does at fixed numbers of steps.
#[derive(Default)]
struct Steps(AtomicU64);

impl Progress for Steps {
    fn interrupted(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        false
    }
}

/// A line of so many commits, one minute after the other.
fn line(repo: &Repo, count: usize) {
    let mut stream = String::new();
    for number in 0..count {
        let date = 1_700_000_000 + 60 * number;
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter Bob <bob@example.org> {date} +0000\ndata 1\nx\n\
             M 100644 inline file\ndata <<END\n{number}\nEND\n\n"
        ));
    }
    ingot_testdata::git::with_input(repo.path(), &["fast-import", "--quiet"], stream.as_bytes());
}

#[test]
fn a_new_commit_with_an_old_date_does_not_lead_through_all_of_history() {
    let repo = Repo::empty(Format::Sha1);
    line(&repo, 5000);
    let tip = id(&repo, "main");
    for date in ["2001-01-01T00:00:00Z", "2040-01-01T00:00:00Z"] {
        let new = ingot_testdata::git::command(repo.path())
            .args(["commit-tree", "-p", "main", "-m", "new", "main^{tree}"])
            .env("GIT_COMMITTER_DATE", date)
            .output()
            .unwrap();
        let new = ObjectId::from_hex(new.stdout.trim_ascii()).unwrap();
        let (wants, haves) = ([new], [tip]);
        let request = Request {
            wants: &wants,
            haves: &haves,
            ..Request::default()
        };
        let steps = Steps::default();
        let objects = enumerate(&store(&repo), &request, &steps).unwrap();
        assert_eq!(objects.len(), 1);
        assert_eq!(steps.0.load(Ordering::Relaxed), 0, "fewer than a thousand steps");
        assert!(is_ancestor(&store(&repo), &tip, &new, &[], &steps).unwrap());
        assert_eq!(steps.0.load(Ordering::Relaxed), 0);
        assert!(!is_ancestor(&store(&repo), &new, &tip, &[], &Silent).unwrap());
    }
}

/// Makes a commit of that date with the tree of `main`.
fn commit_at(repo: &Repo, parents: &[ObjectId], date: i64) -> ObjectId {
    let mut command = ingot_testdata::git::command(repo.path());
    command.args(["commit-tree", "-m", "x", "main^{tree}"]);
    for parent in parents {
        command.args(["-p", &parent.to_string()]);
    }
    let date = format!("@{date} +0000");
    command
        .env("GIT_COMMITTER_DATE", &date)
        .env("GIT_AUTHOR_DATE", &date);
    ObjectId::from_hex(command.output().unwrap().stdout.trim_ascii()).unwrap()
}

/// How many commits are read to find what is new, and how many that are.
fn read_and_new(repo: &Repo, wants: &[ObjectId], haves: &[ObjectId]) -> (usize, usize) {
    let store = store(repo);
    let mut history = History::new(&store, &Request::default());
    let frontier = Frontier::find(&mut history, wants, haves, &Silent).unwrap();
    (frontier.nodes().len(), frontier.new_len())
}

#[test]
fn old_side_branches_are_not_followed_down_to_the_first_commit() {
    let repo = Repo::empty(Format::Sha1);
    let (start, minute) = (1_700_000_000, 60);
    line(&repo, 5000);
    let tip = id(&repo, "main");
    // Branches that left the line early, each with a commit of its own shortly afterwards.
    let mut haves = vec![tip];
    for number in 1..=20 {
        let fork = id(&repo, &format!("main~{}", 200 * number));
        haves.push(commit_at(
            &repo,
            &[fork],
            start + minute * (5000 - 200 * number) + 1,
        ));
    }
    for date in [
        start - 1_000_000,     // before everything
        start + minute * 2500, // in the middle
        start + minute * 5001, // as it should be
        4_000_000_000,
    ] {
        let new = commit_at(&repo, &[tip], date);
        let (read, found) = read_and_new(&repo, &[new], &haves);
        assert_eq!(found, 1);
        assert!(read < 500, "{read} commits read with the date {date}");
        // Several on top of each other, and a merge of one of the branches.
        let second = commit_at(&repo, &[new], date - 5);
        let third = commit_at(&repo, &[second, haves[7]], date - 10);
        let (read, found) = read_and_new(&repo, &[third], &haves);
        assert_eq!(found, 3);
        assert!(read < 500, "{read} commits read with the date {date}");
    }
    // With right dates, little more than the tips and their parents.
    let new = commit_at(&repo, &[tip], start + minute * 5001);
    let (read, _) = read_and_new(&repo, &[new], &haves);
    assert!(read <= 2 * haves.len() + BEYOND, "{read} commits read");
}

/// What ends the search early must not make commits new that a have leads to.
#[test]
fn commits_between_a_have_and_the_line_are_old_although_a_clock_was_wrong() {
    let repo = Repo::empty(Format::Sha1);
    line(&repo, 3000);
    let tip = id(&repo, "main");
    let late = 1_700_000_000 + 60 * 3000;
    // A commit from the time before, which the receiver has got below a hundred others.
    let wrong = commit_at(&repo, &[tip], 1_000_000_000);
    let mut have = wrong;
    for number in 0..100 {
        have = commit_at(&repo, &[have], late + number);
    }
    let new = commit_at(&repo, &[wrong], late + 200);
    assert_eq!(read_and_new(&repo, &[new], &[have]).1, 1);
    assert_eq!(read_and_new(&repo, &[new], &[have, tip]).1, 1);
}

/// How far the search goes beyond what dates ask for, and the step that is too much.
const BEYOND: usize = 33;

#[test]
fn interruption_ends_the_walk() {
    struct Impatient;
    impl Progress for Impatient {
        fn interrupted(&self) -> bool {
            true
        }
    }
    let repo = Repo::empty(Format::Sha1);
    line(&repo, 1500);
    let wants = [id(&repo, "main")];
    for haves in [vec![], vec![id(&repo, "main~1400")]] {
        let request = Request {
            wants: &wants,
            haves: &haves,
            ..Request::default()
        };
        let answer = enumerate(&store(&repo), &request, &Impatient);
        assert!(matches!(answer, Err(Error::Interrupted)), "{answer:?}");
    }
}
