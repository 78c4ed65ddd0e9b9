//! Protocol v5: keys, manifests, policies, chains and pack streams.

pub mod ids;

pub use ids::{ContentId, DeviceId, Digest, InvalidId, RepositoryRoot};
