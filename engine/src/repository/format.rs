//! Refuses repositories whose files mean something else than is understood here, as Git does.

use std::path::Path;

use bstr::ByteSlice as _;

use super::Error;

/// Extensions that Git takes notice of whatever the repository's version.
const ANY_VERSION: [&str; 4] = ["noop", "partialclone", "preciousobjects", "worktreeconfig"];
/// Extensions that only version 1 may have; their values are looked at below.
const VERSION_1: [&str; 5] = [
    "noop-v1",
    "objectformat",
    "refstorage",
    "relativeworktrees",
    "compatobjectformat",
];

/// Checks the configuration of the repository at `git_dir`, which may be a `.git` file. Only the repository's own file
/// counts for this, without includes.
pub(super) fn check(git_dir: &Path) -> Result<(), Error> {
    let git_dir = match gix::discover::path::from_gitdir_file(git_dir) {
        Ok(target) if git_dir.is_file() => target,
        _ => git_dir.to_owned(),
    };
    let common = match gix::discover::path::from_plain_file(&git_dir.join("commondir")) {
        Some(Ok(common)) => git_dir.join(common),
        _ => git_dir.clone(),
    };
    let path = common.join("config");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::read(&path, error)),
    };
    let config = gix::config::File::from_bytes_no_includes(
        &bytes,
        gix::config::file::Metadata::from(gix::config::Source::Local).at(&path),
        Default::default(),
    )
    .map_err(|error| Error::open(&path, &error))?;
    judge(&config, &path)
}

fn judge(config: &gix::config::File, path: &Path) -> Result<(), Error> {
    let version = config
        .integer("core.repositoryformatversion")
        .map_err(|error| Error::open(path, &error))?
        .unwrap_or(0);
    if !(0..=1).contains(&version) {
        return Err(Error::Version {
            path: path.to_owned(),
            version,
        });
    }
    for section in config.sections_by_name("extensions").into_iter().flatten() {
        for name in section.value_names() {
            let lower = name.to_ascii_lowercase();
            if ANY_VERSION.contains(&lower.as_str()) {
                continue;
            }
            let known = VERSION_1.contains(&lower.as_str());
            if version == 0 {
                if known {
                    return Err(Error::ExtensionVersion {
                        path: path.to_owned(),
                        name,
                    });
                }
                continue; // Git ignores what it does not know in version 0
            }
            let value = section.value(&name).unwrap_or_default();
            let refuse = |name: String, hint| {
                Err(Error::Extension {
                    path: path.to_owned(),
                    name,
                    hint,
                })
            };
            match lower.as_str() {
                "refstorage" if value != "files" => {
                    return Err(Error::RefStorage {
                        path: path.to_owned(),
                        storage: value.to_string(),
                    });
                }
                "objectformat" if value != "sha1" && value != "sha256" => {
                    return refuse(format!("{name} = {}", value.as_bstr()), "");
                }
                "compatobjectformat" => {
                    return refuse(
                        format!("{name} = {}", value.as_bstr()),
                        "; its objects would lack their second names",
                    );
                }
                _ if !known => return refuse(name, "; a newer version may know it"),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> String {
        let config = gix::config::File::from_bytes_no_includes(
            text.as_bytes(),
            gix::config::file::Metadata::api(),
            Default::default(),
        )
        .unwrap();
        match judge(&config, Path::new("config")) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn known_formats_pass() {
        for text in [
            "",
            "[core]\nrepositoryformatversion = 0\n[extensions]\nfuture = 1\nworktreeConfig = true\n",
            "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\nrefStorage = files\n\
             preciousObjects = true\npartialClone = origin\nrelativeWorktrees = true\nnoop-v1 = 1\n",
        ] {
            assert_eq!(verdict(text), "", "{text}");
        }
    }

    #[test]
    fn others_are_refused_by_name() {
        let v1 = "[core]\nrepositoryformatversion = 1\n[extensions]\n";
        for (text, expected) in [
            ("[core]\nrepositoryformatversion = 2\n".to_owned(), "version 2"),
            (
                format!("{v1}refStorage = reftable\n"),
                "git refs migrate --ref-format=files",
            ),
            (format!("{v1}bogus = 1\n"), "'bogus'"),
            (format!("{v1}objectFormat = sha512\n"), "sha512"),
            (format!("{v1}compatObjectFormat = sha1\n"), "compatObjectFormat"),
            ("[extensions]\nobjectFormat = sha256\n".to_owned(), "version 1"),
        ] {
            assert!(verdict(&text).contains(expected), "{text}: {}", verdict(&text));
        }
    }
}
