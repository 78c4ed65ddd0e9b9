//! Exit codes, and the one line that a failure prints: the only place where errors become either.
//!
//! The codes are a contract with scripts; `docs/exit-codes.md` describes them.

use std::error::Error as StdError;
use std::fmt;
use std::process::ExitCode;

use ingot_engine::transport::Unanswered;
use ingot_engine::{refs, repository};

use crate::protocol::key_file;
use crate::state::Alarm;
use crate::{config, remote, state};

/// How a program of this project ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// All was done.
    Done = 0,
    /// Something failed for which there is no code of its own.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// All was done that could be, but some sources could not be read, or changed while they were.
    Partial = 3,
    /// There is no store where one was expected.
    NoStore = 10,
    /// Another process holds a lock.
    Locked = 11,
    /// This key cannot open the store.
    CannotOpen = 12,
    /// What the store holds is damaged, forged or older than what was seen before.
    Integrity = 13,
    /// What was to be stored holds a secret. Nothing of it was stored.
    Secret = 14,
    /// The key file is protected by a passphrase that nobody gave.
    KeyLocked = 15,
    /// The user stopped it.
    Interrupted = 130,
}

impl Code {
    /// Every code with the name that `--json` and the documentation use.
    pub const ALL: [(Code, &'static str); 11] = [
        (Code::Done, "done"),
        (Code::Failed, "failed"),
        (Code::Usage, "usage"),
        (Code::Partial, "partial"),
        (Code::NoStore, "no-store"),
        (Code::Locked, "locked"),
        (Code::CannotOpen, "cannot-open"),
        (Code::Integrity, "integrity"),
        (Code::Secret, "secret"),
        (Code::KeyLocked, "key-locked"),
        (Code::Interrupted, "interrupted"),
    ];
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// A failure as the user meets it.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What happened, to which thing.
    pub message: String,
    /// What to do next, where that is known and the message does not say it.
    pub next: Option<String>,
    /// Nobody reads the output any more: end without a word.
    pub silent: bool,
}

impl Failure {
    /// A failure with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            next: None,
            silent: false,
        }
    }

    /// A failure without a code of its own.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Code::Failed, message)
    }

    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message)
    }

    /// An error and all its causes, with code 1.
    pub fn of(error: &(dyn StdError + 'static)) -> Failure {
        Failure::failed(chain(error))
    }

    /// Adds what to do next.
    pub fn next(mut self, next: impl Into<String>) -> Failure {
        self.next = Some(next.into());
        self
    }
}

impl Failure {
    /// Prints the failure's line in the name of a program and returns its code.
    pub fn report(&self, program: &str) -> Code {
        use std::io::Write as _;
        if !self.silent {
            // When not even this can be told, the code is all that is left.
            let _ = writeln!(std::io::stderr(), "{program}: {self}");
        }
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&one_line(&self.message))?;
        match &self.next {
            Some(next) => write!(out, "; {}", one_line(next)),
            None => Ok(()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        let silent = error.kind() == std::io::ErrorKind::BrokenPipe;
        Failure {
            silent,
            ..Failure::of(&error)
        }
    }
}

impl From<key_file::Error> for Failure {
    fn from(error: key_file::Error) -> Failure {
        let code = match &error {
            key_file::Error::Unanswered {
                source: Unanswered::Interrupted,
                ..
            } => Code::Interrupted,
            key_file::Error::Protected(_)
            | key_file::Error::Unanswered { .. }
            | key_file::Error::NoPassphrase(_)
            | key_file::Error::WrongPassphrase(_) => Code::KeyLocked,
            _ => Code::Failed,
        };
        Failure {
            code,
            ..Failure::of(&error)
        }
    }
}

impl From<remote::Error> for Failure {
    fn from(error: remote::Error) -> Failure {
        if let remote::Error::KeyFile(error) = error {
            return error.into();
        }
        let code = match error.kind() {
            remote::Kind::Failed => Code::Failed,
            remote::Kind::NoStore => Code::NoStore,
            remote::Kind::Locked => Code::Locked,
            remote::Kind::Key => Code::CannotOpen,
            remote::Kind::Alarm => Code::Integrity,
            remote::Kind::Interrupted => Code::Interrupted,
        };
        if let Some(next) = alarm_step(&error) {
            return Failure {
                code,
                next: Some(next.to_owned()),
                ..Failure::of(&error)
            };
        }
        let next = match code {
            Code::NoStore if matches!(error, remote::Error::Vanished { .. }) => Some(
                "find out what became of it: is the disk mounted, was it moved? A copy of it may be put back; \
                 git-e2ee recover tells what is left",
            ),
            Code::NoStore => Some(
                "check the path, or make a store with: git-e2ee init (a folder) or git-e2ee carrier-init (a Git repository)",
            ),
            Code::Locked => Some("try again when the other process has ended"),
            Code::CannotOpen => Some(
                "use the right key, or ask an administrator of the store for the role or to add this device",
            ),
            Code::Integrity => Some(
                "nothing of it was used; ask whoever keeps the storage, and compare with another device; git-e2ee \
                     recover tells what is left",
            ),
            Code::Interrupted => Some("the same command again finishes the job"),
            Code::Done | Code::Failed | Code::Usage | Code::Partial | Code::Secret | Code::KeyLocked => None,
        };
        Failure {
            code,
            next: next.map(str::to_owned),
            ..Failure::of(&error)
        }
    }
}

/// What to do about an alarm, and about a device that was shut out. Nothing goes on by itself.
fn alarm_step(error: &remote::Error) -> Option<&'static str> {
    Some(match error {
        remote::Error::NotReader { .. } => {
            "ask an administrator to add this device: git-e2ee join --request shows what they need"
        }
        remote::Error::Revoked { .. } => {
            "ask an administrator whether this device was revoked; if it was not, the storage was tampered with"
        }
        remote::Error::State(state::Error::Alarm { alarm, .. }) => match alarm {
            Alarm::RolledBack { .. } => {
                "nothing of it was used; ask whoever manages the storage whether an old copy was put back: what is \
                 missing there is still in clones that have fetched it; git-e2ee recover tells what is left"
            }
            Alarm::Forked { .. } => {
                "nothing of it was used; two histories exist: compare generation and id with the other devices \
                 (git-e2ee log, git-e2ee recover) before anybody pushes"
            }
            Alarm::RootChanged { .. } => {
                "nothing of it was used; another repository is stored there: check the location, and ask whoever \
                 manages the storage"
            }
            Alarm::PolicyRolledBack { .. } => {
                "nothing of it was used; a device that was revoked may be let in again by this: do not push, and ask \
                 the administrators"
            }
            Alarm::PolicyDiffers { .. } => {
                "nothing of it was used; the remembered state and the store contradict each other: ask the \
                 administrators which policy is right"
            }
        },
        remote::Error::Invitation(_) => {
            "nothing of the store was used; ask the administrator for a new invitation, on a channel you both trust"
        }
        _ => return None,
    })
}

