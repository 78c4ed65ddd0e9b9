//! The inner loops of chunked files: cutting, adding, and putting a file of many chunks together.
//!
//! `cargo bench -p ingot-bench --bench chunker`
#![allow(missing_docs, clippy::unwrap_used)] // criterion's macros; a failure is to be seen at once

use std::hint::black_box;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ingot_bench::workload::Noise;
use ingot_chunker::cut;
use ingot_chunker::store::{Source, Writer};
use ingot_engine::chunked::{self, Pointer, RestoreOptions};
use ingot_engine::progress::Silent;
use ingot_engine::repository::{self, Init, Repository};

const MIB: usize = 1 << 20;
/// The file that is put together from its chunks.
const FANOUT: usize = 128 * MIB;

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    (0..length / 8).flat_map(|_| noise.next().to_le_bytes()).collect()
}

fn add(repository: &Repository, content: &[u8], before: Option<&Pointer>) -> Pointer {
    let store = repository.store().unwrap();
    let mut writer = Writer::new(repository, &store);
    let mut stream = content;
    let added = writer.add(Source::stream(&mut stream), before, &Silent).unwrap();
    writer.finish().unwrap();
    added.pointer
}

fn empty(folder: &Path) -> Repository {
    repository::init(&folder.join("repository"), &Init::default()).unwrap()
}

fn cutting(criterion: &mut Criterion) {
    let content = noise(1, 32 * MIB);
    let mut group = criterion.benchmark_group("cut");
    group.throughput(Throughput::Bytes(content.len() as u64));
    group.bench_function("noise", |bench| {
        bench.iter(|| {
            let mut lengths = Vec::new();
            cut::all(black_box(&content), true, &mut lengths)
        });
    });
    let zeros = vec![0; 32 * MIB];
    group.bench_function("zeros", |bench| {
        bench.iter(|| {
            let mut lengths = Vec::new();
            cut::all(black_box(&zeros), true, &mut lengths)
        });
    });
    group.finish();
}

fn adding(criterion: &mut Criterion) {
    let content = noise(2, 32 * MIB);
    let mut group = criterion.benchmark_group("add");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(content.len() as u64));
    group.bench_function("new", |bench| {
        bench.iter_batched(
            || {
                let folder = tempfile::tempdir().unwrap();
                let repository = empty(folder.path());
                (folder, repository)
            },
            |(folder, repository)| {
                add(&repository, &content, None);
                folder
            },
            BatchSize::PerIteration,
        );
    });
    let folder = tempfile::tempdir().unwrap();
    let repository = empty(folder.path());
    let before = add(&repository, &content, None);
    group.bench_function("known", |bench| {
        bench.iter(|| add(&repository, black_box(&content), None));
    });
    let mut edited = content.clone();
    edited[10 * MIB..10 * MIB + 16].copy_from_slice(b"sixteen new byte");
    add(&repository, &edited, Some(&before));
    group.bench_function("edited", |bench| {
        bench.iter(|| add(&repository, black_box(&edited), Some(&before)));
    });
    group.finish();
}

fn restoring(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let repository = empty(folder.path());
    let pointer = add(&repository, &noise(3, FANOUT), None);
    let store = repository.store().unwrap();
    let mut group = criterion.benchmark_group("restore");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(pointer.size));
    group.bench_function("restore_chunk_fanout", |bench| {
        bench.iter(|| {
            let path = folder.path().join("file");
            let file = std::fs::File::create(&path).unwrap();
            let options = RestoreOptions { progress: &Silent };
            chunked::restore(&store, &pointer, &file, &path, &options).unwrap()
        });
    });
    group.bench_function("verify", |bench| {
        bench.iter(|| chunked::verify(&store, &pointer, &Silent).unwrap().len());
    });
    group.finish();
}

criterion_group!(benches, cutting, adding, restoring);
criterion_main!(benches);
