//! What the fuzz targets of the engine do with their input. Any outcome but a panic is fine.

use gix_hash::Kind;
use ingot_engine::pack::{delta, index};
use ingot_engine::progress::Silent;
use ingot_engine::transport::pkt_line;

/// A pack as it comes in, indexed with low limits.
pub fn pack_stream(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut options = index::Options::new(Kind::Sha1);
    options.threads = 1;
    options.limits = index::Limits {
        pack_bytes: 1 << 20,
        objects: 10_000,
        object_bytes: 1 << 20,
        held_bytes: 1 << 20,
    };
    let _ = index::index(&mut &data[..], folder.path(), &options, &Silent);
}

/// A single entry, with a header and trailer that fit around it, so that mutations reach the entry.
pub fn pack_entry(data: &[u8]) {
    let mut pack = b"PACK\x00\x00\x00\x02\x00\x00\x00\x01".to_vec();
    pack.extend_from_slice(data);
    let mut hasher = gix_hash::hasher(Kind::Sha1);
    hasher.update(&pack);
    let Ok(trailer) = hasher.try_finalize() else {
        return;
    };
    pack.extend_from_slice(trailer.as_slice());
    pack_stream(&pack);
}

/// A base and a delta, divided by the first byte.
pub fn delta(data: &[u8]) {
    let Some((&divide, rest)) = data.split_first() else {
        return;
    };
    let (base, delta_bytes) = rest.split_at(rest.len().min(usize::from(divide)));
    let Ok((_, size, instructions)) = delta::header(delta_bytes) else {
        return;
    };
    for instruction in delta::Instructions::new(instructions) {
        if instruction.is_err() {
            break;
        }
    }
    if size <= 1 << 20 {
        let mut out = Vec::new();
        let _ = delta::apply(base, delta_bytes, &mut out);
    }
    // And the way back: what the encoder makes of two inputs has to give the second.
    let made = delta::encode::delta(base, delta_bytes, usize::MAX);
    if let Some(made) = made {
        let mut out = Vec::new();
        delta::apply(base, &made, &mut out).expect("own deltas apply");
        assert_eq!(out, delta_bytes, "own deltas give the target");
    }
}

/// A sequence of packet lines.
pub fn pkt_line(data: &[u8]) {
    let mut reader = pkt_line::Reader::new(data);
    while let Ok(Some(_)) = reader.line() {}
}
