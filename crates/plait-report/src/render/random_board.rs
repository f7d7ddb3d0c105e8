//! A random scoreboard as text: how often each scheduler harms, by class and by the ratios of the paths.

use super::{Align, Column, Emphasis, Table, again, percent, wrap};
use plait_lab::scoreboard::random::{Against, Baseline, MapCell, RandomBoard, Standing};

/// Greatest number of schedulers with a column in the table of classes; Markdown and JSON have all.
const MAX_SCHEDULER_COLUMNS: usize = 4;
/// Number of the worst cells in text; Markdown has all of the list.
const MAX_WORST_CELLS: usize = 3;
/// Comparisons that a cell of the map needs at least.
pub(crate) const MIN_COMPARISONS: usize = 3;

/// Returns the board as text.
#[must_use]
pub fn text(board: &RandomBoard, width: usize, colour: bool) -> String {
    let wrapped = |text: &str| wrap(text, width).join("\n");
    let mut text = format!("{}\n\n", wrapped(&title(board)));
    text += &standings(board).to_text(width, colour);
    text += &format!("\n{}\n", wrapped(&legend(board)));
    text += &format!("\n{}\n", wrapped(CLASSES));
    text += &classes(board, MAX_SCHEDULER_COLUMNS).to_text(width, colour);
    text += &format!("\n{}\n", wrapped(&about_map(board)));
    text += &map(board).to_text(width, colour);
    if !board.worst.is_empty() {
        text += &format!("\n{}\n", wrapped(&format!("The worst cells of {}:", first(board))));
    }
    for worst in board.worst.iter().take(MAX_WORST_CELLS) {
        let line = format!("{:.2}x the time, {}:", worst.ratio, worst.measure);
        text += &format!("{line}\n{}\n", again_command(&worst.command, width));
    }
    for what in &board.missing {
        text += &format!("{}\n", wrapped(&format!("Missing: {what}")));
    }
    text + &again(&board.command, width) + "\n"
}

