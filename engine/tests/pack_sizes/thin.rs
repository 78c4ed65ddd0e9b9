//! Packs whose deltas may stand on what the receiver has.

use ingot_testdata::git;
use ingot_testdata::random::Numbers;
use ingot_testdata::repo::{Format, Repo};

use crate::{compare, having, ids, names, receive, send};

#[test]
fn git_completes_them() {
    for format in Format::BOTH {
        let repo = Repo::textual(format, 40);
        for packed in [false, true] {
            if packed {
                repo.git(&["repack", "-adfq"]);
            }
            for base in ["HEAD~1", "HEAD~7", "HEAD~30"] {
                let (wants, haves) = (names(&["HEAD"]), names(&[base]));
                let sent = send(&repo, format, &wants, &haves, true);
                let receiver = having(&repo, format, &haves);
                receive(&receiver, &sent, true, &ids(&repo, &wants));
                assert!(sent.pack.len() < send(&repo, format, &wants, &haves, false).pack.len());
                // Nobody else can use it.
                let stranger = Repo::empty(format);
                let path = stranger.path().join("thin.pack");
                std::fs::write(&path, &sent.pack).unwrap();
                let refused = git::run(stranger.path(), &["index-pack", path.to_str().unwrap()]);
                assert!(!refused.status.success());
            }
        }
    }
}

#[test]
fn what_is_new_in_any_history_is_complete_with_what_the_receiver_has() {
    const COMMITS: usize = 40;
    for (seed, format) in [(31, Format::Sha1), (32, Format::Sha1), (33, Format::Sha256)] {
        let repo = Repo::random(seed, format, COMMITS);
        let mut numbers = Numbers::new(seed);
        for layout in 0..3 {
            match layout {
                0 => {}
                1 => repo.scatter(COMMITS),
                _ => repo.pack(),
            }
            for _ in 0..3 {
                let mut pick = || match numbers.below(8) {
                    0 => format!("t{}", numbers.below(6)),
                    _ => format!("c{}", 1 + numbers.below(COMMITS)),
                };
                let (wants, haves) = ([pick(), pick()], [pick(), pick()]);
                for thin in [false, true] {
                    let sent = send(&repo, format, &wants, &haves, thin);
                    receive(&having(&repo, format, &haves), &sent, thin, &ids(&repo, &wants));
                }
            }
        }
    }
}

/// The newest versions, which a pack holds whole, are small for one who has the versions before.
#[test]
fn they_are_about_as_small_as_gits() {
    let repo = Repo::textual(Format::Sha1, 250);
    for what in ["loose", "packed"] {
        for base in ["HEAD~1", "HEAD~20", "HEAD~200"] {
            compare(what, &repo, &[base], true, 120);
        }
        repo.git(&["repack", "-adfq"]);
    }
}
