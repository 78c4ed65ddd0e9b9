//! Git inside your process.
//!
//! Reads, enumerates, packs, indexes, checks and checks out Git repositories without ever starting a `git` program.
//! The crate prints nothing, encrypts nothing and parses no arguments: progress goes through [`progress::Progress`],
//! failures through one error enum per module, and what is worth a warning through [`tracing`] events.
//!
//! A repository, an object that is stored in it durably, and reading it back:
//!
//! ```
//! use gix_object::Kind;
//! use ingot_engine::pack::create::{Creator, Encoder, Options};
//! use ingot_engine::repository::{Init, init};
//! use ingot_engine::store::Cache;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let repository = init(folder.path(), &Init::default())?;
//! let options = Options::default();
//!
//! let blob = Encoder::new(repository.format(), options.level).encode(Kind::Blob, b"hello\n");
//! let mut pack = Creator::begin(repository.objects_dir(), repository.format(), &options);
//! pack.add(&blob)?;
//! pack.finish()?;
//!
//! let mut content = Vec::new();
//! let store = repository.store()?;
//! store.read(&blob.id, &mut Cache::new(1 << 20), &mut content)?;
//! assert_eq!(content, b"hello\n");
//! assert_eq!(blob.id.to_string(), "ce013625030ba8dba906f756967f9e9ca394464a"); // as git hash-object says
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

pub mod checkout;
pub mod chunked;
pub mod connectivity;
pub mod durable;
pub mod import;
pub mod mapped;
mod notice;
pub mod object;
pub mod pack;
pub mod phase;
pub mod progress;
pub mod refs;
pub mod repository;
pub mod store;
pub mod transport;
pub mod walk;
