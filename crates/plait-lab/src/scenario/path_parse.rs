//! Reading a path: `NAME:key=value,...`, a bare profile name, or the same keys in a file.

use super::draft::{Given, PathDraft};
use super::path::{Both, Offset, Path, Recording, Speed, split};
use super::profile::{PROFILES, Profile};
use crate::error::{Fault, ScenarioError};
use plait_app::quantity::{self, QuantityError};
use plait_base::{Chance, Rate, Span, Time};
use plait_link::Trace;
use std::sync::Arc;

/// The keys that work.
pub const PATH_KEYS: &[&str] = &[
    "profile",
    "rtt",
    "owd_down",
    "owd_up",
    "rate",
    "rate_down",
    "rate_up",
    "trace",
    "trace_up",
    "offset",
    "queue",
    "aqm",
    "loss",
    "loss_up",
    "jitter",
    "down",
    "nic",
    "backup",
];

/// Keys that are known, but whose meaning arrives in a later version.
pub const LATER_PATH_KEYS: &[&str] = &["reorder", "duplicate", "corrupt", "via", "cost"];

/// Longest propagation or jitter, so that nothing outlasts the hour that a run may take.
const LONGEST_DELAY: Span = Span::from_secs(600);
/// Highest finite rate in bits per second: a packet still takes a nanosecond or so.
const HIGHEST_RATE: Rate = Rate::from_bps(10_000_000_000_000);

/// Reads a file of the scenario: a trace.
pub type Reader<'a> = &'a dyn Fn(&str) -> std::io::Result<String>;

type Result<T> = core::result::Result<T, ScenarioError>;

/// Builds a path from its fields.
///
/// # Errors
/// For an unknown key, a key given twice, a value that cannot be taken, keys that exclude each
/// other, a trace that cannot be read, or a missing `rtt` or (unless `ideal`) rate.
pub(super) fn path(draft: &PathDraft, ideal: bool, read: Reader<'_>) -> Result<Path> {
    check_name(&draft.name)?;
    check_keys(draft)?;
    let mut path = match draft.field("profile") {
        Some(given) => Path::from_profile(&draft.name.text, profile(given)?),
        None => blank(&draft.name.text),
    };
    path.delay = delay(draft, path.profile.map(|_| path.delay))?;
    path.speed = speed(draft, &path, ideal, read)?;
    if let Some(given) = draft.field("offset") {
        path.offset = offset(given)?;
        let traced = [&path.speed.down, &path.speed.up];
        if !traced.iter().any(|speed| speed.as_ref().is_some_and(Speed::is_trace)) {
            let problem = "there is no trace to start inside";
            return Err(given.error(Fault::Conflict, problem).allow("offset with trace=FILE"));
        }
    }
    if let Some(given) = draft.field("queue") {
        path.queue = Some(given.quantity(quantity::limit)?);
    }
    if let Some(given) = draft.field("aqm") {
        match given.text.trim() {
            "droptail" => {}
            "codel" => return Err(not_yet(given, "aqm=codel")),
            _ => return Err(given.unknown("queue discipline", ["droptail", "codel"])),
        }
    }
    if let Some(given) = draft.field("loss") {
        path.loss.down = loss(given)?;
    }
    if let Some(given) = draft.field("loss_up") {
        path.loss.up = loss(given)?;
    }
    if let Some(given) = draft.field("jitter") {
        path.jitter = bounded(given)?;
    }
    for given in draft.fields("down") {
        path.outages.push(outage(given)?);
    }
    if let Some(given) = draft.field("nic") {
        path.nic = Some(positive_rate(given, &given.text)?);
    }
    if let Some(given) = draft.field("backup") {
        path.backup = given.switch()?;
    }
    Ok(path)
}

fn blank(name: &str) -> Path {
    Path {
        name: name.to_owned(),
        profile: None,
        delay: Both::default(),
        speed: Both::default(),
        offset: Offset::default(),
        queue: None,
        loss: Both::default(),
        jitter: Span::ZERO,
        outages: Vec::new(),
        nic: None,
        backup: false,
    }
}

