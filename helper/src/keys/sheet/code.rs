//! The line that the picture of a sheet says: everything in a key, in the characters that QR codes pack best.
//!
//! ```text
//! line = "INGOT-KEY-1:" base32(repository signing wrapping check)    32, 32, 32 and 4 bytes
//! ```
//!
//! The check is the beginning of the SHA-256 of the 96 bytes.

use data_encoding::BASE32_NOPAD;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::Error;
use crate::protocol::crypto::Secret;
use crate::protocol::{DeviceKey, RepositoryRoot};

pub(super) const PREFIX: &str = "INGOT-KEY-1:";
const VALUES: usize = 96;
const CHECK: usize = 4;

pub(super) fn write(key: &DeviceKey) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(VALUES + CHECK));
    bytes.extend_from_slice(key.root().as_bytes());
    bytes.extend_from_slice(key.signing().expose());
    bytes.extend_from_slice(key.wrapping().expose());
    let check = Sha256::digest(&*bytes);
    bytes.extend_from_slice(&check[..CHECK]);
    let encoded = Zeroizing::new(BASE32_NOPAD.encode(&bytes));
    Zeroizing::new([PREFIX, &encoded].concat())
}

pub(super) fn read(line: &str) -> Result<DeviceKey, Error> {
    let encoded = line.strip_prefix(PREFIX).ok_or(Error::Code)?;
    let bytes = BASE32_NOPAD.decode(encoded.as_bytes()).map_err(|_| Error::Code)?;
    let bytes = Zeroizing::new(bytes);
    let Some((values, check)) = bytes.split_last_chunk::<CHECK>() else {
        return Err(Error::Code);
    };
    if values.len() != VALUES || Sha256::digest(values)[..CHECK] != *check {
        return Err(Error::Code);
    }
    let value = |number: usize| Secret::from_slice(&values[number * 32..][..32]).ok_or(Error::Code);
    let root = RepositoryRoot::from_bytes(*value(0)?.expose());
    Ok(DeviceKey::from_secrets(Some(root), value(1)?, value(2)?))
}
