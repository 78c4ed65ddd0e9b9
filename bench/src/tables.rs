//! All rows of all tools in one run: a table for terminals, `results.json` for programs, and a page with charts.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::TempDir;

use crate::environment::Environment;
use crate::gcrypt::Keyring;
use crate::measure::Error;
use crate::page;
use crate::remote::{Storage, Tool};
use crate::report::Report;
use crate::{capture, chunks, engine, remote};

/// A group of rows that were measured together.
#[derive(Debug, Serialize)]
pub struct Section {
    /// For links.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// What was done, and what it does not show.
    pub note: &'static str,
    /// The tool that ratios are made to.
    pub base: &'static str,
    /// The figures.
    pub report: Report,
}

/// Everything that a run found out.
#[derive(Debug, Serialize)]
pub struct Results {
    /// What it was made on.
    pub environment: Environment,
    /// What the repository of the run was, in words.
    pub source: String,
    /// Groups in the order in which they were measured.
    pub sections: Vec<Section>,
}

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The folder of the programs.
    pub binaries: PathBuf,
    /// This program, for single steps of the engine.
    pub own: PathBuf,
    /// Another folder with `git-e2ee` and `git-remote-e2ee`.
    pub peer: Option<PathBuf>,
    /// The repository, and in words what it is.
    pub source: (PathBuf, String),
    /// How often each row is run.
    pub rounds: usize,
    /// One-line pushes in each round.
    pub tiny: usize,
    /// Files of 1 KiB in a snapshot.
    pub files: usize,
    /// MiB of the largest chunked file; 0 leaves it out.
    pub huge: usize,
    /// Ids of the sections to measure; all when empty.
    pub only: Vec<String>,
}

/// Ids of all sections.
pub const SECTIONS: [&str; 5] = ["directory", "carrier", "engine", "capture", "chunks"];

/// Measures, telling `say` what comes next.
pub fn run(plan: &Plan, say: &dyn Fn(&str)) -> Result<Results, Box<dyn std::error::Error>> {
    let mut environment = Environment::read(&plan.binaries);
    let keyring = Keyring::new()?;
    if plan.peer.is_none() {
        environment.missing.push("another git-e2ee".into());
    }
    let tools = |storage: Storage| {
        let mut tools = vec![
            Tool::Plain,
            Tool::Encrypted("ingot".into(), plan.binaries.clone(), storage),
        ];
        if let Some(peer) = &plan.peer {
            tools.push(Tool::Encrypted("peer".into(), peer.clone(), storage));
        }
        if let Some(keyring) = &keyring {
            tools.push(Tool::Gcrypt(keyring.clone(), storage));
        }
        tools
    };
    let mut sections = Vec::new();
    for id in SECTIONS {
        if !plan.only.is_empty() && !plan.only.iter().any(|only| only == id) {
            continue;
        }
        say(id);
        let mut report = Report::default();
        let (title, note, base) = match id {
            "directory" | "carrier" => {
                let storage = if id == "carrier" {
                    Storage::Carrier
                } else {
                    Storage::Directory
                };
                remote::run(
                    &tools(storage),
                    &plan.source.0,
                    plan.rounds,
                    plan.tiny,
                    &mut report,
                )?;
                match storage {
                    Storage::Directory => ("Encrypted remote in a folder", DIRECTORY, "git"),
                    Storage::Carrier => ("Encrypted remote on a branch of a repository", CARRIER, "git"),
                }
            }
            "engine" => {
                engine::run(&plan.own, &plan.source.0, plan.rounds, &mut report)?;
                ("The engine alone", ENGINE, "git")
            }
            "capture" => {
                capture::run(&plan.binaries.join("rivet"), plan.files, plan.rounds, &mut report)?;
                ("Snapshots of small files", CAPTURE, "cp")
            }
            _ => {
                let sizes = chunks::Sizes { huge: plan.huge };
                chunks::run(&plan.binaries.join("git-chunk"), sizes, plan.rounds, &mut report)?;
                ("Big files and many small ones", CHUNKS, "git")
            }
        };
        sections.push(Section {
            id,
            title,
            note,
            base,
            report,
        });
    }
    Ok(Results {
        environment,
        source: plan.source.1.clone(),
        sections,
    })
}

const DIRECTORY: &str = "git push and git fetch through file:// to a bare repository, and through each tool's own helper \
    to a folder. The receiver of plain Git indexes what it gets; storage that cannot read it does not.";
const CARRIER: &str = "The same with the ciphertext on a branch of a bare repository.";
const ENGINE: &str = "git rev-list --objects, git pack-objects --stdout and git index-pack beside the steps of the engine \
    that do the same.";
const CAPTURE: &str = "Text files of 1 KiB in two folders: copied with cp -a, committed with Git, backed up, captured. \
    Unchanged means a second time; for Git that is git status.";
const CHUNKS: &str = "Files that do not compress, added and committed with everything synced to disk, changed, and \
    checked out again.";

impl Results {
    /// A table for each section.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            text += &format!("{}\n\n{}\n", section.title, section.report.table(section.base));
        }
        if !self.environment.missing.is_empty() {
            text += &format!(
                "Not installed, so not measured: {}\n",
                self.environment.missing.join(", ")
            );
        }
        text
    }

    /// Writes `results.json` and `report.html` into a folder, which is made.
    pub fn write(&self, into: &Path) -> Result<(), Box<dyn std::error::Error>> {
        fs::create_dir_all(into)?;
        fs::write(into.join("results.json"), serde_json::to_string_pretty(self)?)?;
        fs::write(into.join("report.html"), page::html(self))?;
        Ok(())
    }
}

/// The repository to measure on: one that exists, or a made-up history in a folder that the caller keeps.
pub fn source(
    given: Option<PathBuf>,
    synthetic: Option<crate::synthetic::Size>,
    room: &TempDir,
) -> Result<(PathBuf, String), Box<dyn std::error::Error>> {
    let (place, kind) = match (given, synthetic) {
        (Some(given), _) => (given.canonicalize()?, "a given repository"),
        (None, Some(size)) => (
            crate::synthetic::make(size, &room.path().join("synthetic.git"))?,
            "a made-up history",
        ),
        (None, None) => {
            return Err("name a repository with --source, or have one made with --synthetic small".into());
        }
    };
    let count = crate::workload::text(&place, &["rev-list", "--count", "HEAD"])?;
    let bytes = pack_bytes(&place)?;
    Ok((
        place,
        format!("{kind}: {count} commits, {} MB of packs", bytes / 1_000_000),
    ))
}

fn pack_bytes(place: &Path) -> Result<u64, Error> {
    let folder = crate::workload::text(place, &["rev-parse", "--git-path", "objects/pack"])?;
    crate::workload::bytes_in(&place.join(folder))
}
