//! A race as tables: the senders live, and the simulator's prediction beside each.

use super::{Align, Column, Emphasis, Table, again, csv as written_csv, figure, percent, wrap};
use plait_lab::race::{HeatReport, RaceDocument, RaceMeasure, RaceRow};
use plait_lab::stats::Summary;
use std::collections::BTreeSet;

/// Heading of the ratios to the best path.
const RATIO: &str = "over best path";
/// Heading of predictions.
const PREDICTED: &str = "predicted";

/// Heading of the predicted shares of the paths.
const PREDICTED_SHARES: &str = "predicted shares";

/// Explains the values.
const ABOUT_VALUES: &str =
    "The value of a measure is the median over the runs, with the smallest and the largest one.";
/// Explains the ratios to the best path.
const ABOUT_RATIO: &str = " `over best path`: typical ratio of a run to that of the best plain TCP, with its 95 % interval.";
/// Explains the columns of predictions.
const ABOUT_PREDICTIONS: &str =
    " `predicted`: median in the simulator. `off`: difference of the live median from it.";

/// Explains the columns that the tables of the heats show.
fn legend(document: &RaceDocument, width: usize) -> String {
    let (mut ratio, mut shares, mut predicted_shares) = (false, false, false);
    let mut missed: Vec<String> = Vec::new();
    for heat in &document.heats {
        let (table, names) = (table(document, heat), names_of_paths(heat).join("/"));
        let shown = table.shown(width);
        ratio |= shown.contains(&RATIO);
        shares |= shown.contains(&names.as_str());
        predicted_shares |= shown.contains(&PREDICTED_SHARES);
        let left_out = table.left_out(width);
        missed.extend(left_out.iter().map(|it| (*it).to_owned()));
    }
    let mut text = ABOUT_VALUES.to_owned();
    if ratio {
        text += ABOUT_RATIO;
    }
    if document.predicted_runs.is_some() {
        text += ABOUT_PREDICTIONS;
    }
    if shares {
        text += " The shares of the paths are of the bytes ";
        text += match (&document.to, predicted_shares) {
            (None, true) => "that the links delivered from the sender, live and predicted.",
            (None, false) => "that the links delivered from the sender.",
            (Some(_), _) => {
                "of all frames that their devices counted in the direction of the data."
            }
        };
    }
    let mut known = BTreeSet::new();
    missed.retain(|title| known.insert(title.clone()));
    if !missed.is_empty() {
        text += &format!(" Not enough columns for: {}.", missed.join(", "));
    }
    text
}

/// Returns the race as text.
#[must_use]
pub fn text(document: &RaceDocument, width: usize, colour: bool) -> String {
    let mut text = String::new();
    for heat in &document.heats {
        text += &format!("{}\n", wrap(&title(document, heat), width).join("\n"));
        text += &format!("{}\n", table(document, heat).to_text(width, colour));
    }
    text += &format!("{}\n", wrap(&legend(document, width), width).join("\n"));
    for note in notes(document) {
        text += &format!("{}\n", wrap(&note, width).join("\n"));
    }
    text + &again(&document.command, width) + "\n"
}

/// Returns the race as Markdown.
#[must_use]
pub fn markdown(document: &RaceDocument) -> String {
    let mut text = String::new();
    for heat in &document.heats {
        text += &format!("{}\n\n{}\n", title(document, heat), table(document, heat).to_markdown());
    }
    text += &format!("{}\n", legend(document, usize::MAX / 2));
    for note in notes(document) {
        text += &format!("\n{note}\n");
    }
    text + &format!("\n    {}\n", document.command)
}

/// Returns the race as CSV, one line for each sender and measure.
#[must_use]
pub fn csv(document: &RaceDocument) -> String {
    let header = [
        "heat",
        "workload",
        "sender",
        "cc",
        "measure",
        "runs",
        "median",
        "min",
        "max",
        "mean",
        "ratio_to_best_path",
        "ratio_low",
        "ratio_high",
        "predicted_median",
        "live_over_predicted",
        "joined_runs",
        "worst_late_us",
    ];
    let mut rows = Vec::new();
    for heat in &document.heats {
        for row in &heat.rows {
            for measure in &row.measures {
                rows.push(csv_row(heat, row, measure));
            }
        }
    }
    written_csv(&header, &rows)
}