/// Returns the board as the page in `docs/`.
#[must_use]
pub fn markdown(board: &RandomBoard) -> String {
    let mut page = format!("{HEAD}{}\n\n{}\n\n", title(board), legend(board));
    page += &standings(board).to_markdown();
    page += &format!("\n## By property of the cell\n\n{CLASSES}\n\n");
    page += &classes(board, usize::MAX).to_markdown();
    page += &format!("\n## By the ratios of the paths\n\n{}\n\n", about_map(board));
    page += &map(board).to_markdown();
    page += &format!("\n## The worst cells of {}\n\n```text\n", first(board));
    for worst in &board.worst {
        page += &format!("# {:.2}x the time, {}\n{}\n", worst.ratio, worst.measure, worst.command);
    }
    page += "```\n";
    for what in &board.missing {
        page += &format!("\nMissing: {what}\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    page + &format!("\nplait {version}, seed {}:\n\n    {}\n", board.seed, board.command)
}

/// Name of the best scheduler of each comparison.
const BEST: &str = "best of each";
/// Name of plain TCP in further runs.
const AGAIN: &str = "tcp again";

/// Title and first sentence of the page in `docs/`.
const HEAD: &str = "\
# Schedulers on random links

After this page you know how often, and by how much, each scheduler is slower than plain TCP on links that were not chosen
for it. The command at the end of the page makes the page again.

";

/// Explains the table of classes.
pub(crate) const CLASSES: &str = "Share of the comparisons that take more than 10 % longer than `startable`, by property \
                       of the cell. A cell has several properties. `best path first`: plain TCP is fastest on \
                       the first path.";

/// Returns the board as CSV, one line per comparison and scheduler.
#[must_use]
pub fn csv(board: &RandomBoard) -> String {
    let mut rows = Vec::new();
    for cell in &board.cells {
        for it in &cell.comparisons {
            for (scheduler, value) in &it.values {
                let numbers = [*value, it.startable, it.known, it.first].map(|it| it.to_string());
                let fixed = [cell.number.to_string(), it.measure.clone(), scheduler.clone()];
                let bound = it.bound.map_or_else(String::new, |bound| bound.to_string());
                let extra = cell.extra.get(scheduler).map_or(String::new(), ToString::to_string);
                let last = [bound, extra, cell.classes.join(" + ")];
                rows.push([&fixed[..], &numbers, &last].concat());
            }
        }
    }
    let header = [
        "cell",
        "measure",
        "scheduler",
        "value",
        "startable",
        "known",
        "first",
        "bound",
        "extra",
        "classes",
    ];
    super::csv(&header, &rows)
}

pub(crate) fn first(board: &RandomBoard) -> &str {
    board.standings.first().map_or("", |it| it.scheduler.as_str())
}

pub(crate) fn title(board: &RandomBoard) -> String {
    let order = match board.best_path_first {
        true => "the path on which plain TCP is fastest is dialled first",
        false => "the path that is dialled first is drawn at random",
    };
    let runs = match board.runs {
        1 => String::new(),
        runs => format!(" of {runs} runs each"),
    };
    let text = format!(
        "{} random cells{runs}, {} comparisons with plain TCP, seed {}; {order}.",
        board.cells.len(),
        board.comparisons,
        board.seed
    );
    if board.interrupted { text + " Interrupted: cells are missing." } else { text }
}

pub(crate) fn legend(board: &RandomBoard) -> String {
    let bound = board.standings.iter().any(|it| it.of_bound.is_some());
    let mut text = "Columns `> 2 %` and `> 10 %`: share of the comparisons in which the scheduler takes that \
                    much longer than `startable`. Startable: the faster of plain TCP on the first path, and \
                    plain TCP on another path that starts two round trips of the first path later. Worst and median: its time over that of startable. \
                    Known: more than 10 % longer than plain TCP on the best path. Of the best: geometric \
                    mean of its time over that of the best scheduler of each cell."
        .to_owned();
    if bound {
        text += " Of bound: median share of the highest speed that any sender could reach.";
    }
    text += " Extra: mean of copies over payload.";
    if board.runs > 1 {
        text += " A value is the median of its runs.";
    }
    text + &format!(
        " `{BEST}`: the best scheduler of each comparison, which is known only afterwards. `{AGAIN}`: startable in \
         further runs, with other losses and jitter. Its row shows the harm of chance alone."
    )
}

pub(crate) fn standings(board: &RandomBoard) -> Table {
    let number = |title: &str| Column::new(title, Align::Right);
    let mut table = Table::new(vec![
        Column::new("scheduler", Align::Left),
        number("> 2 %"),
        number("> 10 %"),
        number("worst"),
        number("median"),
        number("known").dispensable(3),
        number("of the best").dispensable(2),
        number("of bound").dispensable(1),
        number("extra").dispensable(1),
    ]);
    for (at, it) in board.standings.iter().enumerate() {
        let emphasis = if at == 0 { Emphasis::Best } else { Emphasis::None };
        table.row(emphasis, row(it));
    }
    for (name, it) in [(BEST, &board.best_of_each), (AGAIN, &board.again)] {
        if let Some(it) = it {
            table.row(Emphasis::None, floor(name, it));
        }
    }
    table
}

/// Returns a row for comparison, which is no scheduler.
fn floor(name: &str, it: &Against) -> Vec<String> {
    let mut row = vec![name.to_owned(), percent(it.worse_2), percent(it.worse_10)];
    row.extend([times(it.worst), format!("{:.3}", it.median)]);
    row.extend(["-"; 4].map(str::to_owned));
    row
}

fn row(it: &Standing) -> Vec<String> {
    let of = |baseline: Baseline, text: &dyn Fn(&Against) -> String| {
        it.against.get(&baseline).map_or_else(|| "-".to_owned(), text)
    };
    vec![
        it.scheduler.clone(),
        of(Baseline::Startable, &|it| percent(it.worse_2)),
        of(Baseline::Startable, &|it| percent(it.worse_10)),
        of(Baseline::Startable, &|it| times(it.worst)),
        of(Baseline::Startable, &|it| format!("{:.3}", it.median)),
        of(Baseline::Known, &|it| percent(it.worse_10)),
        format!("{:.3}", it.vs_best),
        it.of_bound.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}")),
        percent(it.extra),
    ]
}

pub(crate) fn classes(board: &RandomBoard, most: usize) -> Table {
    let names: Vec<&str> =
        board.standings.iter().take(most).map(|it| it.scheduler.as_str()).collect();
    let mut columns = vec![Column::new("property", Align::Left), Column::new("of", Align::Right)];
    let column = |(at, name): (usize, &&str)| {
        Column::new(name, Align::Right).dispensable(u8::try_from(at).unwrap_or(u8::MAX))
    };
    columns.extend(names.iter().enumerate().map(column));
    columns.extend([BEST, AGAIN].map(|name| Column::new(name, Align::Right)));
    let mut table = Table::new(columns);
    for class in &board.classes {
        let share = |name: &&str| {
            class.against.get(*name).map_or_else(|| "-".to_owned(), |it| percent(it.worse_10))
        };
        let mut row = vec![class.class.clone(), class.comparisons.to_string()];
        row.extend(names.iter().map(share));
        let share = |it: &Option<Against>| {
            it.as_ref().map_or_else(|| "-".to_owned(), |it| percent(it.worse_10))
        };
        row.extend([share(&class.best_of_each), share(&class.again)]);
        table.row(Emphasis::None, row);
    }
    table
}

pub(crate) fn about_map(board: &RandomBoard) -> String {
    format!(
        "{}: geometric mean of its time over that of `startable`, by the ratios of the second path to the first; \
         below 1 is faster. Cells with fewer than {MIN_COMPARISONS} comparisons are empty.",
        first(board)
    )
}

/// Returns the map: a row for each range of the RTT, a column for each range of the rate.
fn map(board: &RandomBoard) -> Table {
    let rates: Vec<[Option<f64>; 2]> = columns_of(board);
    let mut columns = vec![Column::new("RTT \\ rate", Align::Left)];
    columns.extend(rates.iter().map(|range| Column::new(&range_text(*range), Align::Right)));
    let mut table = Table::new(columns);
    for row in board.map.chunks(rates.len().max(1)) {
        let Some(head) = row.first() else { continue };
        let mut cells = vec![range_text(head.rtt_ratio)];
        cells.extend(row.iter().map(mean_text));
        table.row(Emphasis::None, cells);
    }
    table
}

pub(crate) fn columns_of(board: &RandomBoard) -> Vec<[Option<f64>; 2]> {
    let first = board.map.first().map(|cell| cell.rtt_ratio);
    let of_row = board.map.iter().take_while(|cell| Some(cell.rtt_ratio) == first);
    of_row.map(|cell| cell.rate_ratio).collect()
}

fn mean_text(cell: &MapCell) -> String {
    match cell.mean {
        Some(mean) if cell.comparisons >= MIN_COMPARISONS => format!("{mean:.2}"),
        _ => String::new(),
    }
}

/// Returns a range of ratios: `< 1/16`, `1/4..1/1.5`, `> 16`.
pub(crate) fn range_text([low, high]: [Option<f64>; 2]) -> String {
    let one = |ratio: f64| match ratio < 1.0 {
        true => format!("1/{}", short(1.0 / ratio)),
        false => short(ratio),
    };
    match (low, high) {
        (Some(low), Some(high)) => format!("{}..{}", one(low), one(high)),
        (None, Some(high)) => format!("< {}", one(high)),
        (Some(low), None) => format!("> {}", one(low)),
        (None, None) => "any".to_owned(),
    }
}

/// Formats a number with one digit after the point if it has one.
fn short(number: f64) -> String {
    let tenths = (number * 10.0).round() / 10.0;
    if tenths.fract() == 0.0 { format!("{tenths:.0}") } else { format!("{tenths:.1}") }
}

fn times(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.2}x") } else { format!("{ratio:.0}x") }
}

