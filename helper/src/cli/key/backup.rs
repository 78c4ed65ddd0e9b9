//! `key backup`.

use std::io::{IsTerminal as _, Write as _};

use super::args::Backup;
use super::copies::must_be_new;
use super::{names, open};
use crate::cli::app::App;
use crate::cli::exit::Failure;
use crate::cli::keys::absolute;
use crate::cli::report::Report;
use crate::keys::sheet::{self, Sheet};
use crate::keys::{Opened, Wrapping};
use crate::protocol::key_file;

/// Prints a recovery sheet.
pub(super) fn backup(app: &App, args: &Backup) -> Result<Report, Failure> {
    let output = args.output.as_ref().map(|path| absolute(path)).transpose()?;
    match &output {
        Some(path) => {
            app.refuse_tracked(path)?;
            must_be_new(path)?;
        }
        // A report is kept and passed on by programs.
        None if app.global.json => {
            return Err(
                Failure::usage("a recovery sheet is no part of a report").next("name a file: --output FILE")
            );
        }
        None => {}
    }
    let (path, Opened { key, wrapping }) = open(app, &args.key)?;
    let sheet = match args.wrapped {
        false => Sheet::of(&key),
        true => {
            let wrapping = match wrapping.is_protected() {
                true => wrapping,
                false => Wrapping::with(app.keys.new_passphrase(&path, "the sheet")?),
            };
            let armored = wrapping
                .seal(&key)
                .map_err(|source| key_file::Error::Age { path, source })?;
            Sheet::protected(&key, &armored)
        }
    };
    let mut json = names(&key);
    json["command"] = "key backup".into();
    json["protected"] = args.wrapped.into();
    let Some(output) = output else {
        let mut out = std::io::stdout().lock();
        let text = sheet::text(&sheet, out.is_terminal());
        out.write_all(text.as_bytes())?;
        out.flush()?;
        return Ok(Report::done("", json));
    };
    let content = match output.extension().and_then(|end| end.to_str()) {
        Some("html" | "htm") => sheet::html(&sheet),
        Some("svg") => sheet::svg(&sheet),
        _ => sheet::text(&sheet, false),
    };
    key_file::create_content(&output, content.as_bytes())?;
    json["output"] = output.display().to_string().into();
    let text = format!(
        "recovery sheet of device {} written to {}; print it, put it away, and remove the file\n",
        key.id(),
        output.display()
    );
    Ok(Report::done(text, json))
}
