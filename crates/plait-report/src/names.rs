//! Errors about unknown names, with the nearest name and all allowed names.

use plait_app::name::nearest;
use plait_params::{Listed, ParamError, ParamFault, SpecError};
use plait_sched::Decorator;

/// Returns "unknown THING `GIVEN`", the nearest name if one is near, and the allowed names.
pub fn unknown<'a>(
    thing: &str,
    given: &str,
    allowed: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let mut text = format!("unknown {thing} `{given}`");
    if let Some(near) = nearest(given, allowed.clone()) {
        text.push_str(&format!("; did you mean `{near}`?"));
    }
    let names: Vec<&str> = allowed.collect();
    text.push_str(&format!("\n  allowed: {}", names.join(" ")));
    text
}

/// Returns the correct place of a scheduler's parameter if it belongs to a decorator.
fn of_decorator(error: &ParamError) -> String {
    let has = |it: &&Decorator| it.about.params.iter().any(|param| param.name == error.key);
    let of_controller = plait_cc::Entry::find(error.owner).is_some();
    match plait_sched::DECORATORS.iter().find(has) {
        Some(owner) if owner.about.name != error.owner && !of_controller => {
            format!(
                "\n  it is a parameter of `+{0}`: write `+{0}:{1}=...`",
                owner.about.name, error.key
            )
        }
        _ => String::new(),
    }
}

/// Returns the error for an invalid name or parameter of a scheduler or controller, with the
/// nearest name.
#[must_use]
pub fn spec_problem(error: &SpecError) -> String {
    match error {
        SpecError::UnknownName { what, given, allowed } => {
            unknown(what, given, allowed.iter().copied())
        }
        SpecError::Class { why: Some(_), .. } => error.to_string(),
        SpecError::Class { allowed, .. } => format!("{error}\n  allowed: {}", allowed.join(" ")),
        SpecError::Param(error)
            if error.fault == ParamFault::UnknownKey && !error.known.is_empty() =>
        {
            let known = error.known.iter().map(|param| param.name);
            let problem = unknown(&format!("parameter of {}", error.owner), &error.key, known);
            format!("{problem}{}", of_decorator(error))
        }
        SpecError::Param(error) if error.fault == ParamFault::Repeated => {
            format!("{error}\n  remedy: give it once")
        }
        SpecError::Param(error) => match error.allowed() {
            Some(allowed) => format!("{}\n  allowed: {allowed}", error.problem()),
            None => error.to_string(),
        },
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_brings_the_nearest_and_all() {
        let names = ["minrtt", "blest", "ecf"];
        assert_eq!(
            unknown("scheduler", "blast", names.into_iter()),
            "unknown scheduler `blast`; did you mean `blest`?\n  allowed: minrtt blest ecf"
        );
    }

    #[test]
    fn problems_of_a_spec_bring_the_nearest_name() {
        let problem = |text: &str| spec_problem(&plait_sched::Spec::parse(text).unwrap_err());
        assert!(problem("blset").contains("did you mean `blest`?"));
        assert!(problem("ecf:bta=1").contains("did you mean `beta`?"));
        assert!(problem("minrtt+rq").contains("did you mean `rp`?"));
        assert!(problem("ecf:beta=x").contains("a number from"));
        let class =
            "`mine:Spare`: a class needs the `plait` of the Python package\n  allowed: minrtt ";
        assert!(problem("mine:Spare+rp").starts_with(class));
        let listed =
            crate::list::ListDocument::of(crate::list::ListKind::Schedulers, Some("mine:Spare"));
        assert!(listed.unwrap_err().starts_with(class));
    }

    #[test]
    fn a_parameter_of_a_decorator_is_pointed_out_to_schedulers_only() {
        let scheduler = plait_sched::Spec::parse("ecf:strict=on").unwrap_err();
        assert!(spec_problem(&scheduler).contains("`+rp:strict=...`"));
        let controller = plait_cc::Spec::parse("olia:strict=on").unwrap_err();
        assert!(!spec_problem(&controller).contains("+rp"));
    }
}
