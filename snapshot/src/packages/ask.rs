//! Asks a manager's own program, for what no file tells. Only when a person wants it: nothing else in this crate
//! starts a program.

use std::collections::HashSet;
use std::io::{self, Read};
use std::process::{Command, Stdio};

use super::{Listing, Manager, Package, Reason};

/// Output of one question that is read.
const MAX_OUTPUT: u64 = 64 << 20;

/// Why an answer could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The manager's files are read in-process; there is no question for it.
    #[error("{} is read from its files; there is nothing to ask", .0.name())]
    NothingToAsk(Manager),
    /// The program could not be started or its output not be read.
    #[error("{program} could not be asked: {source}; is it installed and on PATH?")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program said no.
    #[error("{program} failed ({status}); run it by hand to see why: {command}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// The whole command.
        command: String,
    },
    /// The answer is larger than any list of packages.
    #[error("{program} answered more than {MAX_OUTPUT} bytes; that is no list of packages")]
    TooLong {
        /// The program.
        program: String,
    },
}

/// Runs a question: the program and its arguments, to its standard output.
pub trait Runner {
    /// The output of a successful run, of at most 64 MiB.
    fn run(&self, argv: &[&str]) -> Result<Vec<u8>, AskError>;
}

/// Runs programs of this machine, found on PATH, with no input and in the language that programs parse.
pub struct Programs;

impl Runner for Programs {
    fn run(&self, argv: &[&str]) -> Result<Vec<u8>, AskError> {
        let Some((program, arguments)) = argv.split_first() else {
            return Ok(Vec::new());
        };
        let failed = |source| AskError::Start {
            program: (*program).to_owned(),
            source,
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut output = Vec::new();
        let read = match child.stdout.take() {
            Some(stdout) => stdout.take(MAX_OUTPUT + 1).read_to_end(&mut output),
            None => Ok(0),
        };
        if read.is_err() || output.len() as u64 > MAX_OUTPUT {
            // Already ended is as good as killed.
            let _ = child.kill();
            let _ = child.wait();
            read.map_err(failed)?;
            return Err(AskError::TooLong {
                program: (*program).to_owned(),
            });
        }
        let status = child.wait().map_err(failed)?;
        if status.success() {
            Ok(output)
        } else {
            Err(AskError::Failed {
                program: (*program).to_owned(),
                status: status.to_string(),
                command: argv.join(" "),
            })
        }
    }
}

const RPM: &[&str] = &[
    "rpm",
    "-qa",
    "--queryformat",
    r"%{NAME}\t%{VERSION}-%{RELEASE}\t%{ARCH}\n",
];
const DNF: &[&str] = &[
    "dnf",
    "--cacheonly",
    "repoquery",
    "--userinstalled",
    "--queryformat",
    r"%{name}\n",
];
const SNAP: &[&str] = &["snap", "list"];

/// The command that would be run for a manager; nothing when its files tell all.
pub fn question(manager: Manager) -> Option<String> {
    let argv = match manager {
        Manager::Rpm => RPM,
        Manager::Snap => SNAP,
        _ => return None,
    };
    Some(argv.join(" "))
}

/// Asks the manager's own program what is installed.
pub fn ask(manager: Manager, runner: &dyn Runner) -> Result<Listing, AskError> {
    match manager {
        Manager::Rpm => rpm(runner),
        Manager::Snap => {
            let answer = runner.run(SNAP)?;
            Ok(snap(&String::from_utf8_lossy(&answer)))
        }
        other => Err(AskError::NothingToAsk(other)),
    }
}

/// rpm knows the packages, dnf which of them a person asked for. Without dnf the reasons stay unknown.
fn rpm(runner: &dyn Runner) -> Result<Listing, AskError> {
    let answer = runner.run(RPM)?;
    let mut warnings = Vec::new();
    let asked: Option<HashSet<String>> = match runner.run(DNF) {
        Ok(answer) => Some(
            String::from_utf8_lossy(&answer)
                .lines()
                .map(|line| line.trim().to_owned())
                .collect(),
        ),
        Err(error) => {
            warnings.push(format!("which packages were asked for is not known: {error}"));
            None
        }
    };
    let mut packages = Vec::new();
    for line in String::from_utf8_lossy(&answer).lines() {
        let mut fields = line.split('\t');
        let (Some(name), Some(version)) = (fields.next(), fields.next()) else {
            warnings.push(format!("rpm answered a line that is no package: {line:?}"));
            continue;
        };
        // Keys of repositories are listed like packages.
        if name == "gpg-pubkey" || name.is_empty() {
            continue;
        }
        let reason = match &asked {
            None => Reason::Unknown,
            Some(asked) if asked.contains(name) => Reason::Explicit,
            Some(_) => Reason::Dependency,
        };
        packages.push(Package::new(name, version, reason));
    }
    let listing = Listing {
        packages,
        warnings,
        ..Listing::default()
    };
    Ok(listing.sorted())
}

/// `Name Version Rev Tracking Publisher Notes`, in columns under a heading.
fn snap(answer: &str) -> Listing {
    let packages = answer.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (name, version) = (columns.first()?, columns.get(1)?);
        let notes: Vec<&str> = columns.last()?.split(',').collect();
        let base = notes
            .iter()
            .any(|note| ["base", "core", "os", "snapd", "kernel", "gadget"].contains(note));
        let reason = if base {
            Reason::Dependency
        } else {
            Reason::Explicit
        };
        let classic = notes.contains(&"classic").then(|| "classic".to_owned());
        Some(Package::new(*name, *version, reason).from(classic))
    });
    let listing = Listing {
        packages: packages.collect(),
        ..Listing::default()
    };
    listing.sorted()
}
