//! What both ends speak: the mode, and how far each direction has fallen back to plain TCP (RFC 8684
//! section 3.7).

use crate::config::Config;
use crate::event::Event;
use plait_base::{Dsn, Ssn};

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
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum FallbackCause {
    /// SYNs with MP_CAPABLE stayed unanswered, of this connection or of one before it.
    Silence,
    /// The peer's SYN had no MP_CAPABLE.
    Syn,
    /// The peer's SYN/ACK had none.
    #[cfg_attr(feature = "serde", serde(rename = "synack"))]
    SynAck,
    /// The third ACK had none.
    #[cfg_attr(feature = "serde", serde(rename = "ack"))]
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

    /// Why the connection is plain TCP, if it was to be more.
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
    /// The event for observers.
    pub(crate) fn event(&self) -> Event {
        Event::DataReadable { data: self.data, waited: self.waited, subflow: self.subflow }
    }
}
