//! Back to plain TCP (RFC 8684 section 3.7), at each point where that is possible: in the handshake,
//! on first data without options, where mappings vanish later, and where a checksum is wrong.
//!
//! Each direction falls back on its own. On the only subflow that ever was, sequence numbers and
//! DSNs run in step, so the infinite mapping says what is known anyway: the byte with subflow
//! sequence number n has DSN n - 1. Once another subflow was used that no longer holds; then a
//! subflow that cannot be trusted is reset instead.

use crate::config::Config;
use crate::conn::context::Context;
use crate::conn::notices::Notices;
use crate::data::level::DataLevel;
use crate::event::Event;
use plait_base::{Dsn, Ssn};
use plait_wire::Mapping;

/// Acknowledgements without a DSS, one after the other, that tell that options are taken off.
pub(crate) const BARE_ACKS: u8 = 3;
/// Segments in order without a mapping, one after the other, that cost a subflow its trust.
pub(crate) const MAX_UNMAPPED_SEGMENTS: u8 = 3;
/// Timeouts of the connection without a DSS after which a subflow is given up, where no fallback is
/// possible.
pub(crate) const MAX_TIMEOUTS_WITHOUT_DSS: u32 = 3;
/// How often MP_FAIL is told again before the subflow is reset.
pub(crate) const FAIL_RETRIES: u8 = 3;

/// Whether Multipath TCP is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Offered, not yet agreed.
    Offered,
    Multipath,
    Plain,
}

/// Why a connection that offered or spoke Multipath TCP speaks plain TCP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FallbackCause {
    /// SYNs with MP_CAPABLE stayed unanswered, of this connection or of one before it.
    Silence,
    /// The peer's SYN had no MP_CAPABLE.
    Syn,
    /// The peer's SYN/ACK had none.
    SynAck,
    /// The third ACK had none.
    ThirdAck,
    /// The first data, or the first acknowledgement of ours, had no MPTCP option.
    FirstData,
    /// Mappings or DATA_ACKs vanished later.
    Mappings,
    /// A checksum was wrong, here or at the peer.
    Checksum,
}

/// How data from the peer is understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receiving {
    Mapped,
    /// The checksum of the mapping with this DSN was wrong. What came since is held; MP_FAIL was
    /// told, and again so often.
    Failing {
        dsn: Dsn,
        retries: u8,
    },
    Plain,
}

/// How data to the peer is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sending {
    Mapped,
    /// Without mappings, but segments still tell the infinite one, until this sequence number is
    /// acknowledged.
    Telling {
        until: Ssn,
    },
    Plain,
}

/// The DSN of the byte with subflow sequence number `seq`, where both run in step: the SYN has 0 and the first
/// byte 1. `None` for the SYN.
pub(crate) fn dsn_in_step(seq: Ssn) -> Option<Dsn> {
    seq.checked_sub(Ssn::FIRST).map(Dsn::new)
}

/// The subflow sequence number of the byte with `dsn`, where both run in step.
pub(crate) fn ssn_in_step(dsn: Dsn) -> Ssn {
    Ssn::FIRST + dsn.get()
}

/// What both ends have agreed on, and how far they have fallen back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    pub(crate) mode: Mode,
    /// DSS checksums are in use in both directions.
    pub(crate) checksums: bool,
    /// A DSS of the peer was seen: it holds our key (RFC 8684 section 3.1).
    pub(crate) peer_dss_seen: bool,
    pub(crate) cause: Option<FallbackCause>,
    /// Another subflow than the first was used, or the peer may have used it.
    pub(crate) others_used: bool,
    /// This end could send on another.
    pub(crate) others_joined: bool,
    pub(crate) receiving: Receiving,
    pub(crate) sending: Sending,
    /// Where our infinite mapping starts: at the last byte that was DATA_ACKed.
    pub(crate) from: Dsn,
    /// Acknowledgements without a DSS since the last one with.
    pub(crate) bare: u8,
    /// Our SYN was answered: whether only the one without MP_CAPABLE was.
    pub(crate) verdict: Option<bool>,
}

impl Agreement {
    /// What is offered before anything is agreed on.
    pub(crate) const fn new(config: &Config) -> Agreement {
        Agreement {
            mode: if config.multipath { Mode::Offered } else { Mode::Plain },
            checksums: config.checksum,
            peer_dss_seen: false,
            cause: None,
            others_used: false,
            others_joined: false,
            receiving: Receiving::Mapped,
            sending: Sending::Mapped,
            from: Dsn::ZERO,
            bare: 0,
            verdict: None,
        }
    }

    pub(crate) const fn cause(&self) -> Option<FallbackCause> {
        self.cause
    }

