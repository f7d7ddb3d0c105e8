//! The agreed mode, and how far each direction has fallen back to plain TCP (RFC 8684 section 3.7).

use crate::config::Config;
use crate::data::level::DataLevel;
use crate::event::{Event, FallbackCause};
use plait_base::{Dsn, SendSsn, Sequence, SubflowSpace};

/// Consecutive acknowledgements without a DSS after which options count as stripped.
pub(crate) const BARE_ACKS: u8 = 3;
/// Consecutive in-order segments without a mapping after which a subflow is reset.
pub(crate) const MAX_UNMAPPED_SEGMENTS: u8 = 3;
/// Timeouts of the connection without a DSS after which a subflow is given up, if no fallback is
/// possible.
pub(crate) const MAX_TIMEOUTS_WITHOUT_DSS: u32 = 3;
/// Retransmissions of MP_FAIL before the subflow is reset.
pub(crate) const FAIL_RETRIES: u8 = 3;

/// The agreed mode of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Offered, not yet agreed.
    Offered,
    Multipath,
    Plain,
}

/// An event that changes the mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ModeStep {
    /// Both ends have the key of the other.
    KeysExchanged,
    /// One end does not offer, or no longer uses, Multipath TCP.
    FallBack,
}

impl Mode {
    /// Returns the mode after `step`; `None` if the step is not possible. Plain TCP is final.
    const fn after(self, step: ModeStep) -> Option<Mode> {
        match (self, step) {
            (Mode::Offered, ModeStep::KeysExchanged) => Some(Mode::Multipath),
            (Mode::Multipath | Mode::Plain, ModeStep::KeysExchanged) => None,
            (_, ModeStep::FallBack) => Some(Mode::Plain),
        }
    }
}

/// How data from the peer is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receiving {
    Mapped,
    /// The checksum of the mapping with this DSN was wrong. Later data is held. MP_FAIL was sent,
    /// and retransmitted this many times.
    Failing {
        dsn: Dsn,
        retries: u8,
    },
    Plain,
}

/// How data to the peer is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sending {
    Mapped,
    /// Without mappings, but segments carry the infinite mapping until this sequence number is
    /// acknowledged.
    Telling {
        until: SendSsn,
    },
    Plain,
}

/// A retransmission of MP_FAIL.
pub(crate) struct FailRetry {
    /// The DSN of the mapping with the wrong checksum.
    pub(crate) dsn: Dsn,
    /// Retransmissions so far.
    pub(crate) retries: u8,
}

/// Returns the DSN of the byte with subflow sequence number `seq`, if both run in step: the SYN has
/// 0 and the first byte 1. Returns `None` for the SYN.
pub(crate) fn dsn_in_step<S: SubflowSpace>(seq: Sequence<S>) -> Option<Dsn> {
    seq.checked_sub(Sequence::FIRST).map(Dsn::new)
}

/// Returns the subflow sequence number of the byte with `dsn`, if both run in step.
pub(crate) fn ssn_in_step<S: SubflowSpace>(dsn: Dsn) -> Sequence<S> {
    Sequence::FIRST + dsn.get()
}

/// Use of subflows other than the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Others {
    No,
    /// A join of the peer was answered that may carry its data before its third ACK arrives.
    Answered,
    /// One was used, or the peer may have used it.
    Used,
    /// This end could send on one.
    Joined,
}

/// The agreement of both ends, and the state of a fallback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    mode: Mode,
    /// DSS checksums are in use in both directions.
    checksums: bool,
    /// Both ends agree on early joins in their SYNs.
    early_joins: bool,
    /// A DSS was seen: the peer holds our key (RFC 8684 section 3.1).
    peer_dss_seen: bool,
    cause: Option<FallbackCause>,
    others: Others,
    receiving: Receiving,
    sending: Sending,
    /// Start of our infinite mapping: the last DATA_ACKed byte.
    from: Dsn,
    /// Acknowledgements without a DSS since the last DSS.
    bare: u8,
    /// Set when our SYN was answered: true if only the SYN without MP_CAPABLE was.
    verdict: Option<bool>,
}

impl Agreement {
    /// Returns the state before anything is agreed on.
    pub(crate) const fn new(config: &Config) -> Agreement {
        Agreement {
            mode: if config.multipath { Mode::Offered } else { Mode::Plain },
            checksums: config.checksum,
            early_joins: false,
            peer_dss_seen: false,
            cause: None,
            others: Others::No,
            receiving: Receiving::Mapped,
            sending: Sending::Mapped,
            from: Dsn::ZERO,
            bare: 0,
            verdict: None,
        }
    }

