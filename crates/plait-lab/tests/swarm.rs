//! The swarm as a test: random networks and faults against the invariants. `PLAIT_SEEDS=N` runs N seeds,
//! `PLAIT_SEED=S` starts at S.

use plait_base::Span;
use plait_lab::Control;
use plait_lab::swarm::{
    Case, Directions, Fault, KINDS, Only, Options, Report, draw, run_case, swarm,
};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(from: u64, seeds: u64, jobs: Option<usize>) -> Report {
    run_as(from, seeds, jobs, false)
}

fn run_as(from: u64, seeds: u64, jobs: Option<usize>, wire: bool) -> Report {
    let options = Options {
        from,
        seeds,
        jobs: jobs.and_then(NonZeroUsize::new),
        first_only: false,
        wire,
        only: Some(Only::Network),
    };
    swarm(&options, &Control::unwatched(&AtomicBool::new(false))).expect("seeds that there are")
}

#[test]
fn random_networks_break_nothing() {
    let seeds = number("PLAIT_SEEDS", 1_000);
    let report = run(number("PLAIT_SEED", 1), seeds, None);
    for count in &report.coverage.faults {
        let met = count.met.unwrap_or(0);
        println!(
            "{:<16} drawn {:>6}  met {met:>6}  {:>5.1} %",
            count.name,
            count.drawn,
            100.0 * count.share
        );
    }
    let failures: Vec<String> = report
        .failures
        .iter()
        .map(|failure| {
            let small = failure.shrunk.as_ref();
            let line = small.map_or("", |small| small.replay.as_str());
            format!(
                "seed {}: {:?}\n  {}\n  {line}",
                failure.seed, failure.violation, failure.replay
            )
        })
        .collect();
    assert_eq!(report.broken, 0, "of {seeds} seeds:\n{}", failures.join("\n"));
    assert_eq!(report.seeds, seeds);
    assert!(report.coverage.given_up * 50 <= seeds, "{} given up", report.coverage.given_up);
    assert_eq!(report.coverage.faults.len(), KINDS.len());
    for count in report.coverage.faults.iter().filter(|_| seeds >= 1_000) {
        assert!(count.share >= 0.1, "{} in {:.3} of the seeds", count.name, count.share);
    }
}

/// R2, R72: encoding and parsing every segment gives the same segment and does not change the runs; no SYN
/// carries data.
#[test]
fn every_segment_survives_a_wire() {
    let seeds = number("PLAIT_SEEDS", 1_000) / 4;
    let from = number("PLAIT_SEED", 1);
    let wired = run_as(from, seeds, None, true);
    let first = wired.failures.first();
    let first = first.map(|it| format!("{}: {}", it.replay, it.violation.what));
    assert_eq!((wired.broken, first), (0, None));
    assert_eq!(wired.digest, run(from, seeds, None).digest);
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let report = run(500_000, 200, Some(1));
    assert_eq!(run(500_000, 200, Some(1)), report);
    assert_eq!(run(500_000, 200, Some(3)), report);
    assert_ne!(run(500_001, 200, Some(2)).digest, report.digest);
}

