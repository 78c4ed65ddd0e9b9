//! Heads that are old, forked, somebody else's, or none.

use std::fs;

use ingot_helper::protocol::ContentId;
use ingot_helper::remote::Kind;
use ingot_testdata::repo::{Format, Repo};

use super::client::{Client, new_key};
use super::good::{ALL, Good, Try, Watched};

#[test]
fn a_head_that_is_no_id() {
    let good = Good::new();
    let current = Watched::new("newer", &good.current);
    let fresh = Watched::new("fresh", &good.fresh);
    let spoilt = good.spoil("store");
    let right = fs::read_to_string(spoilt.head()).unwrap();
    let id = right.trim();
    let absent = ContentId::of(b"nothing").to_hex();
    let some_pack = good.packs[0].0.to_hex();
    let heads: [(&str, Vec<u8>); 11] = [
        ("empty", Vec::new()),
        ("garbage", b"\x00\xff\xfe garbage \x1b[31m".to_vec()),
        ("symbolic", b"ref: refs/heads/main\n".to_vec()),
        ("short", id[1..].into()),
        ("long", format!("{id}0\n").into()),
        ("in capitals", format!("{}\n", id.to_uppercase()).into()),
        ("of two lines", format!("{id}\n{id}\n").into()),
        ("a path", format!("../manifests/{}", &id[..51]).into()),
        ("padded without end", format!("{id}{}", "\n".repeat(5000)).into()),
        ("of nothing", format!("{absent}\n").into()),
        ("a pack", format!("{some_pack}\n").into()),
    ];
    for (what, bytes) in heads {
        fs::write(spoilt.head(), bytes).unwrap();
        let what = format!("head {what}");
        fresh.refuses(&good, &spoilt.store, &what, &ALL, &[Kind::Alarm]);
        current.refuses(&good, &spoilt.store, &what, &ALL, &[Kind::Alarm]);
    }
    fs::OpenOptions::new()
        .write(true)
        .open(spoilt.head())
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    current.refuses_large(&good, &spoilt.store, "head of a terabyte", &ALL);
    fs::remove_file(spoilt.head()).unwrap();
    current.refuses(&good, &spoilt.store, "head missing", &ALL, &[Kind::Alarm]);
    fresh.refuses(&good, &spoilt.store, "head missing", &ALL, &[Kind::Alarm]);
    fs::create_dir(spoilt.head()).unwrap();
    current.refuses(&good, &spoilt.store, "head a folder", &ALL, &[Kind::Alarm]);
    fs::remove_dir(spoilt.head()).unwrap();
    #[cfg(unix)]
    {
        let elsewhere = spoilt.store.join("elsewhere");
        fs::write(&elsewhere, &right).unwrap();
        std::os::unix::fs::symlink(&elsewhere, spoilt.head()).unwrap();
        current.refuses(&good, &spoilt.store, "head a link", &ALL, &[Kind::Alarm]);
        fs::remove_file(spoilt.head()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, spoilt.head(), rustix::fs::Mode::RUSR).unwrap();
        current.refuses(&good, &spoilt.store, "head a pipe", &ALL, &[Kind::Alarm]);
        fs::remove_file(spoilt.head()).unwrap();
    }
    // A store that lost its head is not begun again.
    let other = good.path("other.key.json");
    new_key(&other);
    let again = Client::new(good.source.path(), &spoilt.store, &other);
    assert_eq!(again.init().unwrap_err().kind(), Kind::Alarm);
}

#[test]
fn a_head_that_was_there_before() {
    let good = Good::new();
    let current = Watched::new("newer", &good.current);
    let behind = Watched::new("older", &good.behind);
    let spoilt = good.spoil("store");
    for (generation, id) in good.manifests.iter().enumerate() {
        spoilt.set_head(id);
        let what = format!("head of generation {generation}");
        if generation < 4 {
            current.refuses(&good, &spoilt.store, &what, &ALL, &[Kind::Alarm]);
        }
        if generation < 2 {
            behind.refuses(&good, &spoilt.store, &what, &ALL, &[Kind::Alarm]);
        }
    }
}

#[test]
fn a_history_that_parts_from_the_one_that_was_seen() {
    let good = Good::new();
    let current = Watched::new("newer", &good.current);
    let behind = Watched::new("older", &good.behind);
    let tip = good.source.git(&["rev-parse", "main~2"]);
    // Two publications from the same parent: this one is generation 2 as well.
    let forked = good.spoil("store-at-1");
    let mut refused = Vec::new();
    for length in 2..=6 {
        let name = format!("refs/tags/{length}");
        let pack = ingot_testdata::git::with_input(
            good.source.path(),
            &["pack-objects", "--revs", "--stdout", "-q"],
            tip.as_bytes(),
        );
        good.publish(&forked.store, &[(&name, &tip)], &[&pack]);
        let what = format!("forked history of {length} generations");
        behind.refuses(&good, &forked.store, &what, &ALL, &[Kind::Alarm]);
        current.refuses(&good, &forked.store, &what, &ALL, &[Kind::Alarm]);
        refused.push(what);
        // With everything of the other line in the same folder, too.
        super::client::copy(&good.path("store/manifests"), &forked.store.join("manifests"));
        super::client::copy(&good.path("store/objects"), &forked.store.join("objects"));
    }
    assert_eq!(refused.len(), 5);
    // Who saw neither line takes what it is shown, and is bound to it from then on.
    let fresh = Client::new(good.fresh.path(), &forked.store, &good.key());
    fresh.fetch().unwrap();
    let bound = Watched::new("bound", &good.fresh);
    bound.refuses(
        &good,
        &good.path("store"),
        "the first line",
        &[Try::Fetch],
        &[Kind::Alarm],
    );
}

#[test]
fn another_repository_in_the_same_place() {
    let good = Good::new();
    let other = good.path("other.key.json");
    new_key(&other);
    let stranger = Repo::empty(Format::Sha1);
    let elsewhere = good.path("elsewhere");
    Client::new(stranger.path(), &elsewhere, &other).init().unwrap();
    let current = Watched::new("newer", &good.current);
    // With the key of the first, the second cannot be opened; a clone that has seen the first says what that means.
    current.refuses(&good, &elsewhere, "another root", &ALL, &[Kind::Alarm]);
    // With the key of the second, it is not what was there before.
    let client = Client::new(good.current.path(), &elsewhere, &other);
    let error = client.list().unwrap_err();
    assert_eq!(error.kind(), Kind::Alarm, "{error}");
    assert!(error.to_string().contains("root changed"), "{error}");
}
