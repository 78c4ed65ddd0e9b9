//! Protocol v5: keys, policies, manifests, chains and pack streams. No storage, no Git.
//!
//! A repository is a chain of *manifests*, each with the refs as they are from then on and the packs that came with
//! it. [`chain::Chain`] reads and verifies one; [`publication`] makes the next manifest; [`pack_stream`] seals and
//! opens what the packs hold. docs/format-v5.md is the specification.

pub mod chain;
pub mod crypto;
mod encoding;
pub mod envelope;
pub mod ids;
pub mod invitation;
pub mod key_file;
pub mod keys;
pub mod manifest;
pub mod pack_stream;
pub mod policy;
pub mod publication;
pub mod refs;

#[cfg(test)]
mod golden;

pub use chain::Chain;
pub use ids::{ContentId, DeviceId, Digest, InvalidId, RepositoryRoot};
pub use keys::{DeviceKey, PublicDevice};
pub use policy::{Policy, Role};

/// Version of manifests and policies.
pub const FORMAT_VERSION: u32 = 5;
