//! Git's filter protocol (gitattributes(5), "Long Running Filter Process").
//!
//! Git starts one process for a command and sends it file after file: `clean` on the way into the repository, `smudge`
//! on the way out. What is cleaned is durable before it is answered, because Git trusts the answer.

mod packets;
mod process;

pub use packets::{Content, Packets};
pub use process::{Messages, THRESHOLD, serve};
