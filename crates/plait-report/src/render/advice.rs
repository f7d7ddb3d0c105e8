//! Advice whether to bond links, as text.

use super::{Align, Column, Emphasis, Table, again, bytes, figure, percent, wrap};
use plait_app::measure::MEASURES;
use plait_lab::advise::{Advice, Choice, FirstPath, Gain, GoalLine, Line, Verdict};
use plait_lab::scenario::quoted;

/// Returns the advice as text: the answer, a line for each load, what helps more, and the commands.
#[must_use]
pub fn text(advice: &Advice, width: usize, colour: bool) -> String {
    let mut text = format!("{}\n", wrap(&advice.answer, width).join("\n"));
    if !advice.lines.is_empty() {
        let table = table(advice);
        text += &format!("\n{}", table.to_text(width, colour));
        let left_out = table.left_out(width);
        let mut legend = legend(advice, &left_out);
        if !left_out.is_empty() {
            legend += &format!(" Not enough columns for: {}.", left_out.join(", "));
        }
        text += &format!("\n{}\n", wrap(&legend, width).join("\n"));
    }
    if let Some(sentence) = goal(advice) {
        text += &format!("\n{}\n", wrap(&sentence, width).join("\n"));
    }
    if let Some(table) = goals(advice) {
        text += &format!("\n{}", table.to_text(width, colour));
        text += &format!("\n{}\n", wrap(&goals_legend(advice), width).join("\n"));
    }
    if let Some(sentence) = remedies(advice) {
        text += &format!("\n{}\n", wrap(&sentence, width).join("\n"));
    }
    let commands = commands(advice);
    if !commands.is_empty() {
        let purposes = commands.iter().map(|it| format!("  # {}\n  {}\n", it.purpose, it.line));
        text += &format!("\n{}\n", wrap(ABOUT_COMMANDS, width).join("\n"));
        text.extend(purposes);
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
    text.extend(goal(advice).map(|sentence| format!("\n{sentence}\n")));
    if let Some(table) = goals(advice) {
        text += &format!("\n{}\n{}\n", table.to_markdown(), goals_legend(advice));
    }
    text.extend(remedies(advice).map(|sentence| format!("\n{sentence}\n")));
    let commands = commands(advice);
    if !commands.is_empty() {
        let lines: Vec<String> =
            commands.iter().map(|it| format!("# {}\n{}\n", it.purpose, it.line)).collect();
        text += &format!("\n{ABOUT_COMMANDS}\n\n```console\n{}```\n", lines.concat());
    }
    text + &format!("\n    {}\n", advice.command)
}

/// Returns the lines of the loads as comma-separated values.
#[must_use]
pub fn csv(advice: &Advice) -> String {
    let mut header = [
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
    ]
    .map(str::to_owned)
    .to_vec();
    let of_paths = advice.paths.iter();
    header
        .extend(of_paths.flat_map(|it| [format!("path_bytes.{it}"), format!("extra_bytes.{it}")]));
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
            let bytes = line.path_bytes.iter().zip(&line.extra_bytes);
            row.extend(bytes.flat_map(|it| [it.0, it.1]).map(|it| format!("{it:.0}")));
            row
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    super::table::csv(&header, &rows)
}

/// Returns the word for a verdict.
#[must_use]
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Gain => "gain",
        Verdict::Loss => "loss",
        Verdict::Nothing => "nothing",
        Verdict::Unclear => "unclear",
        Verdict::Stalled => "stalled",
    }
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
    columns.push(Column::new(&advice.paths.join("/"), Align::Right).dispensable(1));
    columns.push(Column::new("extra", Align::Right).dispensable(3));
    let mut table = Table::new(columns);
    for line in &advice.lines {
        let emphasis = match line.verdict {
            Verdict::Gain => Emphasis::Best,
            Verdict::Loss => Emphasis::Bad,
            Verdict::Nothing | Verdict::Unclear | Verdict::Stalled => Emphasis::None,
        };
        table.row(emphasis, cells(line));
    }
    table
}

fn cells(line: &Line) -> Vec<String> {
    let unit = MEASURES.iter().find(|it| it.name == line.measure).map_or("", |it| it.unit);
    let sent: Vec<String> = line.path_bytes.iter().map(|bytes| megabytes(*bytes)).collect();
    vec![
        line.name.clone(),
        format!("{} {}", line.best_path, reached(line, line.alone, unit)),
        reached(line, line.bonded, ""),
        gain(line, line.gain.median),
        format!("{} to {}", times(line.gain.low), times(line.gain.high)),
        gain(line, line.tail),
        line.backup.map_or_else(|| "-".to_owned(), |it| times(it.median)),
        format!("{} MB", sent.join("/")),
        percent(line.extra),
    ]
}

