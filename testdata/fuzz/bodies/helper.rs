//! What the fuzz targets of the encrypted remote do with their input. Any outcome but a panic is fine.

use std::convert::Infallible;

use ingot_helper::gitremote::parse;
use ingot_helper::keys::{Passphrase, age, sheet};
use ingot_helper::protocol::{Chain, ContentId, DeviceKey, Policy};

/// A throw-away key that opens the golden store, so that mutated manifests of it get as far as they can.
const KEY: &[u8] = include_bytes!("../../golden/e2ee-v5/dir-store-keys/owner.key.json");

/// A whole manifest as storage would give it, for every id.
pub fn manifest(data: &[u8]) {
    let key = DeviceKey::parse(KEY).expect("the golden key is well-formed");
    let _ = Chain::read(|_| Ok::<_, Infallible>(data.to_vec()), &ContentId::of(data), &key);
}

/// A policy object.
pub fn policy(data: &[u8]) {
    if let Ok(policy) = Policy::parse(data) {
        let _ = policy.verify_genesis();
        let _ = policy.verify_successor(&policy);
    }
}

/// One line that Git writes to a remote helper.
pub fn helper_command(data: &[u8]) {
    let _ = parse::command(data);
}

/// A key file that a passphrase protects, as somebody else may have left it. Costly ones are taken apart only.
pub fn wrapped_key(data: &[u8]) {
    if let Ok(file) = age::File::parse(data)
        && file.work_factor() <= 6
        && let Ok(json) = file.open(&Passphrase::from("correct horse battery staple"))
    {
        let _ = DeviceKey::parse(&json);
    }
}

/// The text of a recovery sheet, typed or read by a camera.
pub fn recovery_sheet(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data) {
        let _ = sheet::read(text);
    }
}
