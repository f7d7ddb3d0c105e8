//! Compares one path with the textbook: use of the path, goodput under random loss, sharing by two
//! flows, and the cubic function after a loss. The tables have bands that the results must keep.

#![allow(clippy::panic, reason = "a test may fail")]

use crate::common;
use crate::common::{scenario, shares};
use plait_app::Role;
use plait_base::Time;
use plait_core::{Event, WindowCause};
use plait_lab::{Simulator, World};
use plait_sim::{Watch, Who};
use std::fmt::Write;

/// Payload of a segment of plain TCP.
const MSS: f64 = 1448.0;

/// Returns the payload rate of a link with this rate: 1448 of the 1500 bytes of a packet.
fn ceiling(mbit: f64) -> f64 {
    mbit * MSS / 1500.0
}

/// 10 Mbit/s and 50 ms with a queue of one bandwidth-delay product, 62.5 kB. Half of the window keeps the
/// link busy, so halving it costs reno nothing.
#[test]
fn a_queue_of_one_bdp_keeps_the_link_busy() {
    let mut table =
        "bulk:60s over 10 Mbit/s, 50 ms, queue 62.5 kB: goodput in Mbit/s, and its share \
                     of the ceiling 9.653\n"
            .to_owned();
    for cc in ["reno", "cubic"] {
        let line = "--path a:rate=10mbit,rtt=50ms,queue=62500B --workload bulk:60s --check --cc";
        let (_, outcome) = common::runs(&format!("{line} {cc}")).remove(0);
        let goodput = outcome.measures.goodput_mbps.unwrap_or(0.0);
        let share = goodput / ceiling(10.0);
        assert_eq!(outcome.violation, None);
        assert!((0.95..=1.0).contains(&share), "{cc}: {share}");
        let _ = writeln!(table, "{cc:<6} {goodput:>7.3} {share:>7.4}");
    }
    insta::assert_snapshot!(table);
}

