//! The text of `plait explain`.

use super::{Align, Column, Emphasis, Table, again, bytes, figure, wrap};
use plait_lab::explain::{Alternative, Explained, Explanation, Judged, MOST_STALLS, Opinion};

/// Returns the explanation as text, at most `width` columns wide.
#[must_use]
pub fn explained(explanation: &Explanation, width: usize) -> String {
    let Explanation { scheduler, cc, workload, seed, .. } = explanation;
    let mut text = format!("{scheduler}, {cc}, {workload}, seed {seed}: ");
    let measure = explanation.primary_measure.replace('_', " ");
    match explanation.primary_value {
        Some(value) => text.push_str(&format!("{measure} {}", figure(value))),
        None => text.push_str("not finished"),
    }
    text.push_str(&counted(explanation));
    for (nth, stall) in explanation.stalls.iter().enumerate() {
        text.push('\n');
        text.push_str(&one(stall, nth + 1, explanation, width));
    }
    text + "\n" + &again(&explanation.command, width) + "\n"
}

/// Returns the number of waits, the number shown, and the flag that shows more.
fn counted(explanation: &Explanation) -> String {
    let Explanation { stalls_found: found, stalls_asked: asked, stalls, .. } = explanation;
    let (found, asked, shown) = (*found, *asked, stalls.len());
    let (of, covers) = match (found, asked) {
        (0, _) => {
            return "\nNothing waited: every segment was readable as it arrived.\n".to_owned();
        }
        (_, 0) => return format!("\nNothing waited at that time; {found} waits in all\n"),
        (found, asked) if asked < found => (format!("{asked} waits at that time"), true),
        (found, _) => (format!("{found} waits"), false),
    };
    let all = if covers { format!(" ({found} in all)") } else { String::new() };
    let mut text = format!("\n{shown} of {of}{all}, the longest first");
    if shown < asked && shown < MOST_STALLS {
        text.push_str(&format!("; --slowest {} shows more", asked.min(MOST_STALLS)));
    }
    text.push('\n');
    text
}

/// Names subflows in sentences by their paths, and also by their numbers if a path has several.
#[derive(Clone, Copy)]
struct Names {
    numbered: bool,
}

impl Names {
    fn of_run(explanation: &Explanation) -> Names {
        let decisions = explanation.stalls.iter().flat_map(|stall| &stall.decisions);
        let shares = |seen: &[plait_lab::explain::Seen]| {
            let paths: std::collections::BTreeSet<&str> =
                seen.iter().map(|it| it.path.as_str()).collect();
            paths.len() < seen.len()
        };
        Names { numbered: decisions.into_iter().any(|decision| shares(&decision.subflows)) }
    }

    fn name(self, path: &str, subflow: u8) -> String {
        if self.numbered { format!("{path} (subflow {subflow})") } else { path.to_owned() }
    }

    /// Names the subflow that was chosen or waited for; `any` if there is none in particular.
    fn any(self, path: Option<&str>, subflow: Option<u8>) -> String {
        path.zip(subflow).map_or("any".to_owned(), |(path, subflow)| self.name(path, subflow))
    }
}

/// Describes one stall.
fn one(stall: &Explained, nth: usize, whole: &Explanation, width: usize) -> String {
    let names = Names::of_run(whole);
    let lines = wrap(&headline(stall), width.saturating_sub(4).max(30));
    let mut text = format!("{nth}. {}\n", lines.join("\n   "));
    text.push_str(&labelled("blocking", &journey(stall, names), width));
    for decision in &stall.decisions {
        text.push_str(&judgement(decision, stall, (whole, names), width));
    }
    if stall.decisions.is_empty() {
        text.push_str("   decided   before the scheduler ran (warm-up, or plain TCP data)\n");
    }
    text
}