fn check_name(given: &Given) -> Result<()> {
    let allowed = "letters, digits, `-` and `_`";
    if given.text.is_empty() {
        return Err(given.error(Fault::Missing, "the path has no name").allow(allowed));
    }
    if given.text.chars().count() > 32 {
        return Err(given.error(Fault::Invalid, "a path's name has at most 32 characters"));
    }
    if given.text.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_') {
        return Ok(());
    }
    Err(given.error(Fault::Invalid, "not a path's name").allow(allowed))
}

fn check_keys(draft: &PathDraft) -> Result<()> {
    for (at, (key, given)) in draft.fields.iter().enumerate() {
        if LATER_PATH_KEYS.contains(&key.as_str()) {
            return Err(not_yet(given, key));
        }
        if (key == "loss" || key == "loss_up") && given.text.trim_start().starts_with("ge:") {
            return Err(not_yet(given, "Gilbert-Elliott loss"));
        }
        if !PATH_KEYS.contains(&key.as_str()) {
            let mut error = given.unknown("key of a path", PATH_KEYS.iter().copied());
            error.nearest =
                plait_app::name::nearest(key, PATH_KEYS.iter().copied()).map(str::to_owned);
            error.given.clone_from(key);
            return Err(error);
        }
        if key != "down" && draft.fields[..at].iter().any(|(earlier, _)| earlier == key) {
            let problem = format!("`{key}` is given twice");
            return Err(given.error(Fault::Conflict, &problem));
        }
    }
    Ok(())
}

fn profile(given: &Given) -> Result<&'static Profile> {
    let names = PROFILES.iter().map(|profile| profile.name);
    Profile::named(given.text.trim()).ok_or_else(|| given.unknown("profile", names))
}

fn delay(draft: &PathDraft, inherited: Option<Both<Span>>) -> Result<Both<Span>> {
    let allowed = "rtt=TIME, or owd_down=TIME and owd_up=TIME";
    match (draft.field("rtt"), draft.field("owd_down"), draft.field("owd_up")) {
        (Some(rtt), None, None) => Ok(split(bounded(rtt)?)),
        (Some(_), Some(other), _) | (Some(_), _, Some(other)) => {
            Err(other.error(Fault::Conflict, "rtt is given as well").allow(allowed))
        }
        (None, Some(down), Some(up)) => Ok(Both { down: bounded(down)?, up: bounded(up)? }),
        (None, Some(one), None) | (None, None, Some(one)) => {
            Err(one.error(Fault::Missing, "the other direction's delay is missing").allow(allowed))
        }
        (None, None, None) => inherited
            .ok_or_else(|| draft.name.error(Fault::Missing, "the path has no rtt").allow(allowed)),
    }
}

/// The rates of both directions. `rate_down`, `rate_up`, `trace` and `trace_up` each say one
/// direction and go before `rate`, which says both.
fn speed(
    draft: &PathDraft,
    base: &Path,
    ideal: bool,
    read: Reader<'_>,
) -> Result<Both<Option<Speed>>> {
    let pair = |rate: &str, trace: &str| match (draft.field(rate), draft.field(trace)) {
        (Some(_), Some(trace)) => {
            let problem = format!("{rate} is given as well");
            Err(trace.error(Fault::Conflict, &problem).allow("a rate or a trace"))
        }
        (Some(rate), None) => steps(rate).map(Some),
        (None, Some(file)) => recording(file, read).map(|found| Some(Speed::Trace(found))),
        (None, None) => Ok(None),
    };
    let down = pair("rate_down", "trace")?;
    let up = pair("rate_up", "trace_up")?;
    let both = match (draft.field("rate"), draft.field("trace")) {
        (Some(rate), Some(_)) => {
            let problem = "trace is given as well";
            return Err(rate
                .error(Fault::Conflict, problem)
                .allow("trace with rate_up or trace_up"));
        }
        (Some(rate), None) => Some(steps(rate)?),
        (None, _) => None,
    };
    let traced = down.as_ref().is_some_and(Speed::is_trace);
    let free = traced.then_some(Speed::Fixed(Rate::INFINITE));
    let found = Both {
        down: down.or_else(|| both.clone()).or_else(|| base.speed.down.clone()),
        up: up.or(both).or(free).or_else(|| base.speed.up.clone()),
    };
    if !ideal && (found.down.is_none() || found.up.is_none()) {
        let problem = if found.down.is_none() { "no rate" } else { "no rate_up" };
        return Err(draft.name.error(Fault::Missing, &format!("the path has {problem}")).allow(
            "rate=25mbit, or rate_down=RATE and rate_up=RATE, or trace=FILE; none with --ideal",
        ));
    }
    Ok(found)
}

