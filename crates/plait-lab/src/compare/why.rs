//! Explains each row in one sentence: why it was fast or slow, from its own runs and the runs of the best
//! row.

use super::{Outcomes, RunOutcome};
use crate::report::Row;
use crate::scenario::Scenario;
use plait_app::measure::{Habits, is_higher_better};
use plait_base::Span;

/// Smallest difference of shares of the time that is mentioned.
const NOTABLE: f64 = 0.03;
/// Largest number of reasons in a sentence.
const MAX_CAUSES: usize = 3;

/// An observation about a row.
struct Fact {
    /// Description, with `SHARE` as the placeholder of the share. The same observation has the same name in
    /// every row.
    name: String,
    /// A share of the time or of the bytes.
    share: f64,
    /// For waits, the mean number of waits in a run.
    count: Option<f64>,
    /// Index of the path that the fact concerns.
    path: Option<usize>,
    /// True if a larger share is a handicap.
    bad: bool,
}

/// Fills in the sentences if the runs were watched. The best row mentions its notable facts, the other rows
/// their differences from it.
pub(super) fn tell(rows: &mut [Row], scenario: &Scenario, outcomes: &Outcomes) {
    let facts: Vec<Option<Vec<Fact>>> =
        outcomes.iter().map(|runs| facts(scenario, runs.iter().flatten())).collect();
    let primary = scenario.workload.primary();
    let Some(best) = best(rows, primary) else { return };
    let Some(of_best) = facts.get(best).and_then(Option::as_ref) else { return };
    let name = rows.get(best).map_or(String::new(), |row| row.scheduler.clone());
    for (at, row) in rows.iter_mut().enumerate() {
        let Some(own) = facts.get(at).and_then(Option::as_ref) else { continue };
        // Plain TCP on one path has no facts about the other paths.
        let only = row.scheduler.strip_prefix("tcp:");
        let only = only.and_then(|name| scenario.paths.iter().position(|path| path.name == name));
        let concerns = |fact: &&Fact| match (only, fact.path) {
            (Some(only), Some(path)) => only == path && fact.bad,
            _ => true,
        };
        let own: Vec<&Fact> = own.iter().filter(concerns).collect();
        row.why = Some(if at == best { alone(&own) } else { against(&own, of_best, &name) });
    }
}

/// Returns the best row by the primary measure.
fn best(rows: &[Row], primary: &str) -> Option<usize> {
    let higher = is_higher_better(primary);
    let value = |row: &Row| {
        let summary = row.measures.get(primary).filter(|_| row.incomplete == 0)?;
        Some(if higher { -summary.median } else { summary.median })
    };
    let valued = rows.iter().enumerate().filter_map(|(at, row)| Some((value(row)?, at)));
    valued.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
}

/// Returns the means over the runs that count.
fn facts<'a>(scenario: &Scenario, runs: impl Iterator<Item = &'a RunOutcome>) -> Option<Vec<Fact>> {
    let counted: Vec<(&RunOutcome, &Habits)> = runs
        .filter(|run| run.counts())
        .filter_map(|run| Some((run, run.habits.as_ref()?)))
        .filter(|(_, habits)| habits.length > Span::ZERO)
        .collect();
    if counted.is_empty() {
        return None;
    }
    let runs = counted.len() as f64;
    let mean = |of: &dyn Fn(&RunOutcome, &Habits) -> f64| {
        counted.iter().map(|(run, habits)| of(run, habits)).sum::<f64>() / runs
    };
    let part = |span: Span, habits: &Habits| span.as_secs_f64() / habits.length.as_secs_f64();
    let mut facts = vec![Fact {
        name: "waited".to_owned(),
        share: mean(&|_, habits| part(habits.scheduler, habits)),
        count: Some(mean(&|_, habits| habits.waits as f64)),
        path: None,
        bad: true,
    }];
    let mut fact = |name: String, share: f64, path: Option<usize>, bad: bool| {
        facts.push(Fact { name, share, count: None, path, bad });
    };
    for (at, path) in scenario.paths.iter().enumerate() {
        let path = &path.name;
        let time = |list: &dyn Fn(&Habits) -> &Vec<Span>| {
            mean(&|_, habits| part(list(habits).get(at).copied().unwrap_or_default(), habits))
        };
        let mut held = |name: String, list: &dyn Fn(&Habits) -> &Vec<Span>| {
            fact(name, time(list), Some(at), true);
        };
        held(format!("receive window blocked SHARE behind {path}"), &|it| &it.receive_window);
        held(format!("send buffer full SHARE behind {path}"), &|it| &it.send_buffer);
        held(format!("data that had arrived waited SHARE of the time for {path}"), &|it| {
            &it.unreadable
        });
        held(format!("{path} idle SHARE"), &|it| &it.idle);
        let sent = |habits: &Habits| {
            let all: u64 = habits.sent.iter().sum();
            habits.sent.get(at).copied().unwrap_or(0) as f64 / all.max(1) as f64
        };
        // The other paths carry the remaining share.
        if at > 0 {
            let share = mean(&|_, habits| sent(habits));
            fact(format!("SHARE of the data on {path}"), share, Some(at), false);
        }
    }
    let copies = mean(&|run, _| run.measures.reinjected_share.unwrap_or(0.0));
    fact("SHARE of the payload was copies".to_owned(), copies, None, true);
    let again = mean(&|run, _| run.measures.retransmitted_share.unwrap_or(0.0));
    fact("SHARE of the payload was retransmissions".to_owned(), again, None, true);
    Some(facts)
}

