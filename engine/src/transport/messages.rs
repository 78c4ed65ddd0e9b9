//! What a caller shows of a conversation.

/// Receives what a user should see. Calls come from the thread that reads from or writes to the remote.
pub trait Messages: Send + Sync {
    /// Text of the server, in pieces as they come: progress and the output of hooks. Each line is shown behind
    /// `remote: `; [`Lines`] puts pieces together.
    fn remote(&self, _text: &[u8]) {}

    /// Something that the user should know: one line.
    fn warning(&self, _text: &str) {}

    /// Asks the user, who sees `prompt`; what is typed is hidden if it is `secret`. [`super::ask_on_terminal`] does that.
    fn ask(&self, _prompt: &str, _secret: bool) -> Option<String> {
        None
    }

    /// True when the user wants to stop. Asked about several times a second while a socket is waited for.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Shows nothing, answers nothing and never interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silently;

impl Messages for Silently {}

/// A line of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// It stays.
    Whole(&'a str),
    /// Progress: the next line takes its place.
    Overwritten(&'a str),
}

/// Puts pieces of a server's text together into lines that a terminal can show: control characters are left out, and
/// lines of more than 1,000 bytes are broken.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
    /// What a carriage return has just ended: a line feed after it makes it stay.
    returned: Option<String>,
}

/// Bytes after which a line is broken.
const LONGEST: usize = 1000;

impl Lines {
    /// Nothing has come yet.
    pub fn new() -> Lines {
        Lines::default()
    }

    /// Takes a piece and gives each line that it completes.
    pub fn push(&mut self, text: &[u8], each: &mut dyn FnMut(Line<'_>)) {
        for &byte in text {
            let returned = self.returned.take();
            match byte {
                b'\n' => match returned {
                    Some(text) => each(Line::Whole(&text)),
                    None => each(Line::Whole(&self.take())),
                },
                b'\r' => {
                    let text = self.take();
                    each(Line::Overwritten(&text));
                    self.returned = Some(text);
                }
                _ => {
                    self.partial.push(byte);
                    let within_character = byte >= 0x80 && self.partial.len() < LONGEST + 4;
                    if self.partial.len() >= LONGEST && !within_character {
                        each(Line::Whole(&self.take()));
                    }
                }
            }
        }
    }

    /// Gives the last line, if no line end followed it.
    pub fn finish(&mut self, each: &mut dyn FnMut(Line<'_>)) {
        if !self.partial.is_empty() {
            each(Line::Whole(&self.take()));
        }
    }

    fn take(&mut self) -> String {
        let text: String = String::from_utf8_lossy(&self.partial)
            .chars()
            .filter(|c| !c.is_control() || *c == '\t')
            .collect();
        self.partial.clear();
        text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new();
        let mut out = Vec::new();
        let mut each = |line: Line<'_>| {
            out.push(match line {
                Line::Whole(text) => text.to_owned(),
                Line::Overwritten(text) => format!("~{text}"),
            });
        };
        for piece in pieces {
            lines.push(piece, &mut each);
        }
        lines.finish(&mut each);
        out
    }

    #[test]
    fn pieces_become_lines() {
        assert_eq!(
            lines(&[
                b"Count",
                b"ing: 1%\rCounting: 2%\rdone.\n",
                b"\x1b[1mbold\x07\r",
                b"\nrest"
            ]),
            [
                "~Counting: 1%",
                "~Counting: 2%",
                "done.",
                "~[1mbold",
                "[1mbold",
                "rest"
            ]
        );
    }

    #[test]
    fn endless_lines_are_broken() {
        let long = "\u{e4}".repeat(5000);
        let lines = lines(&[long.as_bytes()]);
        assert!(lines.len() > 5);
        assert_eq!(lines.concat().chars().count(), 5000);
    }
}
