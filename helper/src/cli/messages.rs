//! What servers and hooks say, shown as Git shows it.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use ingot_engine::transport::{Line, Lines, Messages, ask_on_terminal_unless};

use super::interrupt::Interrupt;

/// Shows everything on standard error, and asks on the terminal.
#[derive(Debug, Default)]
pub struct Shown {
    lines: Mutex<Lines>,
    without_remote: bool,
}

impl Shown {
    /// Keeps what the server says to itself.
    pub fn without_remote() -> Shown {
        Shown {
            lines: Mutex::default(),
            without_remote: true,
        }
    }
}

impl Messages for Shown {
    fn remote(&self, text: &[u8]) {
        if self.without_remote {
            return;
        }
        let terminal = std::io::stderr().is_terminal();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(text, &mut |line| {
            // Whoever cannot be told still gets the outcome.
            let _ = match line {
                Line::Whole(text) => writeln!(std::io::stderr(), "remote: {text}"),
                Line::Overwritten(text) if terminal => write!(std::io::stderr(), "remote: {text}\r"),
                Line::Overwritten(_) => Ok(()),
            };
        });
    }

    fn warning(&self, text: &str) {
        super::exit::warn(text);
    }

    fn ask(&self, prompt: &str, secret: bool) -> Option<String> {
        ask_on_terminal_unless(prompt, secret, &|| self.interrupted()).ok()
    }

    fn interrupted(&self) -> bool {
        Interrupt::of_process().is_some_and(Interrupt::requested)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let lines = self.lines.get_mut().unwrap_or_else(PoisonError::into_inner);
        lines.finish(&mut |line| {
            if let Line::Whole(text) = line {
                let _ = writeln!(std::io::stderr(), "remote: {text}");
            }
        });
    }
}
