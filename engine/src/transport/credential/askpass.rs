//! Asks the user: by a program (gitcredentials(7)), or on the terminal.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use bstr::ByteSlice as _;
use zeroize::Zeroizing;

use crate::repository::Config;
use crate::transport::Messages;
use crate::transport::options::{Environment, Options};
use crate::transport::program::Prepared;

/// What an answer may have.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// Why a question was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// `GIT_TERMINAL_PROMPT` forbids the terminal, and no program is set.
    #[error("asking on the terminal is switched off (GIT_TERMINAL_PROMPT)")]
    SwitchedOff,
    /// There is no terminal and no program, or neither gave an answer.
    #[error("there is no terminal to ask on")]
    Nobody,
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Asks for a secret that belongs to no server, such as the passphrase of a file: with an askpass program, found as Git
/// finds it, or with [`Messages::ask`] unless `GIT_TERMINAL_PROMPT` is false. Standard input is not touched. Programs are
/// started in `folder`.
pub fn ask_secret(
    prompt: &str,
    config: &Config<'_>,
    folder: Option<&Path>,
    messages: &dyn Messages,
) -> Result<Zeroizing<String>, Unanswered> {
    let environment = Environment::of_process();
    if let Some(answer) = ask_program(prompt, config, &environment, folder, messages) {
        return Ok(answer);
    }
    if !environment.flag("GIT_TERMINAL_PROMPT").unwrap_or(true) {
        return Err(Unanswered::SwitchedOff);
    }
    match messages.ask(prompt, true) {
        Some(answer) => Ok(Zeroizing::new(answer)),
        None if messages.interrupted() => Err(Unanswered::Interrupted),
        None => Err(Unanswered::Nobody),
    }
}

/// Asks with the program of `GIT_ASKPASS`, `core.askPass` or `SSH_ASKPASS`, the first of them that is set; `None` without
/// a program or an answer.
pub(super) fn ask(
    prompt: &str,
    options: &Options,
    messages: &Arc<dyn Messages>,
) -> Option<Zeroizing<String>> {
    let folder = options.working_folder();
    ask_program(
        prompt,
        &options.config(),
        options.environment(),
        folder,
        &**messages,
    )
}

fn ask_program(
    prompt: &str,
    config: &Config<'_>,
    environment: &Environment,
    folder: Option<&Path>,
    messages: &dyn Messages,
) -> Option<Zeroizing<String>> {
    // An empty variable stands for none, and outranks the configuration.
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
    match run(prepared, folder) {
        Ok(answer) => answer,
        Err(error) => {
            messages.warning(&format!("cannot read an answer from '{name}': {error}"));
            None
        }
    }
}

fn run(prepared: Prepared, folder: Option<&Path>) -> io::Result<Option<Zeroizing<String>>> {
    let mut command = prepared.command();
    // Standard input may be a conversation with Git.
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    if let Some(folder) = folder {
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
pub fn ask_on_terminal(prompt: &str, secret: bool) -> io::Result<String> {
    ask_on_terminal_unless(prompt, secret, &|| false)
}

/// The same, given up with [`io::ErrorKind::Interrupted`] when `stop`, asked several times a second, says so. The terminal
/// is left as it was found.
#[cfg(unix)]
pub fn ask_on_terminal_unless(prompt: &str, secret: bool, stop: &dyn Fn() -> bool) -> io::Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    use std::io::Write as _;

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
    let line = terminal
        .write_all(prompt.as_bytes())
        .and_then(|()| read_line(&terminal, stop));
    if secret {
        tcsetattr(&terminal, OptionalActions::Flush, &before)?;
        (&terminal).write_all(b"\n")?;
    }
    line
}

/// A line of a terminal, which hands out whole lines of up to 4 KiB. No copy of it stays.
#[cfg(unix)]
fn read_line(mut terminal: &std::fs::File, stop: &dyn Fn() -> bool) -> io::Result<String> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    const MOMENT: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    let mut line = Zeroizing::new(vec![0; 8 * 1024]);
    let mut length = 0;
    loop {
        // Where terminals cannot be polled, reading waits without looking up.
        let ready = match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&MOMENT)) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        if stop() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if ready == 0 {
            continue;
        }
        let read = terminal.read(&mut line[length..])?;
        length += read;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if read == 0 || line[..length].ends_with(b"\n") {
            break;
        }
        if length == line.len() {
            return Err(io::Error::other("the line is too long"));
        }
    }
    let text = line[..length].to_str().map_err(io::Error::other)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Elsewhere there is no way to hide what is typed.
#[cfg(not(unix))]
pub fn ask_on_terminal_unless(_prompt: &str, _secret: bool, _stop: &dyn Fn() -> bool) -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}
