//! Remotes of a repository, and what a user means by one word.

use bstr::{BStr, BString, ByteSlice};

use super::settings::Settings;

/// A configured remote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remote {
    /// Its name; any text.
    pub name: BString,
    /// Where to fetch from, rewritten by `url.<base>.insteadOf`. Never empty: the name stands in for a missing URL.
    pub url: BString,
    /// Where to push to, one store each.
    pub push_urls: Vec<BString>,
    /// `remote.<name>.fetch`
    pub fetch: Vec<BString>,
    /// `remote.<name>.push`
    pub push: Vec<BString>,
    /// `remote.<name>.mirror`
    pub mirror: bool,
    /// The helper that Git starts for it is this project's.
    pub encrypted: bool,
}

/// What `REMOTE|URL` on a command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A configured remote.
    Remote(Remote),
    /// A store's location.
    Url(BString),
}

impl Remote {
    /// The remote of that name, if configuration knows it by a URL or a helper.
    pub fn find(settings: &Settings, name: &BStr) -> Option<Remote> {
        let get = |key: &str| settings.strings("remote", Some(name), key);
        let vcs = settings.string("remote", Some(name), "vcs");
        let urls = get("url");
        if urls.is_empty() && vcs.is_none() {
            return None;
        }
        let url = urls.first().cloned().unwrap_or_else(|| name.to_owned());
        let mut push_urls: Vec<BString> = get("pushurl")
            .iter()
            .map(|url| rewrite(settings, url.as_ref(), "insteadOf"))
            .collect();
        if push_urls.is_empty() {
            push_urls = if urls.is_empty() {
                vec![url.clone()]
            } else {
                urls.clone()
            }
            .iter()
            .map(|url| {
                rewrite(
                    settings,
                    rewrite_for_push(settings, url.as_ref()).as_ref(),
                    "insteadOf",
                )
            })
            .collect();
        }
        let url = rewrite(settings, url.as_ref(), "insteadOf");
        let encrypted = match &vcs {
            Some(vcs) => vcs == "e2ee",
            None => url.starts_with(b"e2ee::"),
        };
        Some(Remote {
            name: name.to_owned(),
            url,
            push_urls,
            fetch: get("fetch"),
            push: get("push"),
            mirror: settings.boolean("remote", Some(name), "mirror").unwrap_or(false),
            encrypted,
        })
    }

    /// All remotes whose helper is this project's, in order of configuration.
    pub fn encrypted(settings: &Settings) -> Vec<Remote> {
        let names = settings.subsections("remote");
        names
            .iter()
            .filter_map(|name| Remote::find(settings, name.as_ref()))
            .filter(|remote| remote.encrypted)
            .collect()
    }

    /// Where pushes of `branch` go when nothing is named: the branch's own remote, the default remote, the remote
    /// called `e2ee`, or the only encrypted one. `Err` lists the candidates when several are left.
    pub fn default(settings: &Settings, branch: Option<&BStr>) -> Result<Option<Remote>, Vec<Remote>> {
        let of_branch = |key: &str| branch.and_then(|branch| settings.string("branch", Some(branch), key));
        let named = [
            of_branch("pushRemote"),
            settings.string("remote", None, "pushDefault"),
            of_branch("remote"),
            Some("e2ee".into()),
        ];
        for name in named.into_iter().flatten() {
            if let Some(remote) = Remote::find(settings, name.as_ref()).filter(|remote| remote.encrypted) {
                return Ok(Some(remote));
            }
        }
        let mut all = Remote::encrypted(settings);
        if all.len() > 1 { Err(all) } else { Ok(all.pop()) }
    }
}

impl Target {
    /// A configured remote where `word` is the name of one, a location otherwise.
    pub fn of(settings: &Settings, word: &BStr) -> Target {
        match Remote::find(settings, word) {
            Some(remote) => Target::Remote(remote),
            None => Target::Url(rewrite(settings, word, "insteadOf")),
        }
    }
}

