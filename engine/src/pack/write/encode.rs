//! Writes the entries that are compressed anew.

use std::io::{self, Write};

use gix_object::Kind;
use gix_pack::data::entry::Header;

use super::body::{Body, Compressor};
use super::copy::Copier;
use super::digest::Digest;
use super::item::{Item, Objects, Role, Source};
use super::ordered::{Results, in_order};
use super::output::{Output, Sink};
use super::search::Budget;
use super::{Error, Options};
use crate::pack::delta;
use crate::pack::inflate::{DeflateWrite, Level};
use crate::progress::Progress;
use crate::store::{self, Cache};

/// Below this many bytes to compress, other threads are not worth their start.
const ALONE: u64 = 256 * 1024;

/// Writes items, each after its base.
pub(super) struct Encoder<'a> {
    objects: Objects<'a>,
    options: &'a Options,
    budget: Budget,
    /// Where each item was written; 0 for those that have not been.
    offsets: Vec<u64>,
}

/// What one thread works with.
struct State {
    cache: Cache,
    compressor: Compressor,
    target: Vec<u8>,
    base: Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(objects: Objects<'a>, items: &[Item], options: &'a Options) -> Encoder<'a> {
        Encoder {
            objects,
            options,
            budget: Budget::new(options.memory),
            offsets: vec![0; items.len()],
        }
    }

    /// Writes the items numbered in `order`; their bases come before them or were written earlier.
    pub(super) fn write(
        &mut self,
        items: &mut [Item],
        order: &[u32],
        copier: &mut Copier<'_>,
        output: &mut Output<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        if order.is_empty() {
            return Ok(());
        }
        let kept: Vec<Option<Body>> = order
            .iter()
            .map(|&number| items[number as usize].kept.take())
            .collect();
        let items = &*items;
        let missing: Vec<u32> = order
            .iter()
            .zip(&kept)
            .filter(|&(&number, kept)| kept.is_none() && self.fits(&items[number as usize]))
            .map(|(&number, _)| number)
            .collect();
        let bytes: u64 = missing.iter().map(|&number| items[number as usize].size).sum();
        let (objects, budget, options) = (self.objects, self.budget, self.options);
        let start = || State::new(&budget, options);
        let make = |state: &mut State, number: u32| make(objects, items, number, state);
        if options.threads <= 1 || missing.len() <= 1 || bytes <= ALONE {
            let mut state = None;
            return self.sequence(items, order, kept, copier, output, progress, &mut |number| {
                make(state.get_or_insert_with(start), number)
            });
        }
        let cost = |job: usize| {
            let item = &items[missing[job] as usize];
            // A target, and with a delta its base, the base's index, and the delta.
            item.size.saturating_mul(if item.base.is_some() { 4 } else { 2 })
        };
        let job = |state: &mut State, job: usize| make(state, missing[job]);
        in_order(
            missing.len(),
            options.threads,
            options.memory / 2,
            &cost,
            start,
            job,
            |results: &mut Results<'_, Body>| {
                self.sequence(items, order, kept, copier, output, progress, &mut |_| {
                    results.take(Ok)
                })
            },
        )
    }

    /// True unless the object is so large that it has to pass through in pieces.
    fn fits(&self, item: &Item) -> bool {
        item.role == Role::Encoded && (item.size <= self.budget.largest || item.base.is_some())
    }

    #[expect(clippy::too_many_arguments)] // the state of a stream, split so that parts can be borrowed apart
    fn sequence(
        &mut self,
        items: &[Item],
        order: &[u32],
        kept: Vec<Option<Body>>,
        copier: &mut Copier<'_>,
        output: &mut Output<'_>,
        progress: &dyn Progress,
        make: &mut dyn FnMut(u32) -> Result<Body, Error>,
    ) -> Result<(), Error> {
        for (&number, kept) in order.iter().zip(kept) {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let item = &items[number as usize];
            let offset = output.offset();
            match item.role {
                Role::Receiver => continue,
                Role::Copied => {
                    if let Source::Packed(at) = item.source {
                        copier.apart(at, output)?;
                    }
                }
                Role::Encoded => {
                    match kept {
                        Some(body) => self.entry(items, item, copier, &body, output)?,
                        None if self.fits(item) => {
                            let body = make(number)?;
                            self.entry(items, item, copier, &body, output)?;
                        }
                        None => self.large(item, output, progress)?,
                    }
                    self.offsets[number as usize] = offset;
                    if let Source::Packed(at) = item.source {
                        copier.layout.place(at, offset);
                    }
                }
            }
            progress.advance(1);
        }
        Ok(())
    }

    /// Writes header and data of an entry.
    fn entry(
        &self,
        items: &[Item],
        item: &Item,
        copier: &Copier<'_>,
        body: &Body,
        output: &mut Output<'_>,
    ) -> Result<(), Error> {
        let header = match item.base {
            None => whole(item.kind),
            Some(base) => self.delta(base, &items[base as usize], copier, output.offset()),
        };
        header.write_to(body.inflated, output).map_err(Error::Output)?;
        output.put(&body.bytes)
    }

    /// The header of a delta at `offset` against the item `number`.
    fn delta(&self, number: u32, base: &Item, copier: &Copier<'_>, offset: u64) -> Header {
        let written = match (self.offsets[number as usize], base.source) {
            (0, Source::Packed(at)) => copier.layout.offset_of(self.objects.store, at),
            (0, _) => None,
            (written, _) => Some(written),
        };
        match written {
            Some(base) => Header::OfsDelta {
                base_distance: offset - base,
            },
            None => Header::RefDelta {
                base_id: self.objects.id(&base.source).to_owned(),
            },
        }
    }

    /// Writes an object that is too large to be held, in pieces.
    fn large(&self, item: &Item, output: &mut Output<'_>, progress: &dyn Progress) -> Result<(), Error> {
        let id = self.objects.id(&item.source);
        whole(item.kind)
            .write_to(item.size, output)
            .map_err(Error::Output)?;
        let store = self.objects.store;
        let mut pieces = Pieces {
            digest: Digest::of_object(store.format(), item.kind, item.size),
            level: self.options.level,
            deflate: None,
            output: Some(output),
            progress,
        };
        let found = store.stream(id, &mut Cache::new(self.budget.cache), &mut pieces);
        match found {
            _ if progress.interrupted() => return Err(Error::Interrupted),
            Err(store::Error::Sink { source, .. }) => return Err(Error::Output(source)),
            Err(error) => return Err(error.into()),
            Ok(None) => return Err(Error::Disappeared(id.to_owned())),
            Ok(Some(_)) => {}
        }
        pieces.end().map_err(Error::Output)?;
        self.objects.verify(item.source, pieces.digest)
    }
}

