//! `http.*` and its variables, for one place (git-config(1), "http.proxy" and following).

use std::path::PathBuf;
use std::time::Duration;

use bstr::ByteSlice as _;

use super::location::Location;
use super::proxy::{self, Proxy};
use crate::transport::Error;
use crate::transport::options::{Environment, Options, per_url, setting};
use crate::transport::per_url::PerUrl;
use crate::transport::socket::LowSpeed;

/// Bodies up to this size are sent whole, with their length in front (`http.postBuffer`).
const POST_BUFFER: u64 = 1 << 20;
/// What is held in memory whatever the configuration says.
const MOST_POST_BUFFER: u64 = 512 << 20;

/// Which version of TLS alone is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsVersion {
    Tls12,
    Tls13,
}

/// What applies to one place.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub verify: bool,
    pub ca_file: Option<PathBuf>,
    pub ca_folder: Option<PathBuf>,
    /// Where the system's are, if it is told.
    pub system_ca_file: Option<PathBuf>,
    /// Certificate and key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    pub tls_version: Option<TlsVersion>,
    pub proxy: Option<Proxy>,
    /// Whole header lines, without line ends.
    pub extra_headers: Vec<String>,
    pub user_agent: String,
    pub follow_redirects: bool,
    pub post_buffer: usize,
    pub low_speed: Option<LowSpeed>,
}

impl Settings {
    pub(super) fn read(options: &Options, at: &Location) -> Result<Settings, Error> {
        let (config, environment) = (options.config(), options.environment());
        let http = per_url(&config, "http", at.place(), false);
        let boolean = |name: &str| {
            http.boolean(name).map_err(|text| {
                setting(
                    &format!("http.{name}"),
                    format!("'{text}' is neither true nor false"),
                )
            })
        };
        let number = |name: &str| {
            let number = http
                .integer(name)
                .map_err(|text| setting(&format!("http.{name}"), format!("'{text}' is no number")))?;
            Ok::<_, Error>(number.and_then(|number| u64::try_from(number).ok()))
        };
        let path = |variable_name: &str, name: &str| -> Result<Option<PathBuf>, Error> {
            if let Some(path) = environment.variable(variable_name) {
                return Ok(Some(options.resolve(path.into())));
            }
            let Some(text) = http.string(name).filter(|text| !text.is_empty()) else {
                return Ok(None);
            };
            expand(&text)
                .map(|path| Some(options.resolve(path)))
                .ok_or_else(|| setting(&format!("http.{name}"), format!("'{text}' is no path")))
        };
        // Going on without what makes a connection safer would be no favour.
        if http.string("pinnedPubkey").is_some() {
            return Err(setting(
                "http.pinnedPubkey",
                "pinned keys are not supported; use http.sslCAInfo, or ssh",
            ));
        }
        let certificate = path("GIT_SSL_CERT", "sslCert")?;
        let key = path("GIT_SSL_KEY", "sslKey")?;
        let user_agent = environment
            .text("GIT_HTTP_USER_AGENT")
            .map(str::to_owned)
            .or_else(|| http.string("userAgent").map(|text| text.to_string()))
            .unwrap_or_else(|| format!("git/2.0 ({})", options.agent()));
        let header_lines = http.narrowing_list("extraHeader");
        let mut extra_headers = Vec::new();
        for line in header_lines {
            let valid = line.contains(&b':') && line.iter().all(|byte| matches!(byte, b'\t' | 0x20..=0x7e));
            let text = line.to_str().ok().filter(|_| valid);
            extra_headers.push(
                text.ok_or_else(|| setting("http.extraHeader", "it is no header line"))?
                    .to_owned(),
            );
        }
        let follow_redirects = match http.string("followRedirects") {
            Some(text) if text == "initial" => true,
            Some(_) => boolean("followRedirects")?.unwrap_or(true),
            None => true,
        };
        Ok(Settings {
            verify: match environment.flag("GIT_SSL_NO_VERIFY") {
                Some(unverified) => !unverified,
                None => boolean("sslVerify")?.unwrap_or(true),
            },
            ca_file: path("GIT_SSL_CAINFO", "sslCAInfo")?,
            system_ca_file: environment.variable("SSL_CERT_FILE").map(PathBuf::from),
            ca_folder: path("GIT_SSL_CAPATH", "sslCAPath")?,
            client_certificate: certificate.map(|path| (path.clone(), key.unwrap_or(path))),
            tls_version: tls_version(environment, &http)?,
            proxy: proxy::choose(environment, &http, at)?,
            extra_headers,
            user_agent: user_agent.chars().filter(|c| matches!(c, ' '..='~')).collect(),
            follow_redirects,
            post_buffer: usize::try_from(
                number("postBuffer")?
                    .unwrap_or(POST_BUFFER)
                    .clamp(64 << 10, MOST_POST_BUFFER),
            )
            .unwrap_or(usize::MAX),
            low_speed: low_speed(environment, number("lowSpeedLimit")?, number("lowSpeedTime")?),
        })
    }
}

/// Both have to be set, by variable or configuration.
fn low_speed(environment: &Environment, limit: Option<u64>, time: Option<u64>) -> Option<LowSpeed> {
    let of = |name: &str, configured: Option<u64>| {
        environment
            .text(name)
            .and_then(|text| text.parse().ok())
            .or(configured)
            .filter(|number| *number > 0)
    };
    Some(LowSpeed {
        limit: of("GIT_HTTP_LOW_SPEED_LIMIT", limit)?,
        time: Duration::from_secs(of("GIT_HTTP_LOW_SPEED_TIME", time)?),
    })
}

fn tls_version(environment: &Environment, http: &PerUrl<'_>) -> Result<Option<TlsVersion>, Error> {
    let text = match environment.text("GIT_SSL_VERSION") {
        Some(text) => text.to_owned(),
        None => http.string("sslVersion").unwrap_or_default().to_string(),
    };
    match text.as_str() {
        // Older ones are not spoken, whatever is asked for.
        "" | "default" | "tlsv1" | "tlsv1.0" | "tlsv1.1" => Ok(None),
        "tlsv1.2" => Ok(Some(TlsVersion::Tls12)),
        "tlsv1.3" => Ok(Some(TlsVersion::Tls13)),
        _ => Err(setting("http.sslVersion", format!("'{text}' is not supported"))),
    }
}

/// A path of the configuration, `~` resolved.
fn expand(text: &[u8]) -> Option<PathBuf> {
    let rest = match text.strip_prefix(b"~/") {
        Some(rest) => Some(gix::path::env::home_dir()?.join(gix::path::from_byte_slice(rest).ok()?)),
        None => None,
    };
    match rest {
        Some(path) => Some(path),
        None => gix::path::from_byte_slice(text).ok().map(PathBuf::from),
    }
}
