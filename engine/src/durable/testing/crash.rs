//! Which states a power cut may leave.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use super::disk::{Content, Disk, Node, Op, Tree, apply};

/// Beyond this many combinations at one moment, not all are tried: all lost, all kept, and each single one against
/// either.
const EXHAUSTIVE: usize = 512;

/// What a reader finds after one power cut.
#[derive(Debug)]
pub struct Crash {
    root: tempfile::TempDir,
    marks: Vec<String>,
    story: String,
}

impl Crash {
    /// The folder in the state that the power cut left.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Whether the recording had passed [`super::Recording::mark`] with this text.
    pub fn reached(&self, mark: &str) -> bool {
        self.marks.iter().any(|passed| passed == mark)
    }
}

impl std::fmt::Display for Crash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.story)
    }
}

/// One thing that may or may not have reached the disk, and in how many ways.
#[derive(Debug, Clone, Copy)]
enum Question {
    /// Unsynced content: nothing of it, half, all, or its length with zeros for content.
    Data(Node),
    /// Unsynced change number `.1` of a folder: lost or kept.
    Name(Node, usize),
}

impl Question {
    fn answers(self) -> usize {
        match self {
            Question::Data(_) => 4,
            Question::Name(..) => 2,
        }
    }

    /// The answer that means "as if synced".
    fn kept(self) -> usize {
        match self {
            Question::Data(_) => 2,
            Question::Name(..) => 1,
        }
    }
}

fn questions(disk: &Disk) -> Vec<Question> {
    let mut all = Vec::new();
    for (node, entry) in disk.nodes.iter().enumerate() {
        match &entry.content {
            Content::File { pending, .. } if !pending.is_empty() => all.push(Question::Data(node)),
            Content::File { .. } => {}
            Content::Folder { pending, .. } => {
                all.extend((0..pending.len()).map(|number| Question::Name(node, number)));
            }
        }
    }
    all
}

fn answer_sets(questions: &[Question]) -> Vec<Vec<usize>> {
    let combinations = questions.iter().try_fold(1_usize, |product, question| {
        product.checked_mul(question.answers())
    });
    if combinations.is_some_and(|count| count <= EXHAUSTIVE) {
        let mut sets = vec![Vec::new()];
        for question in questions {
            sets = sets
                .into_iter()
                .flat_map(|set| {
                    (0..question.answers()).map(move |answer| {
                        let mut longer = set.clone();
                        longer.push(answer);
                        longer
                    })
                })
                .collect();
        }
        return sets;
    }
    let lost: Vec<usize> = questions.iter().map(|_| 0).collect();
    let kept: Vec<usize> = questions.iter().map(|question| question.kept()).collect();
    let mut sets = vec![lost.clone(), kept.clone()];
    for (at, question) in questions.iter().enumerate() {
        for answer in 0..question.answers() {
            for base in [&lost, &kept] {
                let mut set = base.clone();
                set[at] = answer;
                sets.push(set);
            }
        }
    }
    sets
}

fn tree(disk: &Disk, questions: &[Question], answers: &[usize]) -> Tree {
    let mut content: BTreeMap<Node, usize> = BTreeMap::new();
    let mut names: BTreeMap<Node, BTreeMap<OsString, Node>> = BTreeMap::new();
    for (node, entry) in disk.nodes.iter().enumerate() {
        if let Content::Folder { stable, .. } = &entry.content {
            names.insert(node, stable.clone());
        }
    }
    for (question, &answer) in questions.iter().zip(answers) {
        match *question {
            Question::Data(node) => {
                content.insert(node, answer);
            }
            Question::Name(node, number) if answer == 1 => {
                if let (Content::Folder { pending, .. }, Some(names)) =
                    (&disk.nodes[node].content, names.get_mut(&node))
                {
                    apply(names, &pending[number]);
                }
            }
            Question::Name(..) => {}
        }
    }
    let mut tree = Tree::new();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((path, node)) = open.pop() {
        let entry = &disk.nodes[node];
        match &entry.content {
            Content::File { stable, pending } => {
                let mut bytes = stable.clone();
                match content.get(&node) {
                    Some(1) => bytes.extend_from_slice(&pending[..pending.len() / 2]),
                    Some(2) => bytes.extend_from_slice(pending),
                    Some(3) => bytes.resize(stable.len() + pending.len(), 0),
                    _ => {}
                }
                tree.insert(path, (entry.mode, Some(bytes)));
            }
            Content::Folder { .. } => {
                for (name, child) in names.get(&node).into_iter().flatten() {
                    open.push((path.join(name), *child));
                }
                if node != 0 {
                    tree.insert(path, (entry.mode, None));
                }
            }
        }
    }
    tree
}

fn lay_out(tree: &Tree) -> std::io::Result<tempfile::TempDir> {
    // Thousands of states are written; where there is a file system in memory, the disk need not see them.
    let root = tempfile::TempDir::new_in("/dev/shm").or_else(|_| tempfile::TempDir::new())?;
    for (path, (mode, bytes)) in tree {
        let path = root.path().join(path);
        match bytes {
            None => std::fs::create_dir(&path)?,
            Some(bytes) => std::fs::write(&path, bytes)?,
        }
        set_mode(&path, *mode)?;
    }
    Ok(root)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}

/// Calls `check` once for every different state; returns how many there were.
pub(super) fn each(start: &Disk, ops: &[Op], root: &Path, mut check: impl FnMut(&Crash)) -> usize {
    let mut disk = start.clone();
    let mut marks = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for done in 0..=ops.len() {
        if done > 0 {
            let op = &ops[done - 1];
            disk.replay(op);
            if let Op::Mark(text) = op {
                marks.push(text.clone());
            }
        }
        let questions = questions(&disk);
        for answers in answer_sets(&questions) {
            let tree = tree(&disk, &questions, &answers);
            let mut hasher = DefaultHasher::new();
            (&tree, &marks).hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                continue;
            }
            let crash = Crash {
                root: lay_out(&tree).expect("a temporary folder can be filled"),
                marks: marks.clone(),
                story: story(root, ops, done, &questions, &answers, &tree),
            };
            check(&crash);
        }
    }
    seen.len()
}

fn story(
    root: &Path,
    ops: &[Op],
    done: usize,
    questions: &[Question],
    answers: &[usize],
    tree: &Tree,
) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "power cut in {} after {done} of {} calls:\n",
        root.display(),
        ops.len()
    );
    for op in &ops[..done] {
        let _ = match op {
            Op::Write(node, bytes) => writeln!(text, "  Write({node}, {} bytes)", bytes.len()),
            Op::Rewrite(node, offset, bytes) => {
                writeln!(text, "  Rewrite({node}, {} bytes at {offset})", bytes.len())
            }
            op => writeln!(text, "  {op:?}"),
        };
    }
    for (question, answer) in questions.iter().zip(answers) {
        let fate = match (question, answer) {
            (_, 0) => "lost",
            (Question::Data(_), 1) => "half there",
            (Question::Data(_), 3) => "zeros",
            _ => "there",
        };
        let _ = writeln!(text, "  unsynced {question:?}: {fate}");
    }
    let names: Vec<_> = tree.keys().collect();
    let _ = writeln!(text, "  left: {names:?}");
    text
}
