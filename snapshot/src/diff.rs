//! What differs between two snapshots, or a snapshot and what is there now, as text.

use std::fs::File;
use std::io::Read as _;

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use ingot_engine::store;

use crate::archive::Reader;
use crate::capture::What;
use crate::manifest::{Content, EntryRef, KindRef};
use crate::rooted::Root;
use crate::show;

/// Larger files are compared, but their lines are not shown.
pub const SHOWN: u64 = 4 << 20;
/// A zero byte among so many first ones makes a file binary, as in Git.
const LOOKED_AT: usize = 8000;

/// One side of a difference.
pub enum Side<'a> {
    /// Content from the repository.
    Stored(Box<Reader>),
    /// Files as they are now.
    Present(&'a Root),
}

/// The difference of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
    /// The lines cannot be shown: not text, or too large.
    pub binary: bool,
    /// Header and hunks, as `diff -u` writes them.
    pub text: String,
}

/// Compares one path. Folders have no text.
pub fn file(
    what: What,
    old: Option<&EntryRef<'_>>,
    new: Option<&EntryRef<'_>>,
    sides: (&mut Side<'_>, &mut Side<'_>),
) -> Result<FileDiff, store::Error> {
    let (old_text, new_text) = (content(old, sides.0)?, content(new, sides.1)?);
    let path = old
        .or(new)
        .map(|entry| show::path(entry.path))
        .unwrap_or_default();
    let mut diff = FileDiff {
        added: 0,
        removed: 0,
        binary: false,
        text: header(what, &path, old, new),
    };
    if what == What::ModeChanged || what == What::Touched {
        return Ok(diff);
    }
    let is_folder = |entry: Option<&EntryRef<'_>>| entry.is_some_and(|entry| entry.kind == KindRef::Folder);
    if is_folder(old) || is_folder(new) {
        return Ok(diff);
    }
    let (Some(old_text), Some(new_text)) = (old_text, new_text) else {
        diff.binary = true;
        diff.text.push_str("Binary or large files differ\n");
        return Ok(diff);
    };
    let input = InternedInput::new(old_text.as_str(), new_text.as_str());
    let mut lines = Diff::compute(Algorithm::Histogram, &input);
    lines.postprocess_lines(&input);
    diff.added = u64::from(lines.count_additions());
    diff.removed = u64::from(lines.count_removals());
    let hunks = lines
        .unified_diff(
            &BasicLineDiffPrinter(&input.interner),
            UnifiedDiffConfig::default(),
            &input,
        )
        .to_string();
    if !hunks.is_empty() {
        let side = |entry: Option<&EntryRef<'_>>, letter: &str| match entry {
            Some(_) => format!("{letter}/{path}"),
            None => "/dev/null".to_owned(),
        };
        diff.text
            .push_str(&format!("--- {}\n+++ {}\n", side(old, "a"), side(new, "b")));
        diff.text.push_str(&hunks);
        if !diff.text.ends_with('\n') {
            diff.text.push('\n');
        }
    }
    Ok(diff)
}

fn header(what: What, path: &str, old: Option<&EntryRef<'_>>, new: Option<&EntryRef<'_>>) -> String {
    let mut text = format!("{} {path}", what.word());
    if let (Some(old), Some(new)) = (old, new)
        && old.mode != new.mode
    {
        text.push_str(&format!(" (mode {:04o} to {:04o})", old.mode, new.mode));
    }
    text.push('\n');
    text
}

/// The text of one side: empty where nothing is, `None` where it is none.
fn content(entry: Option<&EntryRef<'_>>, side: &mut Side<'_>) -> Result<Option<String>, store::Error> {
    let Some(entry) = entry else {
        return Ok(Some(String::new()));
    };
    match entry.kind {
        KindRef::Folder => Ok(Some(String::new())),
        KindRef::Link { target, .. } => Ok(Some(format!("link to {}\n", show::path(target)))),
        KindRef::File(content) if content.size > SHOWN => Ok(None),
        KindRef::File(content) => Ok(text(bytes(entry.path, &content, side)?)),
    }
}

fn bytes(path: &[u8], content: &Content, side: &mut Side<'_>) -> Result<Option<Vec<u8>>, store::Error> {
    let mut out = Vec::new();
    match side {
        Side::Stored(reader) => {
            let found = reader.store.read(&content.id, &mut reader.cache, &mut out)?;
            Ok(found.map(|_| out))
        }
        // What changed or went since it was looked at is shown as it is now, or not at all.
        Side::Present(root) => {
            let read = root
                .file(path)
                .and_then(|file| File::from(file).take(SHOWN + 1).read_to_end(&mut out));
            Ok(read.is_ok().then_some(out))
        }
    }
}

fn text(bytes: Option<Vec<u8>>) -> Option<String> {
    let bytes = bytes?;
    if bytes[..bytes.len().min(LOOKED_AT)].contains(&0) {
        return None;
    }
    // Terminals obey control characters, which come from files here.
    let text = String::from_utf8_lossy(&bytes);
    let calm = |character: char| match character {
        '\n' | '\t' => character,
        '\r' => '\u{240d}',
        character if character.is_control() => '\u{fffd}',
        character => character,
    };
    Some(text.chars().map(calm).collect())
}
