mod golden;

use data_encoding::HEXLOWER;

use super::*;
use crate::protocol::crypto::{self, GenerationKey, Purpose, Secret};
use crate::protocol::encoding::compact_json;
use crate::protocol::envelope::{self, Scope};
use crate::protocol::golden::{Golden, Vector};
use crate::protocol::keys::DeviceKey;
use crate::protocol::policy::{Change, Policy, Role};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("JSON is text")
}

/// A manifest of generation 1 by its founder, and all that made it.
struct Sample {
    founder: DeviceKey,
    policy: Policy,
    parent: ContentId,
    parent_key: GenerationKey,
    key: GenerationKey,
}

impl Sample {
    fn new() -> Self {
        let founder = DeviceKey::generate(None).expect("random bytes");
        let policy = Policy::genesis(&founder).expect("policy");
        let key = || GenerationKey::generate().expect("random bytes");
        Self {
            founder,
            policy,
            parent: ContentId::of(b"parent"),
            parent_key: key(),
            key: key(),
        }
    }

    fn draft<'a>(&'a self, refs: &'a RefMap, new_packs: &'a [PackDescriptor]) -> Draft<'a> {
        Draft {
            generation: 1,
            parent: Some((&self.parent, &self.parent_key)),
            authorization: Authorization::Writer,
            policy: &self.policy,
            introduces_policy: false,
            total_pack_count: 0,
            refs,
            new_packs,
        }
    }

    fn seal(&self, draft: &Draft<'_>) -> Vec<u8> {
        seal(draft, &self.key, &self.founder).expect("sealed")
    }

    fn open(&self, bytes: &[u8]) -> Result<Opened, Error> {
        let unopened = Unopened::parse(&ContentId::of(bytes), bytes)?;
        let key = unopened.own_key(&self.founder)?;
        unopened.open(key)
    }
}

fn pack(id: &[u8], generation: u64, ordinal: u64, plaintext_size: u64) -> PackDescriptor {
    PackDescriptor {
        id: ContentId::of(id),
        plaintext_size,
        generation,
        ordinal,
    }
}

#[test]
fn pack_lists_are_checked() {
    let sample = Sample::new();
    let refs = RefMap::new();
    let open = |packs: &[PackDescriptor]| sample.open(&sample.seal(&sample.draft(&refs, packs)));
    let good = [pack(b"a", 1, 0, 5), pack(b"b", 1, 1, 6)];
    assert_eq!(open(&good).expect("good").new_packs, good);
    assert!(matches!(
        open(&[pack(b"a", 2, 0, 5)]),
        Err(Error::PackGeneration {
            seen: 2,
            expected: 1,
            ..
        })
    ));
    assert!(matches!(
        open(&[pack(b"a", 1, 1, 5)]),
        Err(Error::PackOrdinal {
            seen: 1,
            expected: 0,
            ..
        })
    ));
    assert!(matches!(
        open(&[pack(b"a", 1, 0, 0)]),
        Err(Error::EmptyPack { .. })
    ));
    let twice = [pack(b"a", 1, 0, 5), pack(b"a", 1, 1, 5)];
    assert!(matches!(open(&twice), Err(Error::DuplicatePack { .. })));
}

#[test]
fn links_belong_to_later_generations() {
    let sample = Sample::new();
    let refs = RefMap::new();
    let first = Draft {
        generation: 0,
        parent: None,
        ..sample.draft(&refs, &[])
    };
    assert!(sample.open(&sample.seal(&first)).expect("good").parent.is_none());
    let linked = Draft {
        generation: 0,
        ..sample.draft(&refs, &[])
    };
    let error = sample.open(&sample.seal(&linked));
    assert!(matches!(
        error,
        Err(Error::Link {
            generation: 0,
            present: true
        })
    ));
    let unlinked = Draft {
        parent: None,
        ..sample.draft(&refs, &[])
    };
    let error = sample.open(&sample.seal(&unlinked));
    assert!(matches!(
        error,
        Err(Error::Link {
            generation: 1,
            present: false
        })
    ));
}

/// Changes the header text of a stored manifest.
fn with_header(bytes: &[u8], change: impl Fn(String) -> String) -> Vec<u8> {
    let mut outer: Outer = serde_json::from_slice(bytes).expect("outer JSON");
    outer.header = change(text(&outer.header).to_owned()).into_bytes();
    compact_json(&outer)
}

