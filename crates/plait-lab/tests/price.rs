//! Tests paths with a cost: when they carry data, and how much of it is copies.

use crate::common;
use plait_app::{Measures, Role};
use plait_base::{PathId, SubflowId, Time};
use plait_core::{Carry, Detail, Event};
use plait_lab::{Cell, Simulator, Subject, World};
use plait_sim::{Watch, Who};
use std::collections::BTreeSet;

const LINKS: &str = "--path wifi:rate=20mbit,rtt=22ms --path lte:rate=10mbit,rtt=60ms,cost=1";

/// The payload bytes that the server sent.
#[derive(Default)]
struct Sent {
    first: u64,
    /// Copies on each subflow but the first.
    again: u64,
}

impl Watch for Sent {
    fn on_core(&mut self, _now: Time, who: Who, event: &Event) {
        if let Event::DataSent { subflow, data, carry } = event
            && who.host == Role::Server
        {
            match carry {
                Carry::New => self.first += data.len(),
                Carry::Redundant | Carry::Opportunistic if *subflow != SubflowId::FIRST => {
                    self.again += data.len();
                }
                _ => {}
            }
        }
    }
}

fn cell(line: &str) -> Cell {
    plait_lab::cells(&common::scenario(line)).swap_remove(0)
}

/// Returns the measures of a run that ends in time.
fn run(line: &str, seed: u64) -> Measures {
    let outcome = Simulator.run(&cell(line), seed);
    assert!(outcome.measures.complete, "{line}");
    outcome.measures
}

/// Returns the share of the second path in all payload bytes.
fn second(measures: &Measures) -> f64 {
    let sent = |at: usize| measures.paths[at].sent_bytes as f64;
    sent(1) / (sent(0) + sent(1))
}

/// Returns the share of the second path for the default scheduler.
fn share(workload: &str, goal: &str, seed: u64) -> f64 {
    second(&run(&format!("{LINKS} --workload {workload} --goal {goal} --schedulers slot"), seed))
}

#[test]
fn a_stream_below_the_rate_of_the_free_path_leaves_the_other_one_unused() {
    for goal in ["aggregate", "interactive", "handover", "thrifty"] {
        for (workload, seed) in [
            ("stream:10kB@40ms,for=10s", 1),
            ("stream:10kB@40ms,for=10s", 2),
            ("stream:60kB@40ms,for=10s", 3),
        ] {
            let share = share(workload, goal, seed);
            assert!(share < 0.01, "{workload}, {goal}: {share}");
        }
    }
}

#[test]
fn a_stream_above_it_and_a_download_use_the_other_one() {
    for goal in ["aggregate", "interactive"] {
        for workload in ["stream:125kB@40ms,for=10s", "download:2MB", "bulk:5s"] {
            let share = share(workload, goal, 1);
            assert!(share > 0.1, "{workload}, {goal}: {share}");
        }
    }
    for goal in ["handover", "thrifty"] {
        for workload in ["stream:125kB@40ms,for=5s", "download:2MB"] {
            let share = share(workload, goal, 1);
            assert!(share < 0.01, "{workload}, {goal}: {share}");
        }
    }
}

/// The free path carries the bursts, so only the first one, without history, may use the other path.
#[test]
fn bursts_below_the_rate_of_the_free_path_hardly_use_the_other_one() {
    for goal in ["aggregate", "interactive"] {
        for workload in ["stream:1MB@4s,for=60s", "stream:4MB@4s,for=60s", "stream:7MB@4s,for=60s"]
        {
            let line = format!("{LINKS} --workload {workload} --schedulers");
            let share = second(&run(&format!("{line} slot --goal {goal}"), 1));
            assert!(share < 0.03, "{workload}, {goal}: {share}");
            let off = second(&run(&format!("{line} slot+price:idle=0,goal={goal}"), 1));
            assert!(off > 0.1, "{workload}, {goal}: {off}");
        }
    }
}

