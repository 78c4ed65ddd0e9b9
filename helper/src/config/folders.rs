//! Where the set-up without any configuration keeps keys and stores.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// The folders of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Device keys: `$XDG_CONFIG_HOME/ingot/keys`.
    pub keys: PathBuf,
    /// Directory stores: `$XDG_DATA_HOME/ingot/stores`.
    pub stores: PathBuf,
}

impl Folders {
    /// Follows the XDG base folder rules; `None` where no home folder is known.
    pub fn of_user() -> Option<Folders> {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(Folders {
            keys: base.config_dir().join("ingot").join("keys"),
            stores: base.data_dir().join("ingot").join("stores"),
        })
    }

    /// The key file for a repository of that name.
    pub fn key(&self, name: &str) -> PathBuf {
        self.keys.join(format!("{name}.key.json"))
    }

    /// The store for a repository of that name.
    pub fn store(&self, name: &str) -> PathBuf {
        self.stores.join(name)
    }
}

/// A repository's name as one component of a path on any file system: what could leave a folder, hide in it, or upset
/// a shell becomes a dash.
pub fn safe_name(name: &str) -> String {
    let keep = |character: char| character.is_alphanumeric() || "._-".contains(character);
    let name: String = name
        .chars()
        .map(|character| if keep(character) { character } else { '-' })
        .collect();
    let name = name.trim_start_matches(['.', '-']).trim_end_matches('.');
    let mut end = name.len().min(100);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    if end == 0 {
        "repository".to_owned()
    } else {
        name[..end].to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_stay_inside_their_folder() {
        for (name, safe) in [
            ("project", "project"),
            ("my project.v2", "my-project.v2"),
            ("größe", "größe"),
            ("..", "repository"),
            ("../../etc", "etc"),
            ("-rf", "rf"),
            (".hidden", "hidden"),
            ("", "repository"),
            ("a/b\\c:d", "a-b-c-d"),
        ] {
            assert_eq!(safe_name(name), safe, "{name}");
        }
        assert!(safe_name(&"ü".repeat(300)).len() <= 100);
    }
}
