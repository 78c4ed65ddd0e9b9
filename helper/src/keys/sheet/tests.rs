#![allow(clippy::unwrap_used)]

use super::*;
use crate::keys::{Passphrase, age};
use crate::protocol::crypto::Secret;

fn founder() -> DeviceKey {
    DeviceKey::generate(None).unwrap()
}

fn guest() -> DeviceKey {
    DeviceKey::generate(Some(*founder().root())).unwrap()
}

fn same(a: &DeviceKey, b: &DeviceKey) -> bool {
    a.to_json() == b.to_json()
}

#[test]
fn a_sheet_leads_back_to_the_key() {
    for key in [founder(), guest()] {
        let sheet = Sheet::of(&key);
        for text in [text(&sheet, true), text(&sheet, false), html(&sheet)] {
            assert!(same(&read(&text).unwrap(), &key));
        }
        let rows = rows::write(&key);
        assert_eq!(rows.lines().count(), if key.is_founder() { 8 } else { 12 });
        assert!(same(&read(&rows).unwrap(), &key));
        // As a person writes: in any order, in capitals, with other spaces.
        let mut lines: Vec<String> = rows
            .lines()
            .map(|line| line.to_uppercase().replace(' ', "\t "))
            .collect();
        lines.reverse();
        lines.push(lines[0].clone());
        assert!(same(&read(&lines.join("\r\n")).unwrap(), &key));
        assert!(same(&read(&code::write(&key)).unwrap(), &key));
    }
}

/// Made by hand from docs/format-v5.md, apart from this code.
#[test]
fn golden_sheets_are_read() {
    let key = std::fs::read(ingot_testdata::golden("e2ee-v5/dir-store-keys/owner.key.json")).unwrap();
    let key = DeviceKey::parse(&key).unwrap();
    for name in ["rows", "rows_with_root", "line"] {
        let path = ingot_testdata::root()
            .join("fuzz/corpus/recovery_sheet")
            .join(name);
        assert!(
            same(&read(&std::fs::read_to_string(path).unwrap()).unwrap(), &key),
            "{name}"
        );
    }
}

#[test]
fn the_words_are_those_of_bip_39() {
    // The words of 32 zero bytes are known to everybody: 23 times the first, and one that checks.
    let zero = || Secret::from_slice(&[0; 32]).unwrap();
    let key = DeviceKey::from_secrets(None, zero(), zero());
    let rows = rows::write(&key);
    let words: Vec<&str> = rows
        .lines()
        .take(4)
        .flat_map(|row| row.split_whitespace().skip(1).take(6))
        .collect();
    assert_eq!(words.len(), 24);
    assert!(words[..23].iter().all(|word| *word == "abandon"));
    assert_eq!(words[23], "art");
}

#[test]
fn one_wrong_word_is_found_in_its_place() {
    let key = guest();
    let text = rows::write(&key);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let write = |rows: &[Vec<&str>]| -> String { rows.iter().map(|row| row.join(" ") + "\n").collect() };
    let mut escaped = 0;
    for row in 0..rows.len() {
        for word in 1..8 {
            let mut typo = rows.clone();
            typo[row][word] = "qwertz";
            let message = read(&write(&typo)).err().unwrap().to_string();
            let place = format!("row {}, word {word}:", rows[row][0]);
            assert!(message.starts_with(&place), "{message}");

            // Another word of the list: the row is known, by eleven bits.
            let mut wrong = rows.clone();
            wrong[row][word] = if rows[row][word] == "zoo" { "zone" } else { "zoo" };
            match read(&write(&wrong)) {
                Err(Error::Check(label)) => assert_eq!(label.to_string(), rows[row][0]),
                Err(Error::Group(_)) => escaped += 1,
                other => panic!("{:?}", other.map(|key| *key.id())),
            }
        }
        let mut swapped = rows.clone();
        swapped[row].swap(1, 2);
        if rows[row][1] != rows[row][2] {
            assert!(read(&write(&swapped)).is_err());
        }
        let mut short = rows.clone();
        short[row].pop();
        assert!(matches!(read(&write(&short)), Err(Error::Count { found: 6, .. })));
        let mut missing = rows.clone();
        missing.remove(row);
        assert!(
            matches!(read(&write(&missing)), Err(Error::Missing(label)) if label.to_string() == rows[row][0])
        );
    }
    assert!(escaped <= 2, "{escaped} of 84 passed the check of their row");
    let mut relabelled = rows.clone();
    (relabelled[0][0], relabelled[1][0]) = (rows[1][0], rows[0][0]);
    assert!(matches!(read(&write(&relabelled)), Err(Error::Check(_))));
}

