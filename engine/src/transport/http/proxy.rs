//! Proxies: `http.proxy`, and the variables that curl knows.

use std::fmt;

use bstr::ByteSlice as _;
use zeroize::Zeroizing;

use super::location::Location;
use crate::transport::Error;
use crate::transport::address::without_password;
use crate::transport::credential::Realm;
use crate::transport::options::{Environment, setting};
use crate::transport::per_url::{PerUrl, Place};

/// The port of a proxy that does not say one, as in curl.
const PORT: u16 = 1080;

/// A proxy that speaks http.
#[derive(Clone)]
pub(super) struct Proxy {
    pub host: String,
    pub port: u16,
    user: Option<String>,
    password: Option<Zeroizing<String>>,
    place: Place,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Proxy {
    fn parse(name: &str, text: &str) -> Result<Proxy, Error> {
        let shown = without_password(text.as_bytes());
        let bad = |message: String| setting(name, message);
        let whole = match text.split_once("://") {
            None => format!("http://{text}"),
            Some(("http", _)) => text.to_owned(),
            Some((scheme, _)) => {
                return Err(bad(format!(
                    "proxies of the kind '{scheme}' are not supported; use an http:// one"
                )));
            }
        };
        let url = gix::url::parse(whole.as_bytes().as_bstr())
            .ok()
            .filter(|url| url.host.as_ref().is_some_and(|host| !host.is_empty()))
            .ok_or_else(|| bad(format!("'{shown}' is no address of a proxy")))?;
        let host = url.host.as_deref().unwrap_or_default();
        Ok(Proxy {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port.unwrap_or(PORT),
            user: url.user.clone().filter(|user| !user.is_empty()),
            password: url.password.clone().map(Zeroizing::new),
            place: Place::of(&url),
        })
    }

    /// The account at the proxy.
    pub(super) fn realm(&self) -> Realm {
        Realm {
            place: self.place.clone(),
            host: self.to_string(),
            user: self.user.clone(),
            password: self.password.clone(),
        }
    }
}

/// The proxy for a place. An empty `http.proxy` means none, whatever the variables say.
pub(super) fn choose(
    environment: &Environment,
    http: &PerUrl<'_>,
    to: &Location,
) -> Result<Option<Proxy>, Error> {
    if let Some(text) = http.string("proxy") {
        return match text.to_str() {
            Ok("") => Ok(None),
            Ok(text) if spared(environment, &to.host) => {
                Proxy::parse("http.proxy", text)?;
                Ok(None)
            }
            Ok(text) => Proxy::parse("http.proxy", text).map(Some),
            Err(_) => Err(setting("http.proxy", "it is not UTF-8")),
        };
    }
    if spared(environment, &to.host) {
        return Ok(None);
    }
    // HTTP_PROXY is what a web server makes of a header of its client, so it is not believed.
    let names: &[&str] = match to.tls {
        true => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        false => &["http_proxy", "all_proxy", "ALL_PROXY"],
    };
    for name in names {
        if let Some(text) = environment.variable(name) {
            let text = text.to_str().ok_or_else(|| setting(name, "it is not UTF-8"))?;
            return Proxy::parse(name, text).map(Some);
        }
    }
    Ok(None)
}

/// Whether `no_proxy` names the host.
fn spared(environment: &Environment, host: &str) -> bool {
    ["no_proxy", "NO_PROXY"]
        .iter()
        .find_map(|name| environment.text(name))
        .is_some_and(|list| named(list, host))
}

fn named(list: &str, host: &str) -> bool {
    list.split([',', ' ']).any(|name| {
        let name = name.trim().trim_start_matches('.').trim_end_matches('.');
        let name = name.trim_start_matches('[').trim_end_matches(']');
        if name == "*" {
            return true;
        }
        if name.is_empty() || host.len() < name.len() {
            return false;
        }
        let (front, back) = host.as_bytes().split_at(host.len() - name.len());
        back.eq_ignore_ascii_case(name.as_bytes()) && (front.is_empty() || front.ends_with(b"."))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_spared_as_curl_spares_them() {
        for (list, spared) in [
            ("*", true),
            ("example.com", true),
            (".example.com", true),
            ("other, EXAMPLE.com", true),
            ("git.example.com", true),
            ("mple.com", false),
            ("x.git.example.com", false),
            ("", false),
        ] {
            assert_eq!(named(list, "git.example.com"), spared, "{list}");
        }
    }

    #[test]
    fn proxies_are_read() {
        let proxy = Proxy::parse("http.proxy", "http://user:pass@proxy.example:3128/").unwrap();
        assert_eq!(proxy.to_string(), "proxy.example:3128");
        assert_eq!(proxy.realm().user.as_deref(), Some("user"));
        assert_eq!(Proxy::parse("x", "proxy.example").unwrap().port, 1080);
        for bad in ["socks5://h:1", "https://h:1", "http://", "http://u:secret@"] {
            let error = Proxy::parse("http.proxy", bad).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
