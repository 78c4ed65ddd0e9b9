//! The delta encoder against a decoder of its own, and against Git.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use gix_pack::data::entry::Header;
use ingot_engine::pack::delta::encode::{self, Index, MAX_BLOCKS, WINDOW};
use ingot_testdata::repo::{Format, Repo};
use proptest::prelude::*;

/// Applies a delta as the format describes it, written apart from the engine's own reader.
fn applied(base: &[u8], delta: &[u8]) -> Vec<u8> {
    let mut at = 0;
    let mut size = || {
        let (mut value, mut shift) = (0usize, 0);
        loop {
            let byte = delta[at];
            at += 1;
            value |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    };
    assert_eq!(size(), base.len(), "base size");
    let expected = size();
    let mut out = Vec::new();
    while at < delta.len() {
        let code = delta[at];
        at += 1;
        if code & 0x80 != 0 {
            let mut operand = |bits: std::ops::Range<u8>| {
                bits.clone().fold(0usize, |value, bit| {
                    if code & (1 << bit) == 0 {
                        return value;
                    }
                    at += 1;
                    value | usize::from(delta[at - 1]) << (8 * (bit - bits.start))
                })
            };
            let offset = operand(0..4);
            let len = match operand(4..7) {
                0 => 0x1_0000,
                len => len,
            };
            out.extend_from_slice(&base[offset..offset + len]);
        } else {
            assert_ne!(code, 0, "reserved instruction");
            out.extend_from_slice(&delta[at..at + usize::from(code)]);
            at += usize::from(code);
        }
    }
    assert_eq!(out.len(), expected, "result size");
    out
}

fn check(base: &[u8], target: &[u8]) -> usize {
    let delta = encode::delta(base, target, usize::MAX).expect("no limit");
    assert!(applied(base, &delta) == target, "the delta makes something else");
    delta.len()
}

/// Bytes without repetition, the same for the same seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn the_empty_and_the_tiny() {
    for base in [&b""[..], b"x", b"fifteen bytes..", b"sixteen bytes..."] {
        for target in [&b""[..], b"y", b"fifteen bytes..", b"sixteen bytes..."] {
            check(base, target);
        }
    }
}

#[test]
fn equal_content_costs_a_few_bytes() {
    let content = noise(1, 200_000);
    assert!(check(&content, &content) <= 12);
}

#[test]
fn one_changed_line_costs_little_more_than_the_line() {
    let line = |n: usize| format!("{n:06} the quick brown fox jumps over the lazy dog\n").into_bytes();
    let base: Vec<u8> = (0..2_000).flat_map(line).collect();
    let target: Vec<u8> = (0..2_000)
        .flat_map(|n| {
            if n == 777 {
                b"something else altogether\n".to_vec()
            } else {
                line(n)
            }
        })
        .collect();
    assert!(check(&base, &target) < 64);
}

#[test]
fn moved_blocks_are_found() {
    let base = noise(2, 100_000);
    let mut target = base[60_000..].to_vec();
    target.extend_from_slice(&base[..60_000]);
    assert!(check(&base, &target) < 40);
}

#[test]
fn a_base_longer_than_the_index_holds_blocks_is_sampled() {
    let base = noise(3, MAX_BLOCKS * WINDOW * 3);
    let index = Index::new(&base[..]);
    assert!(
        index.table_bytes() <= MAX_BLOCKS * 16,
        "{} bytes",
        index.table_bytes()
    );
    let mut target = base[..1_000_000].to_vec();
    target.extend_from_slice(&base[30_000_000..33_000_000]);
    let delta = index.delta(&target, usize::MAX).expect("no limit");
    assert!(delta.len() < 400, "{} bytes", delta.len());
    assert!(applied(&base, &delta) == target);
}

#[test]
fn one_index_serves_many_targets() {
    let base = noise(4, 50_000);
    let index = Index::new(base.clone());
    for cut in [0, 1, 17, 4_000, 49_999, 50_000] {
        let target = &base[cut..];
        let delta = index.delta(target, usize::MAX).expect("no limit");
        assert!(applied(&base, &delta) == target);
        assert_eq!(Some(delta), encode::delta(&base, target, usize::MAX));
    }
    assert_eq!(index.into_base(), base);
}

#[test]
fn the_limit_is_exact() {
    let base = noise(5, 10_000);
    let mut target = base.clone();
    target.splice(5_000..5_100, noise(6, 300));
    let delta = encode::delta(&base, &target, usize::MAX).expect("no limit");
    assert_eq!(encode::delta(&base, &target, delta.len()).as_ref(), Some(&delta));
    assert_eq!(encode::delta(&base, &target, delta.len() - 1), None);
    assert_eq!(encode::delta(&base, &noise(7, 1 << 20), 1 << 10), None);
}

/// Work that grew with the square of the length would take minutes here.
#[test]
fn hostile_content_takes_linear_time() {
    const LEN: usize = 4 << 20;
    let zeros = vec![0u8; LEN];
    assert!(check(&zeros, &zeros) <= 12);
    let mut almost = zeros.clone();
    for at in (0..LEN).step_by(1021) {
        almost[at] = 1;
    }
    check(&zeros, &almost);
    check(&almost, &zeros);
    // Many equal blocks that are not in a row, each followed by something else.
    let block = noise(8, WINDOW);
    let repeated = |salt: u64| -> Vec<u8> {
        (0..LEN / 32)
            .flat_map(|n| {
                block
                    .iter()
                    .copied()
                    .chain(noise(salt + n as u64, WINDOW))
                    .collect::<Vec<u8>>()
            })
            .collect()
    };
    check(&repeated(100), &repeated(1 << 40));
    let period: Vec<u8> = noise(9, 48).into_iter().cycle().take(LEN).collect();
    check(&period, &period[7..]);
}