impl State {
    fn new(budget: &Budget, options: &Options) -> State {
        State {
            cache: Cache::new(budget.cache),
            compressor: Compressor::new(options.level),
            target: Vec::new(),
            base: Vec::new(),
        }
    }
}

/// Reads an object, makes its delta again if it is one, and compresses it.
fn make(objects: Objects<'_>, items: &[Item], number: u32, state: &mut State) -> Result<Body, Error> {
    let item = &items[number as usize];
    objects.read(item.source, &mut state.cache, &mut state.target)?;
    let Some(base) = item.base else {
        return Ok(state.compressor.body(&state.target));
    };
    let base = &items[base as usize];
    objects.read(base.source, &mut state.cache, &mut state.base)?;
    match delta::encode::delta(&state.base, &state.target, usize::MAX) {
        Some(delta) => Ok(state.compressor.body(&delta)),
        // The search made this delta from the same, verified content.
        None => unreachable!("a delta without a limit always exists"),
    }
}

/// The header of an object that is stored whole.
fn whole(kind: Kind) -> Header {
    match kind {
        Kind::Commit => Header::Commit,
        Kind::Tree => Header::Tree,
        Kind::Blob => Header::Blob,
        Kind::Tag => Header::Tag,
    }
}

/// Hashes and compresses a large object as it passes.
struct Pieces<'a, 'b> {
    digest: Digest,
    level: Level,
    /// Started at the first piece, which tells how hard to try.
    deflate: Option<DeflateWrite<&'a mut Output<'b>>>,
    output: Option<&'a mut Output<'b>>,
    progress: &'a dyn Progress,
}

impl Pieces<'_, '_> {
    fn end(&mut self) -> io::Result<()> {
        match &mut self.deflate {
            Some(deflate) => deflate.flush(),
            None => Ok(()),
        }
    }
}

impl Write for Pieces<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.progress.interrupted() {
            return Err(io::Error::other("interrupted"));
        }
        self.digest.update(bytes);
        if let Some(output) = self.output.take() {
            let level = Compressor::new(self.level).level_for(bytes);
            self.deflate = Some(DeflateWrite::new(output, level));
        }
        match &mut self.deflate {
            Some(deflate) => deflate.write_all(bytes)?,
            None => unreachable!("compression starts with the first piece"),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
