//! A path in a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path as it was simulated. An absent rate is unlimited.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// Name.
    pub name: String,
    /// Profile that the path is based on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Rates.
    #[serde(flatten)]
    pub rates: PathRates,
    /// Delays.
    #[serde(flatten)]
    pub delays: PathDelays,
    /// Losses.
    #[serde(flatten)]
    pub losses: PathLosses,
    /// Queue from server to client: `50ms`, `64KiB`, `100pkt`, `inf`.
    pub queue: String,
    /// Queue management: `codel`; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<String>,
    /// Share of the packets that are delayed in each direction, and the delay: `1%:5ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<String>,
    /// Share of the packets that are duplicated in each direction.
    #[serde(default, skip_serializing_if = "no_share")]
    pub duplicate: f64,
    /// Share of the packets that are corrupted in each direction.
    #[serde(default, skip_serializing_if = "no_share")]
    pub corrupt: f64,
    /// The shared link that packets pass after the links of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Trace file from server to client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Trace file from client to server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_up: Option<String>,
    /// True if the path is used only when no regular path works.
    pub backup: bool,
    /// All settings beyond the profile, as on the command line. Steps, outages, bursts of loss and the host's
    /// link appear here in full.
    pub settings: Vec<String>,
}

/// Rates of a path. An absent rate is unlimited.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathRates {
    /// Rate from server to client in bits per second, over IP packets; the mean if the rate varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_down_bps: Option<u64>,
    /// Rate from client to server, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_up_bps: Option<u64>,
}

/// Propagation delays of a path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathDelays {
    /// Round-trip propagation delay in microseconds; the value at the start if it changes.
    pub rtt_us: u64,
    /// Propagation delay from server to client in microseconds, likewise.
    pub owd_down_us: u64,
    /// Propagation delay from client to server in microseconds, likewise.
    pub owd_up_us: u64,
    /// Largest jitter in each direction, in microseconds.
    pub jitter_us: u64,
}

/// Losses of a path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathLosses {
    /// Loss from server to client, as a share; the mean if losses are bursty.
    pub loss: f64,
    /// Loss from client to server, as a share; the mean if losses are bursty.
    pub loss_up: f64,
}

fn no_share(share: &f64) -> bool {
    *share == 0.0
}
