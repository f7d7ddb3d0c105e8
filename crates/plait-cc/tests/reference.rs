//! The controllers against plain references in floats, written from the published formulas.
//! Thousands of random states have flows of all sizes and RTTs. Some flows are dead, some have no
//! sample, and some are in recovery.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::disallowed_methods,
    reason = "the reference is plain, and compared with a tolerance"
)]

use plait_base::{Span, Time};
use plait_cc::{
    Ack, Congestion, Flow, Flows, IdleRestart, Restarted, Settings, Spec, View, balia, lia, olia,
    reno, restart, wvegas,
};
use proptest::prelude::*;

/// Bytes of a segment if all flows have the same size.
const MSS: u64 = 1_000;

/// A flow of the reference, with its window in segments and its RTT in seconds.
#[derive(Clone, Copy, Debug)]
struct Path {
    w: f64,
    r: f64,
    mss: f64,
    l: f64,
    own: bool,
}

/// The quality of a path.
type Quality = fn(&Path) -> f64;

/// Returns the flows that count in the reference. In recovery the threshold is the window.
fn paths(all: &[Flow], own: usize) -> Vec<Path> {
    let mut out = Vec::new();
    for (index, flow) in all.iter().enumerate() {
        let speaks = index == own;
        let (true, Some(srtt)) = (flow.live || speaks, flow.srtt) else { continue };
        let window = match (flow.in_recovery, flow.ssthresh) {
            (true, Some(ssthresh)) => ssthresh,
            _ => flow.cwnd,
        };
        out.push(Path {
            w: window as f64 / f64::from(flow.mss),
            r: srtt.as_nanos() as f64 / 1e9,
            mss: f64::from(flow.mss),
            l: flow.loss_interval as f64,
            own: speaks,
        });
    }
    out
}

fn speaker(paths: &[Path]) -> Path {
    *paths.iter().find(|path| path.own).unwrap()
}

/// Returns the increase in bytes for `acked` bytes (RFC 6356 section 3).
fn plain_lia(paths: &[Path], acked: f64) -> f64 {
    let own = speaker(paths);
    let bytes = |path: &Path| path.w * path.mss;
    let total: f64 = paths.iter().map(bytes).sum();
    let top = paths.iter().map(|p| bytes(p) / p.r.powi(2)).fold(0.0, f64::max);
    let below: f64 = paths.iter().map(|p| bytes(p) / p.r).sum::<f64>().powi(2);
    let alpha = total * top / below;
    (alpha * acked * own.mss / total).min(acked * own.mss / bytes(&own))
}

/// Returns the increase of draft-khalili section 3.2, with `a` chosen by the given quality. Sets
/// are built with a tolerance. In the random states, values within it are equal.
fn plain_olia(paths: &[Path], acked: f64, quality: Quality) -> f64 {
    let own = speaker(paths);
    let equal = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    let top = paths.iter().map(quality).fold(0.0, f64::max);
    let most = paths.iter().map(|p| p.w).fold(0.0, f64::max);
    let best = |p: &Path| equal(quality(p), top);
    let largest = |p: &Path| equal(p.w, most);
    let k = paths.iter().filter(|p| best(p) && !largest(p)).count() as f64;
    let m = paths.iter().filter(|p| largest(p)).count() as f64;
    let n = paths.len() as f64;
    let a = if k == 0.0 {
        0.0
    } else if largest(&own) {
        -1.0 / (n * m)
    } else if best(&own) {
        1.0 / (n * k)
    } else {
        0.0
    };
    let sum: f64 = paths.iter().map(|p| p.w / p.r).sum();
    ((own.w / own.r.powi(2)) / sum.powi(2) + a / own.w) * acked
}

/// Returns the increase, and the window after a loss in segments (draft-walid section 3).
fn plain_balia(paths: &[Path], acked: f64) -> (f64, f64) {
    let own = speaker(paths);
    let x = own.w / own.r;
    let sum: f64 = paths.iter().map(|p| p.w / p.r).sum();
    let a = paths.iter().map(|p| p.w / p.r).fold(0.0, f64::max) / x;
    let growth = x / (own.r * sum * sum) * ((1.0 + a) / 2.0) * ((4.0 + a) / 5.0) * acked;
    (growth, own.w - own.w / 2.0 * a.min(1.5))
}

fn near(ours: f64, plain: f64) -> bool {
    (ours - plain).abs() <= 1e-9 * plain.abs().max(1e-3)
}

