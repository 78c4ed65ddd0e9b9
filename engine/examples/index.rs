//! Indexes a pack file into a temporary folder and prints what each phase took: `index <pack> [threads] [mebibytes of bases] [sha256]`.

#![allow(clippy::unwrap_used)] // a demonstration, not the product

use std::sync::Mutex;
use std::time::Instant;

use ingot_engine::pack::index::{Options, index};
use ingot_engine::progress::{Progress, Unit};

struct Phases(Mutex<Option<(&'static str, Instant)>>);

impl Progress for Phases {
    fn begin(&self, phase: &'static str, total: Option<u64>, _: Unit) {
        self.end();
        if let Some(total) = total {
            println!("{phase}: {total}");
        }
        *self.0.lock().unwrap() = Some((phase, Instant::now()));
    }

    fn end(&self) {
        if let Some((phase, start)) = self.0.lock().unwrap().take() {
            println!("{phase}: {:.2} s", start.elapsed().as_secs_f64());
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args
        .next()
        .expect("usage: index <pack> [threads] [mebibytes] [sha256]");
    let threads = args.next().map_or(0, |threads| threads.parse().unwrap());
    let memory = args.next().map_or(10, |memory| memory.parse().unwrap());
    let format = match args.next().as_deref() {
        Some("sha256") => gix_hash::Kind::Sha256,
        _ => gix_hash::Kind::Sha1,
    };
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let options = Options {
        threads,
        memory: memory << 20,
        ..Options::new(format)
    };
    let mut source = std::fs::File::open(path).unwrap();
    match index(&mut source, folder.path(), &options, &Phases(Mutex::new(None))) {
        Ok(indexed) => println!(
            "{} {} objects, {} bytes, {} external references",
            indexed.id,
            indexed.objects,
            indexed.bytes,
            indexed.external.len()
        ),
        Err(error) => println!("{error}"),
    }
    println!("total: {:.4} s", start.elapsed().as_secs_f64());
}
