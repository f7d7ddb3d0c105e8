//! R77: two subflows compete with plain TCP at one bottleneck. Coupled subflows together take about as much
//! as one flow (RFC 6356 section 1, goal 2), uncoupled subflows as much as two.
//!
//! Round trips are equal. Real hosts and routers are never exactly in step, but simulated ones are.
//! Behind a drop-tail queue, flows would keep their initial phase (Floyd and Jacobson 1992).
//! Competing flows therefore start at random times, and some rows have a jitter of one packet time
//! before the bottleneck.
//!
//! LIA takes slightly more than one share by its own formula. Its alpha is 1/2 for two equal
//! windows, but 2/3 after a loss has halved one of them. The long-run result depends on its mean.
//! OLIA has 5/9 in that state. The segments of a subflow carry 20 bytes less, because of the DSS.

use crate::common::shares;
use std::fmt::Write;
use std::ops::RangeInclusive;

/// Seeds of each row.
const SEEDS: u32 = 4;

const DROP_TAIL: &str = "rate=10mbit,queue=62500B";
const RANDOM_LOSS: &str = "rate=100mbit,queue=inf,loss=0.5%";

/// Link, jitter before it, and number of competing flows.
const ROWS: [(&str, &str, u32); 5] = [
    (DROP_TAIL, "0s", 1),
    (DROP_TAIL, "1.2ms", 1),
    (DROP_TAIL, "0s", 2),
    (DROP_TAIL, "1.2ms", 2),
    (RANDOM_LOSS, "0s", 1),
];

/// A controller, its competitor, and the expected result.
struct Contest {
    cc: &'static str,
    beside: &'static str,
    rows: &'static [(&'static str, &'static str, u32)],
    /// Allowed range of the mean share in each row.
    band: RangeInclusive<f64>,
    /// True if the flows together fill the drop-tail link.
    full: bool,
}

impl Contest {
    /// Returns a contest with reno on every link.
    const fn with_reno(cc: &'static str, band: RangeInclusive<f64>) -> Contest {
        Contest { cc, beside: "reno", rows: &ROWS, band, full: true }
    }
}

/// Returns a line for each row: the goodput of the two subflows, and its ratio to a competing flow. The ratio
/// is the mean over the seeds, which must be in the band, and the range.
fn table(contest: &Contest) -> String {
    let Contest { cc, beside: other, rows, band, full } = contest;
    let mut table = format!(
        "{cc}, two subflows of 50 ms, bulk:100s, beside {other}; Mbit/s, means of {SEEDS} seeds\n\
         band of their share: {:.2} to {:.2} flows\n\
         {:<32} {:>6} {:>6} {:>8} {:>10} {:>6} {:>12}\n",
        band.start(),
        band.end(),
        "link",
        "jitter",
        "beside",
        "goodput",
        "flow each",
        "flows",
        "range"
    );
    for (link, jitter, beside) in *rows {
        let path = format!("rate=100mbit,rtt=50ms,jitter={jitter},via=cell");
        let runs = shares(
            &format!(
                "--path a:{path} --path b:{path} --link cell:{link} --workload bulk:100s \
                 --schedulers minrtt --cc {cc} --compete {other}@cell*{beside}"
            ),
            SEEDS,
        );
        let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
        let own: Vec<f64> = runs.iter().map(|run| run[0]).collect();
        let each: Vec<f64> = runs.iter().map(|run| mean(&run[1..])).collect();
        let flows: Vec<f64> = own.iter().zip(&each).map(|(own, each)| own / each).collect();
        let least = flows.iter().copied().fold(f64::INFINITY, f64::min);
        let most = flows.iter().copied().fold(0.0, f64::max);
        let (own, each, share) = (mean(&own), mean(&each), mean(&flows));
        let _ = writeln!(
            table,
            "{link:<32} {jitter:>6} {beside:>6} {own:>8.3} {each:>10.3} {share:>6.2} \
             {least:>6.2}..{most:.2}",
        );
        assert!(band.contains(&share), "{table}");
        if *full && *link == DROP_TAIL {
            let sum = own + each * f64::from(*beside);
            assert!((9.4..9.654).contains(&sum), "the link is full: {sum}");
        }
    }
    table
}

#[test]
fn uncoupled_subflows_take_the_shares_of_two_flows() {
    insta::assert_snapshot!(table(&Contest::with_reno("reno", 1.8..=2.2)));
}

#[test]
fn lia_takes_about_the_share_of_one_flow() {
    insta::assert_snapshot!(table(&Contest::with_reno("lia", 0.9..=1.25)));
}

#[test]
fn balia_takes_about_the_share_of_one_flow() {
    insta::assert_snapshot!(table(&Contest::with_reno("balia", 0.9..=1.25)));
}

#[test]
fn olia_takes_about_the_share_of_one_flow() {
    insta::assert_snapshot!(table(&Contest::with_reno("olia", 0.85..=1.15)));
}

/// wVegas keeps a few segments queued, and reno fills the queue.
#[test]
fn wvegas_gives_way_to_reno() {
    let contest = Contest { rows: &ROWS[3..4], ..Contest::with_reno("wvegas", 0.3..=0.85) };
    insta::assert_snapshot!(table(&contest));
}

/// With random loss and no queue, the subflows share no resource: each behaves like reno.
#[test]
fn wvegas_without_a_queue_is_reno_on_every_subflow() {
    let contest = Contest { rows: &ROWS[4..], ..Contest::with_reno("wvegas", 1.9..=2.4) };
    insta::assert_snapshot!(table(&contest));
}

/// The kernel's drain mistakes delayed acknowledgements for a queue, and backs off from them as well.
#[test]
fn wvegas_with_the_drain_of_the_kernel_gives_way_everywhere() {
    let contest =
        Contest { rows: &ROWS[3..], ..Contest::with_reno("wvegas:drain=mean", 0.3..=0.85) };
    insta::assert_snapshot!(table(&contest));
}

/// All subflows together keep the ten queued segments of a single flow.
#[test]
fn wvegas_without_its_drain_takes_about_the_share_of_one_of_its_kind() {
    let cc = "wvegas:drain=off";
    let contest = Contest { cc, beside: cc, rows: &ROWS[1..3], band: 0.85..=1.15, full: true };
    insta::assert_snapshot!(table(&contest));
}

/// With the kernel's drain, a queue rarely reaches alpha: every subflow halves its window as soon as its
/// delay has doubled, however small it was. Half of the link stays empty.
#[test]
fn the_drain_of_wvegas_uncouples_it() {
    let cc = "wvegas:drain=mean";
    let contest = Contest { cc, beside: cc, rows: &ROWS[..1], band: 1.8..=2.2, full: false };
    insta::assert_snapshot!(table(&contest));
}
