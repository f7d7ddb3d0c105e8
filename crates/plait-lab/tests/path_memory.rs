//! Tests `--path-memory`: what an earlier connection leaves helps, and wrong numbers do little harm.
#![allow(clippy::unwrap_used)]

use crate::common::{raw, scenario};
use plait_base::RandomStream;
use plait_core::{PathEntry, PathRecord};
use plait_lab::{Cell, Fault, setup};
use plait_sim::{PairMemory, Setup};

/// Returns the cell of slot in a download over two paths.
fn cell(paths: &str, size: &str, memory: &str) -> Cell {
    let line = format!(
        "{paths} --workload download:{size} --schedulers slot --exact --path-memory {memory}"
    );
    let mut cells = plait_lab::cells(&scenario(&line)).into_iter();
    cells.find(|cell| cell.to_string() == "slot").unwrap()
}

/// Draws two paths of 1 to 100 Mbit/s and 5 to 200 ms.
fn draw(stream: &mut RandomStream) -> String {
    let mut between = |least: f64, most: f64| {
        let share = (stream.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        least * libm::pow(most / least, share)
    };
    let mut path = |name| {
        let (rtt, rate) = (between(5.0, 200.0), between(1.0, 100.0));
        format!("--path {name}:rtt={rtt:.2}ms,rate={rate:.3}mbit")
    };
    format!("{} {}", path("a"), path("b"))
}

/// Returns the time of a run in ms, with this memory of the hosts.
fn time(setup: &Setup, memory: Option<PairMemory>) -> f64 {
    let mut setup = setup.clone();
    setup.pairs[0].memory = memory;
    let outcome = plait_sim::run(&setup);
    assert!(outcome.complete());
    outcome.pairs[0][0].measures.completion_ms.unwrap()
}

/// Returns the memory of the server alone, with a change of each record.
fn server(memory: &PairMemory, change: impl Fn(usize, &mut PathRecord)) -> PairMemory {
    let mut server = memory.server.clone();
    let each = |(place, entry): (usize, &mut PathEntry)| change(place, &mut entry.record);
    server.iter_mut().enumerate().for_each(each);
    PairMemory { server, ..PairMemory::default() }
}

/// Returns the memory of the client alone, with a change of the rate of arrivals on each path.
fn client(memory: &PairMemory, factors: [(u64, u64); 2]) -> PairMemory {
    let mut client = memory.client.clone();
    for (entry, (times, over)) in client.iter_mut().zip(factors) {
        entry.record.received = entry.record.received.map(|rate| rate * times / over);
    }
    PairMemory { client, ..PairMemory::default() }
}

/// Multiplies a rate and divides it.
fn scale(record: &mut PathRecord, (times, over): (u64, u64)) {
    record.rate = record.rate.map(|rate| rate * times / over);
}

/// Largest ratios of the time with a memory to the time without, over random paths.
#[derive(Default, Debug)]
struct Worst {
    right: f64,
    wrong: f64,
}

/// Downloads `size` over 24 pairs of paths, with the server's memory of a download of 4 MB. It is right, or
/// the rate of one path or of both is wrong by a factor of ten either way.
fn worst(size: &str) -> Worst {
    let mut worst = Worst::default();
    let mut stream = RandomStream::new(7, &["paths"]);
    for seed in 0..24 {
        let paths = draw(&mut stream);
        let left = setup(&cell(&paths, "4MB", "on"), seed).pairs[0].memory.clone().unwrap();
        let run = setup(&cell(&paths, size, "off"), seed);
        let without = time(&run, None);
        let ratio = |memory| time(&run, Some(memory)) / without;
        worst.right = worst.right.max(ratio(server(&left, |_, _| {})));
        for factor in [(10, 1), (1, 10)] {
            for wrong in [&[0][..], &[1], &[0, 1]] {
                let memory = server(&left, |place, record| {
                    if wrong.contains(&place) {
                        scale(record, factor);
                    }
                });
                let ratio = ratio(memory);
                assert!(ratio < 1.3, "{paths} {size} seed {seed}: {wrong:?} {factor:?}: {ratio}");
                worst.wrong = worst.wrong.max(ratio);
            }
        }
    }
    worst
}

#[test]
fn wrong_rates_of_a_sender_make_no_transfer_a_tenth_slower() {
    for size in ["256kB", "1MB"] {
        let worst = worst(size);
        println!("{size}: {worst:?}");
        assert!(worst.right <= 1.05 && worst.wrong <= 1.1, "{size}: {worst:?}");
    }
}

/// A download of 64 kB has few acknowledgements to correct a rate by.
#[test]
fn wrong_rates_of_a_sender_make_a_short_transfer_a_seventh_slower_at_most() {
    let worst = worst("64kB");
    println!("{worst:?}");
    assert!(worst.right <= 1.05 && worst.wrong <= 1.15, "{worst:?}");
}

/// A connection stays on the path that it has begun on, so a wrong choice costs round trips. The
/// client's rates are right, or one or both are ten times too high or too low.
#[test]
fn a_client_with_wrong_rates_seldom_begins_on_a_worse_path() {
    let mut stream = RandomStream::new(8, &["paths"]);
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for seed in 0..150 {
        let paths = draw(&mut stream);
        let left = setup(&cell(&paths, "1MB", "on"), seed).pairs[0].memory.clone().unwrap();
        let run = setup(&cell(&paths, "64kB", "off"), seed);
        let without = time(&run, None);
        let ratio = |factors| time(&run, Some(client(&left, factors))) / without;
        let (same, high, low) = ((1, 1), (10, 1), (1, 10));
        right.push(ratio([same, same]));
        let all = [[high, same], [same, high], [high, high], [low, same], [same, low], [low, low]];
        wrong.extend(all.map(ratio));
    }
    let share = |ratios: &[f64], holds: fn(f64) -> bool| {
        ratios.iter().filter(|ratio| holds(**ratio)).count() as f64 / ratios.len() as f64
    };
    for ratios in [&right, &wrong] {
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        let [faster, slower] = [share(ratios, |it| it < 0.9), share(ratios, |it| it > 1.1)];
        println!("{faster:.3} are faster, {slower:.3} slower; at worst {worst:.2}");
    }
    for (ratios, faster, slower) in [(&right, 0.25, 0.02), (&wrong, 0.2, 0.06)] {
        assert!(share(ratios, |it| it < 0.9) > faster && share(ratios, |it| it > 1.1) < slower);
        assert!(ratios.iter().all(|ratio| *ratio < 2.0));
    }
}

#[test]
fn a_memory_lets_a_download_begin_on_the_better_path() {
    let paths = "--path a:rtt=100ms,rate=4mbit --path b:rtt=20ms,rate=40mbit";
    let time = |memory: &str| {
        let run = setup(&cell(paths, "1MB", memory), 1);
        let outcome = plait_sim::run(&run);
        outcome.pairs[0][0].measures.completion_ms.unwrap()
    };
    let (without, with) = (time("off"), time("on"));
    // It saves a round trip of the handshake, of the request and of the join, 80 ms each.
    assert!(with < without - 160.0, "{with} against {without}");
}

#[test]
fn each_run_has_a_memory_of_its_own_and_the_same_one_again() {
    let lossy = "--path a:rtt=15ms,rate=5mbit,loss=1% --path b:rtt=72ms,rate=9mbit,loss=1%";
    let left = |seed| setup(&cell(lossy, "1MB", "on"), seed).pairs[0].memory.clone();
    assert_eq!(left(1), left(1));
    assert_ne!(left(1), left(2));
    assert_eq!(setup(&cell(lossy, "1MB", "off"), 1).pairs[0].memory, None);
    let ssthresh = setup(&cell(lossy, "1MB", "ssthresh"), 1).pairs[0].memory.clone();
    assert!(ssthresh.unwrap().ssthresh && !left(1).unwrap().ssthresh);
}

#[test]
fn every_workload_leaves_a_memory() {
    for workload in ["bulk:2s", "upload:1MB", "stream:30kB@50ms,for=3s"] {
        let line = format!(
            "--path a:rtt=15ms,rate=5mbit --path b:rtt=72ms,rate=9mbit --schedulers slot --exact \
             --path-memory on --workload {workload}"
        );
        for cell in plait_lab::cells(&scenario(&line)) {
            let memory = setup(&cell, 1).pairs[0].memory.clone().unwrap();
            let sender = if workload.starts_with("upload") { memory.client } else { memory.server };
            assert!(sender.iter().all(|it| it.record.min_rtt.is_some()), "{workload} {cell}");
            // The stream fits the second path alone, so its rate stays unknown.
            let fills = !workload.starts_with("stream");
            assert!(
                !fills || sender.iter().any(|it| it.record.rate.is_some()),
                "{workload} {cell}"
            );
        }
    }
}

#[test]
fn another_word_is_refused() {
    let refused = raw("--path a:rtt=9ms,rate=1mbit --workload bulk:2s --path-memory yes")
        .build()
        .unwrap_err();
    assert_eq!(refused.fault, Fault::Unknown);
    assert!(refused.to_string().contains("off, on, ssthresh"), "{refused}");
}
