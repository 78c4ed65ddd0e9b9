//! Packs of any shape.

use gix_hash::ObjectId;
use gix_object::Kind;
use gix_pack::data::entry::Header;
use ingot_engine::pack::inflate::{Level, deflate};

use crate::kind;
use ingot_testdata::repo::Format;

/// A pack in the making.
pub struct Forge {
    pub format: Format,
    pub bytes: Vec<u8>,
    pub count: u32,
}

impl Forge {
    pub fn new(format: Format) -> Forge {
        Forge {
            format,
            bytes: b"PACK\0\0\0\x02\0\0\0\0".to_vec(),
            count: 0,
        }
    }

    /// Adds an entry with a claimed size; returns its offset.
    pub fn entry(&mut self, header: Header, size: u64, content: &[u8]) -> u64 {
        let offset = self.bytes.len() as u64;
        header.write_to(size, &mut self.bytes).unwrap();
        deflate(content, Level::DEFAULT, &mut self.bytes);
        self.count += 1;
        offset
    }

    pub fn whole(&mut self, kind: Kind, content: &[u8]) -> u64 {
        let header = match kind {
            Kind::Commit => Header::Commit,
            Kind::Tree => Header::Tree,
            Kind::Blob => Header::Blob,
            Kind::Tag => Header::Tag,
        };
        self.entry(header, content.len() as u64, content)
    }

    pub fn delta_to_offset(&mut self, base: u64, delta: &[u8]) -> u64 {
        let base_distance = self.bytes.len() as u64 - base;
        self.entry(Header::OfsDelta { base_distance }, delta.len() as u64, delta)
    }

    pub fn delta_to_id(&mut self, base_id: ObjectId, delta: &[u8]) -> u64 {
        self.entry(Header::RefDelta { base_id }, delta.len() as u64, delta)
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes[8..12].copy_from_slice(&self.count.to_be_bytes());
        seal(self.format, self.bytes)
    }

    pub fn id(&self, kind: Kind, content: &[u8]) -> ObjectId {
        id(self.format, kind, content)
    }
}

pub fn id(format: Format, object: Kind, content: &[u8]) -> ObjectId {
    gix_object::compute_hash(kind(format), object, content).unwrap()
}

/// Appends the checksum.
pub fn seal(format: Format, mut bytes: Vec<u8>) -> Vec<u8> {
    let mut hasher = gix_hash::hasher(kind(format));
    hasher.update(&bytes);
    let checksum = hasher.try_finalize().unwrap();
    bytes.extend_from_slice(checksum.as_bytes());
    bytes
}

/// Replaces the checksum of a pack by the right one.
pub fn reseal(format: Format, mut pack: Vec<u8>) -> Vec<u8> {
    pack.truncate(pack.len() - kind(format).len_in_bytes());
    seal(format, pack)
}

fn number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The header of a delta.
pub fn delta_header(base: u64, result: u64) -> Vec<u8> {
    let mut delta = Vec::new();
    number(base, &mut delta);
    number(result, &mut delta);
    delta
}

pub fn copy(offset: u32, length: u32, delta: &mut Vec<u8>) {
    delta.push(0xff);
    delta.extend_from_slice(&offset.to_le_bytes());
    delta.extend_from_slice(&length.to_le_bytes()[..3]);
}

pub fn insert(bytes: &[u8], delta: &mut Vec<u8>) {
    for piece in bytes.chunks(127) {
        delta.push(piece.len() as u8);
        delta.extend_from_slice(piece);
    }
}

/// A delta that keeps what both have in common at their start and end.
pub fn delta(base: &[u8], target: &[u8]) -> Vec<u8> {
    let start = base.iter().zip(target).take_while(|(a, b)| a == b).count();
    let end = base[start..]
        .iter()
        .rev()
        .zip(target[start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let mut delta = delta_header(base.len() as u64, target.len() as u64);
    for at in (0..start).step_by(0xff_ffff) {
        copy(at as u32, (start - at).min(0xff_ffff) as u32, &mut delta);
    }
    insert(&target[start..target.len() - end], &mut delta);
    let from = base.len() - end;
    for at in (0..end).step_by(0xff_ffff) {
        copy((from + at) as u32, (end - at).min(0xff_ffff) as u32, &mut delta);
    }
    delta
}
