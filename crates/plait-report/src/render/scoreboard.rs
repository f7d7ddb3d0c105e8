//! A scoreboard as text: the schedulers ranked by their worst cell, and every cell.

use super::{Align, Column, Emphasis, Table, again, figure, wrap};
use plait_lab::scoreboard::{Board, Cell, EQUAL, Score};

/// Greatest number of schedulers with a column in the text; JSON, CSV and Markdown have all.
const MAX_SCHEDULER_COLUMNS: usize = 6;

/// Title and first sentence of the page in `docs/`.
const HEAD: &str = "\
# Where each scheduler helps and harms

After this page you know the links and loads on which each scheduler is faster or slower than plain TCP. Each ratio is
the speed of a scheduler over that of plain TCP on the best path alone: 2 is twice as fast, and 0.5 half as fast. The column
`worst` shows the risk of a scheduler, and `median` the usual case. The command at the end of the page makes the page again.

";

/// Returns the board as text.
#[must_use]
pub fn text(board: &Board, width: usize, colour: bool) -> String {
    let mut text = format!("{}\n\n", wrap(&title(board), width).join("\n"));
    text += &standings(board).to_text(width, colour);
    text += "\n";
    text += &cells(board, MAX_SCHEDULER_COLUMNS).to_text(width, colour);
    text += &format!("\n{}\n", wrap(&verdict(board), width).join("\n"));
    text += &format!("\n{}\n", wrap(&key(board), width).join("\n"));
    for what in &board.missing {
        text += &format!("Missing: {what}\n");
    }
    text + &again(&board.command, width) + "\n"
}

