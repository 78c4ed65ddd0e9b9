//! How a file is cut into pieces changes nothing, and no bytes make a scan panic.

use ingot_snapshot::secrets::{AllowList, Finding, Scanner};
use proptest::prelude::*;

use super::{scan, secrets};

fn scan_pieces(content: &[u8], cuts: &[usize]) -> Vec<Finding> {
    let scanner = Scanner::new(&AllowList::default());
    let mut file = scanner.file(b"file");
    let mut from = 0;
    for &cut in cuts {
        let cut = cut.clamp(from, content.len());
        file.feed(&content[from..cut]);
        from = cut;
    }
    file.feed(&content[from..]);
    file.finish()
}

/// Text with secrets, parts of them, comments, and filling between.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => proptest::sample::select(secrets()).prop_map(String::into_bytes),
        2 => (proptest::sample::select(secrets()), 0..60usize).prop_map(|(secret, end)| secret.as_bytes()[..end.min(secret.len())].to_vec()),
        1 => proptest::sample::select(vec![" # rivet:allow", "# rivet:allow-next\n", "rivet:allow(jwt)"]).prop_map(|text| text.as_bytes().to_vec()),
        2 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(vec![0]),
        1 => Just(vec![0xff, 0xfe]),
        2 => (proptest::sample::select(vec![b'x', b' ', b'=', b'-', b'"']), 1..9000usize).prop_map(|(byte, count)| vec![byte; count]),
        1 => (60_000..70_000usize).prop_map(|count| vec![b'.'; count]),
        2 => proptest::collection::vec(any::<u8>(), 0..60),
    ];
    proptest::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn cuts_change_nothing(content in content(), mut cuts in proptest::collection::vec(0..200_000usize, 0..20)) {
        cuts.sort_unstable();
        prop_assert_eq!(scan_pieces(&content, &cuts), scan("file", &content));
    }

    #[test]
    fn no_bytes_make_it_panic(content in proptest::collection::vec(any::<u8>(), 0..3000)) {
        scan("file", &content);
        let scanner = Scanner::new(&AllowList::default());
        scanner.scan_path(&content);
    }
}

#[test]
fn single_bytes_are_enough() {
    let content = secrets().join("\n").repeat(20).into_bytes();
    let cuts: Vec<usize> = (0..content.len()).collect();
    let whole = scan("file", &content);
    assert!(whole.len() >= secrets().len());
    assert_eq!(scan_pieces(&content, &cuts), whole);
}

#[test]
fn every_secret_is_found_at_every_place_around_a_border() {
    for secret in secrets() {
        for before in (0..secret.len() + 8).map(|back| 128 * 1024 - back) {
            let content = format!("{}\n{secret}\n", "a ".repeat(before / 2));
            assert_eq!(scan("file", content.as_bytes()).len(), 1, "{secret} at {before}");
        }
    }
}

#[test]
fn damaged_secrets_make_no_trouble() {
    for secret in secrets() {
        for at in 0..secret.len() {
            let mut bytes = secret.clone().into_bytes();
            for byte in [0, 0x0a, 0x80, 0xff, b'"', b'\\'] {
                bytes[at] = byte;
                scan("file", &bytes);
            }
            scan("file", &secret.as_bytes()[..at]);
            scan("file", &secret.as_bytes()[at..]);
        }
    }
}