/// Shrunk cases that found bugs.
const FOUND: &[&str] = &[
    // The price refused a copy of `+rp`, and STTF moved assigned data from that subflow and back without end.
    r#"{"seed":770000463,"paths":[{"rate_kbps":3305,"rtt_us":12672,"queue_packets":19,"jitter_us":3008,"cost":1},{"rate_kbps":2619,"rtt_us":8038,"queue_packets":37,"cost":1},{"rate_kbps":3851,"rtt_us":93703,"cost":1,"jitter_us":29998}],"shared_kbps":14819,"scheduler":"sttf+rp+price:goal=thrifty,over_quota=down","controller":"balia","settings":{"join":"after-synack","subflows":2,"initial_window":1,"reduce_from":"flight"},"heals_ms":11492,"faults":[{"kind":"duplicate","path":2,"way":"up","ppm":87273},{"kind":"corrupt","path":0,"way":"up","ppm":15764},{"kind":"cut","path":1,"ppm":179907},{"kind":"address-removed","path":1,"from_ms":99,"to_ms":364}],"client":{"send_bytes":163744,"finish":"after-receipt","rcvbuf_bytes":305886},"server":{"send_bytes":191343,"sndbuf_bytes":8960,"delayed_ack":false,"mtu_bytes":9000,"rcvbuf_bytes":6321}}"#,
    // The first data, sent again behind other data of its subflow, said that it was the first of the subflow: the
    // peer took it for later data.
    r#"{"seed":740006303,"paths":[{"jitter_us":15748,"rtt_us":44061},{}],"heals_ms":7932,"scheduler":"redundant","faults":[{"kind":"strip","path":0,"at":"all","from_ms":100,"to_ms":290},{"kind":"strip","path":1,"at":"data","from_ms":110,"to_ms":7550}],"settings":{"join":"after-synack","rto":"rfc200"},"client":{"send_bytes":1,"finish":"after-receipt","rcvbuf_bytes":65536},"server":{"send_bytes":1,"rcvbuf_bytes":65536}}"#,
    // A remembered RTT of 25 s, of a subflow without data, delayed the retransmission of a DATA_FIN.
    r#"{"seed":740000770,"paths":[{"rate_kbps":2205,"rtt_us":13931},{"rtt_us":5744},{"rate_kbps":2235,"rtt_us":8605}],"heals_ms":2178,"scheduler":"strict","faults":[{"kind":"loss","path":1,"ppm":135581},{"kind":"outage-of-all","from_ms":1,"to_ms":517},{"kind":"late-join","path":1,"to_ms":782}],"settings":{"join":"simultaneous","pacing":true},"memory":[{"rtt_us":4016950,"ssthresh_bytes":1235,"rate_kbps":12,"received_kbps":2331},{"end":"server","path":1,"rate_kbps":105120,"received_kbps":19,"rtt_us":25007767,"ssthresh_bytes":1031}],"connections":2,"client":{"send_bytes":123834,"mtu_bytes":576,"rcvbuf_bytes":536},"server":{"send_bytes":40617,"rcvbuf_bytes":19117}}"#,
    // The same, after retransmissions on other subflows.
    r#"{"seed":740011827,"paths":[{"rtt_us":2480},{},{"backup":true}],"heals_ms":6522,"faults":[{"kind":"burst","path":1,"way":"up","enter_ppm":43292,"leave_ppm":679343,"bad_ppm":452821},{"kind":"outage","path":0,"from_ms":12,"to_ms":52},{"kind":"outage","path":0,"from_ms":66,"to_ms":6430},{"kind":"slow-reader","end":"server","chunk_bytes":21,"every_ms":5},{"kind":"address-removed","path":1,"from_ms":52,"to_ms":124},{"kind":"late-join","path":2,"to_ms":149}],"memory":[{"rtt_us":33104690,"path":2,"rate_kbps":380,"received_kbps":4905278}],"server":{"send_bytes":4663,"sndbuf_bytes":1240,"rcvbuf_bytes":65536},"client":{"finish":"after-receipt"}}"#,
    // Windows counted in segments of 9,000 bytes to a peer that accepts 1,280.
    r#"{"seed":740007208,"paths":[{"rate_kbps":24879,"rtt_us":1097,"queue_packets":5}],"heals_ms":3764,"client":{"mtu_bytes":1280,"rcvbuf_bytes":65536},"controller":"bbr","settings":{"rto":"rfc"},"server":{"send_bytes":595416,"mtu_bytes":9000,"rcvbuf_bytes":65536},"connections":2}"#,
    // The peer fell back and ended without a DSS, and this end waited: its join might have been used.
    r#"{"seed":83059703,"paths":[{},{}],"heals_ms":10968,"faults":[{"kind":"strip","path":0,"at":"ack","from_ms":0,"to_ms":610}],"server":{"rcvbuf_bytes":65536},"settings":{"join":"simultaneous"},"client":{"rcvbuf_bytes":65536}}"#,
    // The model of a stock kernel left a full send buffer to a window of one segment, which OLIA
    // never opened. It is over after some minutes, as it would be in the kernel.
    r#"{"seed":82013095,"paths":[{},{"rate_kbps":44859,"rtt_us":239485}],"heals_ms":8529,"scheduler":"linux","controller":"olia","settings":{"kernel":true,"rto":"rfc200","initial_window":1},"faults":[{"kind":"cut","path":1,"ppm":9292},{"kind":"address-removed","path":0,"from_ms":254,"to_ms":6732}],"server":{"send_bytes":1575},"client":{"send_bytes":975645,"mtu_bytes":576,"rcvbuf_bytes":65536}}"#,
    // OLIA took all growth from a window of two segments, on the path with the largest window.
    r#"{"seed":84044711,"paths":[{"rate_kbps":7075,"rtt_us":208622},{"rate_kbps":26973,"rtt_us":372180,"jitter_us":5562}],"shared_kbps":6964,"scheduler":"stms-a","controller":"olia","settings":{"join":"simultaneous","rto":"rfc200","idle_restart":"rfc5681","hystart":"linux3","ssthresh_bytes":65536,"initial_window":2},"heals_ms":9183,"faults":[{"kind":"corrupt","path":0,"way":"up","ppm":97981},{"kind":"late-join","path":1,"to_ms":313}],"client":{"send_bytes":2263223,"sndbuf_bytes":387338,"rcvbuf_bytes":363694,"mtu_bytes":576},"server":{"send_bytes":32334,"finish":"after-peer","rcvbuf_bytes":932431,"sndbuf_bytes":1460}}"#,
    // The client's FIN arrived with the third ACK, so no connection was accepted.
    r#"{"seed":241,"paths":[{},{}],"client":{"rcvbuf_bytes":65536},"server":{"multipath":false}}"#,
    // Joins that began with the first SYN survived the fallback to plain TCP.
    r#"{"seed":78,"paths":[{},{}],"server":{"multipath":false},"settings":{"join":"simultaneous"}}"#,
    // The large window of an idle backup kept the window of the other subflow from growing.
    r#"{"seed":1075,"paths":[{"jitter_us":11283,"rtt_us":329643},{"backup":true}],"heals_ms":7950,"faults":[{"kind":"outage-of-all","from_ms":337,"to_ms":2154}],"controller":"lia","settings":{"join":"simultaneous","probes":false,"idle_restart":"off","initial_window":2},"server":{"send_bytes":1,"rcvbuf_bytes":65536},"client":{"send_bytes":1411689,"rcvbuf_bytes":65536}}"#,
    // Data queued on another silent subflow was withdrawn, and no subflow was scheduled to carry it.
    r#"{"seed":2108,"paths":[{"rate_kbps":1204,"rtt_us":5327,"shared":true},{"rate_kbps":1563,"rtt_us":26749}],"shared_kbps":2171,"scheduler":"redundant","heals_ms":6481,"settings":{"join":"after-synack","rto":"rfc200","subflows":3,"reduce_from":"flight","pacing":true,"initial_window":32},"client":{"send_bytes":42133,"mtu_bytes":576,"rcvbuf_bytes":65536},"server":{"send_bytes":6300,"rcvbuf_bytes":65536,"sndbuf_bytes":1460}}"#,
    // A half-open connection of an earlier attempt, whose client is gone, must not delay the end.
    r#"{"seed":1250,"paths":[{},{"rtt_us":2768}],"heals_ms":5707,"faults":[{"kind":"loss","path":0,"way":"up","ppm":109322}],"server":{"rcvbuf_bytes":65536},"settings":{"join":"simultaneous"},"client":{"send_bytes":13443,"rcvbuf_bytes":65536}}"#,
    // Data that a receiver holds back for the rest of a mapping counts as delivered to a sender that has
    // fallen back.
    r#"{"seed":1021398,"paths":[{"rate_kbps":4469}],"heals_ms":9843,"faults":[{"kind":"cut","path":0,"ppm":3742},{"kind":"strip","path":0,"at":"data","from_ms":877,"to_ms":1085}],"server":{"send_bytes":456724,"checksum":true},"settings":{"pacing":true},"client":{"send_bytes":76521,"mtu_bytes":1280,"sndbuf_bytes":6229}}"#,
    // A sender fell back after a middlebox had stripped its acknowledgements, and closed with a FIN alone.
    // Its peer had not detected the fallback.
    r#"{"seed":1024531,"paths":[{"rtt_us":10340},{"jitter_us":7392,"rtt_us":1684}],"heals_ms":7981,"faults":[{"kind":"strip","path":0,"at":"data","from_ms":19,"to_ms":1129},{"kind":"outage-of-all","from_ms":21,"to_ms":6381}],"server":{"send_bytes":46041,"rcvbuf_bytes":65536},"settings":{"join":"after-synack"},"client":{"send_bytes":1,"finish":"after-receipt","rcvbuf_bytes":65536}}"#,
    // The client's FIN was lost, and then its address; the server's subflow stayed in FIN-WAIT-2 forever.
    r#"{"seed":900046659,"paths":[{},{}],"heals_ms":8860,"faults":[{"kind":"loss","path":0,"ppm":166186},{"kind":"address-removed","path":0,"from_ms":93,"to_ms":5886}],"server":{"finish":"after-peer"},"settings":{"join":"after-synack"},"client":{"send_bytes":1,"rcvbuf_bytes":65536}}"#,
];

