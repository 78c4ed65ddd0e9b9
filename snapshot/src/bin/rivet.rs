//! Entry point of `rivet`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ingot_snapshot::cli::main(std::env::args_os()).into()
}
