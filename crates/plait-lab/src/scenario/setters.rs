//! Reads and writes settings that have a form of their own.

use super::path_parse::Reader;
use super::placed_text::PlacedText;
use super::specs::twice;
use super::{Competition, HostJitter, MAX_HOST_JITTER, Path, Scenario, Subflows};
use crate::error::{Fault, ScenarioError};
use crate::expect::{Expectation, Names};
use crate::report::COMPETING;
use plait_app::measure::Value;
use plait_app::quantity::{self, Percent, Size};
use plait_app::workload::WorkloadError;
use plait_app::{MEASURES, WORKLOADS, Workload};
use plait_base::{Chance, Span, SubflowId};
use std::num::NonZeroUsize;

/// Default of `--until`: an unfinished run ends after an hour of virtual time.
pub const DEFAULT_DEADLINE: Span = Span::from_secs(3_600);

/// Maximum number of runs in parallel.
pub const MOST_JOBS: u64 = 1_024;

/// Maximum number of earlier transfers.
const MAX_EARLIER_TRANSFERS: u64 = 1_000;

/// Largest window that TCP can advertise, with the largest window scale (RFC 7323 section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;

type Result<T> = core::result::Result<T, ScenarioError>;

/// Returns each shared link with its keys.
pub(super) fn link_texts(it: &Scenario) -> Vec<String> {
    let text = |link: &Path| format!("{}:{}", link.name, link.written().join(","));
    it.shared.iter().map(text).collect()
}

pub(super) fn set_competition(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    if given.text.trim() == "none" {
        // `none` gives a sweep a point without competing flows.
        return Ok(());
    }
    if it.ideal {
        let problem = "an ideal path has no rate to compete for";
        return Err(given.error(Fault::Conflict, problem).allow("--compete without --ideal"));
    }
    let flows = Competition::parse(given, &it.paths, &it.shared)?;
    if it.compete.iter().any(|known| known.sender == flows.sender && known.over == flows.over) {
        let error = twice(given, given.text.trim());
        return Err(error.allow("CC@PATH_OR_LINK*N for N flows"));
    }
    it.compete.push(flows);
    Ok(())
}

pub(super) fn set_workload(it: &mut Scenario, given: &PlacedText, read: Reader<'_>) -> Result<()> {
    let read = Workload::parse_with(given.text.trim(), read);
    it.workload = read.map_err(|error| match error {
        WorkloadError::UnknownName { .. } => {
            let name = given.text.split(':').next().unwrap_or_default();
            let names = WORKLOADS.iter().map(|entry| entry.name);
            ScenarioError::unknown(&given.place, "workload", name, names)
        }
        _ => given.error(Fault::Invalid, &error.to_string()),
    })?;
    if it.workload.duration().is_some_and(|lasts| lasts > DEFAULT_DEADLINE) {
        let error = given.error(Fault::Invalid, "longer than a run can be");
        return Err(error.allow("at most 60min of virtual time"));
    }
    Ok(())
}

/// Returns `all`, or the list of schedulers.
pub(super) fn scheduler_texts(it: &Scenario) -> Vec<String> {
    let names: Vec<String> = it.schedulers.iter().map(ToString::to_string).collect();
    let all = plait_sched::all().map(|entry| entry.about.name);
    if all.eq(names.iter().map(String::as_str)) {
        return vec!["all".to_owned()];
    }
    let written: Vec<String> = it.schedulers.iter().map(plait_sched::Spec::written).collect();
    vec![written.join(",")]
}

pub(super) fn set_subflows(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    let paths = it.paths.len();
    it.transport.subflows = if given.text.trim() == "mesh4" {
        if paths != 2 {
            return Err(given
                .error(Fault::Conflict, &format!("mesh4 takes two paths, {paths} given"))
                .allow("two paths, or a number of subflows a path"));
        }
        Subflows::Mesh4
    } else {
        let most = SubflowId::MAX as u64;
        let each = given.count(1, most).map_err(|error| error.allow("1 to 8, or mesh4"))?;
        Subflows::EachPath(each as u8)
    };
    let count = it.transport.subflows.count(paths);
    if count > SubflowId::MAX {
        let problem = format!("{count} subflows in all");
        return Err(given.error(Fault::Invalid, &problem).allow("at most 8 in all"));
    }
    Ok(())
}

pub(super) fn set_ssthresh(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    it.transport.ssthresh = match given.text.trim() {
        "inf" => None,
        _ => Some(positive_size(given, u64::MAX)?),
    };
    Ok(())
}

/// Reads the number of earlier transfers. It needs a download or an upload: other workloads have no
/// end that a peer notices, or a different end each time.
pub(super) fn set_earlier(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    let earlier = given.count(0, MAX_EARLIER_TRANSFERS)? as u32;
    let repeats = matches!(it.workload, Workload::Download { .. } | Workload::Upload { .. });
    if earlier > 0 && !repeats {
        let problem = "this workload cannot be repeated";
        return Err(given.error(Fault::Conflict, problem).allow("a download or an upload"));
    }
    it.transport.earlier_transfers = earlier;
    Ok(())
}