prop_compose! {
    /// Windows in quarters of a segment, RTTs in steps of 50 us, loss intervals in steps of 500
    /// bytes. So ties occur, and other values are far apart.
    fn flow()(
        quarters in 4..8_000_u64,
        rtt in 1..16_000_u64,
        mss in prop_oneof![6 => Just(1448_u32), 1 => Just(1000), 1 => Just(536)],
        ssthresh in proptest::option::of(4..8_000_u64),
        in_recovery in prop::bool::weighted(0.2),
        live in prop::bool::weighted(0.85),
        sampled in prop::bool::weighted(0.9),
        l in 0..4_000_u64,
    ) -> Flow {
        let bytes = |quarters: u64| quarters * u64::from(mss) / 4;
        Flow {
            cwnd: bytes(quarters),
            ssthresh: ssthresh.map(bytes),
            srtt: sampled.then_some(Span::from_micros(rtt * 50)),
            mss,
            in_recovery,
            live,
            loss_interval: l * 500,
        }
    }
}

prop_compose! {
    /// Flows with an own flow that is live, has a sample, and is in congestion avoidance.
    fn flows()(
        mut all in prop::collection::vec(flow(), 1..=8),
        twins in any::<bool>(),
        pick in any::<prop::sample::Index>(),
    ) -> (Vec<Flow>, usize) {
        let own = pick.index(all.len());
        if twins {
            // Two equal flows: both are in the sets of OLIA.
            let last = all.len() - 1;
            all[last] = all[own];
        }
        all[own].live = true;
        all[own].in_recovery = false;
        all[own].srtt.get_or_insert(Span::from_millis(40));
        (all, own)
    }
}

/// Returns the window after one acknowledgement in congestion avoidance.
fn grown(spec: &str, all: &[Flow], own: usize, bytes: u64) -> u64 {
    let flow = Flow { ssthresh: Some(0), ..all[own] };
    let settings = Settings { mss: flow.mss, ..Settings::default() };
    let mut congestion = Congestion::resumed(settings, Spec::parse(spec).unwrap().build(), &flow);
    let srtt = flow.srtt.unwrap();
    let ack = Ack {
        now: Time::ZERO,
        bytes,
        rtt: Some(srtt),
        srtt,
        min_rtt: srtt,
        cwnd_limited: true,
        round: false,
        acked: 0,
        sent: 0,
    };
    // The ACK itself extends the loss interval before the formula is applied.
    congestion.on_ack(&ack, Flows { all, own });
    congestion.cwnd()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// R77.
    #[test]
    fn coupled_increases_are_those_of_the_papers(
        (all, own) in flows(),
        bytes in 1..20_000_u64,
    ) {
        let view = View::of(Flows { all: &all, own }).unwrap();
        let paths = paths(&all, own);
        let acked = bytes as f64;
        let reno = acked / speaker(&paths).w;
        prop_assert!(near(reno::increase(bytes, &view), reno));
        if paths.len() == 1 {
            for grown in [lia::increase(bytes, &view), balia::increase(bytes, &view)] {
                prop_assert!(near(grown, reno), "{grown}, alone {reno}");
            }
            return Ok(());
        }
        let ours = lia::increase(bytes, &view);
        prop_assert!(near(ours, plain_lia(&paths, acked)), "lia {ours}: {paths:?}");
        let kinds: [(olia::Quality, Quality); 2] = [
            (olia::Quality::Paper, |p| p.l / p.r.powi(2)),
            (olia::Quality::Draft, |p| p.l.powi(2) / p.r),
        ];
        for (quality, plain) in kinds {
            let ours = olia::increase(bytes, &view, quality);
            let plain = plain_olia(&paths, acked, plain);
            prop_assert!(near(ours, plain), "olia {quality:?} {ours}, {plain}: {paths:?}");
        }
        let (growth, _) = plain_balia(&paths, acked);
        let ours = balia::increase(bytes, &view);
        prop_assert!(near(ours, growth), "balia {ours}, {growth}: {paths:?}");
    }

    /// The window follows the formulas in whole bytes, and so does BALIA's loss.
    #[test]
    fn the_books_apply_the_formulas((all, own) in flows(), bytes in 1..20_000_u64) {
        let paths = paths(&all, own);
        if paths.len() == 1 {
            return Ok(());
        }
        let (acked, before) = (bytes as f64, all[own].cwnd as f64);
        let (balia, left) = plain_balia(&paths, acked);
        for (spec, growth) in [("lia", plain_lia(&paths, acked)), ("balia", balia)] {
            let ours = grown(spec, &all, own, bytes) as f64;
            prop_assert!((ours - (before + growth)).abs() <= 1.0 + 1e-6, "{spec} {ours}");
        }
        let settings = Settings { mss: all[own].mss, ..Settings::default() };
        let algorithm = Spec::parse("balia").unwrap().build();
        let mut congestion = Congestion::resumed(settings, algorithm, &all[own]);
        congestion.on_loss(Time::ZERO, all[own].cwnd, Flows { all: &all, own });
        let left = (left * f64::from(all[own].mss)).max(f64::from(all[own].mss));
        prop_assert!((congestion.cwnd() as f64 - left).abs() <= 1.0 + 1e-6);
        prop_assert_eq!(congestion.ssthresh(), Some(congestion.cwnd()));
    }
}