fn csv_row(heat: &HeatReport, row: &RaceRow, measure: &RaceMeasure) -> Vec<String> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let live = |of: fn(&Summary) -> f64| number(measure.live.as_ref().map(of));
    let paired = measure.paired_vs_best_path;
    let edge = |at: usize| number(paired.and_then(|it| it.ci95).map(|ci95| ci95[at]));
    vec![
        heat.name.clone(),
        heat.workload.clone(),
        row.sender.clone(),
        row.cc.clone(),
        measure.name.clone(),
        row.counted.to_string(),
        live(|it| it.median),
        live(|it| it.min),
        live(|it| it.max),
        live(|it| it.mean),
        number(paired.map(|it| it.ratio)),
        edge(0),
        edge(1),
        number(measure.predicted.map(|it| it.median)),
        number(measure.live_over_predicted),
        row.joined.map(|joined| joined.to_string()).unwrap_or_default(),
        row.worst_late_us.map(|late| late.to_string()).unwrap_or_default(),
    ]
}

fn title(document: &RaceDocument, heat: &HeatReport) -> String {
    let name = if heat.name.is_empty() { String::new() } else { format!("{}: ", heat.name) };
    let rcvbuf = heat.rcvbuf_bytes.map(|bytes| format!(", receive buffer of {bytes} bytes"));
    let (paths, rcvbuf) = (heat.paths.join(" and "), rcvbuf.unwrap_or_default());
    let to = document.to.as_ref().map(|to| format!(", far side {to}")).unwrap_or_default();
    format!("{name}{} over {paths}{to}{rcvbuf}", heat.workload)
}

/// Returns the heading of a measure.
fn heading(name: &str) -> &str {
    match name {
        "completion_ms" => "completion (ms)",
        "goodput_mbps" => "goodput (Mbit/s)",
        "message_delay_median_ms" => "delay p50 (ms)",
        "message_delay_p99_ms" => "delay p99 (ms)",
        "page_load_ms" => "page load (ms)",
        other => other,
    }
}

/// Returns the headings of the prediction of the measure at this place, which no other column has.
fn predicted_headings(at: usize, name: &str) -> [String; 2] {
    let of = match name {
        _ if at == 0 => String::new(),
        "message_delay_p99_ms" => " p99".to_owned(),
        "rebuffer_s" => " rebuffer".to_owned(),
        other => format!(" {other}"),
    };
    [PREDICTED, "off"].map(|heading| format!("{heading}{of}"))
}

fn table(document: &RaceDocument, heat: &HeatReport) -> Table {
    let predicts = document.predicted_runs.is_some();
    let right = |title: &str| Column::new(title, Align::Right);
    let mut columns = vec![Column::new("sender", Align::Left)];
    let names: Vec<&str> = heat.rows.first().map_or_else(Vec::new, |row| {
        row.measures.iter().map(|measure| measure.name.as_str()).collect()
    });
    for (at, name) in names.iter().enumerate() {
        columns.push(right(heading(name)));
        if at == 0 {
            columns.push(right(RATIO).dispensable(1));
        }
        if predicts {
            columns.extend(predicted_headings(at, name).map(|heading| right(&heading)));
        }
    }
    let known = names_of_paths(heat);
    let has_shares = !known.is_empty();
    if has_shares {
        columns.push(right(&known.join("/")).dispensable(3));
    }
    if predicts && has_shares {
        columns.push(right(PREDICTED_SHARES).dispensable(4));
    }
    columns.push(right("runs").dispensable(2));
    let mut table = Table::new(columns);
    for row in &heat.rows {
        let mut cells = vec![row.sender.clone()];
        for (at, measure) in row.measures.iter().enumerate() {
            cells.push(measure.live.as_ref().map_or_else(missing, range));
            if at == 0 {
                cells.push(against(heat, row, measure));
            }
            if predicts {
                cells.push(measure.predicted.map_or_else(missing, |it| figure(it.median)));
                let off = measure.live_over_predicted;
                cells.push(off.map_or_else(missing, |off| format!("{:+.1} %", off * 100.0)));
            }
        }
        let predicted = predicts.then_some(&row.predicted_path_share);
        for shares in [&row.path_share].into_iter().chain(predicted).filter(|_| has_shares) {
            let share = |name: &&str| shares.get(*name).map_or_else(missing, |it| percent(*it));
            cells.push(known.iter().map(share).collect::<Vec<_>>().join("/"));
        }
        cells.push(row.counted.to_string());
        let reference = row.sender.starts_with("tcp:");
        table.row(if reference { Emphasis::Reference } else { Emphasis::None }, cells);
    }
    table
}

