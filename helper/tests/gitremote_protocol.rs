//! The remote-helper conversation over byte buffers, with a store that only remembers what it was asked.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use bstr::{BString, ByteSlice};
use gix_hash::{Kind, ObjectId};
use ingot_helper::gitremote::backend::{Backend, Fetched, Listed, Listing, Outcome, Update, Verdict};
use ingot_helper::gitremote::lines::MAX_LINE;
use ingot_helper::gitremote::options::{Lease, Options};
use ingot_helper::gitremote::{Error, serve};

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).unwrap()
}

#[derive(Default)]
struct Fake {
    listing: Listing,
    fetched: Fetched,
    /// Answers for pushed references; the default is a change from what is listed to A.
    verdicts: Vec<(&'static str, Verdict)>,
    mute: Vec<&'static str>,
    fail: bool,
    lists: Vec<bool>,
    fetches: Vec<Vec<ObjectId>>,
    pushes: Vec<(Options, Vec<Update>)>,
}

impl Backend for Fake {
    type Error = &'static str;

    fn list(&mut self, _: &Options, for_push: bool) -> Result<Listing, Self::Error> {
        self.lists.push(for_push);
        if self.fail {
            Err("storage is gone")
        } else {
            Ok(self.listing.clone())
        }
    }

    fn fetch(&mut self, _: &Options, wanted: &[ObjectId]) -> Result<Fetched, Self::Error> {
        self.fetches.push(wanted.to_vec());
        if self.fail {
            Err("storage is gone")
        } else {
            Ok(self.fetched.clone())
        }
    }

