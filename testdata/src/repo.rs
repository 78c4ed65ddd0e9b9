//! Repositories that scripts build.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The object format of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// 20-byte ids.
    Sha1,
    /// 32-byte ids.
    Sha256,
}

impl Format {
    /// Both, for tests that must hold under each.
    pub const BOTH: [Format; 2] = [Format::Sha1, Format::Sha256];

    /// The name that `git init --object-format` takes.
    pub fn name(self) -> &'static str {
        match self {
            Format::Sha1 => "sha1",
            Format::Sha256 => "sha256",
        }
    }
}

/// A repository in a temporary folder that goes with it.
#[derive(Debug)]
pub struct Repo {
    temp: TempDir,
}

impl Repo {
    /// An empty repository with a work tree.
    #[track_caller]
    pub fn empty(format: Format) -> Repo {
        let temp = TempDir::new().unwrap();
        crate::git::git(temp.path(), &["init", "-q", "--object-format", format.name()]);
        Repo { temp }
    }

    /// What `testdata/scripts/<name>.sh` builds in an empty repository, with Git's object format set beforehand.
    #[track_caller]
    pub fn scripted(name: &str, format: Format) -> Repo {
        let repo = Repo::empty(format);
        let script = crate::root().join("scripts").join(format!("{name}.sh"));
        let mut bash = crate::git::isolated(Command::new("bash"), repo.path());
        let output = bash.arg("-euo").arg("pipefail").arg(&script).output().unwrap();
        assert!(
            output.status.success(),
            "{} failed\n{}",
            script.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        repo
    }

    /// The top of the work tree.
    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    /// The `.git` folder.
    pub fn git_dir(&self) -> PathBuf {
        self.temp.path().join(".git")
    }

    /// The object folder.
    pub fn objects(&self) -> PathBuf {
        self.git_dir().join("objects")
    }

    /// Runs Git here; see [`crate::git::git`].
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        crate::git::git(self.path(), args)
    }

    /// Writes a file below the work tree, making its folders.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Stages everything and commits it; returns the commit id.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}
