//! Single steps of the engine, each as a process of its own, so that its time and memory are measured like those of
//! the Git program that does the same.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use ingot_engine::connectivity;
use ingot_engine::pack::{index, write};
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::walk;
use ingot_helper::protocol::keys::DeviceKey;
use ingot_helper::protocol::pack_stream::Sealer;
use ingot_helper::protocol::publication;

/// A step of the engine.
#[derive(Debug, Clone, Subcommand)]
pub enum Step {
    /// Finds every object that HEAD reaches; like `git rev-list --objects HEAD`.
    Enumerate {
        /// The repository.
        repository: PathBuf,
    },
    /// Packs all of that into nothing; like `git pack-objects --revs --stdout`.
    Pack {
        /// The repository.
        repository: PathBuf,
    },
    /// Indexes a pack; like `git index-pack --stdin`.
    Index {
        /// The pack.
        pack: PathBuf,
        /// The folder for pack and index.
        into: PathBuf,
    },
    /// Checks that everything that HEAD reaches is there; like `git fsck --connectivity-only`.
    Connect {
        /// The repository.
        repository: PathBuf,
    },
    /// Encrypts a file as a pack of a store, into nothing.
    Seal {
        /// The file.
        pack: PathBuf,
    },
}

/// Does the step.
pub fn run(step: &Step) -> Result<String, Box<dyn std::error::Error>> {
    match step {
        Step::Enumerate { repository } => {
            with_objects(repository, |_, objects| Ok(format!("{} objects", objects.len())))
        }
        Step::Pack { repository } => with_objects(repository, |store, objects| {
            let plan = write::plan(store, objects, &write::Options::default(), &Silent)?;
            let summary = plan.stream(&mut io::sink(), &Silent)?;
            Ok(format!("{} objects, {} bytes", summary.objects, summary.bytes))
        }),
        Step::Index { pack, into } => {
            let indexed = index::index(
                &mut File::open(pack)?,
                into,
                &index::Options::new(gix_hash::Kind::Sha1),
                &Silent,
            )?;
            Ok(format!("{} objects, {}", indexed.objects, indexed.id))
        }
        Step::Connect { repository } => {
            let repository = Repository::open(repository)?;
            let head = repository.gix().head_id()?.detach();
            let question = connectivity::Question {
                tips: &[head],
                ..connectivity::Question::default()
            };
            let answer = connectivity::check(&repository.store()?, &question, &Silent)?;
            Ok(format!("{answer:?}"))
        }
        Step::Seal { pack } => {
            let device = DeviceKey::generate(None)?;
            let chain = publication::genesis(&device)?.into_chain();
            let writer = publication::Writer::begin(&chain, &device)?;
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let mut sealer = Sealer::new(io::sink(), &writer.pack_key(), threads)?;
            io::copy(&mut File::open(pack)?, &mut sealer)?;
            Ok(format!("{} bytes", sealer.finish()?.0.stored_size))
        }
    }
}

fn with_objects(
    repository: &Path,
    then: impl FnOnce(&ingot_engine::store::Store, &walk::Objects) -> Result<String, Box<dyn std::error::Error>>,
) -> Result<String, Box<dyn std::error::Error>> {
    let repository = Repository::open(repository)?;
    let store = repository.store()?;
    let head = repository.gix().head_id()?.detach();
    let request = walk::Request {
        wants: &[head],
        ..walk::Request::default()
    };
    let objects = walk::enumerate(&store, &request, &Silent)?;
    then(&store, &objects)
}
