//! What well-known hosts say about the size of repositories. What they enforce in files and pushes, 100 MiB and 2 GiB at
//! the least, is above the size of parts and of the requests that a push is cut into.

/// The part of the name that a host ends in, the bytes of a repository, and who says so how.
const HOSTS: [(&str, u64, &str); 3] = [
    (
        "github.com",
        5 << 30,
        "advises against repositories of more than 5 GiB",
    ),
    ("gitlab.com", 10 << 30, "takes repositories of at most 10 GiB"),
    ("bitbucket.org", 4 << 30, "takes repositories of at most 4 GiB"),
];

/// What to tell the user before so many bytes are pushed to `host`.
pub(super) fn warning(host: &str, bytes: u64) -> Option<String> {
    let host = host.to_ascii_lowercase();
    let (name, _, says) = HOSTS.iter().find(|(name, limit, _)| {
        let below = host.strip_suffix(name);
        bytes > *limit && below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
    })?;
    Some(format!(
        "this push has {} GiB, and {name} {says}",
        bytes.div_ceil(1 << 30)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hosts_and_large_pushes_only() {
        assert!(warning("github.com", 6 << 30).is_some_and(|text| text.contains("6 GiB")));
        assert!(warning("ssh.GitHub.com", 6 << 30).is_some());
        for (host, bytes) in [
            ("github.com", 1 << 30),
            ("notgithub.com", 6 << 30),
            ("git.example.org", 60 << 30),
        ] {
            assert_eq!(warning(host, bytes), None, "{host}");
        }
    }
}
