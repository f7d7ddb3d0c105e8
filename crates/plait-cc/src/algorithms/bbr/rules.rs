//! The parameters of BBR: the constants of the draft.

use crate::{Param, ParamKind, Params};
use plait_base::Span;

/// Declares a parameter that is a real number.
const fn real(
    name: &'static str,
    (min, default, max): (f64, f64, f64),
    unit: &'static str,
    help: &'static str,
    clause: &'static str,
) -> Param {
    Param { name, kind: ParamKind::Real { min, max, default }, unit, help, clause }
}

/// Declares a parameter that is a whole number.
const fn whole(
    name: &'static str,
    (min, default, max): (u64, u64, u64),
    unit: &'static str,
    help: &'static str,
    clause: &'static str,
) -> Param {
    Param { name, kind: ParamKind::Whole { min, max, default }, unit, help, clause }
}

const STARTUP_GAIN: Param = real(
    "startup_gain",
    (1.0, 2.77, 8.0),
    "times the bandwidth",
    "pacing rate of Startup",
    "draft-ietf-ccwg-bbr 2.5, 5.3.1.1",
);
const DRAIN_GAIN: Param = real(
    "drain_gain",
    (0.01, 0.5, 1.0),
    "times the bandwidth",
    "pacing rate of Drain",
    "draft-ietf-ccwg-bbr 2.5, 5.3.2",
);
const DOWN_GAIN: Param = real(
    "down_gain",
    (0.01, 0.9, 1.0),
    "times the bandwidth",
    "pacing rate of ProbeBW_DOWN",
    "draft-ietf-ccwg-bbr 5.3.3.1",
);
const UP_GAIN: Param = real(
    "up_gain",
    (1.0, 1.25, 8.0),
    "times the bandwidth",
    "pacing rate of ProbeBW_UP",
    "draft-ietf-ccwg-bbr 5.3.3.5",
);
const CWND_GAIN: Param = real(
    "cwnd_gain",
    (1.0, 2.0, 8.0),
    "times the BDP",
    "window in every state but ProbeBW_UP and ProbeRTT",
    "draft-ietf-ccwg-bbr 2.6, 5.6.1",
);
const UP_CWND_GAIN: Param = real(
    "up_cwnd_gain",
    (1.0, 2.25, 8.0),
    "times the BDP",
    "window of ProbeBW_UP",
    "draft-ietf-ccwg-bbr 5.3.3.5, 5.6.1",
);
const PROBE_RTT_GAIN: Param = real(
    "probe_rtt_gain",
    (0.01, 0.5, 1.0),
    "times the BDP",
    "window of ProbeRTT",
    "draft-ietf-ccwg-bbr 2.16.2, 5.6.4.5",
);
const MARGIN: Param = real(
    "margin",
    (0.0, 1.0, 50.0),
    "%",
    "part of the bandwidth that pacing leaves unused",
    "draft-ietf-ccwg-bbr 2.5, 5.6.2",
);
const LOSS: Param = real(
    "loss",
    (0.0, 2.0, 50.0),
    "%",
    "losses of a round trip that show too much in flight",
    "draft-ietf-ccwg-bbr 2.8, 5.5.10.2",
);
const BETA: Param = real(
    "beta",
    (0.1, 0.7, 1.0),
    "",
    "minimum part of a bound that remains after a round trip with losses",
    "draft-ietf-ccwg-bbr 2.8, 5.5.10.3",
);
const HEADROOM: Param = real(
    "headroom",
    (0.0, 0.15, 0.9),
    "",
    "part of inflight_longterm that is left to others",
    "draft-ietf-ccwg-bbr 2.8, 5.3.3.9",
);
const GROWTH: Param = real(
    "growth",
    (1.0, 1.25, 4.0),
    "times the last rate",
    "minimum growth of a rate that still counts as growth",
    "draft-ietf-ccwg-bbr 5.3.1.2",
);
const FULL_ROUNDS: Param = whole(
    "full_rounds",
    (1, 3, 100),
    "round trips",
    "round trips without growth until the bandwidth counts as reached",
    "draft-ietf-ccwg-bbr 5.3.1.2",
);
const LOSS_RANGES: Param = whole(
    "loss_ranges",
    (1, 6, 1_000),
    "ranges",
    "separate lost ranges of a round trip that end Startup",
    "draft-ietf-ccwg-bbr 5.3.1.3",
);
const DRAIN_ROUNDS: Param = whole(
    "drain_rounds",
    (0, 3, 100),
    "round trips",
    "Drain ends after this time, even with a queue",
    "draft-ietf-ccwg-bbr 5.3.2",
);
const MIN_CWND: Param = whole(
    "min_cwnd",
    (1, 4, 100),
    "segments",
    "minimum window, except after a timeout",
    "draft-ietf-ccwg-bbr 2.8, 5.6.4.3",
);
const PROBE_WAIT: Param = real(
    "probe_wait",
    (0.1, 2.0, 60.0),
    "s",
    "minimum time between probes for bandwidth",
    "draft-ietf-ccwg-bbr 5.3.3.8",
);
const PROBE_SPREAD: Param = real(
    "probe_spread",
    (0.0, 1.0, 60.0),
    "s",
    "a random part of this is added to it",
    "draft-ietf-ccwg-bbr 5.3.3.8",
);
const RENO_ROUNDS: Param = whole(
    "reno_rounds",
    (1, 63, 10_000),
    "round trips",
    "a probe follows after a round trip for each segment in flight, at most this many",
    "draft-ietf-ccwg-bbr 5.3.3.8",
);
const MIN_RTT: Param = real(
    "min_rtt",
    (0.1, 10.0, 600.0),
    "s",
    "lifetime of the lowest RTT",
    "draft-ietf-ccwg-bbr 2.16.1, 5.5.7",
);
const PROBE_RTT: Param = real(
    "probe_rtt",
    (0.1, 5.0, 600.0),
    "s",
    "time without a low RTT until ProbeRTT",
    "draft-ietf-ccwg-bbr 2.16.2, 5.3.4.3",
);
const PROBE_RTT_TIME: Param = real(
    "probe_rtt_time",
    (0.0, 0.2, 10.0),
    "s",
    "minimum duration of ProbeRTT",
    "draft-ietf-ccwg-bbr 2.16.2, 5.3.4.3",
);
const EXTRA_ROUNDS: Param = whole(
    "extra_rounds",
    (1, 10, 1_000),
    "round trips",
    "window of the largest extra_acked, after Startup",
    "draft-ietf-ccwg-bbr 2.12, 5.5.9",
);
const QUANTUM_TIME: Param = real(
    "quantum_time",
    (0.0, 1.0, 100.0),
    "ms",
    "time at the pacing rate that gives the send quantum",
    "draft-ietf-ccwg-bbr 5.6.3",
);
const MIN_QUANTUM: Param = whole(
    "min_quantum",
    (1, 2, 100),
    "segments",
    "minimum send quantum",
    "draft-ietf-ccwg-bbr 5.6.3",
);
const MAX_QUANTUM: Param = whole(
    "max_quantum",
    (1, 64, 1_024),
    "KiB",
    "maximum send quantum",
    "draft-ietf-ccwg-bbr 5.6.3",
);
const BUDGET: Param = whole(
    "budget",
    (1, 3, 100),
    "quanta",
    "minimum amount in flight, for offloads of the hosts",
    "draft-ietf-ccwg-bbr 5.5.8",
);

