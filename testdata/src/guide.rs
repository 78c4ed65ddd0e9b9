//! Runs the commands that a document shows, and compares what they print with what the document says.
//!
//! A document is a series of fenced blocks. In a block ```` ```console ```` each line `$ COMMAND` is run by a shell, and the
//! lines below it are what it prints; where there are none, it only has to succeed. `laptop$ COMMAND` runs on another
//! machine: with a home folder of its own. What cannot be said in advance is `…`: in a line for any run of characters,
//! alone on a line for any number of lines. A line `[exit code N]` says that the command ends with that code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::git;

/// One command of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where it stands, counted from 1.
    pub line: usize,
    /// The machine; empty for the first one.
    pub machine: String,
    /// What is typed.
    pub command: String,
    /// What is printed, if the document says.
    pub printed: Vec<String>,
    /// The exit code.
    pub code: i32,
}

/// The commands of all console blocks of a document.
pub fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (at, line) in document.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        if fence {
            inside = !inside && line.trim() == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        let prompt = line
            .split_once("$ ")
            .filter(|(machine, _)| machine.chars().all(|letter| letter.is_ascii_lowercase()));
        match (prompt, steps.last_mut()) {
            (_, Some(step)) if step.command.ends_with('\\') => {
                step.command.pop();
                step.command += line.trim_start();
            }
            (Some((machine, command)), _) => steps.push(Step {
                line: at + 1,
                machine: machine.to_owned(),
                command: command.to_owned(),
                printed: Vec::new(),
                code: 0,
            }),
            (None, Some(step)) => match line
                .strip_prefix("[exit code ")
                .and_then(|rest| rest.strip_suffix(']'))
            {
                Some(code) => step.code = code.parse().expect("a number"),
                None => step.printed.push(line.to_owned()),
            },
            (None, None) => panic!("line {}: output without a command", at + 1),
        }
    }
    steps
}