    /// Returns the state for another attempt with a new key. A detected silence stays recorded.
    pub(in crate::data) fn for_new_attempt(&self, config: &Config) -> Agreement {
        let fresh = Agreement::new(config);
        match self.cause {
            Some(FallbackCause::Silence) => {
                Agreement { mode: Mode::Plain, cause: self.cause, verdict: self.verdict, ..fresh }
            }
            _ => fresh,
        }
    }

    #[inline]
    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) const fn checksums(&self) -> bool {
        self.checksums
    }

    /// Returns true if the peer accepts joins.
    pub(crate) const fn peer_accepts_joins(&self) -> bool {
        self.early_joins || self.peer_dss_seen
    }

    pub(crate) const fn peer_dss_seen(&self) -> bool {
        self.peer_dss_seen
    }

    /// Returns true if both ends agree on early joins.
    pub(crate) const fn early_joins(&self) -> bool {
        self.early_joins
    }

    /// Returns true if a subflow other than the first was used, or the peer may have used it.
    pub(crate) fn others_used(&self) -> bool {
        self.others >= Others::Used
    }

    /// Returns true if this end could send on a subflow other than the first.
    pub(crate) fn others_joined(&self) -> bool {
        self.others == Others::Joined
    }

    pub(crate) const fn receiving(&self) -> Receiving {
        self.receiving
    }

    pub(crate) const fn sending(&self) -> Sending {
        self.sending
    }

    pub(crate) const fn bare(&self) -> u8 {
        self.bare
    }

    /// Changes the mode. A step that is not possible changes nothing.
    pub(super) fn step(&mut self, step: ModeStep) {
        let next = self.mode.after(step);
        debug_assert!(next.is_some(), "{step:?} in {:?}", self.mode);
        self.mode = next.unwrap_or(self.mode);
    }

    /// Notes that both ends agree on early joins.
    pub(super) const fn on_early_joins(&mut self) {
        self.early_joins = true;
    }

    /// Notes that the peer requests checksums in its SYN, or does not.
    pub(super) const fn on_checksum_request(&mut self, required: bool) {
        self.checksums |= required;
    }

    /// Notes the cause of a fallback. Returns true if it is the first one.
    pub(super) const fn on_fallback(&mut self, cause: FallbackCause) -> bool {
        let first = self.cause.is_none();
        if first {
            self.cause = Some(cause);
        }
        first
    }

    /// Notes that our SYN was answered.
    pub(super) const fn on_syn_answered(&mut self) {
        self.verdict = Some(matches!(self.cause, Some(FallbackCause::Silence)));
    }

    /// Returns why the connection is plain TCP, if it offered Multipath TCP.
    pub(crate) const fn cause(&self) -> Option<FallbackCause> {
        self.cause
    }

    /// Returns the start of our infinite mapping.
    pub(crate) const fn plain_from(&self) -> Dsn {
        self.from
    }

    /// Returns true if data segments still carry the infinite mapping.
    pub(crate) fn is_telling(&self) -> bool {
        matches!(self.sending, Sending::Telling { .. })
    }

    /// Returns true if the peer has the infinite mapping.
    pub(crate) fn has_told(&self) -> bool {
        self.sending == Sending::Plain
    }
}

impl DataLevel {
    /// Returns the agreement of both ends.
    #[inline(always)]
    pub(crate) const fn agreed(&self) -> &Agreement {
        &self.agreed
    }

    /// Returns the agreed mode.
    #[inline(always)]
    pub(crate) const fn mode(&self) -> Mode {
        self.agreed.mode
    }

    /// Returns true if Multipath TCP is offered and not yet agreed.
    pub(crate) fn is_offered(&self) -> bool {
        self.mode() == Mode::Offered
    }

    /// Notes that the connection is plain TCP in both directions.
    pub(crate) fn become_plain(&mut self) {
        self.agreed.step(ModeStep::FallBack);
    }

    /// Notes a DSS of the peer after the first one.
    #[inline(always)]
    pub(crate) const fn on_further_dss(&mut self) {
        self.agreed.bare = 0;
    }

