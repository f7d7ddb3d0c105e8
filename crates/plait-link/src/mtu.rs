use alloc::vec::Vec;

use plait_base::Time;

/// The MTU of a link over time. Queries must be in order of time, so that it can keep its position.
#[derive(Clone, Debug)]
pub(crate) struct Mtus {
    /// Steps in order of time.
    steps: Vec<(Time, u32)>,
    /// Index of the next step.
    next: usize,
    most: u32,
}

impl Mtus {
    pub(crate) fn new(steps: &[(Time, u32)]) -> Mtus {
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.0);
        Mtus { steps, next: 0, most: u32::MAX }
    }

    /// Returns true if packets of any length are admitted at any time.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns true if a packet of `size` bytes that is offered at `at` fits.
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
