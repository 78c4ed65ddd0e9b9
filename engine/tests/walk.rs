//! The walk against `git rev-list --objects`, on random histories in every layout.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use gix_hash::ObjectId;
use ingot_engine::connectivity::{self, Connectivity, Question};
use ingot_engine::progress::Silent;
use ingot_engine::store::Store;
use ingot_engine::walk::{self, Objects, Request};
use ingot_testdata::git;
use ingot_testdata::random::Numbers;
use ingot_testdata::repo::{Format, Repo};

const COMMITS: usize = 60;

fn kind(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn open(objects: &Path, format: Format) -> Store {
    Store::open(objects, kind(format)).unwrap()
}

fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).unwrap()
}

fn resolve(repo: &Repo, names: &[String]) -> Vec<ObjectId> {
    let mut args = vec!["rev-parse"];
    args.extend(names.iter().map(String::as_str));
    repo.git(&args).lines().map(id).collect()
}

fn all_refs(repo: &Repo) -> Vec<ObjectId> {
    let listed = repo.git(&["for-each-ref", "--format=%(objectname)"]);
    listed.lines().map(id).collect()
}

/// What Git finds.
fn judged(repo: &Repo, wants: &[ObjectId], haves: &[ObjectId]) -> BTreeSet<String> {
    let mut input = String::new();
    for want in wants {
        input.push_str(&format!("{want}\n"));
    }
    for have in haves {
        input.push_str(&format!("^{have}\n"));
    }
    let args = ["rev-list", "--objects", "--no-object-names", "--stdin"];
    let output = git::with_input(repo.path(), &args, input.as_bytes());
    String::from_utf8(output)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn found(store: &Store, objects: &Objects) -> BTreeSet<String> {
    let ids: BTreeSet<String> = objects.ids(store).map(|id| id.to_string()).collect();
    assert_eq!(ids.len(), objects.len() as usize);
    for object in objects.iter() {
        let id = match object.place {
            walk::Place::Packed(at) => store.id(at),
            walk::Place::Loose(id) => id,
        };
        assert_eq!(objects.number(store, id), Some(object.number));
        assert_eq!(store.header(id).unwrap().unwrap().0, object.kind, "{id}");
    }
    let counts = objects.counts();
    let sum = counts.commits + counts.trees + counts.blobs + counts.tags;
    assert_eq!(sum, u64::from(objects.len()));
    ids
}

fn enumerate(store: &Store, wants: &[ObjectId], haves: &[ObjectId]) -> Objects {
    let request = |threads| Request {
        wants,
        haves,
        threads,
        ..Request::default()
    };
    let one = walk::enumerate(store, &request(1), &Silent).unwrap();
    let four = walk::enumerate(store, &request(4), &Silent).unwrap();
    assert_eq!(one, four, "the number of threads must not show");
    one
}

/// Wants and haves of all sorts.
fn questions(repo: &Repo, numbers: &mut Numbers, count: usize) -> Vec<(Vec<ObjectId>, Vec<ObjectId>)> {
    let mut names = |most: usize| -> Vec<String> {
        (0..1 + numbers.below(most))
            .map(|_| match numbers.below(12) {
                0 => format!("t{}", numbers.below(6)),
                _ => format!("c{}", 1 + numbers.below(COMMITS)),
            })
            .collect()
    };
    (0..count)
        .map(|_| (resolve(repo, &names(3)), resolve(repo, &names(4))))
        .collect()
}

/// Compares everything that can be compared in one layout.
fn compare(repo: &Repo, store: &Store, seed: u64) {
    let all = all_refs(repo);
    assert_eq!(
        found(store, &enumerate(store, &all, &[])),
        judged(repo, &all, &[])
    );
    let (mut ours, mut theirs) = (0, 0);
    let mut numbers = Numbers::new(seed);
    for (wants, haves) in questions(repo, &mut numbers, 25) {
        let reached = judged(repo, &wants, &[]);
        let full = enumerate(store, &wants, &[]);
        assert_eq!(found(store, &full), reached, "seed {seed}, {wants:?}");

        let objects = enumerate(store, &wants, &haves);
        let sent = found(store, &objects);
        let present = judged(repo, &haves, &[]);
        let lacking: Vec<_> = reached
            .iter()
            .filter(|id| !present.contains(*id) && !sent.contains(*id))
            .collect();
        assert!(
            lacking.is_empty(),
            "seed {seed}, {wants:?} ^{haves:?} lacks {lacking:?}"
        );
        assert!(sent.is_subset(&reached), "seed {seed}, {wants:?} ^{haves:?}");
        let judged = judged(repo, &wants, &haves);
        ours += sent.len();
        theirs += judged.len();
        // Wrong clocks let Git look at trees now and then that nobody would look for.
        let limit = (judged.len() * 12 / 10).max(judged.len() + 8);
        assert!(
            sent.len() <= limit,
            "seed {seed}, {wants:?} ^{haves:?}: {} objects where Git sends {}: {:?}",
            sent.len(),
            judged.len(),
            sent.difference(&judged).collect::<Vec<_>>(),
        );
        for number in 0..objects.len() {
            if let Some(earlier) = objects.predecessor(number) {
                let (kind, _) = store.header(earlier).unwrap().unwrap();
                assert_eq!(kind, objects.kind(number));
                let hex = earlier.to_string();
                assert!(sent.contains(&hex) || present.contains(&hex), "{hex} is nowhere");
            }
        }
        let question = Question {
            tips: &wants,
            frontier: &haves,
            threads: 2,
            ..Question::default()
        };
        let answer = connectivity::check(store, &question, &Silent).unwrap();
        assert!(matches!(answer, Connectivity::Connected { .. }));
    }
    eprintln!("seed {seed}: {ours} objects, Git {theirs}");
    assert!(
        ours * 100 <= theirs * 103,
        "{ours} objects where Git sends {theirs}"
    );
}

fn in_all_layouts(seed: u64, format: Format) {
    let repo = Repo::random(seed, format, COMMITS);
    compare(&repo, &open(&repo.objects(), format), seed);

    repo.scatter(COMMITS);
    compare(&repo, &open(&repo.objects(), format), seed + 1);

    repo.git(&["commit-graph", "write", "--reachable"]);
    compare(&repo, &open(&repo.objects(), format), seed + 2);

    let borrower = Repo::empty(format);
    let alternates = borrower.objects().join("info/alternates");
    std::fs::write(alternates, format!("{}\n", repo.objects().display())).unwrap();
    compare(&repo, &open(&borrower.objects(), format), seed + 3);

    std::fs::remove_file(repo.objects().join("info/commit-graph")).unwrap();
    repo.pack();
    compare(&repo, &open(&repo.objects(), format), seed + 4);

    repo.git(&["repack", "-q", "-a", "-d", "-b"]);
    compare(&repo, &open(&repo.objects(), format), seed + 5);
}

/// Several packs under one multi-pack index, with and without a bitmap over all of them, beside a chain of commit-graphs
/// that ends somewhere in the middle of the history.
fn in_layouts_of_several_packs(seed: u64, format: Format) {
    let repo = Repo::random(seed, format, COMMITS);
    let folder = repo.objects().join("pack/pack");
    let pack = |revisions: &str| {
        git::with_input(
            repo.path(),
            &["pack-objects", "-q", "--revs", folder.to_str().unwrap()],
            revisions.as_bytes(),
        );
    };
    let (early, middle) = (format!("c{}", COMMITS / 3), format!("c{}", COMMITS * 2 / 3));
    pack(&format!("{early}\n"));
    pack(&format!("{middle}\n^{early}\n"));
    // The same objects in two packs.
    pack(&format!("{middle}\n"));
    let rest: String = all_refs(&repo).iter().map(|id| format!("{id}\n")).collect();
    pack(&format!("{rest}^{middle}\n"));
    repo.git(&["prune-packed", "-q"]);

    for (commit, rest) in [(&early, false), (&middle, true)] {
        let graph = ["commit-graph", "write", "--split=no-merge", "--stdin-commits"];
        git::with_input(
            repo.path(),
            &graph,
            format!("{}\n", repo.git(&["rev-parse", commit])).as_bytes(),
        );
        let chain = repo.objects().join("info/commit-graphs/commit-graph-chain");
        let files = std::fs::read_to_string(chain).unwrap().lines().count();
        assert!(files == 1 + usize::from(rest));
    }
    let store = open(&repo.objects(), format);
    assert!(store.packs().len() == 4 && store.commit_graph().is_some() && store.bitmap().is_none());
    compare(&repo, &store, seed + 1);

    repo.git(&["multi-pack-index", "write"]);
    compare(&repo, &open(&repo.objects(), format), seed + 2);

    repo.git(&["multi-pack-index", "write", "--bitmap"]);
    let store = open(&repo.objects(), format);
    assert!(store.bitmap().is_some_and(|bitmap| bitmap.pack().is_none()));
    compare(&repo, &store, seed + 3);

    // All of it borrowed, with new loose commits in the repository that borrows.
    let borrower = Repo::empty(format);
    let alternates = borrower.objects().join("info/alternates");
    std::fs::write(alternates, format!("{}\n", repo.objects().display())).unwrap();
    for line in repo
        .git(&["for-each-ref", "--format=%(refname) %(objectname)"])
        .lines()
    {
        let (name, id) = line.split_once(' ').unwrap();
        borrower.git(&["update-ref", name, id]);
    }
    borrower.add_commits(seed, COMMITS, 6);
    let store = open(&borrower.objects(), format);
    compare(&borrower, &store, seed + 4);
    let new: Vec<ObjectId> = resolve(&borrower, &["n6".to_owned()]);
    let old = all_refs(&repo);
    let sent = found(&store, &enumerate(&store, &new, &old));
    let present = judged(&borrower, &old, &[]);
    let reached = judged(&borrower, &new, &[]);
    assert!(reached.iter().all(|id| sent.contains(id) || present.contains(id)));
    assert!(sent.len() <= judged(&borrower, &new, &old).len() * 12 / 10);
}

#[test]
fn as_git_finds_them_in_several_packs() {
    in_layouts_of_several_packs(900, Format::Sha1);
    in_layouts_of_several_packs(901, Format::Sha256);
}

#[test]
fn as_git_finds_them_sha1() {
    for seed in [300, 2000] {
        in_all_layouts(seed, Format::Sha1);
    }
}

/// A folder comes without a counterpart, changes, and goes back to what it was at first, all of it new: no version may
/// rely on another that relies on it.
#[test]
fn versions_do_not_rely_on_each_other() {
    let repo = Repo::random(2001, Format::Sha1, COMMITS);
    compare(&repo, &open(&repo.objects(), Format::Sha1), 2001);
}

#[test]
fn as_git_finds_them_sha256() {
    in_all_layouts(400, Format::Sha256);
}

#[test]
fn ancestry_as_git_sees_it() {
    let format = Format::Sha1;
    let repo = Repo::random(500, format, COMMITS);
    for graph in [false, true] {
        if graph {
            repo.git(&["commit-graph", "write", "--reachable"]);
        }
        let store = open(&repo.objects(), format);
        let mut numbers = Numbers::new(5);
        for _ in 0..60 {
            let names = [0, 1].map(|_| format!("c{}", 1 + numbers.below(COMMITS)));
            let ids = resolve(&repo, &names);
            let judged = git::run(
                repo.path(),
                &["merge-base", "--is-ancestor", &names[0], &names[1]],
            );
            let ours = walk::is_ancestor(&store, &ids[0], &ids[1], &[], &Silent).unwrap();
            assert_eq!(ours, judged.status.success(), "{names:?}");

            let range = format!("{}...{}", names[0], names[1]);
            let judged = repo.git(&["rev-list", "--left-right", "--count", &range]);
            let ours = walk::ahead_behind(&store, &ids[0], &ids[1], &[], &Silent).unwrap();
            if graph {
                assert_eq!(format!("{}\t{}", ours.ahead, ours.behind), judged, "{names:?}");
            }
            assert_eq!(
                ours.behind == 0,
                git::run(
                    repo.path(),
                    &["merge-base", "--is-ancestor", &names[1], &names[0]]
                )
                .status
                .success()
            );

            let request = Request {
                wants: &ids[..1],
                haves: &ids[1..],
                ..Request::default()
            };
            let commits = walk::commits(&store, &request, &Silent).unwrap();
            assert_eq!(commits.len(), ours.ahead);
            for (place, commit) in commits.iter().enumerate() {
                let parents = repo.git(&["rev-parse", &format!("{commit}^@")]);
                for parent in parents.lines().map(id) {
                    assert!(!commits[place..].contains(&parent), "parents come first");
                }
            }
        }
    }
}

#[test]
fn what_is_missing_is_named_with_what_refers_to_it() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        repo.write("src/main.rs", "fn main() {}\n");
        repo.write("README", "hello\n");
        repo.commit("one");
        repo.write("src/main.rs", "fn main() { run() }\n");
        repo.commit("two");
        repo.git(&["tag", "-a", "-m", "tag", "v1"]);
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let tag = resolve(&repo, &names(&["v1"]));
        let old = resolve(&repo, &names(&["main~1"]));
        let cases = [
            ("main~1:README", Some("main^{tree}"), Some("main~1^{tree}")),
            ("main:src/main.rs", Some("main:src"), None),
            ("main~1:src/main.rs", Some("main~1:src"), Some("never")),
            ("main:src", Some("main^{tree}"), None),
            ("main~1^{tree}", Some("main~1"), Some("never")),
            ("main^{tree}", Some("main"), None),
            ("main~1", Some("main"), Some("never")),
            ("main", Some("v1"), None),
            ("v1", None, None),
        ];
        for (lost, referrer, otherwise) in cases {
            let wanted = resolve(&repo, &names(&[lost]))[0];
            let referrers: Vec<Option<ObjectId>> = match referrer {
                None => vec![None],
                Some(name) => [Some(name), otherwise]
                    .iter()
                    .flatten()
                    .filter(|name| **name != "never")
                    .map(|name| Some(resolve(&repo, &names(&[name]))[0]))
                    .collect(),
            };
            let hex = wanted.to_string();
            let file = repo.objects().join(&hex[..2]).join(&hex[2..]);
            let kept = std::fs::read(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            for (frontier, threads) in [(&[][..], 1), (&[][..], 4), (&old[..], 1)] {
                let question = Question {
                    tips: &tag,
                    frontier,
                    threads,
                    ..Question::default()
                };
                let answer = connectivity::check(&open(&repo.objects(), format), &question, &Silent).unwrap();
                match answer {
                    Connectivity::Missing { id, referrer } => {
                        assert_eq!(id, wanted, "{lost}");
                        let frontier_itself = frontier.contains(&id) && referrer.is_none();
                        assert!(
                            frontier_itself || referrers.contains(&referrer),
                            "{lost}: {referrer:?}"
                        );
                    }
                    Connectivity::Connected { .. } => {
                        // What lies behind the frontier is believed.
                        assert!(!frontier.is_empty() && (otherwise.is_some()), "{lost}");
                    }
                }
            }
            std::fs::write(&file, kept).unwrap();
        }
        let question = Question {
            tips: &tag,
            ..Question::default()
        };
        let answer = connectivity::check(&open(&repo.objects(), format), &question, &Silent).unwrap();
        assert_eq!(answer, Connectivity::Connected { objects: 10 });
    }
}

