//! Tables of every scheduler over three pairs of paths, by workload. A change of behaviour changes the text,
//! so reviews show it.

use crate::common::{median, report, row};
use std::fmt::Write;

const PAIRS: [(&str, &str, &str); 3] = [
    ("equal", "rtt=20ms,rate=10mbit", "rtt=20ms,rate=10mbit"),
    ("unequal", "rtt=25ms,rate=25mbit", "rtt=75ms,rate=4mbit"),
    ("very unequal", "rtt=20ms,rate=10mbit", "rtt=200ms,rate=3mbit,queue=600ms"),
];

/// Returns a table with a line for each scheduler. For each pair of paths it has the measures and
/// the share of the first path. It also has the shares of retransmitted (r) and reinjected (i)
/// bytes. Shares are in per cent.
fn table(workload: &str, measures: &[&str]) -> String {
    let mut text = format!("{workload}: {}\n{:<12}", measures.join(", "), "");
    for (pair, first, second) in PAIRS {
        let short =
            |path: &str| path.replace("rtt=", "").replace("rate=", "").replace("queue=", "");
        let title = format!("{pair} {}+{}", short(first), short(second)).replace(',', "/");
        let _ = write!(text, "  {title:>42}");
    }
    text.push('\n');
    let every: Vec<&str> = plait_sched::SCHEDULERS.iter().map(|entry| entry.about.name).collect();
    let schedulers = format!("{},minrtt+rp", every.join(","));
    let reports = PAIRS.map(|(_, first, second)| {
        report(&format!(
            "--path a:{first} --path b:{second} --workload {workload} --schedulers {schedulers} \
             --check"
        ))
    });
    for name in reports[0].rows.iter().map(|row| row.scheduler.clone()) {
        let mut line = format!("{name:<12}");
        for report in &reports {
            let row = row(report, &name);
            assert_eq!(row.incomplete, 0, "{workload}, {name}: {:?}", row.failures);
            let numbers: String =
                measures.iter().map(|measure| format!("{:>9.1}", median(row, measure))).collect();
            let percent = |share: Option<f64>| share.map_or(0.0, |share| share * 100.0);
            let _ = write!(
                line,
                "  {numbers:>20} {:>4.0}% {:>6.1}r{:>6.1}i",
                percent(row.traffic.path_share.get("a").copied()),
                percent(row.traffic.retransmitted_share),
                percent(row.traffic.reinjected_share),
            );
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

macro_rules! tables {
    ($($name:ident: $workload:literal, $measures:expr;)*) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(table($workload, &$measures));
            }
        )*
    };
}

tables! {
    download_64kb: "download:64kB", ["completion_ms"];
    download_512kb: "download:512kB", ["completion_ms"];
    download_4mb: "download:4MB", ["completion_ms"];
    stream: "stream:30kB@50ms,for=10s", ["message_delay_median_ms", "message_delay_p95_ms"];
    bulk: "bulk:20s", ["goodput_mbps"];
    burst: "burst:30seg", ["message_delay_ms"];
}
