//! The outcome of a tail loss probe (RFC 8985 section 7.4). It may have repaired a loss that
//! nothing else shows, and the window must be reduced as for any other loss.

use plait_base::{SendRange, SendSsn, Slim};

/// The outstanding probe, if there is one. It is always a retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailProbe {
    /// Right edge when the probe was sent (`TLP.end_seq`).
    end: Slim<SendSsn>,
}

impl TailProbe {
    pub(crate) const fn new() -> TailProbe {
        TailProbe { end: Slim::NONE }
    }

    /// Notes a sent probe; the right edge is `nxt`.
    pub(crate) fn on_sent(&mut self, nxt: SendSsn) {
        self.end = Slim::some(nxt);
    }

    /// Returns true if the outcome of the last probe is open. No other probe is sent until then
    /// (RFC 8985 section 7.3).
    pub(crate) fn is_open(&self) -> bool {
        self.end.is_some()
    }

    /// Drops the probe when a recovery starts, which handles any loss.
    pub(crate) fn forget(&mut self) {
        self.end = Slim::NONE;
    }

    /// Handles an acknowledgement up to `ack` without data, progress or SACK blocks: a receiver
    /// without D-SACK has received both copies. (It may be a mere window update; then a reduction
    /// is omitted.)
    pub(crate) fn on_duplicate(&mut self, ack: SendSsn) {
        if self.end.value() == Some(ack) {
            self.end = Slim::NONE;
        }
    }

    /// Processes an acknowledgement up to `ack`. Returns true if the probe has repaired a loss:
    /// everything up to it arrived, and only once.
    pub(crate) fn on_ack(&mut self, ack: SendSsn, dsack: Option<SendRange>) -> bool {
        let Some(end) = self.end.value().filter(|end| ack >= *end) else { return false };
        let twice = dsack.is_some_and(|range| range.end == end);
        let repaired = !twice && ack > end;
        if twice || repaired {
            self.end = Slim::NONE;
        }
        repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8985 section 7.4.2, case by case.
    #[test]
    fn a_probe_has_repaired_what_did_not_arrive_twice() {
        let sent = || {
            let mut probe = TailProbe::new();
            probe.on_sent(SendSsn::new(9_000));
            probe
        };
        let twice = Some(SendRange { start: SendSsn::new(8_000), end: SendSsn::new(9_000) });
        // Some data has not arrived.
        let mut probe = sent();
        assert!(!probe.on_ack(SendSsn::new(8_999), None) && probe.is_open());
        // All has arrived, once or twice: the next acknowledgement decides.
        assert!(!probe.on_ack(SendSsn::new(9_000), None) && probe.is_open());
        assert!(probe.on_ack(SendSsn::new(9_001), None) && !probe.is_open());
        // Reported once.
        assert!(!probe.on_ack(SendSsn::new(9_002), None));
        // It arrived twice, by a D-SACK or by a bare duplicate.
        let mut probe = sent();
        assert!(!probe.on_ack(SendSsn::new(9_000), twice) && !probe.is_open());
        let mut probe = sent();
        assert!(!probe.on_ack(SendSsn::new(9_500), twice) && !probe.is_open());
        let mut probe = sent();
        probe.on_ack(SendSsn::new(9_000), None);
        probe.on_duplicate(SendSsn::new(9_000));
        assert!(!probe.is_open());
        // A D-SACK for other data.
        let mut probe = sent();
        let other = Some(SendRange { start: SendSsn::new(6_000), end: SendSsn::new(7_000) });
        assert!(probe.on_ack(SendSsn::new(9_500), other));
        // A duplicate from before the probe does not count.
        let mut probe = sent();
        probe.on_duplicate(SendSsn::new(8_000));
        assert!(probe.on_ack(SendSsn::new(9_500), None));
        let mut probe = sent();
        probe.forget();
        assert!(!probe.on_ack(SendSsn::new(9_500), None));
    }
}
