//! The golden repositories, for the tests of this module.

use std::path::PathBuf;

use ingot_testdata::git;
use serde::Deserialize;

use super::ids::ContentId;
use super::keys::DeviceKey;
use super::refs::RefMap;

pub(super) fn file(relative: &str) -> PathBuf {
    ingot_testdata::golden("e2ee-v5").join(relative)
}

fn json<T: for<'de> Deserialize<'de>>(relative: &str) -> T {
    serde_json::from_slice(&std::fs::read(file(relative)).expect("golden file")).expect("golden JSON")
}

/// A golden repository: what is stored, who can open it, and what must come out.
pub(super) struct Golden {
    pub owner: DeviceKey,
    pub second: DeviceKey,
    pub vectors: Vectors,
    pub expected: Expected,
    carrier: bool,
}

#[derive(Deserialize)]
pub(super) struct Vectors {
    pub repository_root: String,
    pub reader_device_id: String,
    pub generations: Vec<Vector>,
}

#[derive(Deserialize)]
pub(super) struct Vector {
    pub generation: u64,
    pub manifest_id: ContentId,
    pub manifest_bytes: usize,
    pub generation_key: String,
    pub key_commitment: String,
    pub subkey_body: String,
    pub subkey_link: String,
    pub subkey_sealed_header: String,
    pub authorization: String,
    pub signer: String,
    pub policy_id: String,
    pub policy_generation: u64,
    pub total_pack_count: u64,
    pub header_json: String,
    pub sealed_envelope_json: String,
    pub sealed_content_json: String,
    pub signed_bytes_sha256: String,
    pub body_json: String,
    pub introduced_policy_object: Option<String>,
    pub introduced_policy_body: Option<String>,
    pub packs: Vec<PackVector>,
}

#[derive(Deserialize)]
pub(super) struct PackVector {
    pub id: ContentId,
    pub subkey: String,
    pub ciphertext_size: u64,
    pub plaintext_size: u64,
    pub plaintext_sha256: String,
    pub base_aad: String,
}

#[derive(Deserialize)]
pub(super) struct Expected {
    pub repository_root: String,
    pub head_manifest_id: ContentId,
    pub generation: u64,
    pub policy_id: String,
    pub policy_generation: u64,
    pub pack_count: u64,
    pub refs: RefMap,
    pub devices: Vec<ExpectedDevice>,
    pub generations: Vec<ExpectedGeneration>,
}

#[derive(Deserialize)]
pub(super) struct ExpectedDevice {
    pub device_id: String,
    pub role: String,
    pub revoked_at: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct ExpectedGeneration {
    pub manifest_id: ContentId,
    pub refs: RefMap,
}

impl Golden {
    pub(super) fn both() -> [Self; 2] {
        ["dir-store", "carrier"].map(|name| {
            let key = |who: &str| {
                let path = file(&format!("{name}-keys/{who}.key.json"));
                DeviceKey::parse(&std::fs::read(path).expect("golden key")).expect("golden key")
            };
            Self {
                owner: key("owner"),
                second: key("second"),
                vectors: json(&format!("{name}.vectors.json")),
                expected: json(&format!("{name}.expected.json")),
                carrier: name == "carrier",
            }
        })
    }

    /// The stored bytes of a manifest or pack.
    pub(super) fn stored(&self, kind: &str, id: &ContentId) -> std::io::Result<Vec<u8>> {
        let id = id.to_string();
        let path = format!("{kind}/{}/{id}", &id[..2]);
        if !self.carrier {
            return std::fs::read(file("dir-store").join(path));
        }
        // Every object of this carrier is small enough for one part.
        let part = format!("refs/heads/git-remote-e2ee:e2ee/{path}/00000000");
        let output = git::run(&file("carrier.git"), &["cat-file", "blob", &part]);
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    pub(super) fn manifest(&self, id: &ContentId) -> std::io::Result<Vec<u8>> {
        self.stored("manifests", id)
    }
}
