//! `key export` and `key import`.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use zeroize::Zeroizing;

use super::args::{Export, Import};
use super::{names, open, typed};
use crate::cli::app::App;
use crate::cli::exit::{Failure, warn};
use crate::cli::keys::absolute;
use crate::cli::report::Report;
use crate::keys::{Opened, Wrapping, age, sheet};
use crate::protocol::invitation::device_fingerprint;
use crate::protocol::key_file;

/// No sheet comes near this size, with its picture as text.
const MAX_SHEET: u64 = 1024 * 1024;

/// Writes a protected copy.
pub(super) fn export(app: &App, args: &Export) -> Result<Report, Failure> {
    let to_stdout = args.output == Path::new("-");
    if to_stdout && app.global.json {
        return Err(Failure::usage("--json and --output - both want standard output").next("name a file"));
    }
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(Failure::failed("a key is not shown on a terminal").next("name a file, or use a pipe"));
    }
    let output = absolute(&args.output)?;
    if !to_stdout {
        must_be_new(&output)?;
    }
    let (path, Opened { key, wrapping }) = open(app, &args.key)?;
    let wrapping = match wrapping.is_protected() && !args.new_passphrase {
        true => wrapping,
        false => Wrapping::with(app.keys.new_passphrase(&output, "the copy")?),
    };
    let content = wrapping
        .seal(&key)
        .map_err(|source| key_file::Error::Age { path, source })?;
    let mut json = names(&key);
    json["command"] = "key export".into();
    if to_stdout {
        let mut out = std::io::stdout().lock();
        out.write_all(&content)?;
        out.flush()?;
        return Ok(Report::done("", json));
    }
    key_file::create_content(&output, &content)?;
    json["output"] = output.display().to_string().into();
    Ok(Report::done(
        format!(
            "exported device {} to {}, protected by its passphrase\n",
            key.id(),
            output.display()
        ),
        json,
    ))
}

/// Makes a key file from a copy, a sheet or what is typed.
pub(super) fn import(app: &App, args: &Import) -> Result<Report, Failure> {
    let output = absolute(&args.output)?;
    app.refuse_tracked(&output)?;
    must_be_new(&output)?;
    let Opened { key, wrapping } = match (&args.source, args.words) {
        (Some(source), false) => copy(app, &absolute(source)?)?,
        (source, _) => {
            let key = match source {
                Some(source) => {
                    let source = absolute(source)?;
                    let text = sheet_text(&source)?;
                    sheet::read(&text)
                        .map_err(|error| Failure::failed(format!("{}: {error}", source.display())))?
                }
                None => typed::key(args.device.is_some())?,
            };
            Opened {
                key,
                wrapping: Wrapping::Plain,
            }
        }
    };
    if let Some(device) = &args.device {
        sheet::check_device(&key, device)
            .map_err(|error| Failure::failed(error.to_string()).next("nothing was imported"))?;
    }
    let wrapping = match args.passphrase && !wrapping.is_protected() {
        true => Wrapping::with(app.keys.new_passphrase(&output, "the new key file")?),
        false => wrapping,
    };
    app.keys.create(&output, &key, &wrapping)?;
    let mut json = names(&key);
    json["command"] = "key import".into();
    json["key"] = output.display().to_string().into();
    json["protected"] = wrapping.is_protected().into();
    Ok(Report::done(
        format!(
            "imported device {}\nfingerprint {}\nfor repository {}\nto {}{}\n",
            key.id(),
            device_fingerprint(key.id()),
            key.root(),
            output.display(),
            match wrapping.is_protected() {
                true => ", protected by its passphrase",
                false => "",
            }
        ),
        json,
    ))
}

/// Opens a copy, whoever else can read it: it may lie on a disk that knows no owners.
fn copy(app: &App, source: &Path) -> Result<Opened, Failure> {
    let (content, open_to_others) = key_file::load_foreign(source).map_err(|error| match error {
        key_file::Error::Absent(path) => Failure::failed(format!("there is no file {}", path.display())),
        error => error.into(),
    })?;
    let is_json = content.trim_ascii_start().starts_with(b"{");
    if !is_json && !age::is_age(&content) {
        let message = format!("{} is not a key file", source.display());
        return Err(Failure::failed(message).next("if it is a recovery sheet, add --words"));
    }
    let opened = app.keys.open(source, &content)?;
    if open_to_others && !opened.wrapping.is_protected() {
        warn(&format!(
            "others can read {}, and no passphrase protects it; remove it when it is no longer needed",
            source.display()
        ));
    }
    Ok(opened)
}

fn sheet_text(source: &Path) -> Result<Zeroizing<String>, Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("cannot read {}: {error}", source.display()));
    let too_large = || Failure::failed(format!("{} is too large for a recovery sheet", source.display()));
    let length = std::fs::metadata(source).map_err(failed)?.len();
    if length > MAX_SHEET {
        return Err(too_large());
    }
    // The buffer never grows: growing would leave copies of the words in freed memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SHEET as usize + 1));
    let file = std::fs::File::open(source).map_err(failed)?;
    file.take(MAX_SHEET + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_SHEET {
        return Err(too_large());
    }
    match str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(Failure::failed(format!("{} is not text", source.display()))),
    }
}

/// Asked before a person is bothered; creating asks again.
pub(super) fn must_be_new(path: &Path) -> Result<(), Failure> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(key_file::Error::Exists(path.to_owned()).into()),
        Err(_) => Ok(()),
    }
}
