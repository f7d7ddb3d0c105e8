//! Named values of saved states: one per subflow is named `PREFIX` id `SUFFIX`, as `quota.1`.

use alloc::format;
use plait_base::{SubflowId, Time};

use crate::exact;

/// Writes the values of `slots`, one per subflow, that `number` gives.
pub(crate) fn save_each<T>(
    prefix: &str,
    suffix: &str,
    slots: &[T; SubflowId::MAX],
    write: &mut dyn FnMut(&str, f64),
    number: impl Fn(&T) -> Option<f64>,
) {
    for (id, slot) in slots.iter().enumerate() {
        if let Some(value) = number(slot) {
            write(&format!("{prefix}{id}{suffix}"), value);
        }
    }
}

/// The slot that `name` speaks of, if it has this prefix and suffix and a valid id between them.
pub(crate) fn slot<'a, T>(
    prefix: &str,
    suffix: &str,
    name: &str,
    slots: &'a mut [T; SubflowId::MAX],
) -> Option<&'a mut T> {
    let id = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let id: usize = id.parse().ok()?;
    slots.get_mut(id)
}

/// A subflow id, or none for a value that is none.
pub(crate) fn subflow(value: f64) -> Option<SubflowId> {
    let valid = value >= 0.0 && value < SubflowId::MAX as f64;
    valid.then(|| SubflowId(exact::nearest(value) as u8)).filter(|id| id.index() < SubflowId::MAX)
}

/// A time in milliseconds; none for a negative or undefined value.
pub(crate) fn time(millis: f64) -> Option<Time> {
    (millis >= 0.0).then(|| Time::from_nanos(exact::nanos_of_millis(millis)))
}

/// Milliseconds of a time.
pub(crate) fn millis(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}
