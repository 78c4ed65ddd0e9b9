//! `ingot-bench`: side-by-side measurements.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ingot_bench::{capture, chunks, engine, generations, probe, remote, report::Report};

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
    /// One-line pushes and fetches, and a fresh clone, of stores with many generations.
    Generations {
        /// The folder of `git-e2ee` and `git-remote-e2ee` to measure; the default is this program's own.
        #[arg(long)]
        binaries: Option<PathBuf>,
        /// Generations of the stores.
        #[arg(long, value_delimiter = ',', default_value = "10,1000,5000")]
        counts: Vec<usize>,
        /// Stores on a branch of a bare repository instead of in a folder.
        #[arg(long)]
        carrier: bool,
        /// Pushes and fetches of each store, in turns; medians are reported.
        #[arg(long, default_value_t = 9)]
        rounds: usize,
        /// Prints every run as JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// One-line pushes and fetches of stores with many readers.
    Readers {
        /// The folder of `git-e2ee` and `git-remote-e2ee` to measure; the default is this program's own.
        #[arg(long)]
        binaries: Option<PathBuf>,
        /// Readers of the stores.
        #[arg(long, value_delimiter = ',', default_value = "2,100")]
        counts: Vec<usize>,
        /// Pushes and fetches of each store, in turns; medians are reported.
        #[arg(long, default_value_t = 9)]
        rounds: usize,
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
    /// One step of the engine, for other rows to measure.
    #[command(hide = true)]
    Probe {
        #[command(subcommand)]
        step: probe::Step,
    },
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
    let mut base = String::from("git");
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
            binaries,
            rounds,
            tiny,
            json,
        } => {
            remote::growth(
                &own(binaries)?,
                &source.canonicalize()?,
                rounds,
                tiny,
                &mut report,
            )?;
            base = "half".to_owned();
            json
        }
        Rows::Generations {
            binaries,
            counts,
            carrier,
            rounds,
            json,
        } => {
            let storage = match carrier {
                true => remote::Storage::Carrier,
                false => remote::Storage::Directory,
            };
            generations::run(&own(binaries)?, storage, &counts, rounds, &mut report)?;
            base = counts
                .first()
                .map(|count| format!("{count:>6}"))
                .unwrap_or_default();
            json
        }
        Rows::Readers {
            binaries,
            counts,
            rounds,
            json,
        } => {
            generations::readers(&own(binaries)?, &counts, rounds, &mut report)?;
            base = counts
                .first()
                .map(|count| format!("{count:>6}"))
                .unwrap_or_default();
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
            base = "cp".to_owned();
            json
        }
        Rows::Probe { step } => return probe::run(&step),
    };
    Ok(if json {
        serde_json::to_string_pretty(&report)?
    } else {
        report.table(&base)
    })
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