#[test]
fn missing_objects_in_packs_are_the_same_for_any_number_of_threads() {
    let format = Format::Sha1;
    let repo = Repo::random(600, format, COMMITS);
    repo.pack();
    let all = all_refs(&repo);
    let store = open(&repo.objects(), format);
    let full = enumerate(&store, &all, &[]);
    let ids: Vec<ObjectId> = full.ids(&store).map(ToOwned::to_owned).collect();
    let kinds: Vec<_> = full.iter().map(|object| object.kind).collect();
    let mut numbers = Numbers::new(6);
    for _ in 0..12 {
        // A pack without some of the trees and blobs.
        let lost: BTreeSet<usize> = (0..3)
            .map(|_| numbers.below(ids.len()))
            .filter(|&number| matches!(kinds[number], gix_object::Kind::Tree | gix_object::Kind::Blob))
            .collect();
        let other = Repo::empty(format);
        let kept: String = (0..ids.len())
            .filter(|number| !lost.contains(number))
            .map(|number| format!("{}\n", ids[number]))
            .collect();
        let folder = other.objects().join("pack/pack");
        git::with_input(
            repo.path(),
            &["pack-objects", "-q", folder.to_str().unwrap()],
            kept.as_bytes(),
        );
        let store = open(&other.objects(), format);
        let answers = [1, 2, 4].map(|threads| {
            let question = Question {
                tips: &all,
                threads,
                ..Question::default()
            };
            connectivity::check(&store, &question, &Silent).unwrap()
        });
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0], answers[2]);
        match answers[0] {
            Connectivity::Connected { .. } => assert!(lost.is_empty()),
            Connectivity::Missing { id, referrer } => {
                assert!(lost.iter().any(|&number| ids[number] == id));
                let listed = git::run(repo.path(), &["cat-file", "-p", &referrer.unwrap().to_string()]);
                assert!(String::from_utf8_lossy(&listed.stdout).contains(&id.to_string()));
            }
        }
    }
}