/// Whether `text` is what `pattern` says.
pub fn matches(pattern: &[String], text: &[&str]) -> bool {
    match (pattern, text) {
        ([], rest) => rest.is_empty(),
        ([any, rest @ ..], _) if any.trim() == "…" => {
            (0..=text.len()).any(|skipped| matches(rest, &text[skipped..]))
        }
        ([first, rest @ ..], [line, lines @ ..]) => line_matches(first, line) && matches(rest, lines),
        (_, []) => false,
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.trim_end().split('…');
    let line = line.trim_end();
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Machines that share storage, for the commands of one document.
pub struct Stage {
    room: PathBuf,
    /// Words of documents, and what stands for them here, such as `/mnt/backup`.
    places: Vec<(String, String)>,
    /// Folders with the programs.
    programs: Vec<PathBuf>,
    folders: BTreeMap<String, PathBuf>,
}

impl Stage {
    /// In the empty folder `room`. `programs` come first on PATH. Each of `places` is made: the documents name it, the
    /// commands get a folder in `room`.
    pub fn new(room: &Path, programs: &[PathBuf], places: &[&str]) -> Stage {
        let room = room.canonicalize().unwrap();
        let places = places.iter().map(|place| {
            let here = room.join("shared").join(place.trim_start_matches('/'));
            fs::create_dir_all(&here).unwrap();
            ((*place).to_owned(), here.to_str().unwrap().to_owned())
        });
        Stage {
            places: places.collect(),
            programs: programs.to_owned(),
            folders: BTreeMap::new(),
            room: room.clone(),
        }
    }

    /// Further words that are replaced in commands, and put back in what they print.
    pub fn replace(&mut self, word: &str, with: &str) {
        self.places.push((word.to_owned(), with.to_owned()));
    }

    /// The home folder of a machine, made when it is first asked for.
    pub fn home(&mut self, machine: &str) -> PathBuf {
        let name = if machine.is_empty() { "alice" } else { machine };
        let home = self.room.join(name);
        fs::create_dir_all(&home).unwrap();
        self.folders
            .entry(machine.to_owned())
            .or_insert_with(|| home.clone());
        home
    }

    /// What a shell says to `command` on a machine: its output and its exit code. The folder stays for the next one.
    pub fn shell(&mut self, machine: &str, command: &str) -> (String, i32) {
        let home = self.home(machine);
        let mut command = command.to_owned();
        for (word, with) in &self.places {
            command = command.replace(word, with);
        }
        let note = self.room.join("folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = self.programs.clone();
        folders.extend(std::env::split_paths(&path));
        let mut shell = git::isolated(Command::new("bash"), &self.folders[machine]);
        // A user's own configuration file is part of what documents show.
        shell
            .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"))
            .env("HOME", &home)
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8");
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
        ] {
            shell.env_remove(name);
        }
        let script = format!(
            "exec 2>&1\n{command}\ncode=$?\npwd >'{}'\nexit $code",
            note.display()
        );
        let output = shell.args(["-c", &script]).output().unwrap();
        if let Ok(folder) = fs::read_to_string(&note) {
            self.folders
                .insert(machine.to_owned(), PathBuf::from(folder.trim_end()));
            fs::remove_file(&note).unwrap();
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        for (word, with) in &self.places {
            text = text.replace(with, word);
        }
        text = text.replace(home.to_str().unwrap(), "/home/alice");
        (text, output.status.code().unwrap_or(-1))
    }

    /// Runs a document. What differs from it is in the error, all of it, with the lines.
    pub fn play(&mut self, document: &str) -> Result<usize, String> {
        let mut wrong = String::new();
        let steps = steps(document);
        for step in &steps {
            let (text, code) = self.shell(&step.machine, &step.command);
            let lines: Vec<&str> = text.lines().collect();
            if code != step.code {
                let _ = writeln!(
                    wrong,
                    "line {}: $ {}\nexit code {code}:\n{text}",
                    step.line, step.command
                );
            } else if !step.printed.is_empty() && !matches(&step.printed, &lines) {
                let _ = writeln!(wrong, "line {}: $ {}\nprints:\n{text}", step.line, step.command);
            }
        }
        match wrong.is_empty() {
            true => Ok(steps.len()),
            false => Err(wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn a_document_is_read_as_commands_with_their_output() {
        let steps = steps(
            "text\n```console\n$ one --a \\\n    --b\nsays\nmore\nlaptop$ two\n[exit code 3]\n```\n```text\n$ no\n```\n",
        );
        assert_eq!(steps.len(), 2);
        assert_eq!((steps[0].line, steps[0].command.as_str()), (3, "one --a --b"));
        assert_eq!(steps[0].printed, ["says", "more"]);
        assert_eq!((steps[1].machine.as_str(), steps[1].code), ("laptop", 3));
    }

    #[test]
    fn dots_stand_for_what_is_not_known() {
        assert!(matches(&pattern(&["id …, done"]), &["id 5f3c, done"]));
        assert!(!matches(&pattern(&["id …, done"]), &["id 5f3c, failed"]));
        assert!(!matches(&pattern(&["id"]), &["id 5f3c"]));
        assert!(matches(&pattern(&["a", "…", "d"]), &["a", "b", "c", "d"]));
        assert!(matches(&pattern(&["a", "…"]), &["a"]));
        assert!(!matches(&pattern(&["a", "…", "d"]), &["a", "b"]));
        assert!(!matches(&pattern(&["a"]), &["a", "b"]));
    }

    #[test]
    fn a_command_that_fails_or_says_otherwise_is_told() {
        let room = tempfile::tempdir().unwrap();
        let mut stage = Stage::new(room.path(), &[], &["/mnt/disk"]);
        let good = "```console\n$ mkdir a && cd a\n$ pwd\n/home/alice/a\n$ echo $PWD >/mnt/disk/x\nbob$ cat /mnt/disk/x\n…/alice/a\n```\n";
        assert_eq!(stage.play(good), Ok(4));
        let wrong = stage.play("```console\n$ false\n$ echo 1\n2\n```\n").unwrap_err();
        assert!(wrong.contains("line 2: $ false\nexit code 1"), "{wrong}");
        assert!(wrong.contains("line 3: $ echo 1\nprints:\n1"), "{wrong}");
    }
}
