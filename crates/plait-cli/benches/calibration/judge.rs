//! Compares the advice about each measured link with the races over it.

use super::Options;
use super::links::{Case, Kind};
use super::record::Load;
use super::store::Store;
use plait_app::measure::is_higher_better;
use plait_lab::advise::{Advice, AdviceControl, Gain, advise};
use plait_lab::links::{LinkFile, Values};
use plait_lab::stats::speedup;
use plait_lab::{Simulator, advise};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Gain or loss beyond which the sign of the advice counts.
const NOTABLE: f64 = 1.05;
/// Deviation of the normal distribution with 97.5 % below it.
const Z: f64 = 1.96;

/// The advice about a load on one pair of links, and the truth.
struct Outcome {
    link: String,
    truth: f64,
    gain: Gain,
}

impl Outcome {
    fn counts(&self) -> bool {
        self.truth >= NOTABLE || self.truth <= 1.0 / NOTABLE
    }

    fn has_right_sign(&self) -> bool {
        (self.truth > 1.0) == (self.gain.median > 1.0)
    }

    fn is_covered(&self) -> bool {
        (self.gain.low..=self.gain.high).contains(&self.truth)
    }
}

/// Judges all links that are there.
pub(super) fn judge(options: &Options) -> Result<(), String> {
    let cases = Case::all(options.kind, options.seeds)?;
    let measured = Store::open(&options.dir, "measured.jsonl")?;
    let raced = Store::open(&options.dir, "raced.jsonl")?;
    if options.kind == Kind::Shared {
        return shared(options, &cases, &measured);
    }
    let mut outcomes: BTreeMap<&str, Vec<Outcome>> = BTreeMap::new();
    for case in &cases {
        let (Some(measured), Some(raced)) = (measured.get(&case.name), raced.get(&case.name))
        else {
            continue;
        };
        let advice = advice(options, &measured)?;
        for load in &options.loads {
            let Load { name, .. } = load;
            let Some(truth) = truth(&raced, load) else {
                eprintln!("{}: {name}: no run counts", case.name);
                continue;
            };
            let Some(line) = advice.lines.iter().find(|it| it.name == *name) else {
                eprintln!("{}: {}", case.name, advice.answer);
                break;
            };
            let outcome = Outcome { link: case.name.clone(), truth, gain: line.gain };
            let Gain { median, low, high } = line.gain;
            eprintln!(
                "{}: {name}: {truth:.4}, advice {median:.4}, {low:.4} to {high:.4}",
                case.name
            );
            outcomes.entry(name).or_default().push(outcome);
        }
    }
    tables(options, &outcomes);
    Ok(())
}

/// Asks for advice with only what was measured.
fn advice(given: &Options, measured: &Value) -> Result<Advice, String> {
    let text = measured["file"].as_str().ok_or("a measurement without a file of links")?;
    let file = LinkFile::from_toml("links.toml", text).map_err(|error| error.to_string())?;
    let mut raw = file.scenario(Values::Ranges).map_err(|error| error.to_string())?;
    raw.argument("cc", "cubic").map_err(|error| error.to_string())?;
    let options = advise::Options {
        raw,
        draws: given.draws,
        seed: 1,
        spread: 1.25,
        jobs: None,
        command: String::new(),
        loads: given.loads.iter().map(|it| it.name.to_owned()).collect(),
        keep_order: true,
    };
    let never = AtomicBool::new(false);
    let read = |name: &str| std::fs::read_to_string(name);
    let control = AdviceControl { progress: &|_, _| {}, cancelled: &never, read: &read };
    advise(&options, &Simulator, &control).map_err(|error| error.to_string())
}

/// Returns how much better the bonded links are than plain TCP on the path on which it is best, by the medians of
/// the live runs.
fn truth(raced: &Value, load: &Load) -> Option<f64> {
    let rows = raced["loads"][load.name].as_array()?;
    let higher = is_higher_better(load.measure);
    let best = |alone: bool| {
        let rows = rows.iter().filter(|row| {
            row["sender"].as_str().is_some_and(|sender| sender.starts_with("tcp:")) == alone
        });
        let measures = rows.filter_map(|row| row["measures"].as_array());
        let medians = measures.filter_map(|list| {
            let measure = list.iter().find(|it| it["name"] == load.measure)?;
            measure["live"]["median"].as_f64()
        });
        medians.reduce(if higher { f64::max } else { f64::min })
    };
    speedup(best(false)?, best(true)?, higher)
}

fn tables(options: &Options, outcomes: &BTreeMap<&str, Vec<Outcome>>) {
    println!(
        "| load | links | sign right beyond 5 % | 80 % interval covers | 95 % | above | below |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut all: Vec<&Outcome> = Vec::new();
    for Load { name: load, .. } in &options.loads {
        let of: Vec<&Outcome> = outcomes.get(load).into_iter().flatten().collect();
        row(load, &of);
        all.extend(of);
    }
    row("all", &all);
    println!("\n| miss | load | true gain | advice | 80 % interval |\n|---|---|---|---|---|");
    for Load { name: load, .. } in &options.loads {
        for it in outcomes.get(load).into_iter().flatten() {
            let wrong = it.counts() && !it.has_right_sign();
            if wrong || !it.is_covered() {
                let kind = if wrong { "sign" } else { "interval" };
                let Gain { median, low, high } = it.gain;
                println!(
                    "| {kind} | {load}, {} | {:.3} | {median:.3} | {low:.3} to {high:.3} |",
                    it.link, it.truth
                );
            }
        }
    }
}

fn row(load: &str, of: &[&Outcome]) {
    let count = |which: &dyn Fn(&Outcome) -> bool| of.iter().filter(|it| which(it)).count();
    let covered = count(&|it| it.is_covered());
    let [low, high] = wilson(covered, of.len());
    println!(
        "| {load} | {} | {} of {} | {covered}, {:.0} % | {low:.0} to {high:.0} % | {} | {} |",
        of.len(),
        count(&|it| it.counts() && it.has_right_sign()),
        count(&|it| it.counts()),
        100.0 * covered as f64 / of.len().max(1) as f64,
        count(&|it| it.truth > it.gain.high),
        count(&|it| it.truth < it.gain.low),
    );
}

/// Returns the 95 % interval of a share in percent (Wilson).
fn wilson(count: usize, of: usize) -> [f64; 2] {
    if of == 0 {
        return [0.0, 100.0];
    }
    let (share, n) = (count as f64 / of as f64, of as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let spread = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    [middle - spread, middle + spread].map(|it| 100.0 * it)
}

/// Two addresses behind one link: the advice says that nothing is to be gained.
fn shared(options: &Options, cases: &[Case], measured: &Store) -> Result<(), String> {
    let (mut right, mut found, mut all) = (0, 0, 0);
    for case in cases {
        let Some(measured) = measured.get(&case.name) else { continue };
        let advice = advice(options, &measured)?;
        let is_right = advice.answer.contains("nothing is to be gained");
        let verdict = measured["document"]["bottleneck"].as_str().unwrap_or("none").to_owned();
        all += 1;
        right += usize::from(is_right);
        found += usize::from(verdict == "shared");
        if !is_right || verdict != "shared" {
            println!("{}: {} {:?}: {}", case.name, case.measured[0], verdict, advice.answer);
        }
    }
    println!(
        "one bottleneck: {right} of {all} answers are right; {found} bottlenecks were measured as shared"
    );
    Ok(())
}
