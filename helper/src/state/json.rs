//! The written form of [`State`], shared with every other implementation of the protocol.

use std::collections::{BTreeMap, BTreeSet};

use gix_hash::ObjectId;
use serde::{Deserialize, Serialize};

use super::State;
use crate::protocol::{ContentId, RepositoryRoot};

/// The only format there is.
pub(super) const FORMAT: u64 = 5;

/// Fields in the order in which they are written. Unknown ones are passed over when reading.
#[derive(Serialize, Deserialize)]
struct Written {
    format_version: u64,
    packs: BTreeSet<ContentId>,
    head_id: ContentId,
    generation: u64,
    imported_generation: Option<u64>,
    policy_generation: u64,
    repository_root: RepositoryRoot,
    verified_refs: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Version {
    format_version: Option<serde_json::Value>,
}

/// Why a text is not a state.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// Another format; its name, or `None` where it has none.
    Format(Option<String>),
    /// Not what the format says.
    Damaged(String),
}

/// The text of a state: indented, without a newline at the end.
pub(super) fn write(state: &State) -> Vec<u8> {
    let written = Written {
        format_version: FORMAT,
        packs: state.packs.clone(),
        head_id: state.head_id,
        generation: state.generation,
        imported_generation: state.imported_generation,
        policy_generation: state.policy_generation,
        repository_root: state.repository_root,
        verified_refs: state
            .verified_refs
            .iter()
            .map(|(name, id)| (name.clone(), id.to_string()))
            .collect(),
    };
    serde_json::to_vec_pretty(&written).expect("numbers, texts and maps with text keys always serialise")
}

/// The state in a text.
pub(super) fn read(text: &[u8]) -> Result<State, Unreadable> {
    let damaged = |error: serde_json::Error| Unreadable::Damaged(error.to_string());
    let version: Version = serde_json::from_slice(text).map_err(damaged)?;
    if version
        .format_version
        .as_ref()
        .and_then(serde_json::Value::as_u64)
        != Some(FORMAT)
    {
        return Err(Unreadable::Format(
            version.format_version.map(|value| value.to_string()),
        ));
    }
    let written: Written = serde_json::from_slice(text).map_err(damaged)?;
    let verified_refs = written
        .verified_refs
        .into_iter()
        .map(|(name, text)| match ObjectId::from_hex(text.as_bytes()) {
            Ok(id) => Ok((name, id)),
            Err(error) => Err(Unreadable::Damaged(format!("verified ref {name}: {error}"))),
        })
        .collect::<Result<_, _>>()?;
    Ok(State {
        packs: written.packs,
        head_id: written.head_id,
        generation: written.generation,
        imported_generation: written.imported_generation,
        policy_generation: written.policy_generation,
        repository_root: written.repository_root,
        verified_refs,
    })
}