    fn push(&mut self, options: &Options, updates: &[Update]) -> Result<Vec<Outcome>, Self::Error> {
        self.pushes.push((options.clone(), updates.to_vec()));
        if self.fail {
            return Err("storage is gone");
        }
        let outcome = |update: &Update| {
            let name = update.destination.clone();
            let special = self.verdicts.iter().find(|(special, _)| name == *special);
            let old = self
                .listing
                .refs
                .iter()
                .find(|listed| listed.name == name)
                .map(|listed| listed.id);
            let new = update.source.as_ref().map(|_| id(A));
            let result = special.map_or(
                Verdict::Changed {
                    old,
                    new,
                    forced: false,
                },
                |(_, verdict)| verdict.clone(),
            );
            Outcome {
                destination: name,
                result,
            }
        };
        let told = updates
            .iter()
            .filter(|update| !self.mute.iter().any(|mute| update.destination == *mute));
        // Any order is allowed.
        Ok(told.rev().map(outcome).collect())
    }
}

fn listed(name: &str, hex: &str) -> Listed {
    Listed {
        name: name.into(),
        id: id(hex),
        peeled: None,
    }
}

fn with_refs() -> Fake {
    Fake {
        listing: Listing {
            object_format: Some(Kind::Sha1),
            refs: vec![
                listed("refs/heads/main", A),
                Listed {
                    peeled: Some(id(C)),
                    ..listed("refs/tags/v1", B)
                },
            ],
            head: Some("refs/heads/main".into()),
        },
        ..Fake::default()
    }
}

fn talk(fake: &mut Fake, input: impl AsRef<[u8]>) -> (Result<(), Error<&'static str>>, BString) {
    let mut output = Vec::new();
    let result = serve(input.as_ref(), &mut output, fake);
    (result, output.into())
}

#[track_caller]
fn answer(fake: &mut Fake, input: impl AsRef<[u8]>) -> BString {
    let (result, output) = talk(fake, input);
    result.unwrap();
    output
}

#[test]
fn capabilities_without_refspec_or_connect() {
    let output = answer(&mut Fake::default(), "capabilities\n\n");
    assert_eq!(
        output,
        "fetch\npush\noption\ncheck-connectivity\nobject-format\n\n"
    );
}

#[test]
fn a_blank_line_or_the_end_of_the_stream_ends_it() {
    assert_eq!(answer(&mut Fake::default(), ""), "");
    let mut fake = Fake::default();
    assert_eq!(answer(&mut fake, "\nlist\n\n"), "");
    assert!(fake.lists.is_empty());
}

#[test]
fn options_are_answered_one_by_one() {
    let input = "option progress true\noption verbosity 2\noption dry-run true\noption atomic true\n\
                 option followtags true\noption cloning true\noption check-connectivity true\n\
                 option object-format true\noption cas refs/heads/main:0000000000000000000000000000000000000000\n\
                 option depth 1\noption filter blob:none\noption push-option x\noption verbosity loud\n\n";
    let output = answer(&mut Fake::default(), input);
    let expected = "ok\n".repeat(9) + &"unsupported\n".repeat(3) + "error option verbosity cannot be loud\n";
    assert_eq!(output, expected.as_str());
}

#[test]
fn a_plain_list_has_the_symref_and_peeled_tags() {
    let mut fake = with_refs();
    let output = answer(&mut fake, "list\n\n");
    let expected =
        format!("@refs/heads/main HEAD\n{A} refs/heads/main\n{B} refs/tags/v1\n{C} refs/tags/v1^{{}}\n\n");
    assert_eq!(output, expected.as_str());
    assert_eq!(fake.lists, [false]);
}

#[test]
fn a_list_for_push_has_references_only() {
    let mut fake = with_refs();
    let output = answer(&mut fake, "list for-push\n\n");
    assert_eq!(
        output,
        format!("{A} refs/heads/main\n{B} refs/tags/v1\n\n").as_str()
    );
    assert_eq!(fake.lists, [true]);
}

#[test]
fn the_object_format_is_told_first_and_only_when_asked_for() {
    let mut fake = with_refs();
    assert!(answer(&mut fake, "list\n\n").starts_with(b"@refs/heads/main HEAD\n"));
    let output = answer(&mut fake, "option object-format true\nlist\n\n");
    assert!(output.starts_with(b"ok\n:object-format sha1\n@refs/heads/main HEAD\n"));
    let output = answer(&mut fake, "option object-format sha1\nlist for-push\n\n");
    assert!(output.starts_with(b"ok\n:object-format sha1\n"));
    fake.listing.object_format = None;
    assert!(answer(&mut fake, "option object-format true\nlist\n\n").starts_with(b"ok\n@refs"));
}

#[test]
fn a_demanded_object_format_must_be_the_stores() {
    let (result, output) = talk(&mut with_refs(), "option object-format sha256\nlist\n\n");
    assert!(matches!(result, Err(Error::ObjectFormat { .. })));
    assert_eq!(output, "ok\n");
}

#[test]
fn a_symref_without_its_target_is_not_told() {
    let mut fake = with_refs();
    fake.listing.head = Some("refs/heads/gone".into());
    assert!(answer(&mut fake, "list\n\n").starts_with(format!("{A} ").as_bytes()));
}

#[test]
fn names_that_git_refuses_and_null_ids_are_left_out() {
    let mut fake = with_refs();
    for name in [
        "refs/heads/../x",
        "refs/heads/a b",
        "refs/heads/a\nb",
        "refs/heads/x.lock",
    ] {
        fake.listing.refs.push(listed(name, C));
    }
    fake.listing.refs.push(Listed {
        name: "refs/heads/null".into(),
        id: Kind::Sha1.null(),
        peeled: None,
    });
    let output = answer(&mut fake, "list for-push\n\n");
    assert_eq!(
        output,
        format!("{A} refs/heads/main\n{B} refs/tags/v1\n\n").as_str()
    );
}

#[test]
fn fetch_drops_duplicates_and_keeps_order() {
    let mut fake = with_refs();
    let input =
        format!("fetch {B} HEAD\nfetch {A} refs/heads/a\nfetch {B} refs/heads/b\nfetch {C} {C}\n\n\n");
    assert_eq!(answer(&mut fake, input), "\n");
    assert_eq!(fake.fetches, [vec![id(B), id(A), id(C)]]);
}

#[test]
fn fetch_names_a_lock_and_connectivity_when_asked() {
    let mut fake = with_refs();
    fake.fetched = Fetched {
        lock: Some(PathBuf::from("/ü r/objects/pack/pack-1.keep")),
        connected: true,
    };
    let lock = "lock /ü r/objects/pack/pack-1.keep\n";
    let fetch = format!("fetch {A} refs/heads/main\n\n");
    assert_eq!(answer(&mut fake, &fetch), format!("{lock}\n").as_str());
    let asked = format!("option check-connectivity true\n{fetch}");
    assert_eq!(
        answer(&mut fake, &asked),
        format!("ok\n{lock}connectivity-ok\n\n").as_str()
    );
    fake.fetched.connected = false;
    assert_eq!(answer(&mut fake, &asked), format!("ok\n{lock}\n").as_str());
}

#[test]
fn a_lock_path_that_would_break_the_line_is_an_error() {
    let mut fake = with_refs();
    fake.fetched.lock = Some(PathBuf::from("/a\nb/pack.keep"));
    let (result, output) = talk(&mut fake, format!("fetch {A} refs/heads/main\n\n"));
    assert!(matches!(result, Err(Error::Unprintable)));
    assert_eq!(output, "");
}

#[test]
fn several_batches_in_one_conversation() {
    let mut fake = with_refs();
    let input = format!("list\nfetch {A} a\n\nfetch {B} b\n\npush x:refs/heads/x\n\n\n");
    answer(&mut fake, input);
    assert_eq!(fake.fetches, [vec![id(A)], vec![id(B)]]);
    assert_eq!(fake.pushes.len(), 1);
}

#[test]
fn every_push_form_reaches_the_backend_in_one_batch() {
    let mut fake = with_refs();
    let input = format!(
        "push refs/heads/a:refs/heads/a\npush +HEAD:refs/heads/b\npush :refs/heads/c\npush {C}:refs/tags/d\n\
         push main~0:refs/heads/e\n\n\n"
    );
    let output = answer(&mut fake, input);
    let expected = "ok refs/heads/a\nok refs/heads/b\nok refs/heads/c\nok refs/tags/d\nok refs/heads/e\n\n";
    assert_eq!(output, expected);
    let update = |source: Option<&str>, destination: &str, force| Update {
        source: source.map(Into::into),
        destination: destination.into(),
        force,
        lease: None,
    };
    let expected = [
        update(Some("refs/heads/a"), "refs/heads/a", false),
        update(Some("HEAD"), "refs/heads/b", true),
        update(None, "refs/heads/c", false),
        update(Some(C), "refs/tags/d", false),
        update(Some("main~0"), "refs/heads/e", false),
    ];
    assert_eq!(fake.pushes[0].1, expected);
}

#[test]
fn each_reference_is_answered_once_with_gits_own_words() {
    let mut fake = with_refs();
    fake.verdicts = vec![
        ("refs/heads/a", Verdict::Refused("fetch first".into())),
        ("refs/heads/b", Verdict::UpToDate),
        ("refs/heads/c", Verdict::Refused("line\nfeed \"here\"".into())),
    ];
    fake.mute = vec!["refs/heads/d"];
    let input = "push x:refs/heads/a\npush x:refs/heads/b\npush x:refs/heads/c\npush x:refs/heads/d\n\n\n";
    let expected = "error refs/heads/a fetch first\nerror refs/heads/b up to date\n\
                    error refs/heads/c \"line\\nfeed \\\"here\\\"\"\n\
                    error refs/heads/d no outcome is known for this reference\n\n";
    assert_eq!(answer(&mut fake, input), expected);
}

#[test]
fn what_was_replaced_is_told_when_it_is_not_what_was_listed() {
    let mut fake = with_refs();
    let changed = Verdict::Changed {
        old: Some(id(C)),
        new: Some(id(B)),
        forced: true,
    };
    fake.verdicts = vec![("refs/heads/main", changed)];
    let input = "list for-push\npush +x:refs/heads/main\n\n\n";
    let output = answer(&mut fake, input);
    let expected =
        format!("ok refs/heads/main\noption old-oid {C}\noption new-oid {B}\noption forced-update\n\n");
    assert!(output.ends_with(expected.as_bytes()), "{output}");
}

#[test]
fn leases_belong_to_the_next_batch_and_force_outranks_them() {
    let mut fake = with_refs();
    let zero = "0".repeat(40);
    let input = format!(
        "option cas refs/heads/a:{A}\noption cas refs/heads/b:{zero}\noption cas refs/heads/c:{B}\n\
         push x:refs/heads/a\npush x:refs/heads/b\npush +x:refs/heads/c\npush x:refs/heads/d\n\n\
         push x:refs/heads/a\n\n\n"
    );
    answer(&mut fake, input);
    let leases = |batch: usize| {
        fake.pushes[batch]
            .1
            .iter()
            .map(|update| update.lease)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        leases(0),
        [Some(Lease::At(id(A))), Some(Lease::Absent), None, None]
    );
    assert_eq!(leases(1), [None]);
}

#[test]
fn push_options_reach_the_backend() {
    let mut fake = with_refs();
    answer(
        &mut fake,
        "option dry-run true\noption atomic true\npush x:refs/heads/a\n\n\n",
    );
    let options = &fake.pushes[0].0;
    assert!(options.dry_run && options.atomic);
}

#[test]
fn names_that_are_not_utf8_pass_through_unchanged() {
    let mut fake = Fake::default();
    let output = answer(&mut fake, b"push refs/heads/\xff:refs/heads/\xfe\n\n\n");
    assert_eq!(output, b"ok refs/heads/\xfe\n\n".as_bstr());
    assert_eq!(
        fake.pushes[0].1[0].source.as_ref().unwrap(),
        b"refs/heads/\xff".as_bstr()
    );
}

#[test]
fn a_batch_that_ends_early_does_nothing() {
    for input in [
        "push a:refs/heads/a\n",
        "push a:refs/heads/a\npush b:refs/he",
        "push a:refs/heads/a",
    ] {
        let mut fake = with_refs();
        let (result, output) = talk(&mut fake, input);
        assert!(
            matches!(result, Err(Error::Unfinished { .. } | Error::Read(_))),
            "{input}"
        );
        assert!(fake.pushes.is_empty());
        assert_eq!(output, "");
    }
    let mut fake = with_refs();
    let (result, _) = talk(&mut fake, format!("fetch {A} a\nfetch {B} b\n"));
    assert!(matches!(result, Err(Error::Unfinished { batch: "fetch" })));
    assert!(fake.fetches.is_empty());
}

#[test]
fn a_batch_holds_one_kind_of_command() {
    for input in [
        format!("push a:refs/heads/a\nfetch {A} a\n\n"),
        "push a:refs/heads/a\nlist\n\n".to_owned(),
        "push a:refs/heads/a\nnonsense\n\n".to_owned(),
        format!("fetch {A} a\npush a:refs/heads/a\n\n"),
    ] {
        let mut fake = with_refs();
        let (result, output) = talk(&mut fake, &input);
        assert!(
            matches!(result, Err(Error::Mixed { .. } | Error::Parse(_))),
            "{input}"
        );
        assert!(fake.pushes.is_empty() && fake.fetches.is_empty());
        assert_eq!(output, "");
    }
}

#[test]
fn one_destination_twice_is_refused_whole() {
    let mut fake = with_refs();
    let (result, output) = talk(&mut fake, "push a:refs/heads/a\npush b:refs/heads/a\n\n");
    assert!(matches!(result, Err(Error::Twice { .. })));
    assert!(fake.pushes.is_empty());
    assert_eq!(output, "");
}

#[test]
fn a_failing_store_answers_nothing() {
    for input in [
        "list\n\n".to_owned(),
        format!("fetch {A} a\n\n"),
        "push a:refs/heads/a\n\n".to_owned(),
    ] {
        let mut fake = Fake {
            fail: true,
            ..with_refs()
        };
        let (result, output) = talk(&mut fake, &input);
        assert!(matches!(result, Err(Error::Backend("storage is gone"))));
        assert_eq!(output, "");
    }
}

#[test]
fn unknown_and_malformed_commands_end_it() {
    for input in [
        "import refs/heads/a\n",
        "fetch nothing\n",
        "push nothing\n",
        "list all\n",
    ] {
        let (result, output) = talk(&mut with_refs(), input);
        assert!(matches!(result, Err(Error::Parse(_))), "{input}");
        assert_eq!(output, "");
    }
}

#[test]
fn long_lines_and_long_batches() {
    let mut fake = Fake::default();
    let name = "x".repeat(2 << 20);
    answer(&mut fake, format!("push a:refs/heads/{name}\n\n\n"));
    assert_eq!(
        fake.pushes[0].1[0].destination.len(),
        "refs/heads/".len() + name.len()
    );

    let mut batch = String::new();
    for number in 0..50_000 {
        batch += &format!("push {A}:refs/heads/branch-{number}\n");
    }
    let output = answer(&mut fake, batch + "\n\n");
    assert_eq!(output.lines().count(), 50_001);

    let endless = vec![b'x'; MAX_LINE + 2];
    let (result, _) = talk(&mut fake, endless);
    assert!(matches!(result, Err(Error::Read(_))));
}

/// A reader that fails the test when it is read before everything written so far has been flushed.
#[test]
fn every_answer_is_flushed_before_the_next_command_is_read() {
    use std::cell::Cell;
    use std::io::{BufReader, Read, Write};

    struct Input<'a>(&'a Cell<bool>, std::vec::IntoIter<Vec<u8>>);
    impl Read for Input<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            assert!(!self.0.get(), "an answer was held back");
            let Some(part) = self.1.next() else { return Ok(0) };
            buffer[..part.len()].copy_from_slice(&part);
            Ok(part.len())
        }
    }
    struct Output<'a>(&'a Cell<bool>);
    impl Write for Output<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.set(true);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            self.0.set(false);
            Ok(())
        }
    }

    let pending = Cell::new(false);
    let fetch = format!("fetch {A} a\n\n");
    let parts = [
        "capabilities\n",
        "option progress true\n",
        "list\n",
        &fetch,
        "push a:refs/heads/a\n\n",
        "\n",
    ];
    let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.as_bytes().to_vec()).collect();
    let input = BufReader::new(Input(&pending, parts.into_iter()));
    serve(input, Output(&pending), &mut with_refs()).unwrap();
}
