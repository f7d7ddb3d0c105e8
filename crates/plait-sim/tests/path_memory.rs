//! Path memories: the values that a connection leaves, and a later connection that begins with them.

use crate::common::{checked, limited, ms, setup, spec};
use plait_base::{PathId, Span};
use plait_core::{Config, Dial, PathEntry};
use plait_sim::{Outcome, PairMemory, Setup};

/// A download over 20 Mbit/s with 20 ms and 10 Mbit/s with 60 ms, between hosts with this memory.
fn download(workload: &str, memory: Option<PairMemory>) -> Setup {
    let paths = vec![limited("a", 20, ms(20)), limited("b", 10, ms(60))];
    let mut setup = setup(paths, &spec("slot", "cubic", 2, Config::default()), workload);
    setup.linger = true;
    setup.pairs[0].memory = memory;
    setup
}

fn memory_of(outcome: &Outcome) -> PairMemory {
    outcome.memories[0].clone().expect("the hosts remember paths")
}

/// Returns the memory that a download of 4 MB leaves. The entries are in the order of the paths.
fn left_by_download() -> PairMemory {
    memory_of(&checked(&download("download:4MB", Some(PairMemory::default()))))
}

fn is_near(value: u64, expected: u64, percent: u64) -> bool {
    value.abs_diff(expected) <= expected * percent / 100
}

#[test]
fn a_download_leaves_rates_and_rtts() {
    let PairMemory { client, server, .. } = left_by_download();
    assert_eq!((client.len(), server.len()), (2, 2));
    for (entry, (rate, rtt)) in server.iter().zip([(2_500_000, 20), (1_250_000, 60)]) {
        let record = entry.record;
        // Of 1,500 bytes 1,428 are payload.
        let (sent, min_rtt) = (record.rate.unwrap(), record.min_rtt.unwrap());
        assert!(is_near(sent, rate * 1_428 / 1_500, 10), "{sent} of {rate}");
        assert!((ms(rtt)..ms(rtt + 2)).contains(&min_rtt), "{min_rtt} of {rtt} ms");
        assert!(record.srtt.unwrap() >= min_rtt);
        assert_eq!(record.received, None);
        // Slow start overran a queue.
        assert!(record.loss_ppm.unwrap() < 10_000, "{:?}", record.loss_ppm);
    }
    for (entry, rate) in client.iter().zip([2_500_000, 1_250_000]) {
        let received = entry.record.received.unwrap();
        // The mean includes slow start.
        assert!((rate / 2..rate).contains(&received), "{received} of {rate}");
        assert_eq!(entry.record.rate, None);
    }
}

#[test]
fn losses_are_remembered() {
    let mut lossy = download("download:4MB", Some(PairMemory::default()));
    lossy.paths[0] = crate::common::with_loss(limited("a", 20, ms(20)), 20_000_000);
    let server = memory_of(&checked(&lossy)).server;
    let loss = server[0].record.loss_ppm.unwrap();
    assert!((10_000..30_000).contains(&loss), "{loss}");
    assert_eq!(server[1].record.loss_ppm, Some(0));
}

#[test]
fn hosts_without_a_memory_remember_nothing() {
    let outcome = checked(&download("download:100kB", None));
    assert_eq!(outcome.memories, [None]);
}

/// Returns the path of the first subflow.
fn first_path(setup: &Setup) -> PathId {
    let outcome = checked(setup);
    let client = outcome.pairs[0][0].client.clone().expect("it ran");
    client.subflows.iter().find(|it| !it.joined).expect("a first subflow").path
}

#[test]
fn a_connection_begins_on_the_path_that_the_memory_prefers() {
    let mut memory = left_by_download();
    assert_eq!(first_path(&download("download:100kB", None)), PathId(0));
    assert_eq!(first_path(&download("download:100kB", Some(memory.clone()))), PathId(0));
    // The other path is the better one by far.
    memory.client[1].record.received = Some(50_000_000);
    memory.client[1].record.min_rtt = Some(ms(15));
    assert_eq!(first_path(&download("download:100kB", Some(memory.clone()))), PathId(1));
    let mut primary = download("download:100kB", Some(memory.clone()));
    primary.pairs[0].connections[0].client.config.joins.dial = Dial::Primary;
    assert_eq!(first_path(&primary), PathId(0));
    // An entry that is too old does not count.
    memory.client[1].age = Span::from_secs(3_601);
    assert_eq!(first_path(&download("download:100kB", Some(memory))), PathId(0));
}

/// Returns the threshold of the server's first subflow after a download that ends in slow start.
fn threshold(memory: PairMemory) -> Option<u64> {
    let outcome = checked(&download("download:40kB", Some(memory)));
    outcome.pairs[0][0].server.as_ref().expect("it ran").subflows[0].ssthresh
}

#[test]
fn a_subflow_begins_with_a_remembered_threshold_only_if_that_is_set() {
    let mut memory = left_by_download();
    let set = |entry: &mut PathEntry| entry.record.ssthresh = Some(150_000);
    memory.server.iter_mut().for_each(set);
    assert_eq!(threshold(memory.clone()), None);
    memory.ssthresh = true;
    let segment = Config::default().segment_payload();
    assert_eq!(threshold(memory), Some(150_000 / segment * segment));
}

#[test]
fn a_memory_does_not_make_runs_differ() {
    let run = || checked(&download("download:1MB", Some(left_by_download()))).digest;
    assert_eq!(run(), run());
    // The side path carries new data at once, so the run is another one than without the memory.
    assert_ne!(run(), checked(&download("download:1MB", None)).digest);
}
