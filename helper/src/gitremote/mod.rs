//! The line protocol that Git speaks to a remote helper (gitremote-helpers(7)).
//!
//! [`parse`] takes single lines apart, [`options`] keeps what Git sets, [`serve()`] holds the conversation and asks
//! a [`Backend`] for everything that concerns a store. Nothing is answered before it is certain, and a batch that
//! ends early is not begun.

pub mod backend;
pub mod lines;
pub mod options;
pub mod parse;
pub mod quote;
mod serve;

pub use backend::Backend;
pub use serve::{Error, serve};
