//! Packs a repository and says how long each phase took.
//!
//! ```text
//! cargo run --release -p ingot-engine --example pack -- [--threads N] [--thin] [--output FILE] GIT_DIR [REVISION | ^REVISION]...
//! ```
//!
//! Without revisions, everything that `HEAD` reaches; without a file, the pack goes nowhere.

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::time::Instant;

use ingot_engine::pack::write::{Options, plan};
use ingot_engine::progress::Silent;
use ingot_engine::store::Store;
use ingot_engine::walk;

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    let (mut output, mut git_dir): (Box<dyn Write>, _) = (Box::new(io::sink()), None);
    let (mut wants, mut haves) = (Vec::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => options.threads = arguments.next().ok_or("how many threads?")?.parse()?,
            "--memory" => options.memory = arguments.next().ok_or("how many bytes?")?.parse()?,
            "--level" => {
                let level = arguments.next().ok_or("which level?")?.parse()?;
                options.level = ingot_engine::pack::inflate::Level::new(level).ok_or("levels are 0 to 9")?;
            }
            "--thin" => options.thin = true,
            "--output" => {
                let file = std::fs::File::create(arguments.next().ok_or("which file?")?)?;
                output = Box::new(BufWriter::new(file));
            }
            _ if git_dir.is_none() => git_dir = Some(gix::open(&argument)?),
            _ => match argument.strip_prefix('^') {
                Some(have) => haves.push(have.to_owned()),
                None => wants.push(argument),
            },
        }
    }
    let repository = git_dir.ok_or("which repository?")?;
    if wants.is_empty() {
        wants.push("HEAD".to_owned());
    }
    let ids = |revisions: &[String]| -> Result<Vec<_>, Box<dyn Error>> {
        let ids = revisions
            .iter()
            .map(|revision| Ok(repository.rev_parse_single(revision.as_str())?.detach()));
        ids.collect()
    };
    let (wants, haves) = (ids(&wants)?, ids(&haves)?);

    let mut phases = Phases::start();
    let store = Store::open(&repository.git_dir().join("objects"), repository.object_hash())?;
    phases.end("open");
    let request = walk::Request {
        wants: &wants,
        haves: &haves,
        threads: options.threads,
        ..walk::Request::default()
    };
    let objects = walk::enumerate(&store, &request, &Silent)?;
    phases.end("walk");
    let plan = plan(&store, &objects, &options, &Silent)?;
    phases.end("plan");
    let (encoded, deltas) = (plan.encoded(), plan.deltas());
    let summary = plan.stream(&mut output, &Silent)?;
    phases.end("stream");
    println!(
        "{} objects, {encoded} encoded, {deltas} of them as deltas; {} bytes; {}",
        summary.objects, summary.bytes, summary.checksum
    );
    Ok(())
}

/// Prints how long phases took, in time that passed and time of processors, and the peak of memory at their end.
struct Phases(Instant, f64);

impl Phases {
    fn start() -> Phases {
        Phases(Instant::now(), processor_seconds())
    }

    fn end(&mut self, phase: &str) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let value = |name: &str| {
            let line = status
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_default();
            let kib = line
                .split_whitespace()
                .nth(1)
                .and_then(|kib| kib.parse::<u64>().ok());
            kib.unwrap_or_default() / 1024
        };
        let used = processor_seconds();
        println!(
            "{phase:8} {:7.3} s, processor {:6.2} s   peak {} MiB, own now {} MiB",
            self.0.elapsed().as_secs_f64(),
            used - self.1,
            value("VmHWM"),
            value("RssAnon")
        );
        *self = Phases::start();
    }
}

/// Processor time of this process so far, where the system tells it in hundredths of a second.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: f64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}
