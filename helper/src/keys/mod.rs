//! Key files as people keep them: protected by a passphrase, opened once per run, kept out of work trees, and on paper.
//!
//! A key file is format 3 JSON of protocol v5, or an [`age`] file with that JSON in it. Which of the two it is, its first
//! bytes say. [`KeyFiles`] opens both and writes each as it found it; [`sheet`] turns a key into words and back.

pub mod age;
mod files;
pub mod keychain;
mod passphrase;
pub mod sheet;
mod tracked;

pub use files::{Ask, KeyFiles, Never, Opened, Wrapping};
pub use keychain::Keychain;
pub use passphrase::Passphrase;
pub use tracked::{companions, key_folder, lies_in_work_tree, refuse_in_work_tree};
