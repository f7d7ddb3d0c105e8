use alloc::vec::Vec;

use plait_base::Time;

/// How long a packet may be. It is asked with times that never go back, so it keeps its place.
#[derive(Clone, Debug)]
pub(crate) struct Mtus {
    /// In order of time.
    steps: Vec<(Time, u32)>,
    /// The first that is still to come.
    next: usize,
    most: u32,
}

impl Mtus {
    pub(crate) fn new(steps: &[(Time, u32)]) -> Mtus {
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.0);
        Mtus { steps, next: 0, most: u32::MAX }
    }

    /// Whether packets may have any length, always.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether a packet of `size` bytes that is offered at `at` fits.
    #[inline]
    pub(crate) fn admits(&mut self, at: Time, size: u32) -> bool {
        while let Some(&(_, most)) = self.steps.get(self.next).filter(|step| step.0 <= at) {
            self.most = most;
            self.next += 1;
        }
        size <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_holds_until_the_next() {
        let at = Time::from_nanos;
        let mut mtus = Mtus::new(&[(at(20), 600), (at(10), 1_280), (at(20), 1_400)]);
        let table = [(0, 9_000, true), (10, 1_281, false), (19, 1_280, true), (20, 1_400, true)];
        for (time, size, fits) in table {
            assert_eq!(mtus.admits(at(time), size), fits, "{size} bytes at {time}");
        }
        assert!(!mtus.admits(at(99), 1_401));
        assert!(Mtus::new(&[]).admits(at(5), u32::MAX));
    }
}
