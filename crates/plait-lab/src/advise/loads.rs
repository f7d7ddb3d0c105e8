//! The loads of an advice, and the changes that it tries.

/// A load of real use.
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) workload: &'static str,
    pub(super) measure: &'static str,
    /// The measure of the tail.
    pub(super) tail: Option<&'static str>,
    /// True if much of the load is over before the second path has joined.
    pub(super) is_short: bool,
    /// Deviation of the logarithm of a live gain from the one of the simulator over the true links.
    pub(super) model_deviation: f64,
}

/// The deviations are fitted to the first half of the links of docs/results/advise.md; the other half tests them.
const DOWNLOAD_DEVIATION: f64 = 0.003;
const PAGE_DEVIATION: f64 = 0.013;
/// Calls and videos were not raced.
const UNKNOWN_DEVIATION: f64 = 0.013;

impl Load {
    /// Returns the measure of the line. In an outage the tail counts.
    pub(super) fn measure_of_line(&self, outage: bool) -> &'static str {
        self.tail.filter(|_| outage).unwrap_or(self.measure)
    }
}

/// The loads, from the shortest to the longest.
pub(super) const LOADS: [Load; 5] = [
    Load {
        name: "small downloads",
        workload: "download:256kB",
        measure: "completion_ms",
        tail: None,
        is_short: true,
        model_deviation: DOWNLOAD_DEVIATION,
    },
    Load {
        name: "large downloads",
        workload: "download:8MB",
        measure: "completion_ms",
        tail: None,
        is_short: false,
        model_deviation: DOWNLOAD_DEVIATION,
    },
    Load {
        name: "web pages",
        workload: "web:amazon",
        measure: "page_load_ms",
        tail: None,
        is_short: true,
        model_deviation: PAGE_DEVIATION,
    },
    CALLS,
    Load {
        name: "video",
        workload: "video:paper,for=60s",
        measure: "bit_rate_mbps",
        tail: None,
        is_short: false,
        model_deviation: UNKNOWN_DEVIATION,
    },
];

/// A call with video at 1.2 Mbit/s.
pub(super) const CALLS: Load = Load {
    name: "calls",
    workload: "stream:3kB@20ms,for=8s",
    measure: "message_delay_median_ms",
    tail: Some("message_delay_p99_ms"),
    is_short: false,
    model_deviation: UNKNOWN_DEVIATION,
};

/// An outage of a path during a call.
pub(super) const OUTAGE: &str = "3s..5s";

/// A change that may help more than a second path: its name, what it is for, and its settings.
pub(super) const REMEDIES: [(&str, &[(&str, &str)]); 3] = [
    ("a slow start that ends before the queue is full (--hystart on)", &[("hystart", "on")]),
    ("larger buffers (--rcvbuf 16MiB --sndbuf 16MiB)", &[("rcvbuf", "16MiB"), ("sndbuf", "16MiB")]),
    (
        "a short queue at the bottleneck of each link (CoDel or cake in its router)",
        &[("aqm", "codel")],
    ),
];
