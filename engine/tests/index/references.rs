//! What objects refer to, and whether it may be so.

use gix_object::Kind;
use ingot_engine::pack::index::Error;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

use crate::forge::{Forge, delta, id};
use crate::{assert_agreement, ours};

fn tree(entries: &[(&str, &str, gix_hash::ObjectId)]) -> Vec<u8> {
    let mut tree = Vec::new();
    for (mode, name, id) in entries {
        tree.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        tree.extend_from_slice(id.as_bytes());
    }
    tree
}

fn commit(tree: gix_hash::ObjectId, parents: &[gix_hash::ObjectId]) -> Vec<u8> {
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text += &format!("parent {parent}\n");
    }
    text += "author Alice <alice@example.org> 1700000000 +0000\n";
    text += "committer Alice <alice@example.org> 1700000000 +0000\n\nText\n";
    text.into_bytes()
}

/// What a partial pack refers to is what Git's own list says.
#[test]
fn references_that_lead_out_of_the_pack() {
    for format in Format::BOTH {
        let repo = Repo::scripted("history", format);
        let bytes = git::with_input(
            repo.path(),
            &["pack-objects", "--stdout", "-q", "--revs", "--delta-base-offset"],
            b"main\n^main~3\n",
        );
        let indexed = assert_agreement(format, &bytes);
        let mut expected = std::collections::BTreeSet::new();
        let mut own = std::collections::BTreeSet::new();
        let objects = git::objects(repo.path(), &["main", "^main~3"]);
        for object in &objects {
            own.insert(object.clone());
            match repo.git(&["cat-file", "-t", object]).as_str() {
                "tree" => {
                    for line in repo.git(&["ls-tree", object]).lines() {
                        let mut words = line.split_whitespace();
                        if words.next() != Some("160000") {
                            expected.insert(words.nth(1).unwrap().to_owned());
                        }
                    }
                }
                "commit" => {
                    for line in repo.git(&["cat-file", "commit", object]).lines() {
                        if let Some(id) = line.strip_prefix("tree ").or(line.strip_prefix("parent ")) {
                            expected.insert(id.to_owned());
                        }
                    }
                }
                _ => {}
            }
        }
        let expected: Vec<String> = expected.difference(&own).cloned().collect();
        let actual: Vec<String> = indexed.external.iter().map(ToString::to_string).collect();
        assert!(!actual.is_empty());
        assert_eq!(actual, expected);
    }
}

#[test]
fn trees_made_by_deltas() {
    for format in Format::BOTH {
        let blob = |number: u8| id(format, Kind::Blob, &[number]);
        let names: Vec<String> = (0..100).map(|number| format!("file-{number:03}")).collect();
        let entries: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(at, name)| ("100644", name.as_str(), blob(at as u8)))
            .collect();
        let base = tree(&entries);
        let mut changed = entries.clone();
        changed[40].2 = blob(200);
        changed[70] = ("40000", "folder", id(format, Kind::Tree, b""));
        changed.remove(3);
        let target = tree(&changed);
        let mut forge = Forge::new(format);
        let offset = forge.whole(Kind::Tree, &base);
        forge.delta_to_offset(offset, &delta(&base, &target));
        let (indexed, _) = ours(format, &forge.finish(), 1).unwrap();
        let mut expected: Vec<_> = (0..100).chain([200]).map(blob).collect();
        expected.push(id(format, Kind::Tree, b""));
        expected.sort();
        assert_eq!(indexed.external, expected);
    }
}

#[test]
fn names_that_do_harm() {
    for format in Format::BOTH {
        let blob = id(format, Kind::Blob, b"x");
        for name in [".git", ".GIT", "..", ".", "a/b", "git~1"] {
            for mode in ["100644", "40000", "160000"] {
                let harmful = tree(&[("100644", "a", blob), (mode, name, blob)]);
                let mut forge = Forge::new(format);
                forge.whole(Kind::Tree, &harmful);
                match ours(format, &forge.finish(), 1) {
                    Err(Error::UnsafeName {
                        id: tree,
                        name: named,
                        ..
                    }) => {
                        assert_eq!(tree, id(format, Kind::Tree, &harmful));
                        assert_eq!(named, name);
                    }
                    other => panic!("{name}: {other:?}"),
                }
                // Brought in by a delta.
                let harmless = tree(&[("100644", "a", blob)]);
                let mut forge = Forge::new(format);
                let offset = forge.whole(Kind::Tree, &harmless);
                forge.delta_to_offset(offset, &delta(&harmless, &harmful));
                assert!(matches!(
                    ours(format, &forge.finish(), 1),
                    Err(Error::UnsafeName { .. })
                ));
            }
        }
    }
}

#[test]
fn objects_that_cannot_be_read() {
    let format = Format::Sha1;
    let blob = id(format, Kind::Blob, b"x");
    let good = tree(&[("100644", "a", blob), ("100755", "b", blob)]);
    let cases: &[(Kind, &[u8])] = &[
        (Kind::Tree, b"100644 a\0short"),
        (Kind::Tree, b"not a tree"),
        (Kind::Tree, &good[..good.len() - 1]),
        (Kind::Commit, b""),
        (Kind::Commit, b"tree 123\n"),
        (Kind::Tag, b"object 123\n"),
    ];
    for (kind, bytes) in cases {
        let mut forge = Forge::new(format);
        forge.whole(*kind, bytes);
        match ours(format, &forge.finish(), 1) {
            Err(Error::Malformed {
                id: named,
                kind: said,
                ..
            }) => {
                assert_eq!(named, id(format, *kind, bytes));
                assert_eq!(said, *kind);
            }
            other => panic!("{other:?}"),
        }
    }
    // A delta that cuts an entry in two.
    let mut forge = Forge::new(format);
    let offset = forge.whole(Kind::Tree, &good);
    forge.delta_to_offset(offset, &delta(&good, &good[..good.len() - 3]));
    assert!(matches!(
        ours(format, &forge.finish(), 1),
        Err(Error::Malformed { .. })
    ));
}

#[test]
fn objects_that_are_something_else() {
    for format in Format::BOTH {
        let blob = id(format, Kind::Blob, b"x");
        let mut forge = Forge::new(format);
        forge.whole(Kind::Blob, b"x");
        forge.whole(Kind::Commit, &commit(blob, &[]));
        match ours(format, &forge.finish(), 1) {
            Err(Error::WrongKind {
                id: named,
                expected: Kind::Tree,
                actual: Kind::Blob,
            }) => assert_eq!(named, blob),
            other => panic!("{other:?}"),
        }
    }
}
