//! Measures of a run, computed from the events of both hosts.
//!
//! An [`Observer`] takes events in order of time and keeps sums, so it allocates no memory per
//! event. At the end it returns [`Measures`]. [`MEASURES`] lists all measures with their
//! definitions.

mod distribution;
mod habits;
mod ideal;
mod observer;
mod playback;
mod registry;
mod values;

pub use distribution::{Distribution, Histogram};
pub use habits::{HabitObserver, Habits};
pub use ideal::{delay_increase, fast_path, ideal_bit_rate, ideal_share};
pub use observer::Observer;
pub use playback::PlaybackMeasures;
pub use registry::{Better, Entry, MEASURES, Value, is_higher_better, without_unit};
pub use values::{MAX_POOLED_DELAYS, Measures, PathMeasures, aggregation_benefit};