/// wVegas of the reference: measurements and window of one subflow, in segments and milliseconds.
#[derive(Clone, Debug)]
struct PlainVegas {
    /// The drain uses the mean sample and ignores the lowest one.
    mean: bool,
    base: f64,
    samples: Vec<f64>,
    alpha: f64,
    /// Lowest queueing delays of the means and of the lowest samples.
    q: [Option<f64>; 2],
    /// A value was so close to its limit that rounding decides.
    on_edge: bool,
}

impl PlainVegas {
    /// Returns the window after a round trip with the recorded samples.
    fn round(
        &mut self,
        w: f64,
        acked: f64,
        slow_start: bool,
        others: &[(f64, f64)],
    ) -> Option<f64> {
        let samples = std::mem::take(&mut self.samples);
        if samples.len() <= 2 {
            return (!slow_start).then_some(w + acked / w);
        }
        let rtt = samples.iter().sum::<f64>() / samples.len() as f64;
        let diff = w * (rtt - self.base) / rtt;
        let edges = |alpha: f64| (diff - alpha).abs() < 1e-7;
        self.on_edge = if slow_start { edges(1.0) } else { edges(self.alpha) };
        if slow_start {
            return (diff > 1.0).then_some(w.min(w * self.base / rtt + 1.0).max(2.0));
        }
        if diff >= self.alpha {
            let own = w / rtt;
            let all = own + others.iter().map(|(w, r)| w / r).sum::<f64>();
            self.alpha = f64::max(2.0, own / all * 10.0);
            self.on_edge |= edges(self.alpha);
        }
        let mut next = w;
        if diff > self.alpha {
            next -= 1.0;
        }
        if diff < self.alpha {
            next += 1.0;
        }
        let least = samples.iter().copied().fold(f64::MAX, f64::min);
        let mut doubled = [false, false];
        for (nth, delay) in [rtt - self.base, least - self.base].into_iter().enumerate() {
            if delay > 1e-9 {
                let q = self.q[nth].unwrap_or(delay).min(delay);
                self.q[nth] = Some(q);
                doubled[nth] = delay >= 2.0 * q - 1e-6;
            } else {
                self.q[nth] = None;
            }
        }
        // The queue by the lowest sample: less than a segment does not count.
        let queued = w * (least - self.base) / least;
        self.on_edge |= (queued - 1.0).abs() < 1e-7;
        if doubled[0] && (self.mean || doubled[1] && queued >= 1.0) {
            next *= self.base / (2.0 * rtt);
            self.q = [None, None];
        }
        Some(next.max(2.0))
    }
}

/// CUBIC of the reference, in segments and seconds.
#[derive(Default, Debug)]
struct PlainCubic {
    w: f64,
    w_max: f64,
    prior: f64,
    estimate: f64,
    epoch: Option<f64>,
    k: f64,
    plateau: f64,
}

impl PlainCubic {
    fn begin(&mut self, now: f64) {
        self.epoch = Some(now);
        self.estimate = self.w;
        self.plateau = self.w_max.max(self.w);
        self.k = ((self.plateau - self.w) / 0.4).cbrt();
    }

    fn ack(&mut self, now: f64, acked: f64) {
        if self.epoch.is_none() {
            // Slow start has ended without a loss.
            self.w_max = self.w;
            if self.prior == 0.0 {
                self.prior = self.w;
            }
            self.begin(now);
        }
        let t = now - self.epoch.unwrap() + 0.05;
        let target = (0.4 * (t - self.k).powi(3) + self.plateau).min(1.5 * self.w).max(self.w);
        let alpha = if self.estimate < self.prior { 0.9 / 1.7 } else { 1.0 };
        self.estimate += alpha * acked / self.w;
        self.w = f64::max(self.w + (target - self.w) / self.w * acked, self.estimate);
    }

