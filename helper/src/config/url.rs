//! Where a store is, as the user writes it.

use std::fmt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

/// A store's location. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageUrl {
    /// A folder of this machine, or one mounted on it.
    Directory(PathBuf),
}

/// Why text is no store's location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Nothing is left after the prefix.
    #[error("the storage URL is empty; write e2ee::/path/to/store")]
    Empty,
    /// A Git remote that would carry the ciphertext.
    #[error("carrier storage is not available in this build: {0}; use a directory, e2ee::/path/to/store")]
    Carrier(BString),
    /// `scheme://…`
    #[error("unknown kind of storage: {0}; use a directory, e2ee::/path/to/store")]
    Scheme(BString),
    /// The directory's path.
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
        if location.starts_with(b"git+") {
            return Err(UrlError::Carrier(without_password(location)));
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

    /// The folder.
    pub fn directory(&self) -> &Path {
        match self {
            StorageUrl::Directory(path) => path,
        }
    }
}

impl fmt::Display for StorageUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "e2ee::{}", self.directory().display())
    }
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
        StorageUrl::parse(text.into(), Path::new("/base"))
            .unwrap()
            .directory()
            .to_owned()
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
        assert!(matches!(parse("e2ee::git+ssh://host/repo"), UrlError::Carrier(_)));
        assert!(matches!(parse("s3://bucket/x"), UrlError::Scheme(_)));
        let text = parse("e2ee::git+https://alice:secret@example.org/repo").to_string();
        assert!(
            text.contains("git+https://alice@example.org/repo") && !text.contains("secret"),
            "{text}"
        );
    }
}
