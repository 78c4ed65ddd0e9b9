//! Keys and URLs from Git configuration.
