#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    deflate(bytes, Level::DEFAULT, &mut out);
    out
}

/// Hands out one byte at a time.
struct Drops<'a>(&'a [u8]);

impl io::Read for Drops<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut first = self.fill_buf()?;
        let read = first.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Drops<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&self.0[..self.0.len().min(1)])
    }

    fn consume(&mut self, amount: usize) {
        self.0 = &self.0[amount..];
    }
}

/// All ways to inflate agree with each other.
fn check(inflater: &mut Inflater, bytes: &[u8]) {
    let stream = deflated(bytes);
    let mut input = stream.clone();
    input.extend_from_slice(b"what follows");
    let size = bytes.len() as u64;
    let mut out = b"what was there".to_vec();
    assert_eq!(inflater.exact(&input, size, &mut out).unwrap(), stream.len());
    assert_eq!(out, bytes);
    let mut drops = Drops(&input);
    assert_eq!(
        inflater.exact_from(&mut drops, size, &mut out).unwrap(),
        stream.len() as u64
    );
    assert_eq!((out.as_slice(), drops.0), (bytes, &b"what follows"[..]));
    let mut pieces = Vec::new();
    let mut rest = &input[..];
    let consumed = inflater.stream(&mut rest, size, &mut |piece| {
        pieces.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!(consumed.unwrap(), stream.len() as u64);
    assert_eq!((pieces.as_slice(), rest), (bytes, &b"what follows"[..]));
    let mut first = [0; 20];
    let read = inflater.prefix(&mut &input[..], &mut first).unwrap();
    assert_eq!(&first[..read], &bytes[..bytes.len().min(20)]);

    for wrong in [size + 1, size + 100_000, 1 << 50] {
        let error = inflater.exact(&input, wrong, &mut out).unwrap_err();
        assert!(
            matches!(error, Error::Shorter { actual, .. } if actual == size),
            "{error}"
        );
        let error = inflater
            .stream(&mut &input[..], wrong, &mut |_| Ok(()))
            .unwrap_err();
        assert!(
            matches!(error, Error::Shorter { actual, .. } if actual == size),
            "{error}"
        );
    }
    if size > 0 {
        for wrong in [size - 1, 0] {
            let error = inflater.exact(&input, wrong, &mut out).unwrap_err();
            assert!(matches!(error, Error::Longer { .. }), "{error}");
            let error = inflater
                .stream(&mut &input[..], wrong, &mut |_| Ok(()))
                .unwrap_err();
            assert!(matches!(error, Error::Longer { .. }), "{error}");
        }
    }
    for length in (0..stream.len()).step_by((stream.len() / 50).max(1)) {
        let error = inflater.exact(&stream[..length], size, &mut out).unwrap_err();
        assert!(matches!(error, Error::Truncated), "{error}");
    }
}

#[test]
fn every_way_and_every_wrong_size() {
    let mut inflater = Inflater::new();
    let noise: Vec<u8> = (0u32..300_000)
        .map(|n| (n.wrapping_mul(2654435761) >> 13) as u8)
        .collect();
    for length in [
        0,
        1,
        19,
        20,
        21,
        1000,
        FIRST_PIECE - 1,
        FIRST_PIECE,
        FIRST_PIECE + 1,
        300_000,
    ] {
        check(&mut inflater, &noise[..length]);
        check(&mut inflater, &vec![b'x'; length]);
    }
}

#[test]
fn memory_follows_the_data_and_not_the_promise() {
    let mut out = Vec::new();
    Inflater::new()
        .exact(&deflated(b"short"), 1 << 45, &mut out)
        .unwrap_err();
    assert!(out.capacity() <= 2 * FIRST_PIECE, "{}", out.capacity());
}

#[test]
fn a_wrong_checksum_is_damage() {
    let mut stream = deflated(b"some bytes");
    *stream.last_mut().unwrap() ^= 1;
    let error = inflate_exact(&stream, 10, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::Corrupt("incorrect data check")), "{error}");
}

#[test]
fn every_level_and_the_streaming_encoder() {
    let bytes: Vec<u8> = (0u32..200_000).map(|n| ((n / 7) ^ (n % 11)) as u8).collect();
    for level in 0..=9 {
        let mut deflater = Deflater::new(Level::new(level).unwrap());
        let mut out = Vec::new();
        for part in [&bytes[..], &bytes[..1], &bytes[..0]] {
            let mut stream = b"before".to_vec();
            deflater.deflate(part, &mut stream);
            inflate_exact(&stream[6..], part.len() as u64, &mut out).unwrap();
            assert_eq!(out, part);
            let mut pieces = Vec::new();
            let mut input = io::BufReader::with_capacity(1000, part);
            deflater
                .stream(&mut input, &mut |piece| {
                    pieces.extend_from_slice(piece);
                    Ok(())
                })
                .unwrap();
            inflate_exact(&pieces, part.len() as u64, &mut out).unwrap();
            assert_eq!(out, part);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_stream_or_an_error(bytes: Vec<u8>, size in 0u64..1000) {
        let mut framed = vec![0x78, 0x9c];
        framed.extend_from_slice(&bytes);
        for bytes in [bytes, framed] {
            let mut out = Vec::new();
            if inflate_exact(&bytes, size, &mut out).is_ok() {
                prop_assert_eq!(out.len() as u64, size);
            }
        }
    }
}