    /// Whether data segments still tell the infinite mapping.
    pub(crate) fn is_telling(&self) -> bool {
        matches!(self.sending, Sending::Telling { .. })
    }

    /// Whether the peer has the infinite mapping.
    pub(crate) fn has_told(&self) -> bool {
        self.sending == Sending::Plain
    }

    /// Returns true once: when the peer has acknowledged a segment with the infinite mapping, so that
    /// further ones need not tell it. Everything below `una` is acknowledged.
    pub(crate) fn stops_telling(&mut self, una: Ssn) -> bool {
        let stops = matches!(self.sending, Sending::Telling { until } if una >= until);
        if stops {
            self.sending = Sending::Plain;
        }
        stops
    }

    /// Our data has no mappings from `from` on; segments tell the infinite one until the peer has
    /// acknowledged `until`. Returns whether that is new.
    pub(crate) fn send_plain(&mut self, from: Dsn, until: Ssn) -> bool {
        let new = self.sending == Sending::Mapped;
        if new {
            (self.from, self.sending) = (from, Sending::Telling { until });
        }
        new
    }

    /// Data of the peer needs no mappings any more. Returns whether that is new.
    pub(crate) fn receive_plain(&mut self) -> bool {
        let new = self.receiving != Receiving::Plain;
        self.receiving = Receiving::Plain;
        new
    }

    /// A DSS came.
    pub(crate) const fn on_dss(&mut self) {
        self.bare = 0;
    }
}

impl crate::data::reassembly::Readable {
    /// As observers are told of it.
    pub(crate) fn event(&self) -> Event {
        Event::DataReadable { data: self.data, waited: self.waited, subflow: self.subflow }
    }
}

impl DataLevel {
    /// Data to the peer has no mappings any more.
    pub(crate) fn sends_plain(&self) -> bool {
        self.agreed.mode == Mode::Plain || self.agreed.sending != Sending::Mapped
    }

    /// Data from the peer needs no mappings any more.
    pub(crate) fn receives_plain(&self) -> bool {
        self.agreed.mode == Mode::Plain || self.agreed.receiving == Receiving::Plain
    }

    /// Plain TCP, or on the way there: no joins, no reasons.
    pub(crate) fn falls_back(&self) -> bool {
        self.agreed.mode == Mode::Plain || self.agreed.cause.is_some()
    }

    /// Whether the peer has acknowledged data without a DSS since its last DSS. It may have fallen back.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.agreed.bare > 0
    }

    /// The handshake is complete: was there a SYN without MP_CAPABLE?
    pub(crate) fn tell_plain_syn(&self, ctx: &mut Context<'_>) {
        if self.agreed.cause == Some(FallbackCause::Syn) {
            ctx.emit(Event::Fallback(FallbackCause::Syn));
        }
    }

    pub(crate) fn note_fallback(
        &mut self,
        ctx: &mut Context<'_>,
        notices: &mut Notices,
        cause: FallbackCause,
    ) {
        if self.agreed.cause.is_none() {
            self.agreed.cause = Some(cause);
            (notices.news, notices.changed) = (true, true);
            // A SYN alone is no connection yet.
            if cause != FallbackCause::Syn {
                ctx.emit(Event::Fallback(cause));
            }
        }
    }

    /// Plain TCP before any data.
    pub(crate) fn start_plain(
        &mut self,
        ctx: &mut Context<'_>,
        config: &Config,
        notices: &mut Notices,
        cause: FallbackCause,
    ) {
        self.agreed.mode = Mode::Plain;
        if config.multipath {
            self.note_fallback(ctx, notices, cause);
        }
    }

    /// Our first SYN was answered.
    pub(crate) fn judge(&mut self, config: &Config, notices: &mut Notices) {
        if config.multipath {
            self.agreed.verdict = Some(self.agreed.cause == Some(FallbackCause::Silence));
            notices.changed = true;
        }
    }

    /// The DSN of our MP_FAIL: that of the mapping that failed, or of what is expected.
    pub(crate) fn failed_dsn(&self) -> Dsn {
        match self.agreed.receiving {
            Receiving::Failing { dsn, .. } => dsn,
            _ => self.recv.nxt(),
        }
    }

    /// The infinite mapping, which starts at the last DATA_ACKed byte.
    pub(crate) fn infinite_mapping(&self) -> Mapping {
        let from = self.agreed.from;
        Mapping {
            dsn: self.keys.own.wire(from) & 0xffff_ffff,
            long: false,
            ssn: ssn_in_step(from).low(),
            len: 0,
            checksum: self.agreed.checksums.then_some(0),
        }
    }

    /// Why the connection is plain TCP, if it was to be more.
    pub(crate) fn fallback_cause(&self) -> Option<FallbackCause> {
        self.agreed.cause()
    }
}