#[test]
fn shallow_histories_end_where_they_are_cut() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        for number in 0..6 {
            repo.write("file", format!("{number}\n"));
            repo.write(&format!("other{number}"), "same\n");
            repo.commit("change");
        }
        let clone = Repo::empty(format);
        let url = format!("file://{}", repo.path().display());
        clone.git(&["fetch", "-q", "--depth=3", &url, "main:cut"]);
        let listed = std::fs::read_to_string(clone.git_dir().join("shallow")).unwrap();
        let shallow: Vec<ObjectId> = listed.lines().map(id).collect();
        let store = open(&clone.objects(), format);
        let tips = resolve(&clone, &["cut".to_owned()]);
        let request = Request {
            wants: &tips,
            shallow: &shallow,
            ..Request::default()
        };
        let objects = walk::enumerate(&store, &request, &Silent).unwrap();
        assert_eq!(found(&store, &objects), judged(&clone, &tips, &[]));
        let cut_off = Request {
            shallow: &[],
            ..request
        };
        let answer = walk::enumerate(&store, &cut_off, &Silent);
        assert!(
            matches!(answer, Err(walk::Error::Missing { referrer: Some(referrer), .. }) if shallow.contains(&referrer))
        );

        let haves = resolve(&clone, &["cut~1".to_owned()]);
        let newer = Request {
            haves: &haves,
            ..request
        };
        let objects = walk::enumerate(&store, &newer, &Silent).unwrap();
        assert_eq!(found(&store, &objects), judged(&clone, &tips, &haves));
    }
}

