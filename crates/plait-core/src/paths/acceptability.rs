//! Acceptability of the peer's segments: they lie in the window and have a fresh timestamp. Other
//! segments may be answered by a challenge ACK (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323).

use crate::config::Config;
use crate::context::Context;
use crate::data::agreement::{Mode, ssn_in_step};
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::acceptability::{Acceptability, place};
use crate::tcp::clock::before;
use crate::tcp::subflow::{Numbers, Subflow};
use plait_base::{RecvRange, RecvSsn};
use plait_wire::Segment;

impl Subflow {
    /// Returns true if the segment must be processed. A retransmission is, because its
    /// acknowledgement may be new; it is answered when its payload is processed.
    pub(super) fn accepts(
        &mut self,
        data: &DataLevel,
        config: &Config,
        segment: &Segment,
        Numbers { seq, ack }: Numbers,
    ) -> bool {
        let place = self.place(data, config, seq, u64::from(segment.seq_len()));
        // RFC 5961 section 5.2: the ACK covers unsent data, or is older than any window.
        let credible = ack <= self.sender.tx.nxt()
            && ack.saturating_add(data.window.largest().max(0xffff)) >= self.sender.tx.una();
        if place == Acceptability::Outside || !credible {
            return false;
        }
        let stamps = segment.options.timestamps.filter(|_| self.negotiated().timestamps);
        let Some(stamp) = stamps else { return true };
        // Protection against wrapped sequence numbers (RFC 7323 section 5.3).
        if before(stamp.value, self.negotiated().ts_recent) {
            // An original overtaken by its retransmission looks the same.
            let len = u64::from(segment.payload.len());
            self.rx.note_refused(RecvRange::with_len(seq, len));
            return false;
        }
        if seq <= self.rx.nxt() {
            self.note_timestamp(stamp.value);
        }
        true
    }

    /// Returns the place of `len` sequence numbers from `seq` on.
    fn place(&self, data: &DataLevel, config: &Config, seq: RecvSsn, len: u64) -> Acceptability {
        let (nxt, reach) = (self.rx.nxt(), data.reach(config));
        let edge = match data.agreed.mode() {
            Mode::Plain => ssn_in_step(data.recv.right_edge()).max(nxt),
            _ => nxt + reach,
        };
        place(seq, len, nxt, edge, reach)
    }
}

impl Paths {
    /// Returns true if the segment must be processed ([`Subflow::accepts`]). Others are answered by
    /// a challenge ACK.
    pub(crate) fn is_acceptable(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        index: usize,
        segment: &Segment,
        numbers: Numbers,
    ) -> bool {
        let accepted = self.subflows[index].accepts(data, &self.spec.config, segment, numbers);
        if !accepted {
            self.challenge(ctx, index);
        }
        accepted
    }

    /// Sends a challenge ACK, within the limit (RFC 5961 section 7).
    pub(crate) fn challenge(&mut self, ctx: &mut Context<'_>, index: usize) {
        let may = self.challenges.take(ctx);
        self.subflows[index].pending.add_ack_if(may);
    }
}