fn rewrite_for_push(settings: &Settings, url: &BStr) -> BString {
    rewrite(settings, url, "pushInsteadOf")
}

/// Replaces the longest prefix of `url` that is a value of `url.<base>.<key>` by its base.
fn rewrite(settings: &Settings, url: &BStr, key: &str) -> BString {
    let mut best: Option<(usize, BString)> = None;
    for base in settings.subsections("url") {
        for prefix in settings.strings("url", Some(base.as_ref()), key) {
            if url.starts_with(&prefix) && best.as_ref().is_none_or(|(length, _)| prefix.len() > *length) {
                best = Some((prefix.len(), base.clone()));
            }
        }
    }
    match best {
        Some((length, base)) => bstr::concat([base.as_bytes(), &url[length..]]).into(),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const CONFIG: &str = r#"
[remote "origin"]
    url = https://example.org/x
[remote "one.two/three"]
    url = e2ee::/a
    url = e2ee::/b
    fetch = +refs/heads/*:refs/remotes/x/*
[remote "pushes"]
    url = e2ee::/a
    pushurl = e2ee::/p
    pushurl = e2ee::/q
[remote "helper"]
    vcs = e2ee
    url = /plain
[remote "nameless"]
    vcs = e2ee
[remote "empty"]
    fetch = +refs/heads/*:refs/remotes/empty/*
[remote "short"]
    url = vault:notes
[url "e2ee::/mnt/vault/"]
    insteadOf = vault:
[branch "main"]
    remote = origin
[branch "topic"]
    remote = pushes
"#;

    fn find(name: &str) -> Option<Remote> {
        Remote::find(&Settings::from_text(CONFIG), name.into())
    }

    #[test]
    fn urls_of_every_kind() {
        let remote = find("one.two/three").unwrap();
        assert_eq!(
            (remote.url, remote.push_urls),
            ("e2ee::/a".into(), vec!["e2ee::/a".into(), "e2ee::/b".into()])
        );
        let remote = find("pushes").unwrap();
        assert_eq!(
            (remote.url, remote.push_urls),
            ("e2ee::/a".into(), vec!["e2ee::/p".into(), "e2ee::/q".into()])
        );
        let remote = find("helper").unwrap();
        assert!(remote.encrypted);
        assert_eq!(remote.url, "/plain");
        assert_eq!(find("nameless").unwrap().url, "nameless");
        assert!(!find("origin").unwrap().encrypted);
        assert_eq!(find("empty"), None);
        assert_eq!(find("absent"), None);
        let short = find("short").unwrap();
        assert!(short.encrypted);
        assert_eq!(short.url, "e2ee::/mnt/vault/notes");
    }

    #[test]
    fn the_default_is_the_first_encrypted_one_named() {
        let settings = Settings::from_text(CONFIG);
        let name =
            |branch: &str| Remote::default(&settings, Some(branch.into())).map(|found| found.unwrap().name);
        assert_eq!(name("topic").unwrap(), "pushes");
        assert_eq!(name("main").unwrap_err().len(), 5);
        let settings =
            Settings::from_text("[remote \"e2ee\"]\nurl = e2ee::/x\n[remote \"z\"]\nurl = e2ee::/y\n");
        assert_eq!(Remote::default(&settings, None).unwrap().unwrap().name, "e2ee");
        let settings = Settings::from_text("[remote \"origin\"]\nurl = /x\n");
        assert_eq!(Remote::default(&settings, None), Ok(None));
    }

    #[test]
    fn a_word_is_a_remote_or_a_location() {
        let settings = Settings::from_text(CONFIG);
        assert!(matches!(
            Target::of(&settings, "origin".into()),
            Target::Remote(_)
        ));
        assert_eq!(
            Target::of(&settings, "vault:x".into()),
            Target::Url("e2ee::/mnt/vault/x".into())
        );
        assert_eq!(
            Target::of(&settings, "/some/where".into()),
            Target::Url("/some/where".into())
        );
    }
}
