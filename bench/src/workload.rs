//! Repositories and folders that the rows work on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::{self, Error};

/// Git in `dir`, with no configuration but what is given here: fixed identity, no maintenance behind our back, packs
/// kept as they arrive.
pub fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    for (at, (key, value)) in [
        ("user.name", "Alice"),
        ("user.email", "alice@example.org"),
        ("maintenance.auto", "false"),
        ("gc.auto", "0"),
        ("receive.unpackLimit", "0"),
        ("receive.autoGc", "false"),
        ("fetch.unpackLimit", "1"),
        ("init.defaultBranch", "main"),
    ]
    .iter()
    .enumerate()
    {
        command
            .env(format!("GIT_CONFIG_KEY_{at}"), key)
            .env(format!("GIT_CONFIG_VALUE_{at}"), value);
        command.env("GIT_CONFIG_COUNT", (at + 1).to_string());
    }
    command
}

/// Runs Git without measuring.
pub fn quietly(dir: &Path, args: &[&str]) -> Result<(), Error> {
    measure::run(git(dir).args(args)).map(|_| ())
}

/// Standard output of Git, trimmed.
pub fn text(dir: &Path, args: &[&str]) -> Result<String, Error> {
    let mut command = git(dir);
    command.args(args);
    let program = format!("{command:?}");
    let output = command.output().map_err(|source| Error::Start {
        program: program.clone(),
        source,
    })?;
    if !output.status.success() {
        return Err(Error::Failed {
            program,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A clone of `source` that borrows its objects, with a branch `main` at the source's HEAD and no work tree files.
pub fn borrowing_clone(source: &Path, into: PathBuf) -> Result<PathBuf, Error> {
    let place = into.to_string_lossy().into_owned();
    let from = source.to_string_lossy().into_owned();
    quietly(
        source,
        &[
            "clone",
            "-q",
            "--shared",
            "--no-checkout",
            "--no-tags",
            &from,
            &place,
        ],
    )?;
    quietly(&into, &["checkout", "-q", "--orphan", "unused"]).ok();
    quietly(
        &into,
        &["update-ref", "refs/heads/main", "refs/remotes/origin/HEAD"],
    )?;
    quietly(&into, &["symbolic-ref", "HEAD", "refs/heads/main"])?;
    quietly(&into, &["remote", "remove", "origin"])?;
    Ok(into)
}

/// Commits one more line at the end of the file `README.md` (made when absent) without touching a work tree; `mark`
/// makes the line unique. Returns nothing: the branch `main` has moved.
pub fn one_line_commit(repo: &Path, mark: &str) -> Result<(), Error> {
    edit_commit(repo, "README.md", mark, |old| {
        let mut new = old;
        new.extend_from_slice(format!("line {mark}\n").as_bytes());
        new
    })
}

/// Commits a change of one file on `main`.
pub fn edit_commit(
    repo: &Path,
    path: &str,
    mark: &str,
    edit: impl FnOnce(Vec<u8>) -> Vec<u8>,
) -> Result<(), Error> {
    let old = text(repo, &["show", &format!("main:{path}")])
        .map(String::into_bytes)
        .unwrap_or_default();
    let scratch = repo.join(".git").join(format!("bench-{mark}"));
    let failed = |source| Error::Start {
        program: scratch.display().to_string(),
        source,
    };
    fs::write(&scratch, edit(old)).map_err(failed)?;
    let blob = text(
        repo,
        &["hash-object", "-w", "--no-filters", &scratch.to_string_lossy()],
    )?;
    fs::remove_file(&scratch).map_err(failed)?;
    quietly(repo, &["read-tree", "main"])?;
    quietly(
        repo,
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("100644,{blob},{path}"),
        ],
    )?;
    let tree = text(repo, &["write-tree"])?;
    let commit = text(repo, &["commit-tree", &tree, "-p", "main", "-m", mark])?;
    quietly(repo, &["update-ref", "refs/heads/main", &commit])
}