/// The parameters in the order of their list.
pub(super) const PARAMS: &[Param] = &[
    STARTUP_GAIN,
    DRAIN_GAIN,
    DOWN_GAIN,
    UP_GAIN,
    CWND_GAIN,
    UP_CWND_GAIN,
    PROBE_RTT_GAIN,
    MARGIN,
    LOSS,
    BETA,
    HEADROOM,
    GROWTH,
    FULL_ROUNDS,
    LOSS_RANGES,
    DRAIN_ROUNDS,
    MIN_CWND,
    PROBE_WAIT,
    PROBE_SPREAD,
    RENO_ROUNDS,
    MIN_RTT,
    PROBE_RTT,
    PROBE_RTT_TIME,
    EXTRA_ROUNDS,
    QUANTUM_TIME,
    MIN_QUANTUM,
    MAX_QUANTUM,
    BUDGET,
];

/// A fraction or a gain in millionths. Results do not depend on the rounding of floats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Share(u64);

impl Share {
    const WHOLE: u64 = 1_000_000;
    pub(super) const ONE: Share = Share(Share::WHOLE);

    /// Returns this share of `value`, rounded down.
    pub(super) fn of(self, value: u64) -> u64 {
        let product = u128::from(value) * u128::from(self.0);
        u64::try_from(product / u128::from(Share::WHOLE)).unwrap_or(u64::MAX)
    }

