//! A comparison as CSV.

use plait_lab::Document;

/// The document as CSV: one line for each number of each row.
pub(crate) fn csv(document: &Document) -> String {
    let header = [
        "vary",
        "scheduler",
        "cc",
        "measure",
        "mean",
        "median",
        "p95",
        "min",
        "max",
        "ci95_low",
        "ci95_high",
        "n",
    ];
    let mut lines = Vec::new();
    for report in document.reports() {
        let point: Vec<String> =
            report.vary.iter().map(|(key, value)| format!("{key}={value}")).collect();
        for row in &report.rows {
            let start = |name: &str| {
                vec![point.join(" "), row.scheduler.clone(), row.cc.clone(), name.to_owned()]
            };
            let competing = row.competing.iter();
            let competing = competing.map(|(flows, it)| (format!("competing_mbps.{flows}"), it));
            let measures = row.measures.iter().map(|(name, it)| (name.clone(), it));
            for (name, it) in measures.chain(competing) {
                let numbers = [it.mean, it.median, it.p95, it.min, it.max, it.ci95[0], it.ci95[1]];
                let mut line = start(&name);
                line.extend(numbers.iter().map(f64::to_string));
                line.push(it.n.to_string());
                lines.push(line);
            }
            let shares =
                row.path_share.iter().map(|(path, share)| (format!("path_share.{path}"), *share));
            let rtts = row.rtt_ms.iter().map(|(path, rtt)| (format!("rtt_ms.{path}"), *rtt));
            let plain = [
                ("reinjected_share", row.reinjected_share),
                ("retransmitted_share", row.retransmitted_share),
                ("speedup_vs_best_path", row.speedup_vs_best_path),
            ];
            let plain =
                plain.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            for (name, value) in shares.chain(rtts).chain(plain) {
                let mut line = start(&name);
                line.push(value.to_string());
                line.resize(header.len(), String::new());
                lines.push(line);
            }
        }
    }
    crate::render::csv(&header, &lines)
}
