//! A file is divided in the same way whether or not the version before is known.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use ingot_chunker::cut;
use ingot_chunker::store::{Source, Writer};
use ingot_engine::chunked::{self, Pieces, Pointer};
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_testdata::random::Numbers;
use ingot_testdata::repo::{Format, Repo};
use support::*;

struct Bench {
    repo: Repo,
    repository: Repository,
}

impl Bench {
    fn new() -> Bench {
        let repo = Repo::empty(Format::Sha1);
        let repository = Repository::open(repo.path()).unwrap();
        Bench { repo, repository }
    }

    /// Adds content as a file and checks the result; returns the pointer and how many bytes were new.
    fn add(&self, content: &[u8], before: Option<&Pointer>) -> (Pointer, u64) {
        let path = self.repo.path().join("file");
        fs::write(&path, content).unwrap();
        let store = self.repository.store().unwrap();
        let mut writer = Writer::new(&self.repository, &store);
        let added = writer.add(Source::open(&path).unwrap(), before, &Silent).unwrap();
        writer.finish().unwrap();
        let pointer = added.pointer;
        assert_eq!(pointer.size, content.len() as u64);
        assert_eq!(pointer.blake3, blake3::hash(content));
        let store = self.repository.store().unwrap();
        let pieces: Vec<(u64, u64)> = Pieces::new(&store, &pointer)
            .map(|piece| piece.map(|piece| (piece.offset, piece.length)).unwrap())
            .collect();
        assert_eq!(pieces, divided(content));
        assert!(chunked::verify(&store, &pointer, &Silent).unwrap().is_empty());
        (pointer, added.new_bytes)
    }
}

/// Where the format divides a file.
fn divided(content: &[u8]) -> Vec<(u64, u64)> {
    let mut lengths = Vec::new();
    cut::all(content, true, &mut lengths);
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    let (mut at, mut zeros) = (0, false);
    for length in lengths {
        let zero = cut::is_zero(&content[at..at + length]);
        match pieces.last_mut() {
            Some(last) if zero && zeros => last.1 += length as u64,
            _ => pieces.push((at as u64, length as u64)),
        }
        zeros = zero;
        at += length;
    }
    pieces
}

#[test]
fn one_difference_costs_one_difference() {
    let bench = Bench::new();
    let base = [
        noise(1, 3_000_000).as_slice(),
        &vec![0; 1_500_000],
        &noise(2, 2_000_000),
    ]
    .concat();
    let (before, _) = bench.add(&base, None);
    let with = |from: usize, to: usize, new: &[u8]| {
        let mut content = base.clone();
        content.splice(from..to, new.iter().copied());
        content
    };
    let end = base.len();
    for (what, content, most) in [
        ("same", base.clone(), 0),
        ("a byte in front", with(0, 0, b"x"), 1000),
        (
            "a million bytes in front",
            with(0, 0, &noise(3, 1_000_000)),
            1_100_000,
        ),
        ("zeros in front", with(0, 0, &[0; 600_000]), 400_000),
        ("a byte within", with(2_000_000, 2_000_000, b"x"), 1000),
        ("a part gone", with(1_000_000, 1_700_000, b""), 300_000),
        ("the beginning gone", with(0, 700_000, b""), 300_000),
        ("the end gone", with(5_000_000, end, b""), 300_000),
        ("the end within the zeros", with(3_900_000, end, b""), 300_000),
        ("more at the end", with(end, end, &noise(4, 500_000)), 800_000),
        ("another end", with(5_500_000, end, &noise(5, 900_000)), 1_300_000),
        ("zeros turned", with(3_500_000, 3_500_001, b"x"), 600_000),
        ("more zeros", with(3_500_000, 3_500_000, &[0; 800_000]), 600_000),
        (
            "two places",
            with(1_000_000, 4_900_000, &base[1_000_010..4_900_000]),
            1000,
        ),
        ("another file", noise(9, 4_000_000), 4_000_000),
        ("nothing", Vec::new(), 0),
    ] {
        let (_, new) = bench.add(&content, Some(&before));
        assert!(new <= most, "{what}: {new}");
        // And the way back.
        let (after, _) = bench.add(&content, Some(&before));
        let (_, new) = bench.add(&base, Some(&after));
        assert!(new <= 600_000, "back from {what}: {new}");
    }
}

#[test]
fn a_file_that_ends_in_zeros_grows() {
    let bench = Bench::new();
    for zeros in [1, 16_384, 262_143, 262_144, 262_145, 700_000] {
        let base = [noise(1, 400_000), vec![0; zeros]].concat();
        let (before, _) = bench.add(&base, None);
        for more in [vec![0; 10], vec![0; 300_000], noise(2, 100_000)] {
            let content = [base.as_slice(), &more].concat();
            let (after, _) = bench.add(&content, Some(&before));
            bench.add(&base, Some(&after));
        }
    }
}

#[test]
fn any_edit_of_any_version() {
    let bench = Bench::new();
    let mut numbers = Numbers::new(5);
    let mut content = noise(0, 900_000);
    let (mut before, _) = bench.add(&content, None);
    for step in 0..60u64 {
        let at = numbers.below(content.len() + 1);
        let length = numbers.below(150_000);
        match numbers.below(7) {
            0 => drop(content.splice(at..at, noise(step, length))),
            1 => drop(content.drain(at..(at + length).min(content.len()))),
            2 => content.extend(noise(step, length)),
            3 => drop(content.splice(at..at, vec![0; length * 3])),
            4 => content.extend(vec![0; length * 3]),
            5 => content.truncate(content.len() - length.min(content.len())),
            _ => drop(content.splice(at..at, *b"few bytes")),
        }
        before = bench.add(&content, Some(&before)).0;
    }
}
