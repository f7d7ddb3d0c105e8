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
use crate::data::agreement::{FallbackCause, Mode, Receiving, Sending, ssn_in_step};
use crate::data::level::DataLevel;
use crate::event::Event;
use plait_base::Dsn;
use plait_wire::Mapping;

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

    /// Notes the first cause of a fallback, and emits an event.
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
