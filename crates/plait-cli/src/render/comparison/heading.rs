//! What is above the table: the question, and the paths.

use super::primary;
use crate::render::percent;
use plait_lab::{PathReport, Report};

pub(super) fn title(report: &Report) -> String {
    let (words, unit, more) = primary(report);
    let runs = match report.runs {
        1 => "1 run (nothing is random)".to_owned(),
        runs => format!("{runs} runs"),
    };
    let runs = if report.runs == 1 && report.command.contains("--runs 1 ") {
        "1 run".to_owned()
    } else {
        runs
    };
    let better = if more { "more" } else { "less" };
    let cut = if report.interrupted { ", interrupted" } else { "" };
    format!(
        "{}: {words} in {unit}, {better} is better; {runs}, seed {}{cut}",
        report.workload, report.seed
    )
}

pub(super) fn heading(report: &Report) -> String {
    let paths: String =
        report.paths.iter().map(|path| format!("  {}\n", path_line(path))).collect();
    let beside = match report.compete.as_slice() {
        [] => String::new(),
        flows => format!("  beside it all the time: {}\n", flows.join(", ")),
    };
    format!("{}\n{paths}{beside}", title(report))
}

fn path_line(path: &PathReport) -> String {
    let rate = |bps: Option<u64>| bps.map_or("no rate limit".to_owned(), crate::render::rate);
    let speed = match (path.rate_down_bps, path.rate_up_bps) {
        (down, up) if down == up => rate(down),
        (down, up) => format!("{} down, {} up", rate(down), rate(up)),
    };
    let mut words = vec![speed, format!("rtt {}", crate::render::millis(path.rtt_us as f64 / 1e3))];
    let queue = plait_app::quantity::bytes(&path.queue).map(crate::render::bytes);
    words.push(format!("queue {}", queue.unwrap_or_else(|_| path.queue.clone())));
    let extra = |words: &mut Vec<String>, name: &str, share: f64| {
        if share > 0.0 {
            words.push(format!("{name} {}", percent(share)));
        }
    };
    extra(&mut words, "loss", path.loss);
    extra(&mut words, "loss up", path.loss_up);
    if path.jitter_us > 0 {
        words.push(format!("jitter {}", crate::render::millis(path.jitter_us as f64 / 1e3)));
    }
    if let Some(trace) = &path.trace {
        words.push(format!("trace {trace}"));
    }
    if path.backup {
        words.push("backup".to_owned());
    }
    // What the words above do not tell, as it was written.
    let told =
        ["rate=", "rtt=", "owd_", "queue=", "loss=", "loss_up=", "jitter=", "trace", "backup"];
    let whole = |said: &&String| {
        let stepped = ["rate", "rtt", "owd"].iter().any(|key| said.starts_with(key));
        let steps = stepped && said.contains('@');
        let bursts = said.starts_with("loss") && said.contains("ge:");
        let split = path.owd_down_us != path.owd_up_us && said.starts_with("owd_");
        let plain = told.iter().any(|key| said.starts_with(key));
        let rates = said.starts_with("rate_") && !steps;
        steps || bursts || split || !(plain || rates || said.starts_with("profile="))
    };
    words.extend(path.settings.iter().filter(whole).cloned());
    format!("{}: {}", path.name, words.join(", "))
}
