//! The promises of plait. `docs/promise.md` matches the measurements that need no recording. The
//! README and the live commands agree with that page.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use plait_lab::scenario::no_files;
use plait_lab::scoreboard::{Board, EQUAL, Options, VARIANTS, measured, scoreboard};
use plait_lab::{Control, Simulator};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

const PAGE: &str = include_str!("../../../docs/promise.md");

/// Returns the cells of the table below a heading of the page, header first, without emphasis.
fn table(heading: &str) -> Vec<Vec<String>> {
    let part = PAGE.split("\n## ").find(|part| part.starts_with(heading)).unwrap();
    let row = |line: &str| {
        let cells = line.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().trim_matches('*').to_owned()).collect()
    };
    let lines = part.lines().filter(|line| line.starts_with('|') && !line.starts_with("| ---"));
    lines.map(row).collect()
}

/// Measures the links A to F.
fn board() -> &'static Board {
    static BOARD: OnceLock<Board> = OnceLock::new();
    BOARD.get_or_init(|| {
        let options = Options {
            grounds: measured(),
            missing: Vec::new(),
            settings: vec![("schedulers", format!("all,{VARIANTS}"))],
            command: String::new(),
        };
        let never = AtomicBool::new(false);
        let control = Control::unwatched(&never);
        scoreboard(&options, &Simulator, &control, &no_files).unwrap()
    })
}

/// Returns the line of a cell in the page, by column.
fn cell(name: &str) -> Vec<(String, String)> {
    let rows = table("Every cell");
    let row = rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("no cell {name}"));
    rows[0].iter().cloned().zip(row.iter().cloned()).collect()
}

#[test]
fn the_page_is_as_measured_on_the_links_a_to_f() {
    for found in &board().cells {
        let shown = cell(&found.cell);
        assert_eq!(shown.len(), 3 + found.scores.len(), "{}", found.cell);
        for (scheduler, score) in &found.scores {
            let (_, ratio) = shown.iter().find(|(name, _)| name == scheduler).unwrap();
            let ratio: f64 = ratio.parse().unwrap();
            // Shown with two digits; a value below 1 is not rounded up to 1.
            assert!(
                (ratio - score.ratio).abs() < 0.01,
                "{}, {scheduler}: {} now; `make promise` writes docs/promise.md",
                found.cell,
                score.ratio
            );
        }
    }
}

/// Returns the row of the default scheduler.
fn default_row(standings: &[Vec<String>]) -> &[String] {
    standings.iter().find(|row| row[0] == plait_sched::DEFAULT).unwrap()
}

/// No scheduler has a better worst cell, to two decimals. Ties are allowed.
#[test]
fn no_scheduler_has_a_better_worst_cell_than_the_default() {
    let standings = table("Schedulers by their worst cell");
    let default = default_row(&standings);
    assert_eq!(standings[1][1], default[1]);
    let worst: Vec<f64> = standings[1..].iter().map(|row| row[1].parse().unwrap()).collect();
    assert!(worst.is_sorted_by(|a, b| a >= b), "{worst:?}");
    // On the measured links no scheduler is better by more than the page shows.
    let own = board().standings.iter().find(|it| it.scheduler == plait_sched::DEFAULT);
    let own = own.unwrap();
    assert!(own.worst >= EQUAL && own.slower == 0, "{own:?}");
    assert!(own.worst >= worst[0], "the page tells of the worst cell of all");
}

#[test]
fn every_recorded_pair_is_in_the_page() {
    let rows = table("Every cell");
    let recorded: Vec<&str> = rows[1..]
        .iter()
        .map(|row| row[0].as_str())
        .filter(|name| name.contains(" start ") || name.contains(" anywhere "))
        .collect();
    // Nine pairs, two beginnings, and four measures of three loads.
    assert_eq!(recorded.len(), 9 * 2 * 4, "{recorded:?}");
    assert!(!PAGE.contains("\nMissing:") && !PAGE.contains("Interrupted"));
}

/// Returns the median of a scheduler in a cell of A to F, relative to that of plain TCP.
fn times(cell: &str, scheduler: &str) -> f64 {
    let cell = board().cells.iter().find(|it| it.cell == cell).unwrap();
    cell.scores[scheduler].median.unwrap() / cell.best_path_median
}

/// Links E: a stream that fits the fast path. A stock Linux 6.18 has the same p50 as plain TCP there, and ten
/// times its p99.
#[test]
fn a_stream_over_e_waits_for_the_slow_path_with_linux_and_not_with_ecf() {
    assert!(times("E p99", "ecf") < 1.3, "{}", times("E p99", "ecf"));
    assert!(times("E p50", "linux") < 1.1, "{}", times("E p50", "linux"));
    assert!(times("E p99", "linux") > 3.0, "{}", times("E p99", "linux"));
}
