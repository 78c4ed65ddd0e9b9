//! Where a store is, as the user writes it.

use std::fmt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

/// A store's location. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageUrl {
    /// A folder of this machine, or one mounted on it.
    Directory(PathBuf),
    /// A Git repository on this machine, as a path or `file://`.
    LocalCarrier(PathBuf),
    /// A Git repository somewhere else.
    RemoteCarrier(GitUrl),
}

/// The URL of a Git repository as the user wrote it, which may have a password in it. Only [`GitUrl::secret_text`] shows
/// that.
#[derive(Clone, PartialEq, Eq)]
pub struct GitUrl(BString);

/// Why text is no store's location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Nothing is left after the prefix.
    #[error("the storage URL is empty; write e2ee::/path/to/store")]
    Empty,
    /// `scheme://…`
    #[error(
        "unknown kind of storage: {0}; use a directory, e2ee::/path/to/store, or a Git repository, \
         e2ee::git+https://host/repository.git"
    )]
    Scheme(BString),
    /// The path of a directory or local repository.
    #[error("storage URL {url}: {source}")]
    Path {
        /// The whole text.
        url: BString,
        /// What is wrong with it.
        source: PathError,
    },
}

/// Why text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No text.
    #[error("the path is empty")]
    Empty,
    /// `~` or `~name` of someone whose home is not known.
    #[error("no home folder is known for {0}; write the whole path")]
    Home(BString),
    /// `file://` and something that is no path from the root.
    #[error("the path is not absolute; write file:///path")]
    NotAbsolute,
    /// Bytes that paths cannot hold on this system.
    #[error("the path cannot be expressed on this system")]
    Unrepresentable,
}

impl StorageUrl {
    /// Reads `[e2ee::]<location>`. A relative path starts at `base`: the top of the work tree for what Git or its
    /// configuration says, the current folder for what a user types.
    pub fn parse(text: &BStr, base: &Path) -> Result<StorageUrl, UrlError> {
        let location = text.strip_prefix(b"e2ee::").unwrap_or(text).as_bstr();
        if location.is_empty() {
            return Err(UrlError::Empty);
        }
        if let Some(git) = location.strip_prefix(b"git+") {
            return StorageUrl::carrier(git.as_bstr(), base);
        }
        if scheme(location).is_some() {
            return Err(UrlError::Scheme(without_password(location)));
        }
        let path = expand(location, base).map_err(|source| UrlError::Path {
            url: text.to_owned(),
            source,
        })?;
        Ok(StorageUrl::Directory(path))
    }

    /// Reads the location of a Git repository, anything that Git can push to. Relative paths as in [`StorageUrl::parse`].
    pub fn carrier(location: &BStr, base: &Path) -> Result<StorageUrl, UrlError> {
        if location.is_empty() {
            return Err(UrlError::Empty);
        }
        let wrong = |source| UrlError::Path {
            url: without_password(location),
            source,
        };
        if let Some(path) = location.strip_prefix(b"file://") {
            let path = percent_decoded(path);
            let path = gix::path::from_bstr(path.as_bstr()).map_err(|_| wrong(PathError::Unrepresentable))?;
            if !path.is_absolute() {
                return Err(wrong(PathError::NotAbsolute));
            }
            return Ok(StorageUrl::LocalCarrier(path.into_owned()));
        }
        if scheme(location).is_some() || is_host_and_path(location) {
            return Ok(StorageUrl::RemoteCarrier(GitUrl(location.to_owned())));
        }
        Ok(StorageUrl::LocalCarrier(expand(location, base).map_err(wrong)?))
    }

    /// The location as configuration holds it, with what is secret in it.
    pub fn secret_text(&self) -> Result<BString, PathError> {
        let (prefix, text) = match self {
            StorageUrl::Directory(path) => ("e2ee::", path_text(path)?),
            StorageUrl::LocalCarrier(path) => ("e2ee::git+", path_text(path)?),
            StorageUrl::RemoteCarrier(url) => ("e2ee::git+", url.secret_text().to_owned()),
        };
        Ok(bstr::concat([prefix.as_bytes(), text.as_bytes()]).into())
    }

