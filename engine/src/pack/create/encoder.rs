//! Compresses objects that fit in memory.

use gix_hash::ObjectId;
use gix_object::Kind;

use crate::pack::inflate::Level;
use crate::pack::write::body::Compressor;
use crate::pack::write::digest::Digest;

/// An object ready for [`super::Creator::add`].
#[derive(Debug, Clone)]
pub struct Object {
    /// Its id.
    pub id: ObjectId,
    /// Its kind.
    pub kind: Kind,
    /// Bytes before compression.
    pub size: u64,
    /// The zlib stream.
    pub(super) body: Box<[u8]>,
}

impl Object {
    /// Bytes that the object takes in memory.
    pub fn held(&self) -> usize {
        self.body.len() + std::mem::size_of::<Object>()
    }
}

/// Compresses objects one after the other with the same state; each thread has its own.
#[derive(Debug)]
pub struct Encoder {
    format: gix_hash::Kind,
    compressor: Compressor,
}

impl Encoder {
    /// Takes some 300 KiB at the first object.
    pub fn new(format: gix_hash::Kind, level: Level) -> Encoder {
        Encoder {
            format,
            compressor: Compressor::new(level),
        }
    }

    /// The id that Git gives to an object.
    pub fn id(&self, kind: Kind, bytes: &[u8]) -> ObjectId {
        id_of(self.format, kind, bytes)
    }

    /// Compresses an object, whose id is computed.
    pub fn encode(&mut self, kind: Kind, bytes: &[u8]) -> Object {
        self.encode_as(self.id(kind, bytes), kind, bytes)
    }

    /// Compresses an object whose id is known from [`Encoder::id`].
    pub fn encode_as(&mut self, id: ObjectId, kind: Kind, bytes: &[u8]) -> Object {
        Object {
            id,
            kind,
            size: bytes.len() as u64,
            body: self.compressor.body(bytes).bytes,
        }
    }

    /// Puts an object whose id is known into a frame without compressing it.
    pub fn store_as(&mut self, id: ObjectId, kind: Kind, bytes: &[u8]) -> Object {
        Object {
            id,
            kind,
            size: bytes.len() as u64,
            body: self.compressor.stored_body(bytes).bytes,
        }
    }
}

/// The id of an object.
pub fn id_of(format: gix_hash::Kind, kind: Kind, bytes: &[u8]) -> ObjectId {
    let mut digest = Digest::of_object(format, kind, bytes.len() as u64);
    digest.update(bytes);
    digest.finish()
}

/// The id of an object that passes in pieces, for those who do not store it.
#[derive(Debug, Clone)]
pub struct StreamDigest(Digest);

impl StreamDigest {
    /// Begins an object of `size` bytes.
    pub fn new(format: gix_hash::Kind, kind: Kind, size: u64) -> StreamDigest {
        StreamDigest(Digest::of_object(format, kind, size))
    }

    /// The next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The id, which is right if exactly the announced bytes came.
    pub fn finish(self) -> ObjectId {
        self.0.finish()
    }
}
