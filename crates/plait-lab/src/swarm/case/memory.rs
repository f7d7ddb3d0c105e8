//! What the hosts of a case remember of their paths.

use super::text::within;
use super::{Case, End, LATEST_MS};
use plait_app::Role;
use plait_base::{PathId, Span};
use plait_core::{PathEntry, PathRecord};
use plait_sim::{PairMemory, path_key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one end remembers of one path. A value of 0 is unknown.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryCase {
    /// The end.
    pub end: End,
    /// Index of the path.
    pub path: usize,
    /// Delivery rate of data that the end has sent, in kbit/s.
    pub rate_kbps: u64,
    /// Mean rate of data that it has received, in kbit/s.
    pub received_kbps: u64,
    /// Minimum RTT and smoothed RTT, in microseconds.
    pub rtt_us: u64,
    /// Slow start threshold in bytes. Subflows begin with it if at least one end remembers one.
    pub ssthresh_bytes: u64,
    /// Age of the entry in seconds.
    pub age_s: u64,
}

impl MemoryCase {
    /// Checks that it is about one of `paths` paths, and that its values are possible.
    pub(super) fn verify(&self, paths: usize) -> Result<(), String> {
        within("path", self.path as u64, 0, (paths as u64).saturating_sub(1))?;
        within("rate_kbps", self.rate_kbps, 0, 100_000_000)?;
        within("received_kbps", self.received_kbps, 0, 100_000_000)?;
        within("rtt_us", self.rtt_us, 0, 60_000_000)?;
        within("age_s", self.age_s, 0, LATEST_MS)
    }

    fn entry(&self) -> PathEntry {
        let known = |value: u64| (value > 0).then_some(value);
        let rate = |kbps: u64| known(kbps.saturating_mul(125));
        let rtt = known(self.rtt_us).map(Span::from_micros);
        let record = PathRecord {
            rate: rate(self.rate_kbps),
            received: rate(self.received_kbps),
            min_rtt: rtt,
            srtt: rtt,
            rttvar: rtt.unwrap_or_default().over(2),
            ssthresh: known(self.ssthresh_bytes),
            ..PathRecord::default()
        };
        let side = match self.end {
            End::Client => Role::Client,
            End::Server => Role::Server,
        };
        let key = path_key(side, PathId(self.path as u32));
        PathEntry { key, record, age: Span::from_secs(self.age_s) }
    }
}

impl Case {
    /// Returns the path memories of each pair of hosts; `None` if they remember no paths.
    pub(super) fn pair_memory(&self) -> Option<PairMemory> {
        let of = |end: End| {
            self.memory.iter().filter(|it| it.end == end).map(MemoryCase::entry).collect()
        };
        (!self.memory.is_empty()).then(|| PairMemory {
            client: of(End::Client),
            server: of(End::Server),
            ssthresh: self.memory.iter().any(|it| it.ssthresh_bytes > 0),
        })
    }
}