    /// What a clone is called by default: the last part of the location, a repository's without `.git`.
    pub fn name(&self) -> Option<String> {
        let last = match self {
            StorageUrl::Directory(path) => return Some(path.file_name()?.to_string_lossy().into_owned()),
            StorageUrl::LocalCarrier(path) => match path.file_name()?.to_string_lossy().into_owned() {
                inner if inner == ".git" => path.parent()?.file_name()?.to_string_lossy().into_owned(),
                name => name,
            },
            StorageUrl::RemoteCarrier(url) => {
                let text = url.0.trim_end_with(|character| character == '/');
                let path = match text.split_once_str(b"://") {
                    Some((_, rest)) => rest.split_once_str(b"/")?.1,
                    None => text.split_once_str(b":")?.1,
                };
                let last = path.rsplit_str(b"/").next()?;
                last.to_str_lossy().into_owned()
            }
        };
        let name = last.strip_suffix(".git").map_or(last.clone(), str::to_owned);
        (!name.is_empty() && name != "." && name != "..").then_some(name)
    }
}

impl GitUrl {
    /// The text with a password that may be in it.
    pub fn secret_text(&self) -> &BStr {
        self.0.as_bstr()
    }
}

impl fmt::Display for GitUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        without_password(self.0.as_bstr()).fmt(out)
    }
}

impl fmt::Debug for GitUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "GitUrl({self})")
    }
}

impl fmt::Display for StorageUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageUrl::Directory(path) => write!(out, "e2ee::{}", path.display()),
            StorageUrl::LocalCarrier(path) => write!(out, "e2ee::git+{}", path.display()),
            StorageUrl::RemoteCarrier(url) => write!(out, "e2ee::git+{url}"),
        }
    }
}

fn path_text(path: &Path) -> Result<BString, PathError> {
    gix::path::into_bstr(path)
        .map(|text| text.into_owned())
        .map_err(|_| PathError::Unrepresentable)
}

/// `[user@]host:path`, which Git takes for a host unless a slash comes before the colon.
fn is_host_and_path(location: &BStr) -> bool {
    let Some(colon) = location.find_byte(b':') else {
        return false;
    };
    let drive = cfg!(windows) && colon == 1 && location[0].is_ascii_alphabetic();
    !drive && location.find_byte(b'/').is_none_or(|slash| colon < slash)
}

fn percent_decoded(text: &[u8]) -> BString {
    let digit = |at: usize| {
        text.get(at)
            .and_then(|byte| (*byte as char).to_digit(16))
            .map(|digit| digit as u8)
    };
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out.into()
}

/// The scheme of `scheme://…`. A folder whose name looks like that is reached as `./scheme://…`.
fn scheme(location: &BStr) -> Option<&[u8]> {
    let (scheme, _) = location.split_once_str(b"://")?;
    let (first, rest) = scheme.split_first()?;
    let valid = first.is_ascii_alphabetic()
        && rest
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    valid.then_some(scheme)
}

/// The text with the password of `scheme://user:password@host` taken out, fit for messages.
fn without_password(location: &BStr) -> BString {
    let Some((scheme, rest)) = location.split_once_str(b"://") else {
        return location.to_owned();
    };
    let authority = &rest[..rest.find_byte(b'/').unwrap_or(rest.len())];
    let Some(at) = authority.rfind_byte(b'@') else {
        return location.to_owned();
    };
    let user = authority[..at]
        .split_once_str(b":")
        .map_or(&authority[..at], |(user, _)| user);
    bstr::concat([scheme, b"://", user, &rest[at..]]).into()
}

