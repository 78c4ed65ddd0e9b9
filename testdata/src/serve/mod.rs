//! Git servers on the loopback address, for one test each: they end when they are dropped.

pub mod cut;
pub mod daemon;
pub mod http;
pub mod ssh;

use std::net::{Ipv4Addr, TcpListener};

/// A listener on a free port.
fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}