/// Returns a command on lines of its own, indented by two columns.
fn again_command(command: &str, width: usize) -> String {
    let text = again(command, width);
    let lines = text.strip_prefix("Run again:").unwrap_or(&text);
    lines.strip_prefix('\n').map_or_else(|| format!(" {lines}"), str::to_owned)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use plait_lab::scoreboard::random::{Comparison, PathOrder, Played, RandomOptions, judge};
    use std::collections::BTreeMap;

    pub(crate) fn board() -> RandomBoard {
        let played = |number: u32, class: &str, ecf: f64, minrtt: f64| Played {
            number,
            command: format!("plait compare --path a:rtt=20ms,rate=9mbit --seed {number}"),
            classes: vec![class.to_owned(), "two paths".to_owned()],
            rate_ratio: 0.1 * f64::from(number + 1),
            rtt_ratio: 3.0,
            comparisons: vec![Comparison {
                measure: "completion_ms".to_owned(),
                first: 150.0,
                known: 100.0,
                startable: 120.0,
                again: 126.0,
                bound: (number == 0).then_some(60.0),
                values: [("ecf".to_owned(), ecf), ("minrtt".to_owned(), minrtt)].into(),
            }],
            extra: BTreeMap::from([("ecf".to_owned(), 0.04)]),
        };
        let options = RandomOptions {
            count: 3,
            seed: 7,
            order: PathOrder::Startable,
            runs: 1,
            schedulers: "ecf,minrtt".to_owned(),
            settings: Vec::new(),
            jobs: None,
            command: "plait scoreboard --random 4 --seed 7".to_owned(),
        };
        let cells = vec![
            played(0, "loss", 90.0, 100.0),
            played(1, "loss", 123.0, 300.0),
            played(2, "jitter", 80.0, 100.0),
        ];
        judge(&options, cells, vec!["cell 3: plain TCP finishes on no path".to_owned()], false)
    }

    #[test]
    fn a_board_reads_at_a_glance() {
        insta::assert_snapshot!(text(&board(), 80, false));
    }

    #[test]
    fn its_page_has_every_scheduler() {
        insta::assert_snapshot!(markdown(&board()));
    }

    #[test]
    fn csv_has_a_line_for_each_value() {
        let csv = csv(&board());
        assert_eq!(csv.lines().count(), 1 + 3 * 2);
        let line = "\n0,completion_ms,ecf,90,120,100,150,60,0.04,loss + two paths\n";
        assert!(csv.contains(line), "{csv}");
    }

    #[test]
    fn ranges_read_as_ratios() {
        let texts = [
            range_text([None, Some(1.0 / 16.0)]),
            range_text([Some(0.25), Some(1.0 / 1.5)]),
            range_text([Some(16.0), None]),
        ];
        assert_eq!(texts, ["< 1/16", "1/4..1/1.5", "> 16"]);
    }
}
