//! Why a repository cannot be opened or changed.

use std::path::{Path, PathBuf};

/// What went wrong, with which repository, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing from this folder upwards is a repository.
    #[error("not a Git repository (or any of the parent folders): {}", .start.display())]
    NotFound {
        /// Where the search began.
        start: PathBuf,
    },
    /// This very folder is none.
    #[error("not a Git repository: {}", .path.display())]
    NotARepository {
        /// The folder.
        path: PathBuf,
    },
    /// Somebody else could have put programs into the configuration.
    #[error(
        "detected dubious ownership in repository at '{0}'; to add an exception for this folder, call: \
         git config --global --add safe.directory {0}",
        .path.display()
    )]
    Ownership {
        /// The work tree, or the folder of a bare repository.
        path: PathBuf,
    },
    /// `safe.bareRepository` is `explicit`.
    #[error("cannot use bare repository '{}': safe.bareRepository is 'explicit', so name it with GIT_DIR", .path.display())]
    ImplicitBare {
        /// The folder that was found.
        path: PathBuf,
    },
    /// Made by a later Git.
    #[error("{} has repository format version {version}; up to 1 is understood", .path.display())]
    Version {
        /// The configuration file.
        path: PathBuf,
        /// `core.repositoryFormatVersion`.
        version: i64,
    },
    /// Reference storage that is not read.
    #[error(
        "{} stores its references as {storage}, which is not supported; convert it with: \
         git refs migrate --ref-format=files",
        .path.display()
    )]
    RefStorage {
        /// The configuration file.
        path: PathBuf,
        /// `extensions.refStorage`.
        storage: String,
    },
    /// A repository extension that changes what the files mean.
    #[error("{} uses the repository extension '{name}', which is not supported{hint}", .path.display())]
    Extension {
        /// The configuration file.
        path: PathBuf,
        /// The extension, with its value where that is what is not supported.
        name: String,
        /// What to do about it, if anything can be done.
        hint: &'static str,
    },
    /// An extension of version 1 in a repository of version 0, which Git refuses as well.
    #[error(
        "{} has repository format version 0, but uses '{name}', which needs version 1; \
         set core.repositoryFormatVersion to 1 if that is what it is",
        .path.display()
    )]
    ExtensionVersion {
        /// The configuration file.
        path: PathBuf,
        /// The extension.
        name: String,
    },
    /// An environment variable that cannot be used.
    #[error("{name}: {message}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// Why.
        message: String,
    },
    /// The current folder cannot be found out.
    #[error("cannot find out the current folder: {source}")]
    CurrentFolder {
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// A configuration value of the wrong kind.
    #[error("bad configuration value for '{key}': {message}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong with it.
        message: String,
    },
    /// A configuration file that cannot be changed as wanted.
    #[error("cannot change {}: {message}", .path.display())]
    Edit {
        /// The configuration file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Somebody else changes the same file.
    #[error("{} is locked by {}; remove that file if no other Git process runs", .path.display(), .lock.display())]
    Locked {
        /// The file to change.
        path: PathBuf,
        /// Its lock.
        lock: PathBuf,
    },
    /// A place that is taken.
    #[error("{} already exists and is not an empty folder", .path.display())]
    Exists {
        /// Where the repository was to be made.
        path: PathBuf,
    },
    /// Damaged, unreadable or nonsensical files.
    #[error("cannot open the repository at {}: {message}", .path.display())]
    Open {
        /// The `.git` folder.
        path: PathBuf,
        /// What gix found.
        message: String,
    },
    /// A write that failed.
    #[error(transparent)]
    Durable(#[from] crate::durable::Error),
}

impl Error {
    pub(super) fn open(path: &Path, error: &gix::Error) -> Error {
        Error::Open {
            path: path.to_owned(),
            message: explain(error),
        }
    }

    pub(super) fn read(path: &Path, error: std::io::Error) -> Error {
        Error::Durable(crate::durable::Error::new("read", path, error))
    }
}

/// The messages of a gix error and of its causes, on one line, each once.
pub(crate) fn explain(error: &gix::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.iter_errors() {
        let text = cause.to_string().replace(['\n', '\r'], " ");
        let text = text.trim().trim_end_matches('.').to_owned();
        if !text.is_empty() && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}
