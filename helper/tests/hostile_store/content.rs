//! Generations that the owner's own key sealed and signed, with Git packs that no Git would have made.

use ingot_helper::remote::Kind;
use ingot_testdata::repo::Format;

use super::client::{Client, listing};
use super::good::{Good, Try, Watched, unchanged};
use super::packs::{BLOB, COMMIT, REF_DELTA, TREE, commit, delta, entry, id, object, pack, tree};
use super::world::{Bare, text};

/// A pack, and the tip that it is published with.
struct Forged {
    name: &'static str,
    tip: String,
    bytes: Vec<u8>,
}

/// A complete history of one commit, and its id.
fn honest() -> (Vec<Vec<u8>>, gix_hash::ObjectId) {
    let blob = b"forged\n";
    let root = tree(b"file", &id("blob", blob));
    let text = commit(&id("tree", &root));
    let tip = id("commit", &text);
    (
        vec![object(BLOB, blob), object(TREE, &root), object(COMMIT, &text)],
        tip,
    )
}

fn with(name: &'static str, more: Vec<Vec<u8>>) -> Forged {
    let (mut entries, tip) = honest();
    entries.extend(more);
    Forged {
        name,
        tip: tip.to_string(),
        bytes: pack(entries.len() as u32, &entries),
    }
}

/// Packs that would take more than there is: time, memory or disk.
fn bombs() -> Vec<Forged> {
    let base = id("blob", b"forged\n");
    let onto = |result: u64, instructions: &[u8]| {
        let delta = delta(7, result, instructions);
        entry(REF_DELTA, delta.len() as u64, base.as_slice(), &delta)
    };
    // Copies the seven bytes of the base.
    let copy = b"\x90\x07";
    let zeros = vec![0; 256 << 20];
    let (mut claims, tip) = honest();
    let mut huge = pack(u32::MAX, &claims);
    claims.truncate(0);
    huge.truncate(huge.len() - 20);
    vec![
        with("a blob that inflates on", vec![entry(BLOB, 1, &[], &zeros)]),
        with("a commit that inflates on", vec![entry(COMMIT, 1, &[], &zeros)]),
        with(
            "a delta that inflates on",
            vec![entry(REF_DELTA, 4, base.as_slice(), &zeros)],
        ),
        with(
            "a blob of 2^62 bytes that ends early",
            vec![entry(BLOB, 1 << 62, &[], &zeros)],
        ),
        with(
            "a commit of 2^62 bytes",
            vec![entry(COMMIT, 1 << 62, &[], &zeros)],
        ),
        with(
            "a tree of just under the limit that ends early",
            vec![entry(TREE, (1 << 30) - 1, &[], b"x")],
        ),
        with(
            "a delta of 2^40 bytes",
            vec![entry(REF_DELTA, 1 << 40, base.as_slice(), &zeros)],
        ),
        with("a delta with a result of 2^62 bytes", vec![onto(1 << 62, copy)]),
        with("a delta with a result of 2^40 bytes", vec![onto(1 << 40, copy)]),
        with(
            "a delta with a result just under the limit",
            vec![onto((1 << 30) - 1, copy)],
        ),
        with(
            "a delta with a longer result than it claims",
            vec![onto(10, &copy.repeat(100_000))],
        ),
        Forged {
            name: "2^32 - 1 objects, of which three come",
            tip: tip.to_string(),
            bytes: huge,
        },
    ]
}

#[test]
fn what_never_ends_is_refused_within_bounded_memory() {
    let good = Good::new();
    let bare = Bare::new();
    let fresh = Watched::new("fresh", &good.fresh);
    for bomb in bombs() {
        let spoilt = good.spoil("store");
        good.publish(&spoilt.store, &[("refs/heads/bomb", &bomb.tip)], &[&bomb.bytes]);
        fresh.refuses(
            &good,
            &spoilt.store,
            bomb.name,
            &[Try::Fetch, Try::Verify],
            &[Kind::Alarm],
        );
        // Address space, of which threads and their stacks take a part that they do not use.
        let line = format!(
            "ulimit -v 900000; exec git-e2ee clone -q --key '{}' '{}' clone",
            text(&good.key()),
            text(&spoilt.store)
        );
        let said = bare.shell(bare.root(), &line);
        assert_eq!(said.code, Some(13), "{}: {}", bomb.name, said.err);
        assert_eq!(said.err.lines().count(), 1, "{}: {}", bomb.name, said.err);
        assert_eq!(said.out, "", "{}", bomb.name);
        assert!(!bare.path("clone").exists(), "{}", bomb.name);
    }
}

