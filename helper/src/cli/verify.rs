//! `verify`: is everything in the store, and is it what its writers published?

use ingot_engine::progress::Unit;
use serde_json::json;

use super::app::{App, Direction};
use super::args::Verify;
use super::exit::Failure;
use super::progress::amount;
use super::report::Report;

/// Verifies a store.
pub fn run(app: &App, args: &Verify) -> Result<Report, Failure> {
    let found = app.require(&args.place, args.target.as_deref(), Direction::Fetch)?;
    let place = found.only()?;
    let verified = place.remote(&app.display).verify(args.full)?;
    let (generation, refs) = (verified.view.generation(), verified.view.refs().len());
    let mut text = format!(
        "verified generation {generation} ({refs} refs, {} packs)\n",
        verified.packs
    );
    if let Some(objects) = verified.objects {
        text += &format!(
            "every reference is complete: {}\n",
            amount(objects, Unit::Objects)
        );
    }
    let json = json!({
        "command": "verify",
        "url": place.url.to_string(),
        "head": verified.view.head().to_string(),
        "generation": generation,
        "refs": refs,
        "packs": verified.packs,
        "stored_bytes": verified.stored,
        "full": args.full,
        "objects": verified.objects,
    });
    Ok(Report::data(text, json))
}