/// Mathis et al. 1997: `MSS / RTT * sqrt(3/2) / sqrt(p)`. The constant is for an ACK for each segment. It
/// also holds for delayed ACKs, because the window grows by acknowledged bytes (RFC 5681 section 3.1,
/// equation 3 in bytes) and not by ACKs. If it grew by ACKs, the constant would be sqrt(3/4).
#[test]
fn random_loss_leaves_reno_what_the_square_root_law_says() {
    const SEEDS: u32 = 5;
    let mut table = format!(
        "goodput in Mbit/s of reno, bulk:100s, 50 ms and no other limit, mean of {SEEDS} seeds\n\
         loss      law    ACKs delayed        an ACK a segment\n"
    );
    for (loss, p) in [("0.1%", 0.001), ("0.5%", 0.005), ("1%", 0.01), ("2%", 0.02f64)] {
        let law = MSS * 8.0 / 50_000.0 * libm::sqrt(1.5 / p);
        let _ = write!(table, "{loss:<5} {law:>7.3}");
        for delayed in ["on", "off"] {
            let scenario = scenario(&format!(
                "--path a:rate=10gbit,rtt=50ms,queue=inf,nic=inf,loss={loss} --workload bulk:100s \
                 --cc reno --delayed-ack {delayed} --rcvbuf 6MiB --sndbuf 4MiB"
            ));
            let cell = plait_lab::cells(&scenario).remove(0);
            let seeds = (0..SEEDS).map(|run| plait_lab::run_seed(1, run));
            let goodputs: f64 =
                seeds.filter_map(|seed| Simulator.run(&cell, seed).measures.goodput_mbps).sum();
            let mean = goodputs / f64::from(SEEDS);
            let off = mean / law - 1.0;
            assert!(off.abs() < 0.25, "{loss}, delayed ACKs {delayed}: {mean} of {law}");
            let _ = write!(table, "  {mean:>7.3} ({:+5.1} %)", off * 100.0);
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

/// Runs two flows of one controller over one path, which differ only in the start of the second within the
/// first 100 ms.
///
/// Without jitter, a drop-tail queue locks flows into a phase: the same flow always finds it full
/// (Floyd and Jacobson 1992). Many seeds then have few outcomes. A jitter of one packet time at the
/// bottleneck, 1.2 ms, models the noise of real hosts. It makes each seed a sample of its own. The
/// bounds hold for both.
fn two_equal_flows(cc: &str) -> String {
    let mut table = format!(
        "two flows of {cc} over 10 Mbit/s, 50 ms, queue 62.5 kB, bulk:900s\n\
         {:>6} {:>5} {:>8} {:>20} {:>20}\n",
        "jitter", "seeds", "sum", "larger over smaller", "Jain, mean and least"
    );
    for (jitter, seeds) in [("0s", 3), ("1.2ms", 4)] {
        let runs = shares(
            &format!(
                "--path a:rate=10mbit,rtt=50ms,queue=62500B,jitter={jitter} --workload bulk:900s \
                 --cc {cc} --compete {cc}@a"
            ),
            seeds,
        );
        let ratio = |run: &Vec<f64>| (run[0] / run[1]).max(run[1] / run[0]);
        let worst = runs.iter().map(ratio).fold(1.0, f64::max);
        let sum = runs.iter().flatten().sum::<f64>() / f64::from(seeds);
        let jain: Vec<f64> = runs.iter().map(|run| common::jain(run)).collect();
        let least = jain.iter().copied().fold(1.0, f64::min);
        let mean = jain.iter().sum::<f64>() / f64::from(seeds);
        let _ = writeln!(
            table,
            "{jitter:>6} {seeds:>5} {sum:>8.3} {worst:>20.3} {mean:>13.4} {least:.4}"
        );
        assert!(worst < 1.1 && least > 0.99, "{cc}, jitter {jitter}: {runs:.3?}");
        assert!(sum > 0.95 * ceiling(10.0) && sum < ceiling(10.0), "{sum}");
    }
    table
}

#[test]
fn two_flows_of_reno_share_equally() {
    insta::assert_snapshot!(two_equal_flows("reno"));
}

#[test]
fn two_flows_of_cubic_share_equally() {
    insta::assert_snapshot!(two_equal_flows("cubic"));
}

/// The sender's window in segments, over time in seconds.
#[derive(Default)]
struct Windows {
    /// Values at each acknowledgement.
    trace: Vec<(f64, f64)>,
    /// The largest window before the loss.
    before: f64,
    /// Values at the end of each recovery.
    recovered: Vec<(f64, f64)>,
}

impl Watch for Windows {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if who.host != Role::Server {
            return;
        }
        let at = now.since(Time::ZERO).as_secs_f64();
        match event {
            Event::Acked { cwnd, .. } => self.trace.push((at, *cwnd as f64 / MSS)),
            Event::Window { cause: WindowCause::Loss, .. } => {
                self.before = self.trace.iter().map(|it| it.1).fold(0.0, f64::max);
            }
            Event::Window { cause: WindowCause::Recovered, cwnd, .. } => {
                self.recovered.push((at, *cwnd as f64 / MSS));
            }
            _ => {}
        }
    }
}

/// After 10 s the path is down for the time of a packet. From the end of recovery, the window
/// follows RFC 9438 section 4.2, across the plateau and up again. It is `W(t) = C (t - K)^3 + Wmax`
/// with `K = cbrt((Wmax - W(0)) / C)`.
#[test]
fn after_a_loss_the_window_follows_the_cubic() {
    let scenario = scenario(
        "--path a:rate=100mbit,rtt=100ms,queue=1250kB,down=10s..10.00012s --workload bulk:28s \
         --cc cubic --ssthresh 700seg --rcvbuf 16MiB --sndbuf 16MiB",
    );
    let cell = plait_lab::cells(&scenario).remove(0);
    let mut seen = Windows::default();
    let outcome = plait_lab::simulate(&cell, 1, &mut seen);
    assert!((1..=3).contains(&outcome.links[0].0.dropped_packets()));
    let [(from, start)] = seen.recovered[..] else { panic!("{:?}", seen.recovered) };
    assert!((start / seen.before - 0.7).abs() < 0.001, "{start} of {}", seen.before);
    let k = libm::cbrt((seen.before - start) / 0.4);
    let curve = |secs: f64| 0.4 * (secs - k) * (secs - k) * (secs - k) + seen.before;
    let mut table = format!(
        "windows in segments; Wmax {:.2}, after recovery {start:.2}, K {k:.3} s\n\
         {:>6} {:>9} {:>9}\n",
        seen.before, "t", "cwnd", "W(t)"
    );
    let (mut worst, mut next) = (0.0f64, 0.0);
    let after = seen.trace.iter().map(|(at, cwnd)| (at - from, *cwnd));
    for (secs, cwnd) in after.filter(|it| it.0 >= 0.0) {
        worst = worst.max((cwnd - curve(secs)).abs());
        if secs >= next {
            next += 1.0;
            let _ = writeln!(table, "{secs:>6.3} {cwnd:>9.2} {:>9.2}", curve(secs));
        }
    }
    let _ = writeln!(table, "largest distance {worst:.2}");
    assert!(next > k + 7.0 && worst < 0.005 * seen.before, "{table}");
    insta::assert_snapshot!(table);
}

/// R68: with an ACK for two segments, slow start grows half as fast with the limit of RFC 5681 as with that
/// of RFC 3465. With an ACK for more segments, only Linux counts all of them.
#[test]
fn slow_start_has_three_limits() {
    let rounds = |mode: &str| {
        let line = format!(
            "--path a:rtt=100ms,rate=inf,queue=inf,nic=inf --workload download:4MB --cc reno \
             --schedulers minrtt --slow-start {mode}"
        );
        common::runs(&line).remove(0).1.measures.completion_ms.unwrap_or(f64::NAN)
    };
    let [rfc5681, rfc3465, linux] = ["rfc5681", "rfc3465", "linux"].map(rounds);
    assert!(rfc5681 >= rfc3465 + 200.0, "{rfc5681} {rfc3465}");
    assert!(linux <= rfc3465, "{linux} {rfc3465}");
}

/// Returns the median of a column of docs/results/kernel-model.csv over the runs of a pair with cubic.
fn kernel(pair: &str, column: usize) -> f64 {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/kernel-model.csv");
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let of_pair = rows.filter(|row| row.get(1) == Some(&pair) && row.get(2) == Some(&"cubic"));
    middle(of_pair.filter_map(|row| row.get(column)?.parse().ok()).collect())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A download and a stream of a stock Linux 6.18, over links on which it was measured. Without the profile,
/// the model sends one message in ten over the slow link, which takes 250 ms.
#[test]
fn the_model_of_linux_is_near_the_kernel() {
    const NEAR: &str = "--path fast:rate=10mbit,rtt=20ms,queue=100ms";
    const FAR: &str = "--path slow:rate=3mbit,rtt=200ms,queue=600ms";
    let model = |workload: &str, of: fn(&plait_lab::RunOutcome) -> Option<f64>| {
        let values = (1..=5).filter_map(|seed| {
            let (_, outcome) = common::runs(&format!(
                "{NEAR} {FAR} --workload {workload} --schedulers linux --kernel 6.18 --seed {seed} \
                 --host-jitter 200us --check"
            ))
            .remove(0);
            assert_eq!(outcome.violation, None, "{workload}, seed {seed}");
            of(&outcome)
        });
        middle(values.collect())
    };
    let completion = model("download:8MB", |it| it.measures.completion_ms);
    let ratio = completion / kernel("A", 3);
    assert!((0.9..=1.1).contains(&ratio), "A: {completion} ms, {ratio} of the kernel's");
    let p99 = model("stream:30kB@50ms,for=10s", |it| Some(it.measures.message_delay_ms?.p99));
    let ratio = p99 / kernel("E", 5);
    assert!((0.9..=1.1).contains(&ratio), "E: {p99} ms, {ratio} of the kernel's");
}