impl From<repository::Error> for Failure {
    fn from(error: repository::Error) -> Failure {
        let locked = matches!(error, repository::Error::Locked { .. });
        Failure {
            code: if locked { Code::Locked } else { Code::Failed },
            ..Failure::of(&error)
        }
    }
}

impl From<refs::Error> for Failure {
    fn from(error: refs::Error) -> Failure {
        let locked = matches!(error, refs::Error::Locked { .. });
        Failure {
            code: if locked { Code::Locked } else { Code::Failed },
            ..Failure::of(&error)
        }
    }
}

/// Says something that is no reason to fail.
pub fn warn(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "warning: {}", one_line(text));
}

/// Errors without a code of their own.
macro_rules! plain_failures {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::of(&error)
            }
        })+
    };
}

plain_failures!(
    config::KeyError,
    config::UrlError,
    super::refspec::Error,
    ingot_engine::checkout::Error,
);

/// An error with its causes, each of which adds something, separated by colons.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some messages spell their cause out already.
        if !more.is_empty() && !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Text on one line, without anything that a terminal would obey: names in a store are chosen by others.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.trim_end().chars() {
        match character {
            '\n' => line.push(' '),
            '\t' => line.push(' '),
            character if character.is_control() => line.extend(character.escape_default()),
            character => line.push(character),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open the store")]
    struct Outer(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("manifest 12: {0}")]
    struct Middle(#[source] std::io::Error);

    #[test]
    fn the_numbers_are_the_documented_ones() {
        let numbers: Vec<u8> = Code::ALL.iter().map(|(code, _)| *code as u8).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 130]);
        let documented = include_str!("../../../docs/exit-codes.md");
        for (code, name) in Code::ALL {
            let row = format!("| {} | `{name}` |", code as u8);
            assert!(
                documented.contains(&row),
                "docs/exit-codes.md lacks a row that starts {row}"
            );
        }
    }

    #[test]
    fn causes_follow_once_each() {
        let error = Outer(Middle(std::io::Error::other("disk on fire")));
        assert_eq!(chain(&error), "cannot open the store: manifest 12: disk on fire");
    }

    #[test]
    fn a_failure_is_one_harmless_line() {
        let failure = Failure::failed("bad ref a\nb\u{1b}[31m\n").next("rename it");
        assert_eq!(failure.to_string(), "bad ref a b\\u{1b}[31m; rename it");
    }

    #[test]
    fn a_closed_pipe_is_silent() {
        let closed = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(Failure::from(closed).silent);
        assert!(!Failure::from(std::io::Error::other("full")).silent);
    }
}
