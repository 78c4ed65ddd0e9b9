//! The engine on a made-up history: enumerating, packing, deltas, indexing, connectivity, checkout.

#![allow(clippy::unwrap_used)] // a benchmark that stops where it stands

use std::fs;
use std::io::{self, Cursor};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use gix_hash::ObjectId;
use ingot_bench::synthetic::{self, Size};
use ingot_bench::workload;
use ingot_engine::pack::{delta, index, write};
use ingot_engine::progress::Silent;
use ingot_engine::repository::Repository;
use ingot_engine::store::Store;
use ingot_engine::{checkout, connectivity, walk};

fn history(criterion: &mut Criterion) {
    let room = tempfile::tempdir().unwrap();
    let place = synthetic::make(Size::Small, &room.path().join("history.git")).unwrap();
    let id = |revision: &str| {
        let text = workload::text(&place, &["rev-parse", revision]).unwrap();
        ObjectId::from_hex(text.as_bytes()).unwrap()
    };
    let (head, before) = (id("HEAD"), id("HEAD~20"));
    let repository = Repository::open(&place).unwrap();
    let store = repository.store().unwrap();
    let objects = |haves: &[ObjectId], threads| {
        let request = walk::Request {
            wants: &[head],
            haves,
            threads,
            ..walk::Request::default()
        };
        walk::enumerate(&store, &request, &Silent).unwrap()
    };

    let mut group = criterion.benchmark_group("engine");
    group.bench_function("enumerate/all", |bench| bench.iter(|| objects(&[], 0).len()));
    group.bench_function("enumerate/all, 1 thread", |bench| {
        bench.iter(|| objects(&[], 1).len());
    });
    group.bench_function("enumerate/20 commits", |bench| {
        bench.iter(|| objects(&[before], 0).len());
    });
    let pack = |store: &Store, objects: &walk::Objects, out: &mut dyn io::Write| {
        let plan = write::plan(store, objects, &write::Options::default(), &Silent).unwrap();
        plan.stream(out, &Silent).unwrap().bytes
    };
    let all = objects(&[], 0);
    group.bench_function("pack/all", |bench| {
        bench.iter(|| pack(&store, &all, &mut io::sink()));
    });
    let new = objects(&[before], 0);
    group.bench_function("pack/20 commits", |bench| {
        bench.iter(|| pack(&store, &new, &mut io::sink()));
    });
    let mut bytes = Vec::new();
    pack(&store, &all, &mut bytes);
    group.bench_function("index/all", |bench| {
        bench.iter_batched(
            || tempfile::tempdir_in(room.path()).unwrap(),
            |into| {
                let options = index::Options::new(gix_hash::Kind::Sha1);
                index::index(&mut Cursor::new(&bytes), into.path(), &options, &Silent).unwrap();
                into
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("connectivity/all", |bench| {
        bench.iter(|| {
            let question = connectivity::Question {
                tips: &[head],
                ..connectivity::Question::default()
            };
            connectivity::check(&store, &question, &Silent).unwrap()
        });
    });
    let clone = room.path().join("clone");
    let place = place.to_string_lossy().into_owned();
    let to = clone.to_string_lossy().into_owned();
    workload::quietly(
        room.path(),
        &["clone", "-q", "--no-checkout", "--shared", &place, &to],
    )
    .unwrap();
    group.bench_function("checkout", |bench| {
        bench.iter_batched(
            || {
                fs::remove_file(clone.join(".git/index")).ok();
                let repository = Repository::open(&clone).unwrap();
                (repository, tempfile::tempdir_in(room.path()).unwrap())
            },
            |(repository, into)| {
                checkout::checkout(&repository, head, into.path(), &Silent).unwrap();
                into
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn deltas(criterion: &mut Criterion) {
    let mut noise = workload::Noise::new(5);
    let base: Vec<u8> = (0..32_768).flat_map(|_| noise.next().to_le_bytes()).collect();
    let mut target = base.clone();
    for at in (0..target.len()).step_by(20_000) {
        target.splice(at..at + 3, *b"a few other bytes");
    }
    let mut group = criterion.benchmark_group("delta");
    group.throughput(Throughput::Bytes(target.len() as u64));
    group.bench_function("index a base", |bench| {
        bench.iter(|| delta::encode::Index::new(base.as_slice()).table_bytes());
    });
    let index = delta::encode::Index::new(base.as_slice());
    group.bench_function("encode", |bench| {
        bench.iter(|| index.delta(&target, target.len()).unwrap().len());
    });
    group.finish();
}

criterion_group!(benches, history, deltas);
criterion_main!(benches);
