//! Asks the user for passphrases.

use ingot_engine::repository::{Repository, Settings};
use ingot_engine::transport::{Messages as _, Unanswered, ask_secret};
use zeroize::Zeroizing;

use super::messages::Shown;
use crate::keys::{Ask, KeyFiles, keychain};

/// Asks with an askpass program or on the terminal, as Git asks for passwords.
#[derive(Debug, Clone, Copy)]
struct Person;

/// The key files of this run.
pub fn key_files() -> KeyFiles {
    KeyFiles::new(Box::new(Person)).with_keychain(keychain::of_desktop())
}

impl Ask for Person {
    fn secret(&self, prompt: &str) -> Result<Zeroizing<String>, Unanswered> {
        let shown = Shown::default();
        // Only the name of a program is looked for, and most people have set none.
        if let Ok(repository) = Repository::from_env() {
            let folder = repository.work_dir().unwrap_or_else(|| repository.git_dir());
            return ask_secret(prompt, &repository.config(), Some(folder), &shown);
        }
        match Settings::load() {
            Ok(settings) => ask_secret(prompt, &settings.config(), None, &shown),
            Err(error) => {
                shown.warning(&error.to_string());
                Err(Unanswered::Nobody)
            }
        }
    }

    fn say(&self, text: &str) {
        super::exit::warn(text);
    }
}