/// Returns the names of the paths whose shares are known, in the order of the command line.
fn names_of_paths(heat: &HeatReport) -> Vec<&str> {
    let paths: Vec<&str> = heat
        .rows
        .iter()
        .flat_map(|row| row.path_share.keys().chain(row.predicted_path_share.keys()))
        .map(String::as_str)
        .collect();
    let mut known: Vec<&str> = heat.paths.iter().map(|path| name_of(path)).collect();
    known.retain(|name| paths.contains(name));
    known
}

/// Returns the name of a path that is given as on a command line.
fn name_of(path: &str) -> &str {
    path.split(':').next().unwrap_or(path)
}

fn missing() -> String {
    "-".to_owned()
}

fn range(summary: &Summary) -> String {
    let Summary { median, min, max, .. } = *summary;
    format!("{} ({} to {})", figure(median), figure(min), figure(max))
}

fn against(heat: &HeatReport, row: &RaceRow, measure: &RaceMeasure) -> String {
    if heat.best_path.as_ref() == Some(&row.sender) {
        return "best path".to_owned();
    }
    match measure.paired_vs_best_path {
        None => missing(),
        Some(found) => match found.ci95 {
            Some([low, high]) => format!("{:.2} ({low:.2} to {high:.2})", found.ratio),
            None => format!("{:.2}", found.ratio),
        },
    }
}

