//! Text drawings: bars, charts, tables and timelines. All functions take plain data and a width,
//! and return lines. They depend neither on the source of the data nor on the output.

pub mod advice;
mod bars;
mod captured;
pub mod comparison;
mod explain;
pub mod race;
pub mod random_board;
pub mod reproduction;
pub mod scoreboard;
pub mod swarm;
mod table;
mod timeline;

pub(crate) use bars::bar;
pub use bars::chart;
pub use captured::{captured, explained_run};
pub(crate) use captured::{ends, kernel_sentences, link, summary};
pub use explain::explained;
pub use table::{Align, Column, Emphasis, Table, csv, fold, wrap};
pub use timeline::{Cause, PathCounters, PathSeries, Timeline};

/// Formats `Run again: COMMAND`. It is broken before flags, so that no line is wider than `width`
/// unless a word is. The lines can be pasted into a shell. If the command names a class that only a program has, another line
/// says so.
#[must_use]
pub fn again(command: &str, width: usize) -> String {
    let text = pasted(command, width);
    let classes: Vec<String> = command
        .split([' ', ',', '+', '\''])
        .filter_map(of_program)
        .map(|class| format!("`{class}`"))
        .collect();
    if classes.is_empty() {
        return text;
    }
    let where_it_runs = format!(
        "This runs only in the program that has the class {}.",
        classes.join(" and the class ")
    );
    format!("{text}\n{}", wrap(&where_it_runs, width).join("\n"))
}

/// Returns the class that a word of a command names, if no command can import it: it is one of the main program, or it was
/// made by a function.
fn of_program(word: &str) -> Option<String> {
    let mut parts = word.split(':');
    let (module, class) = (parts.next()?, parts.next()?);
    let lasts = module != "__main__" && !class.contains("<locals>");
    (!lasts && !class.contains('=')).then(|| format!("{module}:{class}"))
}

fn pasted(command: &str, width: usize) -> String {
    const MARGIN: &str = "      ";
    let text = format!("Run again: {command}");
    if text.chars().count() <= width {
        return text;
    }
    let mut lines: Vec<String> = vec!["Run again:".to_owned(), MARGIN[..2].to_owned()];
    for (at, part) in command.split(" --").enumerate() {
        let word = if at == 0 { part.to_owned() } else { format!("--{part}") };
        let line = lines.last_mut().map(|line| (line.chars().count(), line));
        match line {
            // Two columns are reserved for the backslash.
            Some((used, line)) if at == 0 || used + 1 + word.chars().count() + 2 <= width => {
                line.push_str(if at == 0 { "" } else { " " });
                line.push_str(&word);
            }
            Some((_, line)) => {
                line.push_str(" \\");
                lines.push(format!("{MARGIN}{word}"));
            }
            None => {}
        }
    }
    lines.join("\n")
}

/// Formats bytes with a decimal unit and about three digits: `1.23 MB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    scaled(count as f64, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

/// Formats a rate with its unit and about three digits: `8.21 mbit`.
#[must_use]
pub fn rate(bps: u64) -> String {
    if bps == u64::MAX {
        return "inf".to_owned();
    }
    scaled(bps as f64, 1000.0, &["bit", "kbit", "mbit", "gbit", "tbit"])
}

/// Formats milliseconds with their unit and about three digits: `480 us`, `12.5 ms`, `1.84 s`.
#[must_use]
pub fn millis(ms: f64) -> String {
    scaled(ms * 1000.0, 1000.0, &["us", "ms", "s"])
}

/// Formats a share as a percentage: `0`, `0.4 %`, `64 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if !p.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        p if p < 0.05 => "<0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// Formats a number with about four digits, without a unit.
#[must_use]
pub fn figure(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "-".to_owned(),
        v if v >= 999.95 => format!("{value:.0}"),
        v if v >= 99.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or("");
    match value {
        v if v == 0.0 || (unit == 0 && v >= 1.0) || v >= 99.95 => format!("{v:.0} {name}"),
        v if v >= 9.995 => format!("{v:.1} {name}"),
        v => format!("{v:.2} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_their_unit_and_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(60_000), "60.0 kB");
        assert_eq!(bytes(1_234_567), "1.23 MB");
        assert_eq!(bytes(999_999), "1.00 MB");
        assert_eq!(rate(25_000_000), "25.0 mbit");
        assert_eq!(rate(u64::MAX), "inf");
        assert_eq!(millis(0.48), "480 us");
        assert_eq!(millis(1840.0), "1.84 s");
        assert_eq!(percent(0.0), "0");
        assert_eq!(percent(0.0004), "<0.1 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.64), "64 %");
        assert_eq!(figure(412.345), "412.3");
        assert_eq!(figure(12.3), "12.30");
        assert_eq!(figure(f64::NAN), "-");
    }
}
