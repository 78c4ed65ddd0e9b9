//! Key files through the library: who is asked, how often, and what a crash leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use ingot_engine::durable::testing::Recording;
use ingot_engine::transport::Unanswered;
use ingot_helper::cli::app::App;
use ingot_helper::cli::args::Global;
use ingot_helper::cli::interrupt::Interrupt;
use ingot_helper::cli::key;
use ingot_helper::cli::key::args::{KeyCommand, KeyOf, Keychain as KeychainArgs};
use ingot_helper::keys::{Ask, KeyFiles, Keychain, Opened, Passphrase, age, keychain};
use ingot_helper::protocol::DeviceKey;
use ingot_helper::protocol::key_file::{self, Error};
use ingot_testdata::repo::{Format, Repo};
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::client::{Client, new_key};
use super::protect::{PASSPHRASE, protect, wrapping};

/// Gives these answers, and keeps what it was asked and told.
#[derive(Clone, Default)]
struct Scripted {
    answers: Arc<Mutex<Vec<&'static str>>>,
    asked: Arc<Mutex<Vec<String>>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    fn new(answers: &[&'static str]) -> Scripted {
        let mut answers = answers.to_vec();
        answers.reverse();
        Scripted {
            answers: Arc::new(Mutex::new(answers)),
            ..Scripted::default()
        }
    }

    fn files(&self) -> KeyFiles {
        KeyFiles::new(Box::new(self.clone()))
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Ask for Scripted {
    fn secret(&self, prompt: &str) -> Result<Zeroizing<String>, Unanswered> {
        self.asked.lock().unwrap().push(prompt.to_owned());
        let answer = self.answers.lock().unwrap().pop();
        answer
            .map(|text| Zeroizing::new(text.to_owned()))
            .ok_or(Unanswered::SwitchedOff)
    }

    fn say(&self, text: &str) {
        self.told.lock().unwrap().push(text.to_owned());
    }
}

/// A keychain that is a table.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<BTreeMap<PathBuf, Passphrase>>>);

impl Keychain for Table {
    fn get(&self, key_file: &Path) -> Result<Option<Passphrase>, keychain::Error> {
        Ok(self.0.lock().unwrap().get(key_file).cloned())
    }

    fn set(&self, key_file: &Path, passphrase: &Passphrase) -> Result<(), keychain::Error> {
        self.0
            .lock()
            .unwrap()
            .insert(key_file.to_owned(), passphrase.clone());
        Ok(())
    }

    fn remove(&self, key_file: &Path) -> Result<bool, keychain::Error> {
        Ok(self.0.lock().unwrap().remove(key_file).is_some())
    }
}

fn protected(folder: &TempDir, name: &str) -> (PathBuf, DeviceKey) {
    let path = folder.path().join(name);
    new_key(&path);
    let key = key_file::read(&path).unwrap();
    protect(&path);
    (path, key)
}

#[test]
fn asked_once_for_all_files_of_a_run() {
    let folder = TempDir::new().unwrap();
    let (path, key) = protected(&folder, "a.key.json");
    let (other, _) = protected(&folder, "b.key.json");
    assert!(matches!(key_file::read(&path), Err(Error::Protected(_))));
    let person = Scripted::new(&["wrong", PASSPHRASE]);
    let files = person.files();
    let opened = files.read(&path).unwrap();
    assert_eq!(opened.key.public(), key.public());
    assert_eq!(opened.wrapping, wrapping(PASSPHRASE));
    assert_eq!(person.asked(), 2);
    assert!(person.asked.lock().unwrap()[0].contains("a.key.json"));
    assert_eq!(person.told.lock().unwrap().len(), 1);
    files.read(&path).unwrap();
    files.read(&other).unwrap();
    // What is written keeps its passphrase, and is known.
    let next = DeviceKey::generate(None).unwrap();
    files
        .replace(&ingot_engine::durable::Real, &path, &next, &opened.wrapping)
        .unwrap();
    let again = files.read(&path).unwrap();
    assert_eq!(
        (again.key.public(), &again.wrapping),
        (next.public(), &opened.wrapping)
    );
    assert_eq!(person.asked(), 2);
    let shown = format!("{again:?} {:?}", Passphrase::from(PASSPHRASE));
    assert!(!shown.contains("sesame"), "{shown}");
}

#[test]
fn three_wrong_answers_are_enough() {
    let folder = TempDir::new().unwrap();
    let (path, _) = protected(&folder, "a.key.json");
    let person = Scripted::new(&["", "wrong", "Open sesame, please", PASSPHRASE]);
    assert!(matches!(
        person.files().read(&path),
        Err(Error::WrongPassphrase(_))
    ));
    assert_eq!(person.asked(), 3);
    let nobody = Scripted::new(&[]);
    let error = nobody.files().read(&path).unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }));
    let text = error.to_string();
    assert!(
        text.contains("GIT_TERMINAL_PROMPT") && text.contains("GIT_ASKPASS"),
        "{text}"
    );
}

