//! What is done with an encrypted remote: init, list, push, fetch, verify.

pub mod decide;
pub mod refnames;
pub mod rejection;
