//! ssh: the user's own program, started as Git starts it (git-config(1), "core.sshCommand", "ssh.variant").

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice as _, ByteVec as _};

use super::channel::{Control, Duplex, Service, version_for};
use super::options::{Options, setting};
use super::program::{self, Prepared};
use super::{Address, Error, Messages};

/// What belongs to the repository here, and would be wrong for one over there.
const LOCAL_VARIABLES: [&str; 15] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Which options a program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Ssh,
    Plink,
    TortoisePlink,
    /// Host and command alone.
    Simple,
}

/// How the program was given.
#[derive(Debug, Clone)]
enum Given {
    /// A command line for the shell.
    Line(BString),
    Program(OsString),
}

/// Starts the program; the greeting comes next.
pub(super) fn connect(
    address: &Address,
    service: Service,
    options: &Options,
    messages: &Arc<dyn Messages>,
) -> Result<Duplex, Error> {
    let remote = address.to_string();
    let destination = Destination::of(address)?;
    let given = given(options);
    let failed = |program: &Given, source: std::io::Error| Error::Program {
        remote: remote.clone(),
        program: program.shown(),
        source,
        hint: "see GIT_SSH_COMMAND, core.sshCommand and GIT_SSH",
    };
    let version = version_for(service, options.version());
    let variant = match configured_variant(options)? {
        Some(variant) => variant,
        None => match named_variant(&given) {
            Some(variant) => variant,
            None => probe(&given, &destination, options).map_err(|error| failed(&given, error))?,
        },
    };
    let mut prepared = given.prepare()?;
    destination.arguments(&mut prepared, variant, version.parameter().is_some())?;
    let mut line = BString::from(service.name());
    line.push(b' ');
    line.push_str(quoted(destination.path.as_ref()));
    prepared.arg(os(line)?);

    let mut command = prepared.command();
    prepare_environment(&mut command, options);
    if let Some(parameter) = version.parameter() {
        command.env("GIT_PROTOCOL", parameter);
    } else {
        command.env_remove("GIT_PROTOCOL");
    }
    if messages.interrupted() {
        return Err(Error::Interrupted);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&given, error))?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed(&given, std::io::ErrorKind::BrokenPipe.into()));
    };
    Ok(Duplex::new(
        &remote,
        Box::new(stdout),
        Box::new(stdin),
        Control::Program {
            child,
            name: given.shown(),
        },
    ))
}

fn prepare_environment(command: &mut Command, options: &Options) {
    for name in LOCAL_VARIABLES {
        command.env_remove(name);
    }
    if let Some(folder) = options.working_folder() {
        command.current_dir(folder);
    }
}

/// Where to log in, and what is there.
#[derive(Debug)]
struct Destination {
    /// `user@host` or `host`.
    login: String,
    port: Option<u16>,
    path: BString,
}

impl Destination {
    /// Refuses what the program would take for an option.
    fn of(address: &Address) -> Result<Destination, Error> {
        let url = address.url();
        let host = url.host.as_deref().unwrap_or_default();
        let bad = |message: &str| Error::Address {
            address: address.to_string(),
            message: message.to_owned(),
        };
        let login = match url.user.as_deref() {
            Some(user) if !user.is_empty() => format!("{user}@{host}"),
            _ => host.to_owned(),
        };
        if login.starts_with('-') || host.starts_with('-') {
            return Err(bad(
                "a host name that begins with a dash would be an option of ssh",
            ));
        }
        if url.path.starts_with(b"-") {
            return Err(bad(
                "a path that begins with a dash would be an option over there",
            ));
        }
        Ok(Destination {
            login,
            port: url.port,
            path: url.path.clone(),
        })
    }

    fn arguments(&self, prepared: &mut Prepared, variant: Variant, protocol: bool) -> Result<(), Error> {
        if variant == Variant::Ssh && protocol {
            prepared.arg("-o").arg("SendEnv=GIT_PROTOCOL");
        }
        if variant == Variant::TortoisePlink {
            prepared.arg("-batch");
        }
        if let Some(port) = self.port {
            let option = match variant {
                Variant::Ssh => "-p",
                Variant::Plink | Variant::TortoisePlink => "-P",
                Variant::Simple => {
                    return Err(setting(
                        "ssh.variant",
                        "a program of the kind 'simple' cannot be told the port that the address has",
                    ));
                }
            };
            prepared.arg(option).arg(port.to_string());
        }
        prepared.arg(&self.login);
        Ok(())
    }
}

/// The program: `GIT_SSH_COMMAND`, `core.sshCommand`, `GIT_SSH`, or ssh.
fn given(options: &Options) -> Given {
    if let Some(line) = options.environment().variable("GIT_SSH_COMMAND")
        && let Ok(line) = gix::path::os_string_into_bstring(line.to_owned())
    {
        return Given::Line(line);
    }
    if let Some(line) = options.config().string("core.sshCommand")
        && !line.is_empty()
    {
        return Given::Line(line);
    }
    let program = options.environment().variable("GIT_SSH");
    Given::Program(program.unwrap_or(OsStr::new("ssh")).to_owned())
}

