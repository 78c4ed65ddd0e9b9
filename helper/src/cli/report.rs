//! What a command has to say: text for people, one JSON object for programs.

use std::io::Write;

use serde_json::Value;

use super::exit::Code;

/// The result of a command that did what it could.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Whole lines for people; empty where there is nothing to say.
    pub text: String,
    /// The same for programs, with stable names.
    pub json: Value,
    /// How the program ends: a push whose references were all refused is complete, and has failed.
    pub code: Code,
    /// Text that `--quiet` does not take away: it is what the command is for.
    pub essential: bool,
}

impl Report {
    /// What was done; `--quiet` silences it.
    pub fn done(text: impl Into<String>, json: Value) -> Report {
        Report {
            text: text.into(),
            json,
            code: Code::Done,
            essential: false,
        }
    }

    /// Data that was asked for; `--quiet` does not silence it.
    pub fn data(text: impl Into<String>, json: Value) -> Report {
        Report {
            essential: true,
            ..Report::done(text, json)
        }
    }

    /// Writes it in the form the user chose.
    pub fn write(&self, json: bool, quiet: bool, mut out: impl Write) -> std::io::Result<()> {
        if json {
            writeln!(out, "{}", self.json)?;
        } else if self.essential || !quiet {
            out.write_all(self.text.as_bytes())?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn written(report: &Report, json: bool, quiet: bool) -> String {
        let mut out = Vec::new();
        report.write(json, quiet, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quiet_takes_talk_away_but_not_data() {
        let done = Report::done("did it\n", serde_json::json!({"done": true}));
        let data = Report {
            essential: true,
            ..done.clone()
        };
        assert_eq!(written(&done, false, false), "did it\n");
        assert_eq!(written(&done, false, true), "");
        assert_eq!(written(&data, false, true), "did it\n");
        assert_eq!(written(&done, true, true), "{\"done\":true}\n");
    }
}
