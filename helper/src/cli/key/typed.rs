//! The words of a recovery sheet, typed on the terminal.

use std::io;

use ingot_engine::transport::ask_on_terminal_unless;
use zeroize::Zeroizing;

use crate::cli::exit::{Code, Failure, warn};
use crate::cli::interrupt::Interrupt;
use crate::keys::sheet::{Collected, Error, Label, check_device};
use crate::protocol::DeviceKey;

/// How often one row may be mistyped.
const TRIES: u32 = 5;

/// Asks row by row, and for the device in the end unless that is `told` already.
pub(super) fn key(told: bool) -> Result<DeviceKey, Failure> {
    let mut rows = Collected::default();
    for label in Label::secret() {
        row(&mut rows, label, false)?;
    }
    for (number, label) in Label::root().enumerate() {
        // Sheets of devices that founded their repository have none.
        if !row(&mut rows, label, number == 0)? {
            break;
        }
    }
    let key = rows.key().map_err(|error| Failure::failed(error.to_string()))?;
    if !told {
        let device = ask("Device or fingerprint, as the sheet says: ")?;
        check_device(&key, device.trim())
            .map_err(|error| Failure::failed(error.to_string()).next("nothing was imported"))?;
    }
    Ok(key)
}

/// False where nothing was typed, which only an `optional` row allows.
fn row(rows: &mut Collected, label: Label, optional: bool) -> Result<bool, Failure> {
    let prompt = match optional {
        true => format!("Row {label}, or nothing if the sheet has none: "),
        false => format!("Row {label}: "),
    };
    let mut last: Option<Error> = None;
    for _ in 0..TRIES {
        let line = ask(&prompt)?;
        if optional && line.trim().is_empty() {
            return Ok(false);
        }
        // The label may be typed along.
        let words = match Label::split(line.trim()) {
            Some((typed, words)) if typed == label => words,
            _ => line.as_str(),
        };
        match rows.add(label, words) {
            Ok(()) => return Ok(true),
            Err(error) => {
                warn(&error.to_string());
                last = Some(error);
            }
        }
    }
    let message = last.map_or_else(|| format!("row {label} was not read"), |error| error.to_string());
    Err(Failure::failed(message).next("nothing was imported"))
}

/// What is typed is shown: nobody types 56 words in the dark.
fn ask(prompt: &str) -> Result<Zeroizing<String>, Failure> {
    let off = std::env::var("GIT_TERMINAL_PROMPT")
        .is_ok_and(|value| matches!(&*value, "0" | "false" | "no" | "off"));
    if off {
        return Err(
            Failure::failed("asking on the terminal is switched off (GIT_TERMINAL_PROMPT)")
                .next("put the rows into a file, and name it"),
        );
    }
    let stop = || Interrupt::of_process().is_some_and(Interrupt::requested);
    match ask_on_terminal_unless(prompt, false, &stop) {
        Ok(line) => Ok(Zeroizing::new(line)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            Err(Failure::new(Code::Interrupted, "interrupted").next("nothing was imported"))
        }
        Err(error) => Err(
            Failure::failed(format!("there is no terminal to type the words on: {error}"))
                .next("put the rows into a file, and name it"),
        ),
    }
}
