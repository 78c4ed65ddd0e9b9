//! What the Go linker writes into a program about its modules (`debug/buildinfo` in Go's library, from Go 1.18 on).

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memmem;

/// Begins the record: 14 bytes, then the size of a pointer and flags.
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// The strings stand behind the header, each with its length.
const INLINE: u8 = 2;
const HEADER: usize = 32;
/// Module information that is believed.
const MAX_RECORD: u64 = 4 << 20;
/// Bytes of a program that are searched when its sections do not tell the place.
const MAX_SEARCH: u64 = 512 << 20;
/// Sections of a program that are looked at.
const MAX_SECTIONS: u64 = 4096;

/// A program and the module that it was built from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BuildInfo {
    /// The package of the program, as `go install` takes it.
    pub path: String,
    /// Its module's version; `(devel)` when it was built in a work tree.
    pub version: String,
}

/// Reads the record of a program. Nothing when there is none.
pub(super) fn read(file: &mut (impl Read + Seek)) -> io::Result<Option<BuildInfo>> {
    if let Some(offset) = section(file)?
        && let Some(found) = at(file, offset)?
    {
        return Ok(Some(found));
    }
    search(file)
}

/// Looks for the record everywhere.
fn search(file: &mut (impl Read + Seek)) -> io::Result<Option<BuildInfo>> {
    let finder = memmem::Finder::new(MAGIC);
    let mut block = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < MAX_SEARCH {
        file.seek(SeekFrom::Start(offset))?;
        let length = fill(file, &mut block)?;
        for place in finder.find_iter(&block[..length]) {
            if let Some(found) = at(file, offset + place as u64)? {
                return Ok(Some(found));
            }
        }
        if length < block.len() {
            break;
        }
        // The record may begin in this block and go on in the next one.
        offset += (length - MAGIC.len()) as u64;
    }
    Ok(None)
}

/// The record at an offset, if it is one.
fn at(file: &mut (impl Read + Seek), offset: u64) -> io::Result<Option<BuildInfo>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut record = Vec::new();
    file.take(MAX_RECORD).read_to_end(&mut record)?;
    Ok(parse(&record))
}

/// Takes a record apart.
fn parse(record: &[u8]) -> Option<BuildInfo> {
    if !record.starts_with(MAGIC) || record.get(15)? & INLINE == 0 {
        return None;
    }
    let (go, rest) = string(record.get(HEADER..)?)?;
    if !go.starts_with(b"go") && !go.starts_with(b"devel") {
        return None;
    }
    let (framed, _) = string(rest)?;
    // Sixteen bytes on both sides let tools find the text in any program.
    let text = framed.get(16..framed.len().checked_sub(16)?)?;
    let text = std::str::from_utf8(text).ok()?;
    let mut path = None;
    let mut version = None;
    for line in text.lines() {
        let mut fields = line.split('\t');
        match fields.next() {
            Some("path") => path = fields.next(),
            Some("mod") => version = fields.nth(1),
            _ => {}
        }
    }
    let clean = |text: &&str| !text.is_empty() && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    Some(BuildInfo {
        path: path.filter(clean)?.to_owned(),
        version: version.filter(clean).unwrap_or("(devel)").to_owned(),
    })
}

/// A string behind its length, and what follows it.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0u64;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return bytes[at + 1..].split_at_checked(usize::try_from(length).ok()?);
        }
    }
    None
}

/// Where the section `.go.buildinfo` of a little-endian 64-bit ELF program lies in its file.
fn section(file: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let mut header = [0; 64];
    file.seek(SeekFrom::Start(0))?;
    if fill(file, &mut header)? < header.len() || !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let table = number(&header, 0x28, 8);
    let size = number(&header, 0x3a, 2);
    let count = number(&header, 0x3c, 2).min(MAX_SECTIONS);
    let names = number(&header, 0x3e, 2);
    if size != 64 || names >= count {
        return Ok(None);
    }
    let mut sections = vec![0; (count * size) as usize];
    file.seek(SeekFrom::Start(table))?;
    if fill(file, &mut sections)? < sections.len() {
        return Ok(None);
    }
    let names = &sections[(names * size) as usize..];
    let (names, length) = (number(names, 0x18, 8), number(names, 0x20, 8).min(1 << 20));
    let mut text = vec![0; length as usize];
    file.seek(SeekFrom::Start(names))?;
    let length = fill(file, &mut text)?;
    let text = &text[..length];
    let place = sections
        .chunks_exact(64)
        .find(|section| {
            let name = usize::try_from(number(section, 0, 4))
                .ok()
                .and_then(|name| text.get(name..));
            name.is_some_and(|name| name.starts_with(b".go.buildinfo\0"))
        })
        .map(|section| number(section, 0x18, 8));
    Ok(place)
}

