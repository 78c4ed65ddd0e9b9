//! Protocol v5: sealing and opening packs, making and reading manifests, a chain of 400 generations.

#![allow(clippy::unwrap_used)] // a benchmark that stops where it stands

use std::collections::HashMap;
use std::io::{self, Cursor, Read as _, Write as _};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ingot_helper::protocol::chain::Chain;
use ingot_helper::protocol::ids::ContentId;
use ingot_helper::protocol::keys::DeviceKey;
use ingot_helper::protocol::pack_stream::{Opener, Sealer};
use ingot_helper::protocol::publication::{self, Writer};
use ingot_helper::protocol::refs::RefMap;

const PACK: usize = 64 << 20;

fn streams(criterion: &mut Criterion) {
    let device = DeviceKey::generate(None).unwrap();
    let chain = publication::genesis(&device).unwrap().into_chain();
    let plain = vec![0x5a; PACK];
    let mut writer = Writer::begin(&chain, &device).unwrap();
    let key = writer.pack_key();
    let seal = |threads: usize| {
        let mut sealer = Sealer::new(Vec::with_capacity(PACK + (1 << 20)), &key, threads).unwrap();
        sealer.write_all(&plain).unwrap();
        sealer.finish().unwrap()
    };
    let (sealed, bytes) = seal(0);
    writer.add_pack(&sealed);
    let published = writer.publish(&RefMap::new()).unwrap().into_chain();
    let pack = published.packs().next().unwrap().clone();
    let all = std::thread::available_parallelism().map_or(1, usize::from);

    let mut group = criterion.benchmark_group("pack stream, 64 MiB");
    group.throughput(Throughput::Bytes(PACK as u64)).sample_size(10);
    for (name, threads) in [("1 thread", 1), ("all threads", all)] {
        group.bench_function(format!("seal/{name}"), |bench| bench.iter(|| seal(threads).0));
        group.bench_function(format!("open/{name}"), |bench| {
            bench.iter(|| {
                let mut opener = Opener::new(Cursor::new(bytes.clone()), &key, &pack, threads).unwrap();
                io::copy(&mut opener.by_ref(), &mut io::sink()).unwrap()
            });
        });
    }
    group.finish();
}

fn manifests(criterion: &mut Criterion) {
    let device = DeviceKey::generate(None).unwrap();
    let mut stored: HashMap<ContentId, Vec<u8>> = HashMap::new();
    let first = publication::genesis(&device).unwrap();
    stored.insert(*first.id(), first.bytes().to_vec());
    let mut chain = first.into_chain();
    let mut one = None;
    for _ in 0..399 {
        let next = Writer::begin(&chain, &device)
            .unwrap()
            .publish(&RefMap::new())
            .unwrap();
        stored.insert(*next.id(), next.bytes().to_vec());
        chain = next.into_chain();
        one.get_or_insert_with(|| chain.clone());
    }
    let one = one.unwrap();
    let fetch = |id: &ContentId| Ok::<_, io::Error>(stored[id].clone());

    let mut group = criterion.benchmark_group("manifest");
    group.bench_function("seal and sign", |bench| {
        bench.iter(|| {
            let writer = Writer::begin(&one, &device).unwrap();
            writer.publish(&RefMap::new()).unwrap().bytes().len()
        });
    });
    group.bench_function("open and verify two", |bench| {
        bench.iter(|| {
            let chain = Chain::read(fetch, one.head().id(), &device).unwrap();
            chain.head().number()
        });
    });
    group.sample_size(20);
    group.bench_function("open and verify a chain of 400", |bench| {
        bench.iter(|| {
            Chain::read(fetch, chain.head().id(), &device)
                .unwrap()
                .pack_count()
        });
    });
    group.finish();
}

criterion_group!(benches, streams, manifests);
criterion_main!(benches);