/// Formats a value of a line with its unit; `never` if loads do not end.
pub(crate) fn reached(line: &Line, value: f64, unit: &str) -> String {
    match line.fails(value) {
        true => "never".to_owned(),
        false => format!("{} {unit}", figure(value)).trim_end().to_owned(),
    }
}

/// Formats a gain of a line; `-` if a load never ends on the best path alone.
fn gain(line: &Line, ratio: f64) -> String {
    if line.fails(line.alone) { "-".to_owned() } else { times(ratio) }
}

/// Formats a ratio of speeds: `1.31x`.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        it if it < 0.005 => "<0.01x".to_owned(),
        it if it < 9.995 => format!("{it:.2}x"),
        it if it < 1_000.0 => format!("{it:.0}x"),
        _ => ">1000x".to_owned(),
    }
}

/// Formats bytes in MB without the unit.
fn megabytes(bytes: f64) -> String {
    match bytes / 1e6 {
        0.0 => "0".to_owned(),
        it if it < 0.0005 => "<0.001".to_owned(),
        it if it < 0.0995 => format!("{it:.3}"),
        it => format!("{it:.2}"),
    }
}

/// Explains the columns, except those that are left out.
pub(crate) fn legend(advice: &Advice, left_out: &[&str]) -> String {
    let interrupted = if advice.drawn.interrupted { ", interrupted" } else { "" };
    let draws = advice.drawn.draws;
    let links = if draws == 1 { "link" } else { "links" };
    let mut text = format!(
        "Over {draws} {links} drawn from what is known about them{interrupted}. gain: how much better the bonded links are than \
         the best path alone (plain TCP), in the median of the draws; 80 %: the range that holds eight of ten gains. tail: the \
         gain in the slowest tenth of the draws; for calls, in the slowest hundredth of the messages.",
    );
    if draws < SURE_DRAWS {
        text += &format!(
            " With fewer than {SURE_DRAWS} draws, the range is too narrow: use more --draws."
        );
    }
    text += &baseline(advice);
    for line in advice.lines.iter().filter(|it| it.verdict == Verdict::Stalled) {
        text += &format!(" {}: messages wait for the end of the outage.", line.name);
    }
    if let Some(sentence) = first_sentence(advice) {
        text += &format!(" {sentence}");
    }
    let paths = advice.paths.join("/");
    let others = [
        ("backup", "the gain if the other paths are used only while this one is down"),
        (paths.as_str(), "payload sent on each path, with copies and retransmissions"),
        ("extra", "copies over payload"),
    ];
    for (name, meaning) in others.iter().filter(|it| !left_out.contains(&it.0)) {
        text += &format!(" {name}: {meaning}.");
    }
    text
}

/// Returns the sentences about paths that are not the best path alone, because the user spares them.
fn baseline(advice: &Advice) -> String {
    let mut text = String::new();
    if !advice.backups.is_empty() {
        text += &format!(" {} {} not the best path alone.", backups(advice), be_backup(advice));
    }
    let quotas = advice.paths.iter().zip(&advice.prices);
    for (path, price) in quotas.filter(|it| !it.1.exceeded_by.is_empty()) {
        let loads = price.exceeded_by.join(", ");
        text += &format!(" The quota of {path} does not suffice for {loads}.");
    }
    text
}

/// Returns the names of the backups.
fn backups(advice: &Advice) -> String {
    advice.backups.join(" and ")
}

/// Returns the predicate for the backups.
fn be_backup(advice: &Advice) -> &'static str {
    if advice.backups.len() == 1 { "is a backup, so it is" } else { "are backups, so they are" }
}

/// Returns the sentence about what else helps; `None` if nothing does.
pub(crate) fn remedies(advice: &Advice) -> Option<String> {
    let each: Vec<String> = advice
        .remedies
        .iter()
        .map(|it| match &it.first {
            Some(first) => format!("{} makes {}", it.change, gains(first)),
            None => format!("{} makes {} {:.2}x faster", it.change, it.load, it.gain),
        })
        .collect();
    (!each.is_empty()).then(|| format!("What else helps the bonded links: {}.", each.join("; ")))
}