#[test]
fn replaced_and_grafted_commits_are_not_followed() {
    let format = Format::Sha1;
    let repo = Repo::random(700, format, 20);
    let tip = resolve(&repo, &["c20".to_owned()]);
    let before = judged(&repo, &tip, &[]);
    repo.git(&["replace", "c20", "c1"]);
    let replaced = judged(&repo, &tip, &[]);
    assert_ne!(replaced, before, "Git follows it");
    let store = open(&repo.objects(), format);
    assert_eq!(found(&store, &enumerate(&store, &tip, &[])), before);
    repo.git(&["replace", "-d", &repo.git(&["rev-parse", "c20"])]);

    // No parents, says the graft.
    let parents = repo.git(&["rev-list", "--parents", "-n1", "c20"]);
    let parent = id(parents.split(' ').nth(1).expect("it has parents"));
    let grafts = repo.git_dir().join("info/grafts");
    std::fs::create_dir_all(grafts.parent().unwrap()).unwrap();
    std::fs::write(grafts, format!("{}\n", tip[0])).unwrap();
    let grafted = judged(&repo, &tip, &[]);
    assert!(grafted.len() < before.len(), "Git follows it");
    let store = open(&repo.objects(), format);
    assert_eq!(found(&store, &enumerate(&store, &tip, &[])), before);
    assert!(walk::is_ancestor(&store, &parent, &tip[0], &[], &Silent).unwrap());
}

