//! What the other side says in its own words.

/// Hears what a server, or a hook of a repository on this machine, has to say while it is worked with.
pub trait Listener: Send + Sync {
    /// A line of the server's or hook's own, to be shown as such. May hold anything that its author wanted it to.
    fn remote(&self, _line: &str) {}

    /// Something that the user should know and that is no reason to fail.
    fn warning(&self, _text: &str) {}

    /// Whether the user wants to stop.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deaf;

impl Listener for Deaf {}
