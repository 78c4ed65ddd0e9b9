//! Entry point of `git-e2ee`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ingot_helper::cli::main(std::env::args_os()).into()
}
