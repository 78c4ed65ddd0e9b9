//! What Git speaks between processes and over networks: fetches from, and pushes to, ordinary Git servers.
//!
//! A [`Remote`] is an [`Address`] with the [`Options`] that configuration and environment give it. It connects to one of
//! two services: [`UploadPack`], which tells references and makes packs, and [`ReceivePack`], which takes packs and moves
//! references. What carries the conversation is `git://`, the user's own ssh program, or http and https; a local path is
//! recognised, and opened by others. No `git` program is started: credential helpers, askpass and ssh are programs that
//! users configure, and are started directly.
//!
//! Nothing that a server says is believed: frames, lists and messages are bounded before memory is allocated for them.

mod address;
mod advertisement;
mod channel;
mod credential;
mod daemon;
mod error;
mod http;
mod messages;
mod options;
mod per_url;
pub mod pkt_line;
mod program;
#[cfg(test)]
mod random_tests;
mod receive_pack;
mod side_band;
mod socket;
mod ssh;
mod upload_pack;

use std::fmt;
use std::sync::Arc;

pub use address::{Address, Direction, Scheme};
pub use advertisement::AdvertisedRef;
pub use credential::{Unanswered, ask_on_terminal, ask_on_terminal_unless, ask_secret};
pub use error::Error;
pub use messages::{Line, Lines, Messages, Silently};
pub use options::{Environment, Options};
pub use receive_pack::{Command, Offers, Push, PushError, ReceivePack, RefReport, Report, Status};
pub use upload_pack::{Fetch, Haves, PackStream, UploadPack};

use channel::{Channel, Service, version_for};

/// A repository elsewhere. Remembers the credentials that it accepted, and keeps an http connection open.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    address: Address,
    options: Options,
    messages: Arc<dyn Messages>,
    http: Arc<http::Client>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.0.address).finish()
    }
}

impl Remote {
    /// Connects to nothing yet. What servers say goes to `messages`.
    pub fn new(address: Address, options: Options, messages: Arc<dyn Messages>) -> Remote {
        let http = http::Client::new(address.to_string(), options.clone(), Arc::clone(&messages));
        Remote(Arc::new(Inner {
            address,
            options,
            messages,
            http: Arc::new(http),
        }))
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Connects to the service that fetches are made from.
    pub fn upload_pack(&self) -> Result<UploadPack, Error> {
        UploadPack::connect(self)
    }

    /// Connects to the service that takes pushes, and reads its references.
    pub fn receive_pack(&self) -> Result<ReceivePack, Error> {
        ReceivePack::connect(self)
    }

    /// A new conversation, of which the greeting is the first thing to read.
    fn open(&self, service: Service) -> Result<Channel, Error> {
        let Inner {
            address,
            options,
            messages,
            http,
        } = &*self.0;
        Ok(match address.scheme() {
            Scheme::Local => {
                return Err(Error::Local {
                    remote: address.to_string(),
                });
            }
            Scheme::Git => Channel::Duplex(daemon::connect(address, service, options, messages)?),
            Scheme::Ssh => Channel::Duplex(ssh::connect(address, service, options, messages)?),
            Scheme::Http | Scheme::Https => {
                let version = version_for(service, options.version());
                Channel::Http(Box::new(http::Service::open(http, address, service, version)?))
            }
        })
    }

    fn name(&self) -> String {
        self.0.address.to_string()
    }

    /// Who is told what the server says.
    pub fn messages(&self) -> &Arc<dyn Messages> {
        &self.0.messages
    }

    fn agent(&self) -> &str {
        self.0.options.agent()
    }
}
