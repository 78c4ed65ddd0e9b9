//! For tests: a file system that remembers every call, the states that a power cut may leave, and a file system whose
//! n-th call fails.
//!
//! ```no_run
//! # use std::{path::Path, sync::Arc};
//! # use ingot_engine::durable::{Fs, testing::Recording, write_atomic};
//! # let root = Path::new("folder");
//! let fs = Recording::new(root)?;
//! write_atomic(&fs, &root.join("file"), b"new", 0o600)?;
//! fs.mark("written");
//! fs.each_crash(|crash| {
//!     let found = std::fs::read(crash.root().join("file")).ok();
//!     assert!(found.as_deref() == Some(b"new") || !crash.reached("written"), "{crash}");
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod crash;
mod disk;
mod faulty;
mod recording;

pub use crash::Crash;
pub use faulty::{Fault, Faulty};
pub use recording::{Calls, Recording};
