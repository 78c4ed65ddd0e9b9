//! Errors of this crate as the user meets them: exit codes and what to do next, in one place.

use ingot_helper::cli::exit::{Code, Failure};

use crate::{archive, capture, config, manifest, prune, restore, secrets, transfer};

/// A failure with a code, and what to do next where the message does not say it.
fn failure(code: Code, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure {
        code,
        ..Failure::of(error)
    }
}

impl From<archive::Error> for Failure {
    fn from(error: archive::Error) -> Failure {
        let code = match &error {
            archive::Error::Absent(_) => Code::NoStore,
            archive::Error::Locked(ingot_helper::flock::Error::Interrupted { .. }) => Code::Interrupted,
            archive::Error::Locked(ingot_helper::flock::Error::Held { .. }) => Code::Locked,
            archive::Error::Refs(ingot_engine::refs::Error::Locked { .. })
            | archive::Error::Repository(ingot_engine::repository::Error::Locked { .. }) => Code::Locked,
            archive::Error::Manifest {
                source: manifest::Error::Damaged { .. },
                ..
            }
            | archive::Error::NotASnapshot { .. } => Code::Integrity,
            archive::Error::Store(error) if is_damage(error) => Code::Integrity,
            _ => Code::Failed,
        };
        failure(code, &error)
    }
}

/// Whether stored objects are damaged, rather than the system refusing something.
fn is_damage(error: &ingot_engine::store::Error) -> bool {
    use ingot_engine::store::Error;
    !matches!(
        error,
        Error::Io { .. } | Error::TooLarge { .. } | Error::TooManyObjects { .. } | Error::Sink { .. }
    )
}

impl From<capture::Error> for Failure {
    fn from(error: capture::Error) -> Failure {
        match error {
            capture::Error::Archive(error) => error.into(),
            capture::Error::Blocked(_) => failure(Code::Secret, &error),
            capture::Error::Interrupted => {
                failure(Code::Interrupted, &error).next("nothing was stored; run it again")
            }
            _ => failure(Code::Failed, &error),
        }
    }
}

impl From<restore::Error> for Failure {
    fn from(error: restore::Error) -> Failure {
        let code = match &error {
            restore::Error::Damaged(_) | restore::Error::Missing { .. } => Code::Integrity,
            restore::Error::Store { source, .. } if is_damage(source) => Code::Integrity,
            restore::Error::Interrupted => Code::Interrupted,
            _ => Code::Failed,
        };
        failure(code, &error)
    }
}

impl From<prune::Error> for Failure {
    fn from(error: prune::Error) -> Failure {
        match error {
            prune::Error::Archive(error) => error.into(),
            prune::Error::Interrupted => failure(Code::Interrupted, &error),
            _ => failure(Code::Failed, &error),
        }
    }
}

impl From<transfer::Error> for Failure {
    fn from(error: transfer::Error) -> Failure {
        match error {
            transfer::Error::Archive(error) => error.into(),
            transfer::Error::Remote(error @ ingot_helper::remote::Error::NoRepository { .. }) => {
                failure(Code::NoStore, &error)
                    .next("check the path, or send snapshots there with: rivet push")
            }
            transfer::Error::Remote(error) => error.into(),
            transfer::Error::Place(failure) => *failure,
            transfer::Error::NoKey { .. } => failure(Code::CannotOpen, &error),
            _ => failure(Code::Failed, &error),
        }
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Failure {
        let code = match &error {
            config::Error::Absent(_) => Code::NoStore,
            config::Error::Outside { .. } => Code::Usage,
            _ => Code::Failed,
        };
        failure(code, &error)
    }
}

impl From<secrets::AllowError> for Failure {
    fn from(error: secrets::AllowError) -> Failure {
        failure(Code::Failed, &error).next("correct secrets.allow in the configuration")
    }
}
