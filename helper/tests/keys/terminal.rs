//! Passphrases and words that a person types.

use std::process::Command;

use ingot_helper::protocol::key_file;
use ingot_testdata::repo::Format;
use ingot_testdata::terminal::{Session, run};

use super::protect::{PASSPHRASE, protect};
use super::world::{World, text};

/// What the question ends with.
const ASKED: &str = ".key.json': ";

fn on_terminal(mut command: Command, answers: &[(&str, &str)]) -> Session {
    command.env_remove("GIT_TERMINAL_PROMPT");
    run(&command, answers, None)
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

#[test]
fn git_asks_on_the_terminal() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    protect(&world.key);
    let git = |args: &[&str]| {
        let mut command = world.command("git", source.path());
        command.args(args);
        command
    };
    let right = line(PASSPHRASE);
    let session = on_terminal(
        git(&["push", "vault", "main"]),
        &[(ASKED, "wrong\n"), (ASKED, &right)],
    );
    assert_eq!((session.code, session.typed), (0, 2), "{}", session.shown);
    assert!(
        session.shown.contains("that passphrase does not open"),
        "{}",
        session.shown
    );
    assert!(
        !session.shown.contains("sesame") && !session.shown.contains("wrong"),
        "{}",
        session.shown
    );
    let session = on_terminal(git(&["fetch", "vault"]), &[(ASKED, &right), (ASKED, "again\n")]);
    assert_eq!((session.code, session.typed), (0, 1), "{}", session.shown);
    let session = on_terminal(
        git(&["fetch", "vault"]),
        &[(ASKED, "a\n"), (ASKED, "b\n"), (ASKED, "c\n"), (ASKED, "d\n")],
    );
    assert_eq!((session.code, session.typed), (128, 3), "{}", session.shown);
    assert!(session.shown.contains("is another one"), "{}", session.shown);
}

/// Somebody else's data, and Git's conversation, are there.
#[test]
fn standard_input_is_not_read() {
    let world = World::new();
    protect(&world.key);
    let input = world.path("input");
    std::fs::write(&input, "open sesame, please\n".repeat(100)).unwrap();
    let mut command = world.program(world.root(), &["key", "show", "--key", text(&world.key)]);
    let session = run(&command, &[], Some(&input));
    assert_eq!(
        (session.code, session.read),
        (15, 0),
        "switched off: {}",
        session.shown
    );
    command.env_remove("GIT_TERMINAL_PROMPT");
    let session = run(&command, &[(ASKED, &line(PASSPHRASE))], Some(&input));
    assert_eq!(
        (session.code, session.typed, session.read),
        (0, 1, 0),
        "{}",
        session.shown
    );
    assert!(session.shown.contains("passphrase: yes"), "{}", session.shown);
}

#[test]
fn a_new_passphrase_is_typed_twice() {
    let world = World::new();
    let command = || {
        world.program(
            world.root(),
            &["key", "change-passphrase", "--key", text(&world.key)],
        )
    };
    let (new, same) = ("New passphrase for key file", "once more: ");
    let session = on_terminal(
        command(),
        &[
            (new, "one\n"),
            (same, "two\n"),
            (new, "three\n"),
            (same, "three\n"),
        ],
    );
    assert_eq!((session.code, session.typed), (0, 4), "{}", session.shown);
    assert!(session.shown.contains("the two differ"), "{}", session.shown);
    let session = on_terminal(command(), &[(ASKED, "three\n"), (new, "\x03")]);
    assert_eq!((session.code, session.typed), (130, 2), "{}", session.shown);
    let show = world.program(world.root(), &["key", "show", "--key", text(&world.key)]);
    let session = on_terminal(show, &[(ASKED, "three\n")]);
    assert_eq!(session.code, 0, "{}", session.shown);
}

/// An interrupt at the question ends the program, and what is typed afterwards is seen again.
#[test]
fn an_interrupt_leaves_the_terminal_as_it_was() {
    let world = World::new();
    protect(&world.key);
    let mut shell = world.command("bash", world.root());
    let program = world.program(world.root(), &[]);
    let line = format!(
        "trap : INT; '{}' key show --key '{}'; echo \"ended $?\"; stty -a | tr ' ' '\\n' | grep -x -- '-\\?echo;\\?'",
        text(std::path::Path::new(program.get_program())),
        text(&world.key)
    );
    shell.args(["-c", &line]);
    let session = on_terminal(shell, &[(ASKED, "\x03")]);
    assert!(session.shown.contains("ended 130"), "{}", session.shown);
    assert!(session.shown.trim_end().ends_with("\necho"), "{}", session.shown);
}

#[test]
fn the_words_of_a_sheet_are_typed() {
    let world = World::new();
    let key = key_file::read(&world.key).unwrap();
    let sheet = world
        .e2ee(world.root(), &["key", "backup", "--key", text(&world.key)])
        .good();
    let rows: Vec<&str> = sheet
        .lines()
        .filter(|line| {
            line.len() > 30
                && [b'S', b'W'].contains(&line.as_bytes()[0])
                && line.as_bytes()[1].is_ascii_digit()
        })
        .collect();
    assert_eq!(rows.len(), 8);
    let id = key.id().to_string();
    let words: Vec<String> = rows.iter().map(|row| line(row[2..].trim())).collect();
    let wrong = words[2].replacen(words[2].split(' ').next().unwrap(), "qwertz", 1);
    let questions: Vec<String> = rows.iter().map(|row| format!("Row {}: ", &row[..2])).collect();
    let mut answers: Vec<(&str, &str)> = Vec::new();
    for (number, (question, words)) in questions.iter().zip(&words).enumerate() {
        if number == 2 {
            answers.push((question, &wrong));
        }
        answers.push((question, words));
    }
    let device = line(&id[..12]);
    answers.push(("Row R1, or nothing", "\n"));
    answers.push(("Device or fingerprint", &device));
    let import = ["key", "import", "--words", "--output", "typed.key.json"];
    let session = on_terminal(world.program(world.root(), &import), &answers);
    assert_eq!((session.code, session.typed), (0, 11), "{}", session.shown);
    assert!(session.shown.contains("row S3, word 1:"), "{}", session.shown);
    let typed = key_file::read(&world.path("typed.key.json")).unwrap();
    assert_eq!(*typed.to_json(), *key.to_json());
    // No terminal, or none that may be used.
    let import = ["key", "import", "--words", "--output", "x.json"];
    world
        .e2ee(world.root(), &import)
        .bad(&["GIT_TERMINAL_PROMPT", "put the rows into a file"]);
}

#[test]
fn keys_are_not_shown() {
    let world = World::new();
    protect(&world.key);
    let export = ["key", "export", "--key", text(&world.key), "--output", "-"];
    let session = on_terminal(world.program(world.root(), &export), &[]);
    assert_eq!(session.code, 1);
    assert!(
        session.shown.contains("not shown on a terminal"),
        "{}",
        session.shown
    );
    assert!(!session.shown.contains("BEGIN AGE"), "{}", session.shown);
}
