//! Logs of cake-autorate. The header of a log names its columns, which differ between versions.

use super::finding::{Finding, ImportError, Input, Worth, origin};
use crate::date::leading_day;
use crate::estimate::Estimate;
use plait_lab::stats::percentile;

/// Least number of samples under load that give a rate.
const MIN_SAMPLES: usize = 10;

/// Reads the rates under load, and the delays.
pub(super) fn read(input: &Input<'_>) -> Result<Finding, ImportError> {
    let mut columns: Vec<&str> = Vec::new();
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for line in input.text.lines() {
        let cells: Vec<&str> = line.split(';').map(str::trim).collect();
        match cells.first() {
            // A log that goes on after an update may have other columns.
            Some(&"DATA_HEADER") if columns != cells => {
                columns = cells;
                rows.clear();
            }
            Some(&"DATA") if cells.len() == columns.len() => rows.push(cells),
            _ => {}
        }
    }
    let column = |name: &str| columns.iter().position(|it| *it == name);
    let number = |row: &[&str], at: Option<usize>| -> Option<f64> {
        row.get(at?)?.parse().ok().filter(|it: &f64| it.is_finite() && *it >= 0.0)
    };
    let Some(last) = rows.last() else {
        let remedy =
            "set output_processing_stats=1 and log_to_file=1 in the settings of cake-autorate";
        return Err(ImportError::new(input, "the log has no line DATA", remedy));
    };
    let day = column("LOG_DATETIME").and_then(|at| leading_day(last.get(at)?));
    let origin = origin(input, "cake-autorate", day);
    let mut found = Finding::new("cake-autorate log");
    for (key, way) in [("rate_down", "DL"), ("rate_up", "UL")] {
        let rate = column(&format!("{way}_ACHIEVED_RATE_KBPS"));
        let load = column(&format!("{way}_LOAD_CONDITION"));
        let loaded = |row: &&Vec<&str>| {
            load.and_then(|at| row.get(at)).is_some_and(|it| it.contains("high"))
        };
        let rates: Vec<f64> =
            rows.iter().filter(loaded).filter_map(|row| number(row, rate)).collect();
        match Estimate::spread_of(&rates).filter(|it| it.low > 0.0 && rates.len() >= MIN_SAMPLES) {
            Some(rate) => {
                found.add(key, rate.at_least(1.05).times(1e3).rate(&origin), Worth::Direct);
            }
            None => {
                let why = match rates.len() {
                    0 => "the log has no time under high load in this direction".to_owned(),
                    few if few < MIN_SAMPLES => {
                        format!(
                            "the log has {few} samples under high load, and {MIN_SAMPLES} are needed"
                        )
                    }
                    _ => "the log has no rates above zero under high load".to_owned(),
                };
                found.lacks(key, &why, &origin);
                found.remark(&format!("unknown {key}: {why}"));
            }
        }
    }
    if found.remark.is_some() {
        found.remark("load the link while the log is written");
    }
    let (down, up) = (column("DL_OWD_US"), column("UL_OWD_US"));
    let mut delays: Vec<f64> =
        rows.iter().filter_map(|row| Some((number(row, down)? + number(row, up)?) / 1e3)).collect();
    delays.sort_by(f64::total_cmp);
    let (least, half) = (percentile(&delays, 1.0), percentile(&delays, 25.0));
    if let (Some(least), Some(half)) = (least.filter(|ms| *ms > 0.0), half) {
        let rtt = Estimate { value: least, low: least, high: half }.at_least(1.05);
        found.add("rtt", rtt.time(&origin), Worth::Direct);
    }
    found.lacks("queue", "the router keeps it short (cake)", &origin);
    Ok(found)
}
