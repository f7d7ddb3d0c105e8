//! Lists of schedulers and of congestion controllers.

use super::placed_text::PlacedText;
use crate::error::{Fault, ScenarioError};
use plait_app::name::nearest;
use plait_params::{Listed, SpecError, is_parameter};

type Result<T> = core::result::Result<T, ScenarioError>;

/// Most names in a list.
const MOST_NAMES: usize = 200;
/// All schedulers, in a list of them.
const ALL: &str = "all";

pub(super) fn schedulers(given: &PlacedText) -> Result<Vec<plait_sched::Spec>> {
    let every: Vec<&str> = plait_sched::all().map(|entry| entry.about.name).collect();
    let parse = |piece: &str| {
        plait_sched::Spec::parse(piece).map_err(|error| refused(given, piece, &error))
    };
    let pieces = pieces_of(given, given.text.trim(), "scheduler", &every)?;
    let mut named: Vec<plait_sched::Spec> = Vec::new();
    let mut place_of_all = None;
    for piece in pieces {
        let again = if piece == ALL {
            place_of_all.replace(named.len()).is_some()
        } else {
            let spec = parse(&piece)?;
            let again = named.contains(&spec);
            named.push(spec);
            again
        };
        if again {
            return Err(twice(given, &piece));
        }
    }
    // `all` stands for the schedulers that the list does not name.
    if let Some(at) = place_of_all {
        let mut others = every.iter().map(|name| parse(name)).collect::<Result<Vec<_>>>()?;
        others.retain(|spec| !named.contains(spec));
        named.splice(at..at, others);
    }
    Ok(named)
}

pub(super) fn controllers(given: &PlacedText) -> Result<Vec<plait_cc::Spec>> {
    let every: Vec<&str> = plait_cc::CONTROLLERS.iter().map(|entry| entry.about.name).collect();
    let mut specs: Vec<plait_cc::Spec> = Vec::new();
    for piece in pieces_of(given, given.text.trim(), "congestion controller", &every)? {
        let spec = plait_cc::Spec::parse(&piece).map_err(|error| refused(given, &piece, &error))?;
        if specs.contains(&spec) {
            return Err(twice(given, &spec.name()));
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// Returns the pieces of a list. `key=value` without a name belongs to the piece before it.
fn pieces_of(given: &PlacedText, text: &str, what: &str, names: &[&str]) -> Result<Vec<String>> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim) {
        if pieces.len() > MOST_NAMES {
            let problem = format!("more than {MOST_NAMES} names in a list");
            return Err(ScenarioError::new(&given.place, Fault::Invalid, "", &problem)
                .allow(&format!("at most {MOST_NAMES}")));
        }
        match pieces.last_mut() {
            Some(last) if is_parameter(piece) => {
                last.push(',');
                last.push_str(piece);
            }
            _ if piece.is_empty() => {
                let problem = format!("a {what}'s name is missing");
                return Err(given.error(Fault::Missing, &problem).allow(&names.join(", ")));
            }
            _ => pieces.push(piece.to_owned()),
        }
    }
    Ok(pieces)
}

pub(super) fn twice(given: &PlacedText, name: &str) -> ScenarioError {
    ScenarioError::new(&given.place, Fault::Conflict, name, "given twice")
}

/// Returns the error for a refused piece of a list.
fn refused(given: &PlacedText, piece: &str, error: &SpecError) -> ScenarioError {
    let place = &given.place;
    let (problem, allowed) = match error {
        SpecError::UnknownName { what, given, allowed } => {
            let all = (*what == plait_sched::Entry::WHAT).then_some(ALL);
            if all == Some(given) {
                let problem = "`all` takes no parameters and no decorators";
                return ScenarioError::new(place, Fault::Invalid, piece, problem)
                    .allow("all, beside others such as ecf:beta=0.5 or blest+rp");
            }
            let names = all.into_iter().chain(allowed.iter().copied());
            return ScenarioError::unknown(place, what, given, names);
        }
        SpecError::Class { allowed, .. } => {
            let text = error.to_string();
            match text.split_once("\n  allowed: ") {
                Some((problem, instead)) => (problem.to_owned(), Some(instead.to_owned())),
                None => (text, Some(allowed.join(", "))),
            }
        }
        SpecError::Param(error) => (error.problem(), error.allowed()),
        SpecError::Repeated { .. } => (error.to_string(), None),
    };
    let mut refused = ScenarioError::new(place, Fault::Invalid, piece, &problem)
        .allow(&allowed.unwrap_or_default());
    refused.nearest = nearest(error.given(), error.allowed()).map(str::to_owned);
    refused
}
