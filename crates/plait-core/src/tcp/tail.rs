//! What became of a probe for a lost tail (RFC 8985 section 7.4): it may have repaired a loss that
//! nothing else shows, and the window has to answer to that loss as to any other.

use plait_base::{Slim, Ssn, SubflowRange};

/// The probe that is out, if there is one. It is always a segment that had been sent before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailProbe {
    /// Right edge when it went out (`TLP.end_seq`).
    end: Slim<Ssn>,
}

impl TailProbe {
    pub(crate) const fn new() -> TailProbe {
        TailProbe { end: Slim::NONE }
    }

    /// A probe goes out; the right edge is `nxt`.
    pub(crate) fn on_sent(&mut self, nxt: Ssn) {
        self.end = Slim::some(nxt);
    }

    /// Whether it is not known yet what became of the last probe. There is no other one until then
    /// (RFC 8985 section 7.3).
    pub(crate) fn is_open(&self) -> bool {
        self.end.is_some()
    }

    /// A recovery begins, which answers to whatever was lost.
    pub(crate) fn forget(&mut self) {
        self.end = Slim::NONE;
    }

    /// An acknowledgement up to `ack` without data came that moves nothing and has no selective
    /// blocks: a receiver that does not report duplicates has got both copies. (It may be news of
    /// the window only; then a reduction is left out.)
    pub(crate) fn on_duplicate(&mut self, ack: Ssn) {
        if self.end.value() == Some(ack) {
            self.end = Slim::NONE;
        }
    }

    /// Takes in an acknowledgement up to `ack`. Tells whether the probe has repaired a loss:
    /// everything up to it arrived, and not twice.
    pub(crate) fn on_ack(&mut self, ack: Ssn, dsack: Option<SubflowRange>) -> bool {
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
            probe.on_sent(Ssn::new(9_000));
            probe
        };
        let twice = Some(SubflowRange { start: Ssn::new(8_000), end: Ssn::new(9_000) });
        // Not all of it has arrived.
        let mut probe = sent();
        assert!(!probe.on_ack(Ssn::new(8_999), None) && probe.is_open());
        // It has, once or twice: the next acknowledgement will tell.
        assert!(!probe.on_ack(Ssn::new(9_000), None) && probe.is_open());
        assert!(probe.on_ack(Ssn::new(9_001), None) && !probe.is_open());
        // Told once.
        assert!(!probe.on_ack(Ssn::new(9_002), None));
        // Twice, by a report or by a bare duplicate.
        let mut probe = sent();
        assert!(!probe.on_ack(Ssn::new(9_000), twice) && !probe.is_open());
        let mut probe = sent();
        assert!(!probe.on_ack(Ssn::new(9_500), twice) && !probe.is_open());
        let mut probe = sent();
        probe.on_ack(Ssn::new(9_000), None);
        probe.on_duplicate(Ssn::new(9_000));
        assert!(!probe.is_open());
        // The report of something else.
        let mut probe = sent();
        let other = Some(SubflowRange { start: Ssn::new(6_000), end: Ssn::new(7_000) });
        assert!(probe.on_ack(Ssn::new(9_500), other));
        // A duplicate of before is none of the probe's.
        let mut probe = sent();
        probe.on_duplicate(Ssn::new(8_000));
        assert!(probe.on_ack(Ssn::new(9_500), None));
        let mut probe = sent();
        probe.forget();
        assert!(!probe.on_ack(Ssn::new(9_500), None));
    }
}