/// A path as Git expands those of its configuration: `~` and `~user` stand for home folders, and what is relative
/// starts at `base`.
pub fn expand(text: &BStr, base: &Path) -> Result<PathBuf, PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }
    let home = gix::path::env::home_dir();
    let context = gix::config::path::interpolate::Context {
        home_dir: home.as_deref(),
        ..Default::default()
    };
    let path = gix::config::Path::from(text).interpolate(context).map_err(|_| {
        if text.starts_with(b"~") {
            PathError::Home(
                text.split_once_str(b"/")
                    .map_or(text.as_bytes(), |(user, _)| user)
                    .into(),
            )
        } else {
            PathError::Unrepresentable
        }
    })?;
    Ok(base.join(path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn directory(text: &str) -> PathBuf {
        match StorageUrl::parse(text.into(), Path::new("/base")).unwrap() {
            StorageUrl::Directory(path) => path,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_with_and_without_prefix() {
        for (text, path) in [
            ("e2ee::/srv/store", "/srv/store"),
            ("/srv/store", "/srv/store"),
            ("store", "/base/store"),
            ("e2ee::../näh/mit leer", "/base/../näh/mit leer"),
            ("e2ee::/a%20b?c#d", "/a%20b?c#d"),
            ("host:path", "/base/host:path"),
            ("./s3://x", "/base/./s3://x"),
            ("e2ee::e2ee::x", "/base/e2ee::x"),
        ] {
            assert_eq!(directory(text), Path::new(path), "{text}");
        }
    }

    #[test]
    fn display_reads_back() {
        let url = StorageUrl::parse("store".into(), Path::new("/base")).unwrap();
        assert_eq!(url.to_string(), "e2ee::/base/store");
        assert_eq!(
            StorageUrl::parse(url.to_string().as_str().into(), Path::new("/x")),
            Ok(url)
        );
    }

    #[test]
    fn homes() {
        let home = gix::path::env::home_dir().unwrap();
        assert_eq!(directory("e2ee::~/store"), home.join("store"));
        assert_eq!(directory("~"), home);
        let error = StorageUrl::parse("~nobody-of-that-name/x".into(), Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("~nobody-of-that-name;"), "{error}");
    }

    #[test]
    fn what_is_no_directory() {
        let parse = |text: &str| StorageUrl::parse(text.into(), Path::new("/")).unwrap_err();
        assert_eq!(parse(""), UrlError::Empty);
        assert_eq!(parse("e2ee::"), UrlError::Empty);
        assert_eq!(parse("e2ee::git+"), UrlError::Empty);
        assert!(matches!(parse("s3://bucket/x"), UrlError::Scheme(_)));
        assert!(
            parse("git+file://relative/x")
                .to_string()
                .contains("not absolute")
        );
        let text = parse("e2ee::https://alice:secret@example.org/repo").to_string();
        assert!(
            text.contains("https://alice@example.org/repo") && !text.contains("secret"),
            "{text}"
        );
    }

    fn carrier(text: &str) -> StorageUrl {
        StorageUrl::parse(text.into(), Path::new("/base")).unwrap()
    }

    #[test]
    fn carriers_on_this_machine() {
        for (text, path) in [
            ("e2ee::git+/srv/carrier.git", "/srv/carrier.git"),
            ("git+carrier", "/base/carrier"),
            ("e2ee::git+../x", "/base/../x"),
            ("e2ee::git+./host:x", "/base/./host:x"),
            ("e2ee::git+file:///srv/a%20b.git", "/srv/a b.git"),
            ("e2ee::git+file:///srv/100%.git", "/srv/100%.git"),
        ] {
            assert_eq!(carrier(text), StorageUrl::LocalCarrier(path.into()), "{text}");
        }
    }

    #[test]
    fn carriers_elsewhere() {
        for (text, name) in [
            ("https://example.org/user/repo.git", "repo"),
            ("https://example.org/repo", "repo"),
            ("ssh://alice@example.org:2222/srv/repo.git/", "repo"),
            ("git://example.org/repo.git", "repo"),
            ("example.org:repo.git", "repo"),
            ("alice@example.org:path/to/repo", "repo"),
            ("[::1]:repo", ":1]:repo"),
        ] {
            let url = carrier(&format!("e2ee::git+{text}"));
            assert_eq!(url.to_string(), format!("e2ee::git+{text}"));
            assert_eq!(url.secret_text().unwrap(), format!("e2ee::git+{text}"));
            match &url {
                StorageUrl::RemoteCarrier(git) => assert_eq!(git.secret_text(), text),
                other => panic!("{other:?}"),
            }
            if !text.starts_with('[') {
                assert_eq!(url.name().as_deref(), Some(name), "{text}");
            }
        }
        assert_eq!(carrier("git+https://example.org").name(), None);
        assert_eq!(carrier("git+/srv/work/.git").name().as_deref(), Some("work"));
    }

    #[test]
    fn passwords_are_not_shown() {
        let url = carrier("e2ee::git+https://alice:secret@example.org/repo");
        for text in [url.to_string(), format!("{url:?}")] {
            assert!(text.contains("alice@example.org/repo"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
        assert!(url.secret_text().unwrap().contains_str("alice:secret@"));
    }
}