#[test]
fn what_is_incomplete_or_of_the_wrong_kind_is_refused() {
    let good = Good::new();
    let (entries, tip) = honest();
    let known = good.source.git(&["rev-parse", "HEAD:link"]);
    let raw = |bytes: &[&[u8]]| bytes.concat();
    let bad_commit = b"tree nonsense\n\n".as_slice();
    let bad_tree = b"100644 no end".as_slice();
    let dangling = commit(&id("tree", b"absent"));
    let with_bad_tree = commit(&id("tree", bad_tree));
    let parted = raw(&[
        format!("tree {}\n", id("tree", &tree(b"file", &id("blob", b"forged\n")))).as_bytes(),
        format!("parent {}\n", id("commit", b"absent")).as_bytes(),
        b"author A <a@example.org> 1 +0000\ncommitter A <a@example.org> 1 +0000\n\nx\n",
    ]);
    let blob_as_tree = commit(&id("blob", b"forged\n"));
    let thin = {
        let base: gix_hash::ObjectId = known.parse().unwrap();
        let size = good.source.git(&["cat-file", "-s", &known]).parse().unwrap();
        let bytes = delta(size, 3, b"\x03new");
        entry(REF_DELTA, bytes.len() as u64, base.as_slice(), &bytes)
    };
    let with_parent = |extra: &[u8]| {
        let mut all = entries.clone();
        all.push(object(COMMIT, extra));
        (id("commit", extra).to_string(), pack(all.len() as u32, &all))
    };
    let mut cases: Vec<(&str, String, String, Vec<u8>)> = Vec::new();
    let mut case = |what, name: &str, tip: String, bytes| cases.push((what, name.to_owned(), tip, bytes));
    let branch = "refs/heads/forged";
    case(
        "a branch to nothing",
        branch,
        id("commit", b"absent").to_string(),
        pack(0, &[]),
    );
    case(
        "a tag of nothing",
        "refs/tags/forged",
        id("tag", b"absent").to_string(),
        pack(3, &entries),
    );
    case(
        "a branch to a blob",
        branch,
        id("blob", b"forged\n").to_string(),
        pack(3, &entries),
    );
    let root = id("tree", &tree(b"file", &id("blob", b"forged\n"))).to_string();
    case("a branch to a tree", branch, root, pack(3, &entries));
    case(
        "history without its blob",
        branch,
        tip.to_string(),
        pack(2, &entries[1..]),
    );
    case(
        "history without its tree",
        branch,
        tip.to_string(),
        pack(2, &[entries[0].clone(), entries[2].clone()]),
    );
    for (what, text) in [
        ("a commit that is none", bad_commit),
        ("a commit of an absent tree", &dangling),
        ("a commit of an absent parent", &parted),
        ("a commit whose tree is a blob", &blob_as_tree),
    ] {
        let (tip, bytes) = with_parent(text);
        case(what, branch, tip, bytes);
    }
    let all = [
        &entries[..],
        &[object(TREE, bad_tree), object(COMMIT, &with_bad_tree)],
    ]
    .concat();
    case(
        "a tree that is none",
        branch,
        id("commit", &with_bad_tree).to_string(),
        pack(5, &all),
    );
    let all = [&entries[..], &[thin]].concat();
    case("a thin pack", branch, tip.to_string(), pack(4, &all));
    let mut cut = pack(3, &entries);
    cut.truncate(cut.len() - 25);
    case("a pack that ends early", branch, tip.to_string(), cut);
    case(
        "a pack that counts too few",
        branch,
        tip.to_string(),
        pack(2, &entries),
    );
    case(
        "a pack that counts too many",
        branch,
        tip.to_string(),
        pack(4, &entries),
    );
    let mut trailing = pack(3, &entries);
    trailing.push(0);
    case("a pack with more behind it", branch, tip.to_string(), trailing);
    let mut version = pack(3, &entries);
    version[7] = 9;
    case("a pack of another version", branch, tip.to_string(), version);
    case(
        "no pack at all",
        branch,
        tip.to_string(),
        b"<html>not found</html>".to_vec(),
    );

    let fresh = Watched::new("fresh", &good.fresh);
    let behind = Watched::new("older", &good.behind);
    let current = Watched::new("newer", &good.current);
    for (what, name, tip, bytes) in &cases {
        let spoilt = good.spoil("store");
        good.publish(&spoilt.store, &[(name, tip)], &[bytes]);
        let tries = [Try::Fetch, Try::Verify];
        for clone in [&fresh, &behind, &current] {
            clone.refuses(&good, &spoilt.store, what, &tries, &[Kind::Alarm]);
        }
    }
    // What is right is taken, so that the cases above are refused for what they are about.
    let spoilt = good.spoil("store");
    good.publish(
        &spoilt.store,
        &[(branch, &tip.to_string())],
        &[&pack(3, &entries)],
    );
    Client::new(good.current.path(), &spoilt.store, &good.key())
        .fetch()
        .unwrap();
}