    /// Notes a DSS of the peer. Returns true if it is the first one.
    pub(crate) const fn on_dss(&mut self) -> bool {
        self.on_further_dss();
        !core::mem::replace(&mut self.agreed.peer_dss_seen, true)
    }

    /// Returns once whether our SYN was answered only without MP_CAPABLE.
    pub(crate) const fn take_verdict(&mut self) -> Option<bool> {
        self.agreed.verdict.take()
    }

    /// Notes that the peer may have used a subflow other than the first.
    pub(crate) fn on_others_used(&mut self) {
        self.agreed.others = self.agreed.others.max(Others::Used);
    }

    /// Returns true if this end may send data on its join before the fourth ACK. The peer must have
    /// received mapped data: until then it may fall back, and data on another subflow forbids that.
    pub(crate) fn sends_early(&self) -> bool {
        self.agreed.early_joins && !self.falls_back() && self.queue.una() > Dsn::ZERO
    }

    /// Notes that a join of the peer is answered.
    pub(crate) fn on_join_answered(&mut self) {
        if self.agreed.early_joins {
            self.agreed.others = self.agreed.others.max(Others::Answered);
        }
    }

    /// Returns true if the peer may have used a subflow other than the first. On a join, it sends
    /// data before its third ACK has arrived only after a DATA_ACK of ours.
    pub(crate) fn others_possible(&self) -> bool {
        let answered = self.agreed.others == Others::Answered;
        self.agreed.others_used() || answered && self.recv.nxt() > Dsn::ZERO
    }

    /// Notes that both ends can send on a subflow other than the first.
    pub(crate) const fn on_joined(&mut self) {
        self.agreed.others = Others::Joined;
    }

    /// Counts an acknowledgement without a DSS. Returns the number since the last DSS.
    pub(crate) const fn on_bare_ack(&mut self) -> u8 {
        self.agreed.bare = self.agreed.bare.saturating_add(1);
        self.agreed.bare
    }

    /// Holds data from `dsn` on: the checksum of its mapping was wrong.
    pub(crate) const fn fail_mapping(&mut self, dsn: Dsn) {
        self.agreed.receiving = Receiving::Failing { dsn, retries: 0 };
    }

    /// Counts a retransmission of MP_FAIL, if a mapping has failed.
    pub(crate) const fn count_fail_retry(&mut self) -> Option<FailRetry> {
        let Receiving::Failing { dsn, retries } = &mut self.agreed.receiving else { return None };
        *retries += 1;
        Some(FailRetry { dsn: *dsn, retries: *retries })
    }

    /// Returns true once, when the peer has acknowledged a segment with the infinite mapping, so
    /// that later ones need not carry it. All data below `una` is acknowledged.
    pub(crate) fn stops_telling(&mut self, una: SendSsn) -> bool {
        let stops = matches!(self.agreed.sending, Sending::Telling { until } if una >= until);
        if stops {
            self.agreed.sending = Sending::Plain;
        }
        stops
    }

    /// Stops requiring mappings from the peer. Returns true if this is new.
    pub(crate) fn receive_plain(&mut self) -> bool {
        let new = self.agreed.receiving != Receiving::Plain;
        self.agreed.receiving = Receiving::Plain;
        new
    }

    /// Stops mapping our data, from the first byte that is not DATA_ACKed on. Segments carry the
    /// infinite mapping until the peer has acknowledged `until`. Returns true if this is new.
    pub(crate) fn send_plain(&mut self, until: SendSsn) -> bool {
        let new = self.agreed.sending == Sending::Mapped;
        if new {
            (self.agreed.from, self.agreed.sending) =
                (self.queue.una(), Sending::Telling { until });
        }
        new
    }
}

impl crate::data::reassembly::Readable {
    /// Returns the event for observers.
    pub(crate) fn event(&self) -> Event {
        Event::DataReadable { data: self.data, waited: self.waited, subflow: self.subflow }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_matrix_of_modes() {
        let of =
            |mode: Mode| [ModeStep::KeysExchanged, ModeStep::FallBack].map(|step| mode.after(step));
        assert_eq!(of(Mode::Offered), [Some(Mode::Multipath), Some(Mode::Plain)]);
        assert_eq!(of(Mode::Multipath), [None, Some(Mode::Plain)]);
        assert_eq!(of(Mode::Plain), [None, Some(Mode::Plain)]);
    }
}
