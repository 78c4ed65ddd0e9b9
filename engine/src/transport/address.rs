//! Where a remote is, as people write it (git-fetch(1), "GIT URLS").

use std::fmt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice as _, ByteVec as _};
use gix::url::Scheme as Written;

use super::Error;
use super::error::printable;
use crate::repository::{Config, key};

/// Which way data will go: `url.<base>.pushInsteadOf` matters for one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To here.
    Fetch,
    /// From here.
    Push,
}

/// How a remote is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// A path, or `file://`.
    Local,
    /// `ssh://`, or `host:path`.
    Ssh,
    /// `git://`.
    Git,
    /// `http://`.
    Http,
    /// `https://`.
    Https,
}

impl Scheme {
    /// The name that configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Local => "file",
            Scheme::Ssh => "ssh",
            Scheme::Git => "git",
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// Where a remote is. Neither `Display` nor `Debug` shows a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: gix::Url,
    scheme: Scheme,
}

impl Address {
    /// Reads an address as it is written.
    pub fn parse(text: &BStr) -> Result<Address, Error> {
        let bad = |message: String| Error::Address {
            address: without_password(text),
            message,
        };
        if text.is_empty() {
            return Err(bad("it is empty".to_owned()));
        }
        if text.iter().any(|byte| matches!(byte, 0..=31 | 127)) {
            return Err(bad("it contains control characters".to_owned()));
        }
        // People write spaces, and Git takes them.
        let escaped;
        let text_of_url = match text.find(b"://") {
            Some(at) if text.contains(&b' ') && !text[..at].eq_ignore_ascii_case(b"file") => {
                escaped = text.replace(" ", "%20");
                escaped.as_bstr()
            }
            _ => text,
        };
        let url = gix::url::parse(text_of_url)
            .map_err(|_| bad("it has no host, a bad port, or a broken % escape".to_owned()))?;
        let scheme = match &url.scheme {
            Written::File => Scheme::Local,
            Written::Ssh => Scheme::Ssh,
            Written::Git => Scheme::Git,
            Written::Http => Scheme::Http,
            Written::Https => Scheme::Https,
            other => {
                return Err(bad(format!(
                    "'{other}' is not among https, http, ssh, git and file"
                )));
            }
        };
        if scheme != Scheme::Local && url.host.as_ref().is_none_or(|host| host.is_empty()) {
            return Err(bad("it has no host".to_owned()));
        }
        // Escapes may have hidden them above. In every protocol that these go into, they would begin something new.
        let hidden = [url.host.as_deref(), url.user.as_deref(), url.password.as_deref()]
            .into_iter()
            .flatten()
            .any(|part| part.bytes().any(|byte| matches!(byte, 0..=31 | 127)))
            || url.path.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
        if hidden {
            return Err(bad("it contains escaped control characters".to_owned()));
        }
        Ok(Address { url, scheme })
    }

    /// Reads an address after replacing its beginning as `url.<base>.insteadOf` says and, for pushes, before that
    /// `url.<base>.pushInsteadOf`: the longest beginning wins.
    pub fn resolve(text: &BStr, config: &Config<'_>, direction: Direction) -> Result<Address, Error> {
        let pushed = match direction {
            Direction::Push => rewritten(text, config, "pushInsteadOf"),
            Direction::Fetch => None,
        };
        let text = pushed
            .or_else(|| rewritten(text, config, "insteadOf"))
            .unwrap_or_else(|| text.to_owned());
        Address::parse(text.as_ref())
    }

    /// How it is reached.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The folder that a local address names: as written, so it may be relative. A URL has its escapes resolved.
    pub fn local_path(&self) -> Option<PathBuf> {
        if self.scheme != Scheme::Local {
            return None;
        }
        let path = match self.url.serialize_alternative_form {
            true => self.url.path.clone(),
            false => unescaped(&self.url.path),
        };
        gix::path::from_bstring(path).ok()
    }

    /// The whole address without its password: for messages, and for names of caches and states.
    pub fn redacted(&self) -> BString {
        let mut url = self.url.clone();
        url.set_password(None);
        url.to_bstring()
    }

