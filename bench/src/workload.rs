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

/// Runs a prepared command without measuring.
pub fn quietly_as(mut command: Command) -> Result<(), Error> {
    measure::run(&mut command).map(|_| ())
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

/// What a larger commit adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One file of 10 MiB that does not compress.
    Large,
    /// The same file with one byte changed in its middle.
    OneByte,
    /// 1,000 files of 1 KiB in one folder, text.
    Many,
}

/// Commits new files on `main`; `seed` makes their content unlike that of others.
pub fn files_commit(repo: &Path, shape: Shape, seed: u64) -> Result<(), Error> {
    let name = match shape {
        Shape::Large | Shape::OneByte => format!("bench-large-{seed}"),
        Shape::Many => format!("bench-many-{seed}"),
    };
    let folder = repo.join(&name);
    let failed = |source| Error::Start {
        program: folder.display().to_string(),
        source,
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut noise = Noise::new(seed);
    match shape {
        Shape::Large | Shape::OneByte => {
            let mut bytes: Vec<u8> = (0..10 << 17).flat_map(|_| noise.next().to_le_bytes()).collect();
            if shape == Shape::OneByte {
                bytes[5 << 20] ^= 1;
            }
            fs::write(folder.join("large.bin"), bytes).map_err(failed)?;
        }
        Shape::Many => {
            for number in 0..1000 {
                let text: String = (0..40)
                    .map(|at| format!("{at:3} value {:>20}\n", noise.next()))
                    .collect();
                fs::write(folder.join(format!("file-{number}.txt")), &text[..1024]).map_err(failed)?;
            }
        }
    }
    quietly(repo, &["read-tree", "main"])?;
    quietly(repo, &["add", &name])?;
    let tree = text(repo, &["write-tree"])?;
    let commit = text(repo, &["commit-tree", &tree, "-p", "main", "-m", &name])?;
    quietly(repo, &["update-ref", "refs/heads/main", &commit])?;
    fs::remove_dir_all(&folder).map_err(failed)
}

/// Numbers without a pattern, always the same (xorshift64*).
#[derive(Debug)]
pub struct Noise(u64);

impl Noise {
    /// Numbers unlike those of another seed.
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)] // it never ends
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// A bare repository at `into` with what `revision` of `origin` reaches, in one pack, as the branch `main`.
pub fn copy(origin: &Path, revision: &str, into: &Path) -> Result<PathBuf, Error> {
    let place = into.to_string_lossy().into_owned();
    quietly(origin, &["init", "-q", "--bare", &place])?;
    let url = format!("file://{place}");
    quietly(
        origin,
        &["push", "-q", &url, &format!("{revision}:refs/heads/main")],
    )?;
    Ok(into.to_owned())
}

/// A copy of `origin` whose pack has a reachability bitmap.
pub fn with_bitmap(origin: &Path, room: &Path) -> Result<PathBuf, Error> {
    let copy = copy(origin, "HEAD", &room.join("bitmap.git"))?;
    quietly(&copy, &["symbolic-ref", "HEAD", "refs/heads/main"])?;
    quietly(&copy, &["repack", "-q", "-a", "-d", "--write-bitmap-index"])?;
    Ok(copy)
}

/// Bytes of all files below a folder, as their lengths say.
pub fn bytes_in(folder: &Path) -> Result<u64, Error> {
    let failed = |source| Error::Start {
        program: folder.display().to_string(),
        source,
    };
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let meta = entry.metadata().map_err(failed)?;
        sum += match meta.is_dir() {
            true => bytes_in(&entry.path())?,
            false => meta.len(),
        };
    }
    Ok(sum)
}
