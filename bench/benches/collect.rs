//! Captures of 2,000 files of 1 KiB in two folders, on all threads and on one.

#![allow(clippy::unwrap_used)] // a benchmark that stops where it stands

use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ingot_bench::capture::plant;
use ingot_engine::pack::inflate::Level;
use ingot_engine::progress::Silent;
use ingot_snapshot::archive::{Archive, Files};
use ingot_snapshot::capture::{Captured, Options, Source, capture, look, scan};
use ingot_snapshot::rooted::Root;
use ingot_snapshot::rules::Rules;
use ingot_snapshot::secrets::AllowList;
use ingot_snapshot::tracked::Tracked;
use tempfile::TempDir;

const FILES: usize = 2000;

/// What is tracked.
struct Home {
    root: Root,
    tracked: Tracked,
    rules: Rules,
    allow: AllowList,
}

impl Home {
    fn at(path: &Path) -> Home {
        Home {
            root: Root::open(path).unwrap(),
            tracked: Tracked::new(["one", "two"]).unwrap(),
            rules: Rules::new([]).unwrap(),
            allow: AllowList::default(),
        }
    }

    fn source(&self) -> Source<'_> {
        Source {
            root: &self.root,
            tracked: &self.tracked,
            rules: &self.rules,
            allow: &self.allow,
            max_file_size: u64::MAX,
            cross_mounts: false,
            skip_caches: true,
            own: Vec::new(),
        }
    }

    fn capture(&self, repository: &Path, rehash: bool) -> Captured {
        let options = Options {
            rehash,
            store: true,
            list: false,
            message: None,
            packages: None,
            level: Level::BEST_SPEED,
            fs: Archive::fs(),
            progress: &Silent,
        };
        capture(
            &Files::of(repository),
            repository,
            "bench",
            &self.source(),
            &options,
        )
        .unwrap()
    }
}

fn repository() -> (TempDir, PathBuf) {
    let room = TempDir::new().unwrap();
    let path = room.path().join("snapshots.git");
    Archive::init(&path, "bench", gix_hash::Kind::Sha1).unwrap();
    (room, path)
}

fn collect(criterion: &mut Criterion) {
    let room = TempDir::new().unwrap();
    plant(room.path(), FILES, 0).unwrap();
    // Older than any record of them.
    std::thread::sleep(Duration::from_millis(100));
    let home = Home::at(room.path());
    let (_kept, known) = repository();
    home.capture(&known, false);

    let mut group = criterion.benchmark_group("collect");
    for (threads, suffix) in [(0, ""), (1, ", 1 thread")] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        group.bench_function(format!("cold{suffix}"), |bench| {
            bench.iter_batched(
                repository,
                |(room, path)| {
                    assert!(pool.install(|| home.capture(&path, false)).snapshot.is_some());
                    room
                },
                BatchSize::PerIteration,
            );
        });
        // The part that is done for each file: opening, reading, scanning, hashing.
        group.bench_function(format!("read{suffix}"), |bench| {
            bench.iter(|| {
                let found = pool
                    .install(|| scan(&home.source(), Level::BEST_SPEED, &Silent))
                    .unwrap();
                assert_eq!(found.read, FILES as u64);
            });
        });
        group.bench_function(format!("warm-unchanged{suffix}"), |bench| {
            bench.iter(|| assert_eq!(pool.install(|| home.capture(&known, false)).read, 0));
        });
        group.bench_function(format!("warm-unchanged, every byte hashed{suffix}"), |bench| {
            bench.iter(|| {
                let captured = pool.install(|| home.capture(&known, true));
                assert!(captured.read == FILES as u64 && captured.snapshot.is_none());
            });
        });
        group.bench_function(format!("walk{suffix}"), |bench| {
            bench.iter(|| {
                pool.install(|| look(&home.source(), &Silent))
                    .unwrap()
                    .items
                    .len()
            });
        });
    }
}

criterion_group!(benches, collect);
criterion_main!(benches);
