//! Impairments of a path besides its rate and delay: bursts of loss, queue management, reordering,
//! the largest packet, and middleboxes. Each has a text form that can be read back.

use super::path_parse::{outage, steps_of};
use super::placed_text::PlacedText;
use crate::error::{Fault, ScenarioError};
use plait_app::quantity::{self, Percent, QuantityError};
use plait_base::{Chance, Span, Time};
use plait_link::{Aqm, GilbertElliott, LossModel, Reorder};
use plait_sim::{Strip, StripAt};

type Result<T> = core::result::Result<T, ScenarioError>;

/// Longest target and interval of CoDel, and longest time that a packet may be held back.
const MAX_DELAY: Span = Span::from_secs(600);

/// Every link of the Internet carries packets of this many bytes (RFC 791).
const SMALLEST_MTU: u32 = 68;

/// Values with parameters of their own: the key of the path, the start of its value, and the names
/// of the parameters after a comma.
const PARAMETERS: &[(&str, &str, &[&str])] = &[
    ("loss", "ge:", &["p", "r", "bad", "good"]),
    ("loss_up", "ge:", &["p", "r", "bad", "good"]),
    ("aqm", "codel:", &["target", "interval"]),
];

/// Returns true if `name=...` is a parameter of the value of `key`.
pub(super) fn goes_on(key: &str, value: &str, name: &str) -> bool {
    let has = |it: &&(&str, &str, &[&str])| it.0 == key && value.starts_with(it.1);
    PARAMETERS.iter().find(has).is_some_and(|it| it.2.contains(&name))
}

/// Reads `0.5%`, or `ge:p=1%,r=30%,bad=50%[,good=0%]`.
pub(super) fn loss(given: &PlacedText) -> Result<LossModel> {
    let Some(text) = given.text.trim().strip_prefix("ge:") else {
        let allowed = "from 0% to 100%, such as 0.5%, or ge:p=1%,r=30%,bad=50%";
        let chance = given.quantity(quantity::percent).map_err(|error| error.allow(allowed))?;
        return Ok(LossModel::Random(chance));
    };
    let allowed = "ge:p=1%,r=30%,bad=50%[,good=0%]";
    let [p, r, bad, good] = parameters(given, text, ["p", "r", "bad", "good"], allowed)?;
    let chance = |text: Option<&str>| match text {
        Some(text) => quantity::percent(text).map_err(|error| refused(given, &error)),
        None => Err(given.error(Fault::Missing, "p, r or bad is missing").allow(allowed)),
    };
    let good = good.map_or(Ok(Chance::NEVER), |text| chance(Some(text)))?;
    let model = GilbertElliott { p: chance(p)?, r: chance(r)?, bad: chance(bad)?, good };
    Ok(LossModel::GilbertElliott(model))
}

/// Writes the form that [`loss`] reads.
pub(super) fn loss_text(model: LossModel) -> String {
    match model {
        LossModel::Random(chance) => Percent(chance).to_string(),
        LossModel::GilbertElliott(GilbertElliott { p, r, bad, good }) => {
            let text = format!("ge:p={},r={},bad={}", Percent(p), Percent(r), Percent(bad));
            match good {
                Chance::NEVER => text,
                good => format!("{text},good={}", Percent(good)),
            }
        }
    }
}

/// Reads `droptail`, `codel`, or `codel:target=5ms,interval=100ms`.
pub(super) fn aqm(given: &PlacedText) -> Result<Aqm> {
    let text = match given.text.trim() {
        "droptail" => return Ok(Aqm::DropTail),
        "codel" => return Ok(Aqm::CODEL),
        text => text,
    };
    let Some(text) = text.strip_prefix("codel:") else {
        return Err(given.unknown("queue discipline", ["droptail", "codel"]));
    };
    let allowed = "codel:target=5ms,interval=100ms";
    let [target, interval] = parameters(given, text, ["target", "interval"], allowed)?;
    let time = |text: Option<&str>, default| {
        let Some(text) = text else { return Ok(default) };
        let span = quantity::time(text).map_err(|error| refused(given, &error))?;
        if span == Span::ZERO || span > MAX_DELAY {
            let problem = "not a valid time for a queue";
            return Err(given.error(Fault::Invalid, problem).allow("above 0s, at most 600s"));
        }
        Ok(span)
    };
    Ok(Aqm::Codel {
        target: time(target, Span::from_millis(5))?,
        interval: time(interval, Span::from_millis(100))?,
    })
}

/// Writes the form that [`aqm`] reads.
pub(super) fn aqm_text(aqm: Aqm) -> String {
    match aqm {
        Aqm::DropTail => "droptail".to_owned(),
        Aqm::CODEL => "codel".to_owned(),
        Aqm::Codel { target, interval } => format!("codel:target={target},interval={interval}"),
    }
}

