//! The memory that the reader of captures needs: for packets that wait to be sorted, and for each connection.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "a test")]

#[path = "made/crowd.rs"]
mod crowd;

use crowd::{Crowd, Made};
use plait_capture::explain;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::fs::File;
use std::io::BufWriter;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Packets that wait to be sorted.
const WAITING: u64 = 131_072;
/// Most bytes for each of them.
const MOST_FOR_WAITING: u64 = 450;
/// Most bytes for each further packet. A data packet has a record of 16 bytes, and some are in histograms and stalls.
const MOST_FOR_PACKET: f64 = 24.0;
/// Most bytes for a connection of two paths with few packets.
const MOST_FOR_CONNECTION: f64 = 24_000.0;

fn held() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.bytes_allocated - stats.bytes_deallocated) as u64
}

/// Explains a capture, and checks the number of its connections. Returns the numbers of its packets and of its
/// connections, and the allocated bytes after some numbers of segments.
fn allocated(crowd: &Crowd, name: &str) -> (u64, usize, Vec<(u64, u64)>) {
    let file = std::env::temp_dir().join(format!("plait-{name}-{}.pcap", std::process::id()));
    let Made { packets, handshakes } =
        crowd.write(&mut BufWriter::new(File::create(&file).unwrap())).unwrap();
    let mut samples = Vec::with_capacity(1_000);
    let before = held();
    let document = explain(std::slice::from_ref(&file), String::new(), &mut |segments| {
        samples.push((segments, held() - before));
        true
    });
    std::fs::remove_file(&file).unwrap();
    let found = document.unwrap().connections_found;
    assert_eq!(found, handshakes);
    (packets, found, samples)
}

/// All in one test, because other tests would allocate at the same time.
#[test]
fn packets_and_connections_need_little_memory() {
    for at_receiver in [false, true] {
        let crowd = Crowd { connections: 60, at_a_time: 6, data_bytes: 7_000_000, at_receiver };
        let (packets, _, samples) = allocated(&crowd, "long");
        // The queue is full at both samples.
        let full: Vec<_> = samples.iter().filter(|(at, _)| at + WAITING < packets).collect();
        let (first, last) = (full[0], full[full.len() - 1]);
        println!("{packets} packets: {samples:?}");
        assert!(last.0 - first.0 >= 200_000, "{full:?}");
        assert!(first.1 < WAITING * MOST_FOR_WAITING, "{first:?}");
        let each = (last.1 - first.1) as f64 / (last.0 - first.0) as f64;
        println!("{each:.1} bytes for a packet");
        assert!(each < MOST_FOR_PACKET, "{each:.1} bytes for each of {packets} packets");
    }
    let crowd =
        Crowd { connections: 2_000, at_a_time: 100, data_bytes: 100_000, at_receiver: false };
    let (packets, found, samples) = allocated(&crowd, "short");
    let full: Vec<_> = samples.iter().filter(|(at, _)| at + WAITING < packets).collect();
    let (first, last) = (full[0], full[full.len() - 1]);
    let connections = (last.0 - first.0) as f64 * found as f64 / packets as f64;
    let each = (last.1 - first.1) as f64 / connections;
    println!("{packets} packets: {samples:?}: {each:.0} bytes for a connection");
    assert!(each < MOST_FOR_CONNECTION, "{each:.0} bytes for each of {found} connections");
}
