//! What Git starts.

use std::io::{BufReader, BufWriter, Write as _};
use std::sync::Arc;

use bstr::ByteSlice as _;
use ingot_engine::chunked::{Pointer, pointer_length};
use ingot_engine::repository::Repository;
use ingot_engine::transport::{Direction, Silently};
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::args::{MergeDriver, Textconv};
use super::{App, PROGRAM, from_here};
use crate::Error;
use crate::filter::{self, Messages};

struct Voice;

impl Messages for Voice {
    fn say(&self, text: &str) {
        // When not even this can be told, Git's own message is all that is left.
        let _ = writeln!(std::io::stderr(), "{PROGRAM}: {text}");
    }

    fn fetch(&self, repository: &Repository, pointers: &[Pointer]) -> Result<bool, Error> {
        let Some(source) = crate::care::source(repository, None, Direction::Fetch, Arc::new(Silently))?
        else {
            return Ok(false);
        };
        crate::care::fetch(repository, &source, pointers, &ingot_engine::progress::Silent)?;
        Ok(true)
    }
}

/// The long-running filter.
pub fn filter_process(app: &App, repository: &Repository) -> Result<Report, Failure> {
    let input = BufReader::with_capacity(1 << 17, std::io::stdin());
    let output = BufWriter::with_capacity(1 << 17, std::io::stdout());
    filter::serve(repository, input, output, &Voice, &app.display)?;
    Ok(Report {
        essential: false,
        ..Report::done("", json!(null))
    })
}

/// A few lines about a file that is a pointer, or what a pointer would say about it.
pub fn textconv(app: &App, args: &Textconv) -> Result<Report, Failure> {
    let path = from_here(app, &args.file);
    let failed = |error: std::io::Error| Failure::failed(format!("cannot read {}: {error}", path.display()));
    let mut file = std::fs::File::open(&path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let found = [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256]
        .into_iter()
        .filter(|format| pointer_length(*format) as u64 == size)
        .find_map(|format| Pointer::parse(&std::fs::read(&path).ok()?, format));
    let (size, blake3) = match found {
        Some(pointer) => (pointer.size, pointer.blake3),
        None if size < filter::THRESHOLD as u64 => {
            let bytes = std::fs::read(&path).map_err(failed)?;
            let text = bytes.to_str_lossy().into_owned();
            return Ok(Report::data(
                text.clone(),
                json!({"command": "textconv", "text": text}),
            ));
        }
        None => {
            let mut hasher = blake3::Hasher::new();
            std::io::copy(&mut file, &mut hasher).map_err(failed)?;
            (size, hasher.finalize())
        }
    };
    let text = format!("chunked file\nsize {size}\nblake3 {blake3}\n");
    let json = json!({"command": "textconv", "size": size, "blake3": blake3.to_string()});
    Ok(Report::data(text, json))
}

/// Versions cannot be merged, but one of them may have not changed.
pub fn merge_driver(args: &MergeDriver) -> Result<Report, Failure> {
    let read = |path: &std::path::Path| {
        std::fs::read(path)
            .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))
    };
    let (ancestor, ours, theirs) = (read(&args.ancestor)?, read(&args.ours)?, read(&args.theirs)?);
    let content = |bytes: &[u8]| {
        [gix_hash::Kind::Sha1, gix_hash::Kind::Sha256]
            .into_iter()
            .find_map(|format| Pointer::parse(bytes, format))
            .map_or_else(|| blake3::hash(bytes), |pointer| pointer.blake3)
    };
    let (ancestor, here, there) = (content(&ancestor), content(&ours), content(&theirs));
    let name = args.name.as_deref().unwrap_or("the file");
    let taken = if here == there || ancestor == there {
        "ours"
    } else if ancestor == here {
        std::fs::write(&args.ours, &theirs)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", args.ours.display())))?;
        "theirs"
    } else {
        return Err(Failure::new(
            Code::Failed,
            format!(
                "'{name}' was changed on both sides and is too big to be merged; this side's version stands"
            ),
        )
        .next("choose with: git checkout --ours (or --theirs) FILE, then git add FILE"));
    };
    Ok(Report::done(
        "",
        json!({"command": "merge-driver", "name": name, "result": taken}),
    ))
}
