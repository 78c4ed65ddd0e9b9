//! The plan carried out.

use std::io::Write;
use std::panic::resume_unwind;
use std::thread;

use crossbeam_channel::bounded;

use super::copy::Copier;
use super::encode::Encoder;
use super::item::{Role, Source};
use super::output::{Chunks, Output, Sink};
use super::{Error, Plan, Summary};
use crate::phase::Phase;
use crate::progress::{Progress, Unit};

/// From so many copied bytes on, reading them and handing them on are worth a thread each.
const TOGETHER: u64 = 4 << 20;
/// Chunks that may wait between the two.
const WAITING: usize = 4;

impl Plan<'_> {
    /// Writes the pack. After an error, what `out` got is no pack; on success it has been flushed.
    pub fn stream(mut self, out: &mut dyn Write, progress: &dyn Progress) -> Result<Summary, Error> {
        let mut phase = Phase::begin("write");
        let objects = self.objects();
        progress.begin("Writing objects", Some(objects.into()), Unit::Objects);
        let mut output = Output::start(out, self.objects.store.format(), objects)?;
        let mut copier = Copier::new(self.objects);
        for item in self.items.iter().filter(|item| item.role == Role::Encoded) {
            if let Source::Packed(at) = item.source {
                copier.layout.reserve(at);
            }
        }
        let mut encoder = Encoder::new(self.objects, &self.items, &self.options);
        encoder.write(&mut self.items, &self.front, &mut copier, &mut output, progress)?;
        match self.copied_bytes >= TOGETHER && self.options.threads > 1 {
            true => self.copy_ahead(&mut copier, &mut output, progress)?,
            false => {
                let start = output.offset();
                let mut chunks = Chunks::new(start, |chunk: Vec<u8>| {
                    output.put(&chunk)?;
                    Ok(chunk)
                });
                self.copy(&mut copier, &mut chunks, progress)?;
                chunks.finish()?;
            }
        }
        encoder.write(&mut self.items, &self.tail, &mut copier, &mut output, progress)?;
        let (checksum, bytes) = output.finish()?;
        progress.end();
        phase.objects(objects.into());
        phase.bytes(bytes);
        Ok(Summary {
            checksum,
            bytes,
            objects,
        })
    }

    /// Copies the entries of all packs.
    fn copy(
        &self,
        copier: &mut Copier<'_>,
        sink: &mut impl Sink,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        for selected in &self.packs {
            let member = |at| self.members.contains_packed(at);
            copier.pack(selected, member, sink, progress)?;
        }
        Ok(())
    }

    /// The same, with a thread that reads and checks while this one hashes and hands on.
    fn copy_ahead(
        &self,
        copier: &mut Copier<'_>,
        output: &mut Output<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let (full, arrivals) = bounded::<Vec<u8>>(WAITING);
        let (empty, returns) = bounded::<Vec<u8>>(WAITING);
        let start = output.offset();
        thread::scope(|scope| {
            let work = move || {
                let mut chunks = Chunks::new(start, |chunk| {
                    // Nobody listens any more after an error, which the other side reports.
                    full.send(chunk).map_err(|_| Error::Interrupted)?;
                    Ok(returns.try_recv().unwrap_or_default())
                });
                self.copy(copier, &mut chunks, progress)?;
                chunks.finish()
            };
            let reader = thread::Builder::new()
                .spawn_scoped(scope, work)
                .map_err(Error::Thread)?;
            let result = arrivals.iter().try_for_each(|chunk| {
                output.put(&chunk)?;
                let _ = empty.try_send(chunk); // if it is not wanted back, it goes
                Ok(())
            });
            drop(arrivals);
            let read = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            result.and(read)
        })
    }
}