#[test]
fn renamed_folders_and_moved_files_are_not_sent_again() {
    let format = Format::Sha1;
    let repo = Repo::empty(format);
    for number in 0..300 {
        repo.write(
            &format!("src/deep/{}/file{number}", number % 10),
            format!("content {number}\n"),
        );
        repo.write(&format!("docs/{number}"), format!("page {number}\n"));
    }
    let old = id(&repo.commit("one"));
    let send = |new: &str| {
        let store = open(&repo.objects(), format);
        let objects = enumerate(&store, &[id(new)], &[old]);
        assert_eq!(found(&store, &objects), judged(&repo, &[id(new)], &[old]));
        objects.len()
    };
    // The folder itself is the same object.
    repo.git(&["mv", "src", "lib"]);
    assert_eq!(send(&repo.commit("rename")), 2);
    // Deeper down, with one file changed on the way.
    repo.write("lib/deep/3/file3", "changed\n");
    assert_eq!(send(&repo.commit("change after rename")), 8);
    repo.git(&["reset", "-q", "--hard", &old.to_string()]);
    repo.git(&["mv", "src/deep", "docs/shallow"]);
    repo.write("docs/shallow/3/file3", "changed\n");
    assert_eq!(send(&repo.commit("rename and change")), 6);
    // One file into another folder, and a copy from a folder that is not touched.
    repo.git(&["reset", "-q", "--hard", &old.to_string()]);
    repo.git(&["mv", "docs/7", "src/deep/7/page"]);
    std::fs::copy(
        repo.path().join("src/deep/5/file5"),
        repo.path().join("docs/copy"),
    )
    .unwrap();
    assert_eq!(send(&repo.commit("move and copy")), 6);
}

