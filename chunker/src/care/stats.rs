//! How much there is, and how much is saved.

use std::collections::HashSet;
use std::fmt::Write as _;

use bstr::BString;
use gix_hash::ObjectId;
use ingot_engine::chunked::{self, Piece, Pieces, Pointer};
use ingot_engine::progress::Progress;
use ingot_engine::repository::Repository;
use ingot_engine::store::{Cache, Store};

use super::collect::is_ours;
use super::reach::reachable;
use crate::Error;
use crate::repo::{commit, flatten, history};

/// A chunked file of the last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStats {
    /// Its path.
    pub path: BString,
    /// Its length.
    pub size: u64,
    /// Its chunks; runs of zeros are none.
    pub chunks: u64,
    /// Bytes of its chunks that no other file of the list before it has.
    pub unique: u64,
    /// False if a part of it is not here.
    pub complete: bool,
}

/// The whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Versions of chunked files.
    pub versions: u64,
    /// Their lengths together: what they would take uncompressed without chunks.
    pub logical: u64,
    /// Their different chunks.
    pub chunks: u64,
    /// The lengths of these together.
    pub deduplicated: u64,
    /// What chunk packs take on the disk.
    pub stored: u64,
    /// The last commit's files.
    pub files: Vec<FileStats>,
    /// Commit by commit, oldest first.
    pub history: Vec<Point>,
}

/// The state at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The commit.
    pub id: ObjectId,
    /// Its time, in seconds since 1970.
    pub time: i64,
    /// The lengths of all versions so far.
    pub logical: u64,
    /// The lengths of all different chunks so far.
    pub deduplicated: u64,
}

/// Counts. `with_history` reads every commit of the current branch.
pub fn stats(repository: &Repository, with_history: bool, progress: &dyn Progress) -> Result<Stats, Error> {
    let store = repository.store()?;
    let mut stats = Stats::default();
    let mut counter = Counter::default();
    for (_, pointer) in reachable(repository, &store, true, progress)? {
        stats.versions += 1;
        stats.logical += pointer.size;
        counter.add(&store, &pointer)?;
    }
    (stats.chunks, stats.deduplicated) = (counter.chunks.len() as u64, counter.bytes);
    for pack in store.packs() {
        if is_ours(pack.path()) {
            for extension in ["pack", "idx"] {
                let meta = std::fs::metadata(pack.path().with_extension(extension));
                stats.stored += meta.map_or(0, |meta| meta.len());
            }
        }
    }
    if let Some(head) = commit::head_commit(repository)? {
        let mut counter = Counter::default();
        let mut cache = Cache::new(1 << 20);
        for (path, side) in flatten(&store, commit::tree_of(&store, head)?)? {
            if let Some(pointer) = chunked::read_pointer(&store, &side.id, &mut cache)? {
                let before = counter.bytes;
                let (chunks, complete) = counter.add(&store, &pointer)?;
                stats.files.push(FileStats {
                    path,
                    size: pointer.size,
                    chunks,
                    unique: counter.bytes - before,
                    complete,
                });
            }
        }
    }
    if with_history {
        stats.history = grown(repository, &store)?;
    }
    Ok(stats)
}

fn grown(repository: &Repository, store: &Store) -> Result<Vec<Point>, Error> {
    let mut points = Vec::new();
    let mut counter = Counter::default();
    let mut seen = HashSet::new();
    let mut logical = 0;
    let mut cache = Cache::new(1 << 20);
    for entry in history::log(repository, None, usize::MAX)?.into_iter().rev() {
        for side in flatten(store, commit::tree_of(store, entry.id)?)?.into_values() {
            if seen.insert(side.id)
                && let Some(pointer) = chunked::read_pointer(store, &side.id, &mut cache)?
            {
                logical += pointer.size;
                counter.add(store, &pointer)?;
            }
        }
        points.push(Point {
            id: entry.id,
            time: entry.time,
            logical,
            deduplicated: counter.bytes,
        });
    }
    Ok(points)
}

#[derive(Default)]
struct Counter {
    chunks: HashSet<ObjectId>,
    bytes: u64,
}

impl Counter {
    /// Counts the chunks of a file. Returns how many it has, and whether all its lists are here.
    fn add(&mut self, store: &Store, pointer: &Pointer) -> Result<(u64, bool), Error> {
        let mut count = 0;
        for piece in Pieces::new(store, pointer) {
            let Piece { length, source, .. } = match piece {
                Ok(piece) => piece,
                Err(chunked::Error::Store(error)) => return Err(error.into()),
                // What is damaged or absent is the business of fsck.
                Err(_) => return Ok((count, false)),
            };
            count += 1;
            match source {
                chunked::Source::Zeros => count -= 1,
                chunked::Source::Chunk(id) => self.object(id, length),
                chunked::Source::Delta { delta, base } => {
                    for id in [delta, base] {
                        let Some((_, size)) = store.header(&id)? else {
                            return Ok((count, false));
                        };
                        self.object(id, size);
                    }
                }
            }
        }
        Ok((count, true))
    }

    fn object(&mut self, id: ObjectId, size: u64) {
        if self.chunks.insert(id) {
            self.bytes += size;
        }
    }
}

/// The growth as a drawing: what all versions would take, and what their chunks take.
pub fn chart(points: &[Point]) -> String {
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 320.0;
    const MARGIN: f64 = 48.0;
    let most = points.iter().map(|point| point.logical).max().unwrap_or(0).max(1) as f64;
    let step = (WIDTH - 2.0 * MARGIN) / (points.len().max(2) - 1) as f64;
    let line = |value: fn(&Point) -> u64| {
        let mut path = String::new();
        for (number, point) in points.iter().enumerate() {
            let x = MARGIN + step * number as f64;
            let y = HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * value(point) as f64 / most;
            // Memory takes everything.
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        path
    };
    let (logical, chunks) = (line(|point| point.logical), line(|point| point.deduplicated));
    let (right, bottom) = (WIDTH - MARGIN, HEIGHT - MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n\
         <title>Growth of chunked files</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <path d=\"M{MARGIN},{MARGIN} V{bottom} H{right}\" fill=\"none\" stroke=\"#888\"/>\n\
         <polyline points=\"{logical}\" fill=\"none\" stroke=\"#c33\" stroke-width=\"2\"/>\n\
         <polyline points=\"{chunks}\" fill=\"none\" stroke=\"#36c\" stroke-width=\"2\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\" fill=\"#c33\">all versions</text>\n\
         <text x=\"160\" y=\"20\" fill=\"#36c\">different chunks</text>\n\
         <text x=\"{MARGIN}\" y=\"36\">{:.0} MiB at most, {} commits</text>\n\
         </svg>\n",
        most / 1_048_576.0,
        points.len(),
    )
}
