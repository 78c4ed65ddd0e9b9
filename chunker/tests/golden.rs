//! The format, byte for byte: `testdata/golden/chunked` holds what this version writes, and every later one must.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;
use std::fs;

use ingot_chunker::cut;
use ingot_chunker::store::{Source, Writer};
use ingot_engine::chunked::{Children, List};
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};
use ingot_testdata::golden;
use ingot_testdata::repo::{Format, Repo};
use support::*;

/// Inputs that everybody can make: see `docs/format-chunked.md`.
fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", Vec::new()),
        ("tiny", b"x".to_vec()),
        ("smallest", noise(1, cut::SMALLEST)),
        ("smallest-and-one", noise(1, cut::SMALLEST + 1)),
        ("zeros", vec![0; 1_000_000]),
        ("ones", vec![1; 1_000_000]),
        ("random", noise(2, 3_000_000)),
        ("text", text(3, 1_000_000)),
        (
            "zeros-within",
            [noise(4, 300_000), vec![0; 2_000_000], noise(5, 300_000)].concat(),
        ),
    ]
}

fn check(name: &str, actual: &str) {
    let path = golden("chunked").join(name);
    if std::env::var_os("INGOT_WRITE_GOLDEN").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(
        actual == expected,
        "{name} is not what the format says:\n{actual}"
    );
}

#[test]
fn borders() {
    let mut text = String::new();
    for (name, bytes) in inputs() {
        let mut lengths = Vec::new();
        assert_eq!(cut::all(&bytes, true, &mut lengths), bytes.len());
        let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
        writeln!(text, "{name} {} {}", bytes.len(), lengths.join(",")).unwrap();
    }
    check("borders.txt", &text);
    assert_eq!(cut::zero_length(), cut::LARGEST);
}

/// A list and those in it, as text.
fn describe(store: &Store, id: &gix_hash::oid, out: &mut String) {
    let mut bytes = Vec::new();
    store.read(id, &mut Cache::new(0), &mut bytes).unwrap().unwrap();
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    writeln!(out, "list {id} {hex}").unwrap();
    if let Children::Lists(lists) = List::parse(&bytes, store.format()).unwrap().into_children() {
        for list in lists {
            describe(store, &list.id, out);
        }
    }
}

#[test]
fn pointers_and_lists() {
    for format in Format::BOTH {
        let repo = Repo::empty(format);
        let repository = Repository::open(repo.path()).unwrap();
        let mut text = String::new();
        for (name, bytes) in inputs() {
            let store = repository.store().unwrap();
            let mut writer = Writer::new(&repository, &store);
            let added = writer
                .add(Source::stream(&mut bytes.as_slice()), None, &Silent)
                .unwrap();
            writer.finish().unwrap();
            // A file gives what a stream gives.
            let path = repo.path().join("file");
            fs::write(&path, &bytes).unwrap();
            let mut again = Writer::new(&repository, &store);
            let from_file = again.add(Source::open(&path).unwrap(), None, &Silent).unwrap();
            assert_eq!(from_file.pointer, added.pointer, "{name}");
            writeln!(text, "== {name}").unwrap();
            text += std::str::from_utf8(&added.pointer.to_bytes()).unwrap();
            describe(&repository.store().unwrap(), &added.pointer.list, &mut text);
        }
        check(&format!("{}.txt", format.name()), &text);
    }
}
