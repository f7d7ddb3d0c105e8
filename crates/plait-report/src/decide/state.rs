//! Checks that a value of a saved state could have been saved.

use super::Refusal;

/// Greatest error from loading and saving a value. Times are kept in nanoseconds (1e-6 ms), counts
/// in billionths.
const ROUNDING: f64 = 1e-6;

/// Returns an error if a scheduler or controller that loads `value` would not save the same value.
/// Such a value never came from an answer. Zero may be saved as an absent value. `place` is the
/// path of the state; `words` are the names of the state and their meanings.
pub(super) fn is_kept(
    place: &str,
    (name, value): (&str, f64),
    kept: Option<f64>,
    words: &[(&str, &str)],
) -> Result<(), Refusal> {
    let near = |kept: f64| (kept - value).abs() <= ROUNDING + value.abs() * 1e-12;
    if kept.map_or(value == 0.0, near) {
        return Ok(());
    }
    let meaning = words.iter().find(|(pattern, _)| is_of(pattern, name));
    let meaning = meaning.map_or(String::new(), |(_, meaning)| format!("\n  it is: {meaning}"));
    let remedy = match kept {
        Some(kept) => format!("give {kept}, the value that is kept"),
        None => "leave it out if there is none".to_owned(),
    };
    let problem = format!("cannot be {value}{meaning}\n  remedy: {remedy}");
    Err(Refusal::new(&format!("{place}.{name}"), &problem))
}

/// Returns true if a name such as `gap.1` or `step.1.14.bytes` matches a pattern such as `gap.ID` or
/// `step.ID.N.bytes`: `ID` is a subflow, `N` a place in a list.
fn is_of(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('.'), name.split('.'));
    let same = patterns.by_ref().zip(parts.by_ref()).all(|(pattern, part)| match pattern {
        "N" => part.parse::<u32>().is_ok(),
        _ => match pattern.strip_prefix("ID") {
            None => pattern == part,
            Some(unit) => part.strip_suffix(unit).is_some_and(|id| id.parse::<u8>().is_ok()),
        },
    });
    same && pattern.split('.').count() == name.split('.').count()
}
