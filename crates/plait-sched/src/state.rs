//! Named values of saved states. The name of a value per subflow is a prefix, the id and a suffix,
//! as in `quota.1`.

use alloc::format;
use alloc::vec::Vec;
use plait_base::{SubflowId, Time};

use crate::{Notice, exact};

/// Writes one value per subflow, as `number` returns it for each of `slots`.
pub(crate) fn save_each<T>(
    prefix: &str,
    suffix: &str,
    slots: &[T],
    write: &mut dyn FnMut(&str, f64),
    number: impl Fn(&T) -> Option<f64>,
) {
    for (id, slot) in slots.iter().enumerate() {
        if let Some(value) = number(slot) {
            write(&format!("{prefix}{id}{suffix}"), value);
        }
    }
}

/// Drops the state kept for a reused id when a subflow begins.
pub(crate) fn forget<T: Default>(notice: Notice, slots: &mut [T]) {
    if let Notice::SubflowsChanged { began: Some(id), .. } = notice
        && let Some(slot) = slots.get_mut(id.index())
    {
        *slot = T::default();
    }
}

/// Returns the slot named by `name`, if it has this prefix and suffix and a valid id between them.
pub(crate) fn slot<'a, T>(
    prefix: &str,
    suffix: &str,
    name: &str,
    slots: &'a mut [T; SubflowId::MAX],
) -> Option<&'a mut T> {
    slots.get_mut(index(prefix, suffix, name)?)
}

/// Returns the valid id between this prefix and suffix of `name`.
fn index(prefix: &str, suffix: &str, name: &str) -> Option<usize> {
    let id = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    id.parse().ok().filter(|id| *id < SubflowId::MAX)
}

/// State kept for each subflow, by id. It grows no larger than the highest id in use requires.
#[derive(Clone, Debug)]
pub(crate) struct BySubflow<T>(Vec<T>);

impl<T: Clone + Default> BySubflow<T> {
    pub(crate) const fn new() -> BySubflow<T> {
        BySubflow(Vec::new())
    }

    /// Returns the state of a subflow, if there is any.
    pub(crate) fn find(&self, id: SubflowId) -> Option<&T> {
        self.0.get(id.index())
    }

    /// Returns the state of a subflow, and allocates it on the first use.
    #[inline]
    pub(crate) fn of(&mut self, id: SubflowId) -> &mut T {
        let at = id.index();
        if at >= self.0.len() {
            self.make_room(at + 1);
        }
        &mut self.0[at]
    }

    #[cold]
    fn make_room(&mut self, subflows: usize) {
        self.0.reserve_exact(subflows - self.0.len());
        self.0.resize(subflows, T::default());
    }

    /// Returns all state, by id. Subflows without state may be missing at the end.
    pub(crate) fn all_mut(&mut self) -> &mut [T] {
        &mut self.0
    }

    /// Returns all state, by id.
    pub(crate) fn all(&self) -> &[T] {
        &self.0
    }

    /// Returns the state named by `name`, if it has this prefix and suffix and a valid id between
    /// them.
    pub(crate) fn named(&mut self, prefix: &str, suffix: &str, name: &str) -> Option<&mut T> {
        index(prefix, suffix, name).map(|at| self.of(SubflowId(at as u8)))
    }
}

/// Converts a saved value to a subflow id; `None` if it is out of range.
pub(crate) fn subflow(value: f64) -> Option<SubflowId> {
    let valid = value >= 0.0 && value < SubflowId::MAX as f64;
    valid.then(|| SubflowId(exact::nearest(value) as u8)).filter(|id| id.index() < SubflowId::MAX)
}

/// Converts milliseconds to a time; `None` if the value is negative or NaN.
pub(crate) fn time(millis: f64) -> Option<Time> {
    (millis >= 0.0).then(|| Time::from_nanos(exact::nanos_of_millis(millis)))
}

/// Converts a time to milliseconds.
pub(crate) fn millis(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}
