//! Protected key files for tests, made so that opening them costs next to nothing.

use std::path::{Path, PathBuf};

use ingot_engine::durable;
use ingot_helper::keys::{KeyFiles, Passphrase, Wrapping};
use ingot_helper::protocol::key_file;

use super::world::{Bare, text};

pub const PASSPHRASE: &str = "open sesame, please";
/// The logarithm of what a try costs.
pub const WORK: u8 = 4;

pub fn wrapping(passphrase: &str) -> Wrapping {
    Wrapping::Passphrase {
        passphrase: Passphrase::from(passphrase),
        work_factor: WORK,
    }
}

/// Protects a key file that has no passphrase.
#[track_caller]
pub fn protect(path: &Path) {
    let key = key_file::read(path).unwrap();
    let files = KeyFiles::silent();
    files
        .replace(&durable::Real, path, &key, &wrapping(PASSPHRASE))
        .unwrap();
}

/// A program that answers every question with `answer`, and keeps the questions.
pub struct Askpass {
    program: PathBuf,
    log: PathBuf,
}

impl Askpass {
    #[track_caller]
    pub fn new(world: &Bare, name: &str, answer: &str) -> Askpass {
        use std::os::unix::fs::PermissionsExt as _;
        let (program, log) = (world.path(name), world.path(&format!("{name}.log")));
        // It reads its standard input: that has to be empty, whatever the program that asks has there.
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$1\" >> '{log}'\ncat >> '{log}'\ncat <<'END'\n{answer}\nEND\n",
            log = text(&log)
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Askpass { program, log }
    }

    pub fn variable(&self) -> (&str, &str) {
        ("GIT_ASKPASS", text(&self.program))
    }

    /// The questions since this was last asked.
    pub fn questions(&self) -> Vec<String> {
        let asked = std::fs::read_to_string(&self.log).unwrap_or_default();
        let _ = std::fs::remove_file(&self.log);
        asked.lines().map(str::to_owned).collect()
    }
}