/// Chunks above the rate of the free path use both, though both together are idle for a part of the time.
#[test]
fn bursts_above_the_rate_of_the_free_path_use_the_other_one() {
    let line = format!("{LINKS} --workload stream:12MB@4s,for=60s --schedulers slot");
    let measures = run(&line, 1);
    let share = second(&measures);
    assert!(share > 0.2, "{share}");
}

/// A buffer that is full is no reason to copy, or to use a path with a cost.
#[test]
fn a_full_buffer_does_not_use_a_path_with_a_price() {
    for price in ["cost=1", "quota=50MB,cost=1"] {
        for setting in ["--sndbuf 64kB", "--rcvbuf 64kB"] {
            for goal in ["aggregate", "interactive"] {
                let links = LINKS.replace("cost=1", price);
                let line =
                    format!("{links} --workload bulk:5s --goal {goal} --schedulers slot {setting}");
                let mut sent = Sent::default();
                let _ = plait_lab::simulate(&cell(&line), 1, &mut sent);
                let share = second(&Simulator.run(&cell(&line), 1).measures);
                assert!(sent.again == 0 && share < 0.005, "{share}, {}: {line}", sent.again);
            }
        }
    }
}

/// A path with a quota carries few copies, and none if the goal is thrifty.
#[test]
fn a_quota_is_not_spent_on_copies() {
    for (goal, most) in [("aggregate", 0.05), ("interactive", 0.05), ("thrifty", 0.0)] {
        let line = format!(
            "{} --workload stream:30kB@50ms,for=20s --goal {goal} --schedulers slot",
            LINKS.replace("cost=1", "quota=20MB")
        );
        let mut sent = Sent::default();
        let outcome = plait_lab::simulate(&cell(&line), 1, &mut sent);
        assert_eq!(outcome.violation, None, "{line}");
        let share = sent.again as f64 / sent.first as f64;
        assert!(share <= most, "{share}: {line}");
    }
}

#[test]
fn handover_and_thrifty_use_the_other_path_in_an_outage() {
    for goal in ["handover", "thrifty"] {
        let line = format!(
            "--path wifi:rate=20mbit,rtt=22ms,down=1s.. --path lte:rate=10mbit,rtt=60ms,cost=1 \
             --workload download:4MB --goal {goal} --schedulers slot"
        );
        let share = second(&run(&line, 1));
        assert!(share > 0.2, "{goal}: {share}");
    }
}

#[test]
fn copies_on_a_path_with_a_cost_stay_below_their_share() {
    let mut copied = 0;
    for seed in 0..12_u64 {
        let (loss, jitter) = (seed % 4, 5 * (seed % 3));
        let (rate, rtt) = (5 + 3 * (seed % 5), 10 + 17 * (seed % 6));
        for workload in ["stream:20kB@30ms,for=6s", "download:3MB"] {
            for (goal, most) in [("aggregate", 0.05), ("interactive", 0.05), ("thrifty", 0.0)] {
                let line = format!(
                    "--path wifi:rate={rate}mbit,rtt={rtt}ms,loss={loss}%,jitter={jitter}ms \
                     --path lte:rate=10mbit,rtt=60ms,loss=1%,cost=3 --workload {workload} \
                     --goal {goal} --schedulers slot"
                );
                let mut sent = Sent::default();
                let outcome = plait_lab::simulate(&cell(&line), seed, &mut sent);
                assert_eq!(outcome.violation, None, "{line}");
                copied += sent.again;
                let share = sent.again as f64 / sent.first as f64;
                assert!(share <= most, "{share}: {line} (seed {seed})");
            }
        }
    }
    // The links give reason to copy.
    assert!(copied > 100_000, "{copied}");
}

#[test]
fn without_costs_the_decorator_changes_no_run() {
    let line = "--path wifi:rate=20mbit,rtt=22ms,loss=1% --path lte:rate=10mbit,rtt=60ms \
                --workload download:2MB --schedulers";
    for seed in 1..4 {
        let plain = run(&format!("{line} slot"), seed);
        let priced = run(&format!("{line} slot+price"), seed);
        assert_eq!(format!("{plain:?}"), format!("{priced:?}"));
    }
}

