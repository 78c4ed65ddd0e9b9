//! Packs made from several packs, each of which has a whole version of what it changes.

use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

use crate::{compare, ids, names, receive, send};

/// The same history in a pack of 100 commits and many of ten, each complete in itself.
fn in_steps(source: &Repo, format: Format) -> Repo {
    let repo = Repo::empty(format);
    let mut base = None;
    for back in (0..100).rev().step_by(10).chain([0]) {
        let mut revisions = format!("HEAD~{back}\n");
        if let Some(base) = base {
            revisions.push_str(&format!("^HEAD~{base}\n"));
        }
        let args = ["pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset"];
        let pack = git::with_input(source.path(), &args, revisions.as_bytes());
        git::with_input(repo.path(), &["index-pack", "--stdin"], &pack);
        base = Some(back);
    }
    repo.git(&[
        "update-ref",
        "refs/heads/main",
        &source.git(&["rev-parse", "HEAD"]),
    ]);
    repo
}

#[test]
fn whole_versions_of_other_packs_become_deltas() {
    for format in Format::BOTH {
        let repo = in_steps(&Repo::textual(format, 200), format);
        for haves in [&[][..], &["HEAD~60"]] {
            let (wants, haves) = (names(&["HEAD"]), names(haves));
            let sent = send(&repo, format, &wants, &haves, false);
            let receiver = Repo::empty(format);
            for (number, have) in haves.iter().enumerate() {
                repo.git(&["update-ref", &format!("refs/heads/base{number}"), have]);
                receiver.git(&["fetch", "-q", repo.path().to_str().unwrap(), "base0"]);
            }
            receive(&receiver, &sent, false, &ids(&repo, &wants));
        }
    }
}

#[test]
fn they_are_about_as_small_as_gits() {
    let repo = in_steps(&Repo::textual(Format::Sha1, 200), Format::Sha1);
    for haves in [&[][..], &["HEAD~1"], &["HEAD~20"], &["HEAD~90"]] {
        compare("several packs", &repo, haves, false, 110);
    }
    for base in ["HEAD~1", "HEAD~20", "HEAD~90"] {
        compare("several packs", &repo, &[base], true, 120);
    }
}
