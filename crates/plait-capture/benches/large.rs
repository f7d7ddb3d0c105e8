//! Time and memory of a large capture: `large --connections 800 --bytes 1g [--at-a-time 100] [--at-receiver] [--file FILE]`.
//!
//! It writes a capture of about so many bytes, and explains it. With a file, the capture is kept there, so that
//! `/usr/bin/time -v plait explain FILE` measures the whole process.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "a bench")]
#![expect(clippy::disallowed_types, reason = "it measures time")]

#[path = "../tests/made/crowd.rs"]
mod crowd;

use crowd::{Crowd, Made};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of data for each byte of the capture, which has 160 bytes of each packet at most.
const DATA_PER_BYTE: f64 = 6.0;

/// Returns the bytes that are allocated now.
fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Returns a size, such as `20m` or `1g`, in bytes.
fn size(text: &str) -> u64 {
    let unit = match text.chars().last() {
        Some('g') => 1_000_000_000,
        Some('m') => 1_000_000,
        Some('k') => 1_000,
        _ => 1,
    };
    text.trim_end_matches(['g', 'm', 'k']).parse::<u64>().expect("a size such as 20m") * unit
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let of = |name: &str| {
        let at = args.iter().position(|it| it == name)?;
        args.get(at + 1).map(String::as_str)
    };
    let connections = of("--connections").map_or(20, |it| it.parse().expect("a number"));
    let bytes = size(of("--bytes").unwrap_or("20m"));
    let crowd = Crowd {
        connections,
        at_a_time: of("--at-a-time").map_or(100, |it| it.parse().expect("a number")),
        data_bytes: (bytes as f64 * DATA_PER_BYTE / connections as f64) as u64,
        at_receiver: args.iter().any(|it| it == "--at-receiver"),
    };
    let kept = of("--file").map(PathBuf::from);
    let file = kept.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("plait-large-{}.pcap", std::process::id()))
    });
    let Made { packets, .. } =
        crowd.write(&mut BufWriter::new(File::create(&file).unwrap())).unwrap();
    let len = file.metadata().unwrap().len();
    println!("{packets} packets, {connections} connections, {:.1} MB", len as f64 / 1e6);
    let (before, begin, mut peak) = (held(), Instant::now(), 0);
    let document = plait_capture::explain(std::slice::from_ref(&file), String::new(), &mut |_| {
        peak = peak.max(held() - before);
        true
    });
    peak = peak.max(held() - before);
    println!("{}", document.unwrap().sentence);
    let seconds = begin.elapsed().as_secs_f64();
    println!("{seconds:.1} s, {:.1} MB allocated", peak as f64 / 1e6);
    if kept.is_none() {
        std::fs::remove_file(&file).unwrap();
    }
}
