//! The credentials that a request goes through.

use data_encoding::BASE64;
use zeroize::Zeroizing;

use super::client::Client;
use crate::transport::Error;
use crate::transport::credential::{Credential, Realm};
use crate::transport::error::printable;

/// How often credentials are asked for before one request is given up.
const MOST_ATTEMPTS: u32 = 3;

/// What a server is shown.
pub(super) fn authorization(credential: &Credential) -> Zeroizing<String> {
    if let Some((scheme, ready)) = &credential.ready {
        return Zeroizing::new(format!("{scheme} {}", ready.as_str()));
    }
    let pair = Zeroizing::new(format!(
        "{}:{}",
        credential.username.as_deref().unwrap_or_default(),
        credential
            .password
            .as_ref()
            .map_or("", |password| password.as_str())
    ));
    let encoded = Zeroizing::new(BASE64.encode(pair.as_bytes()));
    Zeroizing::new(format!("Basic {}", encoded.as_str()))
}

/// Where a credential came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// There is none yet.
    Nowhere,
    /// The server accepted it before.
    Remembered,
    Address,
    Netrc,
    /// Helpers, or somebody.
    Asked,
}

/// The credentials that one request goes through.
pub(super) struct Attempt {
    realm: Realm,
    pub credential: Option<Credential>,
    source: Source,
    asked: u32,
}

impl Attempt {
    pub(super) fn new(realm: Realm, remembered: Option<Credential>) -> Attempt {
        Attempt {
            realm,
            source: match remembered {
                Some(_) => Source::Remembered,
                None => Source::Nowhere,
            },
            credential: remembered,
            asked: 0,
        }
    }

    /// The server wants others: takes the next.
    pub(super) fn next(&mut self, challenges: &[String], said: &str, client: &Client) -> Result<(), Error> {
        let failed = |message: String| Error::Authentication {
            remote: client.remote.clone(),
            message,
        };
        if let Some(refused) = self.credential.take() {
            if self.source != Source::Netrc {
                refused.reject(&self.realm, client.options(), &client.messages);
            }
            if matches!(self.source, Source::Address | Source::Asked) {
                let user = refused.username.unwrap_or_default();
                let words = match printable(said.as_bytes()) {
                    said if said.is_empty() => said,
                    said => format!(" ({said})"),
                };
                return Err(failed(format!(
                    "the server does not accept the user name '{user}' with this password or token{words}; check them, or the credential helper that has them"
                )));
            }
        }
        self.asked += 1;
        if self.asked > MOST_ATTEMPTS {
            return Err(failed("it asks again and again".to_owned()));
        }
        let (source, credential) = self.choose(challenges, client)?;
        if !speaks_basic(challenges) && credential.ready.is_none() {
            let schemes: Vec<&str> = challenges
                .iter()
                .filter_map(|challenge| challenge.split(' ').next())
                .collect();
            return Err(failed(format!(
                "the server asks for {}, and only Basic is supported; use a token over Basic, or ssh",
                printable(schemes.join(", ").as_bytes())
            )));
        }
        self.source = source;
        self.credential = Some(credential);
        Ok(())
    }

    fn choose(&self, challenges: &[String], client: &Client) -> Result<(Source, Credential), Error> {
        let options = client.options();
        if self.source == Source::Nowhere {
            let of_address = Credential::of(&self.realm);
            if of_address.is_complete() {
                return Ok((Source::Address, of_address));
            }
            if let Some(found) = Credential::of_netrc(&self.realm, options) {
                return Ok((Source::Netrc, found));
            }
        }
        let filled = Credential::fill(&self.realm, challenges, options, &client.messages, &client.remote)?;
        Ok((Source::Asked, filled))
    }

    /// The server took it: helpers may keep it.
    pub(super) fn accepted(self, client: &Client) -> Option<Credential> {
        let credential = self.credential?;
        if self.source == Source::Asked {
            credential.approve(&self.realm, client.options(), &client.messages);
        }
        Some(credential)
    }
}

/// Whether one of the challenges is for user name and password. A server that says nothing is taken at that.
fn speaks_basic(challenges: &[String]) -> bool {
    challenges.is_empty()
        || challenges.iter().any(|challenge| {
            let lower = challenge.to_ascii_lowercase();
            lower.starts_with("basic") || lower.contains(", basic")
        })
}