/// The payload bytes that the server sent on one path, beside TCP retransmissions.
struct Metered {
    path: PathId,
    /// The subflows on it.
    there: BTreeSet<SubflowId>,
    bytes: u64,
    quota: u64,
    /// Other subflows that may carry data, without those that had a timeout and no
    /// acknowledgement since.
    others: BTreeSet<SubflowId>,
    /// Bytes that it sent beyond the quota although another one could send.
    excess: u64,
}

impl Metered {
    fn new(path: u32, quota: u64) -> Metered {
        let (there, others) = (BTreeSet::new(), BTreeSet::new());
        Metered { path: PathId(path), there, bytes: 0, quota, others, excess: 0 }
    }
}

impl Watch for Metered {
    fn detail(&self) -> Detail {
        Detail::Everything
    }

    fn on_core(&mut self, _now: Time, who: Who, event: &Event) {
        if who.host != Role::Server {
            return;
        }
        match event {
            Event::DataSent { subflow, data, carry }
                if self.there.contains(subflow)
                    && !matches!(carry, Carry::Retransmission | Carry::TailProbe) =>
            {
                self.bytes += data.len();
                if self.bytes > self.quota && !self.others.is_empty() {
                    self.excess += data.len();
                }
            }
            Event::SubflowUp { subflow, path, .. } => {
                let kept = if *path == self.path { &mut self.there } else { &mut self.others };
                kept.insert(*subflow);
            }
            Event::Acked { subflow, .. } if !self.there.contains(subflow) => {
                self.others.insert(*subflow);
            }
            Event::Timeout { subflow, .. } | Event::SubflowDown { subflow } => {
                self.others.remove(subflow);
            }
            _ => {}
        }
    }
}

/// Random links, quotas of nothing to half of the data, on the first path or the second.
#[test]
fn a_path_carries_no_more_than_its_quota_while_another_one_works() {
    let schedulers = [
        "slot",
        "minrtt+rp",
        "roundrobin",
        "redundant",
        "blest+copy",
        "ecf",
        "daps",
        "otias",
        "sttf",
        "stms-c",
        "linux",
        "minrtt+bm",
    ];
    let (mut reached, mut beyond) = (0, 0);
    for seed in 0..16_u64 {
        let limited = seed % 2;
        let quota = [0, 20_000, 100_000, 400_000][(seed / 2 % 4) as usize];
        let key =
            |path: u64| if path == limited { format!(",quota={quota}B") } else { String::new() };
        let (rate, rtt, loss) = (4 + 3 * (seed % 5), 10 + 23 * (seed % 4), seed % 3);
        let outage = if seed >= 12 { ",down=500ms..4s" } else { "" };
        let workload = if seed % 3 == 0 { "stream:30kB@30ms,for=2s" } else { "download:1MB" };
        for scheduler in schedulers {
            for goal in ["aggregate", "interactive", "handover"] {
                let line = format!(
                    "--path wifi:rate={rate}mbit,rtt={rtt}ms,loss={loss}%{}{outage} \
                     --path lte:rate=10mbit,rtt=60ms,cost=1,jitter=5ms{} --workload {workload} \
                     --goal {goal} --schedulers {scheduler}",
                    key(0),
                    key(1)
                );
                let mut metered = Metered::new(limited as u32, quota);
                let outcome = plait_lab::simulate(&cell(&line), seed, &mut metered);
                assert_eq!(outcome.violation, None, "{line}");
                assert!(outcome.complete(), "{line}");
                assert_eq!(metered.excess, 0, "{} bytes: {line} (seed {seed})", metered.bytes);
                reached += u32::from(metered.bytes + 1_500 > quota && quota > 0);
                beyond += u32::from(metered.bytes > quota);
            }
        }
    }
    // Many runs use up the quota, and some continue beyond it in an outage.
    assert!(reached > 150 && beyond > 30, "{reached}, {beyond}");
}