/// Draws the case of a seed that was found before hosts remembered paths.
fn drawn(seed: u64) -> Case {
    Case { memory: Vec::new(), ..draw(seed) }
}

/// The seed in which a server stayed in FIN-WAIT-2 forever.
#[test]
fn a_lost_fin_leaves_nobody_waiting() {
    let verdict = run_case(&drawn(900_046_659));
    assert_eq!(verdict.violation, None);
}

/// Seeds that took a minute or nearly so, by cause:
/// * data waited for a window of a few segments (1724, 10840, 12913, 20981);
/// * delays were mistaken for queues (7977, 8127);
/// * segments of plain TCP left unused room, so the peer did not count them as full (10489, 1000203);
/// * a sender relied on what it had learnt of a path before (3011860);
/// * a plan was for a window that had shrunk (1006145, 4004006, 4009233);
/// * a timeout stayed doubled although data arrived (4020162);
/// * a receiver did not count short segments as full (4032020);
/// * a timeout stayed too short (55012518);
/// * a plan used a slow path because the host's queue blocked the fast one (532321231312);
/// * a burst was sent for a window that had shrunk (991000012761).
#[test]
fn seeds_that_took_long_are_over_soon() {
    for seed in [
        1_724,
        10_840,
        12_913,
        20_981,
        7_977,
        8_127,
        10_489,
        1_000_203,
        3_011_860,
        1_006_145,
        4_004_006,
        4_009_233,
        4_020_162,
        4_032_020,
        55_012_518,
        532_321_231_312,
        991_000_012_761,
    ] {
        let mut case = drawn(seed);
        // These seeds were found with fixed buffers.
        (case.client.grows, case.server.grows) = (false, false);
        if seed == 7_977 {
            // Both paths must be in use. Without this outage, the answer to the first SYN opens the
            // connection on path 0, where the options are stripped and wVegas grows by a segment each 287 ms.
            case.faults.push(Fault::Outage {
                path: 0,
                way: Directions::Both,
                from_ms: 0,
                to_ms: 400,
            });
        }
        let verdict = run_case(&case);
        assert_eq!(verdict.violation, None, "seed {seed}");
        let after = verdict.ended.since(case.heals());
        assert!(after <= Span::from_secs(20), "seed {seed}: {after}");
    }
}