impl Given {
    fn prepare(&self) -> Result<Prepared, Error> {
        match self {
            Given::Program(program) => Ok(Prepared::direct(program.clone())),
            Given::Line(line) => {
                program::shell(line.as_ref()).ok_or_else(|| setting("core.sshCommand", "it is not UTF-8"))
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Given::Program(program) => program.to_string_lossy().into_owned(),
            Given::Line(line) => line.to_string(),
        }
    }

    /// The name of the program without folder and ending.
    fn name(&self) -> Option<String> {
        let first = match self {
            Given::Program(program) => program.to_string_lossy().into_owned(),
            Given::Line(line) => first_word(line.as_ref())?,
        };
        let name = first.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
        Some(name.strip_suffix(".exe").unwrap_or(&name).to_owned())
    }
}

/// The first word of a command line, its quotes taken off.
fn first_word(line: &BStr) -> Option<String> {
    let mut word = String::new();
    let mut quote = None;
    let mut chars = line.to_str().ok()?.trim_start().chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.extend(chars.next()),
            (None, c) if c.is_whitespace() => break,
            (_, c) => word.push(c),
        }
    }
    quote.is_none().then_some(word)
}

/// `GIT_SSH_VARIANT` or `ssh.variant`, unless they leave it open.
fn configured_variant(options: &Options) -> Result<Option<Variant>, Error> {
    let (name, text) = match options.environment().text("GIT_SSH_VARIANT") {
        Some(text) => ("GIT_SSH_VARIANT", text.to_owned()),
        None => match options.config().string("ssh.variant") {
            Some(text) => ("ssh.variant", text.to_string()),
            None => return Ok(None),
        },
    };
    match text.as_str() {
        "auto" | "" => Ok(None),
        "ssh" => Ok(Some(Variant::Ssh)),
        "plink" | "putty" => Ok(Some(Variant::Plink)),
        "tortoiseplink" => Ok(Some(Variant::TortoisePlink)),
        "simple" => Ok(Some(Variant::Simple)),
        _ => Err(setting(name, format!("'{text}' is not known"))),
    }
}

fn named_variant(given: &Given) -> Option<Variant> {
    match given.name()?.as_str() {
        "ssh" => Some(Variant::Ssh),
        "plink" => Some(Variant::Plink),
        "tortoiseplink" => Some(Variant::TortoisePlink),
        _ => None,
    }
}

/// A program of an unknown name is OpenSSH's if it can print its configuration, as OpenSSH can with `-G`.
fn probe(given: &Given, destination: &Destination, options: &Options) -> std::io::Result<Variant> {
    let mut prepared = given.prepare().map_err(std::io::Error::other)?;
    prepared.arg("-G");
    destination
        .arguments(&mut prepared, Variant::Ssh, true)
        .map_err(std::io::Error::other)?;
    let mut command = prepared.command();
    prepare_environment(&mut command, options);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(match status.success() {
        true => Variant::Ssh,
        false => Variant::Simple,
    })
}

/// A path in quotes of the shell over there. `!` would be history in some shells.
fn quoted(path: &BStr) -> BString {
    let mut quoted = BString::from("'");
    for &byte in path.as_bytes() {
        match byte {
            b'\'' | b'!' => {
                quoted.push_str(b"'\\");
                quoted.push(byte);
                quoted.push(b'\'');
            }
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

fn os(text: BString) -> Result<OsString, Error> {
    gix::path::from_bstring(text)
        .map(|path| OsStr::to_owned(path.as_os_str()))
        .map_err(|_| setting("the path", "it cannot be an argument on this system"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn destination(text: &str) -> Result<Destination, Error> {
        Destination::of(&Address::parse(text.into())?)
    }

    fn arguments(text: &str, variant: Variant) -> Result<String, Error> {
        let mut prepared = Prepared::direct("x".into());
        destination(text)?.arguments(&mut prepared, variant, true)?;
        let command = prepared.command();
        let words: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn every_kind_of_program_gets_its_options() {
        let url = "ssh://git@host:2222/repo";
        assert_eq!(
            arguments(url, Variant::Ssh).unwrap(),
            "-o SendEnv=GIT_PROTOCOL -p 2222 git@host"
        );
        assert_eq!(arguments(url, Variant::Plink).unwrap(), "-P 2222 git@host");
        assert_eq!(
            arguments(url, Variant::TortoisePlink).unwrap(),
            "-batch -P 2222 git@host"
        );
        assert!(arguments(url, Variant::Simple).is_err());
        assert_eq!(arguments("host:repo", Variant::Simple).unwrap(), "host");
        assert_eq!(arguments("ssh://[::1]/repo", Variant::Simple).unwrap(), "::1");
    }

    #[test]
    fn paths_are_those_of_the_other_side() {
        assert_eq!(destination("host:repo").unwrap().path, "repo");
        assert_eq!(destination("ssh://host/srv/repo").unwrap().path, "/srv/repo");
        assert_eq!(destination("ssh://host/~alice/repo").unwrap().path, "~alice/repo");
        assert_eq!(quoted("it's!".into()), r"'it'\''s'\!''");
    }

    #[test]
    fn what_would_be_an_option_is_refused() {
        for text in ["ssh://-oProxyCommand=x/repo", "-oProxyCommand=x:repo", "host:-x"] {
            assert!(destination(text).is_err(), "{text}");
        }
        assert!(destination("ssh://-x@host/repo").is_err());
    }

    #[test]
    fn programs_are_known_by_their_names() {
        let name = |line: &str| named_variant(&Given::Line(line.into()));
        assert_eq!(name("ssh -i key"), Some(Variant::Ssh));
        assert_eq!(name("'/opt/my tools/ssh' -v"), Some(Variant::Ssh));
        assert_eq!(
            named_variant(&Given::Program(r"C:\bin\TortoisePlink.exe".into())),
            Some(Variant::TortoisePlink)
        );
        assert_eq!(name("my-wrapper"), None);
    }
}
