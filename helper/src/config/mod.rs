//! Keys, URLs and remotes from Git configuration.

mod folders;
mod key;
mod remote;
mod settings;
mod url;

pub use folders::{Folders, safe_name};
pub use key::{Key, KeyError, find_key, shell_word};
pub use remote::{Remote, Target};
pub use settings::Settings;
pub use url::{GitUrl, PathError, StorageUrl, UrlError, expand};
