//! A history to measure on when no real one is at hand: always the same, made with `git fast-import`.
//!
//! It grows like a project does: commits touch a few files in a few folders, most edits change some lines, new files
//! come in, and now and then a side branch is merged. It compresses better than a real one, so figures on it are not
//! comparable with those on real histories.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::ValueEnum;

use crate::measure::Error;
use crate::workload::{self, Noise};

/// How large the history is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// 300 commits, about 2 MB.
    Small,
    /// 20,000 commits, some hundred MB.
    Large,
}

impl Size {
    fn commits(self) -> usize {
        match self {
            Size::Small => 300,
            Size::Large => 20_000,
        }
    }

    fn lines(self) -> usize {
        match self {
            Size::Small => 60,
            Size::Large => 400,
        }
    }
}

/// One file: its path, and its lines as numbers that [`text()`] turns into words.
struct File {
    path: String,
    lines: Vec<u64>,
}

/// A bare repository at `into` with the history on `main`, in one pack.
pub fn make(size: Size, into: &Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::Start {
        program: "git fast-import".into(),
        source,
    };
    let place = into.to_string_lossy().into_owned();
    let room = into.parent().unwrap_or(Path::new("."));
    workload::quietly(room, &["init", "-q", "--bare", &place])?;
    let mut import = workload::git(into);
    import.args(["fast-import", "--quiet"]).stdin(Stdio::piped());
    let mut import = import.spawn().map_err(failed)?;
    let mut stdin = import
        .stdin
        .take()
        .ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
    let mut noise = Noise::new(20);
    let mut files: Vec<File> = Vec::new();
    let mut side: Option<(usize, usize)> = None; // since which commit, from which one
    for number in 1..=size.commits() {
        let mut commit = String::new();
        let merged = side.take_if(|&mut (since, _)| number > since + 6);
        let on_side = side.is_some() && number % 2 == 0;
        let branch = if on_side {
            "refs/heads/side"
        } else {
            "refs/heads/main"
        };
        let _ = write!(
            commit,
            "commit {branch}\nmark :{number}\ncommitter Alice <alice@example.org> {} +0000\ndata 10\nchange{number:04}\n",
            1_500_000_000 + number * 600,
            number = number % 10_000,
        );
        if let Some((_, from)) = side
            && on_side
            && number <= from + 2
        {
            let _ = writeln!(commit, "from :{from}");
        }
        if merged.is_some() {
            commit += "merge refs/heads/side\n";
        } else if side.is_none() && number % 40 == 0 {
            side = Some((number, number));
        }
        for _ in 0..=noise.next() % 3 {
            let fresh = files.is_empty() || noise.next().is_multiple_of(6);
            let at = match fresh {
                true => {
                    let path = format!(
                        "part{}/module{}/file{}.txt",
                        noise.next() % 8,
                        noise.next() % 12,
                        files.len()
                    );
                    let lines = (0..size.lines() / 2 + (noise.next() as usize % size.lines()))
                        .map(|_| noise.next() % 50_000)
                        .collect();
                    files.push(File { path, lines });
                    files.len() - 1
                }
                false => {
                    let at = noise.next() as usize % files.len();
                    for _ in 0..=noise.next() % 5 {
                        let lines = &mut files[at].lines;
                        let place = noise.next() as usize % (lines.len() + 1);
                        match noise.next() % 3 {
                            0 if lines.len() > 4 => drop(lines.remove(place.min(lines.len() - 1))),
                            1 => lines.insert(place, noise.next() % 50_000),
                            _ => {
                                let place = place.min(lines.len() - 1);
                                lines[place] = noise.next() % 50_000;
                            }
                        }
                    }
                    at
                }
            };
            let content = text(&files[at]);
            let _ = write!(
                commit,
                "M 100644 inline {}\ndata {}\n{content}\n",
                files[at].path,
                content.len()
            );
        }
        stdin.write_all(commit.as_bytes()).map_err(failed)?;
    }
    drop(stdin);
    if !import.wait().map_err(failed)?.success() {
        return Err(Error::Failed {
            program: "git fast-import".into(),
            stderr: "it refused the history".into(),
        });
    }
    workload::quietly(into, &["symbolic-ref", "HEAD", "refs/heads/main"])?;
    workload::quietly(into, &["repack", "-q", "-a", "-d", "-f"])?;
    Ok(into.to_owned())
}

fn text(file: &File) -> String {
    let mut text = String::new();
    for line in &file.lines {
        let _ = writeln!(
            text,
            "let value_{line} = compute({}, \"{:x}\");",
            line % 97,
            line * 2_654_435_761
        );
    }
    text
}
