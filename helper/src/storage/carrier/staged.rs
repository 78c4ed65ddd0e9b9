//! What will be published together: new objects that nobody sees before the head moves.

use std::io::{self, Seek as _, Write};
use std::path::Path;
use std::sync::Arc;

use gix::object::Kind as ObjectKind;
use gix_hash::ObjectId;
use ingot_engine::pack::create::Content;
use tempfile::SpooledTempFile;

use super::super::{Error, Kind, StagedObject};
use super::outer::Upload;
use super::snapshot::Snapshot;
use super::{Shared, layout};
use crate::protocol::ContentId;

/// New objects, and what they are parts of.
pub(super) struct Pending {
    /// What they will be added to.
    pub snapshot: Arc<Snapshot>,
    pub upload: Box<dyn Upload>,
    pub things: Vec<(Kind, ContentId, Vec<ObjectId>)>,
}

impl Pending {
    /// Adds the next part of something small.
    pub fn part(&mut self, bytes: &[u8], content: Content) -> Result<ObjectId, Error> {
        self.upload.add(ObjectKind::Blob, bytes, content)
    }
}

/// What of a part is held in memory. The rest waits in a file, because the length of an object comes before it.
const IN_MEMORY: usize = 1 << 20;

/// A pack on its way.
pub(super) struct Staged {
    shared: Arc<Shared>,
    /// The part that is being filled, and how far.
    part: SpooledTempFile,
    filled: u64,
    parts: Vec<ObjectId>,
    finished: bool,
}

impl Staged {
    pub fn begin(shared: &Arc<Shared>) -> Result<Staged, Error> {
        let part = shared.with_pending(|pending| {
            let folder = pending.upload.folder();
            Ok(tempfile::spooled_tempfile_in(IN_MEMORY, folder))
        })?;
        Ok(Staged {
            shared: Arc::clone(shared),
            part,
            filled: 0,
            parts: Vec::new(),
            finished: false,
        })
    }

    fn end_part(&mut self) -> Result<(), Error> {
        if self.parts.len() == layout::MOST_PARTS {
            return Err(Error::PackTooLarge {
                limit: layout::MOST_PARTS as u64 * layout::PART,
            });
        }
        let (part, size) = (&mut self.part, self.filled);
        part.rewind().map_err(spooling)?;
        let id = self
            .shared
            .with_pending(|pending| pending.upload.add_part(size, part))?;
        self.parts.push(id);
        self.part.rewind().map_err(spooling)?;
        self.part.set_len(0).map_err(spooling)?;
        self.filled = 0;
        Ok(())
    }
}

/// A part could not be put aside.
fn spooling(source: io::Error) -> Error {
    let place = Path::new("a part of a pack");
    Error::Write(ingot_engine::durable::Error::new("put aside", place, source))
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = layout::PART - self.filled;
        let wanted = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let taken = self.part.write(&bytes[..wanted])?;
        self.filled += taken as u64;
        if self.filled == layout::PART {
            self.end_part().map_err(io::Error::other)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StagedObject for Staged {
    fn finish(mut self: Box<Self>, id: &ContentId) -> Result<(), Error> {
        if self.filled > 0 {
            self.end_part()?;
        }
        let parts = std::mem::take(&mut self.parts);
        self.shared.with_pending(|pending| {
            pending.things.push((Kind::Pack, *id, parts));
            Ok(())
        })?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.finished {
            // Parts that belong to nothing are not worth publishing, nor is what was to go with them.
            self.shared.forget_pending();
        }
    }
}