/// Returns the kind and the duration of the wait.
fn headline(stall: &Explained) -> String {
    let length = ms(stall.length_ms);
    let span = format!("{length} from {} to {}", ms(stall.from_ms), ms(stall.to_ms));
    let held = bytes(stall.waiting.len_bytes.saturating_sub(stall.blocking.len_bytes));
    match stall.kind {
        "out-of-order" => format!("{span}: {held} had arrived behind a missing segment"),
        "message" => {
            let message = stall.message.map_or(String::new(), |id| format!(" {id}"));
            format!("{span}: message{message} was due and not readable to its end")
        }
        "tail" => format!("{span}: the transfer waited for its last segments, on one path alone"),
        "receive-window" => format!("{span}: the receive window was full behind this segment"),
        "send-buffer" => format!("{span}: the send buffer was full behind this segment"),
        "scheduler" => format!("{span}: the scheduler waited although a subflow had room"),
        _ => format!("nothing waited; the last decision before, at {}", ms(stall.from_ms)),
    }
}

/// Describes the blocking segment's transmissions.
fn journey(stall: &Explained, names: Names) -> String {
    let first = stall.blocking.dsn;
    let last = first + stall.blocking.len_bytes;
    let mut parts = vec![format!("bytes {first} to {last}")];
    parts.extend(stall.sent.iter().enumerate().map(|(nth, sent)| {
        let (on, at) = (names.name(&sent.path, sent.subflow), ms(sent.at_ms));
        match nth {
            0 => format!("sent on {on} at {at}"),
            _ => format!("again on {on} at {at} ({})", sent.carry),
        }
    }));
    parts.extend(stall.arrived_ms.map(|at| format!("arrived at {}", ms(at))));
    parts.join(", ")
}

fn judgement(
    decision: &Judged,
    stall: &Explained,
    (whole, names): (&Explanation, Names),
    width: usize,
) -> String {
    let path = names.any(decision.path.as_deref(), decision.subflow);
    let verb = match decision.decision {
        "wait" => format!("to wait for {path}"),
        "assign" => format!("to assign it to {path}"),
        _ => path,
    };
    let mut text = format!(
        "   decided   {verb}: {} (decision {}, at {})\n",
        decision.reason,
        decision.number,
        ms(decision.at_ms)
    );
    for line in views(decision).to_text(width.saturating_sub(13).max(40), false).lines() {
        text.push_str(&format!("             {line}\n"));
    }
    if !decision.numbers.is_empty() {
        let numbers =
            decision.numbers.iter().map(|(name, value)| format!("{name} {}", short(*value)));
        text.push_str(&labelled("weighed", &numbers.collect::<Vec<_>>().join(", "), width));
    }
    if let (Some(error), Some(regret)) = (decision.error_ms, decision.regret_ms) {
        let line = format!(
            "arrived {} its estimate, {} the best estimate of all",
            offset(error, "after", "before"),
            offset(regret, "after", "before")
        );
        text.push_str(&labelled("regret", &line, width));
    }
    text.push_str(&labelled("cost", &cost(decision, stall, whole, names), width));
    let mut label = "others";
    for other in &decision.others {
        text.push_str(&labelled(
            label,
            &format!("{} {}", other.scheduler, opinion(other, names)),
            width,
        ));
        label = "";
    }
    text
}

/// Returns the state of the subflows at a decision.
fn views(decision: &Judged) -> Table {
    let right = |title: &str| Column::new(title, Align::Right);
    let mut table = Table::new(vec![
        Column::new("", Align::Left),
        Column::new("subflow", Align::Left),
        right("srtt ms"),
        right("cwnd").dispensable(1),
        right("in flight").dispensable(2),
        right("free"),
        right("would arrive"),
    ]);
    for seen in &decision.subflows {
        let chosen = decision.subflow == Some(seen.subflow);
        let idle = if seen.candidate { "" } else { " (not to be chosen)" };
        table.row(
            Emphasis::None,
            vec![
                if chosen { "*" } else { "" }.to_owned(),
                format!("{} on {}{idle}", seen.subflow, seen.path),
                seen.srtt_ms.map_or("-".to_owned(), short),
                bytes(seen.cwnd_bytes),
                bytes(seen.inflight_bytes),
                bytes(seen.free_bytes),
                seen.predicted_ms.map_or("-".to_owned(), ms),
            ],
        );
    }
    table
}

