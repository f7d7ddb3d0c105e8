//! Probes of a subflow: small ones of a silent path, keep-alives, and checks of a doubtful address.

use crate::config::Config;
use crate::data::level::DataLevel;
use crate::tcp::pending::ControlSegment;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::{Span, Time};

/// Probes of one silence that use the configured interval.
pub(crate) const PROBES_AT_FIRST_INTERVAL: u16 = 600;
/// Factor of the interval after that.
pub(crate) const LATER_INTERVAL_FACTOR: u64 = 10;

/// Returns the time until probe number `count` of a silence.
pub(crate) fn interval(base: Span, count: u16) -> Span {
    if count < PROBES_AT_FIRST_INTERVAL { base } else { base.times(LATER_INTERVAL_FACTOR) }
}

impl Subflow {
    /// Starts the probes of a silent subflow.
    pub(crate) fn arm_path_probe(&mut self, data: &DataLevel, config: &Config, now: Time) {
        let Some(base) = data.probe_interval(config) else { return };
        if !self.timers.is_set(Timer::Probe) {
            self.timers.set(Timer::Probe, now + interval(base, self.status.probes()));
        }
    }

    /// Sends a due probe of a silent subflow.
    pub(crate) fn on_probe_timer(&mut self, data: &DataLevel, config: &Config, now: Time) {
        if self.status.pf() && !self.is_quiet() {
            self.status.count_probe();
            self.proof().queue(ControlSegment::PathProbe);
            self.arm_path_probe(data, config, now);
        } else {
            self.status.forget_probes();
        }
    }

    /// Sends a keep-alive probe if it can be answered. Returns true if the limit of unanswered
    /// probes was reached.
    pub(crate) fn send_keep_alives(&mut self) -> bool {
        // Data in flight has the same effect as a probe.
        if !self.is_reachable() || !self.is_quiet() {
            return false;
        }
        let silent = self.pending.unanswered() >= Config::KEEP_ALIVES;
        if !silent {
            self.pending.count_unanswered();
            self.pending.add(ControlSegment::WindowProbe);
        }
        silent
    }

    /// Treats it as silent until the peer answers a probe.
    pub(crate) fn doubt(&mut self) {
        self.status.suspect();
        self.pending.add(ControlSegment::WindowProbe);
    }
}
