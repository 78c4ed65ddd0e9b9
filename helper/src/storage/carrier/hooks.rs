//! Programs that the owner of a repository on this machine wants to be asked about pushes.
//!
//! Run as Git's receive-pack runs them: `pre-receive` and `update` may refuse, and see the new objects in quarantine;
//! `post-receive` and `post-update` are told. `reference-transaction`, `proc-receive` and `push-to-checkout` are not run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use ingot_engine::repository::Repository;
use ingot_engine::transport::Messages;

use super::layout::BRANCH;

/// Variables that are about one repository and must not reach programs of another.
const LOCAL_VARIABLES: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The hooks of a repository, and what they are asked about.
pub(super) struct Hooks<'a> {
    git_dir: PathBuf,
    objects: PathBuf,
    folder: PathBuf,
    old: ObjectId,
    new: ObjectId,
    messages: &'a dyn Messages,
}

impl<'a> Hooks<'a> {
    /// For a move of the branch from `old` to `new`.
    pub fn of(
        repository: &Repository,
        old: Option<ObjectId>,
        new: ObjectId,
        messages: &'a dyn Messages,
    ) -> Hooks<'a> {
        let git_dir = repository.common_dir().to_owned();
        let named = repository.config().string("core.hooksPath");
        let named = named.and_then(|path| crate::config::expand(path.as_bstr(), &git_dir).ok());
        Hooks {
            folder: named.unwrap_or_else(|| git_dir.join("hooks")),
            objects: repository.objects_dir().to_owned(),
            git_dir,
            old: old.unwrap_or_else(|| new.kind().null()),
            new,
            messages,
        }
    }

    /// Asks whether the branch may be moved, with new objects in `quarantine`. `Err` has the reason why not.
    pub fn ask(&self, quarantine: &Path) -> Result<(), String> {
        let line = format!("{} {} {BRANCH}\n", self.old, self.new);
        self.run("pre-receive", &[], &line, Some(quarantine))?;
        let ids = [self.old.to_string(), self.new.to_string()];
        self.run("update", &[BRANCH, &ids[0], &ids[1]], "", Some(quarantine))
    }

    /// Tells that the branch was moved. What the hooks answer changes nothing any more.
    pub fn tell(&self) {
        let line = format!("{} {} {BRANCH}\n", self.old, self.new);
        let told = self
            .run("post-receive", &[], &line, None)
            .and_then(|()| self.run("post-update", &[BRANCH], "", None));
        if let Err(reason) = told {
            self.messages.warning(&reason);
        }
    }

    fn run(
        &self,
        name: &str,
        arguments: &[&str],
        input: &str,
        quarantine: Option<&Path>,
    ) -> Result<(), String> {
        let program = self.folder.join(name);
        if !is_executable(&program) {
            return Ok(());
        }
        let failed = |error: std::io::Error| format!("{name} hook cannot be run: {error}");
        let (output, writer) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new(&program);
        for variable in LOCAL_VARIABLES {
            command.env_remove(variable);
        }
        command
            .args(arguments)
            .current_dir(&self.git_dir)
            .env("GIT_DIR", &self.git_dir)
            .stdin(Stdio::piped())
            .stdout(writer.try_clone().map_err(failed)?)
            .stderr(writer);
        if let Some(quarantine) = quarantine {
            command
                .env("GIT_QUARANTINE_PATH", quarantine)
                .env("GIT_OBJECT_DIRECTORY", quarantine)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        }
        let mut child = command.spawn().map_err(failed)?;
        // Its copies of the writing ends would keep the pipe open.
        drop(command);
        if let Some(mut stdin) = child.stdin.take() {
            // A hook need not read what it is told.
            let _ = stdin.write_all(input.as_bytes());
        }
        let mut output = BufReader::new(output);
        loop {
            let count = match output.fill_buf() {
                Ok([]) | Err(_) => break,
                Ok(text) => {
                    self.messages.remote(text);
                    text.len()
                }
            };
            output.consume(count);
        }
        let status = child.wait().map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("{name} hook declined")),
        }
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    false
}
