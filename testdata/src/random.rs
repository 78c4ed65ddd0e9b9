//! Random histories, the same for the same seed: merges of two and more, files and folders that are changed, moved,
//! copied, swapped, deleted and brought back, submodule entries, links, clocks that go wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::git;
use crate::repo::{Format, Repo};

/// A small generator of numbers that need to be nothing but different (splitmix64).
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// The sequence for a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// What a path holds: mode, and the number of a blob or the id of a submodule's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Blob(&'static str, usize),
    Gitlink(u64),
}

type Tree = BTreeMap<String, Content>;

/// A history as a stream for `git fast-import`.
#[derive(Debug)]
struct Builder {
    numbers: Numbers,
    id_digits: usize,
    blobs: Vec<String>,
    trees: Vec<Tree>,
    clock: i64,
    stream: String,
}

const FOLDERS: [&str; 6] = ["", "a/", "a/b/", "lib/", "lib/deep/er/", "z/"];
const NAMES: [&str; 8] = [
    "one.c",
    "two.c",
    "README",
    "lib",
    "a",
    "Makefile",
    "name with space",
    "ß",
];

impl Builder {
    fn blob(&mut self) -> usize {
        let mut text = match self.blobs.is_empty() || self.numbers.once_in(3) {
            true => String::new(),
            // A later version of something, so that deltas pay.
            false => self.numbers.pick(&self.blobs.clone()).clone(),
        };
        for _ in 0..1 + self.numbers.below(30) {
            let number = self.numbers.draw() % 1000;
            let _ = writeln!(text, "line {number} of a text that deltas can share");
        }
        self.blobs.push(text);
        let number = self.blobs.len();
        let text = &self.blobs[number - 1];
        let _ = write!(
            self.stream,
            "blob\nmark :{}\ndata {}\n{text}\n",
            1_000_000 + number,
            text.len()
        );
        number
    }

    fn path(&mut self) -> String {
        format!("{}{}", self.numbers.pick(&FOLDERS), self.numbers.pick(&NAMES))
    }

    fn existing(&mut self, tree: &Tree) -> Option<String> {
        let paths: Vec<&String> = tree.keys().collect();
        (!paths.is_empty()).then(|| self.numbers.pick(&paths).to_string())
    }

    fn put(tree: &mut Tree, path: String, content: Content) {
        // A file in the place of a folder, and the other way round.
        let below = format!("{path}/");
        tree.retain(|other, _| !other.starts_with(&below) && !path.starts_with(&format!("{other}/")));
        tree.insert(path, content);
    }

    fn folder_to(&mut self, tree: &mut Tree, keep: bool) {
        let from = *self.numbers.pick(&FOLDERS[1..]);
        let to = format!("{}moved{}/", self.numbers.pick(&FOLDERS), self.numbers.below(3));
        if to.starts_with(from) {
            return;
        }
        let inside: Vec<(String, Content)> = tree
            .iter()
            .filter(|(path, _)| path.starts_with(from))
            .map(|(path, content)| (path.clone(), content.clone()))
            .collect();
        for (path, content) in inside {
            if !keep {
                tree.remove(&path);
            }
            Builder::put(tree, format!("{to}{}", &path[from.len()..]), content);
        }
    }

    fn edit(&mut self, tree: &mut Tree) {
        match self.numbers.below(14) {
            0..=4 => {
                if let Some(path) = self.existing(tree) {
                    let blob = self.blob();
                    let mode = self.numbers.pick(&["100644", "100644", "100755", "120000"]);
                    Builder::put(tree, path, Content::Blob(mode, blob));
                }
            }
            5 | 6 => {
                let (path, blob) = (self.path(), self.blob());
                Builder::put(tree, path, Content::Blob("100644", blob));
            }
            7 => {
                if let Some(path) = self.existing(tree) {
                    tree.remove(&path);
                }
            }
            8 => {
                if let Some(path) = self.existing(tree) {
                    let content = tree[&path].clone();
                    if self.numbers.once_in(2) {
                        tree.remove(&path);
                    }
                    let path = self.path();
                    Builder::put(tree, path, content);
                }
            }
            9 => self.folder_to(tree, false),
            10 => self.folder_to(tree, true),
            11 => {
                let (path, commit) = (self.path(), self.numbers.draw());
                Builder::put(tree, path, Content::Gitlink(commit));
            }
            12 => {
                // One file as it was some time ago.
                let old = self.numbers.below(self.trees.len().max(1));
                if let Some(old) = self.trees.get(old).cloned()
                    && let Some(path) = self.existing(&old)
                {
                    Builder::put(tree, path.clone(), old[&path].clone());
                }
            }
            _ => {
                let old = self.numbers.below(self.trees.len().max(1));
                if let Some(old) = self.trees.get(old)
                    && self.numbers.once_in(4)
                {
                    *tree = old.clone();
                }
            }
        }
    }

