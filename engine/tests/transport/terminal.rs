//! Questions on a terminal.

use std::process::Command;

use ingot_engine::transport::ask_on_terminal;

/// Runs a program on a terminal of its own, types a line when it has asked, and prints what the terminal showed.
const TERMINAL: &str = r#"
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
shown = b""
typed = False
while True:
    try:
        data = os.read(terminal, 1000)
    except OSError:
        break
    if not data:
        break
    shown += data
    if b"word? " in shown and not typed:
        os.write(terminal, b"open sesame\n")
        typed = True
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

fn on_terminal(test: &str) -> String {
    let output = Command::new("python3")
        .args(["-c", TERMINAL])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    shown
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
