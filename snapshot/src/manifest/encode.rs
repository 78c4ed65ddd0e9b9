//! Writes manifests.

use std::io::Write as _;

use super::{EntryRef, FORMAT, KindRef, Reason, Time, VERSION, WITHOUT_HARD_LINKS};

/// A manifest in the making. Entries come in path order.
#[derive(Debug)]
pub struct Encoder {
    out: Vec<u8>,
    any: bool,
    version: u32,
    /// Where in the document the version is, a single digit.
    version_at: usize,
}

impl Encoder {
    /// Begins a document.
    pub fn new(secret_scan_version: u32) -> Encoder {
        let mut out = Vec::with_capacity(4096);
        let _ = write!(out, "{{\"format\":\"{FORMAT}\",\"version\":");
        let (version, version_at) = (WITHOUT_HARD_LINKS, out.len());
        let _ = write!(
            out,
            "{version},\"secret_scan_version\":{secret_scan_version},\"entries\":["
        );
        Encoder {
            out,
            any: false,
            version,
            version_at,
        }
    }

    /// Adds an entry.
    pub fn entry(&mut self, entry: EntryRef<'_>) {
        self.out.extend_from_slice(if self.any { b",\n" } else { b"\n" });
        self.any = true;
        if entry.hard_link.is_some() {
            self.version = VERSION;
        }
        line(&mut self.out, entry);
    }

    /// Adds what was not captured and ends the document.
    pub fn finish<'a>(mut self, skipped: impl IntoIterator<Item = (&'a [u8], Reason)>) -> Vec<u8> {
        self.out.extend_from_slice(b"\n],\"skipped\":[");
        for (number, (path, reason)) in skipped.into_iter().enumerate() {
            self.out
                .extend_from_slice(if number > 0 { b",\n{" } else { b"\n{" });
            text(&mut self.out, "path", path);
            let _ = write!(self.out, ",\"reason\":\"{}\"}}", reason.word());
        }
        self.out.extend_from_slice(b"\n]}\n");
        self.out[self.version_at] = b'0' + self.version as u8;
        self.out
    }
}

/// What a manifest affirms, as a hash: everything but the times of folders, which change whenever something is made in
/// them that is not tracked.
pub fn affirmation<'a>(
    secret_scan_version: u32,
    entries: impl IntoIterator<Item = EntryRef<'a>>,
    skipped: impl IntoIterator<Item = (&'a [u8], Reason)>,
) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&secret_scan_version.to_le_bytes());
    let mut out = Vec::new();
    for mut entry in entries {
        if entry.kind == KindRef::Folder {
            entry.mtime = Time::default();
        }
        line(&mut out, entry);
        out.push(b'\n');
        if out.len() > 60_000 {
            hasher.update(&out);
            out.clear();
        }
    }
    for (path, reason) in skipped {
        text(&mut out, "path", path);
        out.extend_from_slice(reason.word().as_bytes());
        out.push(b'\n');
    }
    hasher.update(&out);
    hasher.finalize()
}

fn line(out: &mut Vec<u8>, entry: EntryRef<'_>) {
    out.push(b'{');
    text(out, "path", entry.path);
    let kind = match entry.kind {
        KindRef::Folder => "folder",
        KindRef::File(_) => "file",
        KindRef::Link { .. } => "link",
    };
    let _ = write!(
        out,
        ",\"kind\":\"{kind}\",\"mode\":\"{:04o}\",\"mtime\":{},\"mtime_ns\":{}",
        entry.mode, entry.mtime.seconds, entry.mtime.nanoseconds
    );
    match entry.kind {
        KindRef::Folder => {}
        KindRef::File(content) => {
            let _ = write!(out, ",\"size\":{},\"blake3\":\"", content.size);
            hex(out, &content.blake3);
            out.extend_from_slice(b"\",\"git\":\"");
            hex(out, content.id.as_bytes());
            out.push(b'"');
            if let Some(first) = entry.hard_link {
                out.push(b',');
                text(out, "hard_link", first);
            }
        }
        KindRef::Link { target, id } => {
            out.push(b',');
            text(out, "target", target);
            out.extend_from_slice(b",\"git\":\"");
            hex(out, id.as_bytes());
            out.push(b'"');
        }
    }
    out.push(b'}');
}

/// A member with bytes for value: a string where they are UTF-8, otherwise hexadecimal digits under another name.
fn text(out: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(value) => {
            let _ = write!(out, "\"{name}\":\"");
            string(out, value);
            out.push(b'"');
        }
        Err(_) => {
            let _ = write!(out, "\"{name}_hex\":\"");
            hex(out, bytes);
            out.push(b'"');
        }
    }
}

/// Escapes what JSON demands, and no more.
fn string(out: &mut Vec<u8>, value: &str) {
    let mut plain = 0;
    let bytes = value.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[plain..at]);
        plain = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
    }
    out.extend_from_slice(&bytes[plain..]);
}

fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}
