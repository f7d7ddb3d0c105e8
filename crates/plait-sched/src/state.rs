//! Named values of saved states: one per subflow is named `PREFIX` id `SUFFIX`, as `quota.1`.

use alloc::format;
use alloc::vec::Vec;
use plait_base::{SubflowId, Time};

use crate::{Notice, exact};

/// Writes the values of `slots`, one per subflow, that `number` gives.
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

/// Forgets what is remembered under the id of a subflow that begins: it was another's.
pub(crate) fn forget<T: Default>(notice: Notice, slots: &mut [T]) {
    if let Notice::SubflowsChanged { began: Some(id), .. } = notice
        && let Some(slot) = slots.get_mut(id.index())
    {
        *slot = T::default();
    }
}

/// The slot that `name` speaks of, if it has this prefix and suffix and a valid id between them.
pub(crate) fn slot<'a, T>(
    prefix: &str,
    suffix: &str,
    name: &str,
    slots: &'a mut [T; SubflowId::MAX],
) -> Option<&'a mut T> {
    slots.get_mut(index(prefix, suffix, name)?)
}

/// The valid id that `name` has between this prefix and suffix.
fn index(prefix: &str, suffix: &str, name: &str) -> Option<usize> {
    let id = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    id.parse().ok().filter(|id| *id < SubflowId::MAX)
}

/// What is remembered of each subflow, by id: no more of it than there are subflows.
#[derive(Clone, Debug)]
pub(crate) struct BySubflow<T>(Vec<T>);

impl<T: Clone + Default> BySubflow<T> {
    pub(crate) const fn new() -> BySubflow<T> {
        BySubflow(Vec::new())
    }

    /// What is remembered of a subflow, if it ever was.
    pub(crate) fn find(&self, id: SubflowId) -> Option<&T> {
        self.0.get(id.index())
    }

    /// What is remembered of a subflow. The first that is of a new one makes room for it.
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

    /// All that is remembered, by id; a subflow of which nothing ever was may be missing.
    pub(crate) fn all_mut(&mut self) -> &mut [T] {
        &mut self.0
    }

    /// All that is remembered, by id.
    pub(crate) fn all(&self) -> &[T] {
        &self.0
    }

    /// What `name` speaks of, if it has this prefix and suffix and a valid id between them.
    pub(crate) fn named(&mut self, prefix: &str, suffix: &str, name: &str) -> Option<&mut T> {
        index(prefix, suffix, name).map(|at| self.of(SubflowId(at as u8)))
    }
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