#[test]
fn sheets_that_were_mixed_up_are_noticed() {
    let (one, two) = (founder(), founder());
    let (first, second) = (rows::write(&one), rows::write(&two));
    // The signing words of one sheet with the wrapping words of another.
    let first: Vec<&str> = first.lines().collect();
    let second: Vec<&str> = second.lines().collect();
    let mixed = [&first[..4], &second[4..]].concat().join("\n");
    let told = format!("device {}\n{mixed}", one.id());
    assert!(matches!(read(&told), Err(Error::Device { .. })));
    let mixed = [&first[..2], &second[2..]].concat().join("\n");
    assert!(matches!(read(&mixed), Err(Error::Group('S'))));
    let both = [&first[..], &second[..1]].concat().join("\n");
    assert!(matches!(read(&both), Err(Error::Twice(_))));
    assert!(matches!(read("nothing of that kind"), Err(Error::Nothing)));
    let code = code::write(&one);
    for text in [
        &code[..code.len() - 1],
        &code.replacen('A', "B", 1),
        &code.to_lowercase().replace("ingot-key-1", "INGOT-KEY-1"),
    ] {
        assert!(matches!(read(text), Err(Error::Code)), "{}", text.len());
    }
}

#[test]
fn a_device_is_named_by_id_or_fingerprint() {
    let key = founder();
    let id = key.id().to_string();
    for told in [
        &id,
        &id[..8],
        &id[..8].to_uppercase(),
        &device_fingerprint(key.id()),
    ] {
        assert_eq!(check_device(&key, told), Ok(()));
    }
    for told in [&id[..7], "", "00000000", &device_fingerprint(key.id())[..29]] {
        assert!(check_device(&key, told).is_err(), "{told}");
    }
}

/// Reads a QR code as a camera would.
fn decoded(modules: &[Vec<bool>]) -> String {
    const SCALE: usize = 4;
    let (width, height) = (modules[0].len() * SCALE, modules.len() * SCALE);
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, |x, y| {
        if modules[y / SCALE][x / SCALE] { 0 } else { 255 }
    });
    let grids = image.detect_grids();
    assert_eq!(grids.len(), 1);
    grids[0].decode().unwrap().1
}

/// The modules of a picture drawn with half blocks; `ink` stands for light on a dark background.
fn drawn(text: &str, dark: bool) -> Vec<Vec<bool>> {
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| {
        line.chars().any(|c| "█▀▄".contains(c)) || line.chars().count() > 40 && line.trim().is_empty()
    }) {
        let halves = |on: &str| {
            line.chars()
                .map(|c| on.contains(c) != dark)
                .collect::<Vec<bool>>()
        };
        rows.push(halves("█▀"));
        rows.push(halves("█▄"));
    }
    rows
}

#[test]
fn the_picture_says_what_the_words_say() {
    let key = guest();
    let sheet = Sheet::of(&key);
    for dark in [false, true] {
        let said = decoded(&drawn(&text(&sheet, dark), dark));
        assert!(same(&read(&said).unwrap(), &key));
    }
    let page = html(&sheet);
    assert!(page.contains("<svg") && page.contains("</svg>") && page.starts_with("<!DOCTYPE html>"));
    assert!(svg(&sheet).starts_with("<?xml"));
}

#[test]
fn a_protected_sheet_holds_the_protected_file() {
    let key = founder();
    let passphrase = Passphrase::from("x y z");
    let armored = age::seal(&key.to_json(), &passphrase, 4).unwrap();
    let sheet = Sheet::protected(&key, &armored);
    let text = text(&sheet, false);
    let rows = rows::write(&key);
    let secret = rows.lines().next().unwrap();
    assert!(!text.contains(secret) && !html(&sheet).contains(secret));
    let said = decoded(&drawn(&text, false));
    let file = age::File::parse(said.as_bytes()).unwrap();
    assert_eq!(*file.open(&passphrase).unwrap(), *key.to_json());
    let start = text.find("-----BEGIN").unwrap();
    let end = text.find("-----END AGE ENCRYPTED FILE-----").unwrap();
    let typed = &text[start..end + 32];
    assert!(age::File::parse(typed.as_bytes()).is_ok());
}
