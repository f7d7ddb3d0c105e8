//! Reads paths: `NAME:key=value,...`, a bare profile name, or the same keys in a file.

use super::path::{Offset, Recording, Speed};
use super::placed_text::PlacedText;
use super::profile::{PROFILES, Profile};
use super::redraw::Redraw;
use crate::error::{Fault, ScenarioError, unreadable};
use plait_app::quantity::{self, QuantityError};
use plait_base::{Chance, Rate, Span, Time};
use plait_link::Trace;
use std::sync::Arc;

/// Longest propagation delay or jitter, so that nothing outlasts the hour that a run may take.
const LONGEST_DELAY: Span = Span::from_secs(600);
/// Highest finite rate in bits per second: a packet then still takes about a nanosecond.
const HIGHEST_RATE: Rate = Rate::from_bps(10_000_000_000_000);

/// Example of a stepped rate.
const RATE_STEPS: &str = "10mbit@0s/4mbit@20s";

/// Returns the text of a file that a scenario names: a trace, a page, a description of a video.
/// [`plait_app::file::named`] reads from the file system.
pub type Reader<'a> = &'a dyn Fn(&str) -> std::io::Result<String>;

/// Reads no files, for a scenario that names none.
///
/// # Errors
/// Always.
pub fn no_files(_: &str) -> std::io::Result<String> {
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "files cannot be read here"))
}

type Result<T> = core::result::Result<T, ScenarioError>;

pub(super) fn profile(given: &PlacedText) -> Result<&'static Profile> {
    let names = PROFILES.iter().map(|profile| profile.name);
    Profile::named(given.text.trim()).ok_or_else(|| given.unknown("profile", names))
}

/// Reads `10mbit`, `10mbit@0s/4mbit@20s`, or `1mbit/4mbit~40s`.
pub(super) fn steps(given: &PlacedText) -> Result<Speed> {
    let plain = PlacedText::new(&given.place, &quantity::per_second_without_slash(&given.text));
    plain_steps(&plain).map_err(|mut error| {
        // The error quotes the words of the user.
        for second in ["/s", "/sec", "/second"] {
            let as_given = |text: &str| text.replace("ps`", &format!("{second}`"));
            if given.text.contains(&error.given.replace("ps", second)) {
                error.given = error.given.replace("ps", second);
                error.problem = as_given(&error.problem);
            }
        }
        error
    })
}

/// Reads as [`steps`], if every slash separates two steps.
fn plain_steps(given: &PlacedText) -> Result<Speed> {
    if given.text.contains('~') {
        let rate = |text: &str| positive_rate(given, text);
        return Redraw::parse(given, rate, |text| bounded(given, text)).map(Speed::Redraw);
    }
    if !given.text.contains(['@', '/']) {
        return positive_rate(given, &given.text).map(Speed::Fixed);
    }
    let list = steps_of(given, RATE_STEPS, |text| {
        let rate = quantity::rate(text).map_err(|error| refused(given, &error))?;
        if !rate.is_infinite() && rate > HIGHEST_RATE {
            return Err(step_error(given, "a rate is above 10000gbit", RATE_STEPS));
        }
        Ok(rate)
    })?;
    match list.as_slice() {
        [.., (_, Rate::ZERO)] => {
            let problem = "the last step is zero: no packet would ever pass again";
            Err(given.error(Fault::Invalid, problem).allow("down=20s.. for an outage for ever"))
        }
        [(_, rate)] => Ok(Speed::Fixed(*rate)),
        _ => Ok(Speed::Steps(list)),
    }
}

fn step_error(given: &PlacedText, problem: &str, example: &str) -> ScenarioError {
    let allowed = format!("steps such as {example}, ascending, the first at 0s");
    given.error(Fault::Invalid, problem).allow(&allowed)
}

