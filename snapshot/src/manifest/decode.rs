//! Reads manifests, which come from a repository that others may have written.

use gix_hash::ObjectId;
use serde::Deserialize;

use super::{
    Content, Encoder, Entry, FORMAT, Kind, Manifest, Reason, Skip, Time, VERSION, WITHOUT_HARD_LINKS, order,
    parent,
};

/// No line is longer: a path and a link target of the lengths that systems allow, escaped.
const LONGEST_LINE: usize = 128 * 1024;

/// Why bytes are no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Made by a later version of the program.
    #[error(
        "the manifest has version {0}, and this program knows those up to {VERSION}; use a newer program"
    )]
    Version(u32),
    /// Not in the one form that a manifest has.
    #[error("the manifest is damaged in line {line}: {reason}")]
    Damaged {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
    secret_scan_version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: Option<String>,
    path_hex: Option<String>,
    kind: Option<String>,
    mode: Option<String>,
    mtime: Option<i64>,
    mtime_ns: Option<u32>,
    size: Option<u64>,
    blake3: Option<String>,
    git: Option<String>,
    target: Option<String>,
    target_hex: Option<String>,
    hard_link: Option<String>,
    hard_link_hex: Option<String>,
    reason: Option<String>,
}

/// Reads a document. Everything that a restore relies on is checked: paths stay below the root, come in order and once,
/// and each lies in a folder of the same manifest, never in a link.
pub fn decode(bytes: &[u8], format: gix_hash::Kind) -> Result<Manifest, Error> {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let damaged = |line: usize, reason: &str| Error::Damaged {
        line,
        reason: reason.to_owned(),
    };
    let head = lines.next().unwrap_or_default();
    let start = head
        .strip_suffix(b"\n")
        .and_then(|head| head.strip_suffix(b",\"entries\":["))
        .filter(|head| head.len() < 1000)
        .ok_or_else(|| damaged(1, "it does not begin as a manifest does"))?;
    let head: Head = serde_json::from_slice(&[start, b"}"].concat())
        .map_err(|_| damaged(1, "it does not begin as a manifest does"))?;
    if head.format != FORMAT {
        return Err(damaged(1, "it does not begin as a manifest does"));
    }
    if !(WITHOUT_HARD_LINKS..=VERSION).contains(&head.version) {
        return Err(Error::Version(head.version));
    }
    let mut manifest = Manifest {
        secret_scan_version: head.secret_scan_version,
        ..Manifest::default()
    };
    let mut in_skipped = false;
    let mut ended = false;
    for (number, line) in lines.enumerate() {
        let number = number + 2;
        match line {
            _ if ended => return Err(damaged(number, "bytes follow the end")),
            b"],\"skipped\":[\n" if !in_skipped => in_skipped = true,
            b"]}\n" if in_skipped => ended = true,
            _ if line.len() > LONGEST_LINE => return Err(damaged(number, "it is too long")),
            _ => {
                let object = line.strip_suffix(b"\n").unwrap_or(line);
                let object = object.strip_suffix(b",").unwrap_or(object);
                let parsed: Line =
                    serde_json::from_slice(object).map_err(|error| damaged(number, &error.to_string()))?;
                let checked = match in_skipped {
                    false => entry(parsed, format).and_then(|entry| push_entry(&mut manifest, entry)),
                    true => skip(parsed).and_then(|skip| push_skip(&mut manifest, skip)),
                };
                checked.map_err(|reason| damaged(number, reason))?;
            }
        }
    }
    if !ended {
        return Err(damaged(
            bytes.split(|&byte| byte == b'\n').count(),
            "it is cut off",
        ));
    }
    same_form(bytes, &manifest)?;
    Ok(manifest)
}

/// There is one form for each manifest: whatever was read differently from how it would be written is refused.
fn same_form(bytes: &[u8], manifest: &Manifest) -> Result<(), Error> {
    let mut encoder = Encoder::new(manifest.secret_scan_version);
    for entry in &manifest.entries {
        encoder.entry(entry.borrow());
    }
    let skipped = manifest
        .skipped
        .iter()
        .map(|skip| (skip.path.as_slice(), skip.reason));
    let encoded = encoder.finish(skipped);
    if encoded == bytes {
        return Ok(());
    }
    let differs = encoded.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    let line = bytes[..differs].iter().filter(|&&byte| byte == b'\n').count() + 1;
    Err(Error::Damaged {
        line,
        reason: "it is not in the form in which manifests are written".to_owned(),
    })
}