/// `10mbit`, or `10mbit@0s/4mbit@20s`.
fn steps(given: &Given) -> Result<Speed> {
    if !given.text.contains(['@', '/']) {
        return positive_rate(given, &given.text).map(Speed::Fixed);
    }
    let allowed = "steps such as 10mbit@0s/4mbit@20s, ascending, the first at 0s";
    let invalid = |problem| given.error(Fault::Invalid, problem).allow(allowed);
    let mut list: Vec<(Time, Rate)> = Vec::new();
    for step in given.text.split('/') {
        let (rate, at) = step.split_once('@').ok_or_else(|| invalid("a step has no time"))?;
        let rate = quantity::rate(rate).map_err(|error| refused(given, &error))?;
        let at = Time::ZERO + quantity::time(at).map_err(|error| refused(given, &error))?;
        if !rate.is_infinite() && rate > HIGHEST_RATE {
            return Err(invalid("a rate is above 10000gbit"));
        }
        match list.last() {
            None if at != Time::ZERO => return Err(invalid("the first step is not at 0s")),
            Some((earlier, _)) if at <= *earlier => return Err(invalid("the steps do not ascend")),
            _ => list.push((at, rate)),
        }
    }
    match list.as_slice() {
        [.., (_, Rate::ZERO)] => {
            let problem = "the last step is zero: nothing would ever get through again";
            Err(given.error(Fault::Invalid, problem).allow("down=20s.. for an outage for ever"))
        }
        [(_, rate)] => Ok(Speed::Fixed(*rate)),
        _ => Ok(Speed::Steps(list)),
    }
}

fn positive_rate(given: &Given, text: &str) -> Result<Rate> {
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

fn recording(given: &Given, read: Reader<'_>) -> Result<Recording> {
    let file = given.text.trim();
    if file.is_empty() {
        return Err(given.error(Fault::Missing, "no file").allow("trace=FILE"));
    }
    if file.contains([',', '\n', '\r', '\0']) {
        let problem = "a trace's file name has no comma and no line end";
        return Err(given.error(Fault::Invalid, problem));
    }
    let text = read(file).map_err(|error| {
        given
            .error(Fault::Unreadable, &format!("cannot read the trace: {error}"))
            .allow("a Mahimahi or CSV file")
    })?;
    let trace = Trace::parse(file, &text)
        .map_err(|error| given.error(Fault::Invalid, &error.to_string()))?;
    Ok(Recording { file: file.to_owned(), trace: Arc::new(trace) })
}

fn offset(given: &Given) -> Result<Offset> {
    match given.text.trim() {
        "random" => Ok(Offset::Random),
        _ => given
            .quantity(quantity::time)
            .map(Offset::At)
            .map_err(|error| error.allow("a time, or random")),
    }
}

fn loss(given: &Given) -> Result<Chance> {
    let allowed = "from 0% to 100%, such as 0.5%";
    given.quantity(quantity::percent).map_err(|error| error.allow(allowed))
}

/// `1s..3s`, `1s..`.
fn outage(given: &Given) -> Result<(Time, Time)> {
    let allowed = "FROM..TO such as 1s..3s, or FROM.. for ever";
    let Some((from, to)) = given.text.split_once("..") else {
        return Err(given.error(Fault::Invalid, "not an outage").allow(allowed));
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

fn bounded(given: &Given) -> Result<Span> {
    let span = given.quantity(quantity::time)?;
    if span > LONGEST_DELAY {
        return Err(given.error(Fault::Invalid, "too long").allow("at most 600s"));
    }
    Ok(span)
}

fn refused(given: &Given, error: &QuantityError) -> ScenarioError {
    given.error(Fault::Invalid, &error.to_string())
}

fn not_yet(given: &Given, what: &str) -> ScenarioError {
    given.error(Fault::NotYet, &format!("{what} is not available yet"))
}
