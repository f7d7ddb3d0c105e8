//! Keys that users know from other tools, with the equivalent keys of plait.

use crate::error::{Place, ScenarioError};
use plait_app::name::nearest;

/// Keys of other tools, with the key of the same meaning.
const SAME_KEYS: [(&str, &str); 2] = [("bandwidth", "rate"), ("bw", "rate")];
/// Keys of other tools, with the closest key.
const NEAR_KEYS: [(&str, &str); 14] = [
    ("buf", "queue"),
    ("buffer", "queue"),
    ("capacity", "rate"),
    ("drop", "loss"),
    ("dup", "duplicate"),
    ("limit", "queue"),
    ("plr", "loss"),
    ("qlen", "queue"),
    ("speed", "rate"),
    ("throughput", "rate"),
    ("download", "rate_down"),
    ("downlink", "rate_down"),
    ("upload", "rate_up"),
    ("uplink", "rate_up"),
];
/// Keys of other tools for a delay: one way in some, both ways in others.
const DELAY_KEYS: [&str; 5] = ["delay", "lat", "latency", "owd", "ping"];

/// Returns the equivalent key of plait, or the key itself if there is none.
pub(crate) fn canonical(key: &str) -> &str {
    SAME_KEYS.iter().find(|known| known.0 == key).map_or(key, |known| known.1)
}

/// Returns the error for a key that a path or a link does not have.
pub(super) fn unknown_key<'a>(
    place: &Place,
    what: &str,
    key: &str,
    keys: impl Iterator<Item = &'a str> + Clone,
) -> ScenarioError {
    nearest_key(ScenarioError::unknown(place, &format!("key of a {what}"), key, keys.clone()), keys)
}

/// Adds the closest key to the error of an unknown key: the equivalent of another tool's key, or
/// else the most similar name.
pub(crate) fn nearest_key<'a>(
    mut error: ScenarioError,
    keys: impl Iterator<Item = &'a str> + Clone,
) -> ScenarioError {
    let spelled = error.given.replace('-', "_").to_ascii_lowercase();
    if DELAY_KEYS.contains(&spelled.as_str()) {
        error.nearest = None;
        return error
            .allow("rtt=TIME for both ways together, or owd_down=TIME and owd_up=TIME for each");
    }
    let near = NEAR_KEYS.iter().chain(&SAME_KEYS).find(|near| near.0 == spelled).map(|near| near.1);
    let near = near.filter(|near| keys.clone().any(|key| key == *near));
    error.nearest = near.or_else(|| nearest(&spelled, keys)).map(str::to_owned);
    error
}
