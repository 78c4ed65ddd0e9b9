//! Reads the stream once: finds where entries end, and hands them on inflated.

use std::io;
use std::sync::atomic::Ordering;

use gix_hash::ObjectId;
use gix_object::Kind;
use gix_pack::data::Entry;
use gix_pack::data::entry::Header;

use super::batch::{Batch, Content, Item};
use super::error::Error;
use super::examine;
use super::input::{Input, LONGEST_HEADER};
use super::table::{BY_ID, MOST_ENTRIES, WHOLE};
use super::work::Work;
use crate::pack::inflate::Inflater;
use crate::progress::Unit;

/// A batch is handed on when it has this many bytes or entries, if the next entry is a whole object: deltas follow
/// their bases closely, so that most families of deltas stay together.
const BATCH_BYTES: usize = 192 * 1024;
const BATCH_ENTRIES: usize = 256;
/// A batch is handed on in any case when it is this many times larger.
const STRETCH: usize = 4;

/// Blobs larger than this are hashed as they come and never held; deltas larger than this are read again later.
const LARGEST_HELD: u64 = 1024 * 1024;

/// The most that is reserved because of the object count in the header, which may be a lie.
const LARGEST_RESERVE: u32 = 64 * 1024;

/// The whole stream.
pub(super) struct Received {
    pub(super) checksum: ObjectId,
    pub(super) bytes: u64,
}

/// Reads a pack to its end. `submit` gets the batches in order, and is told whether more will come.
pub(super) fn receive(
    mut input: Input<'_>,
    work: &Work<'_>,
    mut submit: impl FnMut(Batch, bool) -> Result<(), Error>,
) -> Result<Received, Error> {
    let count = header(&mut input, work)?;
    work.progress
        .begin(super::RECEIVING, Some(count.into()), Unit::Objects);
    let mut receiver = Receiver {
        work,
        inflater: Inflater::new(),
        batch: Batch::default(),
    };
    work.entries_mut().reserve(count.min(LARGEST_RESERVE) as usize);
    for number in 0..count {
        receiver.entry(&mut input, number, &mut submit)?;
    }
    work.entries_mut().end = Some(input.offset());
    submit(std::mem::take(&mut receiver.batch), false)?;
    let (checksum, bytes) = input.finish(work.format)?;
    work.settled.store(bytes, Ordering::Release);
    Ok(Received { checksum, bytes })
}

/// Reads the pack header and returns the object count.
fn header(input: &mut Input<'_>, work: &Work<'_>) -> Result<u32, Error> {
    let bytes = input.peek(12)?;
    if !b"PACK".starts_with(&bytes[..bytes.len().min(4)]) {
        return Err(Error::NotAPack);
    }
    let Some(bytes) = bytes.first_chunk::<12>() else {
        return Err(Error::Truncated {
            offset: bytes.len() as u64,
            what: "its header",
        });
    };
    let [.., v0, v1, v2, v3, c0, c1, c2, c3] = *bytes;
    let version = u32::from_be_bytes([v0, v1, v2, v3]);
    let count = u32::from_be_bytes([c0, c1, c2, c3]);
    if !(2..=3).contains(&version) {
        return Err(Error::Version(version));
    }
    let limit = work.limits.objects.min(MOST_ENTRIES);
    if count > limit {
        return Err(Error::Limit {
            what: "the pack's object count".into(),
            size: count.into(),
            limit: limit.into(),
        });
    }
    io::BufRead::consume(input, 12);
    Ok(count)
}

struct Receiver<'w, 'a> {
    work: &'w Work<'a>,
    inflater: Inflater,
    batch: Batch,
}

