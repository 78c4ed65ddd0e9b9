//! Entry point of `git-remote-e2ee`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use ingot_helper::cli::documents;

fn main() -> ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if let Some(prefix) = documents::prefix(&args) {
        return documents::generate(documents::remote_helper(), prefix).into();
    }
    ingot_helper::cli::remote_helper::main(std::env::args_os().skip(1).collect()).into()
}