/// Makes every loose object unreadable, except these.
fn damage_all_but(repo: &Repo, kept: &BTreeSet<String>) -> usize {
    let mut damaged = 0;
    for folder in std::fs::read_dir(repo.objects()).unwrap() {
        let folder = folder.unwrap().path();
        let first = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if first.len() != 2 {
            continue;
        }
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let id = format!("{first}{}", path.file_name().unwrap().to_str().unwrap());
            if !kept.contains(&id) {
                std::fs::remove_file(&path).unwrap();
                std::fs::write(&path, "damaged").unwrap();
                damaged += 1;
            }
        }
    }
    damaged
}

/// One commit more, for a receiver that has the tip and some old branches, as after a clone or a fetch: the objects read
/// are those of the commit and, of what was there, trees of the tip, the commits that references name, and a few below
/// them. All others cannot be read here, and nobody notices.
#[test]
fn what_is_sent_first_after_a_clone_needs_no_look_at_history() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        let mut stream = String::new();
        for number in 0..1_000 {
            let date = 1_600_000_000 + 60 * number;
            stream.push_str(&format!(
                "commit refs/heads/main\ncommitter Bob <bob@example.org> {date} +0000\ndata 1\nx\n\
                 M 100644 inline a/{}/file\ndata <<END\n{number}\nEND\n\n",
                number % 7
            ));
        }
        let import = ["-c", "fastimport.unpackLimit=1000000", "fast-import", "--quiet"];
        git::with_input(repo.path(), &import, stream.as_bytes());
        let mut haves = vec!["main".to_owned()];
        for back in [100, 300, 500, 900] {
            haves.push(format!("main~{back}"));
        }
        let haves = resolve(&repo, &haves);
        repo.git(&["reset", "-q", "--hard"]);
        repo.write("a/3/file", "new\n");
        let tip = [id(&repo.commit("new"))];
        let expected = judged(&repo, &tip, &haves);
        assert_eq!(expected.len(), 5);

        let mut kept = expected.clone();
        let trees = ["main~1^{tree}", "main~1:a", "main~1:a/3"].map(str::to_owned);
        kept.extend(resolve(&repo, &trees).iter().map(ToString::to_string));
        for have in &haves {
            // Without a commit-graph, dates have to be convincing: 32 steps.
            let below = repo.git(&["rev-list", "-n33", &have.to_string()]);
            kept.extend(below.lines().map(str::to_owned));
        }
        assert!(damage_all_but(&repo, &kept) > 3_000);
        let store = open(&repo.objects(), format);
        // It would be noticed.
        let all = Request {
            wants: &tip,
            ..Request::default()
        };
        assert!(walk::enumerate(&store, &all, &Silent).is_err());

        let objects = enumerate(&store, &tip, &haves);
        assert_eq!(found(&store, &objects), expected);
        let question = Question {
            tips: &tip,
            frontier: &haves,
            threads: 1,
            ..Question::default()
        };
        let answer = connectivity::check(&store, &question, &Silent).unwrap();
        assert_eq!(answer, Connectivity::Connected { objects: 5 });
    }
}
