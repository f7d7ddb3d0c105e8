//! The table of burst delays over 10/R ms (ton-u16): every cell, to 0.1 ms and 0.01 of share.

use crate::common::{checked, ideal, ms, setup, spec, tcp, textbook};

/// R, number of segments, then (delay in ms, share of the fast path) for each scheduler.
///
/// The schedulers are tcp, minrtt, blest:mode=paper with 64 KiB and with 6 MiB, sttf, ecf, and ecf
/// without the floor. Both ecf columns run without rec_cwnd.
type Row = (u64, u32, [(f64, f64); 7]);

#[rustfmt::skip]
const TABLE: [Row; 21] = [
    (10, 10, [(5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.)]),
    (10, 11, [(15., 1.), (5., 0.91), (5., 0.91), (5., 0.91), (5., 0.91), (5., 0.91), (5., 0.91)]),
    (10, 15, [(15., 1.), (5., 0.67), (5., 0.67), (5., 0.67), (5., 0.67), (5., 0.67), (5., 0.67)]),
    (10, 20, [(15., 1.), (5., 0.50), (5., 0.50), (5., 0.50), (5., 0.50), (5., 0.50), (5., 0.50)]),
    (10, 30, [(15., 1.), (15., 0.67), (15., 0.67), (15., 0.67), (15., 0.67), (15., 0.67), (15., 0.67)]),
    (10, 40, [(25., 1.), (15., 0.75), (15., 0.75), (15., 0.75), (15., 0.75), (15., 0.75), (15., 0.75)]),
    (10, 50, [(25., 1.), (15., 0.60), (15., 0.60), (15., 0.60), (15., 0.60), (15., 0.60), (15., 0.60)]),
    (40, 10, [(5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.)]),
    (40, 11, [(15., 1.), (20., 0.91), (15., 1.), (20., 0.91), (15., 1.), (15., 1.), (20., 0.91)]),
    (40, 15, [(15., 1.), (20., 0.67), (15., 1.), (20., 0.67), (15., 1.), (15., 1.), (30., 0.80)]),
    (40, 20, [(15., 1.), (20., 0.50), (15., 1.), (20., 0.50), (15., 1.), (15., 1.), (30., 0.80)]),
    (40, 30, [(15., 1.), (20., 0.67), (15., 1.), (20., 0.67), (15., 1.), (15., 1.), (30., 0.87)]),
    (40, 40, [(25., 1.), (20., 0.75), (25., 1.), (20., 0.75), (20., 0.75), (25., 0.97), (40., 0.90)]),
    (40, 50, [(25., 1.), (25., 0.80), (25., 1.), (25., 0.80), (25., 0.80), (25., 0.80), (25., 0.80)]),
    (100, 10, [(5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.)]),
    (100, 11, [(15., 1.), (50., 0.91), (15., 1.), (50., 0.91), (15., 1.), (15., 1.), (50., 0.91)]),
    (100, 15, [(15., 1.), (50., 0.67), (15., 1.), (50., 0.67), (15., 1.), (15., 1.), (60., 0.93)]),
    (100, 20, [(15., 1.), (50., 0.50), (15., 1.), (50., 0.50), (15., 1.), (15., 1.), (15., 1.)]),
    (100, 30, [(15., 1.), (50., 0.67), (15., 1.), (50., 0.67), (15., 1.), (15., 1.), (15., 1.)]),
    (100, 40, [(25., 1.), (50., 0.75), (25., 1.), (50., 0.75), (25., 1.), (25., 1.), (25., 1.)]),
    (100, 50, [(25., 1.), (50., 0.80), (25., 1.), (50., 0.80), (25., 1.), (25., 1.), (25., 1.)]),
];

const COLUMNS: [(&str, u64); 6] = [
    ("minrtt", 6 << 20),
    ("blest:mode=paper", 64 << 10),
    ("blest:mode=paper", 6 << 20),
    ("sttf", 6 << 20),
    ("ecf:rec_cwnd=off", 6 << 20),
    ("ecf:floor=off,rec_cwnd=off", 6 << 20),
];

#[test]
fn every_cell_of_the_burst_table() {
    let mut wrong = Vec::new();
    for (slow, segments, cells) in TABLE {
        let workload = format!("burst:{segments}seg");
        let outcome = tcp(ideal("fast", ms(10)), "cubic", &textbook(), &workload);
        let measures = &outcome.pairs[0][0].measures;
        let delay = measures.message_delay_ms.as_ref().map(|delay| delay.mean);
        if delay != Some(cells[0].0) {
            wrong.push(format!("{slow} ms, {segments} segments, tcp: {delay:?}"));
        }
        for ((scheduler, rcvbuf), (delay, share)) in COLUMNS.into_iter().zip(&cells[1..]) {
            let paths = vec![ideal("fast", ms(10)), ideal("slow", ms(slow))];
            let config = textbook().with(|it| it.buffers.rcvbuf = rcvbuf);
            let spec = spec(scheduler, "cubic", 2, config);
            let outcome = checked(&setup(paths, &spec, &workload));
            let measures = &outcome.pairs[0][0].measures;
            let got = measures.message_delay_ms.as_ref().map_or(f64::NAN, |delay| delay.mean);
            let got_share = measures.paths[0].path_share.unwrap_or(f64::NAN);
            if (got - delay).abs() > 0.05 || (got_share - share).abs() > 0.0051 {
                wrong.push(format!(
                    "{slow} ms, {segments} segments, {scheduler}, {rcvbuf}: \
                     {got} ({got_share:.3}) instead of {delay} ({share})"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
