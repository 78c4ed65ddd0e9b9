//! Directory stores that are right but for one thing, made by code that shares nothing with this crate: every wrong one
//! is refused, by storage or by the protocol, and every right one is read.

use std::path::Path;

use ingot_engine::durable;
use ingot_helper::protocol::pack_stream::Opener;
use ingot_helper::protocol::{Chain, key_file, refs};
use ingot_helper::storage::Storage;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::checker::{Verdict, forged};

/// Reads everything short of Git objects.
fn read(store: &Path, key: &Path) -> Result<Chain, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let store = Directory::new(store, durable::real()).map_err(|error| text(&error))?;
    let key = key_file::read(key).map_err(|error| text(&error))?;
    let head = store
        .head()
        .map_err(|error| text(&error))?
        .ok_or("not initialised")?;
    let head = head.id().ok_or("HEAD is not an id")?;
    let chain = Chain::read(|id| store.manifest(id), &head, &key).map_err(|error| text(&error))?;
    refs::check(chain.refs()).map_err(|error| text(&error))?;
    for pack in chain.packs() {
        let key = chain.pack_key(pack).ok_or("pack of another chain")?;
        let stream = store.open_pack(&pack.id).map_err(|error| text(&error))?;
        let mut opener = Opener::new(stream, &key, pack, 1).map_err(|error| text(&error))?;
        std::io::copy(&mut opener, &mut std::io::sink()).map_err(|error| text(&error))?;
    }
    Ok(chain)
}

#[test]
fn every_wrong_store_is_refused_and_every_right_one_read() {
    let temp = tempfile::tempdir().expect("temporary folder");
    let mut problems = Vec::new();
    for story in forged(temp.path(), &[]) {
        // What is inside the packs is for the import to judge, and so is one ref below another.
        let beyond = story.name.starts_with("git-pack-") || story.name == "refs-one-below-another";
        let expected = story.verdict != Verdict::Wrong || beyond;
        match read(&story.store, &story.owner_key) {
            Ok(_) if expected => {}
            Err(reason) if !expected => {
                let line = !reason.contains('\n') && reason.len() < 600;
                if !line || reason.contains("panic") {
                    problems.push(format!("{}: not one clear line: {reason}", story.name));
                }
            }
            Ok(_) => problems.push(format!(
                "{}: accepted; the checker says: {}",
                story.name, story.reason
            )),
            Err(reason) => problems.push(format!("{}: refused: {reason}", story.name)),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
