//! `ingot-bench`: side-by-side measurements.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use ingot_bench::{
    capture, chunks, counts, engine, halves, probe, remote, report::Report, synthetic, tables,
};

/// Measures Ingot beside plain Git and other peers. Run it with nothing else running.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    rows: Rows,
}

#[derive(Subcommand)]
enum Rows {
    /// First push, fresh fetch, one-line push and fetch of an encrypted remote on a directory.
    Remote {
        /// A repository whose HEAD is pushed.
        #[arg(long)]
        source: PathBuf,
        /// The folder of `git-e2ee` and `git-remote-e2ee` to measure; the default is this program's own.
        #[arg(long)]
        binaries: Option<PathBuf>,
        /// Another folder with such a pair, measured beside them.
        #[arg(long)]
        peer: Option<PathBuf>,
        /// Stores on a branch of a bare repository instead of in a folder.
        #[arg(long)]
        carrier: bool,
        /// How often everything is done anew; medians are reported.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// One-line pushes and fetches in each round.
        #[arg(long, default_value_t = 7)]
        tiny: usize,
        /// Prints every run as JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// How the first push and a one-line push grow from half of a history to all of it.
    Growth {
        /// A repository whose HEAD is pushed.
        #[arg(long)]
        source: PathBuf,
        /// What the older part of the history has half of.
        #[arg(long, value_enum, default_value = "bytes")]
        by: halves::By,
        /// The folder of `git-e2ee` and `git-remote-e2ee` to measure; the default is this program's own.
        #[arg(long)]
        binaries: Option<PathBuf>,
        /// How often everything is done anew; medians are reported.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// One-line pushes in each round.
        #[arg(long, default_value_t = 7)]
        tiny: usize,
        /// Prints every run as JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Enumerating (without and with a bitmap), packing and indexing a whole repository.
    Engine {
        /// A repository with its history in one pack.
        #[arg(long)]
        source: PathBuf,
        /// How often everything is done anew; medians are reported.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Prints every run as JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Big files and many small ones in a repository, beside plain Git with everything synced.
    Chunks {
        /// The folder of `git-chunk`; the default is this program's own.
        #[arg(long)]
        binaries: Option<PathBuf>,
        /// Size of the largest file in MiB; 0 leaves it out.
        #[arg(long, default_value_t = 1024)]
        huge: usize,
        /// How often everything is done anew; medians are reported.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Prints every run as JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Snapshots of small files, beside copying them, Git, and restic where it is installed.
    Capture {
        /// The folder of `rivet`; the default is this program's own.
        #[arg(long)]
        binaries: Option<PathBuf>,
        /// How many files of 1 KiB.
        #[arg(long, default_value_t = 2000)]
        files: usize,
        /// How often everything is done anew; medians are reported.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Prints every run as JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// All rows of all tools in one run, with a page of charts.
    Tables(Tables),
    /// Instructions of the hot loops, counted by valgrind, beside a baseline.
    Counts {
        /// The counts to compare with.
        #[arg(long, default_value = "bench/counts.json")]
        baseline: PathBuf,
        /// Makes these counts the baseline.
        #[arg(long)]
        update: bool,
    },
    /// One step of the engine, for other rows to measure.
    #[command(hide = true)]
    Probe {
        #[command(subcommand)]
        step: probe::Step,
    },
}

#[derive(Args)]
struct Tables {
    /// A repository whose HEAD is pushed.
    #[arg(long, conflicts_with = "synthetic")]
    source: Option<PathBuf>,
    /// Makes up a history instead, always the same.
    #[arg(long)]
    synthetic: Option<synthetic::Size>,
    /// The folder of the programs to measure; the default is this program's own.
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Another folder with `git-e2ee` and `git-remote-e2ee`, measured beside them.
    #[arg(long)]
    peer: Option<PathBuf>,
    /// How often everything is done anew; medians are reported.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// One-line pushes and fetches in each round.
    #[arg(long, default_value_t = 7)]
    tiny: usize,
    /// How many files of 1 KiB a snapshot takes.
    #[arg(long, default_value_t = 2000)]
    files: usize,
    /// Size of the largest chunked file in MiB; 0 leaves it out.
    #[arg(long, default_value_t = 1024)]
    huge: usize,
    /// Measures these groups only.
    #[arg(long, value_parser = tables::SECTIONS, value_delimiter = ',')]
    only: Vec<String>,
    /// The folder for `results.json` and `report.html`.
    #[arg(long, default_value = "bench-results")]
    output: PathBuf,
}

fn main() -> ExitCode {
    match run(Arguments::parse().rows) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("ingot-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(rows: Rows) -> Result<String, Box<dyn std::error::Error>> {
    let mut report = Report::default();
    let mut base = "git";
    let json = match rows {
        Rows::Remote {
            source,
            binaries,
            peer,
            carrier,
            rounds,
            tiny,
            json,
        } => {
            let storage = match carrier {
                true => remote::Storage::Carrier,
                false => remote::Storage::Directory,
            };
            let mut tools = vec![
                remote::Tool::Plain,
                remote::Tool::Encrypted("ingot".into(), own(binaries)?, storage),
            ];
            if let Some(folder) = peer {
                tools.push(remote::Tool::Encrypted(
                    "peer".into(),
                    folder.canonicalize()?,
                    storage,
                ));
            }
            remote::run(&tools, &source.canonicalize()?, rounds, tiny, &mut report)?;
            json
        }
        Rows::Growth {
            source,
            by,
            binaries,
            rounds,
            tiny,
            json,
        } => {
            remote::growth(
                &own(binaries)?,
                &source.canonicalize()?,
                by,
                rounds,
                tiny,
                &mut report,
            )?;
            base = "half";
            json
        }
        Rows::Engine { source, rounds, json } => {
            engine::run(
                &std::env::current_exe()?,
                &source.canonicalize()?,
                rounds,
                &mut report,
            )?;
            json
        }
        Rows::Chunks {
            binaries,
            huge,
            rounds,
            json,
        } => {
            let binary = own(binaries)?.join("git-chunk");
            chunks::run(&binary, chunks::Sizes { huge }, rounds, &mut report)?;
            json
        }
        Rows::Capture {
            binaries,
            files,
            rounds,
            json,
        } => {
            capture::run(&own(binaries)?.join("rivet"), files, rounds, &mut report)?;
            base = "cp";
            json
        }
        Rows::Tables(arguments) => return all(arguments),
        Rows::Counts { baseline, update } => return count(&baseline, update),
        Rows::Probe { step } => return probe::run(&step),
    };
    Ok(if json {
        serde_json::to_string_pretty(&report)?
    } else {
        report.table(base)
    })
}

/// Everything: the tables on standard output, the rest into a folder.
fn all(arguments: Tables) -> Result<String, Box<dyn std::error::Error>> {
    let room = tempfile::TempDir::new()?;
    let plan = tables::Plan {
        binaries: own(arguments.binaries)?,
        own: std::env::current_exe()?,
        peer: arguments.peer.map(|folder| folder.canonicalize()).transpose()?,
        source: tables::source(arguments.source, arguments.synthetic, &room)?,
        rounds: arguments.rounds,
        tiny: arguments.tiny,
        files: arguments.files,
        huge: arguments.huge,
        only: arguments.only,
    };
    let results = tables::run(&plan, &|section| eprintln!("measuring: {section}"))?;
    results.write(&arguments.output)?;
    let place = arguments.output.join("report.html");
    Ok(format!("{}\nReport: {}", results.table(), place.display()))
}

/// Counts instructions; a warning is all that comes of too many.
fn count(baseline: &Path, update: bool) -> Result<String, Box<dyn std::error::Error>> {
    let room = tempfile::TempDir::new()?;
    let counts = counts::count(&std::env::current_exe()?, room.path())?;
    if update {
        std::fs::write(baseline, serde_json::to_string_pretty(&counts)? + "\n")?;
    }
    let before: counts::Counts = serde_json::from_slice(&std::fs::read(baseline)?)?;
    let (text, above) = counts::compare(&counts, &before);
    if above {
        eprintln!(
            "ingot-bench: some loops take more instructions than {} says",
            baseline.display()
        );
    }
    Ok(text)
}

/// The folder of the binaries to measure.
fn own(given: Option<PathBuf>) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let folder = match given {
        Some(folder) => folder,
        None => std::env::current_exe()?
            .parent()
            .ok_or("this program lies in no folder")?
            .to_owned(),
    };
    Ok(folder.canonicalize()?)
}
