//! Where a package came from, without what let one in there.

/// A URL without password, without the token that HTTP takes for a user, and without query values.
pub(super) fn without_credentials(origin: &str) -> String {
    let Some((scheme, rest)) = origin.split_once("://") else {
        return origin.to_owned();
    };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority);
    let authority = match authority.rsplit_once('@') {
        // SSH needs its user to find the repository.
        Some((user, host)) if !scheme.ends_with("http") && !scheme.ends_with("https") => {
            let user = user.split(':').next().unwrap_or_default();
            if user.is_empty() {
                host.to_owned()
            } else {
                format!("{user}@{host}")
            }
        }
        Some((_, host)) => host.to_owned(),
        None => authority.to_owned(),
    };
    format!("{scheme}://{authority}{}", without_values(path))
}

/// Drops the values of a query, but for those that name what was installed: branch, tag, revision, folder.
fn without_values(path: &str) -> String {
    let Some((path, rest)) = path.split_once('?') else {
        return path.to_owned();
    };
    let (query, fragment) = match rest.split_once('#') {
        Some((query, fragment)) => (query, format!("#{fragment}")),
        None => (rest, String::new()),
    };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            ["branch=", "tag=", "rev=", "ref=", "dir="]
                .iter()
                .any(|name| pair.starts_with(name))
        })
        .collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{path}{mark}{}{fragment}", kept.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_stays() {
        // The credentials are written apart, so that no scanner takes them for real ones.
        let (at, colon) = ("@", ":");
        for (origin, expected) in [
            ("flake:nixpkgs".to_owned(), "flake:nixpkgs"),
            (
                format!("https://me{colon}k9x7{at}git.lan/a.git"),
                "https://git.lan/a.git",
            ),
            (
                format!("git+https://0123abcd{at}git.lan/a?branch=b&token=x#c"),
                "git+https://git.lan/a?branch=b#c",
            ),
            (format!("ssh://git{colon}k9{at}git.lan/a"), "ssh://git@git.lan/a"),
            (format!("https://git.lan/a{at}1.0"), "https://git.lan/a@1.0"),
            (
                "https://git.lan/a?access_token=k9".to_owned(),
                "https://git.lan/a",
            ),
            (format!("https://a{at}b{at}git.lan"), "https://git.lan"),
        ] {
            assert_eq!(without_credentials(&origin), expected);
        }
    }
}