fn entry(line: Line, format: gix_hash::Kind) -> Result<Entry, &'static str> {
    let path = bytes_of(line.path, line.path_hex).ok_or("it has no path")?;
    check_path(&path)?;
    let mode = line
        .mode
        .and_then(|mode| u32::from_str_radix(&mode, 8).ok())
        .filter(|mode| *mode <= 0o7777)
        .ok_or("its mode is none")?;
    let mtime = match (line.mtime, line.mtime_ns) {
        (Some(seconds), Some(nanoseconds)) if nanoseconds < 1_000_000_000 => Time { seconds, nanoseconds },
        _ => return Err("its time is none"),
    };
    let id = || {
        let text = line
            .git
            .as_deref()
            .filter(|text| text.len() == format.len_in_hex());
        text.and_then(|text| ObjectId::from_hex(text.as_bytes()).ok())
            .ok_or("its Git object is none")
    };
    let kind = match line.kind.as_deref() {
        Some("folder") => Kind::Folder,
        Some("file") => Kind::File(Content {
            size: line.size.ok_or("it has no size")?,
            blake3: line
                .blake3
                .as_deref()
                .and_then(unhex)
                .and_then(|hash| hash.try_into().ok())
                .ok_or("its BLAKE3 is none")?,
            id: id()?,
        }),
        Some("link") => {
            let target = bytes_of(line.target, line.target_hex).ok_or("it has no target")?;
            if target.is_empty() || target.contains(&0) || target.len() > 4096 {
                return Err("its target is none");
            }
            Kind::Link { target, id: id()? }
        }
        _ => return Err("its kind is unknown"),
    };
    let hard_link = match (line.hard_link, line.hard_link_hex) {
        (None, None) => None,
        (text, hex) => Some(bytes_of(text, hex).ok_or("what it is a hard link to is no path")?),
    };
    Ok(Entry {
        path,
        kind,
        mode,
        mtime,
        hard_link,
    })
}

fn skip(line: Line) -> Result<Skip, &'static str> {
    let path = bytes_of(line.path, line.path_hex).ok_or("it has no path")?;
    check_path(&path)?;
    let reason = line.reason.ok_or("it has no reason")?;
    let found = Reason::ALL.iter().find(|(_, word)| *word == reason);
    let (reason, _) = found.ok_or("its reason is unknown")?;
    Ok(Skip {
        path,
        reason: *reason,
    })
}

fn push_entry(manifest: &mut Manifest, entry: Entry) -> Result<(), &'static str> {
    if let Some(last) = manifest.entries.last()
        && order(&last.path, &entry.path).is_ge()
    {
        return Err("it is out of order");
    }
    let folder = parent(&entry.path);
    if !folder.is_empty() {
        let holds = |entry: &Entry| entry.path == folder && entry.kind == Kind::Folder;
        let near = manifest.entries.last().is_some_and(holds);
        if !near && !manifest.find(folder).is_some_and(holds) {
            return Err("it does not lie in a folder of this manifest");
        }
    }
    if let Some(first) = &entry.hard_link {
        let is_same_file = manifest.find(first).is_some_and(|first| {
            matches!(first.kind, Kind::File(_))
                && first.hard_link.is_none()
                && (&first.kind, first.mode, first.mtime) == (&entry.kind, entry.mode, entry.mtime)
        });
        if !is_same_file {
            return Err("it is a hard link to what is not the same file");
        }
    }
    manifest.entries.push(entry);
    Ok(())
}

fn push_skip(manifest: &mut Manifest, skip: Skip) -> Result<(), &'static str> {
    if let Some(last) = manifest.skipped.last()
        && order(&last.path, &skip.path)
            .then(last.reason.cmp(&skip.reason))
            .is_ge()
    {
        return Err("it is out of order");
    }
    manifest.skipped.push(skip);
    Ok(())
}

/// A path that stays below the root on every system.
fn check_path(path: &[u8]) -> Result<(), &'static str> {
    if path.len() > 16 * 1024 || path.contains(&0) {
        return Err("its path is none");
    }
    for name in path.split(|&byte| byte == b'/') {
        if name.is_empty() || name == b"." || name == b".." {
            return Err("its path is none");
        }
    }
    Ok(())
}

fn bytes_of(text: Option<String>, hex: Option<String>) -> Option<Vec<u8>> {
    match (text, hex) {
        (Some(text), None) => Some(text.into_bytes()),
        (None, Some(hex)) => unhex(&hex),
        _ => None,
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).ok()
}
