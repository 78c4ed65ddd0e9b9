//! Keys, URLs and remotes from Git configuration.

mod folders;
mod key;
mod parameters;
mod remote;
mod settings;
mod url;

pub use folders::{Folders, safe_name};
pub use key::{Key, KeyError, find_key, shell_word};
pub use parameters::{ParametersError, parse as parse_parameters};
pub use remote::{Remote, Target};
pub use settings::{Settings, SettingsError};
pub use url::{PathError, StorageUrl, UrlError, expand};
