//! Asks the user: by a program (gitcredentials(7)), or on the terminal.

use std::io::{self, Read as _};
use std::process::Stdio;
use std::sync::Arc;

use bstr::ByteSlice as _;
use zeroize::Zeroizing;

use crate::transport::Messages;
use crate::transport::options::Options;
use crate::transport::program::Prepared;

/// What an answer may have.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// Asks with the program of `GIT_ASKPASS`, `core.askPass` or `SSH_ASKPASS`, the first of them that is set; `None` without
/// a program or an answer.
pub(super) fn ask(
    prompt: &str,
    options: &Options,
    messages: &Arc<dyn Messages>,
) -> Option<Zeroizing<String>> {
    let config = options.config();
    // An empty variable stands for none, and outranks the configuration.
    let environment = options.environment();
    let program = match environment.raw("GIT_ASKPASS") {
        Some(program) => Some(program.to_owned()),
        None => match config.path("core.askPass") {
            Ok(Some(program)) => Some(program.into_os_string()),
            Ok(None) => environment.raw("SSH_ASKPASS").map(ToOwned::to_owned),
            Err(error) => {
                messages.warning(&error.to_string());
                None
            }
        },
    }?;
    if program.is_empty() {
        return None;
    }
    let name = program.to_string_lossy().into_owned();
    let mut prepared = Prepared::direct(program);
    prepared.arg(prompt);
    match run(prepared, options) {
        Ok(answer) => answer,
        Err(error) => {
            messages.warning(&format!("cannot read an answer from '{name}': {error}"));
            None
        }
    }
}

fn run(prepared: Prepared, options: &Options) -> io::Result<Option<Zeroizing<String>>> {
    let mut command = prepared.command();
    command.stdout(Stdio::piped());
    if let Some(folder) = options.working_folder() {
        command.current_dir(folder);
    }
    let mut child = command.spawn()?;
    let mut answer = Zeroizing::new(Vec::new());
    let read = match child.stdout.take() {
        Some(stdout) => stdout.take(LONGEST_ANSWER).read_to_end(&mut answer),
        None => Ok(0),
    };
    if read.is_err() || answer.len() as u64 == LONGEST_ANSWER {
        let _ = child.kill();
    }
    let status = child.wait()?;
    read?;
    if !status.success() {
        return Ok(None);
    }
    let line = answer.lines().next().unwrap_or_default();
    let line = line.to_str().map_err(|_| io::Error::other("it is not UTF-8"))?;
    Ok(Some(Zeroizing::new(line.to_owned())))
}

/// Asks on the terminal that the process was started from, showing `prompt` and hiding what is typed if it is `secret`.
/// Fails where there is no terminal. For callers that want to implement [`Messages::ask`].
#[cfg(unix)]
pub fn ask_on_terminal(prompt: &str, secret: bool) -> io::Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    use std::io::{BufRead as _, Write as _};

    let mut terminal = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")?;
    let before = tcgetattr(&terminal)?;
    if secret {
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // Before the prompt: this throws away what was typed so far, and whoever sees the prompt may be quick.
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    }
    terminal.write_all(prompt.as_bytes())?;
    terminal.flush()?;
    let mut line = String::new();
    let read = io::BufReader::new(&terminal)
        .take(LONGEST_ANSWER)
        .read_line(&mut line);
    if secret {
        tcsetattr(&terminal, OptionalActions::Flush, &before)?;
        (&terminal).write_all(b"\n")?;
    }
    if read? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Elsewhere there is no way to hide what is typed.
#[cfg(not(unix))]
pub fn ask_on_terminal(_prompt: &str, _secret: bool) -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}
