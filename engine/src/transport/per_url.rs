//! Configuration that applies to some URLs: `http.<url>.*` and `credential.<url>.*` (git-config(1)).

use bstr::{BStr, BString, ByteSlice as _};

use crate::repository::Config;

/// The parts of a URL that configuration is matched with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Empty in a pattern that leaves it out.
    pub scheme: String,
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
    /// Begins with a slash, does not end in one.
    pub path: BString,
}

impl Place {
    pub(super) fn of(url: &gix::Url) -> Place {
        Place {
            scheme: url.scheme.as_str().to_owned(),
            user: url.user.clone(),
            host: url.host.clone().unwrap_or_default().to_ascii_lowercase(),
            port: url.port_or_default(),
            path: slashed(&url.path),
        }
    }

    /// Reads the middle of a configuration key. `partial` allows `host/path` without a scheme.
    fn pattern(text: &BStr, partial: bool) -> Option<Place> {
        if text.contains_str("://") {
            // `*` is no part of a host name that a parser of URLs has to accept.
            let stars = text.replace("*", WILDCARD);
            let url = gix::url::parse(stars.as_bstr()).ok()?;
            let mut place = Place::of(&url);
            place.host = place.host.replace(WILDCARD, "*");
            place.path = place.path.replace(WILDCARD, "*").into();
            return Some(place);
        }
        if !partial {
            return None;
        }
        let (host, path) = text.split_once_str("/").unwrap_or((text, b""));
        Some(Place {
            scheme: String::new(),
            user: None,
            host: host.to_str().ok()?.to_ascii_lowercase(),
            port: None,
            path: slashed(path),
        })
    }

    /// How well `pattern` describes this place, if it does at all.
    fn rank(&self, pattern: &Place) -> Option<Rank> {
        let whole = !pattern.scheme.is_empty();
        if whole && (pattern.scheme != self.scheme || pattern.port != self.port) {
            return None;
        }
        if pattern.user.is_some() && pattern.user != self.user {
            return None;
        }
        let any_host = pattern.host.is_empty() && !whole;
        if !any_host && !host_matches(&pattern.host, &self.host) {
            return None;
        }
        let rest = self.path.strip_prefix(pattern.path.as_slice())?;
        if !(rest.is_empty() || rest.starts_with(b"/")) {
            return None;
        }
        Some(Rank {
            host: pattern.host.len(),
            path: pattern.path.len(),
            user: pattern.user.is_some(),
        })
    }
}

const WILDCARD: &str = "-any-host-";

/// The order in which Git prefers patterns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    host: usize,
    path: usize,
    user: bool,
}

fn slashed(path: &[u8]) -> BString {
    let path = path.trim_end_with(|c| c == '/');
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut slashed = BString::default();
    if !path.is_empty() {
        slashed.push(b'/');
        slashed.extend_from_slice(path);
    }
    slashed
}

/// Label by label; `*` stands for one whole label.
fn host_matches(pattern: &str, host: &str) -> bool {
    let (mut patterns, mut labels) = (pattern.split('.'), host.split('.'));
    loop {
        match (patterns.next(), labels.next()) {
            (None, None) => return true,
            (Some(pattern), Some(label)) if pattern == "*" || pattern == label => {}
            _ => return false,
        }
    }
}

/// The values of one section that apply to one URL.
pub(super) struct PerUrl<'a> {
    pub config: &'a Config<'a>,
    pub section: &'static str,
    pub place: &'a Place,
    /// Whether patterns may leave out the scheme.
    pub partial: bool,
}

