//! A number for a path that brings files with the same ending together.
//!
//! The delta search sorts by it: the last characters of a path weigh most, so versions of one file lie side by side, and
//! next to them files of the same name or extension in other folders. The values are those of Git (gitformat-pack(5)
//! calls them name-hash), because reachability bitmaps may bring them along.

/// The hash of the empty path, which root trees have.
pub const ROOT: u32 = 0;

/// Continues the hash of a path with further characters.
#[inline]
pub fn extend(hash: u32, characters: &[u8]) -> u32 {
    characters
        .iter()
        .filter(|&&character| !is_space(character))
        .fold(hash, |hash, &character| {
            (hash >> 2).wrapping_add(u32::from(character) << 24)
        })
}

/// The hash of an entry in a folder, given the folder's hash.
#[inline]
pub fn child(folder: u32, name: &[u8]) -> u32 {
    // The root has no name for a slash to follow.
    match folder {
        ROOT => extend(ROOT, name),
        folder => extend(extend(folder, b"/"), name),
    }
}

/// The hash of a whole path.
pub fn of_path(path: &[u8]) -> u32 {
    extend(ROOT, path)
}

/// What Git's own `isspace` accepts.
#[inline]
fn is_space(character: u8) -> bool {
    matches!(character, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_path_weighs_most() {
        assert_eq!(of_path(b"a"), 0x6100_0000);
        assert_eq!(child(child(ROOT, b"src"), b"main.rs"), of_path(b"src/main.rs"));
        assert_eq!(of_path(b"with space"), of_path(b"withspace"));
        let distance = |a: &[u8], b: &[u8]| of_path(a).abs_diff(of_path(b));
        assert!(distance(b"a/Makefile", b"b/Makefile") < distance(b"a/Makefile", b"a/main.c"));
        assert!(distance(b"x/one.c", b"y/two.c") < distance(b"x/one.c", b"x/one.h"));
    }
}
