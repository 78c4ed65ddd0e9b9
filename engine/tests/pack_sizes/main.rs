//! How large packs are beside Git's, for one who has everything, something or nothing, and from whatever they are made.

#![allow(clippy::unwrap_used)] // in tests, failing is the point

mod memory;
mod several;
mod thin;

use gix_hash::ObjectId;
use ingot_engine::pack::write::{Options, plan};
use ingot_engine::progress::Silent;
use ingot_engine::store::Store;
use ingot_engine::walk;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

fn kind(format: Format) -> gix_hash::Kind {
    match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    }
}

fn ids(repo: &Repo, names: &[String]) -> Vec<ObjectId> {
    let mut args = vec!["rev-parse"];
    args.extend(names.iter().map(String::as_str));
    let listed = repo.git(&args);
    let id = |hex: &str| ObjectId::from_hex(hex.as_bytes()).unwrap();
    listed.lines().map(id).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// A pack that the engine made, and the ids of its objects, sorted.
struct Sent {
    pack: Vec<u8>,
    ids: Vec<String>,
}

/// Packs what `wants` reach and `haves` do not, which must not depend on the number of threads.
fn send(repo: &Repo, format: Format, wants: &[String], haves: &[String], thin: bool) -> Sent {
    let store = Store::open(&repo.objects(), kind(format)).unwrap();
    let (wants, haves) = (ids(repo, wants), ids(repo, haves));
    let request = walk::Request {
        wants: &wants,
        haves: &haves,
        ..walk::Request::default()
    };
    let objects = walk::enumerate(&store, &request, &Silent).unwrap();
    let [one, four] = [1, 4].map(|threads| {
        let options = Options {
            threads,
            thin,
            ..Options::default()
        };
        let mut pack = Vec::new();
        let plan = plan(&store, &objects, &options, &Silent).unwrap();
        let (encoded, deltas) = (plan.encoded(), plan.deltas());
        assert!(deltas <= encoded && encoded <= plan.objects());
        let summary = plan.stream(&mut pack, &Silent).unwrap();
        assert_eq!(summary.objects, objects.len());
        pack
    });
    assert!(one == four, "one thread and four write different packs");
    let mut ids: Vec<String> = objects.ids(&store).map(|id| id.to_string()).collect();
    ids.sort();
    Sent { pack: one, ids }
}

/// The bytes that Git's own pack takes.
fn gits_size(repo: &Repo, wants: &[String], haves: &[String], thin: bool) -> usize {
    let mut revisions = wants.join("\n");
    for have in haves {
        revisions.push_str(&format!("\n^{have}"));
    }
    revisions.push('\n');
    let mut args = vec!["pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset"];
    args.extend(thin.then_some("--thin"));
    git::with_input(repo.path(), &args, revisions.as_bytes()).len()
}

/// Lets Git take a pack in, and checks that what it has then is what was sent and, beside what was there, all that `tips`
/// need.
fn receive(receiver: &Repo, sent: &Sent, thin: bool, tips: &[ObjectId]) {
    let mut args = vec!["index-pack", "--strict", "--stdin"];
    args.extend(thin.then_some("--fix-thin"));
    let answer = git::with_input(receiver.path(), &args, &sent.pack);
    let answer = String::from_utf8(answer).unwrap();
    let name = answer.trim().split('\t').next_back().unwrap();
    let index = std::fs::read(receiver.objects().join(format!("pack/pack-{name}.idx"))).unwrap();
    let listed = git::with_input(receiver.path(), &["show-index"], &index);
    let listed = String::from_utf8(listed).unwrap();
    let has: Vec<&str> = listed
        .lines()
        .map(|line| line.split(' ').nth(1).unwrap())
        .collect();
    assert!(sent.ids.iter().all(|id| has.contains(&id.as_str())));
    // Git adds bases to a thin pack, and nothing to another.
    assert!(has.len() == sent.ids.len() || (thin && has.len() > sent.ids.len()));
    for (number, tip) in tips.iter().enumerate() {
        receiver.git(&["update-ref", &format!("refs/tips/{number}"), &tip.to_string()]);
    }
    git::fsck(receiver.path());
}

/// A repository that has what `revisions` reach.
fn having(repo: &Repo, format: Format, revisions: &[String]) -> Repo {
    let receiver = Repo::empty(format);
    let pack = git::with_input(
        repo.path(),
        &["pack-objects", "-q", "--revs", "--stdout"],
        (revisions.join("\n") + "\n").as_bytes(),
    );
    git::with_input(receiver.path(), &["index-pack", "--stdin"], &pack);
    receiver
}

/// The pack of `HEAD` for one who has `haves` is at most so many hundredths of Git's.
#[track_caller]
fn compare(what: &str, repo: &Repo, haves: &[&str], thin: bool, hundredths: usize) {
    let (wants, haves) = (names(&["HEAD"]), names(haves));
    let ours = send(repo, Format::Sha1, &wants, &haves, thin).pack.len();
    let gits = gits_size(repo, &wants, &haves, thin);
    eprintln!("{what}, thin {thin}, since {haves:?}: {ours} bytes, Git {gits}");
    assert!(
        ours * 100 <= gits * hundredths,
        "{what}, thin {thin}, since {haves:?}: {ours} bytes, Git {gits}"
    );
}

#[test]
fn a_thousand_commits_are_about_as_small_as_gits() {
    let repo = Repo::textual(Format::Sha1, 1050);
    for what in ["loose", "packed"] {
        compare(what, &repo, &["HEAD~1000"], false, 110);
        repo.git(&["repack", "-adfq"]);
    }
}

/// A log to which every commit appends a line, loose and in a pack with chains as deep as Git makes them.
#[test]
fn a_thousand_versions_of_a_log() {
    let format = Format::Sha1;
    let repo = Repo::empty(format);
    let mut log = "the first line of a log\n".repeat(200);
    let mut stream = String::new();
    for number in 0..1000 {
        log.push_str(&format!(
            "{number} something happened, code {:x}\n",
            number * 7919
        ));
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter Bob <bob@example.org> {} +0000\ndata 1\nx\n\
             M 100644 inline log\ndata {}\n{log}\n\n",
            1_700_000_000 + number,
            log.len()
        ));
    }
    let import = ["-c", "fastimport.unpackLimit=1000000", "fast-import", "--quiet"];
    git::with_input(repo.path(), &import, stream.as_bytes());
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    for what in ["loose", "packed"] {
        compare(what, &repo, &[], false, 110);
        compare(what, &repo, &["HEAD~20"], false, 110);
        let wants = names(&["HEAD"]);
        let sent = send(&repo, format, &wants, &[], false);
        receive(&Repo::empty(format), &sent, false, &ids(&repo, &wants));
        repo.git(&["repack", "-adfq", "--depth=1000"]);
    }
}
