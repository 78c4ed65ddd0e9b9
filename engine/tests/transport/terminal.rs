//! Questions on a terminal.

use std::process::Command;

use ingot_engine::transport::ask_on_terminal;
use ingot_testdata::terminal;

fn on_terminal(test: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture"]);
    let session = terminal::run(&command, &[("word? ", "open sesame\n")], None);
    assert_eq!(session.code, 0, "{}", session.shown);
    session.shown
}

#[test]
fn answers_are_read_and_secrets_not_shown() {
    let shown = on_terminal("terminal::asks_for_a_secret");
    assert!(shown.contains("word? "), "{shown}");
    assert!(!shown.contains("sesame"), "{shown}");
    let shown = on_terminal("terminal::asks_openly");
    assert!(shown.contains("open sesame"), "{shown}");
}

#[test]
#[ignore = "needs a terminal: started by the test above"]
fn asks_for_a_secret() {
    assert_eq!(ask_on_terminal("word? ", true).unwrap(), "open sesame");
}

#[test]
#[ignore = "needs a terminal: started by the test above"]
fn asks_openly() {
    assert_eq!(ask_on_terminal("word? ", false).unwrap(), "open sesame");
}
