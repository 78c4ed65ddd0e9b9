//! Questions for the managers' own programs.

use std::cell::RefCell;

use ingot_snapshot::packages::ask::{AskError, Programs, Runner, ask, question};
use ingot_snapshot::packages::{Manager, Reason};

/// Answers from a table, and notes what was asked.
struct Table {
    answers: Vec<(&'static str, Option<&'static str>)>,
    asked: RefCell<Vec<String>>,
}

impl Runner for Table {
    fn run(&self, argv: &[&str]) -> Result<Vec<u8>, AskError> {
        self.asked.borrow_mut().push(argv.join(" "));
        let answer = self
            .answers
            .iter()
            .find(|(program, _)| *program == argv[0])
            .and_then(|(_, answer)| *answer);
        answer
            .map(|answer| answer.as_bytes().to_vec())
            .ok_or_else(|| AskError::Failed {
                program: argv[0].to_owned(),
                status: "exit status: 1".to_owned(),
                command: argv.join(" "),
            })
    }
}

fn table(answers: &[(&'static str, Option<&'static str>)]) -> Table {
    Table {
        answers: answers.to_vec(),
        asked: RefCell::default(),
    }
}

const RPM: &str = "bash\t5.2-3\tx86_64\ngpg-pubkey\t1-2\t(none)\nvim\t9.1-1\tx86_64\nnonsense\n";

#[test]
fn rpm_answers_with_the_reasons_of_dnf() {
    let runner = table(&[("rpm", Some(RPM)), ("dnf", Some("vim\n"))]);
    let listing = ask(Manager::Rpm, &runner).expect("an answer");
    let found: Vec<_> = listing
        .packages
        .iter()
        .map(|package| (package.name.as_str(), package.reason))
        .collect();
    assert_eq!(found, [("bash", Reason::Dependency), ("vim", Reason::Explicit)]);
    assert_eq!(listing.warnings.len(), 1);
    assert_eq!(
        runner.asked.borrow()[0],
        question(Manager::Rpm).expect("a question")
    );
    assert_eq!(runner.asked.borrow().len(), 2);
}

#[test]
fn without_dnf_the_reasons_are_unknown() {
    let listing = ask(Manager::Rpm, &table(&[("rpm", Some(RPM))])).expect("an answer");
    assert!(
        listing
            .packages
            .iter()
            .all(|package| package.reason == Reason::Unknown)
    );
    assert!(
        listing.warnings[0].contains("dnf failed"),
        "{:?}",
        listing.warnings
    );
    assert!(ask(Manager::Rpm, &table(&[])).is_err());
}

#[test]
fn snap_answers_in_columns() {
    let answer = "Name    Version   Rev    Tracking       Publisher   Notes\n\
                  code    1a2b3c    180    latest/stable  vscode**    classic\n\
                  core22  20240408  1380   latest/stable  canonical** base\n\
                  hello   2.10      42     latest/stable  canonical** -\n";
    let listing = ask(Manager::Snap, &table(&[("snap", Some(answer))])).expect("an answer");
    let found: Vec<_> = listing
        .packages
        .iter()
        .map(|p| (p.name.as_str(), p.version.as_str(), p.reason, p.origin.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            ("code", "1a2b3c", Reason::Explicit, Some("classic")),
            ("core22", "20240408", Reason::Dependency, None),
            ("hello", "2.10", Reason::Explicit, None)
        ]
    );
}

#[test]
fn there_is_nothing_to_ask_where_files_tell_all() {
    assert_eq!(question(Manager::Apt), None);
    assert!(matches!(
        ask(Manager::Apt, &Programs),
        Err(AskError::NothingToAsk(Manager::Apt))
    ));
}

#[test]
#[cfg(unix)]
fn programs_are_run_without_input_and_bounded() {
    assert_eq!(
        Programs
            .run(&["sh", "-c", "cat; printf '%s' \"$LC_ALL\""])
            .expect("output"),
        b"C"
    );
    assert!(matches!(
        Programs.run(&["sh", "-c", "exit 3"]),
        Err(AskError::Failed { .. })
    ));
    assert!(matches!(
        Programs.run(&["there-is-no-such-program"]),
        Err(AskError::Start { .. })
    ));
    assert!(matches!(
        Programs.run(&["sh", "-c", "exec cat /dev/zero"]),
        Err(AskError::TooLong { .. })
    ));
}