#[test]
fn nobody_is_asked_about_files_that_cannot_be_opened() {
    let folder = TempDir::new().unwrap();
    let (path, _) = protected(&folder, "a.key.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let costly = "age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 30\n".to_owned()
        + &format!("{0}\n--- {0}\n{1}", "A".repeat(43), "x".repeat(60));
    let recipient = "age-encryption.org/v1\n-> X25519 AAAA\n".to_owned();
    for content in [
        costly,
        recipient,
        good[..good.len() / 2].to_owned(),
        good.replacen('\n', "\n!", 2),
    ] {
        std::fs::write(&path, &content).unwrap();
        let person = Scripted::new(&[PASSPHRASE]);
        let error = person.files().read(&path).unwrap_err();
        assert!(matches!(error, Error::Age { .. }), "{error}");
        assert_eq!(person.asked(), 0, "{content}");
    }
    // The right passphrase around something else.
    let sealed = age::seal(b"{\"format_version\": 4}", &Passphrase::from(PASSPHRASE), 4).unwrap();
    std::fs::write(&path, sealed).unwrap();
    let error = Scripted::new(&[PASSPHRASE]).files().read(&path).unwrap_err();
    assert!(matches!(error, Error::Content { .. }), "{error}");
}

#[test]
fn the_keychain_is_looked_into_first() {
    let folder = TempDir::new().unwrap();
    let (path, _) = protected(&folder, "a.key.json");
    let table = Table::default();
    let app = |person: &Scripted| {
        let mut app = App::new(Global::default(), Interrupt::default());
        app.keys = Arc::new(person.files().with_keychain(Some(Box::new(table.clone()))));
        app
    };
    let command = |store: bool| {
        KeyCommand::Keychain(KeychainArgs {
            key: KeyOf {
                key: Some(path.clone()),
                ..KeyOf::default()
            },
            store,
            remove: !store,
        })
    };
    let person = Scripted::new(&[PASSPHRASE]);
    key::run(&app(&person), &command(true)).unwrap();
    assert_eq!(person.asked(), 1);
    assert_eq!(table.get(&path), Ok(Some(Passphrase::from(PASSPHRASE))));

    let nobody = Scripted::new(&[]);
    app(&nobody).keys.read(&path).unwrap();
    assert_eq!(nobody.asked(), 0);

    table.set(&path, &Passphrase::from("another")).unwrap();
    let person = Scripted::new(&[PASSPHRASE]);
    app(&person).keys.read(&path).unwrap();
    assert!(person.told.lock().unwrap()[0].contains("key keychain --store"));

    key::run(&app(&nobody), &command(false)).unwrap();
    assert_eq!(table.get(&path), Ok(None));
    assert!(app(&nobody).keys.read(&path).is_err());
}

/// At every moment of a change of the passphrase, the file opens with the old one or the new one.
#[test]
fn a_crash_leaves_the_old_file_or_the_new_one() {
    let folder = TempDir::new().unwrap();
    let (path, key) = protected(&folder, "a.key.json");
    let recording = Recording::new(folder.path()).unwrap();
    let files = KeyFiles::silent();
    files.replace(&recording, &path, &key, &wrapping("new")).unwrap();
    recording.mark("done");
    let mut old_and_new = [0, 0];
    let states = recording.each_crash(|crash| {
        let content = std::fs::read(crash.root().join("a.key.json")).unwrap();
        let file = age::File::parse(&content).unwrap_or_else(|error| panic!("{error}\n{crash}"));
        let new = match file.open(&Passphrase::from("new")) {
            Ok(json) => {
                assert_eq!(*json, *key.to_json());
                true
            }
            Err(_) => {
                assert_eq!(
                    *file.open(&Passphrase::from(PASSPHRASE)).unwrap(),
                    *key.to_json(),
                    "{crash}"
                );
                false
            }
        };
        assert!(new || !crash.reached("done"), "{crash}");
        old_and_new[usize::from(new)] += 1;
    });
    assert!(
        states > 3 && old_and_new[0] > 0 && old_and_new[1] > 0,
        "{old_and_new:?}"
    );
}

/// What is written here, opened by the independent checker's own cryptography and Python's scrypt.
#[test]
fn another_implementation_opens_what_is_written() {
    let folder = TempDir::new().unwrap();
    let (path, key) = protected(&folder, "a.key.json");
    let output = Command::new("python3")
        .arg(ingot_testdata::root().join("open_age.py"))
        .arg(&path)
        .env("PASSPHRASE", PASSPHRASE)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stdout, *key.to_json());
}

/// The file beside the key while it is being replaced, and the new key, are protected as the old one was.
#[test]
fn a_rotation_keeps_the_passphrase() {
    let source = Repo::empty(Format::Sha1);
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("key.json");
    new_key(&key);
    let client = Client::new(source.path(), &folder.path().join("store"), &key);
    client.init().unwrap();
    let before = key_file::read(&key).unwrap();
    let person = Scripted::new(&[PASSPHRASE]);
    let files = person.files();
    client.remote(|remote, _| {
        protect(&key);
        let recording = Arc::new(Recording::new(folder.path()).unwrap());
        let remote = ingot_helper::remote::Remote {
            storage: remote.storage,
            key: remote.key,
            memory: None,
            floor: None,
            fs: recording.clone(),
            patience: remote.patience,
            progress: remote.progress,
            threads: 1,
            seen: remote.seen,
        };
        remote.rotate(&files, &key).unwrap();
        let mut waiting = 0;
        recording.each_crash(|crash| {
            for name in ["key.json", "key.json.next"] {
                // A file without content was never named for somebody to find.
                let Ok(content) = std::fs::read(crash.root().join(name)) else {
                    continue;
                };
                assert!(age::is_age(&content), "{name}\n{crash}");
                waiting += usize::from(name.ends_with(".next"));
            }
        });
        assert!(waiting > 0);
    });
    assert_eq!(person.asked(), 1);
    let Opened {
        key: after,
        wrapping: kept,
    } = files.read(&key).unwrap();
    assert_ne!(after.id(), before.id());
    assert_eq!(kept, wrapping(PASSPHRASE));
}
