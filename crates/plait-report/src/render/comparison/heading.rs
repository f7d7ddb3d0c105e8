//! The text above the table: the question and the paths.

use super::tables::of_messages;
use super::{made, primary, undecided};
use crate::render::{percent, wrap};
use plait_lab::{PathReport, Report};

/// Returns the workload, the measure, the number of runs and the seed in one line.
pub(super) fn title(report: &Report) -> String {
    let (words, unit, more) = primary(report);
    let better = if more { "higher" } else { "lower" };
    let runs = match (made(report), report.runs) {
        (_, 1) if undecided(report) => "1 run".to_owned(),
        (_, 1) => "1 run (nothing is random)".to_owned(),
        (made, runs) if made < runs => format!("{made} of {runs} runs"),
        (_, runs) => format!("{runs} runs"),
    };
    let cut = if report.interrupted { ", interrupted" } else { "" };
    let seed = report.seed;
    if of_messages(report) {
        let messages = report.rows.iter().filter_map(|row| row.messages).map(|it| it.n).max();
        return format!(
            "{}: delay of messages in ms, {better} is better; percentiles of {} messages, pooled over \
             {runs}, seed {seed}{cut}",
            report.workload,
            messages.unwrap_or(0)
        );
    }
    format!("{}: {words} in {unit}, {better} is better; {runs}, seed {seed}{cut}", report.workload)
}

/// Returns the title and the paths in lines of at most `width`.
pub(super) fn heading(report: &Report, width: usize) -> String {
    let mut lines = wrap(&title(report), width);
    for path in &report.paths {
        lines.extend(indented(&path_line(path), width));
    }
    if !report.compete.is_empty() {
        let beside = format!("competing flows, all the time: {}", report.compete.join(", "));
        lines.extend(indented(&beside, width));
    }
    if let Some(micros) = report.host_jitter_us {
        let jitter =
            format!("random delay of up to {micros} us in hosts (--exact: no delay, one run)");
        lines.extend(indented(&jitter, width));
    }
    lines.join("\n") + "\n"
}

/// Wraps text with a margin of two columns, and of four from the second line on.
fn indented(text: &str, width: usize) -> Vec<String> {
    let lines = wrap(text, width.saturating_sub(4).max(20));
    let margin =
        |(at, line): (usize, String)| format!("{}{line}", if at == 0 { "  " } else { "    " });
    lines.into_iter().enumerate().map(margin).collect()
}

fn path_line(path: &PathReport) -> String {
    let rate = |bps: Option<u64>| bps.map_or("no rate limit".to_owned(), crate::render::rate);
    let speed = match (path.rates.rate_down_bps, path.rates.rate_up_bps) {
        (down, up) if down == up => rate(down),
        (down, up) => format!("{} down, {} up", rate(down), rate(up)),
    };
    let mut words =
        vec![speed, format!("rtt {}", crate::render::millis(path.delays.rtt_us as f64 / 1e3))];
    let queue = plait_app::quantity::bytes(&path.queue).map(crate::render::bytes);
    words.push(format!("queue {}", queue.unwrap_or_else(|_| path.queue.clone())));
    let extra = |words: &mut Vec<String>, name: &str, share: f64| {
        if share > 0.0 {
            words.push(format!("{name} {}", percent(share)));
        }
    };
    extra(&mut words, "loss", path.losses.loss);
    extra(&mut words, "loss up", path.losses.loss_up);
    if path.delays.jitter_us > 0 {
        words.push(format!("jitter {}", crate::render::millis(path.delays.jitter_us as f64 / 1e3)));
    }
    if let Some(trace) = &path.trace {
        words.push(format!("trace {trace}"));
    }
    if path.backup {
        words.push("backup".to_owned());
    }
    // The settings that the text above omits, as the user wrote them.
    let told =
        ["rate=", "rtt=", "owd_", "queue=", "loss=", "loss_up=", "jitter=", "trace", "backup"];
    let whole = |said: &&String| {
        let stepped = ["rate", "rtt", "owd"].iter().any(|key| said.starts_with(key));
        let steps = stepped && said.contains('@');
        let bursts = said.starts_with("loss") && said.contains("ge:");
        let split = path.delays.owd_down_us != path.delays.owd_up_us && said.starts_with("owd_");
        let plain = told.iter().any(|key| said.starts_with(key));
        let rates = said.starts_with("rate_") && !steps;
        steps || bursts || split || !(plain || rates || said.starts_with("profile="))
    };
    words.extend(path.settings.iter().filter(whole).cloned());
    format!("{}: {}", path.name, words.join(", "))
}
