//! Fetches from and pushes to Git's own servers, and to bad ones, over every kind of connection.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // in tests, failing is the point

mod support;

mod broken;
mod credentials;
mod environment;
mod fetch;
mod http;
mod push;
mod terminal;
mod tls;
