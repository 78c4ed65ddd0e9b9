//! One command line of Git, taken apart. Pure: touches nothing but the bytes it is given.

use bstr::{BStr, BString, ByteSlice};
use gix_hash::ObjectId;

/// What Git asks for with one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// An empty line: the end of a batch, or of the conversation.
    Blank,
    /// `capabilities`
    Capabilities,
    /// `list` or `list for-push`
    List {
        /// The listing prepares a push.
        for_push: bool,
    },
    /// `option <name> <value>`
    Option {
        /// The option's name.
        name: &'a BStr,
        /// Its value, still quoted where Git quoted it; empty when the line has none.
        value: &'a BStr,
    },
    /// `fetch <id> <name>`
    Fetch {
        /// The object to bring.
        id: ObjectId,
        /// The name under which it was listed; informative only.
        name: &'a BStr,
    },
    /// `push [+]<source>:<destination>`
    Push {
        /// The user gives up what is there.
        force: bool,
        /// A revision, or nothing to delete the destination.
        source: Option<&'a BStr>,
        /// The full name of the reference to change.
        destination: &'a BStr,
    },
}

/// A line that is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The first word is unknown.
    #[error("unsupported remote-helper command: {0}")]
    Unsupported(BString),
    /// The first word is known, the rest does not follow its syntax.
    #[error("malformed remote-helper command: {0}")]
    Malformed(BString),
}

/// Longest part of a refused line that is shown, in bytes.
const SHOWN: usize = 200;

fn shown(line: &[u8]) -> BString {
    let mut text = super::quote::if_needed(line[..line.len().min(SHOWN)].as_bstr());
    if line.len() > SHOWN {
        text.extend(b"...");
    }
    text
}

/// Takes one line, without its line feed, apart.
pub fn command(line: &[u8]) -> Result<Command<'_>, Error> {
    let malformed = || Error::Malformed(shown(line));
    let (word, rest) = match line.split_once_str(b" ") {
        Some((word, rest)) => (word, Some(rest)),
        None => (line, None),
    };
    match (word, rest) {
        (b"", None) => Ok(Command::Blank),
        (b"capabilities", None) => Ok(Command::Capabilities),
        (b"list", None) => Ok(Command::List { for_push: false }),
        (b"list", Some(b"for-push")) => Ok(Command::List { for_push: true }),
        (b"option", Some(rest)) => {
            let (name, value) = rest.split_once_str(b" ").unwrap_or((rest, b""));
            if name.is_empty() {
                return Err(malformed());
            }
            Ok(Command::Option {
                name: name.as_bstr(),
                value: value.as_bstr(),
            })
        }
        (b"fetch", Some(rest)) => {
            let (id, name) = rest.split_once_str(b" ").unwrap_or((rest, b""));
            let id = ObjectId::from_hex(id).map_err(|_| malformed())?;
            if id.is_null() {
                return Err(malformed());
            }
            Ok(Command::Fetch {
                id,
                name: name.as_bstr(),
            })
        }
        (b"push", Some(rest)) => {
            let (force, rest) = match rest.strip_prefix(b"+") {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            // A source may be `HEAD:path`; a reference name never has a colon.
            let (source, destination) = rest.rsplit_once_str(b":").ok_or_else(malformed)?;
            if destination.is_empty() {
                return Err(malformed());
            }
            let source = (!source.is_empty()).then_some(source.as_bstr());
            Ok(Command::Push {
                force,
                source,
                destination: destination.as_bstr(),
            })
        }
        (b"list" | b"option" | b"fetch" | b"push", _) => Err(malformed()),
        _ => Err(Error::Unsupported(shown(line))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ID: &str = "1234567890abcdef1234567890abcdef12345678";

    fn push<'a>(force: bool, source: Option<&'a str>, destination: &'a str) -> Command<'a> {
        Command::Push {
            force,
            source: source.map(Into::into),
            destination: destination.into(),
        }
    }

    #[test]
    fn every_form_that_git_sends() {
        let id = ObjectId::from_hex(ID.as_bytes()).unwrap();
        let fetch = format!("fetch {ID} refs/heads/a b");
        let bare_fetch = format!("fetch {ID}");
        let raw = format!("push {ID}:refs/heads/x");
        let cases: Vec<(&str, Command<'_>)> = vec![
            ("", Command::Blank),
            ("capabilities", Command::Capabilities),
            ("list", Command::List { for_push: false }),
            ("list for-push", Command::List { for_push: true }),
            (
                "option progress true",
                Command::Option {
                    name: "progress".into(),
                    value: "true".into(),
                },
            ),
            (
                "option cas a:b c",
                Command::Option {
                    name: "cas".into(),
                    value: "a:b c".into(),
                },
            ),
            (
                "option check-connectivity",
                Command::Option {
                    name: "check-connectivity".into(),
                    value: "".into(),
                },
            ),
            (
                &fetch,
                Command::Fetch {
                    id,
                    name: "refs/heads/a b".into(),
                },
            ),
            (&bare_fetch, Command::Fetch { id, name: "".into() }),
            (
                "push refs/heads/a:refs/heads/b",
                push(false, Some("refs/heads/a"), "refs/heads/b"),
            ),
            (
                "push +main~0:refs/heads/b",
                push(true, Some("main~0"), "refs/heads/b"),
            ),
            (
                "push HEAD:dir/file:refs/tags/b",
                push(false, Some("HEAD:dir/file"), "refs/tags/b"),
            ),
            ("push :refs/heads/gone", push(false, None, "refs/heads/gone")),
            ("push +:refs/heads/gone", push(true, None, "refs/heads/gone")),
            (&raw, push(false, Some(ID), "refs/heads/x")),
        ];
        for (line, expected) in cases {
            assert_eq!(command(line.as_bytes()).as_ref(), Ok(&expected), "{line}");
        }
    }

    #[test]
    fn names_need_not_be_utf8() {
        let line = b"push refs/heads/\xff:refs/heads/\xfe";
        let Ok(Command::Push {
            source, destination, ..
        }) = command(line)
        else {
            panic!()
        };
        assert_eq!(source.unwrap(), b"refs/heads/\xff".as_bstr());
        assert_eq!(destination, b"refs/heads/\xfe".as_bstr());
    }

    #[test]
    fn sha256_ids() {
        let line = format!("fetch {} refs/heads/main", "ab".repeat(32));
        assert!(
            matches!(command(line.as_bytes()), Ok(Command::Fetch { id, .. }) if id.kind() == gix_hash::Kind::Sha256)
        );
    }

    #[test]
    fn malformed_and_unknown_lines() {
        let zero = format!("fetch {} refs/heads/x", "0".repeat(40));
        for line in [
            "list everything",
            "option",
            "option ",
            "fetch",
            "fetch xyz a",
            &zero,
            "push",
            "push abc",
            "push abc:",
        ] {
            assert!(
                matches!(command(line.as_bytes()), Err(Error::Malformed(_))),
                "{line}"
            );
        }
        for line in [
            "import refs/heads/a",
            "export",
            " ",
            "connect git-upload-pack",
            "Capabilities",
        ] {
            assert!(
                matches!(command(line.as_bytes()), Err(Error::Unsupported(_))),
                "{line}"
            );
        }
    }

    #[test]
    fn refused_lines_are_shown_short_and_on_one_line() {
        let mut line = vec![b'\r'; 5000];
        line[0] = b'x';
        let text = command(&line).unwrap_err().to_string();
        assert!(text.len() < 600 && !text.contains('\r'), "{text}");
    }
}
