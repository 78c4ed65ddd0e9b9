//! Encrypted Git remotes: protocol v5, its storage, and what the two programs do with them.
//!
//! Two generations of a store, and reading them back from nothing but ciphertext:
//!
//! ```
//! use std::collections::HashMap;
//!
//! use ingot_helper::protocol::chain::Chain;
//! use ingot_helper::protocol::keys::DeviceKey;
//! use ingot_helper::protocol::publication::{Writer, genesis};
//! use ingot_helper::protocol::refs::RefMap;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = DeviceKey::generate(None)?;
//! let mut stored = HashMap::new();
//!
//! let first = genesis(&device)?;
//! stored.insert(*first.id(), first.bytes().to_vec());
//! let second = Writer::begin(first.chain(), &device)?.publish(&RefMap::new())?;
//! stored.insert(*second.id(), second.bytes().to_vec());
//!
//! let fetch = |id: &_| stored.get(id).cloned().ok_or(std::io::ErrorKind::NotFound.into());
//! let chain = Chain::read::<std::io::Error>(fetch, second.id(), &device)?;
//! assert_eq!(chain.head().number(), 1);
//!
//! let stranger = DeviceKey::generate(None)?;
//! assert!(Chain::read::<std::io::Error>(fetch, second.id(), &stranger).is_err());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod flock;
pub mod gitremote;
pub mod keys;
pub mod protocol;
pub mod remote;
pub mod state;
pub mod storage;