/// Explains the names of the cells.
fn key(board: &Board) -> String {
    let own = board.cells.iter().all(is_own);
    let mut text = match own {
        true => "A cell is a load over your links.".to_owned(),
        false => "A cell has the name of its links and its load.".to_owned(),
    };
    let has = |part: &str| board.cells.iter().any(|it| it.cell.split(' ').any(|it| it == part));
    if board.cells.iter().any(is_measured) {
        text += " A to F are the links and loads on which a stock Linux was measured.";
    }
    if board.cells.iter().any(|cell| !is_measured(cell) && !is_own(cell)) {
        text += " A pair of numbers, such as 7_3, is a recorded pair of WiFi and cellular links, \
                 played from its start or from anywhere (a random time in it).";
    }
    let named = |names: &[(&str, &'static str)]| -> Vec<&'static str> {
        names.iter().filter(|it| has(it.0)).map(|it| it.1).collect()
    };
    let loads = named(&[
        ("download", "download is 4 MB"),
        ("bulk", "bulk is 10 s as fast as the links allow"),
        ("stream", "stream is a message of 30 kB every 50 ms"),
    ]);
    let measures = named(&[
        ("p50", "p50 is the median delay of the messages of a run"),
        ("p99", "p99 is the delay that one message in a hundred exceeds"),
    ]);
    for (of, found) in [("Of the loads", loads), ("Of a stream", measures)] {
        if !found.is_empty() {
            text += &format!(" {of}, {}.", found.join("; "));
        }
    }
    text
}

/// Returns the board as the page in `docs/`.
#[must_use]
pub fn markdown(board: &Board) -> String {
    let mut page = format!("{HEAD}{}\n\n{}\n\n", title(board), verdict(board));
    if board.standings.iter().any(|it| it.scheduler == "linux") {
        page += &format!("{}\n\n", about_linux());
    }
    page += &format!("{}\n\n", key(board));
    page += "## Schedulers by their worst cell\n\n";
    page += &standings(board).to_markdown();
    let first = board.standings.first().map_or("", |it| it.scheduler.as_str());
    page += &format!("\n## Every cell, the worst of {first} first\n\n");
    page += "Ratios to plain TCP on the best path alone; above 1 is better.\n\n";
    page += &cells(board, usize::MAX).to_markdown();
    let six: Vec<&Cell> = board.cells.iter().filter(|cell| is_measured(cell)).collect();
    if !six.is_empty() {
        page += "\n## Medians on the links A to F\n\nMilliseconds; lower is better.\n\n";
        page += &medians(board, six).to_markdown();
    }
    page += "\n## Links and loads\n\n";
    page += &settings(board);
    for what in &board.missing {
        page += &format!("\nMissing: {what}\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    page + &format!(
        "\nplait {version}, seed {}, digest `{}`:\n\n    {}\n",
        board.seed, board.digest, board.command
    )
}

/// The median error of plait's model of Linux 6.18, from docs/results/kernel-model.md.
const MODEL_ERROR: &str = "3.9 %";

/// Explains how the row `linux` differs from a stock kernel.
fn about_linux() -> String {
    format!(
        "`linux` is the rule of the kernel's scheduler alone. plait's model of Linux 6.18 \
         (`--kernel 6.18`) has a median error of {MODEL_ERROR} against that kernel \
         ([results/kernel-model.md](results/kernel-model.md))."
    )
}

/// Returns the board as CSV, one line per cell and scheduler, including plain TCP on the best path.
#[must_use]
pub fn csv(board: &Board) -> String {
    let mut rows = Vec::new();
    for cell in &board.cells {
        let mut row = |scheduler: &str, median: Option<f64>, ratio: f64| {
            let median = median.map_or(String::new(), |median| median.to_string());
            let fixed = [cell.cell.clone(), cell.measure.clone(), scheduler.to_owned()];
            rows.push([&fixed[..], &[median, ratio.to_string()]].concat());
        };
        row(&cell.best_path, Some(cell.best_path_median), 1.0);
        for (scheduler, score) in &cell.scores {
            row(scheduler, score.median, score.ratio);
        }
    }
    super::csv(&["cell", "measure", "scheduler", "median", "ratio"], &rows)
}

fn title(board: &Board) -> String {
    format!(
        "{} schedulers against plain TCP on the best path alone, in {} cell{}; controller {}, {} \
         runs{}.",
        board.standings.len(),
        board.cells.len(),
        if board.cells.len() == 1 { "" } else { "s" },
        board.cc,
        board.runs,
        if board.cells.iter().all(is_own) { "" } else { " if links are random" }
    )
}

/// Names the scheduler with the best worst cell, and its result.
fn verdict(board: &Board) -> String {
    let Some(first) = board.standings.first() else { return "No cell was measured.".to_owned() };
    let mut text = format!(
        "{} has the best worst cell: {} of the best path alone, in {}.",
        first.scheduler,
        ratio(first.worst),
        first.worst_cell
    );
    let never: Vec<&str> = board
        .standings
        .iter()
        .filter(|it| it.slower == 0)
        .map(|it| it.scheduler.as_str())
        .collect();
    text += &match never.as_slice() {
        [] => " Every scheduler is slower than the best path alone in some cell.".to_owned(),
        names => format!(" Never more than 2 % slower: {}.", names.join(", ")),
    };
    if board.interrupted {
        text += " Interrupted: cells are missing.";
    }
    text
}

fn standings(board: &Board) -> Table {
    let mut table = Table::new(vec![
        Column::new("scheduler", Align::Left),
        Column::new("worst", Align::Right),
        Column::new("where", Align::Left),
        Column::new("slower in", Align::Right),
        Column::new("median", Align::Right).dispensable(2),
        Column::new("best", Align::Right).dispensable(1),
        Column::new("there", Align::Left).dispensable(3),
    ]);
    for (at, it) in board.standings.iter().enumerate() {
        let emphasis = match at {
            0 => Emphasis::Best,
            _ if it.worst < EQUAL => Emphasis::Bad,
            _ => Emphasis::None,
        };
        let cells = [
            it.scheduler.clone(),
            ratio(it.worst),
            it.worst_cell.clone(),
            format!("{} of {}", it.slower, board.cells.len()),
            ratio(it.median),
            ratio(it.best),
            it.best_cell.clone(),
        ];
        table.row(emphasis, cells.into());
    }
    table
}

/// Returns one line per cell, with the first `most` schedulers in their order.
fn cells(board: &Board, most: usize) -> Table {
    let names: Vec<&str> =
        board.standings.iter().take(most).map(|it| it.scheduler.as_str()).collect();
    let mut columns = vec![
        Column::new("cell", Align::Left),
        Column::new("best path", Align::Left),
        Column::new("alone", Align::Right),
    ];
    // If the width is too small, later columns are dropped first.
    let column = |(at, name): (usize, &&str)| {
        Column::new(name, Align::Right).dispensable(u8::try_from(at).unwrap_or(u8::MAX))
    };
    columns.extend(names.iter().enumerate().map(column));
    let mut table = Table::new(columns);
    for cell in &board.cells {
        let mut row = vec![cell.cell.clone(), cell.best_path.clone(), alone(cell)];
        row.extend(names.iter().map(|name| score(cell.scores.get(*name))));
        table.row(Emphasis::None, row);
    }
    table
}

/// Returns the median of plain TCP on the best path with its unit.
fn alone(cell: &Cell) -> String {
    let entry = plait_app::MEASURES.iter().find(|entry| entry.name == cell.measure);
    format!("{} {}", figure(cell.best_path_median), entry.map_or("", |entry| entry.unit))
}

/// Returns one line per scheduler and one column per cell.
fn medians(board: &Board, mut cells: Vec<&Cell>) -> Table {
    cells.sort_by(|a, b| a.cell.cmp(&b.cell));
    let mut columns = vec![Column::new("", Align::Left)];
    columns.extend(cells.iter().map(|cell| Column::new(&cell.cell, Align::Right)));
    let mut table = Table::new(columns);
    let line = |name: &str, value: &dyn Fn(&Cell) -> Option<f64>| {
        let values = cells.iter().map(|cell| value(cell).map_or("failed".to_owned(), figure));
        [name.to_owned()].into_iter().chain(values).collect()
    };
    table.row(Emphasis::Reference, line("best path alone", &|cell| Some(cell.best_path_median)));
    for it in &board.standings {
        let value = |cell: &Cell| cell.scores.get(&it.scheduler).and_then(|score| score.median);
        table.row(Emphasis::None, line(&it.scheduler, &value));
    }
    table
}

/// Returns the settings of the cells, once for each pair of links and load. Recordings have their
/// file names only.
fn settings(board: &Board) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for cell in &board.cells {
        let name = cell.cell.trim_end_matches(" p50").trim_end_matches(" p99").to_owned();
        if lines.iter().all(|(known, _)| *known != name) {
            lines.push((name, without_directories(&cell.settings)));
        }
    }
    lines.sort();
    let mut text = "```text\n".to_owned();
    for (name, settings) in lines {
        text += &format!("{name:<22}{settings}\n");
    }
    text + "```\n"
}

/// Changes `trace=some/where/wifi.csv` to `trace=wifi.csv`.
fn without_directories(settings: &str) -> String {
    let field = |field: &str| match field.split_once("trace=") {
        Some((before, file)) => {
            format!("{before}trace={}", file.rsplit('/').next().unwrap_or(file))
        }
        None => field.to_owned(),
    };
    settings.split(',').map(field).collect::<Vec<_>>().join(",")
}

/// Returns true if a cell belongs to the links A to F.
fn is_measured(cell: &Cell) -> bool {
    let links = cell.cell.split(' ').next().unwrap_or_default();
    plait_lab::scoreboard::measured().iter().any(|ground| ground.links == links)
}

/// Returns true if a cell belongs to a user's own links. Its name begins with a workload.
fn is_own(cell: &Cell) -> bool {
    cell.cell.contains(':')
}

fn score(score: Option<&Score>) -> String {
    match score {
        None => "-".to_owned(),
        Some(Score { median: None, .. }) => "failed".to_owned(),
        Some(score) => ratio(score.ratio),
    }
}

/// Formats a ratio with two digits; a value below 1 is never rounded up to 1.
fn ratio(ratio: f64) -> String {
    let hundredths = (ratio * 100.0).floor() / 100.0;
    if (hundredths..1.0).contains(&ratio) && ratio > 0.995 {
        return format!("{hundredths:.2}");
    }
    format!("{ratio:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_lab::scoreboard::Standing;

    fn board() -> Board {
        let cell = |name: &str, measure: &str, scores: &[(&str, f64)]| Cell {
            cell: name.to_owned(),
            settings: "--path wifi:rtt=20ms,trace=/a/b/wifi.csv,offset=0s --workload x".to_owned(),
            measure: measure.to_owned(),
            best_path: "tcp:fast".to_owned(),
            best_path_median: 100.0,
            scores: scores
                .iter()
                .map(|(name, ratio)| {
                    let median = (*ratio > 0.0).then(|| 100.0 / ratio);
                    ((*name).to_owned(), Score { median, ratio: *ratio })
                })
                .collect(),
        };
        let standing = |scheduler: &str, worst: f64, slower: u32| Standing {
            scheduler: scheduler.to_owned(),
            worst,
            worst_cell: "E p99".to_owned(),
            median: 1.0,
            best: 1.25,
            best_cell: "A".to_owned(),
            slower,
        };
        Board {
            schema: plait_lab::scoreboard::SCHEMA.to_owned(),
            command: "plait scoreboard --runs 30 --seed 1".to_owned(),
            seed: 1,
            runs: 30,
            cc: "cubic".to_owned(),
            standings: vec![
                standing("ecf", 0.997, 0),
                standing("minrtt", 0.5, 1),
                standing("daps", 0.0, 1),
            ],
            cells: vec![
                cell(
                    "E p99",
                    "message_delay_p99_ms",
                    &[("ecf", 0.997), ("minrtt", 0.5), ("daps", 0.0)],
                ),
                cell("A", "completion_ms", &[("ecf", 1.25), ("minrtt", 1.25), ("daps", 1.0)]),
                cell(
                    "7_1 start bulk",
                    "goodput_mbps",
                    &[("ecf", 1.5), ("minrtt", 1.0), ("daps", 1.0)],
                ),
            ],
            missing: vec!["recorded pairs: nowhere".to_owned()],
            interrupted: false,
            digest: "ab".to_owned(),
        }
    }

    #[test]
    fn a_board_reads_at_a_glance() {
        insta::assert_snapshot!(text(&board(), 100, false));
    }

    #[test]
    fn its_page_has_every_cell_and_no_directories() {
        insta::assert_snapshot!(markdown(&board()));
    }

    /// The page about the model is measured again from time to time.
    #[test]
    fn the_error_of_the_model_is_that_of_its_page() {
        let measured = format!("| A-F and held-out | median {MODEL_ERROR},");
        let text = format!("median error of {MODEL_ERROR}");
        for (page, part) in [
            ("docs/results/kernel-model.md", &measured),
            ("README.md", &text),
            ("docs/promise.md", &text),
        ] {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
            let page_text = std::fs::read_to_string(format!("{root}/{page}")).unwrap();
            assert!(page_text.contains(part), "{page} lacks: {part}");
        }
    }

    #[test]
    fn csv_has_a_line_for_each_score_and_for_the_best_path() {
        let csv = csv(&board());
        assert_eq!(csv.lines().count(), 1 + 3 * 4);
        assert!(csv.contains("\nA,completion_ms,tcp:fast,100,1\n"), "{csv}");
        assert!(csv.contains("\nE p99,message_delay_p99_ms,daps,,0\n"), "{csv}");
    }

    #[test]
    fn a_ratio_below_one_is_never_shown_as_one() {
        assert_eq!(
            [0.999, 0.996, 0.994, 1.0, 1.001, 0.0].map(ratio),
            ["0.99", "0.99", "0.99", "1.00", "1.00", "0.00"]
        );
    }
}
