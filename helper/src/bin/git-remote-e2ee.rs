//! Entry point of `git-remote-e2ee`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ingot_helper::cli::remote_helper::main(std::env::args_os().skip(1).collect()).into()
}
