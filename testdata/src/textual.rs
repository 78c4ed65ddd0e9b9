//! A history of text files that grow and change line by line, as programs do.

use std::fmt::Write as _;

use crate::git;
use crate::random::Numbers;
use crate::repo::{Format, Repo};

const WORDS: [&str; 11] = [
    "alpha", "walk", "pack", "index", "object", "return", "store", "if", "delta", "while", "tree",
];

fn line(numbers: &mut Numbers) -> String {
    let mut line = String::new();
    for _ in 0..2 + numbers.below(7) {
        let _ = write!(line, "{}{} ", numbers.pick(&WORDS), numbers.below(90));
    }
    line.push('\n');
    line
}

impl Repo {
    /// A repository with a straight history of so many commits on `main`, all loose: 40 files in four folders, of which
    /// each commit changes some in a few lines.
    #[track_caller]
    pub fn textual(format: Format, commits: u32) -> Repo {
        let mut numbers = Numbers::new(12_345);
        let names: Vec<String> = (0..40)
            .map(|n| {
                format!(
                    "{}/{}{n}.{}",
                    ["src", "src/deep", "doc", "test"][n % 4],
                    WORDS[n % 11],
                    ["rs", "txt"][n % 2]
                )
            })
            .collect();
        let mut files: Vec<Vec<String>> = names
            .iter()
            .map(|_| {
                let lines = 60 + numbers.below(300);
                (0..lines).map(|_| line(&mut numbers)).collect()
            })
            .collect();
        let mut stream = String::new();
        for commit in 0..commits {
            let message = format!("change number {commit}\n\n{}", line(&mut numbers));
            let _ = writeln!(
                stream,
                "commit refs/heads/main\ncommitter Alice <alice@example.org> {} +0000\ndata {}\n{message}",
                1_700_000_000 + commit * 60,
                message.len()
            );
            for (file, name) in files.iter_mut().zip(&names) {
                if commit > 0 && !numbers.once_in(20) {
                    continue;
                }
                for _ in 0..1 + numbers.below(4) {
                    let at = numbers.below(file.len());
                    match numbers.below(3) {
                        0 => drop(file.remove(at)),
                        1 => file[at] = line(&mut numbers),
                        _ => file.insert(at, line(&mut numbers)),
                    }
                }
                let content = file.concat();
                let _ = write!(
                    stream,
                    "M 100644 inline {name}\ndata {}\n{content}\n",
                    content.len()
                );
            }
        }
        let repo = Repo::empty(format);
        let import = ["-c", "fastimport.unpackLimit=1000000", "fast-import", "--quiet"];
        git::with_input(repo.path(), &import, stream.as_bytes());
        repo
    }
}