/// Describes the cost of the decision.
fn cost(decision: &Judged, stall: &Explained, whole: &Explanation, names: Names) -> String {
    let best = decision.alternatives.iter().filter(|it| it.saved_ms.is_some());
    let best = best
        .max_by(|one, other| one.saved_ms.unwrap_or(0.0).total_cmp(&other.saved_ms.unwrap_or(0.0)));
    let (Some(best), Some(cost)) = (best, decision.cost_ms) else {
        return "no other subflow could have taken it".to_owned();
    };
    let when = best.readable_ms.map_or(String::new(), ms);
    let on = names.name(&best.path, best.subflow);
    let then = format!("on {on} {} would have been readable at {when}", waiting(stall));
    let effect = effect(best, whole);
    let alone = best.segment_saved_ms.filter(|alone| *alone > cost.max(0.0));
    let alone = alone.map(|alone| {
        let path = decision.path.as_deref().zip(decision.subflow);
        let path = path.map_or("its path".to_owned(), |(path, id)| names.name(path, id));
        let sooner = ms(alone);
        format!(", this segment {sooner} sooner: later data took its place on {path}")
    });
    let alone = alone.unwrap_or_default();
    match cost {
        cost if cost > 0.0 => format!("{}: {then}{alone}{effect}", ms(cost)),
        cost if cost == 0.0 && alone.is_empty() => {
            format!("nothing, the decision was right: {then} too{effect}")
        }
        0.0 => format!("nothing by itself: {then} too{alone}{effect}"),
        cost => {
            let late = ms(-cost);
            format!("nothing, the decision was right: {then}, {late} later{alone}{effect}")
        }
    }
}

fn waiting(stall: &Explained) -> &'static str {
    if stall.waiting == stall.blocking { "it" } else { "the waiting data" }
}

/// Describes the replay's effect on the workload's own measure.
fn effect(best: &Alternative, whole: &Explanation) -> String {
    let values = whole.primary_value.zip(best.primary_value);
    values.map_or(String::new(), |(run, other)| {
        let measure = whole.primary_measure.replace('_', " ");
        match (figure(other), figure(run)) {
            (other, run) if other == run => format!("; {measure} {run} either way"),
            (other, run) => format!("; {measure} {other} in place of {run}"),
        }
    })
}

fn opinion(other: &Opinion, names: Names) -> String {
    let path = names.any(other.path.as_deref(), other.subflow);
    let reason = other.reason.unwrap_or("nothing to send");
    let too = if other.agrees { " too" } else { "" };
    match other.decision {
        "wait" => format!("would have waited for {path}{too} ({reason})"),
        "assign" => format!("would have assigned it to {path}{too} ({reason})"),
        "idle" => "would have done nothing".to_owned(),
        _ => format!("would have sent on {path}{too} ({reason})"),
    }
}

fn offset(ms: f64, after: &str, before: &str) -> String {
    match ms {
        0.0 => "exactly at".to_owned(),
        late if late > 0.0 => format!("{} {after}", self::ms(late)),
        early => format!("{} {before}", self::ms(-early)),
    }
}

/// Formats milliseconds with enough digits to distinguish segments.
fn ms(value: f64) -> String {
    format!("{value:.3} ms")
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.2}") }
}

/// Formats a label with wrapped text beside it.
fn labelled(label: &str, text: &str, width: usize) -> String {
    let lines = wrap(text, width.saturating_sub(13).max(30));
    format!("   {label:<9} {}\n", lines.join("\n             "))
}
