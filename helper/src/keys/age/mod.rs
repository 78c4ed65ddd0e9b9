//! Files of the age format, version 1 (C2SP, age.md), of the one kind that key files need: for a passphrase, by scrypt,
//! with at most 64 KiB in them. Any other implementation of the format opens what is sealed here, and the other way round.
//!
//! ```text
//! file    = header payload                          armored: base64 in lines of 64 columns between two marks
//! header  = "age-encryption.org/v1" LF
//!           "-> scrypt " salt " " work-factor LF    salt: 16 bytes; N = 2^work-factor, r = 8, p = 1
//!           body LF                                 the file key, sealed under what scrypt makes of the passphrase
//!           "--- " mac LF                           HMAC-SHA-256 of all before the space, keyed from the file key
//! payload = nonce chunk                             ChaCha20-Poly1305, keyed from file key and nonce
//! ```

mod armor;
mod header;

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::Passphrase;
use crate::protocol::crypto::{RandomUnavailable, random};
use header::Header;

/// Work factor of what is sealed here: 2^17 with r = 8 takes 128 MiB and a fraction of a second, as OWASP recommends for
/// passwords that an attacker can try offline.
pub const WORK_FACTOR: u8 = 17;
/// A file that demands more than this (1 GiB) is not opened: nobody should wait for minutes, or lose the machine's memory,
/// over a file that somebody else wrote.
pub const MAX_WORK_FACTOR: u8 = 20;

