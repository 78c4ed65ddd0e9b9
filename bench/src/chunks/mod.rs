//! Rows of chunked files: adding, editing and checking out big files and many small ones, beside plain Git.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::measure::{self, Error};
use crate::report::Report;
use crate::workload::{self, Noise};

/// How large the largest file is, in MiB.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Of the row about a very large file; 0 leaves it out.
    pub huge: usize,
}

/// A tool that keeps files in a Git repository.
#[derive(Debug, Clone)]
enum Tool {
    Git,
    Chunk(PathBuf),
}

impl Tool {
    fn name(&self) -> &'static str {
        match self {
            Tool::Git => "git",
            Tool::Chunk(_) => "ingot",
        }
    }

    /// A shell in `repo` where `$T` is the tool. One shell for each row, whichever tool.
    fn shell(&self, repo: &Path, script: &str) -> Command {
        let mut command = workload::git(repo);
        let mut shell = Command::new("sh");
        shell.current_dir(repo).args(["-ec", script]);
        for (key, value) in command.get_envs() {
            if let Some(value) = value {
                shell.env(key, value);
            }
        }
        // Without it, Git's objects would not survive a power cut, and the tools would do different things.
        shell.env("T", self.program()).env("GIT_CONFIG_COUNT", "9");
        shell
            .env("GIT_CONFIG_KEY_8", "core.fsync")
            .env("GIT_CONFIG_VALUE_8", "all");
        command.env_clear();
        shell
    }

    fn program(&self) -> PathBuf {
        match self {
            Tool::Git => "git".into(),
            Tool::Chunk(binary) => binary.clone(),
        }
    }

    fn run(&self, repo: &Path, script: &str) -> Result<measure::Cost, Error> {
        rustix::fs::sync();
        measure::run(&mut self.shell(repo, script))
    }

    fn init(&self, repo: &Path) -> Result<measure::Cost, Error> {
        make_folder(repo)?;
        self.run(
            repo,
            match self {
                Tool::Git => "$T init -q",
                Tool::Chunk(_) => "$T init --track '*.bin' >/dev/null",
            },
        )
    }
}

const COMMIT: &str = "$T add . && $T commit -q -m change";

/// Measures all rows `rounds` times. `binary` is `git-chunk`.
pub fn run(binary: &Path, sizes: Sizes, rounds: usize, report: &mut Report) -> Result<(), Error> {
    let tools = [Tool::Git, Tool::Chunk(binary.to_owned())];
    for round in 0..rounds {
        let room = TempDir::new().map_err(failed(Path::new("a temporary folder")))?;
        for tool in &tools {
            let folder = room.path().join(tool.name());
            make_folder(&folder)?;
            hundred_mebibytes(tool, &folder.join("hundred"), round, report)?;
            small_files(tool, &folder, round, report)?;
            if sizes.huge > 0 {
                huge(tool, &folder.join("huge"), sizes.huge, round, report)?;
            }
        }
    }
    Ok(())
}

