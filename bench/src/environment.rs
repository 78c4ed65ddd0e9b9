//! What a run was made on: machine, system, file system, and the versions of the tools that took part.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// Facts beside the figures. What cannot be read is left out, never guessed.
#[derive(Debug, Default, Serialize)]
pub struct Environment {
    /// Seconds since 1970 at the start of the run.
    pub started: u64,
    /// Model of the processor.
    pub processor: Option<String>,
    /// How many threads the run could use.
    pub cores: usize,
    /// Memory of the machine in MiB.
    pub memory_mib: Option<u64>,
    /// Kernel and its version.
    pub system: Option<String>,
    /// Type of the file system that the temporary folders are on.
    pub file_system: Option<String>,
    /// How the page cache was treated.
    pub page_cache: &'static str,
    /// First line that each tool says of its version.
    pub versions: BTreeMap<String, String>,
    /// Peers that could have been measured, and are not installed here.
    pub missing: Vec<String>,
}

impl Environment {
    /// Reads the facts. `binaries` is the folder of the programs to measure.
    pub fn read(binaries: &Path) -> Environment {
        let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut versions = BTreeMap::new();
        let mut missing = Vec::new();
        let own = |name: &str| binaries.join(name).to_string_lossy().into_owned();
        for (name, program, argument) in [
            ("git", "git".to_owned(), "--version"),
            ("git-e2ee", own("git-e2ee"), "--version"),
            ("rivet", own("rivet"), "--version"),
            ("git-chunk", own("git-chunk"), "--version"),
            ("git-remote-gcrypt", "git-remote-gcrypt".to_owned(), ""),
            ("gpg", "gpg".to_owned(), "--version"),
            ("restic", "restic".to_owned(), "version"),
            ("borg", "borg".to_owned(), "--version"),
            ("git-lfs", "git-lfs".to_owned(), "version"),
            ("mkit", "mkit".to_owned(), "--version"),
        ] {
            match first_line(&program, argument) {
                Some(line) => drop(versions.insert(name.to_owned(), line)),
                None => missing.push(name.to_owned()),
            }
        }
        Environment {
            started: started.map(|since| since.as_secs()).unwrap_or(0),
            processor: line_of("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: line_of("/proc/meminfo", "MemTotal")
                .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok())
                .map(|kibibytes| kibibytes / 1024),
            system: first_line("uname", "-sr"),
            file_system: file_system(&std::env::temp_dir()),
            page_cache: "warm, written data synced before each large row",
            versions,
            missing,
        }
    }
}

/// What `program` says first. Some programs have no argument for that: those are only looked for.
fn first_line(program: &str, argument: &str) -> Option<String> {
    if argument.is_empty() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
        return found.then(|| "installed".to_owned());
    }
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().to_owned())
}

/// The value of a line `name: value` in a file.
fn line_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type of the file system that holds `folder`: that of the longest mount point above it.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let above = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind) = (fields.next()?, fields.next()?);
        folder.starts_with(point).then_some((point.len(), kind))
    });
    above
        .max_by_key(|&(length, _)| length)
        .map(|(_, kind)| kind.to_owned())
}
