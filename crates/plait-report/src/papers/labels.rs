//! Labels of axes: the name of a measure or of a swept setting, with its unit.

use plait_app::measure::without_unit;
use plait_app::quantity;
use plait_lab::experiment::{Axis, unit_of_measure};

/// Words for the parts of measures' names. Other parts are used unchanged.
const WORDS: [(&str, &str); 13] = [
    ("completion", "completion time"),
    ("cwnd", "congestion window"),
    ("fetch", "fetch rate"),
    ("free", "unused part"),
    ("gap", "STMS gap"),
    ("idle", "idle"),
    ("iw", "initial-window"),
    ("load", "load time"),
    ("ooo", "out-of-order"),
    ("rebuffer", "rebuffering time"),
    ("rtt", "RTT"),
    ("rwnd", "receive window"),
    ("sndbuf", "send buffer"),
];
/// Words for the statistics in measures' names, which follow a comma.
const STATISTICS: [(&str, &str); 5] = [
    ("max", "maximum"),
    ("mean", "mean"),
    ("median", "median"),
    ("min", "minimum"),
    ("sd", "standard deviation"),
];

/// Returns `completion time (ms)` for `completion_ms`, `share of path cell` for `path_share.cell`.
pub(super) fn measure(name: &str) -> String {
    let (name, of) = name.split_once('.').unwrap_or((name, ""));
    if name == "path_share" {
        return match of {
            "" => "share of the path".to_owned(),
            path => format!("share of path {path}"),
        };
    }
    let unit = unit_of_measure(name);
    let mut text = String::new();
    for part in without_unit(name, unit).split('_') {
        let known = |list: &[(&'static str, &'static str)]| {
            list.iter().find(|word| word.0 == part).map(|word| word.1)
        };
        let percentile = part.strip_prefix('p').filter(|rest| rest.parse::<u32>().is_ok());
        let after_comma = match (known(&STATISTICS), percentile) {
            (Some(statistic), _) => Some(statistic.to_owned()),
            (None, Some(rest)) => Some(format!("{rest}th percentile")),
            (None, None) => None,
        };
        match after_comma {
            Some(statistic) if text.is_empty() => text = statistic,
            Some(statistic) => text.push_str(&format!(", {statistic}")),
            None => {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(known(&WORDS).unwrap_or(part));
            }
        }
    }
    if !of.is_empty() {
        text.push_str(&format!(", {of}"));
    }
    match unit {
        "" => text,
        unit => format!("{text} ({unit})"),
    }
}

/// Returns `RTT (ms)`: the label of an axis, with the unit of its points if they are drawn as
/// `numbers`. A label that ends in a unit stays unchanged.
pub(super) fn axis(axis: &Axis, numbers: bool) -> String {
    if axis.label.ends_with(')') {
        return axis.label.clone();
    }
    let name = if axis.label.is_empty() { &axis.name } else { &axis.label };
    let points = axis.points.iter().filter(|_| numbers);
    with_unit(name, points.map(|it| it.text.as_str()))
}

fn with_unit<'a>(name: &str, points: impl Iterator<Item = &'a str>) -> String {
    let name = if name == "rtt" { "RTT" } else { name };
    let mut unit = None;
    for point in points {
        let amount = if unit_of(point).is_some() {
            point
        } else {
            point.rsplit(':').next().unwrap_or(point)
        };
        let of = unit_of(amount);
        if of.is_none() || unit.is_some_and(|unit| Some(unit) != of) {
            return name.to_owned();
        }
        unit = of;
    }
    unit.map_or_else(|| name.to_owned(), |unit| format!("{name} ({unit})"))
}

/// Returns the unit in which a quantity is drawn.
fn unit_of(text: &str) -> Option<&'static str> {
    if quantity::time(text).is_ok() {
        Some("ms")
    } else if quantity::bytes(text).is_ok() {
        Some("bytes")
    } else if quantity::rate(text).is_ok() {
        Some("Mbit/s")
    } else if quantity::percent(text).is_ok() {
        Some("share, 1 is 100 %")
    } else if quantity::segments(text).is_ok() {
        Some("segments")
    } else if quantity::packets(text).is_ok() {
        Some("packets")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_words_with_units() {
        for (name, words) in [
            ("completion_ms", "completion time (ms)"),
            ("goodput_mbps", "goodput (Mbit/s)"),
            ("ooo_delay_p95_ms", "out-of-order delay, 95th percentile (ms)"),
            ("path_share.cell", "share of path cell"),
            ("cwnd_mean_seg.fast", "congestion window, mean, fast (segments)"),
            ("retransmitted_share", "retransmitted share"),
            ("page_load_ms", "page load time (ms)"),
            ("rebuffer_s", "rebuffering time (s)"),
            ("rtt_p15_ms", "RTT, 15th percentile (ms)"),
            ("gap_max_seg", "STMS gap, maximum (segments)"),
            ("fetch_mbps", "fetch rate (Mbit/s)"),
            ("competing_mbps", "competing (Mbit/s)"),
        ] {
            assert_eq!(measure(name), words);
        }
    }

    #[test]
    fn no_measure_keeps_its_code() {
        for entry in plait_app::MEASURES {
            let words = measure(entry.name);
            assert!(!words.contains('_') && words != entry.name, "{words}");
            assert!(
                entry.unit.is_empty() || words.ends_with(&format!("({})", entry.unit)),
                "{words}"
            );
        }
    }

    #[test]
    fn axes_have_the_unit_of_their_points() {
        let of = |points: &[&str]| with_unit("x", points.iter().copied());
        assert_eq!(of(&["10ms", "1s"]), "x (ms)");
        assert_eq!(of(&["64KiB", "1MB"]), "x (bytes)");
        assert_eq!(of(&["download:64KiB"]), "x (bytes)");
        assert_eq!(of(&["1mbit", "20Mbit/s"]), "x (Mbit/s)");
        assert_eq!(of(&["1%"]), "x (share, 1 is 100 %)");
        assert_eq!((of(&["10ms", "on"]), of(&["15", "20"])), ("x".into(), "x".into()));
        assert_eq!(with_unit("rtt", ["1ms"].into_iter()), "RTT (ms)");
    }

    #[test]
    fn an_axis_has_the_label_of_its_file() {
        let points = vec![plait_lab::experiment::Point::plain("1mbit")];
        let mut labelled = Axis::plain("lte", points);
        assert_eq!([true, false].map(|it| axis(&labelled, it)), ["lte (Mbit/s)", "lte"]);
        labelled.label = "LTE rate".to_owned();
        assert_eq!([true, false].map(|it| axis(&labelled, it)), ["LTE rate (Mbit/s)", "LTE rate"]);
        labelled.label = "burst (segments)".to_owned();
        assert_eq!([true, false].map(|it| axis(&labelled, it)), ["burst (segments)"; 2]);
    }
}
