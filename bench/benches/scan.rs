//! The secret scan on one core: text that holds nothing, text full of words that could begin something, and noise.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ingot_bench::workload::Noise;
use ingot_snapshot::secrets::{AllowList, Scanner};

/// Words of programs and settings.
const PLAIN: &[&str] = &[
    "the", "value", "of", "each", "line", "function", "return", "struct", "window", "margin", "colour",
    "font", "size", "number", "folder", "module", "import", "where", "match", "default", "enabled", "false",
    "true", "path", "index", "buffer", "length", "offset", "result", "error", "count", "render", "layout",
    "theme", "shell", "prompt", "history",
];
/// Words that secrets stand behind, so that many a place has to be looked at.
const SUSPICIOUS: &[&str] = &[
    "password",
    "token",
    "secret",
    "api",
    "key",
    "auth",
    "access",
    "credential",
    "https",
    "user",
    "host",
    "private",
];

fn text(bytes: usize, words: &[&[&str]]) -> Vec<u8> {
    let mut noise = Noise::new(17);
    let words: Vec<&str> = words.concat();
    let mut pick = || words[noise.next() as usize % words.len()];
    let mut text = String::with_capacity(bytes + 100);
    let mut line = 0;
    while text.len() < bytes {
        line += 1;
        text += &match line % 4 {
            0 => format!("    let {} = {}({}, {line});\n", pick(), pick(), pick()),
            1 => format!("{}_{} = \"{} {}\"\n", pick(), pick(), pick(), pick()),
            2 => format!(
                "# {} {} {} {} {} {} {}\n",
                pick(),
                pick(),
                pick(),
                pick(),
                pick(),
                pick(),
                pick()
            ),
            _ => format!("  {}: {}/{}.{}\n", pick(), pick(), pick(), pick()),
        };
    }
    text.truncate(bytes);
    text.into_bytes()
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = Noise::new(23);
    (0..bytes / 8).flat_map(|_| noise.next().to_le_bytes()).collect()
}

fn scan(criterion: &mut Criterion) {
    let scanner = Scanner::new(&AllowList::default());
    let mut group = criterion.benchmark_group("scan");
    for (name, bytes) in [
        ("text, 10 MB", text(10_000_000, &[PLAIN])),
        ("suspicious text, 10 MB", text(10_000_000, &[PLAIN, SUSPICIOUS])),
        ("noise, 1 MB", noise(1_000_000)),
        ("noise, 10 MB", noise(10_000_000)),
    ] {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let mut file = scanner.file(b"file");
                bytes.chunks(1 << 20).for_each(|piece| file.feed(piece));
                assert!(file.finish().is_empty());
            });
        });
    }
}

criterion_group!(benches, scan);
criterion_main!(benches);
