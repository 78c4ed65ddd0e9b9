//! `verify` and `prune`.

use ingot_engine::progress::{Progress as _, Unit};
use ingot_helper::cli::exit::{Code, Failure};
use ingot_helper::cli::progress::amount;
use ingot_helper::cli::report::Report;
use serde_json::json;

use super::app::App;
use super::args::{Prune, Verify};
use crate::archive::{self, Archive, Snapshot};
use crate::prune::{self as pruning, Keep};
use crate::{show, verify as verifying};

/// Reads everything again.
pub fn verify(app: &App, args: &Verify) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let archive = setup.archive()?;
    let mut reader = archive.reader()?;
    let mut snapshots: Vec<Snapshot> = Vec::new();
    match &args.snapshot {
        Some(spec) => {
            let id = archive.resolve(Some(spec))?;
            let commit = reader.commit(&id)?;
            snapshots.push(Snapshot { id, commit });
        }
        None => {
            for branch in archive.branches()? {
                for snapshot in reader.history(branch.tip)? {
                    if !snapshots.iter().any(|known| known.id == snapshot.id) {
                        snapshots.push(snapshot);
                    }
                }
            }
        }
    }
    if snapshots.is_empty() {
        return Err(archive::Error::Empty.into());
    }
    let Some(verified) = verifying::verify(&mut reader, &snapshots, &app.display)? else {
        return Err(Failure::new(Code::Interrupted, "interrupted"));
    };
    let mut text = String::new();
    for fault in &verified.faults {
        text += &format!(
            "{} {}: {}\n",
            fault.snapshot.to_hex_with_len(12),
            show::path(&fault.path),
            show::path(fault.reason.as_bytes())
        );
    }
    text += &format!(
        "{} snapshots with {} different contents ({}): {}\n",
        verified.snapshots,
        verified.contents,
        amount(verified.bytes, Unit::Bytes),
        match verified.faults.len() {
            0 => "all is as it was captured".to_owned(),
            1 => "1 fault".to_owned(),
            count => format!("{count} faults"),
        }
    );
    let faults: Vec<_> = verified
        .faults
        .iter()
        .map(|fault| {
            json!({
                "snapshot": fault.snapshot.to_string(),
                "path": show::json(&fault.path),
                "reason": fault.reason,
            })
        })
        .collect();
    let code = match faults.is_empty() {
        true => Code::Done,
        false => Code::Integrity,
    };
    Ok(Report {
        text,
        json: json!({
            "command": "verify",
            "snapshots": verified.snapshots,
            "contents": verified.contents,
            "bytes": verified.bytes,
            "faults": faults,
        }),
        code,
        essential: code != Code::Done,
    })
}

/// Lets old snapshots go.
pub fn prune(app: &App, args: &Prune) -> Result<Report, Failure> {
    let setup = app.setup()?;
    let keep = Keep {
        last: args.keep_last,
        hourly: args.keep_hourly,
        daily: args.keep_daily,
        weekly: args.keep_weekly,
        monthly: args.keep_monthly,
        yearly: args.keep_yearly,
    };
    let files = setup.files();
    let _lock = files.lock(app.patience())?;
    let archive = setup.archive()?;
    let tip = archive.tip()?.ok_or(archive::Error::Empty)?;
    let snapshots = archive.history(tip)?;
    let kept = match keep.any() {
        true => pruning::select(&snapshots, &keep),
        false => vec![true; snapshots.len()],
    };
    let gone: Vec<String> = snapshots
        .iter()
        .zip(&kept)
        .filter(|(_, kept)| !**kept)
        .map(|(snapshot, _)| snapshot.id.to_string())
        .collect();
    if args.dry_run {
        let text = gone.iter().fold(String::new(), |text, id| {
            text + "would remove " + &id[..12] + "\n"
        });
        let text = format!("{text}{} of {} snapshots would go\n", gone.len(), snapshots.len());
        let json = json!({"command": "prune", "dry_run": true, "removed": gone, "kept": snapshots.len() - gone.len()});
        return Ok(Report::data(text, json));
    }
    let pruned = pruning::prune(&archive, &snapshots, &kept, Archive::fs(), &app.display)?;
    app.display.end();
    let text = format!(
        "{} snapshots removed, {} kept; {} before, {} now\n",
        pruned.removed,
        pruned.kept,
        amount(pruned.bytes_before, Unit::Bytes),
        amount(pruned.bytes_after, Unit::Bytes),
    );
    let json = json!({
        "command": "prune",
        "dry_run": false,
        "removed": gone,
        "kept": pruned.kept,
        "newest": pruned.tip.map(|id| id.to_string()),
        "bytes_before": pruned.bytes_before,
        "bytes_after": pruned.bytes_after,
    });
    Ok(Report::done(text, json))
}