pub(super) fn set_host_jitter(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    if given.text.trim() == "auto" {
        it.timing.jitter = HostJitter::Auto;
        return Ok(());
    }
    let jitter = given.quantity(quantity::time)?;
    if jitter > MAX_HOST_JITTER {
        let error = given.error(Fault::Invalid, "too long for a host");
        return Err(error.allow("auto, or a time of at most 10ms"));
    }
    if it.timing.exact {
        let error = given.error(Fault::Conflict, "an exact run has no jitter");
        return Err(error.allow("--exact or --host-jitter"));
    }
    it.timing.jitter = HostJitter::Fixed(jitter);
    Ok(())
}

pub(super) fn set_jobs(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    let jobs = given.count(1, MOST_JOBS)?;
    it.budget.jobs = usize::try_from(jobs).ok().and_then(NonZeroUsize::new);
    Ok(())
}

pub(super) fn set_expectation(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    it.expect.push(Expectation::parse(&given.text, &given.place, &names(it))?);
    Ok(())
}

/// Reads a buffer size. It must fit into a TCP window.
pub(super) fn window_size(given: &PlacedText) -> Result<Size> {
    positive_size(given, LARGEST_WINDOW)
}

/// Reads a size above zero and at most `most` bytes. Segments count with 65,535 bytes each.
fn positive_size(given: &PlacedText, most: u64) -> Result<Size> {
    let size = given.quantity(quantity::size)?;
    if size.is_zero() {
        return Err(given.error(Fault::Invalid, "zero").allow("a size above zero"));
    }
    if size.bytes(65_535) > most {
        let allowed = format!("at most {most}B, what a TCP window can advertise");
        return Err(given.error(Fault::Invalid, "too large").allow(&allowed));
    }
    Ok(size)
}

/// Reads `90s` or `ci=2%`. The setting may be given once in each form.
pub(super) fn set_until(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    let again = match given.text.trim().strip_prefix("ci=") {
        None if given.text.trim().ends_with('%') => {
            let problem = "a percentage is the width of an interval, not a time";
            let form = format!("ci={}", given.text.trim());
            return Err(given.error(Fault::Invalid, problem).allow(&form));
        }
        None => it.budget.until.replace(until(given)?).is_some(),
        Some(text) => it.budget.precision.replace(precision(given, text)?).is_some(),
    };
    if again { Err(given.error(Fault::Conflict, "given twice")) } else { Ok(()) }
}

/// Writes the form that [`set_until`] reads.
pub(super) fn until_texts(it: &Scenario) -> Vec<String> {
    // Writes a share as a percentage without rounding: `2%`, `0.5%`.
    let percent = |share: f64| Percent(Chance::from_ppb((share * 1e9).round() as u32));
    let precision = it.budget.precision.map(|share| format!("ci={}", percent(share)));
    it.budget.until.map(|span| span.to_string()).into_iter().chain(precision).collect()
}

fn precision(given: &PlacedText, text: &str) -> Result<f64> {
    let share = PlacedText::new(&given.place, text).quantity(quantity::percent)?;
    let share = f64::from(share.as_ppb()) / 1e9;
    if !(0.001..=0.5).contains(&share) {
        let error = given.error(Fault::Invalid, "no number of runs can reach this width");
        return Err(error.allow("ci=0.1% to ci=50%"));
    }
    Ok(share)
}

fn until(given: &PlacedText) -> Result<Span> {
    let span = given.quantity(quantity::time)?;
    if span == Span::ZERO || span > DEFAULT_DEADLINE {
        let problem = "a run cannot end at this time";
        return Err(given.error(Fault::Invalid, problem).allow("above 0s, at most 60min"));
    }
    Ok(span)
}

/// Returns the names that an expectation about this scenario may use.
fn names(scenario: &Scenario) -> Names {
    let paths: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    let single = paths.iter().map(|path| format!("tcp:{path}"));
    // One path needs no scheduler.
    let schedulers = scenario.schedulers.iter().filter(|_| paths.len() > 1);
    Names {
        rows: schedulers.map(ToString::to_string).chain(single).collect(),
        ccs: scenario.ccs.iter().map(plait_cc::Spec::name).collect(),
        measures: MEASURES
            .iter()
            .filter(|entry| matches!(entry.value, Value::Run(_)))
            .filter(|entry| entry.applies_to(&scenario.workload))
            .map(|entry| entry.name.to_owned())
            .chain((!scenario.compete.is_empty()).then(|| COMPETING.to_owned()))
            .collect(),
        paths,
        canonical: Some(|row| Some(plait_sched::Spec::parse(row).ok()?.to_string())),
    }
}
