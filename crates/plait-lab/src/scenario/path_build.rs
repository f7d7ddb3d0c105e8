//! Builds a path or a shared link from its fields: reads every key, and checks that the keys fit
//! together.

use super::other_keys::unknown_key;
use super::path::{Both, Path, Speed};
use super::path_keys::{PATH_KEYS, PathKey};
use super::path_parse::{Reader, profile};
use super::placed_text::PlacedText;
use super::profile::{PROFILES, Profile};
use super::raw_scenario::RawPath;
use crate::error::{Fault, ScenarioError};

type Result<T> = core::result::Result<T, ScenarioError>;

/// Builds a path from its fields.
///
/// # Errors
/// For an unknown key, a key given twice, an invalid value, or keys that exclude each other. Also
/// for a trace that cannot be read, or a missing `rtt` or (unless `ideal`) rate.
pub(super) fn path(raw: &RawPath, ideal: bool, read: Reader<'_>) -> Result<Path> {
    check_name(&raw.name, "path")?;
    check_keys(raw, "path", |_| true)?;
    let path = match raw.field("profile") {
        Some(given) => Path::from_profile(&raw.name.text, profile(given)?),
        None => Path::blank(&raw.name.text),
    };
    let has_delay = path.profile.is_some();
    fill(path, raw, "path", has_delay, ideal, read)
}

/// Builds a shared link from its fields, the keys of a path that concern links. Without a delay it
/// adds none.
///
/// # Errors
/// As [`path`].
pub(super) fn link(raw: &RawPath, ideal: bool, read: Reader<'_>) -> Result<Path> {
    check_name(&raw.name, "link")?;
    if let [(key, given)] = raw.fields.as_slice()
        && key == "profile"
        && *given == raw.name
    {
        let problem = "this link has no settings";
        return Err(given.error(Fault::Missing, problem).allow("NAME:rate=20mbit,queue=50ms"));
    }
    check_keys(raw, "link", |key| key.of_links)?;
    fill(Path::blank(&raw.name.text), raw, "link", true, ideal, read)
}

/// Reads the keys of a path or a shared link. Unless `has_delay` is true, they must give a delay.
fn fill(
    mut path: Path,
    raw: &RawPath,
    what: &str,
    has_delay: bool,
    ideal: bool,
    read: Reader<'_>,
) -> Result<Path> {
    check_delay(raw, has_delay)?;
    for (first, second, allowed) in EXCLUSIVE {
        if let (Some(_), Some(given)) = (raw.field(first), raw.field(second)) {
            let problem = format!("{first} is given as well");
            return Err(given.error(Fault::Conflict, &problem).allow(allowed));
        }
    }
    for key in PATH_KEYS {
        raw.fields(key.name).try_for_each(|given| key.read(&mut path, given, read))?;
    }
    let Both { down, up } = &path.speed;
    if !ideal && (down.is_none() || up.is_none()) {
        let problem = if down.is_none() { "no rate" } else { "no rate_up" };
        return Err(raw.name.error(Fault::Missing, &format!("the {what} has {problem}")).allow(
            "rate=25mbit, or rate_down=RATE and rate_up=RATE, or trace=FILE; none with --ideal",
        ));
    }
    if let Some(given) = raw.field("offset")
        && ![down, up].into_iter().flatten().any(Speed::is_trace)
    {
        let problem = "there is no trace to start inside";
        return Err(given.error(Fault::Conflict, problem).allow("offset with trace=FILE"));
    }
    Ok(path)
}

pub(crate) fn check_name(given: &PlacedText, what: &str) -> Result<()> {
    let allowed = "letters, digits, `-` and `_`";
    if given.text.is_empty() {
        return Err(given.error(Fault::Missing, &format!("the {what} has no name")).allow(allowed));
    }
    if given.text.chars().count() > 32 {
        let problem = format!("a {what}'s name has at most 32 characters");
        return Err(given.error(Fault::Invalid, &problem));
    }
    if given.text.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_') {
        return Ok(());
    }
    Err(given.error(Fault::Invalid, &format!("not a {what}'s name")).allow(allowed))
}

fn check_keys(raw: &RawPath, what: &str, has: impl Fn(&PathKey) -> bool) -> Result<()> {
    for (at, (key, given)) in raw.fields.iter().enumerate() {
        if key.is_empty() {
            let problem = if given.text.is_empty() {
                "a comma too many: there is no setting beside it"
            } else {
                "a key is missing before `=`"
            };
            return Err(given.error(Fault::Missing, problem).allow("KEY=VALUE,KEY=VALUE"));
        }
        let Some(known) = PathKey::named(key).filter(|known| has(known)) else {
            let names: Vec<&str> =
                PATH_KEYS.iter().filter(|known| has(known)).map(|known| known.name).collect();
            return Err(unknown_key(&given.place, what, key, names.into_iter()));
        };
        if !known.repeats && raw.fields[..at].iter().any(|(earlier, _)| earlier == key) {
            let problem = format!("`{key}` is given twice");
            return Err(given.error(Fault::Conflict, &problem));
        }
    }
    Ok(())
}

/// Pairs of keys that exclude each other. The error points at the second and names the allowed
/// form.
const EXCLUSIVE: [(&str, &str, &str); 5] = [
    ("rtt", "owd_down", DELAYS),
    ("rtt", "owd_up", DELAYS),
    ("rate_down", "trace", "a rate or a trace"),
    ("rate_up", "trace_up", "a rate or a trace"),
    ("trace", "rate", "trace with rate_up or trace_up"),
];
const DELAYS: &str = "rtt=TIME, or owd_down=TIME and owd_up=TIME";

/// Checks that both directions have a delay.
fn check_delay(raw: &RawPath, has_delay: bool) -> Result<()> {
    let one = match (raw.field("owd_down"), raw.field("owd_up")) {
        _ if raw.field("rtt").is_some() => None,
        (None, None) if !has_delay => return Err(no_rtt(&raw.name, DELAYS)),
        (Some(one), None) | (None, Some(one)) => Some(one),
        _ => None,
    };
    one.map_or(Ok(()), |one| {
        let problem = "the other direction's delay is missing";
        Err(one.error(Fault::Missing, problem).allow(DELAYS))
    })
}

/// Returns the error for a path without an RTT. If the path has the name of a profile, it suggests
/// the profile.
fn no_rtt(name: &PlacedText, allowed: &str) -> ScenarioError {
    let problem = "the path has no rtt";
    match PROFILES.iter().find(|profile| profile.name == name.text.trim()) {
        Some(Profile { name: it, .. }) => name
            .error(Fault::Missing, &format!("{problem}; its name alone does not make it a profile"))
            .allow(&format!("{it} as it is, or changed: {it}:profile={it},KEY=VALUE")),
        None => name.error(Fault::Missing, problem).allow(allowed),
    }
}