/// Reads `VALUE@TIME/VALUE@TIME/...`.
pub(super) fn steps_of<T>(
    given: &PlacedText,
    example: &str,
    read: impl Fn(&str) -> Result<T>,
) -> Result<Vec<(Time, T)>> {
    let invalid = |problem| step_error(given, problem, example);
    let mut list: Vec<(Time, T)> = Vec::new();
    for step in given.text.split('/') {
        let (value, at) = step.split_once('@').ok_or_else(|| invalid("a step has no time"))?;
        let value = read(value)?;
        let at = Time::ZERO + quantity::time(at).map_err(|error| refused(given, &error))?;
        match list.last() {
            None if at != Time::ZERO => return Err(invalid("the first step is not at 0s")),
            Some((earlier, _)) if at <= *earlier => return Err(invalid("the steps do not ascend")),
            _ => list.push((at, value)),
        }
    }
    Ok(list)
}

pub(super) fn positive_rate(given: &PlacedText, text: &str) -> Result<Rate> {
    let rate = quantity::rate(text).map_err(|error| refused(given, &error))?;
    if rate == Rate::ZERO {
        let problem = "a rate of zero lets nothing through";
        return Err(given
            .error(Fault::Invalid, problem)
            .allow("a rate above zero, such as 25mbit"));
    }
    if !rate.is_infinite() && rate > HIGHEST_RATE {
        return Err(given
            .error(Fault::Invalid, "above 10000gbit")
            .allow("up to 10000gbit, or inf"));
    }
    Ok(rate)
}

pub(super) fn recording(given: &PlacedText, read: Reader<'_>) -> Result<Recording> {
    let file = given.text.trim();
    if file.is_empty() {
        return Err(given.error(Fault::Missing, "no file").allow("trace=FILE"));
    }
    if file.contains([',', '\n', '\r', '\0']) {
        let problem = "a trace's file name has no comma and no line end";
        return Err(given.error(Fault::Invalid, problem));
    }
    let text = read(file).map_err(|error| {
        given.error(Fault::Unreadable, &unreadable(&error)).allow("a Mahimahi or CSV file")
    })?;
    let trace = Trace::parse(file, &text)
        .map_err(|error| given.error(Fault::Invalid, &error.to_string()))?;
    Ok(Recording { file: file.to_owned(), trace: Arc::new(trace) })
}

pub(super) fn offset(given: &PlacedText) -> Result<Offset> {
    match given.text.trim() {
        "random" => Ok(Offset::Random),
        _ => given
            .quantity(quantity::time)
            .map(Offset::At)
            .map_err(|error| error.allow("a time, or random")),
    }
}

pub(super) fn chance(given: &PlacedText) -> Result<Chance> {
    let allowed = "from 0% to 100%, such as 0.5%";
    given.quantity(quantity::percent).map_err(|error| error.allow(allowed))
}

/// Reads `1s..3s` or `1s..`.
pub(super) fn outage(given: &PlacedText) -> Result<(Time, Time)> {
    let allowed = "FROM..TO such as 1s..3s, or FROM.. for ever";
    let Some((from, to)) = given.text.split_once("..") else {
        return Err(given.error(Fault::Invalid, "not a span of time").allow(allowed));
    };
    let time = |text: &str| {
        let span = quantity::time(text).map_err(|error| refused(given, &error).allow(allowed))?;
        Ok::<Time, ScenarioError>(Time::ZERO + span)
    };
    let (from, to) = (time(from)?, if to.trim().is_empty() { Time::NEVER } else { time(to)? });
    if from >= to {
        return Err(given.error(Fault::Invalid, "it ends before it begins").allow(allowed));
    }
    Ok((from, to))
}

/// Writes the form that [`outage`] reads.
pub(super) fn span_text((from, to): &(Time, Time)) -> String {
    let from = from.since(Time::ZERO);
    match *to {
        Time::NEVER => format!("{from}.."),
        to => format!("{from}..{}", to.since(Time::ZERO)),
    }
}

/// Reads a delay: the text of `given`, or a part of it.
pub(super) fn bounded(given: &PlacedText, text: &str) -> Result<Span> {
    let span = quantity::time(text).map_err(|error| refused(given, &error))?;
    if span > LONGEST_DELAY {
        return Err(given.error(Fault::Invalid, "too long").allow("at most 600s"));
    }
    Ok(span)
}

fn refused(given: &PlacedText, error: &QuantityError) -> ScenarioError {
    given.error(Fault::Invalid, &error.to_string())
}
