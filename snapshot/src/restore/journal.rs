//! What a restore is about to do, written down before it does it.
//!
//! Each restore has a folder below the undo folder, named by its time: `journal` says what is planned, and `kept/N` is
//! what step N replaced or took away. A step whose kept file is missing was not carried out.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use ingot_engine::durable::{self, Fs, Real};
use serde::{Deserialize, Serialize};

use super::Error;
use super::plan::{Action, Plan};
use crate::capture::walk::Stat;
use crate::manifest::{Kind, Manifest, Time};
use crate::rooted::Root;

/// The name of a journal in its folder.
const JOURNAL: &str = "journal";
/// No journal is longer: a line for each of some millions of files.
const LONGEST: u64 = 1 << 31;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    version: u32,
    root: String,
}

/// What was planned for one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Did {
    /// A folder was made.
    Folder,
    /// A file or link was made.
    Create,
    /// A file or link was replaced; the old one is kept.
    Replace,
    /// Permissions or times were set.
    Adjust,
    /// A file, link or empty folder was taken away.
    Delete,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) did: Did,
    path: String,
    /// What was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtime: Option<(i64, u32)>,
    /// What the restore put there: BLAKE3 of a file, or the target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) blake3: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
}

impl Line {
    pub(super) fn path(&self) -> Option<Vec<u8>> {
        let path = HEXLOWER.decode(self.path.as_bytes()).ok()?;
        let safe = path
            .split(|&byte| byte == b'/')
            .all(|name| !name.is_empty() && name != b"." && name != b"..");
        safe.then_some(path)
    }

    /// When the old file was last changed.
    pub(super) fn time(&self) -> Option<Time> {
        self.mtime
            .map(|(seconds, nanoseconds)| Time { seconds, nanoseconds })
    }
}

/// A journal that is durable.
#[derive(Debug)]
pub(super) struct Journal {
    kept: Root,
}

impl Journal {
    /// Writes down what a plan will do. Of older journals, the newest are kept.
    pub(super) fn begin(
        undo: &Path,
        target: &Path,
        plan: &Plan,
        manifest: &Manifest,
        keep: usize,
    ) -> Result<Journal, Error> {
        durable::create_dirs(&Real, undo, 0o700)?;
        let all = list(undo)?;
        for old in all.iter().rev().skip(keep.saturating_sub(1)) {
            remove(old)?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let folder = undo.join(format!("{:020}", now.as_nanos()));
        let kept = folder.join("kept");
        durable::create_dirs(&Real, &kept, 0o700)?;
        let mut text = Vec::new();
        let head = Head {
            version: 1,
            root: HEXLOWER.encode(target.as_os_str().as_encoded_bytes()),
        };
        push(&mut text, &head);
        for step in &plan.steps {
            let entry = step.entry.map(|at| &manifest.entries[at]);
            let (did, old): (Did, Option<Stat>) = match step.action {
                Action::MakeFolder => (Did::Folder, None),
                Action::Create => (Did::Create, None),
                Action::Replace(stat) => (Did::Replace, Some(stat)),
                Action::Adjust(stat) => (Did::Adjust, Some(stat)),
                Action::Delete(stat) => (Did::Delete, Some(stat)),
            };
            let (blake3, target) = match entry.map(|entry| &entry.kind) {
                Some(Kind::File(content)) => (Some(HEXLOWER.encode(&content.blake3)), None),
                Some(Kind::Link { target, .. }) => (None, Some(HEXLOWER.encode(target))),
                _ => (None, None),
            };
            push(
                &mut text,
                &Line {
                    did,
                    path: HEXLOWER.encode(&step.path),
                    mode: old.map(|stat| stat.mode),
                    mtime: old.map(|stat| (stat.mtime.seconds, stat.mtime.nanoseconds)),
                    blake3,
                    target,
                },
            );
        }
        durable::write_atomic(&Real, &folder.join(JOURNAL), &text, 0o600)?;
        let kept = Root::open(&kept).map_err(|error| Error::io("open", &kept, error))?;
        Ok(Journal { kept })
    }

    /// Where step N's old file goes, under the name N.
    pub(super) fn kept(&self) -> &Root {
        &self.kept
    }
}

fn push(text: &mut Vec<u8>, value: &impl Serialize) {
    // These are numbers and strings, which can always be written.
    let _ = serde_json::to_writer(&mut *text, value);
    text.push(b'\n');
}

/// The folders of all journals, oldest first.
pub(super) fn list(undo: &Path) -> Result<Vec<PathBuf>, Error> {
    let names = match Real.read_dir(undo) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", undo, error)),
    };
    let is_number = |name: &std::ffi::OsString| {
        let bytes = name.as_encoded_bytes();
        bytes.len() == 20 && bytes.iter().all(u8::is_ascii_digit)
    };
    let mut folders: Vec<PathBuf> = names
        .into_iter()
        .filter(is_number)
        .map(|name| undo.join(name))
        .collect();
    folders.sort();
    Ok(folders)
}

/// Forgets a journal and what it kept: first the journal, so that no half of it is ever believed.
pub(super) fn remove(folder: &Path) -> Result<(), Error> {
    let journal = folder.join(JOURNAL);
    match Real.unlink(&journal) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("remove", &journal, error));
        }
        _ => {}
    }
    std::fs::remove_dir_all(folder).map_err(|error| Error::io("remove", folder, error))
}

/// The root and the lines of a journal; `None` where the journal was never finished, so that nothing was done.
pub(super) fn read(folder: &Path) -> Result<Option<(PathBuf, Vec<Line>)>, Error> {
    let path = folder.join(JOURNAL);
    let mut text = Vec::new();
    match File::open(&path) {
        Ok(file) => file
            .take(LONGEST)
            .read_to_end(&mut text)
            .map_err(|error| Error::io("read", &path, error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", &path, error)),
    };
    let damaged = |line: usize| Error::Journal {
        path: path.clone(),
        line,
    };
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let head: Head = serde_json::from_slice(lines.next().unwrap_or_default()).map_err(|_| damaged(1))?;
    let root = HEXLOWER.decode(head.root.as_bytes()).map_err(|_| damaged(1))?;
    if head.version != 1 {
        return Err(damaged(1));
    }
    let mut all = Vec::new();
    for (number, line) in lines.enumerate() {
        let line: Line = serde_json::from_slice(line).map_err(|_| damaged(number + 2))?;
        if line.path().is_none() {
            return Err(damaged(number + 2));
        }
        all.push(line);
    }
    Ok(Some((crate::show::os(&root).to_owned(), all)))
}

/// The name of what step N kept.
pub(super) fn kept_name(step: usize) -> String {
    format!("{step:09}")
}
