//! Files that change, shrink, grow and vanish while they are captured.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::home::Home;

#[test]
fn stored_bytes_and_recorded_hashes_always_agree() {
    let home = Home::new();
    let large = vec![b'.'; 3 << 20];
    for number in 0..10 {
        home.write(&format!("t/small-{number}"), "start");
    }
    home.write("t/large", &large);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0u64;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                let path = home.path(format!("t/small-{}", round % 10));
                match round % 4 {
                    0 => drop(std::fs::remove_file(&path)),
                    1 => drop(std::fs::write(&path, format!("round {round}\n").repeat(500))),
                    2 => drop(
                        std::fs::OpenOptions::new()
                            .append(true)
                            .open(&path)
                            .map(|mut file| file.write_all(b"more")),
                    ),
                    _ => drop(
                        std::fs::OpenOptions::new()
                            .write(true)
                            .open(&path)
                            .map(|file| file.set_len(3)),
                    ),
                }
            }
        });
        scope.spawn(|| {
            let path = home.path("t/large");
            let mut round = 0u64;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                let file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
                match round % 3 {
                    0 => file.set_len(1 << 20).unwrap(),
                    1 => file.set_len(4 << 20).unwrap(),
                    _ => drop((&file).write_all(b"grown")),
                }
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        for _ in 0..30 {
            let ran = home.rivet(&["snapshot"]);
            assert!([0, 3].contains(&ran.code), "{}{}", ran.out, ran.err);
        }
        stop.store(true, Ordering::Relaxed);
    });
    home.rivet(&["verify"]).good();
    home.sound();
    // Once it is quiet, the capture is whole and has what is there.
    home.rivet(&["snapshot"]).good();
    for entry in std::fs::read_dir(home.path("t")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            home.blob(&format!("t/{name}")) == std::fs::read(&path).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn a_file_that_never_keeps_still_is_told() {
    let home = Home::new();
    home.write("t/log", "start\n");
    let stop = AtomicBool::new(false);
    let mut told = false;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = std::fs::OpenOptions::new()
                .append(true)
                .open(home.path("t/log"))
                .unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all(b"line\n").unwrap();
            }
        });
        for _ in 0..50 {
            let ran = home.rivet(&["snapshot", "--json"]);
            let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            if Home::skipped(&json).contains(&"t/log: changed".to_owned()) {
                assert_eq!(ran.code, 3);
                told = true;
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(told);
    home.rivet(&["verify"]).good();
}
