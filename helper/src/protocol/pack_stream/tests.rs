use std::io::{Cursor, Read as _, Write as _};

use data_encoding::HEXLOWER;
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::protocol::chain::Chain;
use crate::protocol::golden::{Golden, file};
use crate::protocol::ids::Digest;
use crate::protocol::manifest::PackDescriptor;

const ROOT: RepositoryRoot = RepositoryRoot::from_bytes([9; 32]);

fn pack_key() -> PackKey {
    let secret = Secret::from_slice(&[3; 32]).expect("32 bytes");
    PackKey::derive(&GenerationKey::from_secret(secret), &ROOT, 4, 0)
}

/// Bytes without a period that could hide a swap of segments.
fn content(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn seal(plaintext: &[u8], threads: usize, piece: usize) -> (PackDescriptor, Vec<u8>) {
    let mut sealer = Sealer::new(Vec::new(), &pack_key(), threads).expect("header");
    for piece in plaintext.chunks(piece.max(1)) {
        sealer.write_all(piece).expect("sealed");
    }
    let (sealed, stored) = sealer.finish().expect("sealed");
    assert_eq!(sealed.id, ContentId::of(&stored));
    assert_eq!(sealed.plaintext_size, plaintext.len() as u64);
    assert_eq!(sealed.stored_size, stored.len() as u64);
    assert_eq!(stored_size(sealed.plaintext_size), Some(sealed.stored_size));
    let pack = PackDescriptor {
        id: sealed.id,
        plaintext_size: sealed.plaintext_size,
        generation: 4,
        ordinal: 0,
    };
    (pack, stored)
}

/// What comes out, and the error that ended it.
fn open(pack: &PackDescriptor, stored: &[u8], threads: usize) -> (Vec<u8>, Option<Error>) {
    let mut plaintext = Vec::new();
    let mut opener = match Opener::new(Cursor::new(stored.to_vec()), &pack_key(), pack, threads) {
        Ok(opener) => opener,
        Err(error) => return (plaintext, Some(Error::within(&error).expect("a refusal").clone())),
    };
    let error = opener.read_to_end(&mut plaintext).err();
    if error.is_some() {
        assert!(opener.read(&mut [0]).is_err(), "a failed stream stays failed");
    }
    (
        plaintext,
        error.map(|error| Error::within(&error).expect("a refusal").clone()),
    )
}

#[test]
fn known_answer() {
    #[derive(Deserialize)]
    struct Kat {
        key: String,
        nonce_prefix: String,
        aad: String,
        segments: Vec<String>,
        sealed: Vec<String>,
    }
    let json = std::fs::read(file("stream-kat.json")).expect("golden file");
    let kat: Kat = serde_json::from_slice(&json).expect("golden JSON");
    let hex = |text: &str| HEXLOWER.decode(text.as_bytes()).expect("hex");
    let segments = Segments {
        cipher: crypto::cipher(&Secret::from_slice(&hex(&kat.key)).expect("32 bytes")),
        prefix: hex(&kat.nonce_prefix).try_into().expect("19 bytes"),
        aad: kat.aad.into_bytes(),
    };
    for (number, (plain, sealed)) in (0..).zip(kat.segments.iter().zip(&kat.sealed)) {
        let mut bytes = plain.clone().into_bytes();
        let last = number == 1;
        segments.seal(number, last, &mut bytes);
        assert_eq!(HEXLOWER.encode(&bytes), *sealed);
        assert!(segments.open(number, !last, &mut bytes.clone()).is_none());
        assert!(segments.open(number + 1, last, &mut bytes.clone()).is_none());
        segments.open(number, last, &mut bytes).expect("opens");
        assert_eq!(bytes, plain.as_bytes());
    }
}

#[test]
fn golden_packs_open_and_are_sealed_again() {
    for golden in Golden::both() {
        let chain = Chain::read(
            |id| golden.manifest(id),
            &golden.expected.head_manifest_id,
            &golden.owner,
        );
        let chain = chain.expect("golden chain");
        let vectors = golden
            .vectors
            .generations
            .iter()
            .flat_map(|generation| &generation.packs);
        assert_eq!(chain.packs().count(), vectors.clone().count());
        for (pack, vector) in chain.packs().zip(vectors) {
            assert_eq!((pack.id, pack.plaintext_size), (vector.id, vector.plaintext_size));
            let key = chain.pack_key(pack).expect("a pack of the chain");
            assert_eq!(HEXLOWER.encode(key.key.expose()), vector.subkey);
            assert_eq!(HEXLOWER.encode(&key.base), vector.base_aad);
            let stored = golden.stored("objects", &pack.id).expect("golden pack");
            assert_eq!(stored.len() as u64, vector.ciphertext_size);
            assert_eq!(stored_size(pack.plaintext_size), Some(vector.ciphertext_size));
            let mut plaintext = Vec::new();
            let mut opener = Opener::new(Cursor::new(stored.clone()), &key, pack, 2).expect("header");
            opener.read_to_end(&mut plaintext).expect("opens");
            assert_eq!(Digest::of(&plaintext).to_string(), vector.plaintext_sha256);
            assert!(plaintext.starts_with(b"PACK"));

            let head: [u8; HEADER] = stored[..HEADER].try_into().expect("a header");
            assert_eq!(header(&head[12..].try_into().expect("19 bytes")), head);
            key.segments(&head).seal(0, true, &mut plaintext);
            assert_eq!(plaintext, stored[HEADER..]);
        }
    }
}

#[test]
fn sizes() {
    assert_eq!(stored_size(0), None);
    assert_eq!(stored_size(32), Some(79));
    assert_eq!(stored_size(SEGMENT as u64), Some(31 + 1048576 + 16));
    assert_eq!(stored_size(SEGMENT as u64 + 1), Some(31 + 1048577 + 32));
    let largest = MAX_SEGMENTS * SEGMENT as u64;
    assert_eq!(stored_size(largest), Some(31 + largest + 16 * MAX_SEGMENTS));
    assert_eq!(stored_size(largest + 1), None);
    assert_eq!(stored_size(u64::MAX), None);
}

#[test]
fn absurd_sizes_are_refused_before_memory_is_taken() {
    let (good, stored) = seal(b"x", 1, 1);
    let (_, error) = open(
        &PackDescriptor {
            plaintext_size: 0,
            ..good.clone()
        },
        &stored,
        2,
    );
    assert_eq!(error, Some(Error::Empty));
    let (_, error) = open(
        &PackDescriptor {
            plaintext_size: u64::MAX,
            ..good.clone()
        },
        &stored,
        2,
    );
    assert_eq!(error, Some(Error::TooLarge { size: u64::MAX }));
    let (plaintext, error) = open(
        &PackDescriptor {
            plaintext_size: 1 << 50,
            ..good
        },
        &stored,
        2,
    );
    assert!(
        matches!(error, Some(Error::Truncated { seen: 48, .. })),
        "{error:?}"
    );
    assert!(plaintext.is_empty());
}

#[test]
fn empty_packs_are_refused() {
    let sealer = Sealer::new(Vec::new(), &pack_key(), 2).expect("header");
    let error = sealer.finish().expect_err("nothing to seal");
    assert_eq!(Error::within(&error), Some(&Error::Empty));
}

#[test]
fn one_segment_is_verified_before_its_first_byte() {
    let (pack, stored) = seal(&content(5000), 2, 1000);
    for at in 0..stored.len() {
        let mut changed = stored.clone();
        changed[at] ^= 0x40;
        let (plaintext, error) = open(&pack, &changed, 2);
        assert!(plaintext.is_empty(), "byte {at}");
        if at < 12 {
            assert_eq!(error, Some(Error::Header { id: pack.id }), "byte {at}");
        } else {
            assert!(
                matches!(error, Some(Error::IdMismatch { expected, .. }) if expected == pack.id),
                "byte {at}"
            );
        }
        // Under the id it then has, it still does not open.
        let renamed = PackDescriptor {
            id: ContentId::of(&changed),
            ..pack.clone()
        };
        let (plaintext, error) = open(&renamed, &changed, 2);
        assert!(plaintext.is_empty() && error.is_some(), "byte {at}");
    }
    for length in 0..stored.len() {
        let (plaintext, error) = open(&pack, &stored[..length], 2);
        assert!(plaintext.is_empty(), "cut at {length}");
        assert!(
            matches!(error, Some(Error::Truncated { seen, .. }) if seen == length as u64),
            "{error:?}"
        );
    }
    let (plaintext, error) = open(&pack, &[&stored[..], b"\0"].concat(), 2);
    assert!(plaintext.is_empty());
    assert_eq!(
        error,
        Some(Error::TrailingData {
            id: pack.id,
            expected: stored.len() as u64
        })
    );
}

#[test]
fn segments_cannot_be_swapped_dropped_or_repeated() {
    let plaintext = content(3 * SEGMENT + 7);
    let (pack, stored) = seal(&plaintext, 3, 70_000);
    let (head, body) = stored.split_at(HEADER);
    let parts: Vec<&[u8]> = body.chunks(SEGMENT + TAG).collect();
    assert_eq!(parts.len(), 4);
    for (order, whole_before) in [
        (&[1, 0, 2, 3][..], 0),
        (&[0, 2, 1, 3], 1),
        (&[0, 0, 2, 3], 1),
        (&[0, 1, 1, 3], 2),
        (&[0, 3, 2, 1], 1),
    ] {
        let mut moved = head.to_vec();
        order.iter().for_each(|&n| moved.extend_from_slice(parts[n]));
        for threads in [0, 1, 2, 4] {
            let (seen, error) = open(&pack, &moved, threads);
            assert!(
                plaintext.starts_with(&seen) && seen.len() == whole_before * SEGMENT,
                "{order:?}"
            );
            let segment = whole_before as u32;
            assert_eq!(
                error,
                Some(Error::Authentication { id: pack.id, segment }),
                "{order:?}"
            );
        }
    }
    // Cut at a segment border, also with a descriptor that agrees: the last segment is marked as the last.
    let cut = [head, parts[0], parts[1], parts[2]].concat();
    for threads in [1, 3] {
        let (_, error) = open(&pack, &cut, threads);
        assert!(matches!(error, Some(Error::Truncated { .. })), "{error:?}");
        let shorter = PackDescriptor {
            id: ContentId::of(&cut),
            plaintext_size: 3 * SEGMENT as u64,
            ..pack.clone()
        };
        let (seen, error) = open(&shorter, &cut, threads);
        assert_eq!(seen.len(), 2 * SEGMENT);
        assert_eq!(
            error,
            Some(Error::Authentication {
                id: shorter.id,
                segment: 2
            })
        );
    }
    // A changed byte stops the stream in front of its segment.
    let mut changed = stored.clone();
    changed[HEADER + SEGMENT + TAG + 5] ^= 1;
    let (seen, error) = open(&pack, &changed, 2);
    assert_eq!(
        (seen.len(), error),
        (
            SEGMENT,
            Some(Error::Authentication {
                id: pack.id,
                segment: 1
            })
        )
    );
    // Another pack of the same repository does not fit.
    let secret = GenerationKey::from_secret(Secret::from_slice(&[3; 32]).expect("32 bytes"));
    let other = PackKey::derive(&secret, &ROOT, 4, 1);
    let mut opener = Opener::new(Cursor::new(stored), &other, &pack, 2).expect("header");
    let error = opener.read(&mut [0]).expect_err("another key");
    assert_eq!(
        Error::within(&error),
        Some(&Error::Authentication {
            id: pack.id,
            segment: 0
        })
    );
}

#[test]
fn the_last_segment_waits_for_the_id() {
    let plaintext = content(2 * SEGMENT);
    let (pack, stored) = seal(&plaintext, 2, SEGMENT);
    for threads in [1, 2] {
        let renamed = PackDescriptor {
            id: ContentId::of(b"other"),
            ..pack.clone()
        };
        let (seen, error) = open(&renamed, &stored, threads);
        assert_eq!(seen.len(), SEGMENT);
        assert_eq!(
            error,
            Some(Error::IdMismatch {
                expected: renamed.id,
                seen: pack.id
            })
        );
    }
}

/// Fails after some bytes, and tells when it is gone.
struct Brittle {
    left: usize,
    gone: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl io::Write for Brittle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        if taken == 0 {
            Err(io::Error::new(io::ErrorKind::StorageFull, "disk full"))
        } else {
            Ok(taken)
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        self.gone.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn write_errors_reach_the_caller_and_nothing_stays_behind() {
    let plaintext = content(SEGMENT);
    for threads in [1, 2] {
        for segments in [0, 1, 5] {
            let gone = std::sync::Arc::default();
            let output = Brittle {
                left: HEADER + segments * (SEGMENT + TAG) + 3,
                gone: std::sync::Arc::clone(&gone),
            };
            let mut sealer = Sealer::new(output, &pack_key(), threads).expect("header");
            let written = (0..20).try_for_each(|_| sealer.write_all(&plaintext));
            let error = match written {
                Err(error) => {
                    assert!(sealer.write_all(&plaintext).is_err() || sealer.finish().is_err());
                    error
                }
                Ok(()) => sealer.finish().err().expect("the disk is full"),
            };
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(gone.load(std::sync::atomic::Ordering::SeqCst));
        }
        // Given up in the middle.
        let gone = std::sync::Arc::default();
        let output = Brittle {
            left: usize::MAX,
            gone: std::sync::Arc::clone(&gone),
        };
        let mut sealer = Sealer::new(output, &pack_key(), threads).expect("header");
        (0..9).for_each(|_| sealer.write_all(&plaintext).expect("written"));
        drop(sealer);
        assert!(gone.load(std::sync::atomic::Ordering::SeqCst));
    }
}

#[test]
fn read_errors_reach_the_caller() {
    struct Broken(Cursor<Vec<u8>>, usize);
    impl io::Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0.position() as usize >= self.1 {
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection lost"));
            }
            let room = (self.1 - self.0.position() as usize).min(out.len()).min(10_000);
            self.0.read(&mut out[..room])
        }
    }
    let plaintext = content(4 * SEGMENT);
    let (pack, stored) = seal(&plaintext, 2, SEGMENT);
    for threads in [1, 2] {
        let input = Broken(Cursor::new(stored.clone()), HEADER + 2 * (SEGMENT + TAG) + 100);
        let mut opener = Opener::new(input, &pack_key(), &pack, threads).expect("header");
        let mut seen = Vec::new();
        let error = opener.read_to_end(&mut seen).expect_err("connection lost");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(seen, plaintext[..2 * SEGMENT]);
    }
}

#[test]
fn an_opener_can_be_dropped_early() {
    let (pack, stored) = seal(&content(20 * SEGMENT), 2, SEGMENT);
    let mut opener = Opener::new(Cursor::new(stored), &pack_key(), &pack, 2).expect("header");
    opener.read_exact(&mut [0; 10]).expect("opens");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_length_round_trips(
        segments in 0usize..4,
        around in -2i64..3,
        piece in prop_oneof![Just(1 << 20), 1000usize..3_000_000],
        seal_threads in 0usize..4,
        open_threads in 0usize..4,
    ) {
        let length = (segments * SEGMENT) as i64 + around;
        prop_assume!(length > 0);
        let plaintext = content(length as usize);
        let (pack, stored) = seal(&plaintext, seal_threads, piece);
        let (seen, error) = open(&pack, &stored, open_threads);
        prop_assert_eq!(error, None);
        prop_assert!(seen == plaintext);
    }

    #[test]
    fn any_change_is_refused(length in 1usize..(2 * SEGMENT + 100), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let plaintext = content(length);
        let (pack, mut stored) = seal(&plaintext, 2, SEGMENT);
        let at = at.index(stored.len());
        stored[at] ^= 1 << bit;
        let (seen, error) = open(&pack, &stored, 2);
        prop_assert!(error.is_some());
        prop_assert!(seen.len() < length && plaintext.starts_with(&seen));
    }
}