/// Returns the loads that gain from another first path, with their ranges. A load that does not end on the first path
/// has none.
fn gains(first: &FirstPath) -> String {
    let loads: Vec<String> = first
        .loads
        .iter()
        .map(|it| {
            let Gain { median, low, high } = it.gain;
            if it.only {
                return format!("{} possible", it.load);
            }
            format!("{} {} faster ({} to {})", it.load, times(median), times(low), times(high))
        })
        .collect();
    loads.join(" and ")
}

/// Says on which path bonded connections begin in place of the first one, and what gains from that.
fn first_sentence(advice: &Advice) -> Option<String> {
    let first = advice.first.as_ref()?;
    Some(format!("Bonded connections begin on {}, which makes {}.", first.path, gains(first)))
}

/// Introduces the commands.
pub(crate) const ABOUT_COMMANDS: &str = "To bond them, put the device or the address of each path in place of its \
    name (docs/guides/deploy.md has a dry run):";

/// A command that bonds the links.
pub(crate) struct Command {
    /// What it is for.
    pub(crate) purpose: &'static str,
    /// The command line.
    pub(crate) line: String,
}

/// Returns the commands that bond the links, for downloads from one server and for all programs of a computer.
/// Returns none if there is no goal to take.
pub(crate) fn commands(advice: &Advice) -> Vec<Command> {
    let Some(goal) = advice.take.as_ref().map(|it| it.goal.as_str()) else { return Vec::new() };
    let first = first_path(advice);
    let mut paths: Vec<&String> = advice.paths.iter().collect();
    paths.sort_by_key(|path| Some(path.as_str()) != first);
    let each = |flag: &str| -> String {
        paths.iter().map(|path| format!(" --{flag} {}", quoted(path))).collect()
    };
    let costs = advice.take.as_ref().map(|it| it.costs.as_slice()).unwrap_or_default();
    let prices = |name: fn(&str) -> String| -> String {
        let of = advice.paths.iter().enumerate().map(|(at, path)| {
            let name = name(path);
            let cost = match costs.get(at).copied().unwrap_or(0) {
                0 => String::new(),
                cost => format!(" --cost {name}={cost}"),
            };
            let quota = advice.prices.get(at).and_then(|it| it.quota.as_ref());
            let quota = quota.map(|it| format!(" --quota {name}={it}"));
            cost + &quota.unwrap_or_default()
        });
        of.collect()
    };
    let rest = match goal {
        "aggregate" => String::new(),
        goal => format!(" --goal {goal}"),
    };
    let client = prices(quoted) + &rest;
    let server = prices(|path| format!("NETWORK_OF_{}", path.to_uppercase())) + &rest;
    vec![
        Command {
            purpose: "on the server",
            line: format!("plait serve --listen ADDRESS:80 --to 127.0.0.1:8080{server}"),
        },
        Command {
            purpose: "one download",
            line: format!("plait get http://ADDRESS/file{}{client}", each("from")),
        },
        Command {
            purpose: "all local programs, through a SOCKS proxy",
            line: format!("plait proxy --socks 127.0.0.1:1080{}{client}", each("via")),
        },
    ]
}

/// Returns the path that connections must begin on, if the goal uses one path at a time.
fn first_path(advice: &Advice) -> Option<&str> {
    let one_at_a_time =
        advice.prices.is_empty() && advice.take.as_ref().is_some_and(|it| it.goal == "handover");
    let mut backed = advice.lines.iter().filter(|it| it.outage && it.backup.is_some());
    let best = backed.next().or_else(|| advice.lines.iter().find(|it| !it.outage))?;
    one_at_a_time.then_some(best.best_path.as_str())
}

/// Returns the names of the paths that cost more than the cheapest one, or have a quota.
fn priced_paths(advice: &Advice) -> Vec<usize> {
    let least = advice.prices.iter().map(|it| it.cost).min().unwrap_or(0);
    let numbered = advice.prices.iter().enumerate();
    numbered.filter(|(_, it)| it.cost > least || it.quota.is_some()).map(|(at, _)| at).collect()
}

/// Returns the bytes of a load on the paths with a price.
fn priced_bytes(advice: &Advice, line: &GoalLine) -> f64 {
    priced_paths(advice).iter().filter_map(|at| line.path_bytes.get(*at)).sum()
}

/// Returns the names of the paths with a price as in a sentence.
fn priced_names(advice: &Advice) -> String {
    let names: Vec<&str> = priced_paths(advice)
        .iter()
        .filter_map(|at| advice.paths.get(*at))
        .map(String::as_str)
        .collect();
    names.join(" and ")
}