/// Returns the median time that a case takes after its faults, over draws of the network's randomness.
fn median_after(case: &Case) -> Span {
    let mut after: Vec<Span> = (1..=5)
        .map(|seed| {
            let case = Case { seed, ..case.clone() };
            let verdict = run_case(&case);
            assert_eq!(verdict.violation, None, "draw {seed}");
            verdict.ended.since(case.heals())
        })
        .collect();
    after.sort();
    after[2]
}

/// Seed 991000088688 took nearly a minute, because a gap was as large as the send buffer. Over 11 draws it
/// takes 3 to 42 s, 15 s in the median.
#[test]
fn a_gap_as_large_as_the_send_buffer_is_closed_soon() {
    let mut case = drawn(991_000_088_688);
    // It was found with fixed buffers.
    (case.client.grows, case.server.grows) = (false, false);
    let after = median_after(&case);
    assert!(after <= Span::from_secs(20), "{after}");
}

/// Seed 2019250 took more than a minute, because a window did not grow without a measured RTT. Two
/// connections share 2.8 Mbit/s in it, and the jitter of a path decides which packets are lost. Over 13 draws
/// of the network's randomness the case takes 16 to 37 s, so the test checks the median of several draws.
#[test]
fn a_window_without_a_measured_rtt_grows() {
    let after = median_after(&drawn(2_019_250));
    assert!(after <= Span::from_secs(30), "{after}");
}

/// Four connections of 3.9 MB, each with two copies on two paths of a link of 4.3 Mbit/s, need more than a
/// minute.
#[test]
fn a_crowded_link_has_the_time_that_it_needs() {
    let case = drawn(4_404_000_024_001);
    assert!(case.grace() > Span::from_secs(100), "{}", case.grace());
    assert_eq!(run_case(&case).violation, None);
}

/// Seeds that still take half a minute. 55008368: jitter of 3 ms was mistaken for a queue, so wVegas halved
/// its window repeatedly; 1.5 MB in segments of 524 bytes over an RTT of 377 ms. 991000071905: a sender paced
/// by an outdated RTT, because every segment was retransmitted; 200 kB in segments of 504 bytes over an RTT
/// of 160 ms. 80151379 and 80173416: the same in fast recovery, after an outage of all paths.
#[test]
fn long_seeds_are_over_in_half_a_minute() {
    for seed in [55_008_368, 991_000_071_905, 80_151_379, 80_173_416] {
        let case = drawn(seed);
        let verdict = run_case(&case);
        assert_eq!(verdict.violation, None, "seed {seed}");
        let after = verdict.ended.since(case.heals());
        assert!(after <= Span::from_secs(30), "seed {seed}: {after}");
    }
}

#[test]
fn what_was_found_stays_mended() {
    for text in FOUND {
        let case = Case::parse(text).expect(text);
        assert_eq!(run_case(&case).violation, None, "{text}");
    }
}
