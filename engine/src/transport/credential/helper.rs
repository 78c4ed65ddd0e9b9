//! Talks to one credential helper (git-credential(1), "INPUT/OUTPUT FORMAT").

use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

use bstr::{BStr, BString, ByteSlice as _, ByteVec as _};
use zeroize::Zeroizing;

use super::Credential;
use crate::transport::options::Options;
use crate::transport::program::{self, Prepared};

/// What a helper may answer.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// Asks for what is missing in `credential`. True when nobody else should be asked. A helper that does not work is told
/// of and left out, as Git does.
pub(super) fn get(
    helper: &BStr,
    credential: &mut Credential,
    challenges: &[String],
    options: &Options,
) -> Result<bool, String> {
    let mut input = description(credential)?;
    input.push_str("capability[]=authtype\n");
    for challenge in challenges {
        line(&mut input, "wwwauth[]", challenge.as_bytes())?;
    }
    let answer = run(helper, "get", &input, true, options)?;
    let mut authtype = None;
    let mut ready = None;
    for answer in answer.lines() {
        let Some((name, value)) = answer.split_once_str("=") else {
            continue;
        };
        let Ok(value) = value.to_str() else {
            return Err(format!("credential helper '{helper}': its answer is not UTF-8"));
        };
        match name {
            b"username" => credential.username = Some(value.to_owned()),
            b"password" => credential.password = Some(Zeroizing::new(value.to_owned())),
            b"authtype" => authtype = Some(value.to_owned()),
            b"credential" => ready = Some(Zeroizing::new(value.to_owned())),
            b"password_expiry_utc" | b"oauth_refresh_token" | b"state[]" => {
                let name = String::from_utf8_lossy(name).into_owned();
                credential.extra.push((name, Zeroizing::new(value.to_owned())));
            }
            b"quit" if matches!(value, "1" | "true") => return Ok(true),
            _ => {}
        }
    }
    if expired(credential) {
        credential.password = None;
    }
    if let (Some(authtype), Some(ready)) = (authtype, ready) {
        credential.ready = Some((authtype, ready));
    }
    Ok(false)
}

/// Tells of a credential that was accepted (`store`) or not (`erase`).
pub(super) fn tell(
    helper: &BStr,
    operation: &str,
    credential: &Credential,
    options: &Options,
) -> Result<(), String> {
    let mut input = description(credential)?;
    if let Some(password) = &credential.password {
        line(&mut input, "password", password.as_bytes())?;
    }
    if let Some((authtype, ready)) = &credential.ready {
        input.push_str("capability[]=authtype\n");
        line(&mut input, "authtype", authtype.as_bytes())?;
        line(&mut input, "credential", ready.as_bytes())?;
    }
    for (name, value) in &credential.extra {
        line(&mut input, name, value.as_bytes())?;
    }
    run(helper, operation, &input, false, options).map(drop)
}

fn expired(credential: &Credential) -> bool {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    credential
        .extra
        .iter()
        .filter(|(name, _)| name == "password_expiry_utc")
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .next_back()
        .is_some_and(|until| until < now)
}

fn description(credential: &Credential) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut input = Zeroizing::new(Vec::new());
    line(&mut input, "protocol", credential.protocol.as_bytes())?;
    line(&mut input, "host", credential.host.as_bytes())?;
    if let Some(path) = &credential.path {
        line(&mut input, "path", path)?;
    }
    if let Some(username) = &credential.username {
        line(&mut input, "username", username.as_bytes())?;
    }
    Ok(input)
}

/// Values end with their line: one that contains a line end would say more than it is.
fn line(input: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), String> {
    if value.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
        return Err(format!(
            "the credential's {name} contains a line end; helpers are not asked"
        ));
    }
    input.push_str(name);
    input.push(b'=');
    input.extend_from_slice(value);
    input.push(b'\n');
    Ok(())
}

