//! Shortened SHA-256 ids. gix takes every short id for a SHA-1 one and does not find loose objects by it.

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::Error;
use crate::repository::Repository;
use crate::store::{Pack, Store};

/// Git takes nothing shorter for an id.
const SHORTEST: usize = 4;

/// The revision with the short id that it starts with written in full; `None` when there is nothing to do.
pub(super) fn expand(repository: &Repository, spec: &BStr) -> Result<Option<BString>, Error> {
    let format = repository.format();
    let end = spec
        .find_byteset(b"~^:@")
        .filter(|end| *end > 0)
        .unwrap_or(spec.len());
    let (short, rest) = spec.split_at(end);
    let is_short =
        (SHORTEST..format.len_in_hex()).contains(&short.len()) && short.iter().all(u8::is_ascii_hexdigit);
    if format == gix_hash::Kind::Sha1 || !is_short {
        return Ok(None);
    }
    let short = short.to_ascii_lowercase();
    let unknown = |message: String| Error::Unknown {
        spec: spec.to_owned(),
        message,
    };
    let store = repository.store().map_err(|error| unknown(error.to_string()))?;
    let mut found: Option<ObjectId> = None;
    for id in candidates(&store, &short) {
        match found {
            Some(first) if first != id => {
                return Err(unknown(format!(
                    "it is short for several objects, such as {first} and {id}"
                )));
            }
            _ => found = Some(id),
        }
    }
    Ok(found.map(|id| {
        let mut full = BString::from(id.to_string());
        full.extend_from_slice(rest);
        full
    }))
}

fn candidates(store: &Store, short: &[u8]) -> Vec<ObjectId> {
    let mut found = Vec::new();
    for pack in store.packs() {
        from_pack(pack, short, &mut found);
    }
    let (folder, start) = short.split_at(2);
    for objects in
        std::iter::once(store.objects_dir()).chain(store.alternates().iter().map(|path| path.as_path()))
    {
        let folder_name = folder.to_str_lossy();
        // A folder that is absent or unreadable holds nothing that could be named.
        let entries = std::fs::read_dir(objects.join(&*folder_name));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(start)
                && let Ok(id) = ObjectId::from_hex(&[folder, name.as_encoded_bytes()].concat())
                && id.kind() == store.format()
            {
                found.push(id);
            }
        }
    }
    found
}

fn from_pack(pack: &Pack, short: &[u8], found: &mut Vec<ObjectId>) {
    let starts_at_or_after = |local: u32| {
        let hex = pack.id(local).to_hex().to_string();
        hex.as_bytes() >= short
    };
    let (mut low, mut high) = (0, pack.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if starts_at_or_after(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    while low < pack.len() && pack.id(low).to_hex().to_string().as_bytes().starts_with(short) {
        found.push(pack.id(low).to_owned());
        low += 1;
    }
}
