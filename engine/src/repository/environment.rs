//! What Git's environment variables say.

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice as _};

use super::Error;

/// The path in a variable; unset and empty are the same.
pub(super) fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Whether a variable holds one of Git's words for true.
pub(super) fn flag(name: &str) -> bool {
    std::env::var(name)
        .is_ok_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on"))
}

/// The path from the root, links left as they are.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    if path == Path::new(".") || path.as_os_str().is_empty() {
        return std::env::current_dir().map_err(|source| Error::CurrentFolder { source });
    }
    std::path::absolute(path).map_err(|source| Error::CurrentFolder { source })
}

/// The object folders in `GIT_ALTERNATE_OBJECT_DIRECTORIES`. One that needs it is quoted as in C.
pub(super) fn alternates() -> Result<Vec<PathBuf>, Error> {
    const NAME: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";
    let Some(value) = std::env::var_os(NAME) else {
        return Ok(Vec::new());
    };
    if !value.as_encoded_bytes().contains(&b'"') {
        return std::env::split_paths(&value)
            .filter(|path| !path.as_os_str().is_empty())
            .map(|path| absolute(&path))
            .collect();
    }
    let bad = |message: &str| Error::Environment {
        name: NAME,
        message: message.to_owned(),
    };
    let text = gix::path::os_string_into_bstring(value).map_err(|_| bad("it is not UTF-8"))?;
    let mut paths = Vec::new();
    let mut rest = text.as_bstr();
    while !rest.is_empty() {
        let (path, length) = if rest.starts_with(b"\"") {
            let (path, length) = gix::quote::ansi_c::undo(rest).map_err(|_| bad("badly quoted"))?;
            (path.into_owned(), length)
        } else {
            let length = rest.find_byte(b':').unwrap_or(rest.len());
            (BString::from(&rest[..length]), length)
        };
        if !path.is_empty() {
            let path = gix::path::from_bstring(path).map_err(|_| bad("it is not UTF-8"))?;
            paths.push(absolute(&path)?);
        }
        rest = rest[length..].as_bstr();
        rest = rest.strip_prefix(b":").unwrap_or(rest).as_bstr();
    }
    Ok(paths)
}

/// Configuration from Git's command line (`-c`), which reaches helpers in `GIT_CONFIG_PARAMETERS`.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// `key=value` or `key`, for gix to apply while it opens the repository.
    pub plain: Vec<BString>,
    /// What that form cannot carry: keys with `=` in them, values that begin or end in white space.
    pub exact: gix::config::File,
}

const PARAMETERS: &str = "GIT_CONFIG_PARAMETERS";

/// Reads `GIT_CONFIG_PARAMETERS`.
pub(super) fn parameters() -> Result<Parameters, Error> {
    let Some(text) = std::env::var_os(PARAMETERS) else {
        return Ok(Parameters::default());
    };
    let text = gix::path::os_string_into_bstring(text).map_err(|_| bogus("it is not UTF-8".to_owned()))?;
    parse(&text)
}

fn bogus(message: String) -> Error {
    Error::Environment {
        name: PARAMETERS,
        message,
    }
}

fn parse(text: &[u8]) -> Result<Parameters, Error> {
    let mut parameters = Parameters {
        exact: gix::config::File::new(gix::config::file::Metadata::from(gix::config::Source::Cli)),
        plain: Vec::new(),
    };
    for (key, value) in pairs(text)? {
        let fits = |text: &[u8]| text.trim().len() == text.len();
        if !key.contains(&b'=') && fits(&key) && value.as_ref().is_none_or(|value| fits(value)) {
            let mut line = key;
            if let Some(value) = value {
                line.push(b'=');
                line.extend_from_slice(&value);
            }
            parameters.plain.push(line);
        } else {
            let parsed = gix::config::KeyRef::parse_unvalidated(key.as_bstr())
                .ok_or_else(|| bogus(format!("'{key}' is not a configuration key")))?;
            parameters
                .exact
                .section_mut_or_create_new(parsed.section_name, parsed.subsection_name)
                .and_then(|mut section| {
                    section.push(parsed.value_name, value.as_ref().map(|value| value.as_bstr()))?;
                    Ok(())
                })
                .map_err(|error| bogus(super::explain(&error)))?;
        }
    }
    Ok(parameters)
}

/// Git writes `'key'='value'`, `'key'` alone for a bare flag, and used to write `'key=value'`.
fn pairs(text: &[u8]) -> Result<Vec<(BString, Option<BString>)>, Error> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = unquote(rest)?;
        let (pair, after) = match after.first() {
            Some(b'=') if after.len() == 1 || after[1].is_ascii_whitespace() => ((key, None), &after[1..]),
            Some(b'=') => {
                let (value, after) = unquote(&after[1..])?;
                ((key, Some(value)), after)
            }
            _ => match key.split_once_str("=") {
                Some((key, value)) => ((key.into(), Some(value.into())), after),
                None => ((key, None), after),
            },
        };
        if !after.is_empty() && !after[0].is_ascii_whitespace() {
            return Err(bogus("badly quoted".to_owned()));
        }
        pairs.push(pair);
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// One word in shell quotes: `'it'\''s'`, with `\!` outside of the quotes too.
fn unquote(text: &[u8]) -> Result<(BString, &[u8]), Error> {
    let bad = || bogus("badly quoted".to_owned());
    let mut word = BString::default();
    let mut rest = text.strip_prefix(b"'").ok_or_else(bad)?;
    loop {
        let end = rest.find_byte(b'\'').ok_or_else(bad)?;
        word.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest {
            [b'\\', escaped @ (b'\'' | b'!'), b'\'', after @ ..] => {
                word.push(*escaped);
                rest = after;
            }
            _ => return Ok((word, rest)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_form_that_git_writes_is_read() {
        let pairs = pairs(
            br"'core.bare'='false' 'a.b=c.d'='e=f' 'old.style=it'\''s' 'flag' 'no.value'= 'x.y'='wow'\!'' 'z.z'=''",
        )
        .unwrap();
        let expect = |key: &str, value: Option<&str>| (BString::from(key), value.map(BString::from));
        assert_eq!(
            pairs,
            [
                expect("core.bare", Some("false")),
                expect("a.b=c.d", Some("e=f")),
                expect("old.style", Some("it's")),
                expect("flag", None),
                expect("no.value", None),
                expect("x.y", Some("wow!")),
                expect("z.z", Some("")),
            ]
        );
    }

    #[test]
    fn bad_quoting_is_an_error() {
        for text in ["x", "'x", "'x'y", r"'x'\", "'a'='b"] {
            assert!(pairs(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn odd_keys_and_values_are_kept_exactly() {
        let parameters = parse(b"'a.b=c.d'='e' 'f.g'=' h ' 'i.j'='k'").unwrap();
        assert_eq!(parameters.plain, ["i.j=k"]);
        assert_eq!(parameters.exact.string("a.b=c.d").unwrap(), "e");
        assert_eq!(parameters.exact.string("f.g").unwrap(), " h ");
    }
}