fn run(
    helper: &BStr,
    operation: &str,
    input: &[u8],
    answers: bool,
    options: &Options,
) -> Result<Zeroizing<Vec<u8>>, String> {
    let failed = |message: String| format!("credential helper '{helper}': {message}");
    let mut command = prepare(helper, operation).map_err(failed)?.command();
    command.stdin(Stdio::piped());
    command.stdout(match answers {
        true => Stdio::piped(),
        false => Stdio::null(),
    });
    if let Some(folder) = options.working_folder() {
        command.current_dir(folder);
    }
    let mut child = command
        .spawn()
        .map_err(|error| failed(format!("it cannot be started: {error}")))?;
    let answer = exchange(&mut child, input, answers);
    if answer.is_err() {
        // It may be in the middle of an endless answer.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    let answer = answer.map_err(failed)?;
    match status.success() || !answers {
        true => Ok(answer),
        // Without an answer, another helper or the user is asked.
        false => Ok(Zeroizing::new(Vec::new())),
    }
}

fn exchange(child: &mut Child, input: &[u8], answers: bool) -> Result<Zeroizing<Vec<u8>>, String> {
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not care for its input is not at fault.
        let _ = stdin.write_all(input);
    }
    let mut answer = Zeroizing::new(Vec::new());
    if let (true, Some(stdout)) = (answers, child.stdout.take()) {
        stdout
            .take(LONGEST_ANSWER + 1)
            .read_to_end(&mut answer)
            .map_err(|error| format!("its answer cannot be read: {error}"))?;
        if answer.len() as u64 > LONGEST_ANSWER {
            return Err(format!("its answer is longer than {LONGEST_ANSWER} bytes"));
        }
    }
    Ok(answer)
}

/// `!command line`, a path, or a name with arguments behind it.
fn prepare(helper: &BStr, operation: &str) -> Result<Prepared, String> {
    let with_operation = |mut line: BString| -> Result<Prepared, String> {
        line.push(b' ');
        line.push_str(operation);
        let line = gix::path::from_bstring(line).map_err(|_| "it is not UTF-8".to_owned())?;
        Ok(Prepared::shell(line.into_os_string()))
    };
    if let Some(line) = helper.strip_prefix(b"!") {
        return with_operation(line.into());
    }
    let (name, arguments) = match helper.find_byteset(b" \t") {
        Some(at) => helper.split_at(at),
        None => (helper.as_bytes(), &b""[..]),
    };
    let is_path = name.starts_with(b"/") || (cfg!(windows) && name.get(1) == Some(&b':'));
    if is_path {
        return with_operation(helper.to_owned());
    }
    let name = name.to_str().map_err(|_| "it is not UTF-8".to_owned())?;
    let program = program::find(&format!("git-credential-{name}"))
        .ok_or_else(|| format!("no program git-credential-{name} is on PATH or beside Git's programs"))?;
    if arguments.trim().is_empty() {
        let mut prepared = Prepared::direct(program.into_os_string());
        prepared.arg(operation);
        return Ok(prepared);
    }
    let program = gix::path::into_bstr(program).map_err(|_| "its path is not UTF-8".to_owned())?;
    let mut line = gix::quote::single(program.as_ref());
    line.push_str(arguments);
    with_operation(line)
}

#[cfg(test)]
#[cfg(unix)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn output(helper: &str, operation: &str) -> String {
        let output = prepare(helper.into(), operation)
            .unwrap()
            .command()
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn every_form_of_a_helper_is_started() {
        assert_eq!(output("!echo a b", "get"), "a b get\n");
        assert_eq!(output("!f() { echo \"<$1>\"; }; f", "store"), "<store>\n");
        let echo = program::find("echo").unwrap();
        assert_eq!(output(&format!("{} x", echo.display()), "erase"), "x erase\n");
        assert!(prepare("no-such-helper".into(), "get").is_err());
    }

    #[test]
    fn line_ends_in_values_are_refused() {
        let mut input = Vec::new();
        assert!(line(&mut input, "host", b"a\nhost=b").is_err());
        assert!(line(&mut input, "host", b"a").is_ok());
        assert_eq!(input, b"host=a\n");
    }
}