    fn commit(&mut self) {
        let number = self.trees.len() + 1;
        let count = match self.numbers.below(12) {
            _ if number == 1 => 0,
            0 if self.numbers.once_in(3) => 0,
            0 | 1 => 2,
            2 => 3 + self.numbers.below(3),
            _ => 1,
        };
        let mut parents = Vec::new();
        for _ in 0..count {
            // Mostly near the tip, sometimes from long ago.
            let range = if self.numbers.once_in(8) {
                number - 1
            } else {
                (number - 1).min(4)
            };
            let parent = number - 1 - self.numbers.below(range);
            if !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        let mut tree = match parents.first() {
            Some(&parent) => self.trees[parent - 1].clone(),
            None => Tree::new(),
        };
        for &parent in parents.iter().skip(1) {
            for (path, content) in self.trees[parent - 1].clone() {
                if self.numbers.once_in(2) {
                    Builder::put(&mut tree, path, content);
                }
            }
        }
        let edits = match parents.len() {
            0 => 12,
            1 => self.numbers.below(4),
            _ => self.numbers.below(2),
        };
        for _ in 0..edits {
            self.edit(&mut tree);
        }
        self.clock += 60;
        let date = match self.numbers.below(20) {
            0 => self.clock - 100_000,
            1 => self.clock + 5_000,
            _ => self.clock,
        };
        let _ = write!(
            self.stream,
            "commit refs/heads/c{number}\nmark :{number}\ncommitter Bob <bob@example.org> {date} +0100\ndata 9\ncommit {:02}\n",
            number % 100
        );
        for (index, parent) in parents.iter().enumerate() {
            let word = if index == 0 { "from" } else { "merge" };
            let _ = writeln!(self.stream, "{word} :{parent}");
        }
        self.stream.push_str("deleteall\n");
        for (path, content) in &tree {
            let _ = match content {
                Content::Blob(mode, blob) => writeln!(self.stream, "M {mode} :{} {path}", 1_000_000 + blob),
                Content::Gitlink(commit) => writeln!(
                    self.stream,
                    "M 160000 {commit:0width$x} {path}",
                    width = self.id_digits
                ),
            };
        }
        self.stream.push('\n');
        self.trees.push(tree);
    }
}

impl Repo {
    /// A repository with a random history of so many commits, all loose. Every commit has a branch `c<number>`, counted
    /// from 1; some commits, trees and blobs have annotated tags, some of those have tags again.
    #[track_caller]
    pub fn random(seed: u64, format: Format, commits: usize) -> Repo {
        let repo = Repo::empty(format);
        let mut builder = Builder {
            numbers: Numbers::new(seed),
            id_digits: if format == Format::Sha1 { 40 } else { 64 },
            blobs: Vec::new(),
            trees: Vec::new(),
            clock: 1_700_000_000,
            stream: String::new(),
        };
        for _ in 0..commits {
            builder.commit();
        }
        let import = [
            "-c",
            "fastimport.unpackLimit=1000000",
            "fast-import",
            "--quiet",
            "--done",
        ];
        builder.stream.push_str("done\n");
        git::with_input(repo.path(), &import, builder.stream.as_bytes());
        let numbers = &mut builder.numbers;
        for tag in 0..6 {
            let commit = 1 + numbers.below(commits);
            let target = match tag {
                0 | 1 => format!("c{commit}"),
                2 => format!("c{commit}^{{tree}}"),
                3 => {
                    let listed = repo.git(&["ls-tree", "-r", &format!("c{commit}")]);
                    match listed.lines().find(|line| line.contains(" blob ")) {
                        Some(line) => line.split([' ', '\t']).nth(2).unwrap().to_owned(),
                        None => format!("c{commit}"),
                    }
                }
                tag => format!("t{}", numbers.below(tag)),
            };
            repo.git(&["tag", "-a", "-m", "a tag", &format!("t{tag}"), &target]);
        }
        repo
    }

    /// Packs everything into one pack with new deltas.
    #[track_caller]
    pub fn pack(&self) {
        self.git(&["repack", "-q", "-a", "-d", "-f", "--depth=20", "--window=20"]);
        self.git(&["prune-packed"]);
    }

    /// Adds loose commits `n1` and on, which build on random ones of the `commits` that are there and on each other.
    #[track_caller]
    pub fn add_commits(&self, seed: u64, commits: usize, count: usize) {
        let mut numbers = Numbers::new(seed);
        for number in 1..=count {
            let content = format!("new {number}\n");
            let blob = git::with_input(self.path(), &["hash-object", "-w", "--stdin"], content.as_bytes());
            let blob = String::from_utf8_lossy(&blob).trim().to_owned();
            let tree = self.git(&["rev-parse", &format!("c{}^{{tree}}", 1 + numbers.below(commits))]);
            let listed = format!("100644 blob {blob}\tnew\n040000 tree {tree}\told\n");
            let tree = git::with_input(self.path(), &["mktree"], listed.as_bytes());
            let tree = String::from_utf8_lossy(&tree).trim().to_owned();
            let mut parents = vec![format!("c{}", 1 + numbers.below(commits))];
            if number > 1 {
                parents.push(format!("n{}", 1 + numbers.below(number - 1)));
            }
            let mut args = vec!["commit-tree", "-m", "new", &tree];
            for parent in &parents {
                args.extend(["-p", parent]);
            }
            let commit = self.git(&args);
            self.git(&["branch", &format!("n{number}"), &commit]);
        }
    }

    /// Lays the objects out in many ways at once: two packs that overlap, one of them with deltas against bases in
    /// itself only, and the rest loose.
    #[track_caller]
    pub fn scatter(&self, commits: usize) {
        let folder = self.objects().join("pack/pack");
        let folder = folder.to_str().unwrap();
        for (from, to) in [(commits / 4, commits / 2), (commits / 3, 3 * commits / 4)] {
            let input = format!("c{to}\n^c{from}\n");
            git::with_input(
                self.path(),
                &["pack-objects", "-q", "--revs", folder],
                input.as_bytes(),
            );
        }
        self.git(&["prune-packed"]);
    }
}
