//! http and https URLs, taken apart for requests.

use bstr::{BString, ByteSlice as _};
use zeroize::Zeroizing;

use crate::transport::Error;
use crate::transport::credential::Realm;
use crate::transport::error::printable;
use crate::transport::per_url::Place;

/// A URL. Equality of [`Location::origin`] decides whether a connection or a credential may be used again.
#[derive(Clone)]
pub(super) struct Location {
    pub tls: bool,
    /// Without brackets, in lower case.
    pub host: String,
    pub port: u16,
    /// Whether the URL says the port.
    port_is_written: bool,
    /// Path and query as they go into a request; begins with a slash.
    pub target: String,
    user: Option<String>,
    password: Option<Zeroizing<String>>,
    place: Place,
}

impl Location {
    /// Takes a URL of an http scheme apart.
    pub(super) fn of(url: &gix::Url, remote: &str) -> Result<Location, Error> {
        let bad = |message: &str| Error::Address {
            address: remote.to_owned(),
            message: message.to_owned(),
        };
        let tls = match url.scheme {
            gix::url::Scheme::Https => true,
            gix::url::Scheme::Http => false,
            _ => return Err(bad("it is neither http nor https")),
        };
        let host = url.host.as_deref().unwrap_or_default();
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("its host is no name that can be asked for"));
        }
        let path = url.original_path();
        let path = path.split_str("#").next().unwrap_or_default();
        let mut target = String::new();
        if !path.starts_with(b"/") {
            target.push('/');
        }
        for &byte in path {
            match byte {
                0x21..=0x7e => target.push(byte.into()),
                _ => target.push_str(&format!("%{byte:02X}")),
            }
        }
        Ok(Location {
            tls,
            host,
            port: url.port.unwrap_or(if tls { 443 } else { 80 }),
            port_is_written: url.port.is_some(),
            target,
            user: url.user.clone().filter(|user| !user.is_empty()),
            password: url.password.clone().map(Zeroizing::new),
            place: Place::of(url),
        })
    }

    /// The place that a `Location` header leads to.
    pub(super) fn follow(&self, to: &str, remote: &str) -> Result<Location, Error> {
        let absolute = match to {
            _ if to.contains("://") => to.to_owned(),
            _ if to.starts_with("//") => format!("{}:{to}", self.scheme()),
            _ if to.starts_with('/') => format!("{}://{}{to}", self.scheme(), self.authority()),
            _ => {
                let path = self.target.split('?').next().unwrap_or_default();
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{}://{}{folder}/{to}", self.scheme(), self.authority())
            }
        };
        let bad = |message: String| Error::NotGit {
            remote: remote.to_owned(),
            message,
        };
        if absolute.bytes().any(|byte| !matches!(byte, 0x21..=0x7e)) {
            return Err(bad("it redirects to what is no URL".to_owned()));
        }
        let url = gix::url::parse(absolute.as_bytes().as_bstr())
            .map_err(|_| bad("it redirects to what is no URL".to_owned()))?;
        Location::of(&url, remote).map_err(|_| {
            let shown = crate::transport::address::without_password(absolute.as_bytes());
            bad(format!(
                "it redirects to {shown}, which is neither http nor https"
            ))
        })
    }

    /// The place of a repository, from that of a service of it.
    pub(super) fn base(&self, tail: &str) -> Option<Location> {
        let target = self.target.strip_suffix(tail)?;
        let mut base = self.clone();
        base.target = target.to_owned();
        let path = target.split('?').next().unwrap_or_default();
        base.place.path = BString::from(path.trim_end_matches('/'));
        Some(base)
    }

    /// A place below the repository.
    pub(super) fn join(&self, tail: &str) -> Location {
        let mut joined = self.clone();
        joined.target = format!("{}{tail}", self.target.trim_end_matches('/'));
        joined
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Host and, where it is not the usual one, port.
    pub(super) fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    pub(super) fn origin(&self) -> (bool, &str, u16) {
        (self.tls, &self.host, self.port)
    }

    /// For configuration.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Where an account is needed.
    pub(super) fn realm(&self) -> Realm {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        Realm {
            place: self.place.clone(),
            host: match self.port_is_written {
                true => format!("{host}:{}", self.port),
                false => host,
            },
            user: self.user.clone(),
            password: self.password.clone(),
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let target = printable(self.target.as_bytes());
        write!(f, "{}://{}{target}", self.scheme(), self.authority())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn location(text: &str) -> Location {
        Location::of(&gix::url::parse(text.as_bytes().as_bstr()).unwrap(), "there").unwrap()
    }

    #[test]
    fn urls_are_taken_apart() {
        let parsed = location("https://us%65r:p%40ss@Host.Example:8443/a%20b/c<d?x=%2f#f");
        assert_eq!(parsed.origin(), (true, "host.example", 8443));
        assert_eq!(parsed.target, "/a%20b/c<d?x=%2f");
        assert_eq!(parsed.authority(), "host.example:8443");
        assert_eq!(parsed.to_string(), "https://host.example:8443/a%20b/c<d?x=%2f");
        let realm = parsed.realm();
        assert_eq!(realm.user.as_deref(), Some("user"));
        assert_eq!(realm.password.unwrap().as_str(), "p@ss");
        assert_eq!(realm.host, "host.example:8443");
        assert_eq!(location("http://[::1]:80/x").authority(), "[::1]");
        assert_eq!(location("http://host").join("/info/refs").target, "/info/refs");
    }

    #[test]
    fn redirections_are_followed() {
        let from = location("https://host/old/repo.git/info/refs?service=x");
        let tail = "/info/refs?service=x";
        for (to, expected) in [
            (
                "https://other/new.git/info/refs?service=x",
                "https://other/new.git",
            ),
            ("//other/new.git/info/refs?service=x", "https://other/new.git"),
            ("/new.git/info/refs?service=x", "https://host/new.git"),
            ("refs?service=x", "https://host/old/repo.git"),
        ] {
            let to = from.follow(to, "there").unwrap();
            assert_eq!(to.base(tail).unwrap().to_string(), expected);
        }
        assert!(from.follow("/login", "there").unwrap().base(tail).is_none());
        assert!(from.follow("ftp://host/x", "there").is_err());
        assert!(from.follow("/a b", "there").is_err());
    }
}