/// Returns remarks about runs that do not count, joins and lateness.
fn notes(document: &RaceDocument) -> Vec<String> {
    let mut notes = Vec::new();
    let rows =
        || document.heats.iter().flat_map(|heat| heat.rows.iter().map(move |row| (heat, row)));
    for (heat, row) in rows() {
        let at = if heat.name.is_empty() { String::new() } else { format!("{}, ", heat.name) };
        for failure in &row.failures {
            notes.push(format!("{at}{}: a run does not count: {failure}", row.sender));
        }
        if let Some(joined) = row.joined.filter(|joined| *joined < row.counted) {
            let alone = row.counted - joined;
            let sender = &row.sender;
            notes.push(format!(
                "{at}{sender}: no other path joined in {alone} of {} runs",
                row.counted
            ));
        }
    }
    let repeated: u32 = rows().map(|(_, row)| row.repeated).sum();
    if let Some(worst) = rows().filter_map(|(_, row)| row.worst_late_us).max() {
        notes.push(format!(
            "The emulator was at most {worst} us late. {repeated} runs were repeated because it was later."
        ));
    }
    if document.interrupted {
        notes.push("Interrupted: runs are missing.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_lab::Difference;
    use std::collections::BTreeMap;

    /// A race of one sender over emulated links. The table is 108 columns wide.
    fn race() -> RaceDocument {
        let summary = Summary::of(&[5408.0, 5410.0, 5412.0], 1, "test");
        let shares = BTreeMap::from([("fast".to_owned(), 0.79), ("slow".to_owned(), 0.21)]);
        let row = RaceRow {
            sender: "kernel:cubic".to_owned(),
            cc: "cubic".to_owned(),
            measures: vec![RaceMeasure {
                name: "completion_ms".to_owned(),
                live: summary,
                predicted: summary,
                live_over_predicted: Some(0.0),
                paired_vs_best_path: Some(Difference {
                    ratio: 0.81,
                    ci95: Some([0.8, 0.82]),
                    told_apart: true,
                    differing_runs: None,
                }),
            }],
            path_share: shares.clone(),
            predicted_path_share: shares,
            counted: 3,
            joined: Some(3),
            repeated: 0,
            worst_late_us: None,
            failures: Vec::new(),
        };
        let heat = HeatReport {
            name: String::new(),
            paths: vec!["fast:rate=10mbit".to_owned(), "slow:rate=3mbit".to_owned()],
            workload: "download:8MB".to_owned(),
            rcvbuf_bytes: None,
            best_path: Some("tcp:fast".to_owned()),
            rows: vec![row],
        };
        RaceDocument {
            schema: plait_lab::race::SCHEMA.to_owned(),
            command: "plait race".to_owned(),
            seed: 1,
            runs: 3,
            predicted_runs: Some(30),
            to: None,
            heats: vec![heat],
            interrupted: false,
        }
    }

    /// The text in one line, because the legend is wrapped.
    fn line(document: &RaceDocument, width: usize) -> String {
        text(document, width, false).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_legend_explains_the_columns_that_are_shown() {
        let race = race();
        let ratio = "`over best path`: typical ratio";
        let live = "the links delivered from the sender.";
        let both = "the links delivered from the sender, live and predicted.";
        for (width, heading, explained, other) in [
            (
                110,
                "off fast/slow predicted shares runs",
                vec![ratio, both],
                vec![live, "Not enough columns"],
            ),
            (
                92,
                "off fast/slow runs",
                vec![ratio, live, "Not enough columns for: predicted shares."],
                vec![both],
            ),
            (
                80,
                "over best path predicted off runs",
                vec![ratio, "Not enough columns for: fast/slow, predicted shares."],
                vec!["The shares"],
            ),
            (
                60,
                "completion (ms) predicted off kernel",
                vec!["Not enough columns for: over best path, fast/slow, predicted shares, runs."],
                vec!["`over best path`", "The shares"],
            ),
        ] {
            let text = line(&race, width);
            assert!(text.contains(heading), "{width}: {text}");
            for part in explained {
                assert!(text.contains(part), "{width}, {part}: {text}");
            }
            for part in other {
                assert!(!text.contains(part), "{width}, {part}: {text}");
            }
        }
        assert!(markdown(&race).contains(both));
    }

    /// A table of Markdown has all columns, and each has a heading of its own.
    #[test]
    fn no_two_columns_have_the_same_heading() {
        let mut race = race();
        let row = &mut race.heats[0].rows[0];
        for (first, second) in
            [("message_delay_median_ms", "message_delay_p99_ms"), ("bit_rate_mbps", "rebuffer_s")]
        {
            let named =
                |name: &str| RaceMeasure { name: name.to_owned(), ..row.measures[0].clone() };
            row.measures = vec![named(first), named(second)];
        }
        let text = markdown(&race);
        let header = text.lines().find(|line| line.starts_with("| sender")).unwrap();
        let titles: Vec<&str> =
            header.split('|').map(str::trim).filter(|it| !it.is_empty()).collect();
        let distinct: BTreeSet<&str> = titles.iter().copied().collect();
        assert_eq!(titles.len(), distinct.len(), "{header}");
    }

    /// If two paths share a device, their shares are unknown.
    #[test]
    fn the_legend_of_real_links_explains_shares_if_there_are_any() {
        let mut race = race();
        (race.to, race.predicted_runs) = (Some("10.99.0.1".to_owned()), None);
        race.heats[0].rows[0].predicted_path_share.clear();
        assert!(markdown(&race).contains("all frames that their devices counted"));
        race.heats[0].rows[0].path_share.clear();
        let unknown = markdown(&race);
        assert!(!unknown.contains("shares") && !unknown.contains("`predicted`"), "{unknown}");
    }
}
