//! Takes packs into quarantine, checks them, and publishes them at once.
//!
//! An [`Import`] is a folder inside the repository's object folder, under a name by which Git knows leftovers. Packs are
//! received into it and indexed there; then it is asked whether everything that the new tips reach is there; then the
//! packs are published: synced, moved into place with the index last, and the folder of packs synced. Until then, and
//! when the import is dropped instead, the repository is as it was.
//!
//! Several packs are checked and published together, and stay several packs: joining them would write everything once
//! more. Lookups go through one table over all packs once there are many, and `git maintenance` joins them in its time.
//!
//! What is checked of packs and objects is listed at [`crate::pack::index`].

mod error;
mod publish;
mod quarantine;

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use gix_hash::{ObjectId, oid};

pub use crate::connectivity::Connectivity;
pub use crate::pack::index::Limits;
pub use error::Error;
pub use publish::PublishedPack;

use crate::chunked;
use crate::connectivity::{self, Question};
use crate::durable::{self, Fs};
use crate::pack::create::{self, Creator};
use crate::pack::index::{self, Indexed};
use crate::progress::Progress;
use crate::store::{Pack, Store};
use quarantine::Quarantine;

/// How to import.
#[derive(Clone)]
pub struct Options {
    /// How many threads work, the calling one included. 0 stands for one per processor.
    pub threads: usize,
    /// Bytes of delta bases that are kept in memory, beyond those in use.
    pub memory: u64,
    /// What `.keep` files say: which program wants the pack to stay, and why.
    pub keep_message: String,
    /// Commits whose parents may be absent, as `.git/shallow` lists them.
    pub shallow: Vec<ObjectId>,
    /// Where files are written.
    pub fs: Arc<dyn Fs>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threads: 0,
            memory: index::Options::new(gix_hash::Kind::Sha1).memory,
            keep_message: "ingot import".into(),
            shallow: Vec::new(),
            fs: durable::real(),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("threads", &self.threads)
            .field("memory", &self.memory)
            .field("keep_message", &self.keep_message)
            .field("shallow", &self.shallow.len())
            .finish_non_exhaustive()
    }
}

/// Packs of one's own objects up to this length are put together in memory.
const BUFFER: usize = 1 << 20;

/// What was received with one pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The checksum of the pack.
    pub id: ObjectId,
    /// The number of its entries.
    pub objects: u32,
    /// Its length.
    pub bytes: u64,
}

/// Packs in quarantine. Dropping it removes them.
pub struct Import {
    options: Options,
    existing: Arc<Store>,
    quarantine: Quarantine,
    packs: Vec<Indexed>,
    /// What is there with the packs so far, once somebody asked.
    view: OnceLock<Arc<Store>>,
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import")
            .field("quarantine", &self.quarantine.path())
            .field("packs", &self.packs)
            .finish_non_exhaustive()
    }
}

impl Import {
    /// Makes a quarantine in the object folder of a repository.
    pub fn begin(objects: &Path, format: gix_hash::Kind, options: Options) -> Result<Import, Error> {
        Import::into_store(Arc::new(Store::open(objects, format)?), options)
    }

    /// Makes a quarantine in the object folder of a repository whose objects are open already.
    pub fn into_store(existing: Arc<Store>, options: Options) -> Result<Import, Error> {
        Ok(Import {
            quarantine: Quarantine::create(Arc::clone(&options.fs), existing.objects_dir())?,
            existing,
            options,
            packs: Vec::new(),
            view: OnceLock::new(),
        })
    }

    /// The quarantine, which has the layout of an object folder with the repository's as its alternate.
    pub fn quarantine(&self) -> &Path {
        self.quarantine.path()
    }

    /// Reads a self-contained pack from `source` to its end and indexes it. An empty pack is accepted. After an error
    /// the import can go on with other packs.
    pub fn add_pack(
        &mut self,
        source: &mut dyn Read,
        limits: &Limits,
        progress: &dyn Progress,
    ) -> Result<Received, Error> {
        let options = index::Options {
            format: self.existing.format(),
            threads: self.options.threads,
            memory: self.options.memory,
            limits: *limits,
            existing: Some(&self.existing),
            // History that was stored once has to come back, whatever is in it; Git's fetch takes such names too.
            safe_names: false,
            fs: Arc::clone(&self.options.fs),
        };
        let indexed = index::index(source, &self.quarantine.packs(), &options, progress)?;
        let received = Received {
            id: indexed.id,
            objects: indexed.objects,
            bytes: indexed.bytes,
        };
        if indexed.objects > 0 && self.packs.iter().all(|pack| pack.id != indexed.id) {
            self.packs.push(indexed);
            self.view = OnceLock::new();
        }
        Ok(received)
    }

    /// Begins a pack of objects that the caller has at hand, in quarantine; see [`Import::adopt`].
    pub fn builder(&self) -> Creator {
        let options = create::Options {
            buffer: BUFFER,
            fs: Arc::clone(&self.options.fs),
            ..create::Options::default()
        };
        Creator::in_folder(&self.quarantine.packs(), self.existing.format(), &options)
    }

