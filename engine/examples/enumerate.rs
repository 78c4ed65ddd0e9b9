//! Counts the objects that ids reach: `enumerate OBJECTS THREADS WANT... [--not HAVE...]`.

#![allow(clippy::unwrap_used)] // an example that stops where it stands

use std::time::Instant;

use gix_hash::ObjectId;
use ingot_engine::progress::Silent;
use ingot_engine::store::Store;
use ingot_engine::walk::{self, Request};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let objects = arguments.next().unwrap();
    let threads = arguments.next().unwrap().parse().unwrap();
    let (mut wants, mut haves) = (Vec::new(), Vec::new());
    let mut excluded = false;
    for argument in arguments {
        match argument.as_str() {
            "--not" => excluded = true,
            id if excluded => haves.push(ObjectId::from_hex(id.as_bytes()).unwrap()),
            id => wants.push(ObjectId::from_hex(id.as_bytes()).unwrap()),
        }
    }
    let format = wants[0].kind();
    let start = Instant::now();
    let store = Store::open(objects.as_ref(), format).unwrap();
    let opened = start.elapsed();
    let request = Request {
        wants: &wants,
        haves: &haves,
        threads,
        ..Request::default()
    };
    let found = walk::enumerate(&store, &request, &Silent).unwrap();
    println!("{} objects: {:?}", found.len(), found.counts());
    println!("opened in {opened:?}, all in {:?}", start.elapsed());
}
