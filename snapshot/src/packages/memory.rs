//! Spares the reading of package databases that look as they did when they were last read.
//!
//! A reading notes each path that it looked at and what the system said of it: kind, size, both times, number of the
//! file, or why there is none. What looks the same is the same, with the rule of [`is_racy`] for what changed just
//! before it was read. The program itself is one of the paths, because another one may read more.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::capture::stat_cache::is_racy;
use crate::capture::walk::Stat;
use crate::manifest::Time;
use crate::records::{self, Input, Output};
use crate::rooted::is_absent;

const MAGIC: &[u8; 8] = b"RIVETPK1";

/// What the system says about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// There is this.
    There(Stat),
    /// There is nothing that can be looked at; the number of the error.
    Failed(i32),
}

impl View {
    /// The error, if it is another one than that there is nothing.
    pub(super) fn error(self) -> Option<io::Error> {
        match self {
            View::There(_) => None,
            View::Failed(code) => {
                let error = io::Error::from_raw_os_error(code);
                (!is_absent(&error)).then_some(error)
            }
        }
    }
}

/// One look at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    path: PathBuf,
    /// Whether links were followed.
    follow: bool,
    pub(super) view: View,
}

impl Look {
    /// Looks.
    pub(super) fn at(path: &Path, follow: bool) -> Look {
        Look {
            path: path.to_owned(),
            follow,
            view: view(path, follow),
        }
    }
}

fn view(path: &Path, follow: bool) -> View {
    let found = match follow {
        true => rustix::fs::stat(path),
        false => rustix::fs::lstat(path),
    };
    match found {
        Ok(stat) => View::There(Stat::of(&stat)),
        Err(error) => View::Failed(error.raw_os_error()),
    }
}

/// The list of installed packages as a snapshot keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// JSON, one line a member, so that versions of it are easy to compare.
    pub bytes: Vec<u8>,
    /// What the file of [`document`]'s last argument should hold from now on; `None` where it holds that already.
    pub memory: Option<Vec<u8>>,
}

/// The list of what is installed, as [`installed`](super::installed) reads it. It is not read again where the file
/// `memory` has it from databases that still look the same.
pub fn document(root: &Path, home: &Path, memory: &Path) -> serde_json::Result<Document> {
    let began = Time::now();
    let program = std::env::current_exe().ok();
    if let Some(program) = &program
        && let Some(bytes) = recall(root, home, program, memory)
    {
        return Ok(Document { bytes, memory: None });
    }
    let program = program.map(|path| Look::at(&path, true));
    let (inventory, looks) = super::look(root, home);
    let mut bytes = serde_json::to_vec_pretty(&inventory)?;
    bytes.push(b'\n');
    let memory = match (began, program) {
        (Some(began), Some(program)) => Some(note(root, home, program, looks, began, &bytes)),
        _ => None,
    };
    Ok(Document { bytes, memory })
}

/// What is remembered: root and home folder, when the reading began, the program and the other looks, the document.
fn note(
    root: &Path,
    home: &Path,
    program: Look,
    mut looks: Vec<Look>,
    began: Time,
    document: &[u8],
) -> Vec<u8> {
    looks.push(program);
    looks.sort_by(|a, b| (&a.path, a.follow).cmp(&(&b.path, b.follow)));
    // Of a path that changed meanwhile both stay, and one of them will not be there any more.
    looks.dedup();
    let mut out = Output::new(MAGIC);
    out.bytes(root.as_os_str().as_bytes());
    out.bytes(home.as_os_str().as_bytes());
    out.time(began);
    out.u64(looks.len() as u64);
    for look in &looks {
        out.bytes(look.path.as_os_str().as_bytes());
        match look.view {
            View::There(stat) => {
                out.raw(&[u8::from(look.follow)]);
                out.stat(&stat);
            }
            View::Failed(code) => {
                out.raw(&[u8::from(look.follow) | 2]);
                out.u32(code as u32);
            }
        }
    }
    out.raw(document);
    out.seal()
}

/// The remembered document, if everything that it depends on looks the same.
fn recall(root: &Path, home: &Path, program: &Path, memory: &Path) -> Option<Vec<u8>> {
    let bytes = records::read(memory, MAGIC)?;
    let mut input = Input(&bytes[MAGIC.len()..]);
    if input.bytes()? != root.as_os_str().as_bytes() || input.bytes()? != home.as_os_str().as_bytes() {
        return None;
    }
    let began = input.time()?;
    let mut is_ours = false;
    for _ in 0..input.u64()? {
        let path = Path::new(OsStr::from_bytes(input.bytes()?));
        is_ours |= path == program;
        let flags = input.byte()?;
        let then = match flags & 2 {
            0 => View::There(input.stat()?),
            _ => View::Failed(input.u32()? as i32),
        };
        let is_certain = match then {
            View::There(stat) => !is_racy(&stat, began),
            View::Failed(_) => true,
        };
        if !is_certain || view(path, flags & 1 != 0) != then {
            return None;
        }
    }
    is_ours.then(|| input.0.to_vec())
}
