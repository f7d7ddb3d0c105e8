//! Fallback to plain TCP (RFC 8684 section 3.7): in the handshake, on first data without options,
//! when mappings are stripped later, and after a wrong checksum.
//!
//! Each direction falls back on its own. If only one subflow was ever used, sequence numbers and
//! DSNs run in step. The infinite mapping then adds nothing: the byte with subflow sequence number
//! n has DSN n - 1. If another subflow was used, this does not hold, and an untrusted subflow is
//! reset instead.

use crate::config::Config;
use crate::context::Context;
use crate::data::agreement::{Mode, ModeStep, Receiving, Sending, ssn_in_step};
use crate::data::level::DataLevel;
use crate::event::{Event, FallbackCause};
use crate::notices::Notices;
use plait_base::{Dsn, SendSpace};
use plait_wire::Mapping;

impl DataLevel {
    /// Returns true if our data has no mappings any more.
    pub(crate) fn sends_plain(&self) -> bool {
        self.agreed.mode() == Mode::Plain || !matches!(self.agreed.sending(), Sending::Mapped)
    }

    /// Returns true if the peer's data needs no mappings any more.
    pub(crate) fn receives_plain(&self) -> bool {
        self.agreed.mode() == Mode::Plain || matches!(self.agreed.receiving(), Receiving::Plain)
    }

    /// Returns true for plain TCP, or during a fallback: no joins, no reset reasons.
    pub(crate) fn falls_back(&self) -> bool {
        self.agreed.mode() == Mode::Plain || self.agreed.cause().is_some()
    }

    /// Returns true if the peer has acknowledged data without a DSS since its last DSS. It may have
    /// fallen back.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.agreed.bare() > 0
    }

    /// Emits the event of a SYN without MP_CAPABLE when the handshake is complete.
    pub(crate) fn tell_plain_syn(&self, ctx: &mut Context<'_>) {
        if self.agreed.cause() == Some(FallbackCause::Syn) {
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
        if self.agreed.on_fallback(cause) {
            notices.tell_user();
            notices.tell_endpoint();
            // A SYN alone is no connection yet.
            if cause != FallbackCause::Syn {
                ctx.emit(Event::Fallback(cause));
            }
        }
    }

    /// Switches to plain TCP before any data.
    pub(crate) fn start_plain(
        &mut self,
        ctx: &mut Context<'_>,
        config: &Config,
        notices: &mut Notices,
        cause: FallbackCause,
    ) {
        self.agreed.step(ModeStep::FallBack);
        if config.multipath {
            self.note_fallback(ctx, notices, cause);
        }
    }

    /// Notes that our first SYN was answered.
    pub(crate) fn judge(&mut self, config: &Config, notices: &mut Notices) {
        if config.multipath {
            self.agreed.on_syn_answered();
            notices.tell_endpoint();
        }
    }

    /// Returns the DSN of our MP_FAIL: the one of the failed mapping, or else the next expected
    /// one.
    pub(crate) fn failed_dsn(&self) -> Dsn {
        match self.agreed.receiving() {
            Receiving::Failing { dsn, .. } => dsn,
            _ => self.recv.nxt(),
        }
    }

    /// Returns the infinite mapping, which starts at the last DATA_ACKed byte.
    pub(crate) fn infinite_mapping(&self) -> Mapping {
        let from = self.agreed.plain_from();
        Mapping {
            dsn: self.keys.own.wire(from).field(false),
            long: false,
            ssn: ssn_in_step::<SendSpace>(from).low(),
            len: 0,
            checksum: self.agreed.checksums().then_some(0),
        }
    }
}
