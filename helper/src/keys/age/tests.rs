#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Cheap, for tests.
const WORK: u8 = 4;

fn passphrase() -> Passphrase {
    "correct horse battery staple".into()
}

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(ingot_testdata::golden("age-key").join(name)).unwrap()
}

/// The binary form of an armored file.
fn binary(armored: &[u8]) -> Vec<u8> {
    armor::decode(armored).unwrap()
}

fn open(bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
    File::parse(bytes)?.open(&passphrase())
}

#[test]
fn files_of_another_implementation_open() {
    let key = std::fs::read(ingot_testdata::golden("e2ee-v5/dir-store-keys/owner.key.json")).unwrap();
    for name in ["owner.key.armored.age", "owner.key.binary.age"] {
        let file = golden(name);
        assert!(is_age(&file), "{name}");
        let parsed = File::parse(&file).unwrap();
        assert_eq!(parsed.work_factor(), 10);
        assert_eq!(*parsed.open(&passphrase()).unwrap(), key, "{name}");
        let other = parsed.open(&"correct horse battery stapler".into());
        assert_eq!(other.unwrap_err(), Error::WrongPassphrase);
    }
}

#[test]
fn what_is_sealed_opens_with_its_passphrase_only() {
    for content in [&b""[..], b"x", &[7; CHUNK]] {
        let sealed = seal(content, &passphrase(), WORK).unwrap();
        assert!(sealed.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----\n") && is_age(&sealed));
        assert!(sealed.split(|byte| *byte == b'\n').all(|line| line.len() <= 64));
        assert_eq!(*open(&sealed).unwrap(), content);
        let other = File::parse(&sealed).unwrap().open(&"".into());
        assert_eq!(other.unwrap_err(), Error::WrongPassphrase);
    }
    assert_eq!(seal(&[0; CHUNK + 1], &passphrase(), WORK), Err(Error::TooLarge));
    let twice = [(); 2].map(|()| seal(b"x", &passphrase(), WORK).unwrap());
    assert_ne!(twice[0], twice[1], "keys and nonces are fresh");
}

#[test]
fn any_change_is_noticed() {
    let armored = seal(b"{\"a\": 1}", &passphrase(), WORK).unwrap();
    let file = binary(&armored);
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        // A work factor that became larger by it is not worth the wait.
        if File::parse(&changed).is_ok_and(|file| file.work_factor() > 10) {
            continue;
        }
        assert!(open(&changed).is_err(), "byte {at}");
        assert!(open(&file[..at]).is_err(), "cut at {at}");
    }
    let longer = [file.as_slice(), b"x"].concat();
    assert_eq!(open(&longer).unwrap_err(), Error::Damaged);
    for at in 0..armored.len() {
        let mut changed = armored.clone();
        changed[at] ^= 4;
        if File::parse(&changed).is_ok_and(|file| file.work_factor() > 10) {
            continue;
        }
        assert!(open(&changed).is_err(), "armored, byte {at}");
    }
}

/// A header that is right but for the lines given; its authentication does not matter to what is tested.
fn with_lines(lines: &str) -> Vec<u8> {
    let mut file = format!("age-encryption.org/v1\n{lines}\n--- {}\n", "A".repeat(43)).into_bytes();
    file.extend_from_slice(&[0; 60]);
    file
}

#[test]
fn work_that_nobody_should_do_is_refused_before_it_begins() {
    let body = "A".repeat(43);
    let salt = "A".repeat(22);
    for work in [
        "21",
        "25",
        "63",
        "99",
        "255",
        "256",
        "4294967297",
        "99999999999999999999",
    ] {
        let file = with_lines(&format!("-> scrypt {salt} {work}\n{body}"));
        assert!(matches!(open(&file), Err(Error::TooCostly(_))), "{work}");
    }
    for work in ["", "0", "010", "+4", "-4", "0x4", "4 ", " 4", "4a", "4.0"] {
        let file = with_lines(&format!("-> scrypt {salt} {work}\n{body}"));
        assert!(matches!(open(&file), Err(Error::Header(_))), "{work:?}");
    }
    assert_eq!(
        seal(b"", &passphrase(), MAX_WORK_FACTOR + 1),
        Err(Error::TooCostly(MAX_WORK_FACTOR + 1))
    );
}

#[test]
fn other_headers_are_named() {
    let (body, salt) = ("A".repeat(43), "A".repeat(22));
    let scrypt = format!("-> scrypt {salt} 4\n{body}");
    for lines in [
        format!("-> X25519 {body}\n{body}"),
        format!("-> ssh-ed25519 Xyg06A {body}\n{body}"),
    ] {
        assert_eq!(open(&with_lines(&lines)).unwrap_err(), Error::NotByPassphrase);
    }
    for lines in [
        format!("{scrypt}\n{scrypt}"),
        format!("{scrypt}\n-> X25519 {body}\n{body}"),
        format!("-> scrypt {salt}A 4\n{body}"),
        format!("-> scrypt {salt} 4 5\n{body}"),
        format!("-> scrypt {}B 4\n{body}", &salt[1..]),
        format!("-> scrypt {salt} 4\n{body}="),
        format!("-> scrypt {salt} 4\n{}", &body[1..]),
        format!("-> scrypt {salt} 4\r\n{body}"),
        format!("-> scrypt {salt} 4\n"),
    ] {
        assert!(
            matches!(open(&with_lines(&lines)), Err(Error::Header(_))),
            "{lines}"
        );
    }
    assert_eq!(
        open(b"age-encryption.org/v2\n").unwrap_err(),
        Error::NotByPassphrase
    );
    // Whoever knows no passphrase cannot make one that opens.
    assert_eq!(open(&with_lines(&scrypt)).unwrap_err(), Error::WrongPassphrase);
}

#[test]
fn armor_is_strict_but_for_white_space_around_it() {
    let good = String::from_utf8(golden("owner.key.armored.age")).unwrap();
    for text in [
        format!("\n \t{good}\n\n "),
        good.replace('\n', "\r\n"),
        good.trim_end().to_owned(),
    ] {
        assert_eq!(
            armor::decode(text.as_bytes()).unwrap(),
            golden("owner.key.binary.age")
        );
    }
    let lines: Vec<&str> = good.lines().collect();
    for text in [
        format!("{good}x"),
        good.replacen('\n', "\n\n", 1),
        good.replacen(lines[2], &lines[2][1..], 1),
        good.replacen(lines[2], &format!("{}A", lines[2]), 1),
        good.replacen(lines[2], &format!(" {}", &lines[2][1..]), 1),
        good.replace("-----END", "----- END"),
        good.replace('=', ""),
        good.replace("BEGIN AGE ENCRYPTED FILE", "BEGIN AGE FILE"),
        lines[..4].join("\n"),
    ] {
        assert!(matches!(open(text.as_bytes()), Err(Error::Armor(_))), "{text}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(bytes: Vec<u8>, cut in 0usize..600, at in 0usize..600, with: u8) {
        let _ = File::parse(&bytes);
        for name in ["owner.key.armored.age", "owner.key.binary.age"] {
            let mut file = golden(name);
            file.truncate(file.len().saturating_sub(cut % 50));
            if let Some(byte) = file.get_mut(at) {
                *byte = with;
            }
            let _ = File::parse(&file);
            let _ = File::parse(&[b"age-encryption.org/v1\n-> scrypt ".as_slice(), &bytes].concat());
            let _ = File::parse(&[b"-----BEGIN AGE ENCRYPTED FILE-----\n".as_slice(), &bytes].concat());
        }
    }
}
