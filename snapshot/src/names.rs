//! Names of files as names in a Git tree.
//!
//! Git gives some names a meaning (`.git`, `.gitmodules`, and what some file systems take for the same), and refuses or
//! obeys trees that have them. A home folder may hold any of them. In the tree of a snapshot, such a name has a `%` in
//! front, and so has one that begins with `%` itself: every name has exactly one form, and keeps it.

/// What is put before a name.
const MARK: u8 = b'%';

/// The form of a file's name in a tree.
pub fn in_tree(name: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if name.first() == Some(&MARK) || has_meaning(name) {
        let mut marked = Vec::with_capacity(name.len() + 1);
        marked.push(MARK);
        marked.extend_from_slice(name);
        marked.into()
    } else {
        name.into()
    }
}

/// The file's name behind the form in a tree.
pub fn in_folder(name: &[u8]) -> &[u8] {
    name.strip_prefix(&[MARK]).unwrap_or(name)
}

/// Whether Git, or a file system that Git protects, could take a name for one of Git's own. Rather too many than too
/// few: the mark costs nothing.
fn has_meaning(name: &[u8]) -> bool {
    // NTFS separates by backslashes as well.
    name.split(|&byte| byte == b'\\').any(|part| {
        // HFS+ ignores certain characters, none of them ASCII.
        let mut ascii = part
            .iter()
            .filter(|byte| byte.is_ascii())
            .map(|byte| byte.to_ascii_lowercase());
        let start: [u8; 4] = std::array::from_fn(|_| ascii.next().unwrap_or(0));
        // NTFS has short names for long ones, such as GIT~1 and GI7EBA~1.
        start == *b".git" || (start.starts_with(b"gi") && part.contains(&b'~'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_meaning_are_marked_and_come_back() {
        for (name, marked) in [
            (&b".git"[..], true),
            (b".GIT", true),
            (b".gitmodules", true),
            (b".gitignore", true),
            (b".git ", true),
            (b".git::$INDEX_ALLOCATION", true),
            (b"git~1", true),
            (b"GI7EBA~1", true),
            (".g\u{200c}it".as_bytes(), true),
            (b"a\\.git\\b", true),
            (b"%x", true),
            (b"%.git", true),
            (b"git", false),
            (b"gitconfig", false),
            (b".gi", false),
            (b"x%", false),
            (b".config", false),
            (b"\xff\xfe", false),
        ] {
            let form = in_tree(name);
            assert_eq!(form[0] == MARK, marked, "{}", name.escape_ascii());
            assert_eq!(in_folder(&form), name);
        }
    }
}
