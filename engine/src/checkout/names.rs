//! Which paths may be written. Trees come from outside.

use bstr::{BStr, ByteSlice as _};
use gix::index::entry::Mode;
use gix::validate::path::component;

use super::Error;

/// Refuses, by Git's rules, paths that lead out of the work tree or into `.git` under any of its aliases, links with
/// names that Git itself would follow, and trees that use a name twice.
pub(super) fn check(index: &gix::index::State, rules: component::Options) -> Result<(), Error> {
    let mut last: Option<&BStr> = None;
    let mut last_folder: &[u8] = b"";
    for entry in index.entries() {
        let path = entry.path(index);
        let twice = || {
            Err(Error::Twice {
                path: path.to_owned(),
            })
        };
        if last.is_some_and(|last| last >= path) {
            return twice();
        }
        last = Some(path);
        let folder = path.rfind_byte(b'/').map_or(&path[..0], |slash| &path[..slash]);
        // What is the name of a file cannot be the name of a folder too.
        if folder != last_folder {
            last_folder = folder;
            for end in folder.find_iter("/").chain([folder.len()]) {
                let above = BStr::new(&folder[..end]);
                if !above.is_empty()
                    && index
                        .entry_index_by_path_and_stage(above, gix::index::entry::Stage::Unconflicted)
                        .is_some()
                {
                    return twice();
                }
            }
        }
        let mode = (entry.mode == Mode::SYMLINK).then_some(component::Mode::Symlink);
        for name in path.split_str("/") {
            if let Some(error) = fault(name.as_bstr(), mode, rules) {
                return Err(Error::Name {
                    path: path.to_owned(),
                    reason: error.to_string(),
                });
            }
        }
    }
    Ok(())
}

fn fault(name: &BStr, mode: Option<component::Mode>, rules: component::Options) -> Option<component::Error> {
    if let Err(error) = gix::validate::path::component(name, mode, rules) {
        return Some(error);
    }
    // Where these names are on their way to Windows, a backslash separates, too.
    if rules.protect_ntfs && name.contains(&b'\\') {
        return name.split_str("\\").find_map(|part| {
            match gix::validate::path::component(part.as_bstr(), mode, rules) {
                Err(error @ (component::Error::DotGitDir | component::Error::SymlinkedGitModules)) => {
                    Some(error)
                }
                _ => None,
            }
        });
    }
    None
}