    /// Takes a pack that was made with [`Import::builder`]. Its objects are the caller's own and not looked at, so that
    /// [`Import::check`] does not see what they refer to.
    pub fn adopt(&mut self, builder: Creator) -> Result<Received, Error> {
        let built = builder.complete().map_err(durable::Error::from)?;
        let fs = &*self.options.fs;
        let pack = self.quarantine.packs().join(format!("pack-{}.pack", built.id));
        built.write_index(fs, &pack.with_extension("idx"), &pack.with_extension("rev"))?;
        fs.rename(&built.path, &pack)
            .map_err(|source| durable::Error::new("rename", &built.path, source))?;
        let received = Received {
            id: built.id,
            objects: built.objects,
            bytes: built.bytes,
        };
        self.packs.push(Indexed {
            id: built.id,
            objects: built.objects,
            bytes: built.bytes,
            pack,
            external: Vec::new(),
        });
        self.view = OnceLock::new();
        Ok(received)
    }

    /// Brings everything in quarantine to the disk. Publishing does it anyway; doing it before keeps locks short.
    pub fn sync(&self) -> Result<(), Error> {
        for pack in &self.packs {
            self.options
                .fs
                .sync_file(&pack.pack)
                .map_err(|source| durable::Error::new("sync", &pack.pack, source))?;
        }
        Ok(())
    }

    /// A view of the repository with the packs in quarantine.
    pub fn store(&self) -> Result<Arc<Store>, Error> {
        if let Some(view) = self.view.get() {
            return Ok(Arc::clone(view));
        }
        let view = Arc::new(self.existing.beneath(self.quarantine.path())?);
        Ok(Arc::clone(self.view.get_or_init(|| view)))
    }

    /// Answers whether everything that `tips` reach is there, in quarantine or in the repository. What `frontier`
    /// reaches is believed to be complete.
    ///
    /// Packs that refer to nothing outside of them are complete without looking any further; otherwise the cost follows
    /// what is newer than the frontier. The count in the answer is that of the entries in the former case.
    pub fn check(
        &self,
        tips: &[ObjectId],
        frontier: &[ObjectId],
        progress: &dyn Progress,
    ) -> Result<Connectivity, Error> {
        let store = self.store()?;
        let received: Vec<&Arc<Pack>> = store
            .packs()
            .iter()
            .filter(|pack| pack.path().starts_with(self.quarantine.path()))
            .collect();
        let is_received = |id: &oid| received.iter().any(|pack| pack.find(id).is_some());
        // With all references inside and the tips, too, the packs are closed: nothing can be reached that is missing.
        // What the frontier has is as good as inside.
        let mut known = frontier.to_vec();
        known.sort_unstable();
        let is_known = |id: &ObjectId| known.binary_search(id).is_ok() && self.existing.contains(id);
        let is_settled = |id: &ObjectId| is_received(id) || is_known(id);
        let references = self.packs.iter().flat_map(|pack| &pack.external);
        if tips.iter().all(is_settled) && references.into_iter().all(is_settled) {
            return Ok(Connectivity::Connected {
                objects: self.packs.iter().map(|pack| pack.objects).sum(),
            });
        }
        let question = Question {
            tips,
            frontier,
            shallow: &self.options.shallow,
            threads: self.options.threads,
        };
        Ok(connectivity::check(&store, &question, progress)?)
    }

    /// Makes the packs part of the repository, durably, with a `.keep` file beside each if `keep` says so: it protects
    /// objects from a concurrent `git gc` until references lead to them. A pack that the repository has already is left
    /// as it is; empty ones are forgotten.
    ///
    /// Packs that hold chunks of chunked files have a `.keep` file in any case, which stays.
    ///
    /// An error in the middle may leave whole packs behind, which do no harm.
    pub fn publish(mut self, keep: bool) -> Result<Vec<PublishedPack>, Error> {
        self.publish_now(keep)
    }

    /// The same for an import that goes on: what is published is forgotten, and more packs may follow.
    pub fn publish_now(&mut self, keep: bool) -> Result<Vec<PublishedPack>, Error> {
        let packs = std::mem::take(&mut self.packs);
        let message = keep.then_some(self.options.keep_message.as_str());
        if packs.is_empty() {
            return Ok(Vec::new());
        }
        let folder = self.existing.objects_dir().join("pack");
        let chunks = packs_with_chunks(&packs, self.existing.format())?;
        if chunks.contains(&true) {
            chunked::mark(&*self.options.fs, self.existing.objects_dir())?;
        }
        Ok(publish::publish(
            &*self.options.fs,
            &packs,
            &chunks,
            &folder,
            message,
        )?)
    }
}

/// Which of the packs hold chunks of chunked files.
fn packs_with_chunks(packs: &[Indexed], format: gix_hash::Kind) -> Result<Vec<bool>, Error> {
    let found = packs.iter().map(|indexed| {
        let pack = Pack::open(&indexed.pack, format)?;
        chunked::holds_chunks(&pack, format)
    });
    Ok(found.collect::<Result<_, _>>()?)
}
