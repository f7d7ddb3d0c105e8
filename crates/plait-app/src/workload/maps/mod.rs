//! A person with a map: bursts of small objects over one persistent connection.
//!
//! The trace of the paper (ToN, Fig. 11) is not published; this is the model of it in
//! `docs/video.md`.

use super::error::WorkloadError;
use super::exchange::Due;
use super::field::{size_bytes, time};
use crate::quantity::{self, Bytes};
use core::fmt;
use plait_base::{RandomStream, Span};
use std::sync::Arc;

/// From one action to the next, on average.
const ACTION: f64 = 4.0;
/// Objects of an action.
const OBJECTS: (u64, u64) = (3, 15);
/// From one object to the next, in microseconds.
const APART: (u64, u64) = (5_000, 30_000);
/// Of the logarithm of an object's size.
const SIGMA: f64 = 0.9;
/// No object is larger than this many times the median: 80 kB of 9 kB.
const CAP: (u64, u64) = (80, 9);
/// The median of an object's size where nothing is said.
const MEDIAN: u64 = 9_000;
/// The longest session.
const LONGEST: Span = Span::from_secs(86_400);

/// A session with a map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Maps {
    /// Actions happen within this time.
    pub duration: Span,
    /// Median of an object's size in bytes.
    pub median: u64,
    /// Of the trace: the same seed is the same trace.
    pub seed: u64,
}

impl Maps {
    /// Reads `90s`, `90s,median=9kB,seed=1`.
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
        if duration > LONGEST || maps.median > 1 << 30 {
            return Err(WorkloadError::TooLarge { given: quantity::shortened(text) });
        }
        Ok(maps)
    }

    /// The requests of the session.
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
        // An action may begin before the last one is over.
        schedule.sort_by_key(|due| due.at);
        schedule.into()
    }
}

/// Where the median and the seed are those that hold if nothing is said, they are not printed.
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

/// A normal number (Box and Muller).
fn normal(stream: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(core::f64::consts::TAU * stream.unit())
}

/// Exponentially distributed seconds.
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