    fn loss(&mut self, now: f64, flight: f64) {
        self.w_max = if self.w < self.w_max { self.w * 0.85 } else { self.w };
        self.prior = self.w;
        self.w = f64::max(0.7 * flight, 2.0).min(self.w.max(2.0));
        self.begin(now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// R77: several rounds, with siblings.
    #[test]
    fn wvegas_goes_round_by_round_as_the_reference(
        start in 2..400_u64,
        slow_start in any::<bool>(),
        mean in any::<bool>(),
        siblings in prop::collection::vec((1..300_u64, 1..400_u64), 0..4),
        rounds in prop::collection::vec((prop::collection::vec(10..300_u64, 1..6), any::<bool>()), 1..40),
    ) {
        let of = |w: u64, r: u64| Flow {
            cwnd: w * MSS,
            ssthresh: if slow_start { None } else { Some(0) },
            srtt: Some(Span::from_millis(r)),
            mss: MSS as u32,
            in_recovery: false,
            live: true,
            loss_interval: 0,
        };
        let mut all = vec![of(start, 100)];
        all.extend(siblings.iter().map(|(w, r)| of(*w, *r)));
        let others: Vec<(f64, f64)> = siblings.iter().map(|(w, r)| (*w as f64, *r as f64)).collect();
        let settings = Settings { mss: MSS as u32, ..Settings::default() };
        let name = if mean { "wvegas:drain=mean" } else { "wvegas" };
        let algorithm = Spec::parse(name).unwrap().build();
        let mut congestion = Congestion::resumed(settings, algorithm, &all[0]);
        let mut plain = PlainVegas { mean, base: f64::MAX, samples: Vec::new(), alpha: 2.0, q: [None, None], on_edge: false };
        for (samples, limited) in rounds {
            let before = congestion.cwnd();
            let slow = congestion.in_slow_start();
            for (nth, sample) in samples.iter().enumerate() {
                let last = nth + 1 == samples.len();
                plain.base = plain.base.min(*sample as f64);
                plain.samples.push(*sample as f64);
                let ack = Ack {
                    now: Time::ZERO,
                    bytes: 100,
                    rtt: Some(Span::from_millis(*sample)),
                    srtt: Span::from_millis(100),
                    min_rtt: Span::from_millis(1),
                    // The window is not the limit in slow start, so that it does not grow on its
                    // own.
                    cwnd_limited: limited && last && !slow,
                    round: last,
                    acked: 0,
                    sent: 0,
                };
                congestion.on_ack(&ack, Flows { all: &all, own: 0 });
            }
            let w = before as f64 / MSS as f64;
            let acked = samples.len() as f64 * 0.1;
            let next = plain.round(w, acked, slow, &others);
            if plain.on_edge {
                return Ok(());
            }
            let next = next.filter(|next| limited && !slow || *next <= w).unwrap_or(w);
            let ours = congestion.cwnd() as f64 / MSS as f64;
            prop_assert!((ours - next).abs() <= 0.0021, "{w} to {ours}, not {next}: {samples:?}");
        }
    }

    /// The formulas of the vectors, with other numbers.
    #[test]
    fn wvegas_formulas(w in 2..2_000_u64, base in 1..500_u64, more in 0..500_u64, part in 0..=100_u32) {
        let (rtt, weight) = (base + more, f64::from(part) / 100.0);
        let ms = Span::from_millis;
        let diff = wvegas::diff(w as f64, ms(base), ms(rtt));
        let plain = w as f64 * more as f64 / rtt as f64;
        prop_assert!(near(diff, plain));
        let alpha = if weight * 10.0 > 2.0 { weight * 10.0 } else { 2.0 };
        prop_assert!(near(wvegas::alpha(weight), alpha));
        let step = wvegas::next(w as f64, diff, alpha) - w as f64;
        let expected = if diff > alpha { -1.0 } else if diff < alpha { 1.0 } else { 0.0 };
        prop_assert!((step - expected).abs() < 1e-12);
    }

    /// RFC 9438 in sequences of acknowledgements, losses and recoveries: after each step the
    /// reference has the same window.
    #[test]
    fn cubic_runs_beside_the_reference(
        start in 10..400_u64,
        steps in prop::collection::vec((1..400_u64, 0..100_u32), 1..120),
    ) {
        let flow = Flow {
            cwnd: start * MSS,
            ssthresh: Some(start * MSS),
            srtt: Some(Span::from_millis(50)),
            mss: MSS as u32,
            in_recovery: false,
            live: true,
            loss_interval: 0,
        };
        let settings = Settings { mss: MSS as u32, ..Settings::default() };
        let algorithm = Spec::parse("cubic").unwrap().build();
        let mut congestion = Congestion::resumed(settings, algorithm, &flow);
        let mut plain = PlainCubic { w: start as f64, ..PlainCubic::default() };
        let (flows, mut now) = ([flow], Time::ZERO);
        let srtt = Span::from_millis(50);
        for (gap, dice) in steps {
            now += Span::from_millis(gap);
            let secs = now.since(Time::ZERO).as_secs_f64();
            let flows = Flows { all: &flows, own: 0 };
            if dice < 8 {
                let flight = congestion.cwnd();
                congestion.on_loss(now, flight, flows);
                congestion.on_recovered(now);
                plain.loss(secs, flight as f64 / MSS as f64);
            } else {
                let ack = Ack {
                    now,
                    bytes: 2 * MSS,
                    rtt: None,
                    srtt,
                    min_rtt: srtt,
                    cwnd_limited: true,
                    round: false,
                    acked: 0,
                    sent: 0,
                };
                congestion.on_ack(&ack, flows);
                plain.ack(secs, 2.0);
            }
            let ours = congestion.cwnd() as f64 / MSS as f64;
            prop_assert!((ours - plain.w).abs() <= 0.0011 + 1e-6 * plain.w, "{ours} {}", plain.w);
            // The fraction of a byte is not visible, and is zero after a loss.
            plain.w = ours;
            if dice < 8 {
                plain.begin(secs);
            }
        }
    }

    /// R68: idle restart in floats of milliseconds, as the rule is written.
    #[test]
    fn idle_restart_is_the_written_rule(
        cwnd in 1..600_u64,
        initial in 1..40_u32,
        ssthresh in proptest::option::of(2..600_u64),
        rto in 200..3_000_u64,
        idle in 0..40_000_u64,
        mode in prop::sample::select(vec![IdleRestart::Linux, IdleRestart::Rfc5681, IdleRestart::Off]),
    ) {
        let settings = Settings { mss: MSS as u32, initial_window: initial, ..Settings::default() };
        let window = Restarted { cwnd: cwnd * MSS, ssthresh: ssthresh.map(|s| s * MSS) };
        let after =
            restart(mode, &settings, window, Span::from_millis(idle), Span::from_millis(rto));
        let (mut w, mut s) = (cwnd, ssthresh.map(|s| s as f64));
        if idle > rto {
            match mode {
                IdleRestart::Off => {}
                IdleRestart::Rfc5681 => w = w.min(u64::from(initial)),
                IdleRestart::Linux => {
                    s = s.map(|s| s.max(0.75 * cwnd as f64));
                    let floor = u64::from(initial).min(cwnd);
                    let times = (idle as f64 / rto as f64).ceil() as u64 - 1;
                    for _ in 0..times {
                        if w > floor {
                            w /= 2;
                        }
                    }
                    w = w.max(floor);
                }
            }
        }
        prop_assert_eq!(after.cwnd, w * MSS);
        let s = s.map(|s| (s * MSS as f64) as u64);
        prop_assert_eq!(after.ssthresh, s);
    }

    /// R68: one acknowledgement near the threshold, with any limit of slow start. The reference
    /// splits the bytes by hand.
    #[test]
    fn slow_start_stops_at_the_threshold_and_the_rest_is_avoidance(
        cwnd in 1_000..400_000_u64,
        ssthresh in proptest::option::of(2_000..400_000_u64),
        bytes in 1..60_000_u64,
        limit in prop_oneof![Just(1_u32), Just(2), Just(u32::MAX)],
    ) {
        let settings = Settings { mss: MSS as u32, slow_start_limit: limit, ..Settings::default() };
        let flow = Flow {
            cwnd,
            ssthresh,
            srtt: Some(Span::from_millis(20)),
            mss: MSS as u32,
            in_recovery: false,
            live: true,
            loss_interval: 0,
        };
        let mut congestion = Congestion::resumed(settings, Spec::parse("reno").unwrap().build(), &flow);
        let srtt = Span::from_millis(20);
        let ack = Ack {
            now: Time::ZERO,
            bytes,
            rtt: None,
            srtt,
            min_rtt: srtt,
            cwnd_limited: true,
            round: false,
            acked: 0,
            sent: 0,
        };
        congestion.on_ack(&ack, Flows { all: &[flow], own: 0 });
        let (mut w, mut rest) = (cwnd as f64, bytes as f64);
        let threshold = ssthresh.map_or(f64::INFINITY, |s| s as f64);
        if w < threshold {
            let wanted = rest.min(f64::from(limit) * MSS as f64);
            let taken = wanted.min(threshold - w);
            w += taken;
            rest = wanted - taken;
        }
        if w >= threshold {
            w += MSS as f64 * rest / w;
        }
        prop_assert!((congestion.cwnd() as f64 - w).abs() <= 1.0, "{} {w}", congestion.cwnd());
    }
}
