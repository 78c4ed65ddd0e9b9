//! Changes to the configuration file, which keep the user's comments and order.

use std::path::{Path, PathBuf};

use ingot_engine::durable::{self, Fs};
use toml_edit::{Array, DocumentMut, Item, Value};

use super::{Error, parse, read_text, table};

/// A configuration file that is being changed.
#[derive(Debug)]
pub struct Editor {
    file: PathBuf,
    document: DocumentMut,
}

/// What a new file begins with.
const BEGINNING: &str = r#"# What rivet keeps. Paths are relative to the root: the home folder, unless root = "/path" says otherwise.
track = []

# What is left out, in gitignore syntax.
ignore = []
"#;

impl Editor {
    /// Opens a file, or begins a new one.
    pub fn open(file: &Path) -> Result<Editor, Error> {
        let text = match read_text(file) {
            Err(Error::Absent(_)) => BEGINNING.to_owned(),
            text => text?,
        };
        Ok(Editor {
            document: parse(file, &text)?,
            file: file.to_owned(),
        })
    }

    /// Adds texts to a list; returns those that were not there yet.
    pub fn add(&mut self, key: &str, texts: &[String]) -> Result<Vec<String>, Error> {
        let array = self.array(key)?;
        let mut added = Vec::new();
        for text in texts {
            if !array.iter().any(|value| value.as_str() == Some(text)) {
                array.push(text.as_str());
                added.push(text.clone());
            }
        }
        if !added.is_empty() {
            spread(array);
        }
        Ok(added)
    }

    /// Takes texts out of a list; returns those that were there.
    pub fn remove(&mut self, key: &str, texts: &[String]) -> Result<Vec<String>, Error> {
        let array = self.array(key)?;
        let mut removed = Vec::new();
        array.retain(|value| match value.as_str() {
            Some(text) if texts.iter().any(|other| other == text) => {
                removed.push(text.to_owned());
                false
            }
            _ => true,
        });
        Ok(removed)
    }

    /// Sets a text at the top level.
    pub fn set(&mut self, key: &str, text: &str) {
        self.document[key] = toml_edit::value(text);
    }

    /// Sets a text in a table.
    pub fn set_in(&mut self, name: &str, key: &str, text: &str) -> Result<(), Error> {
        let wrong = Error::Value {
            path: self.file.clone(),
            key: name.to_owned(),
            wanted: "a table",
        };
        table(&mut self.document, name).ok_or(wrong)?[key] = toml_edit::value(text);
        Ok(())
    }

    /// Writes the file, durably and in one step. Folders that are missing are made, for the user alone.
    pub fn save(&self, fs: &dyn Fs) -> Result<(), Error> {
        // A configuration that is a link, as those kept elsewhere are, stays one.
        let file = std::fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        if let Some(folder) = file.parent() {
            durable::create_dirs(fs, folder, 0o700)?;
        }
        durable::write_atomic(fs, &file, self.document.to_string().as_bytes(), 0o600)?;
        Ok(())
    }

    fn array(&mut self, key: &str) -> Result<&mut Array, Error> {
        let wrong = Error::Value {
            path: self.file.clone(),
            key: key.to_owned(),
            wanted: "a list of texts",
        };
        self.document
            .entry(key)
            .or_insert_with(|| Item::Value(Value::Array(Array::new())))
            .as_array_mut()
            .ok_or(wrong)
    }
}

/// One line for each element, so that later changes are easy to read.
fn spread(array: &mut Array) {
    for value in array.iter_mut() {
        let bare = value
            .decor()
            .prefix()
            .and_then(|prefix| prefix.as_str())
            .is_none_or(|prefix| prefix.trim().is_empty());
        if bare {
            value.decor_mut().set_prefix("\n    ");
        }
    }
    array.set_trailing("\n");
    array.set_trailing_comma(true);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests, failing is the point
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn comments_survive_and_nothing_is_listed_twice() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("deep/config.toml");
        let mut editor = Editor::open(&file).unwrap();
        assert_eq!(editor.add("track", &["a".into(), "b".into()]).unwrap().len(), 2);
        editor.save(&durable::Real).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("ignore = []", "# mine\nignore = [ \"x\" ] # too");
        std::fs::write(&file, text).unwrap();
        let mut editor = Editor::open(&file).unwrap();
        assert_eq!(editor.add("track", &["b".into(), "c".into()]).unwrap(), ["c"]);
        assert_eq!(editor.remove("track", &["a".into(), "z".into()]).unwrap(), ["a"]);
        editor.set_in("remote", "url", "e2ee::/x").unwrap();
        editor.save(&durable::Real).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("# mine\n") && text.contains("# too\n"), "{text}");
        let config = Config::read(&file, Path::new("/home/me")).unwrap();
        assert_eq!(config.track, ["b", "c"]);
        assert_eq!(config.ignore, ["x"]);
        assert_eq!(config.remote.url.as_deref(), Some("e2ee::/x"));
    }
}
