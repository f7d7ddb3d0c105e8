//! Advice whether to bond links, as text.

use super::{Align, Column, Emphasis, Table, again, figure, percent, wrap};
use plait_app::measure::MEASURES;
use plait_lab::advise::{Advice, Gain, Line, Verdict};

/// Returns the advice as text: the answer, a line for each load, what helps more, and the commands.
#[must_use]
pub fn text(advice: &Advice, width: usize, colour: bool) -> String {
    let mut text = format!("{}\n", wrap(&advice.answer, width).join("\n"));
    if !advice.lines.is_empty() {
        let table = table(advice);
        text += &format!("\n{}", table.to_text(width, colour));
        let legend = legend(advice, &table.left_out(width));
        text += &format!("\n{}\n", wrap(&legend, width).join("\n"));
    }
    if let Some(sentence) = remedies(advice) {
        text += &format!("\n{}\n", wrap(&sentence, width).join("\n"));
    }
    if bonds(advice) {
        text += &format!("\n{}", commands());
    }
    text + "\n" + &again(&advice.command, width) + "\n"
}

/// Returns the advice as Markdown.
#[must_use]
pub fn markdown(advice: &Advice) -> String {
    let mut text = format!("{}\n", advice.answer);
    if !advice.lines.is_empty() {
        text += &format!("\n{}\n{}\n", table(advice).to_markdown(), legend(advice, &[]));
    }
    if let Some(sentence) = remedies(advice) {
        text += &format!("\n{sentence}\n");
    }
    if bonds(advice) {
        text += &format!("\n```console\n{}```\n", commands());
    }
    text + &format!("\n    {}\n", advice.command)
}

/// Returns the lines of the loads as comma-separated values.
#[must_use]
pub fn csv(advice: &Advice) -> String {
    let header = [
        "load",
        "workload",
        "measure",
        "best_path",
        "alone",
        "bonded",
        "gain",
        "gain_low",
        "gain_high",
        "gain_tail",
        "backup_gain",
        "extra",
        "verdict",
    ];
    let rows: Vec<Vec<String>> = advice
        .lines
        .iter()
        .map(|line| {
            let backup = line.backup.map_or_else(String::new, |it| it.median.to_string());
            let Gain { median, low, high } = line.gain;
            let numbers = [line.alone, line.bonded, median, low, high, line.tail];
            let mut row = vec![
                line.name.clone(),
                line.workload.clone(),
                line.measure.clone(),
                line.best_path.clone(),
            ];
            row.extend(numbers.iter().map(ToString::to_string));
            row.extend([backup, line.extra.to_string(), word(line.verdict).to_owned()]);
            row
        })
        .collect();
    super::table::csv(&header, &rows)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Gain => "gain",
        Verdict::Loss => "loss",
        Verdict::Nothing => "nothing",
        Verdict::Unclear => "unclear",
    }
}

/// Returns true if the second path is worth having, for speed or as a backup.
fn bonds(advice: &Advice) -> bool {
    advice.lines.iter().any(|line| line.verdict == Verdict::Gain)
}

fn table(advice: &Advice) -> Table {
    let mut columns = vec![
        Column::new("load", Align::Left),
        Column::new("best path alone", Align::Left),
        Column::new("bonded", Align::Right),
        Column::new("gain", Align::Right),
        Column::new("80 %", Align::Right),
        Column::new("tail", Align::Right),
        Column::new("backup", Align::Right).dispensable(2),
    ];
    columns.push(Column::new(&advice.paths.join("/"), Align::Right).dispensable(3));
    columns.push(Column::new("extra", Align::Right).dispensable(1));
    let mut table = Table::new(columns);
    for line in &advice.lines {
        let emphasis = match line.verdict {
            Verdict::Gain => Emphasis::Best,
            Verdict::Loss => Emphasis::Bad,
            Verdict::Nothing | Verdict::Unclear => Emphasis::None,
        };
        table.row(emphasis, cells(line));
    }
    table
}

fn cells(line: &Line) -> Vec<String> {
    let unit = MEASURES.iter().find(|it| it.name == line.measure).map_or("", |it| it.unit);
    let times = |ratio: f64| match ratio {
        ratio if ratio < 10.0 => format!("{ratio:.2}x"),
        ratio => format!("{ratio:.0}x"),
    };
    let shares: Vec<String> =
        line.shares.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
    vec![
        line.name.clone(),
        format!("{} {} {unit}", line.best_path, figure(line.alone)),
        figure(line.bonded),
        times(line.gain.median),
        format!("{} to {}", times(line.gain.low), times(line.gain.high)),
        times(line.tail),
        line.backup.map_or_else(|| "-".to_owned(), |it| times(it.median)),
        format!("{} %", shares.join("/")),
        percent(line.extra),
    ]
}

/// Explains the columns, except those that are left out.
fn legend(advice: &Advice, left_out: &[&str]) -> String {
    let mut text = format!(
        "Over {} links drawn from what is known. gain: how much better the bonded links are than the best path alone \
         (plain TCP), in the median of the draws; 80 %: the range that holds eight of ten draws. tail: the gain in \
         the slowest tenth of the draws, for calls in the slowest hundredth of the messages.",
        advice.draws,
    );
    let paths = advice.paths.join("/");
    let others = [
        ("backup", "the gain if the other paths are used only while this one is down"),
        (paths.as_str(), "data on each path"),
        ("extra", "copies over payload"),
    ];
    for (name, meaning) in others.iter().filter(|it| !left_out.contains(&it.0)) {
        text += &format!(" {name}: {meaning}.");
    }
    text
}

fn remedies(advice: &Advice) -> Option<String> {
    let each: Vec<String> = advice
        .remedies
        .iter()
        .map(|it| format!("{} makes {} {:.2}x faster", it.change, it.load, it.gain))
        .collect();
    (!each.is_empty()).then(|| format!("What else helps the bonded links: {}.", each.join("; ")))
}

/// The commands that bond links, for downloads from one server and for all programs of a computer.
fn commands() -> String {
    "To bond them (docs/guides/deploy.md has the addresses and a dry run):\n  \
     plait serve --listen ADDRESS:80 --to 127.0.0.1:8080        on the server\n  \
     plait get http://ADDRESS/file --from wlan0 --from wwan0    one download\n  \
     plait proxy --socks 127.0.0.1:1080 --via wlan0 --via wwan0 all local programs\n"
        .to_owned()
}
