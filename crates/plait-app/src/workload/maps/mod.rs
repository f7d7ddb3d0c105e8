//! A user of an online map: bursts of small objects over one persistent connection.
//!
//! The trace of the paper (ToN, Fig. 11) is not published. This is the model of it that
//! `docs/video.md` describes.

use super::error::WorkloadError;
use super::exchange::Due;
use super::field::{size_bytes, time};
use crate::quantity::{self, Bytes};
use core::fmt;
use plait_base::{RandomStream, Span};
use std::sync::Arc;

/// Mean time between actions, in seconds.
const ACTION: f64 = 4.0;
/// Minimum and maximum number of objects of an action.
const OBJECTS: (u64, u64) = (3, 15);
/// Minimum and maximum time between two objects of an action, in microseconds.
const APART: (u64, u64) = (5_000, 30_000);
/// Standard deviation of the logarithm of an object's size.
const SIGMA: f64 = 0.9;
/// Largest object, as a fraction of the median: 80/9, which is 80 kB for a median of 9 kB.
const CAP: (u64, u64) = (80, 9);
/// Default median of an object's size, in bytes.
const MEDIAN: u64 = 9_000;
/// Longest session; a longer one is refused.
const MAX_DURATION: Span = Span::from_secs(86_400);

/// A session with an online map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Maps {
    /// Actions start within this time.
    pub duration: Span,
    /// Median of an object's size in bytes.
    pub median: u64,
    /// Seed of the trace. The same seed gives the same trace.
    pub seed: u64,
}

impl Maps {
    /// Reads `90s` or `90s,median=9kB,seed=1`.
    pub(super) fn parse(
        text: &str,
        form: &dyn Fn() -> WorkloadError,
    ) -> Result<Maps, WorkloadError> {
        let mut parts = text.split(',');
        let duration = time("DURATION", parts.next().unwrap_or_default())?;
        let mut maps = Maps { duration, median: MEDIAN, seed: 1 };
        for part in parts {
            match part.split_once('=') {
                Some(("median", text)) => maps.median = size_bytes("median", text)?,
                Some(("seed", text)) => maps.seed = text.parse().map_err(|_| form())?,
                _ => return Err(form()),
            }
        }
        if duration > MAX_DURATION || maps.median > 1 << 30 {
            return Err(WorkloadError::TooLarge { given: quantity::shortened(text) });
        }
        Ok(maps)
    }

    /// Returns the requests of the session, in order of time.
    #[must_use]
    pub fn schedule(&self) -> Arc<[Due]> {
        let mut stream = RandomStream::new(self.seed, &["maps"]);
        let mut schedule = Vec::new();
        let mut action = Span::ZERO;
        let cap = self.median.saturating_mul(CAP.0) / CAP.1;
        while action < self.duration {
            let mut at = action;
            for _ in 0..stream.within(OBJECTS.0, OBJECTS.1) {
                let factor = libm::exp(SIGMA * normal(&mut stream));
                let bytes = ((self.median as f64 * factor) as u64).clamp(1, cap.max(1));
                schedule.push(Due { at, bytes });
                at += Span::from_micros(stream.within(APART.0, APART.1));
            }
            action += exponential(&mut stream, ACTION);
        }
        // An action may start before the previous one has ended.
        schedule.sort_by_key(|due| due.at);
        schedule.into()
    }
}

/// Omits the median and the seed if they have their default values.
impl fmt::Display for Maps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.duration)?;
        if self.median != MEDIAN {
            write!(f, ",median={}", Bytes(self.median))?;
        }
        if self.seed != 1 {
            write!(f, ",seed={}", self.seed)?;
        }
        Ok(())
    }
}

/// Returns a standard normal number (Box and Muller).
fn normal(stream: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(core::f64::consts::TAU * stream.unit())
}

/// Returns an exponentially distributed time with this mean in seconds.
fn exponential(stream: &mut RandomStream, mean: f64) -> Span {
    let seconds = -mean * libm::log(1.0 - stream.unit());
    Span::from_nanos((seconds * 1e9) as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_what_the_model_says() {
        let maps = Maps { duration: Span::from_secs(40_000), median: MEDIAN, seed: 1 };
        let schedule = maps.schedule();
        // 10,000 actions of 9 objects.
        let objects = schedule.len() as f64;
        assert!((objects / 90_000.0 - 1.0).abs() < 0.05, "{objects}");
        let mut sizes: Vec<u64> = schedule.iter().map(|due| due.bytes).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2] as f64;
        assert!((median / 9_000.0 - 1.0).abs() < 0.02, "{median}");
        assert_eq!(sizes.last(), Some(&80_000));
        // log(80 / 9) / 0.9 is 2.43 deviations: 0.76 % of a normal distribution lies above.
        let capped = sizes.iter().filter(|size| **size == 80_000).count() as f64 / objects;
        assert!((0.005..0.010).contains(&capped), "{capped}");
        assert!(schedule.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn another_seed_is_another_session_of_the_same_length() {
        let session =
            |seed| Maps { duration: Span::from_secs(90), median: MEDIAN, seed }.schedule();
        assert_eq!(session(1), session(1));
        assert_ne!(session(1), session(2));
        // Objects follow an action by at most 14 times 30 ms.
        let end = Span::from_millis(90_000 + 14 * 30);
        assert!((1..50).all(|seed| session(seed).iter().all(|due| due.at < end)));
        assert!((1..50).all(|seed| session(seed)[0].at == Span::ZERO));
    }
}