#[test]
fn references_and_objects_of_two_formats_do_not_mix() {
    let good = Good::new();
    let spoilt = good.spoil("store-at-1");
    let other = ingot_testdata::repo::Repo::scripted("history", Format::Sha256);
    let before = listing(&other.git_dir());
    let client = Client::new(other.path(), &spoilt.store, &good.key());
    let inside = listing(&spoilt.store);
    let error = client.fetch().unwrap_err();
    assert_eq!(error.kind(), Kind::Failed, "{error}");
    assert!(error.to_string().contains("sha256"), "{error}");
    let error = client.push(&[client.change("heads/main", "main")]).unwrap_err();
    assert!(error.to_string().contains("sha256"), "{error}");
    unchanged("another format", &before, &listing(&other.git_dir()));
    unchanged("another format", &inside, &listing(&spoilt.store));
}

#[test]
fn the_programs_say_so_with_their_codes() {
    let good = Good::new();
    let bare = Bare::new();
    let (entries, tip) = honest();
    let key = good.key();
    let repo = good.current.path();
    bare.git(repo, &["config", "remote.vault.e2ee-key", text(&key)])
        .good();
    let refspec = "+refs/heads/*:refs/remotes/vault/*";
    bare.git(repo, &["config", "remote.vault.fetch", refspec]).good();
    let run = |what: &str, store: &std::path::Path, clone: bool| {
        bare.git(
            repo,
            &[
                "config",
                "remote.vault.url",
                &format!("e2ee::{}", store.display()),
            ],
        )
        .good();
        let before = listing(&good.current.git_dir());
        let said = bare.e2ee(repo, &["fetch", "vault"]);
        assert_eq!(said.code, Some(13), "{what}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{what}: {}", said.err);
        let said = bare.git(repo, &["fetch", "vault"]).bad(&["git-remote-e2ee: "]);
        assert!(said.err.lines().count() <= 2, "{what}: {}", said.err);
        let mut after = listing(&good.current.git_dir());
        after.remove(std::path::Path::new("FETCH_HEAD"));
        let mut before = before;
        before.remove(std::path::Path::new("FETCH_HEAD"));
        unchanged(what, &before, &after);
        if clone {
            let url = format!("e2ee::{}", store.display());
            let key = format!("e2ee.key={}", key.display());
            let args = ["-c", &key, "clone", "-q", &url, "clone"];
            let said = bare.git(bare.root(), &args).bad(&["git-remote-e2ee: "]);
            assert!(said.err.lines().count() <= 3, "{what}: {}", said.err);
            assert!(!bare.path("clone").exists(), "{what}");
        }
    };
    let spoilt = good.spoil("store");
    std::fs::write(spoilt.head(), "x").unwrap();
    run("head", &spoilt.store, true);
    let spoilt = good.spoil("store");
    spoilt.set_head(&good.manifests[2]);
    run("rolled back", &spoilt.store, false);
    let spoilt = good.spoil("store");
    std::fs::write(spoilt.manifest(good.manifests.last().unwrap()), "x").unwrap();
    run("manifest", &spoilt.store, true);
    let spoilt = good.spoil("store");
    good.publish(
        &spoilt.store,
        &[("refs/heads/new", &tip.to_string())],
        &[&pack(2, &entries)],
    );
    run("pack", &spoilt.store, true);
    let spoilt = good.spoil("store");
    let absent = id("commit", b"absent").to_string();
    good.publish(&spoilt.store, &[("refs/heads/new", &absent)], &[]);
    run("missing", &spoilt.store, true);
}