impl PerUrl<'_> {
    /// Every applicable value in the order of the configuration; `None` for a key without a value.
    fn ranked(&self, name: &str) -> Vec<(Rank, Option<BString>)> {
        let mut found = Vec::new();
        for section in self
            .config
            .file()
            .sections_by_name(self.section)
            .into_iter()
            .flatten()
        {
            let rank = match section.header().subsection_name() {
                None => Some(Rank::default()),
                Some(pattern) => {
                    Place::pattern(pattern, self.partial).and_then(|pattern| self.place.rank(&pattern))
                }
            };
            let Some(rank) = rank else { continue };
            let values = section.values(name);
            if values.is_empty() && section.value_implicit(name) == Some(None) {
                found.push((rank, None));
            }
            found.extend(values.into_iter().map(|value| (rank, Some(value))));
        }
        found
    }

    /// The value of the best pattern, the last one where several are as good.
    pub(super) fn string(&self, name: &str) -> Option<BString> {
        self.best(name).flatten()
    }

    fn best(&self, name: &str) -> Option<Option<BString>> {
        let ranked = self.ranked(name);
        let best = ranked.iter().map(|(rank, _)| *rank).max()?;
        ranked
            .into_iter()
            .rfind(|(rank, _)| *rank == best)
            .map(|(_, value)| value)
    }

    /// Likewise, as a truth value; `Err` holds what is none.
    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, BString> {
        match self.best(name) {
            None => Ok(None),
            Some(None) => Ok(Some(true)),
            Some(Some(text)) => boolean(&text).map(Some).ok_or(text),
        }
    }

    /// Likewise, as a number with Git's suffixes; `Err` holds what is none.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, BString> {
        match self.best(name) {
            None => Ok(None),
            Some(None) => Err(BString::default()),
            Some(Some(text)) => integer(&text).map(Some).ok_or(text),
        }
    }

    /// All values that apply, but none less specific than one before it, as Git reads `http.extraHeader`. An empty one
    /// forgets those before it.
    pub(super) fn narrowing_list(&self, name: &str) -> Vec<BString> {
        let mut narrowest = Rank::default();
        let mut list = Vec::new();
        for (rank, value) in self.ranked(name) {
            if rank < narrowest {
                continue;
            }
            narrowest = rank;
            add(&mut list, value);
        }
        list
    }

    /// All values that apply. An empty one forgets those before it.
    pub(super) fn list(&self, name: &str) -> Vec<BString> {
        let mut list = Vec::new();
        for (_, value) in self.ranked(name) {
            add(&mut list, value);
        }
        list
    }
}

fn add(list: &mut Vec<BString>, value: Option<BString>) {
    match value {
        Some(value) if value.is_empty() => list.clear(),
        Some(value) => list.push(value),
        None => {}
    }
}

/// One of Git's words for true and false.
pub(super) fn boolean(text: &[u8]) -> Option<bool> {
    match text.to_ascii_lowercase().as_slice() {
        b"true" | b"yes" | b"on" => Some(true),
        b"" | b"false" | b"no" | b"off" => Some(false),
        other => integer(other).map(|number| number != 0),
    }
}

fn integer(text: &[u8]) -> Option<i64> {
    let text = text.to_str().ok()?.trim();
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<i64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn place(url: &str) -> Place {
        Place::of(&gix::url::parse(url.as_bytes().as_bstr()).unwrap())
    }

    fn rank(pattern: &str, url: &str) -> Option<Rank> {
        place(url).rank(&Place::pattern(pattern.into(), true)?)
    }

    #[test]
    fn patterns_match_as_in_git() {
        let url = "https://alice@git.example.com/group/repo.git";
        for pattern in [
            "https://git.example.com",
            "https://git.example.com:443/",
            "https://alice@git.example.com",
            "https://*.example.com",
            "https://git.example.com/group",
            "https://git.example.com/group/repo.git",
            "git.example.com",
        ] {
            assert!(rank(pattern, url).is_some(), "{pattern}");
        }
        for pattern in [
            "http://git.example.com",
            "https://git.example.com:444",
            "https://bob@git.example.com",
            "https://*.com",
            "https://example.com",
            "https://git.example.com/gro",
            "example.com",
        ] {
            assert!(rank(pattern, url).is_none(), "{pattern}");
        }
        let ranks = [
            "https://git.example.com",
            "https://alice@git.example.com",
            "https://git.example.com/group",
        ]
        .map(|pattern| rank(pattern, url).unwrap());
        assert!(ranks.is_sorted());
    }

    #[test]
    fn values_are_read_as_in_git() {
        assert_eq!(boolean(b"On"), Some(true));
        assert_eq!(boolean(b""), Some(false));
        assert_eq!(boolean(b"2"), Some(true));
        assert_eq!(boolean(b"maybe"), None);
        assert_eq!(integer(b"2k"), Some(2048));
        assert_eq!(integer(b"9223372036854775807g"), None);
    }
}