/// Draws from which on the ends of an 80 % interval are no longer its least and its largest values.
const SURE_DRAWS: u32 = 10;
/// The load whose bytes are in the text.
const LARGE: &str = "large downloads";

/// Returns a sentence about the bytes of a large download on each path.
fn large_download(paths: &[String], sent: &[f64]) -> String {
    let each: Vec<String> = paths
        .iter()
        .zip(sent)
        .map(|(path, sent)| format!("{} on {path}", bytes(sent.round() as u64)))
        .collect();
    format!(" A large download then sends {}.", each.join(" and "))
}

/// Returns the sentences about the scheduler and the goal to take; `None` if there is none.
pub(crate) fn goal(advice: &Advice) -> Option<String> {
    let mut text = goal_alone(advice)?;
    if !advice.backups.is_empty() {
        let backups = backups(advice);
        let cost = if advice.backups.len() == 1 { "costs" } else { "cost" };
        text += &format!(
            " In the commands, {backups} {cost} more than all other paths: with this goal, data goes there only while all \
             others are down."
        );
    }
    Some(text)
}

fn goal_alone(advice: &Advice) -> Option<String> {
    let Choice { goal, scheduler, .. } = advice.take.as_ref()?;
    if advice.goals.is_empty() {
        return Some(match first_path(advice) {
            Some(first) => format!(
                "Use the scheduler {scheduler} with the goal handover, and begin on {first}: the other paths carry \
                 data only while it is down."
            ),
            None => {
                let large = advice.lines.iter().find(|it| it.name == LARGE);
                let sent = large.map(|it| large_download(&advice.paths, &it.path_bytes));
                let defaults = if goal == "aggregate" { " Both are defaults." } else { "" };
                let sent = sent.unwrap_or_default();
                format!("Use the scheduler {scheduler} with the goal {goal}.{defaults}{sent}")
            }
        });
    }
    let of = |goal: &str| -> Vec<&GoalLine> {
        advice.goals.iter().filter(|it| it.goal == goal).collect()
    };
    let ours = of(goal);
    let enough = ours.iter().filter(|it| it.suffices).count();
    let loads = match ours.len() == enough {
        true => "every load".to_owned(),
        false => format!("{enough} of {} loads", ours.len()),
    };
    let names = priced_names(advice);
    let on = |line: &GoalLine| bytes(priced_bytes(advice, line).round() as u64);
    let mut text = format!(
        "Use the scheduler {scheduler} with the goal {goal}: for {loads}, no goal is more than 5 % faster."
    );
    if let Some(large) = ours.iter().find(|it| it.load == LARGE) {
        text += &large_download(&advice.paths, &large.path_bytes);
    }
    let thrifty = of("thrifty");
    let slower =
        ours.iter().zip(&thrifty).map(|(ours, it)| (ours.gain.median / it.gain.median, ours, it));
    let worst = slower.max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((ratio, ours, it)) = worst.filter(|it| goal != "thrifty" && it.0 > 1.05) {
        text += &format!(
            " With thrifty, {} are {} slower, with {} in place of {} on {names}.",
            it.load,
            times(ratio),
            on(it),
            on(ours)
        );
    }
    Some(text)
}

/// Returns the table of goals; `None` if no path has a price.
pub(crate) fn goals(advice: &Advice) -> Option<Table> {
    if advice.goals.is_empty() {
        return None;
    }
    let first = &advice.goals.first()?.load;
    let words: Vec<&str> =
        advice.goals.iter().take_while(|it| it.load == *first).map(|it| it.goal.as_str()).collect();
    let mut columns = vec![Column::new("load", Align::Left)];
    columns.extend(words.iter().map(|word| Column::new(word, Align::Right)));
    let mut table = Table::new(columns);
    for of_load in advice.goals.chunks(words.len()) {
        let cell = |it: &GoalLine| {
            let mark = if it.advised { "*" } else { "" };
            let bytes = megabytes(priced_bytes(advice, it));
            format!("{mark}{} {bytes} MB", times(it.gain.median))
        };
        let name = of_load.iter().take(1).map(|it| it.load.clone());
        table.row(Emphasis::None, name.chain(of_load.iter().map(cell)).collect());
    }
    Some(table)
}

/// Explains the table of goals.
pub(crate) fn goals_legend(advice: &Advice) -> String {
    format!(
        "Goals: the gain over the best path alone, in the median of the draws, and the MB on {}. *: of the goals \
         within 5 % of the fastest, the one with the fewest bytes there.",
        priced_names(advice)
    )
}

#[cfg(test)]
pub(crate) mod tests;
