//! The report of a swarm as text.

use super::{Align, Column, Emphasis, Table, again, percent, wrap};
use plait_lab::swarm::{Broken, Count, KINDS, Report, ServerReport, Verdict, Violation};

/// Describes a violation and its place.
#[must_use]
pub fn sentence(violation: &Violation) -> String {
    let Violation { broken, what, at_ns, segments } = violation;
    let kind = match broken {
        Broken::Invariant => "invariant broken",
        Broken::Failed => "failed",
        Broken::Stuck => "stuck",
        Broken::Lingering => "lingering",
        Broken::Panic => "panic",
    };
    format!("{kind} at {:.6} s, segment {segments}: {what}", *at_ns as f64 / 1e9)
}

fn faults(report: &Report) -> Table {
    let mut table = Table::new(vec![
        Column::new("fault", Align::Left),
        Column::new("drawn", Align::Right),
        Column::new("met", Align::Right),
        Column::new("share", Align::Right),
        Column::new("what", Align::Left).prose(),
    ]);
    for count in &report.coverage.faults {
        let summary = KINDS.iter().find(|kind| kind.name == count.name).map(|kind| kind.summary);
        let cells = vec![
            count.name.clone(),
            count.drawn.to_string(),
            count.met.unwrap_or(count.drawn).to_string(),
            percent(count.share),
            summary.unwrap_or_default().to_owned(),
        ];
        table.row(Emphasis::None, cells);
    }
    table
}

/// Returns the report in Markdown, with the same lines as [`csv`].
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut table = faults(report);
    let [name, seeds, broken, _] = broke(report);
    let share = percent(report.broken as f64 / report.seeds.max(1) as f64);
    let summary = "seeds that failed, of all seeds".to_owned();
    table.row(Emphasis::None, vec![name, seeds, broken, share, summary]);
    table.to_markdown()
}

/// Returns the row of violations: all seeds, the seeds with a violation, and their share.
fn broke(report: &Report) -> [String; 4] {
    let share = report.broken as f64 / report.seeds.max(1) as f64;
    ["broke".to_owned(), report.seeds.to_string(), report.broken.to_string(), share.to_string()]
}

/// Returns the report as CSV: a line for each kind of fault, and one for the seeds with a
/// violation.
#[must_use]
pub fn csv(report: &Report) -> String {
    let row = |Count { name, drawn, met, share }: &Count| {
        let met = met.unwrap_or(*drawn);
        vec![name.clone(), drawn.to_string(), met.to_string(), share.to_string()]
    };
    let mut rows: Vec<Vec<String>> = report.coverage.faults.iter().map(row).collect();
    rows.push(broke(report).to_vec());
    super::csv(&["fault", "drawn", "met", "share"], &rows)
}

/// Returns the report as text.
#[must_use]
pub fn text(report: &Report, width: usize, colour: bool) -> String {
    let mut text = faults(report).to_text(width, colour);
    let list = |name: &str, counts: &[Count]| {
        let each = counts.iter().map(|it| format!("{} {}", it.name, it.drawn));
        let each = each.collect::<Vec<_>>().join(", ");
        let lines = wrap(&each, width.saturating_sub(13));
        format!("{name:<12} {}\n", lines.join(&format!("\n{:13}", "")))
    };
    text += "\n";
    text += &list("schedulers", &report.coverage.schedulers);
    text += &list("controllers", &report.coverage.controllers);
    text += &format!("{:<12} {}\n", "faultless", report.coverage.faultless);
    text += &format!("{:<12} {}\n", "given up", report.coverage.given_up);
    let why = "Given up: connections that cannot continue by RFC 8684 section 3.7, or because plain TCP \
               lost its address.";
    text += &format!("{}\n", wrap(why, width).join("\n"));
    for failure in &report.failures {
        let smaller = failure.shrunk.as_ref();
        let smaller = smaller.map(|it| (it.replay.as_str(), &it.violation, it.last.as_slice()));
        text += &format!("\nseed {}: ", failure.seed);
        text += &failure_text(&failure.violation, &failure.replay, smaller);
    }
    if let Some(server) = &report.server {
        text += &server_text(server, &list);
    }
    let servers = report.server.as_ref().map_or(0, |it| it.failures.len());
    let left_out = report.broken - (report.failures.len() + servers) as u64;
    if left_out > 0 {
        text += &format!("\nand {left_out} more cases\n");
    }
    let interrupted = if report.interrupted { ", interrupted" } else { "" };
    text += &format!(
        "\n{} seeds{interrupted}, {} failed; {:.0} s of virtual time, {} segments\n",
        report.seeds, report.broken, report.virtual_s, report.segments
    );
    text += &format!("digest {}\n", report.digest);
    text += &format!("{}\n", again(&report.command, width));
    text
}

/// Returns a failure, the command that runs it again, and a smaller case with its command, its
/// failure and the last events.
fn failure_text(
    violation: &Violation,
    replay: &str,
    smaller: Option<(&str, &Violation, &[String])>,
) -> String {
    let mut text = format!("{}\n  again    {replay}\n", sentence(violation));
    if let Some((replay, violation, last)) = smaller {
        text += &format!("  smaller  {replay}\n           {}\n  before\n", sentence(violation));
        last.iter().for_each(|line| text += &format!("{line}\n"));
    }
    text
}

/// Returns counts and failures of the cases of servers.
fn server_text(server: &ServerReport, list: &dyn Fn(&str, &[Count]) -> String) -> String {
    let mut text = list("servers with", &server.drawn);
    text += &format!(
        "{} servers, {} failed; {:.0} s of virtual time, {} packets\n",
        server.seeds, server.broken, server.virtual_s, server.packets
    );
    for failure in &server.failures {
        let smaller = failure.shrunk.as_ref();
        let smaller = smaller.map(|it| (it.replay.as_str(), &it.violation, it.last.as_slice()));
        text += &format!("\nserver of seed {}: ", failure.seed);
        text += &failure_text(&failure.violation, &failure.replay, smaller);
    }
    text
}

/// Returns the outcome of one case after its last events.
#[must_use]
pub fn replayed(last: &[String], verdict: &Verdict, command: &str) -> String {
    let mut text: String = last.iter().map(|line| format!("{line}\n")).collect();
    let outcome = match &verdict.violation {
        Some(violation) => sentence(violation),
        None => format!("over at {:.6} s, nothing broke", verdict.ended.as_nanos() as f64 / 1e9),
    };
    text += &format!("\n{outcome}\n");
    text += &format!("{} segments, digest {:016x}\n", verdict.segments, verdict.hash);
    text += &format!("Run again: {command}\n");
    text
}