/// One file of 100 MiB that does not compress, and changes of it.
fn hundred_mebibytes(tool: &Tool, repo: &Path, round: usize, report: &mut Report) -> Result<(), Error> {
    let name = tool.name();
    report.add("init", name, tool.init(repo)?);
    let file = repo.join("file.bin");
    let mut noise = Noise::new(round as u64 + 1);
    write_noise(&file, 100, &mut noise)?;
    report.add("add + commit 100 MiB", name, tool.run(repo, COMMIT)?);
    let stored = |repo: &Path| workload::bytes_in(&repo.join(".git"));
    let first = stored(repo)?;
    report.size("repository after 100 MiB", name, first);
    report.add("status", name, tool.run(repo, "$T status >/dev/null")?);

    let mut append = fs::OpenOptions::new()
        .append(true)
        .open(&file)
        .map_err(failed(&file))?;
    append
        .write_all(&bytes(1 << 20, &mut noise))
        .map_err(failed(&file))?;
    drop(append);
    report.add("append 1 MiB, add + commit", name, tool.run(repo, COMMIT)?);
    report.size(
        "growth after 1 MiB appended",
        name,
        stored(repo)?.saturating_sub(first),
    );

    let mut content = fs::read(&file).map_err(failed(&file))?;
    content.insert(0, b'x');
    fs::write(&file, &content).map_err(failed(&file))?;
    let before = stored(repo)?;
    report.add("insert one byte at the start", name, tool.run(repo, COMMIT)?);
    report.size(
        "growth after one byte inserted",
        name,
        stored(repo)?.saturating_sub(before),
    );

    let branch = workload::text(repo, &["symbolic-ref", "--short", "HEAD"])?;
    let first_commit = workload::text(repo, &["rev-list", "--max-parents=0", "HEAD"])?;
    tool.run(repo, &format!("$T checkout -q {first_commit}"))?;
    let cost = tool.run(repo, &format!("$T checkout -q {branch}"))?;
    report.add("checkout of the next version", name, cost);

    let now = std::time::SystemTime::now();
    let touched = fs::File::options()
        .write(true)
        .open(&file)
        .and_then(|file| file.set_modified(now));
    touched.map_err(failed(&file))?;
    report.add("touch 100 MiB, add", name, tool.run(repo, "$T add .")?);
    Ok(())
}

fn small_files(tool: &Tool, folder: &Path, round: usize, report: &mut Report) -> Result<(), Error> {
    let name = tool.name();
    for (row, count, size) in [
        ("100 files of 10 KiB", 100, 10_240),
        ("10,000 files of 4 KiB", 10_000, 4096),
    ] {
        let repo = folder.join(format!("small-{count}"));
        tool.init(&repo)?;
        let mut noise = Noise::new(round as u64 + 7);
        for number in 0..count {
            let inner = repo.join(format!("{}", number % 100));
            make_folder(&inner)?;
            let file = inner.join(format!("{number}.dat"));
            fs::write(&file, bytes(size, &mut noise)).map_err(failed(&file))?;
        }
        report.add(&format!("{row}, add + commit"), name, tool.run(&repo, COMMIT)?);
        report.size(
            &format!("repository after {row}"),
            name,
            workload::bytes_in(&repo.join(".git"))?,
        );
        if count == 10_000 {
            report.add(
                "status in 10,000 files",
                name,
                tool.run(&repo, "$T status >/dev/null")?,
            );
            fs::write(repo.join("7/7.dat"), "changed").map_err(failed(&repo))?;
            report.add("one-file commit in 10,000 files", name, tool.run(&repo, COMMIT)?);
        }
    }
    Ok(())
}

fn huge(tool: &Tool, repo: &Path, mebibytes: usize, round: usize, report: &mut Report) -> Result<(), Error> {
    let name = tool.name();
    tool.init(repo)?;
    let file = repo.join("huge.bin");
    write_noise(&file, mebibytes, &mut Noise::new(round as u64 + 99))?;
    let cost = tool.run(repo, COMMIT)?;
    report.add(&format!("add + commit {mebibytes} MiB"), name, cost);
    fs::remove_file(&file).map_err(failed(&file))?;
    let cost = tool.run(repo, "$T checkout -q -- huge.bin")?;
    report.add(&format!("checkout of {mebibytes} MiB, warm"), name, cost);
    Ok(())
}

fn write_noise(path: &Path, mebibytes: usize, noise: &mut Noise) -> Result<(), Error> {
    let mut file = fs::File::create(path).map_err(failed(path))?;
    for _ in 0..mebibytes {
        file.write_all(&bytes(1 << 20, noise)).map_err(failed(path))?;
    }
    file.sync_all().map_err(failed(path))
}

fn bytes(count: usize, noise: &mut Noise) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        bytes.extend_from_slice(&noise.next().to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let program = path.display().to_string();
    move |source| Error::Start {
        program: program.clone(),
        source,
    }
}
