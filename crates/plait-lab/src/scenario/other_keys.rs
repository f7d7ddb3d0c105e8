//! Keys that people know from other tools, and the keys here that they mean.

use crate::error::{Place, ScenarioError};
use plait_app::name::nearest;

/// Keys that other tools have, and the key here that means the same.
const SAME_KEYS: [(&str, &str); 2] = [("bandwidth", "rate"), ("bw", "rate")];
/// Keys that other tools have, and the key here that comes nearest.
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
/// Keys that other tools have for a delay, some for one way and some for both.
const DELAY_KEYS: [&str; 5] = ["delay", "lat", "latency", "owd", "ping"];

/// The key that a key of another tool stands for; any other as it is.
pub(crate) fn canonical(key: &str) -> &str {
    SAME_KEYS.iter().find(|known| known.0 == key).map_or(key, |known| known.1)
}

/// The error of a key that a path or a link does not have.
pub(super) fn unknown_key<'a>(
    place: &Place,
    what: &str,
    key: &str,
    keys: impl Iterator<Item = &'a str> + Clone,
) -> ScenarioError {
    nearest_key(ScenarioError::unknown(place, &format!("key of a {what}"), key, keys.clone()), keys)
}

/// The error of an unknown key, with the key that a user of other tools means.
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
