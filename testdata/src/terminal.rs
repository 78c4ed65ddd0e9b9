//! Programs on a terminal of their own, with somebody who types.

use std::path::Path;
use std::process::Command;

/// What became of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// How it ended.
    pub code: i32,
    /// Everything that the terminal showed, what was typed and echoed included.
    pub shown: String,
    /// How many of the answers were typed.
    pub typed: usize,
    /// How much of its standard input was read, where that is no terminal.
    pub read: u64,
}

/// Runs a program on a new terminal. Each of `answers` is a text that the terminal has to show, and what is typed then, in
/// this order. With `stdin`, standard input is that file, and the terminal can be reached as `/dev/tty` only.
#[track_caller]
pub fn run(command: &Command, answers: &[(&str, &str)], stdin: Option<&Path>) -> Session {
    let quoted = |text: &str| {
        let digits: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        digits.concat()
    };
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]);
    python.arg(stdin.unwrap_or(Path::new("")));
    let answers: Vec<String> = answers
        .iter()
        .map(|(shown, typed)| format!("{}:{}", quoted(shown), quoted(typed)))
        .collect();
    python.arg(answers.join(","));
    python.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => python.env(name, value),
            None => python.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        python.current_dir(folder);
    }
    let output = python.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (head, shown) = text
        .split_once('\n')
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let numbers: Vec<i64> = head.split(' ').map(|number| number.parse().unwrap()).collect();
    Session {
        code: numbers[0] as i32,
        typed: numbers[1] as usize,
        read: numbers[2] as u64,
        shown: shown.replace("\r\n", "\n"),
    }
}

/// Answers are looked for behind the previous one, so that the same question may be asked twice.
const SCRIPT: &str = r#"
import os, pty, sys
stdin, answers, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
answers = [[bytes.fromhex(part) for part in pair.split(":")] for pair in answers.split(",") if pair]
file = os.open(stdin, os.O_RDONLY) if stdin else None
child, terminal = pty.fork()
if child == 0:
    if file is not None:
        os.dup2(file, 0)
    os.execvp(argv[0], argv)
shown, seen, typed = b"", 0, 0
while True:
    try:
        data = os.read(terminal, 1000)
    except OSError:
        break
    if not data:
        break
    shown += data
    while typed < len(answers):
        at = shown.find(answers[typed][0], seen)
        if at < 0:
            break
        seen = at + len(answers[typed][0])
        os.write(terminal, answers[typed][1])
        typed += 1
status = os.waitpid(child, 0)[1]
read = os.lseek(file, 0, os.SEEK_CUR) if file is not None else 0
sys.stdout.buffer.write(b"%d %d %d\n" % (os.waitstatus_to_exitcode(status), typed, read))
sys.stdout.buffer.write(shown)
"#;