impl Receiver<'_, '_> {
    fn entry(
        &mut self,
        input: &mut Input<'_>,
        number: u32,
        submit: &mut impl FnMut(Batch, bool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let offset = input.offset();
        let (content, size, length) = self.parse(input, offset)?;
        if self.is_due(matches!(content, Content::Whole(_))) {
            // So that bases can be made from the file.
            input.settle()?;
            self.work.settled.store(offset, Ordering::Release);
            submit(std::mem::take(&mut self.batch), true)?;
        }
        input.start_entry();
        io::BufRead::consume(input, length);
        let limits = &self.work.limits;
        if size > limits.object_bytes {
            return Err(Error::Limit {
                what: format!("the object at offset {offset}"),
                size,
                limit: limits.object_bytes,
            });
        }
        let base = match content {
            Content::Whole(Kind::Blob) if size > LARGEST_HELD => {
                self.stream(input, number, offset, size)?;
                WHOLE
            }
            Content::Whole(_) => {
                self.hold(input, number, offset, size, content)?;
                WHOLE
            }
            Content::DeltaToEntry(base) => {
                self.delta(input, number, offset, size, content)?;
                base
            }
            Content::DeltaToId(_) => {
                self.work.resolved().index_ids();
                self.delta(input, number, offset, size, content)?;
                BY_ID
            }
        };
        self.work.entries_mut().push(offset, input.finish_entry(), base);
        Ok(())
    }

    /// True if the batch should be handed on before an entry joins it.
    fn is_due(&self, next_is_whole: bool) -> bool {
        let stretch = if next_is_whole { 1 } else { STRETCH };
        self.batch.bytes >= BATCH_BYTES * stretch || self.batch.items.len() >= BATCH_ENTRIES * stretch
    }

    /// Reads an entry header without consuming it: what the entry holds, its inflated size, the header's length.
    fn parse(&self, input: &mut Input<'_>, offset: u64) -> Result<(Content, u64, usize), Error> {
        let bytes = input.peek(LONGEST_HEADER)?;
        let format = self.work.format;
        if bytes.len() <= format.len_in_bytes() {
            return Err(Error::Truncated {
                offset: offset + bytes.len() as u64,
                what: "its list of objects",
            });
        }
        let malformed = || Error::EntryHeader { offset };
        let entry = Entry::from_bytes(bytes, offset, format).map_err(|_| malformed())?;
        let length = entry.header_size();
        let content = match entry.header {
            Header::Commit => Content::Whole(Kind::Commit),
            Header::Tree => Content::Whole(Kind::Tree),
            Header::Blob => Content::Whole(Kind::Blob),
            Header::Tag => Content::Whole(Kind::Tag),
            Header::RefDelta { base_id } => Content::DeltaToId(base_id),
            Header::OfsDelta { base_distance } => {
                // A distance of more than 63 bits overflows, which the parser does not notice.
                let size_bytes = bytes.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
                if length > size_bytes + 9 {
                    return Err(malformed());
                }
                let base = offset
                    .checked_sub(base_distance)
                    .and_then(|base| self.work.entries().at(base))
                    .ok_or(Error::BaseOffset { offset })?;
                Content::DeltaToEntry(base)
            }
        };
        Ok((content, entry.decompressed_size, length))
    }

    /// Inflates an entry into the batch.
    fn hold(
        &mut self,
        input: &mut Input<'_>,
        entry: u32,
        offset: u64,
        size: u64,
        content: Content,
    ) -> Result<(), Error> {
        self.work.check_held("the object", size, offset)?;
        let mut bytes = Vec::new();
        self.inflater
            .exact_from(input, size, &mut bytes)
            .map_err(|failure| failed(input, failure, offset, size))?;
        self.batch.bytes += bytes.capacity();
        self.batch.items.push(Item {
            entry,
            offset,
            content,
            bytes,
        });
        Ok(())
    }

    /// Hashes a blob as it comes.
    fn stream(&mut self, input: &mut Input<'_>, entry: u32, offset: u64, size: u64) -> Result<(), Error> {
        let mut hasher = examine::hasher(self.work.format, Kind::Blob, size);
        let work = self.work;
        self.inflater
            .stream(input, size, &mut |piece| {
                hasher.update(piece);
                match work.stopped() {
                    true => Err(io::ErrorKind::Other.into()),
                    false => Ok(()),
                }
            })
            .map_err(|failure| failed(input, failure, offset, size))?;
        let id = examine::finish(hasher, offset)?;
        let mut resolved = self.work.resolved();
        resolved.add(entry, Kind::Blob, &id);
        resolved.streamed.push(entry);
        drop(resolved);
        self.work.progress.advance(1);
        Ok(())
    }

    /// Inflates a delta into the batch, or a large one only to find its end.
    fn delta(
        &mut self,
        input: &mut Input<'_>,
        entry: u32,
        offset: u64,
        size: u64,
        content: Content,
    ) -> Result<(), Error> {
        if size <= LARGEST_HELD {
            return self.hold(input, entry, offset, size, content);
        }
        self.work.check_held("the delta", size, offset)?;
        self.inflater
            .stream(input, size, &mut |_| Ok(()))
            .map_err(|failure| failed(input, failure, offset, size))?;
        self.work.resolved().postpone(content, entry);
        Ok(())
    }
}

fn failed(input: &mut Input<'_>, failure: crate::pack::inflate::Error, offset: u64, size: u64) -> Error {
    use crate::pack::inflate::Error as Inflate;
    match failure {
        // The stream, a file or the user; which one, the input or the shared state knows.
        Inflate::Io(_) => input.failure_or(Error::Interrupted),
        Inflate::Truncated => Error::Truncated {
            offset: input.offset(),
            what: "an object",
        },
        other => super::inflate_error(other, offset, size),
    }
}