#[derive(Debug, Clone)]
enum Edit {
    Remove { at: usize, len: usize },
    Insert { at: usize, bytes: Vec<u8> },
    Repeat { at: usize, len: usize, to: usize },
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        (any::<usize>(), 0..3_000usize).prop_map(|(at, len)| Edit::Remove { at, len }),
        (any::<usize>(), prop::collection::vec(any::<u8>(), 0..400))
            .prop_map(|(at, bytes)| Edit::Insert { at, bytes }),
        (any::<usize>(), 0..3_000usize, any::<usize>()).prop_map(|(at, len, to)| Edit::Repeat {
            at,
            len,
            to
        }),
    ];
    prop::collection::vec(edit, 0..12)
}

fn edited(mut content: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for edit in edits {
        let len = content.len();
        let place = |at: usize| at % (len + 1);
        match edit {
            Edit::Remove { at, len } => {
                let start = place(*at);
                let end = (start + len).min(content.len());
                content.drain(start..end);
            }
            Edit::Insert { at, bytes } => {
                let start = place(*at);
                content.splice(start..start, bytes.iter().copied());
            }
            Edit::Repeat { at, len, to } => {
                let start = place(*at);
                let piece = content[start..(start + len).min(content.len())].to_vec();
                let to = place(*to);
                content.splice(to..to, piece);
            }
        }
    }
    content
}

/// Content with structure: few distinct words, so that matches are many and ambiguous.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..5_000),
        prop::collection::vec(0..4u8, 0..20_000),
        prop::collection::vec("[a-d]{1,6}\n", 0..3_000).prop_map(|words| words.concat().into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn deltas_make_their_target(base in content(), edits in edits()) {
        let target = edited(base.clone(), &edits);
        check(&base, &target);
        check(&target, &base);
    }

    #[test]
    fn unrelated_content_too(base in content(), target in content()) {
        check(&base, &target);
    }

    #[test]
    fn the_limit_is_never_exceeded(base in content(), edits in edits(), max in 0..6_000usize) {
        let target = edited(base.clone(), &edits);
        let free = encode::delta(&base, &target, usize::MAX).expect("no limit");
        match encode::delta(&base, &target, max) {
            Some(delta) => prop_assert!(delta.len() <= max && delta == free),
            None => prop_assert!(free.len() > max),
        }
    }
}

/// Git reads a pack of whole base and delta, and finds the object that the delta stands for.
#[test]
fn git_applies_the_deltas() {
    let base = noise(10, 0x12_0000);
    let mut long = base[0x1_0000..0x2_0000].to_vec(); // exactly 64 KiB
    long.extend_from_slice(b"between");
    long.extend_from_slice(&base[0x3_0000..]);
    let repeated = base.repeat(16); // copies longer than one instruction carries
    let cases: [(&[u8], &[u8]); 4] = [
        (&base, &long),
        (&long, &base),
        (&repeated, &repeated[5..]),
        (
            b"a rather short piece of text\n",
            b"a rather short piece of other text\n",
        ),
    ];
    for format in Format::BOTH {
        for (base, target) in cases {
            let repo = Repo::empty(format);
            let delta = encode::delta(base, target, usize::MAX).expect("no limit");
            let pack = pack_of(format, base, &delta);
            ingot_testdata::git::with_input(repo.path(), &["index-pack", "--strict", "--stdin"], &pack);
            let id = ingot_testdata::git::with_input(repo.path(), &["hash-object", "--stdin"], target);
            let id = String::from_utf8(id).unwrap();
            assert_eq!(repo.git(&["cat-file", "-t", id.trim()]), "blob");
        }
    }
}

fn pack_of(format: Format, base: &[u8], delta: &[u8]) -> Vec<u8> {
    let hash = match format {
        Format::Sha1 => gix_hash::Kind::Sha1,
        Format::Sha256 => gix_hash::Kind::Sha256,
    };
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x02".to_vec();
    let start = pack.len() as u64;
    Header::Blob.write_to(base.len() as u64, &mut pack).unwrap();
    deflate(base, &mut pack);
    let base_distance = pack.len() as u64 - start;
    Header::OfsDelta { base_distance }
        .write_to(delta.len() as u64, &mut pack)
        .unwrap();
    deflate(delta, &mut pack);
    let mut hasher = gix_hash::hasher(hash);
    hasher.update(&pack);
    pack.extend_from_slice(hasher.try_finalize().unwrap().as_slice());
    pack
}

fn deflate(bytes: &[u8], out: &mut Vec<u8>) {
    use std::io::Write as _;
    let mut writer = gix_zlib::stream::deflate::Write::new(Vec::new(), gix_zlib::Compression::DEFAULT);
    writer.write_all(bytes).unwrap();
    writer.flush().unwrap();
    out.extend_from_slice(&writer.into_inner());
}
