//! User names and passwords: from the address, from credential helpers, from the user (gitcredentials(7)).
//!
//! Helpers and askpass programs are started directly, without a `git` in between.

mod askpass;
mod helper;
mod netrc;

use std::fmt;
use std::sync::Arc;

use bstr::BString;
use zeroize::Zeroizing;

pub use askpass::{Unanswered, ask_on_terminal, ask_on_terminal_unless, ask_secret};

use super::options::{Options, per_url, setting};
use super::per_url::Place;
use super::{Error, Messages};

/// What is known of an account at one place.
#[derive(Clone, Default)]
pub(super) struct Credential {
    pub protocol: String,
    /// With the port, if the address says one.
    pub host: String,
    /// Without a slash in front; only where helpers are to know it.
    pub path: Option<BString>,
    pub username: Option<String>,
    pub password: Option<Zeroizing<String>>,
    /// A scheme of authentication and what follows its name, ready made by a helper.
    pub ready: Option<(String, Zeroizing<String>)>,
    /// What a helper wants to hear again when it stores or erases.
    extra: Vec<(String, Zeroizing<String>)>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("protocol", &self.protocol)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// Where an account is needed.
pub(super) struct Realm {
    pub place: Place,
    /// As helpers see it.
    pub host: String,
    /// The user name and password of the address.
    pub user: Option<String>,
    pub password: Option<Zeroizing<String>>,
}

/// What configuration says of credentials at one place.
struct Choices {
    helpers: Vec<BString>,
    username: Option<String>,
    use_path: bool,
    interactive: bool,
}

impl Choices {
    fn read(options: &Options, place: &Place) -> Result<Choices, Error> {
        let config = options.config();
        let per_url = per_url(&config, "credential", place, true);
        let boolean = |name: &str| {
            per_url.boolean(name).map_err(|text| {
                setting(
                    &format!("credential.{name}"),
                    format!("'{text}' is neither true nor false"),
                )
            })
        };
        Ok(Choices {
            helpers: per_url.list("helper"),
            username: per_url.string("username").map(|name| name.to_string()),
            use_path: boolean("useHttpPath")?.unwrap_or(false),
            // A third word, `auto`, asks where somebody can answer.
            interactive: per_url
                .string("interactive")
                .is_none_or(|text| !matches!(text.as_slice(), b"false" | b"never" | b"no" | b"off" | b"0")),
        })
    }
}

impl Credential {
    /// What the address says: enough, if it has a password.
    pub(super) fn of(realm: &Realm) -> Credential {
        Credential {
            protocol: realm.place.scheme.clone(),
            host: realm.host.clone(),
            username: realm.user.clone(),
            password: realm.password.clone(),
            ..Credential::default()
        }
    }

    /// What `~/.netrc` says.
    pub(super) fn of_netrc(realm: &Realm, options: &Options) -> Option<Credential> {
        netrc::look_up(realm, options)
    }

    /// Whether it can be shown to a server.
    pub(super) fn is_complete(&self) -> bool {
        self.ready.is_some() || (self.username.is_some() && self.password.is_some())
    }

    /// Asks helpers, then the user, for what is missing. `challenges` are the server's `WWW-Authenticate` values.
    pub(super) fn fill(
        realm: &Realm,
        challenges: &[String],
        options: &Options,
        messages: &Arc<dyn Messages>,
        remote: &str,
    ) -> Result<Credential, Error> {
        let choices = Choices::read(options, &realm.place)?;
        let mut credential = Credential::of(realm);
        credential.password = None;
        if credential.username.is_none() {
            credential.username = choices.username.clone();
        }
        if choices.use_path {
            let path = realm.place.path.strip_prefix(b"/").unwrap_or(&realm.place.path);
            credential.path = Some(path.into());
        }
        for helper in &choices.helpers {
            match helper::get(helper.as_ref(), &mut credential, challenges, options) {
                Ok(false) => {}
                Ok(true) => {
                    return Err(Error::Authentication {
                        remote: remote.to_owned(),
                        message: format!("the credential helper '{helper}' told to stop"),
                    });
                }
                Err(message) => messages.warning(&message),
            }
            if credential.is_complete() {
                return Ok(credential);
            }
        }
        credential.prompt(&choices, options, messages, remote)?;
        Ok(credential)
    }

    fn prompt(
        &mut self,
        choices: &Choices,
        options: &Options,
        messages: &Arc<dyn Messages>,
        remote: &str,
    ) -> Result<(), Error> {
        let terminal =
            choices.interactive && options.environment().flag("GIT_TERMINAL_PROMPT").unwrap_or(true);
        let ask = |prompt: &str, secret: bool| -> Result<Zeroizing<String>, Error> {
            let answer = match choices.interactive {
                true => askpass::ask(prompt, options, messages),
                false => None,
            };
            answer
                .or_else(|| match terminal {
                    true => messages.ask(prompt, secret).map(Zeroizing::new),
                    false => None,
                })
                .ok_or_else(|| Error::Authentication {
                    remote: remote.to_owned(),
                    message: format!(
                        "no credentials: {}set a credential helper (credential.helper) or an askpass program (GIT_ASKPASS)",
                        match terminal {
                            true => "nobody could be asked; ",
                            false => "asking on the terminal is switched off; ",
                        }
                    ),
                })
        };
        let place = |user: Option<&str>| match (user, &self.path) {
            (Some(user), None) => format!("{}://{}@{}", self.protocol, escaped(user), self.host),
            (None, None) => format!("{}://{}", self.protocol, self.host),
            (Some(user), Some(path)) => {
                format!("{}://{}@{}/{path}", self.protocol, escaped(user), self.host)
            }
            (None, Some(path)) => format!("{}://{}/{path}", self.protocol, self.host),
        };
        let username = match &self.username {
            Some(name) => name.clone(),
            None => ask(&format!("Username for '{}': ", place(None)), false)?.to_string(),
        };
        let password = ask(&format!("Password for '{}': ", place(Some(&username))), true)?;
        self.username = Some(username);
        self.password = Some(password);
        Ok(())
    }

    /// Tells helpers that the server accepted it.
    pub(super) fn approve(&self, realm: &Realm, options: &Options, messages: &Arc<dyn Messages>) {
        self.tell("store", realm, options, messages);
    }

    /// Tells helpers that the server did not accept it.
    pub(super) fn reject(&self, realm: &Realm, options: &Options, messages: &Arc<dyn Messages>) {
        self.tell("erase", realm, options, messages);
    }

    fn tell(&self, operation: &str, realm: &Realm, options: &Options, messages: &Arc<dyn Messages>) {
        // Unreadable configuration was an error before.
        let Ok(choices) = Choices::read(options, &realm.place) else {
            return;
        };
        for helper in &choices.helpers {
            if let Err(message) = helper::tell(helper.as_ref(), operation, self, options) {
                messages.warning(&message);
            }
        }
    }
}

/// A user name as it stands in a URL.
fn escaped(user: &str) -> String {
    let mut out = String::new();
    for byte in user.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}