#[test]
fn headers_are_checked_before_anything_is_opened() {
    let sample = Sample::new();
    let refs = RefMap::new();
    let bytes = sample.seal(&sample.draft(&refs, &[]));
    let opened =
        |change: &dyn Fn(String) -> String| sample.open(&with_header(&bytes, change)).expect_err("refused");
    let replace = |from: &'static str, to: &'static str| {
        move |header: String| {
            assert!(header.contains(from), "{header}");
            header.replacen(from, to, 1)
        }
    };
    let error = opened(&replace(
        "\"format_version\":5",
        "\"format_version\":6,\"more\":true",
    ));
    assert_eq!(
        error.to_string(),
        "unsupported manifest format 6; this program reads format 5"
    );
    let error = opened(&replace("\"format_version\":5", "\"format_version\":4"));
    assert!(matches!(error, Error::UnsupportedFormat(4)));
    for (from, to) in [
        ("\"format_version\":5", "\"format_version\":5,\"more\":true"),
        (
            "\"format_version\":5",
            "\"format_version\":5,\"format_version\":5",
        ),
        ("\"format_version\":5", "\"format_version\":\"5\""),
        ("\"format_version\":5,", ""),
        ("\"generation\":1", "\"generation\":-1"),
        ("\"generation\":1", "\"generation\":1.0"),
        ("\"generation\":1", "\"generation\":18446744073709551616"),
        ("\"body_digest\":\"", "\"body_digest\":\"A"),
    ] {
        let error = opened(&replace(from, to));
        assert!(
            matches!(error, Error::Malformed { part: "header", .. }),
            "{to}: {error}"
        );
    }
    let error = opened(&|header| {
        header.replace(
            "\"generation_key_envelopes\":[{",
            "\"generation_key_envelopes\":[],\"x\":[{",
        )
    });
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    // Whitespace and the order of fields are free, but the header is signed as it stands.
    let error = opened(&|header| header.replace(',', ", "));
    assert!(
        matches!(
            error,
            Error::Sealed {
                part: "sealed header",
                ..
            }
        ),
        "{error}"
    );

    for count in [0, 1, 2, 3, 5, 8192] {
        let mut outer: Outer = serde_json::from_slice(&bytes).expect("outer JSON");
        let mut header: Header = serde_json::from_slice(&outer.header).expect("header");
        let envelope = header.generation_key_envelopes[0].clone();
        header.generation_key_envelopes = vec![envelope; count];
        outer.header = compact_json(&header);
        let error = sample.open(&compact_json(&outer)).expect_err("refused");
        assert!(
            matches!(error, Error::EnvelopeCount(seen) if seen == count),
            "{error}"
        );
    }
}

#[test]
fn foreign_keys_and_devices_are_told_apart() {
    let sample = Sample::new();
    let refs = RefMap::new();
    let bytes = sample.seal(&sample.draft(&refs, &[]));
    let unopened = Unopened::parse(&ContentId::of(&bytes), &bytes).expect("parses");
    let stranger = DeviceKey::generate(None).expect("random bytes");
    assert!(matches!(
        unopened.own_key(&stranger),
        Err(Error::ForeignRepository { .. })
    ));
    let guest = DeviceKey::generate(Some(*sample.founder.root())).expect("random bytes");
    assert!(matches!(unopened.own_key(&guest), Err(Error::NotReader)));
    let wrong = GenerationKey::generate().expect("random bytes");
    assert!(matches!(unopened.open(wrong), Err(Error::Commitment)));
}

#[test]
fn content_must_be_canonical() {
    let sample = Sample::new();
    let refs = RefMap::new();
    let bytes = sample.seal(&sample.draft(&refs, &[]));
    let rebuilt = |change: &dyn Fn(&str) -> String| {
        let mut outer: Outer = serde_json::from_slice(&bytes).expect("outer JSON");
        let mut header: Header = serde_json::from_slice(&outer.header).expect("header");
        let subkey = sample
            .key
            .subkey(sample.policy.root(), 1, Purpose::SealedHeader, 0);
        let sealed = crypto::open(&subkey, &outer.header, &outer.sealed_header_ciphertext).expect("opens");
        let mut sealed: SealedHeader = serde_json::from_slice(&sealed).expect("sealed header");
        sealed.content = change(text(&sealed.content)).into_bytes();
        header.sealed_header_digest = Digest::of(&sealed.content);
        outer.header = compact_json(&header);
        outer.sealed_header_ciphertext =
            crypto::seal(&subkey, &outer.header, &compact_json(&sealed)).expect("random bytes");
        sample.open(&compact_json(&outer))
    };
    assert!(
        rebuilt(&str::to_owned).is_ok(),
        "the signature is not looked at here"
    );
    for (from, to) in [
        (",", ", "),
        ("\"total_pack_count\":0", "\"total_pack_count\":0 "),
        ("{\"kind\":\"dummy\"}", "{\"kind\":\"dummy\",\"device_id\":null}"),
        ("writer", "\\u0077riter"),
    ] {
        let error = rebuilt(&|content| content.replacen(from, to, 1)).expect_err(to);
        assert!(matches!(error, Error::NotCanonical), "{to}: {error}");
    }
    for (from, to) in [
        ("{\"kind\":\"dummy\"}", "{\"kind\":\"recipient\"}"),
        ("{\"kind\":\"dummy\"}", "{\"kind\":\"dummy\",\"more\":1}"),
        ("\"writer\"", "\"owner\""),
    ] {
        let error = rebuilt(&|content| content.replacen(from, to, 1)).expect_err(to);
        assert!(
            matches!(
                error,
                Error::Malformed {
                    part: "sealed content",
                    ..
                }
            ),
            "{to}: {error}"
        );
    }
}