/// Two subflows on a path share its quota. When it is used up, they carry on while the other path is down.
#[test]
fn the_subflows_of_a_path_count_as_one() {
    let line = "--path wifi:rate=20mbit,rtt=22ms,down=500ms..8s --path lte:rate=10mbit,rtt=60ms,quota=100kB \
                --subflows mesh4 --workload download:3MB --schedulers slot";
    let measures = run(line, 1);
    let sent = measures.paths[1].sent_bytes;
    assert!(sent > 1_000_000, "{sent}");
}

/// With thrifty, the data waits for the other path in an outage.
#[test]
fn thrifty_never_exceeds_a_quota() {
    for seed in 1..5 {
        for scheduler in ["slot", "minrtt", "redundant", "otias"] {
            let line = format!(
                "--path wifi:rate=20mbit,rtt=22ms,down=300ms..3s,loss=1% \
                 --path lte:rate=10mbit,rtt=60ms,quota=100kB --workload download:3MB \
                 --goal thrifty --schedulers {scheduler}"
            );
            let mut metered = Metered::new(1, 100_000);
            let outcome = plait_lab::simulate(&cell(&line), seed, &mut metered);
            assert!(outcome.complete(), "{line}");
            assert!((97_000..=100_000).contains(&metered.bytes), "{}: {line}", metered.bytes);
        }
    }
}

/// The connection begins on another path, so even a peer without Multipath TCP is reached.
#[test]
fn a_path_with_less_than_a_segment_of_quota_carries_no_data() {
    for quota in ["0B", "1B", "1kB", "1427B"] {
        for goal in ["aggregate", "handover", "thrifty"] {
            for workload in ["download:300kB", "upload:300kB", "stream:10kB@20ms,for=1s"] {
                let line = format!(
                    "--path wifi:rate=20mbit,rtt=22ms,quota={quota} --path lte:rate=10mbit,rtt=60ms \
                     --workload {workload} --goal {goal} --schedulers slot"
                );
                let measures = run(&line, 1);
                assert_eq!(measures.paths[0].sent_bytes, 0, "{line}");
            }
        }
    }
}

/// The free path answers after the time at which a path with the same price would be dialled.
#[test]
fn a_path_with_a_higher_price_is_not_dialled_because_the_cheaper_one_is_slow() {
    let sent = |price: &str, workload: &str, goal: &str| {
        let line = format!(
            "--path sat:rate=50mbit,rtt=600ms --path lte:rate=20mbit,rtt=50ms{price} \
             --workload {workload} --goal {goal} --schedulers slot"
        );
        run(&line, 1).paths[1].sent_bytes
    };
    for workload in ["download:1MB", "upload:1MB", "stream:10kB@40ms,for=2s"] {
        for goal in ["handover", "thrifty"] {
            assert_eq!(sent(",cost=1", workload, goal), 0, "{workload}, {goal}");
        }
        for goal in ["aggregate", "interactive", "handover", "thrifty"] {
            assert_eq!(sent(",quota=1kB", workload, goal), 0, "{workload}, {goal}");
        }
    }
    assert!(sent(",quota=1MB", "download:2MB", "aggregate") > 500_000, "it is dialled");
}

/// If the free path is down, the other one is dialled after 1.25 s.
#[test]
fn a_path_with_a_higher_price_is_dialled_in_an_outage() {
    for goal in ["aggregate", "interactive", "handover", "thrifty"] {
        let line = format!(
            "--path wifi:rate=20mbit,rtt=22ms,down=0s..20s --path lte:rate=20mbit,rtt=50ms,cost=1 \
             --workload download:1MB --goal {goal} --schedulers slot"
        );
        let measures = run(&line, 1);
        assert_eq!(measures.paths[0].sent_bytes, 0, "{line}");
        let at = measures.completion_ms.expect("an end");
        assert!((1_250.0..3_000.0).contains(&at), "{at} ms: {line}");
    }
}