    /// The host, unless it is a path on this machine.
    pub fn host(&self) -> Option<&str> {
        self.url.host()
    }

    /// gix's view of it, with the password.
    pub(super) fn url(&self) -> &gix::Url {
        &self.url
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.redacted()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// The address with the longest configured beginning replaced.
fn rewritten(text: &BStr, config: &Config<'_>, name: &str) -> Option<BString> {
    let mut best: Option<(usize, BString)> = None;
    for base in config.names("url") {
        for beginning in config.strings(key("url", base.as_bstr(), name)) {
            if text.starts_with(&beginning)
                && best.as_ref().is_none_or(|(length, _)| beginning.len() > *length)
            {
                best = Some((beginning.len(), base.clone()));
            }
        }
    }
    let (length, mut rewritten) = best?;
    rewritten.push_str(&text[length..]);
    Some(rewritten)
}

/// `%20` and the like; what is no escape stays.
fn unescaped(text: &[u8]) -> BString {
    let mut out = BString::default();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|digits| byte == b'%' && digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                out.push(code);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

/// Text that may be a URL, for messages: nothing between `://` and the last `@` before the path.
pub(super) fn without_password(text: &[u8]) -> String {
    let Some(start) = text.find(b"://").map(|at| at + 3) else {
        return printable(text);
    };
    let end = text[start..]
        .find_byteset(b"/?#")
        .map_or(text.len(), |at| start + at);
    match text[start..end].rfind_byte(b'@') {
        Some(at) => {
            let user = text[start..start + at]
                .split_once_str(":")
                .map_or(&text[start..start + at], |(user, _)| user);
            let mut shown = text[..start].to_vec();
            shown.extend_from_slice(user);
            shown.extend_from_slice(&text[start + at..]);
            printable(&shown)
        }
        None => printable(text),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Address {
        Address::parse(text.into()).unwrap()
    }

    #[test]
    fn every_way_to_write_an_address_is_known() {
        for (text, scheme) in [
            ("https://host/user/repo.git", Scheme::Https),
            ("http://host:8080/repo", Scheme::Http),
            ("ssh://git@host:22/repo", Scheme::Ssh),
            ("git+ssh://host/repo", Scheme::Ssh),
            ("git@host:user/repo.git", Scheme::Ssh),
            ("host:repo", Scheme::Ssh),
            ("git://host/repo", Scheme::Git),
            ("file:///srv/repo.git", Scheme::Local),
            ("/srv/repo.git", Scheme::Local),
            ("ssh://host/a b", Scheme::Ssh),
            ("./a:b", Scheme::Local),
            ("repo", Scheme::Local),
        ] {
            assert_eq!(parse(text).scheme(), scheme, "{text}");
        }
        assert_eq!(
            parse("file:///srv/a%20b.git").local_path().unwrap(),
            PathBuf::from("/srv/a b.git")
        );
        assert_eq!(
            parse("/srv/a%20b%").local_path().unwrap(),
            PathBuf::from("/srv/a%20b%")
        );
        assert_eq!(parse("a/b").local_path().unwrap(), PathBuf::from("a/b"));
        assert_eq!(parse("git://host/repo").local_path(), None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "https://",
            "https:///x",
            "ext::sh -c true",
            "foo::bar",
            "ftp://host/x",
            "git://host/a\nb",
            "git://host/a%0ab",
            "https://us%0aer@host/x",
            "ssh://host:99999/x",
        ] {
            assert!(
                matches!(Address::parse(text.into()), Err(Error::Address { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let address = parse("https://alice:s3cret@host/repo.git");
        assert_eq!(address.to_string(), "https://alice@host/repo.git");
        assert!(!format!("{address:?}").contains("s3cret"));
        assert_eq!(
            without_password(b"https://alice:p@ss@host/x@y"),
            "https://alice@host/x@y"
        );
        let error = Address::parse("ftp://alice:s3cret@host/x".into()).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