/// A little-endian number of `width` bytes, at most 8; the caller has checked that they are there.
fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let digits = bytes.get(at..at + width).unwrap_or_default();
    digits
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use super::*;

    /// A record as the linker writes it.
    pub fn record(path: &str, version: &str) -> Vec<u8> {
        let text = format!(
            "path\t{path}\nmod\texample.org/tool\t{version}\th1:sum=\ndep\texample.org/other\tv9.9.9\n"
        );
        let framed = [&[b'<'; 16], text.as_bytes(), &[b'>'; 16]].concat();
        let mut record = [MAGIC, &[8, INLINE], &[0; 16]].concat();
        for part in [b"go1.24.1".as_slice(), &framed] {
            let mut length = part.len();
            while length >= 0x80 {
                record.push(length as u8 | 0x80);
                length >>= 7;
            }
            record.push(length as u8);
            record.extend_from_slice(part);
        }
        record
    }

    /// A program of one section, with the record at `offset`.
    fn elf(record: &[u8], offset: u64) -> Vec<u8> {
        let mut file = vec![0; offset as usize];
        file.extend_from_slice(record);
        let names = file.len() as u64;
        file.extend_from_slice(b"\0.shstrtab\0.go.buildinfo\0");
        let table = file.len() as u64;
        for (name, at, size) in [
            (0u32, 0u64, 0u64),
            (1, names, 25),
            (11, offset, record.len() as u64),
        ] {
            let mut section = [0; 64];
            section[..4].copy_from_slice(&name.to_le_bytes());
            section[0x18..0x20].copy_from_slice(&at.to_le_bytes());
            section[0x20..0x28].copy_from_slice(&size.to_le_bytes());
            file.extend_from_slice(&section);
        }
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        file[0x3a..0x3c].copy_from_slice(&64u16.to_le_bytes());
        file[0x3c..0x3e].copy_from_slice(&3u16.to_le_bytes());
        file[0x3e..0x40].copy_from_slice(&1u16.to_le_bytes());
        file
    }

    fn expected() -> Option<BuildInfo> {
        Some(BuildInfo {
            path: "example.org/tool/cmd/tool".to_owned(),
            version: "v1.2.3".to_owned(),
        })
    }

    #[test]
    fn the_record_is_found_by_its_section() {
        let file = elf(&record("example.org/tool/cmd/tool", "v1.2.3"), 4096);
        assert_eq!(
            section(&mut Cursor::new(&file)).expect("no i/o error"),
            Some(4096)
        );
        assert_eq!(read(&mut Cursor::new(&file)).expect("no i/o error"), expected());
    }

    #[test]
    fn the_record_is_found_without_sections_also_across_blocks() {
        let record = record("example.org/tool/cmd/tool", "v1.2.3");
        for offset in [0, 5000, (1 << 20) - 7, 2 << 20] {
            // The magic alone, as in a program that reads such records, is not taken for one.
            let mut file = vec![b'.'; offset];
            if offset > 100 {
                file[20..20 + MAGIC.len()].copy_from_slice(MAGIC);
            }
            file.extend_from_slice(&record);
            assert_eq!(
                read(&mut Cursor::new(&file)).expect("no i/o error"),
                expected(),
                "{offset}"
            );
        }
    }

    #[test]
    fn damaged_programs_are_none() {
        let good = elf(&record("example.org/tool/cmd/tool", "v1.2.3"), 128);
        for end in 0..good.len() {
            let _ = read(&mut Cursor::new(&good[..end])).expect("no i/o error");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            let _ = read(&mut Cursor::new(&bad)).expect("no i/o error");
        }
        assert_eq!(
            read(&mut Cursor::new(b"#!/bin/sh\n")).expect("no i/o error"),
            None
        );
    }
}