/// A small download ends before the other path has joined.
#[test]
fn a_connection_begins_on_the_free_path() {
    for goal in ["aggregate", "handover", "thrifty"] {
        for workload in ["download:20kB", "upload:20kB"] {
            let line = format!(
                "--path lte:rate=10mbit,rtt=60ms,cost=1 --path wifi:rate=20mbit,rtt=22ms \
                 --workload {workload} --goal {goal} --schedulers slot"
            );
            assert_eq!(run(&line, 1).paths[0].sent_bytes, 0, "{line}");
        }
    }
}

/// The connections of a page begin on a path until its quota is used up, and then on the other one.
#[test]
fn connections_that_use_up_a_quota_end_on_the_other_path() {
    for kilobytes in 1..40 {
        let line = format!(
            "--path wifi:rate=20mbit,rtt=80ms,quota={kilobytes}kB --path lte:rate=10mbit,rtt=30ms \
             --workload web:amazon --goal thrifty --schedulers minrtt"
        );
        let measures = run(&line, 1);
        let sent = measures.paths[0].sent_bytes;
        // Each end has the quota.
        assert!(sent <= 2_000 * kilobytes, "{sent}: {line}");
    }
}

/// Data that no path may carry ends the connection, at once or when no further path has come.
#[test]
fn a_connection_whose_quotas_are_all_used_up_ends_with_the_reason() {
    for (workload, quota, least, most) in [
        ("download:300kB", "1kB", 0.0, 0.1),
        ("upload:300kB", "100kB", 0.0, 1.0),
        ("download:300kB", "100kB", 60.0, 61.0),
    ] {
        let line = format!(
            "--path wifi:rate=20mbit,rtt=22ms,quota={quota} --path lte:rate=10mbit,rtt=60ms,quota={quota} \
             --workload {workload} --goal thrifty --schedulers slot"
        );
        let outcome = Simulator.run(&cell(&line), 1);
        assert!(!outcome.measures.complete, "{line}");
        let broke = outcome.broke.expect("a reason");
        assert!(broke.ends_with("the quotas of all its paths are used up (over_quota)"), "{broke}");
        let at: f64 = broke.split(' ').nth(4).expect("a time").parse().expect("seconds");
        assert!((least..most).contains(&at), "{broke}: {line}");
        let carried: u64 = outcome.measures.paths.iter().map(|path| path.sent_bytes).sum();
        assert!(carried <= 202_000, "{carried}: {line}");
        // A path whose quota is used up is not down, so this is so with other goals too. The first path is the
        // only one until the other has joined.
        let line = line.replace("thrifty", "aggregate").replace("300kB", "3MB");
        let outcome = Simulator.run(&cell(&line), 1);
        assert!(!outcome.measures.complete, "{line}");
        let broke = outcome.broke.expect("a reason");
        assert!(broke.ends_with("the quotas of all its paths are used up (over_quota)"), "{broke}");
        let line = line
            .replace("--goal aggregate", "")
            .replace("--schedulers slot", "--schedulers slot+price:over_quota=never");
        assert!(!Simulator.run(&cell(&line), 1).measures.complete);
    }
}

/// A page opens several connections, and the quota is that of all of them.
#[test]
fn the_connections_of_a_run_share_a_quota() {
    let line = "--path wifi:rate=5mbit,rtt=22ms --path lte:rate=10mbit,rtt=30ms,quota=200kB \
                --workload web:amazon --schedulers minrtt";
    let measures = run(line, 1);
    let sent = measures.paths[1].sent_bytes;
    assert!((190_000..=200_000).contains(&sent), "{sent}");
    let free = run(&line.replace(",quota=200kB", ""), 1);
    assert!(free.paths[1].sent_bytes > 400_000, "{}", free.paths[1].sent_bytes);
}

