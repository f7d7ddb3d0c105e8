//! Endpoints for tests and benchmarks that drive endpoints directly.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used)]

use plait_base::{PathId, RandomStream};
use plait_core::{Config, ConnectionSpec, Endpoint, Entropy, PathConfig};
use std::ops::Range;
use std::sync::Arc;

struct Seeded(RandomStream);

impl Entropy for Seeded {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

/// Returns an endpoint whose random numbers depend on a seed and a name.
pub(crate) fn endpoint(seed: u64, name: &str) -> Endpoint {
    Endpoint::new(Box::new(Seeded(RandomStream::new(seed, &[name]))))
}

/// Returns the default settings of a connection over `paths`, with a scheduler and a controller by
/// name.
pub(crate) fn spec(scheduler: &str, controller: &str, paths: Range<u32>) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse(scheduler).unwrap();
    let controller = plait_cc::Spec::parse(controller).unwrap();
    ConnectionSpec {
        config: Config::default(),
        paths: paths.map(|id| PathConfig::new(PathId(id))).collect(),
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    }
}