#[test]
fn refs_may_be_unsorted_and_the_last_of_equals_wins() {
    let body = br#"{"refs":{"b":"1","a":"2","b":"3"},"new_packs":[]}"#;
    let body: Body = serde_json::from_slice(body).expect("missing optional fields are null");
    assert_eq!(
        body.refs.into_iter().collect::<Vec<_>>(),
        [("a".into(), "2".into()), ("b".into(), "3".into())]
    );
    let twice = br#"{"refs":{},"refs":{},"new_packs":[]}"#;
    assert!(serde_json::from_slice::<Body>(twice).is_err());
}

#[test]
fn no_byte_can_be_changed() {
    let sample = Sample::new();
    let refs = RefMap::from([("refs/heads/main".to_owned(), "1".repeat(40))]);
    let bytes = sample.seal(&sample.draft(&refs, &[pack(b"a", 1, 0, 5)]));
    let id = ContentId::of(&bytes);
    let good = sample.open(&bytes).expect("good");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x01;
        assert!(
            matches!(Unopened::parse(&id, &changed), Err(Error::IdMismatch { .. })),
            "byte {at}"
        );
        // Even under the id that the changed bytes have, either it does not open or its signature is another's.
        if let Ok(opened) = sample.open(&changed) {
            assert_ne!(
                opened.signed_digest, good.signed_digest,
                "byte {at} is not signed"
            );
        }
    }
    assert!(matches!(
        Unopened::parse(&id, &vec![b' '; MAX_BYTES + 1]),
        Err(Error::TooLarge)
    ));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_sealed_is_opened(
        refs in proptest::collection::btree_map("[a-z/\u{e9}\"\\\\\u{1}]{1,40}", "[0-9a-f]{40}|[0-9a-f]{64}", 0..40),
        packs in proptest::collection::vec(1u64.., 0..20),
        readers in 0usize..12,
        total in proptest::prelude::any::<u64>(),
    ) {
        let mut sample = Sample::new();
        let guests: Vec<_> = (0..readers)
            .map(|_| DeviceKey::generate(Some(*sample.founder.root())).expect("random bytes"))
            .collect();
        let changes: Vec<_> = guests
            .iter()
            .map(|guest| Change::Add { device: guest.public().clone(), role: Role::Read })
            .collect();
        sample.policy = sample.policy.transition(&sample.founder, &changes).expect("policy");
        let packs: Vec<_> = (0u64..).zip(&packs).map(|(n, size)| pack(&n.to_le_bytes(), 1, n, *size)).collect();
        let draft = Draft { total_pack_count: total, ..sample.draft(&refs, &packs) };
        let bytes = sample.seal(&draft);
        for reader in guests.iter().chain([&sample.founder]) {
            let unopened = Unopened::parse(&ContentId::of(&bytes), &bytes).expect("parses");
            let key = unopened.own_key(reader).expect("a reader");
            let opened = unopened.open(key).expect("opens");
            proptest::prop_assert_eq!(&opened.refs, &refs);
            proptest::prop_assert_eq!(&opened.new_packs, &packs);
            proptest::prop_assert_eq!(opened.content.total_pack_count, total);
            let (parent, parent_key) = opened.parent.expect("a link");
            proptest::prop_assert_eq!(parent, sample.parent);
            proptest::prop_assert_eq!(parent_key.expose(), sample.parent_key.expose());
        }
    }
}