    /// Returns the rest up to one; zero if it exceeds one.
    pub(super) const fn rest(self) -> Share {
        Share(Share::WHOLE.saturating_sub(self.0))
    }

    /// Returns `value` divided by this share; the largest number if it is zero.
    pub(super) fn into_whole(self, value: u64) -> u64 {
        let product = u128::from(value) * u128::from(Share::WHOLE);
        u64::try_from(product / u128::from(self.0.max(1))).unwrap_or(u64::MAX)
    }
}

/// The gains of the states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gains {
    pub(super) startup: Share,
    pub(super) drain: Share,
    pub(super) down: Share,
    pub(super) up: Share,
    pub(super) cwnd: Share,
    pub(super) up_cwnd: Share,
    pub(super) probe_rtt: Share,
    /// 1 less the margin.
    pub(super) paced: Share,
}

/// The limits of sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Least window in segments.
    pub(super) min_cwnd: u64,
    pub(super) quantum_time: Span,
    /// Least quantum in segments, largest in bytes.
    pub(super) min_quantum: u64,
    pub(super) max_quantum: u64,
    /// Quanta that fit in flight.
    pub(super) budget: u64,
}

/// Numbers of round trips, and lifetimes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    pub(super) full_rounds: u64,
    pub(super) drain_rounds: u64,
    pub(super) reno_rounds: u64,
    pub(super) extra_rounds: u64,
    pub(super) probe_wait: Span,
    pub(super) probe_spread: Span,
    pub(super) min_rtt: Span,
    pub(super) probe_rtt: Span,
    pub(super) probe_rtt_time: Span,
}

/// The values of all parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) gains: Gains,
    pub(super) sizes: Sizes,
    pub(super) periods: Periods,
    pub(super) loss: Share,
    pub(super) beta: Share,
    pub(super) headroom: Share,
    pub(super) growth: Share,
    pub(super) loss_ranges: u64,
}

impl Rules {
    pub(super) fn new(params: &Params) -> Rules {
        let share = |param: &Param| Share(params.millionths(param));
        let percent = |param: &Param| Share(params.millionths(param) / 100);
        let seconds = |param: &Param| Span::from_micros(params.millionths(param));
        Rules {
            gains: Gains {
                startup: share(&STARTUP_GAIN),
                drain: share(&DRAIN_GAIN),
                down: share(&DOWN_GAIN),
                up: share(&UP_GAIN),
                cwnd: share(&CWND_GAIN),
                up_cwnd: share(&UP_CWND_GAIN),
                probe_rtt: share(&PROBE_RTT_GAIN),
                paced: percent(&MARGIN).rest(),
            },
            sizes: Sizes {
                min_cwnd: params.whole(&MIN_CWND),
                quantum_time: Span::from_nanos(params.millionths(&QUANTUM_TIME)),
                min_quantum: params.whole(&MIN_QUANTUM),
                max_quantum: params.whole(&MAX_QUANTUM) << 10,
                budget: params.whole(&BUDGET),
            },
            periods: Periods {
                full_rounds: params.whole(&FULL_ROUNDS),
                drain_rounds: params.whole(&DRAIN_ROUNDS),
                reno_rounds: params.whole(&RENO_ROUNDS),
                extra_rounds: params.whole(&EXTRA_ROUNDS),
                probe_wait: seconds(&PROBE_WAIT),
                probe_spread: seconds(&PROBE_SPREAD),
                min_rtt: seconds(&MIN_RTT),
                probe_rtt: seconds(&PROBE_RTT),
                probe_rtt_time: seconds(&PROBE_RTT_TIME),
            },
            loss: percent(&LOSS),
            beta: share(&BETA),
            headroom: share(&HEADROOM),
            growth: share(&GROWTH),
            loss_ranges: params.whole(&LOSS_RANGES),
        }
    }
}