/// Content of one chunk of the payload; nothing larger is opened here.
const CHUNK: usize = 64 * 1024;
const TAG: usize = 16;
const FILE_KEY: usize = 16;
/// Nonce of the first chunk, which is the last one as well.
const ONLY_CHUNK: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Why a file was not opened or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text around the base64 is wrong, or the base64 is.
    #[error("its armor is damaged: {0}")]
    Armor(&'static str),
    /// Not a header of the format.
    #[error("its header is damaged: {0}")]
    Header(&'static str),
    /// Sealed for keys, or in a later version of the format.
    #[error("it is an age file, but not one that a passphrase opens")]
    NotByPassphrase,
    /// More work than anybody should be made to do.
    #[error("it demands work factor {0}, more than the {MAX_WORK_FACTOR} that are allowed")]
    TooCostly(u8),
    /// Larger than any key.
    #[error("it holds more than any key file")]
    TooLarge,
    /// The passphrase is another one, or the sealed file key was changed.
    #[error("the passphrase does not open it")]
    WrongPassphrase,
    /// The passphrase is right, and what it leads to was changed.
    #[error("it is damaged")]
    Damaged,
    /// See [`RandomUnavailable`].
    #[error(transparent)]
    Random(#[from] RandomUnavailable),
}

/// Whether this is meant to be an age file.
pub fn is_age(bytes: &[u8]) -> bool {
    armor::is_armored(bytes) || bytes.starts_with(b"age-encryption.org/")
}

/// A file for a passphrase, taken apart and not opened yet.
#[derive(Debug, Clone)]
pub struct File {
    header: Header,
    nonce: [u8; 16],
    payload: Vec<u8>,
}

impl File {
    /// Takes a file apart, armored or not. Costs no more than its length.
    pub fn parse(bytes: &[u8]) -> Result<File, Error> {
        let decoded;
        let binary = if armor::is_armored(bytes) {
            decoded = armor::decode(bytes)?;
            decoded.as_slice()
        } else {
            bytes
        };
        let (header, rest) = Header::parse(binary)?;
        let Some((nonce, payload)) = rest.split_first_chunk::<16>() else {
            return Err(Error::Header("nothing follows it"));
        };
        if payload.len() > CHUNK + TAG {
            return Err(Error::TooLarge);
        }
        Ok(File {
            header,
            nonce: *nonce,
            payload: payload.to_vec(),
        })
    }

    /// The logarithm of the work that each try costs.
    pub fn work_factor(&self) -> u8 {
        self.header.work_factor
    }

    /// Opens it.
    pub fn open(&self, passphrase: &Passphrase) -> Result<Zeroizing<Vec<u8>>, Error> {
        if self.header.work_factor > MAX_WORK_FACTOR {
            return Err(Error::TooCostly(self.header.work_factor));
        }
        let wrapping = wrapping_key(passphrase, &self.header.salt, self.header.work_factor)?;
        let file_key = open_chunk(&wrapping, &[0; 12], &self.header.body).ok_or(Error::WrongPassphrase)?;
        if !self.header.is_authentic(&file_key) {
            return Err(Error::Damaged);
        }
        let key = subkey(&file_key, &self.nonce, b"payload");
        open_chunk(&key, &ONLY_CHUNK, &self.payload).ok_or(Error::Damaged)
    }
}

/// Seals up to 64 KiB, armored.
pub fn seal(plaintext: &[u8], passphrase: &Passphrase, work_factor: u8) -> Result<Vec<u8>, Error> {
    if work_factor > MAX_WORK_FACTOR {
        return Err(Error::TooCostly(work_factor));
    }
    if plaintext.len() > CHUNK {
        return Err(Error::TooLarge);
    }
    let file_key = random::<FILE_KEY>()?;
    let salt = *random::<16>()?;
    let nonce = *random::<16>()?;
    let wrapping = wrapping_key(passphrase, &salt, work_factor)?;
    let body = seal_chunk(&wrapping, &[0; 12], &*file_key);
    let Ok(body) = <[u8; FILE_KEY + TAG]>::try_from(body.as_slice()) else {
        return Err(Error::Damaged);
    };
    let header = Header::new(salt, work_factor, body);
    let mut binary = header.to_bytes(&*file_key);
    binary.extend_from_slice(&nonce);
    let key = subkey(&*file_key, &nonce, b"payload");
    binary.extend_from_slice(&seal_chunk(&key, &ONLY_CHUNK, plaintext));
    Ok(armor::encode(&binary))
}

fn wrapping_key(
    passphrase: &Passphrase,
    salt: &[u8; 16],
    work_factor: u8,
) -> Result<Zeroizing<[u8; 32]>, Error> {
    let parameters = scrypt::Params::new(work_factor, 8, 1).map_err(|_| Error::TooCostly(work_factor))?;
    let salt = [b"age-encryption.org/v1/scrypt".as_slice(), salt].concat();
    let mut key = Zeroizing::new([0; 32]);
    scrypt::scrypt(passphrase.expose().as_bytes(), &salt, &parameters, &mut *key)
        .map_err(|_| Error::TooCostly(work_factor))?;
    Ok(key)
}

/// A key for one purpose, from the key of the file.
fn subkey(file_key: &[u8], salt: &[u8], purpose: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    let expanded = Hkdf::<Sha256>::new(Some(salt), file_key).expand(purpose, &mut *key);
    debug_assert!(expanded.is_ok(), "one block can always be expanded");
    key
}

fn seal_chunk(key: &[u8; 32], nonce: &[u8; 12], plaintext: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(plaintext.len() + TAG);
    sealed.extend_from_slice(plaintext);
    let tag = ChaCha20Poly1305::new(&Key::from(*key))
        .encrypt_inout_detached(&Nonce::from(*nonce), b"", sealed.as_mut_slice().into())
        .expect("a chunk is shorter than the 256 GiB the cipher allows");
    sealed.extend_from_slice(&tag);
    sealed
}

fn open_chunk(key: &[u8; 32], nonce: &[u8; 12], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (ciphertext, tag) = sealed.split_last_chunk::<TAG>()?;
    let mut plaintext = Zeroizing::new(ciphertext.to_vec());
    ChaCha20Poly1305::new(&Key::from(*key))
        .decrypt_inout_detached(
            &Nonce::from(*nonce),
            b"",
            plaintext.as_mut_slice().into(),
            &Tag::from(*tag),
        )
        .ok()?;
    Some(plaintext)
}

#[cfg(test)]
mod tests;