/// The extra shares of the paths add up to that of the row. Rows of scenarios without a price have none.
#[test]
fn rows_have_the_copies_on_each_path() {
    let row = |cost: &str| {
        let line = format!(
            "--path wifi:rate=8mbit,rtt=22ms,loss=2% --path lte:rate=10mbit,rtt=40ms{cost} \
             --workload stream:20kB@30ms,for=3s --schedulers redundant --runs 3"
        );
        common::report(&line).rows.swap_remove(0)
    };
    let traffic = row(",cost=2").traffic;
    let (wifi, lte) = (traffic.path_extra_share["wifi"], traffic.path_extra_share["lte"]);
    assert!((wifi + lte - traffic.extra_share.expect("a share")).abs() < 1e-9, "{traffic:?}");
    assert!(wifi > 0.1 && lte < 0.05, "{traffic:?}");
    assert!(row("").traffic.path_extra_share.is_empty());
}

/// A stream that fits the first path: the second one carries copies only. `path_share` leaves them out, and
/// `path_sent_share` and `path_bytes` have them, in the row, in each run and for expectations.
#[test]
fn the_share_in_all_bytes_sent_has_the_copies() {
    let report = common::report(
        "--path wifi:rate=20mbit,rtt=22ms --path lte:rate=10mbit,rtt=60ms --workload stream:10kB@40ms,for=4s \
         --schedulers slot --expect slot.path_share.lte < 0.05 --expect slot.path_sent_share.lte > 0.3 \
         --expect slot.path_bytes.lte > 300000 --expect slot.path_sent_share.lte < 0.05",
    );
    let held: Vec<bool> = report.findings.expectations.iter().map(|it| it.holds).collect();
    assert_eq!(held, [true, true, true, false], "{:?}", report.findings.expectations);
    let row = common::row(&report, "slot");
    let traffic = &row.traffic;
    let all: f64 = traffic.path_bytes.values().sum();
    let share = traffic.path_sent_share["lte"];
    assert!((share - traffic.path_bytes["lte"] / all).abs() < 1e-9, "{traffic:?}");
}

/// The rows of single-path TCP have no other path, and ignore the quota.
#[test]
fn a_single_path_ignores_its_quota() {
    let line = |quota: &str| {
        format!(
            "--path lte:rate=10mbit,rtt=60ms{quota} --path wifi:rate=10mbit,rtt=20ms \
             --workload download:300kB --schedulers minrtt --goal thrifty"
        )
    };
    let single = |quota: &str| {
        let cells = plait_lab::cells(&common::scenario(&line(quota)));
        let alone =
            cells.iter().find(|cell| cell.subject == Subject::SinglePath(0)).expect("a row");
        format!("{:?}", Simulator.run(alone, 1).measures)
    };
    assert_eq!(single(",quota=50kB"), single(""));
}

/// Returns the mean goodput over six seeds in Mbit/s, on a path with losses beside one that costs something.
/// Without `multipath` it is that of the first path alone.
fn goodput(cc: &str, goal: &str, multipath: bool) -> f64 {
    let line = format!(
        "--path wifi:rate=20mbit,rtt=40ms,loss=0.3% --path lte:rate=10mbit,rtt=20ms,cost=1 \
         --workload bulk:20s --schedulers minrtt --goal {goal} --cc {cc}"
    );
    let cells = plait_lab::cells(&common::scenario(&line));
    let cell = cells.iter().find(|cell| cell.multipath() == multipath).expect("a row");
    let of = |seed| Simulator.run(cell, seed).measures.goodput_mbps.expect("a rate");
    (0..6).map(of).sum::<f64>() / 6.0
}

/// The path that rests has no share of the window, so the other one grows as fast as it would alone.
#[test]
fn a_resting_path_takes_no_part_in_coupled_congestion_control() {
    let alone = goodput("reno", "thrifty", false);
    for cc in ["lia", "olia", "balia"] {
        let coupled = goodput(cc, "thrifty", true);
        assert!((coupled / alone - 1.0).abs() < 0.02, "{cc}: {coupled}, {alone}");
    }
}

/// If both paths carry data, they are coupled.
#[test]
fn a_path_with_a_cost_is_coupled_while_it_carries_data() {
    let single = goodput("reno", "aggregate", true);
    for cc in ["lia", "olia", "balia"] {
        let coupled = goodput(cc, "aggregate", true);
        assert!(coupled < 0.97 * single, "{cc}: {coupled}, {single}");
    }
}