/// Reads `P%:TIME`.
pub(super) fn reorder(given: &PlacedText) -> Result<Reorder> {
    let allowed = "P%:TIME such as 1%:5ms, which holds 1% of the packets back for 5ms";
    let Some((chance, by)) = given.text.split_once(':') else {
        return Err(given.error(Fault::Invalid, "not a share and a time").allow(allowed));
    };
    let refused = |error: QuantityError| refused(given, &error).allow(allowed);
    let reorder = Reorder {
        chance: quantity::percent(chance).map_err(refused)?,
        by: quantity::time(by).map_err(refused)?,
    };
    if reorder.by > MAX_DELAY {
        return Err(given.error(Fault::Invalid, "too long").allow("at most 600s"));
    }
    Ok(reorder)
}

/// Writes the form that [`reorder`] reads.
pub(super) fn reorder_text(reorder: Reorder) -> String {
    format!("{}:{}", Percent(reorder.chance), reorder.by)
}

/// Reads `1280`, or `1500@0s/1280@2s`.
pub(super) fn mtu(given: &PlacedText) -> Result<Vec<(Time, u32)>> {
    let bytes = |text: &str| {
        let most = text.trim().parse::<u32>().ok();
        most.filter(|most| (SMALLEST_MTU..=65_535).contains(most)).ok_or_else(|| {
            given.error(Fault::Invalid, "not a packet size").allow("bytes, from 68 to 65535")
        })
    };
    if !given.text.contains(['@', '/']) {
        return Ok(vec![(Time::ZERO, bytes(&given.text)?)]);
    }
    steps_of(given, "1500@0s/1280@2s", bytes)
}

/// Writes the form that [`mtu`] reads.
pub(super) fn mtu_text(steps: &[(Time, u32)]) -> String {
    if let [(Time::ZERO, most)] = steps {
        return most.to_string();
    }
    let step = |(at, most): &(Time, u32)| format!("{most}@{}", at.since(Time::ZERO));
    steps.iter().map(step).collect::<Vec<_>>().join("/")
}

/// Reads `WHAT`, `WHAT@TIME` or `WHAT@FROM..TO`.
pub(super) fn strip(given: &PlacedText) -> Result<Strip> {
    let allowed =
        "syn, synack, ack, first, data or all, from a time on as in data@2s or data@2s..3s";
    let (word, when) = match given.text.trim().split_once('@') {
        Some((word, when)) => (word, Some(when)),
        None => (given.text.trim(), None),
    };
    let Some((_, at)) = StripAt::ALL.iter().find(|(name, _)| *name == word) else {
        let names = StripAt::ALL.iter().map(|(name, _)| *name);
        return Err(PlacedText::new(&given.place, word).unknown("place to remove options", names));
    };
    let (from, until) = match when {
        None => (Time::ZERO, Time::NEVER),
        Some(span) if span.contains("..") => outage(&PlacedText::new(&given.place, span))?,
        Some(from) => {
            let from =
                quantity::time(from).map_err(|error| refused(given, &error).allow(allowed))?;
            (Time::ZERO + from, Time::NEVER)
        }
    };
    Ok(Strip { at: *at, from, until })
}

/// Writes the form that [`strip`] reads.
pub(super) fn strip_text(strip: Strip) -> String {
    let word = StripAt::ALL.iter().find(|(_, at)| *at == strip.at).map_or("", |(name, _)| name);
    match (strip.from.since(Time::ZERO), strip.until) {
        (Span::ZERO, Time::NEVER) => word.to_owned(),
        (from, Time::NEVER) => format!("{word}@{from}"),
        (from, until) => format!("{word}@{from}..{}", until.since(Time::ZERO)),
    }
}

/// Returns the values of `name=value,...` by name, each at most once.
fn parameters<'a, const N: usize>(
    given: &PlacedText,
    text: &'a str,
    names: [&str; N],
    allowed: &str,
) -> Result<[Option<&'a str>; N]> {
    let mut values = [None; N];
    for piece in text.split(',').map(str::trim) {
        let Some((name, value)) = piece.split_once('=') else {
            return Err(given.error(Fault::Invalid, "a parameter has no value").allow(allowed));
        };
        let name = name.trim();
        let Some(at) = names.iter().position(|known| *known == name) else {
            return Err(ScenarioError::unknown(&given.place, "parameter", name, names));
        };
        if values[at].replace(value.trim()).is_some() {
            let problem = format!("`{name}` is given twice");
            return Err(given.error(Fault::Conflict, &problem));
        }
    }
    Ok(values)
}

fn refused(given: &PlacedText, error: &QuantityError) -> ScenarioError {
    given.error(Fault::Invalid, &error.to_string())
}
