//! Entry point of `git-chunk`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ingot_chunker::cli::main(std::env::args_os()).into()
}