/// Returns the notable facts of the best row.
fn alone(own: &[&Fact]) -> String {
    let mut notable: Vec<&Fact> =
        own.iter().copied().filter(|fact| fact.bad && fact.share >= NOTABLE).collect();
    notable.sort_by(|a, b| b.share.total_cmp(&a.share));
    notable.truncate(MAX_CAUSES);
    if notable.is_empty() {
        return "the best row; no cause held it back for long".to_owned();
    }
    let said: Vec<String> = notable.into_iter().map(said).collect();
    format!("the best row; {}", said.join("; "))
}

/// Returns the differences of a row from the best one: first larger handicaps, then other differences.
/// Smaller handicaps appear only if there is nothing else.
fn against(own: &[&Fact], best: &[Fact], name: &str) -> String {
    let mut apart: Vec<(u8, f64, String)> = Vec::new();
    for fact in own {
        let Some(other) = best.iter().find(|it| it.name == fact.name) else { continue };
        let difference = fact.share - other.share;
        if difference.abs() < NOTABLE {
            continue;
        }
        let rank = match (fact.bad, difference > 0.0) {
            (true, true) => 0,
            (false, _) => 1,
            (true, false) => 2,
        };
        let beside = match other.count {
            Some(_) => said(other).replacen("waited ", "", 1),
            None => percent(other.share),
        };
        apart.push((rank, difference.abs(), format!("{} ({name}: {beside})", said(fact))));
    }
    apart.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    if apart.first().is_some_and(|(rank, ..)| *rank < 2) {
        apart.retain(|(rank, ..)| *rank < 2);
    }
    apart.truncate(MAX_CAUSES);
    if apart.is_empty() {
        return format!("as {name}, within 3 % of the time");
    }
    apart.into_iter().map(|(.., text)| text).collect::<Vec<_>>().join("; ")
}

/// Returns a fact in words.
fn said(fact: &Fact) -> String {
    match fact.count {
        Some(0.0) => "never waited".to_owned(),
        Some(count) => {
            let times = if count == 1.0 { "once".to_owned() } else { figure(count) + " times" };
            format!("waited {times}, {} of the time", percent(fact.share))
        }
        None => fact.name.replace("SHARE", &percent(fact.share)),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a mean of counts.
fn figure(count: f64) -> String {
    if count < 9.95 && count.fract() != 0.0 { format!("{count:.1}") } else { format!("{count:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(name: &str, share: f64, count: Option<f64>, bad: bool) -> Fact {
        Fact { name: name.to_owned(), share, count, path: None, bad }
    }

    #[test]
    fn a_row_is_told_by_what_sets_it_apart_the_greatest_handicap_first() {
        let best = [
            fact("waited", 0.0, Some(0.0), true),
            fact("lte idle SHARE", 0.2, None, true),
            fact("SHARE of the data on lte", 0.3, None, false),
            fact("receive window blocked SHARE behind lte", 0.5, None, true),
        ];
        let own = [
            fact("waited", 0.05, Some(212.0), true),
            fact("lte idle SHARE", 0.61, None, true),
            fact("SHARE of the data on lte", 0.1, None, false),
            fact("receive window blocked SHARE behind lte", 0.0, None, true),
        ];
        let (of_best, of_own): (Vec<&Fact>, Vec<&Fact>) =
            (best.iter().collect(), own.iter().collect());
        assert_eq!(
            against(&of_own, &best, "minrtt"),
            "lte idle 61 % (minrtt: 20 %); waited 212 times, 5 % of the time (minrtt: never waited); \
             10 % of the data on lte (minrtt: 30 %)"
        );
        // A smaller handicap is mentioned only if there is nothing else.
        let window = &of_own[3..];
        assert_eq!(
            against(window, &best, "minrtt"),
            "receive window blocked 0 % behind lte (minrtt: 50 %)"
        );
        assert_eq!(against(&of_best, &best, "minrtt"), "as minrtt, within 3 % of the time");
        assert_eq!(
            alone(&of_best),
            "the best row; receive window blocked 50 % behind lte; lte idle 20 %"
        );
    }
}
