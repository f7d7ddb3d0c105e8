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
    /// Error of a simulated gain over the true links.
    pub(super) model: ModelError,
}

/// How live transfers differ from those of the simulator over the true links.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelError {
    /// Time that Multipath TCP loses live against the simulator, less the time that plain TCP loses. Zero if the
    /// measure of the load is not the time of a transfer.
    late_ms: f64,
    /// Deviation of a gain, as a time in each transfer: hosts take time that the simulator does not know.
    ms: f64,
    /// Deviation of the logarithm of a gain.
    share: f64,
}

impl ModelError {
    /// Returns the live value of a simulated one of Multipath TCP.
    pub(super) fn live(self, simulated: f64) -> f64 {
        simulated + self.late_ms
    }

    /// Returns the deviation of the logarithm of a gain, if plain TCP has this value of the measure. Errors add by
    /// squares.
    pub(super) fn deviation(self, alone: f64) -> f64 {
        libm::hypot(self.share, self.ms / alone.max(1.0))
    }
}

/// The errors are fitted to the first half of the links of docs/results/advise.md; the other half tests them.
const DOWNLOADS: ModelError = ModelError { late_ms: 1.1, ms: 0.2, share: 0.0 };
const PAGES: ModelError = ModelError { late_ms: 0.0, ms: 0.0, share: 0.013 };
/// The error of calls is smaller, but of the size of the lateness of the emulator. Videos were not raced.
const ASSUMED: ModelError = PAGES;

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
        model: DOWNLOADS,
    },
    Load {
        name: "large downloads",
        workload: "download:8MB",
        measure: "completion_ms",
        tail: None,
        is_short: false,
        model: DOWNLOADS,
    },
    Load {
        name: "web pages",
        workload: "web:amazon",
        measure: "page_load_ms",
        tail: None,
        is_short: true,
        model: PAGES,
    },
    CALLS,
    Load {
        name: "video",
        workload: "video:paper,for=60s",
        measure: "bit_rate_mbps",
        tail: None,
        is_short: false,
        model: ASSUMED,
    },
];

/// A call with video at 1.2 Mbit/s.
pub(super) const CALLS: Load = Load {
    name: "calls",
    workload: "stream:3kB@20ms,for=8s",
    measure: "message_delay_median_ms",
    tail: Some("message_delay_p99_ms"),
    is_short: false,
    model: ASSUMED,
};

/// An outage of a path during a call.
pub(super) const OUTAGE: &str = "3s..5s";
/// Delay in ms of the slowest hundredth of the messages from which on a call stands still: three quarters of the outage.
pub(super) const STALLED_MS: f64 = 1_500.0;

/// A change that may help more than a second path: its name, what it is for, and its settings.
pub(super) const REMEDIES: [(&str, &[(&str, &str)]); 3] = [
    ("a slow start that ends before the queue is full (--hystart on)", &[("hystart", "on")]),
    (
        "larger buffers (SO_RCVBUF and SO_SNDBUF of 16 MiB)",
        &[("rcvbuf", "16MiB"), ("sndbuf", "16MiB")],
    ),
    (
        "a short queue at the bottleneck of each link (CoDel or cake in its router)",
        &[("aqm", "codel")],
    ),
];
