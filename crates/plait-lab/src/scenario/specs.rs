//! Lists of schedulers and of congestion controllers.

use super::placed_text::PlacedText;
use crate::error::{Fault, ScenarioError};
use plait_app::name::nearest;
use plait_cc::SpecError as CcError;
use plait_sched::SpecError;

type Result<T> = core::result::Result<T, ScenarioError>;

/// Most names in a list.
const MOST_NAMES: usize = 200;
/// Stands for every scheduler in a list of them.
const ALL: &str = "all";

pub(super) fn schedulers(given: &PlacedText) -> Result<Vec<plait_sched::Spec>> {
    let every: Vec<&str> = plait_sched::SCHEDULERS.iter().map(|entry| entry.name).collect();
    let parse = |piece: &str| {
        plait_sched::Spec::parse(piece).map_err(|error| scheduler_error(given, piece, &error))
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
    // `all` stands for those that the list does not name itself.
    if let Some(at) = place_of_all {
        let mut others = every.iter().map(|name| parse(name)).collect::<Result<Vec<_>>>()?;
        others.retain(|spec| !named.contains(spec));
        named.splice(at..at, others);
    }
    Ok(named)
}

pub(super) fn controllers(given: &PlacedText) -> Result<Vec<plait_cc::Spec>> {
    let every: Vec<&str> = plait_cc::CONTROLLERS.iter().map(|entry| entry.name).collect();
    let mut specs: Vec<plait_cc::Spec> = Vec::new();
    for piece in pieces_of(given, given.text.trim(), "congestion controller", &every)? {
        let spec = plait_cc::Spec::parse(&piece)
            .map_err(|error| controller_error(given, &piece, &error))?;
        if specs.contains(&spec) {
            return Err(twice(given, &spec.name()));
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// Whether a piece of a list is a parameter of the piece before it: `key=value` without a name before it.
pub(crate) fn goes_on(piece: &str) -> bool {
    let key = piece.split(['=', ':', '+']).next().unwrap_or_default();
    piece.as_bytes().get(key.len()) == Some(&b'=')
}

/// The pieces of a list. `key=value` without a name before it goes on with the piece before.
fn pieces_of(given: &PlacedText, text: &str, what: &str, names: &[&str]) -> Result<Vec<String>> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim) {
        if pieces.len() > MOST_NAMES {
            let problem = format!("more than {MOST_NAMES} names in a list");
            return Err(ScenarioError::new(&given.place, Fault::Invalid, "", &problem)
                .allow(&format!("at most {MOST_NAMES}")));
        }
        match pieces.last_mut() {
            Some(last) if goes_on(piece) => {
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

fn scheduler_error(given: &PlacedText, piece: &str, error: &SpecError) -> ScenarioError {
    let what = match error {
        SpecError::UnknownName(_) => "scheduler",
        SpecError::UnknownDecorator(_) => "decorator",
        _ => "",
    };
    let allowed = error.allowed();
    let place = &given.place;
    if what == "scheduler" && error.given() == ALL {
        let problem = "`all` takes no parameters and no decorators";
        return ScenarioError::new(place, Fault::Invalid, piece, problem)
            .allow("all, beside others such as ecf:beta=0.5 or blest+rp");
    }
    if what.is_empty() {
        let (problem, would_do) = match error {
            SpecError::Param(error) => (error.problem(), error.allowed()),
            _ => (error.to_string(), None),
        };
        let mut refused = ScenarioError::new(place, Fault::Invalid, piece, &problem)
            .allow(&would_do.unwrap_or_default());
        refused.nearest = nearest(error.given(), allowed).map(str::to_owned);
        return refused;
    }
    let all = (what == "scheduler").then_some(ALL);
    ScenarioError::unknown(place, what, error.given(), all.into_iter().chain(allowed))
}

fn controller_error(given: &PlacedText, piece: &str, error: &CcError) -> ScenarioError {
    let allowed = error.allowed();
    let names = || allowed.iter().map(String::as_str);
    if let CcError::UnknownName { given: name } = error {
        let what = "congestion controller";
        return ScenarioError::unknown(&given.place, what, name, names());
    }
    let mut refused = ScenarioError::new(&given.place, Fault::Invalid, piece, &error.to_string());
    refused.nearest = nearest(error.given(), names()).map(str::to_owned);
    refused
}
