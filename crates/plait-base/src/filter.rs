use crate::{Span, Time};

/// The least value of a sliding window of time, in constant space. It keeps three samples: the
/// best, and the best of two later parts of the window.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMin {
    best: [(Time, Span); 3],
}

impl WindowedMin {
    /// Returns a filter without samples.
    #[must_use]
    pub const fn new() -> WindowedMin {
        WindowedMin { best: [(Time::ZERO, Span::MAX); 3] }
    }

    /// Returns the least value; `None` without samples.
    #[must_use]
    pub fn value(&self) -> Option<Span> {
        (self.best[0].1 != Span::MAX).then_some(self.best[0].1)
    }

    /// Adds a value measured at `now`. The window must be the same each time; [`Span::MAX`] keeps
    /// the least value forever.
    #[inline(always)]
    pub fn update(&mut self, now: Time, value: Span, window: Span) {
        let sample = (now, value);
        if value <= self.best[0].1 || now.since(self.best[2].0) > window {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        self.expire(now, sample, window);
    }

    fn expire(&mut self, now: Time, sample: (Time, Span), window: Span) {
        let age = now.since(self.best[0].0);
        if age > window {
            self.best = [self.best[1], self.best[2], sample];
            if now.since(self.best[0].0) > window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window.over(4) {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > window.over(2) {
            self.best[2] = sample;
        }
    }
}

impl Default for WindowedMin {
    fn default() -> WindowedMin {
        WindowedMin::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_minimum_is_forgotten_and_a_new_one_taken_at_once() {
        let ms = Span::from_millis;
        let at = |millis| Time::ZERO + ms(millis);
        let mut filter = WindowedMin::new();
        filter.update(at(0), ms(10), ms(100));
        filter.update(at(50), ms(20), ms(100));
        assert_eq!(filter.value(), Some(ms(10)));
        filter.update(at(120), ms(30), ms(100));
        assert_eq!(filter.value(), Some(ms(20)));
        filter.update(at(130), ms(5), ms(100));
        assert_eq!(filter.value(), Some(ms(5)));
    }
}
