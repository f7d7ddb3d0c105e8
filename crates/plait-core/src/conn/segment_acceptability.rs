//! Whether a segment belongs to the present conversation: sequence number, acknowledgement,
//! timestamp (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323 section 5).

use super::fallback::ssn_in_step;
use super::{Connection, Context, Mode};
use crate::tcp::clock::before;
use plait_base::{Ssn, SubflowRange};
use plait_wire::Segment;

/// Where a segment's sequence numbers lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Partly or wholly in the window, or at its right edge without taking room there: a FIN, or
    /// an acknowledgement beyond data that was lost.
    Window,
    /// All of it has come before, not longer ago than a sender may remember.
    Repeated,
    Outside,
}

/// The place of `len` sequence numbers from `seq` on, where `nxt` is expected next and the window
/// ends at `edge`; what lies `reach` below `nxt` is repeated.
fn place(seq: Ssn, len: u64, nxt: Ssn, edge: Ssn, reach: u64) -> Place {
    if seq > edge {
        Place::Outside
    } else if seq >= nxt || seq.saturating_add(len) > nxt {
        Place::Window
    } else if nxt - seq <= reach {
        Place::Repeated
    } else {
        Place::Outside
    }
}

impl Connection {
    /// As far as a peer's sequence numbers may lie behind what is expected, or on a subflow of
    /// Multipath TCP ahead of it: there the shared window bounds the data, and numbers run ahead
    /// of that only with data that is sent more than once.
    fn reach(&self) -> u64 {
        2 * self.spec.config.rcvbuf.max(0xffff)
    }

    /// Whether `len` sequence numbers from `seq` on may come on the subflow at `index`.
    fn place(&self, index: usize, seq: Ssn, len: u64) -> Place {
        let (nxt, reach) = (self.subflows[index].rx.nxt(), self.reach());
        let edge = match self.mode {
            Mode::Plain => ssn_in_step(self.recv.right_edge()).max(nxt),
            _ => nxt + reach,
        };
        place(seq, len, nxt, edge, reach)
    }

    /// A segment that the peer may have to know of is answered, within the limit of challenges
    /// (RFC 5961 section 7).
    pub(super) fn challenge(&mut self, ctx: &mut Context<'_>, index: usize) {
        let may = self.challenges.take(ctx);
        self.subflows[index].pending.ack |= may;
    }

    /// Whether the segment is to be read. What was repeated is, for an acknowledgement beside it
    /// may be new; it is answered where that is done with its payload.
    pub(super) fn is_acceptable(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        seq: Ssn,
        ack: Ssn,
    ) -> bool {
        let place = self.place(index, seq, u64::from(segment.seq_len()));
        let subflow = &mut self.subflows[index];
        // RFC 5961 section 5.2: what was never sent, or further behind than a window ever was.
        let credible = ack <= subflow.tx.nxt()
            && ack.saturating_add(self.window.largest().max(0xffff)) >= subflow.tx.una();
        if place == Place::Outside || !credible {
            self.challenge(ctx, index);
            return false;
        }
        let Some(stamp) = segment.options.timestamps.filter(|_| subflow.shake.offer.timestamps)
        else {
            return true;
        };
        // Protection against wrapped sequence numbers (RFC 7323 section 5.3).
        if before(stamp.value, subflow.shake.ts_recent) {
            // An original that its retransmission has overtaken looks like this.
            let len = u64::from(segment.payload.len());
            subflow.rx.note_refused(SubflowRange::with_len(seq, len));
            self.challenge(ctx, index);
            return false;
        }
        if seq <= subflow.rx.nxt() {
            subflow.shake.ts_recent = stamp.value;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R61: the table of RFC 9293 section 3.10.7.4, with the edge itself let in for what takes no
    /// room.
    #[test]
    fn the_window_has_two_ends() {
        let of = |seq, len| place(seq, len, Ssn::new(1_000), Ssn::new(1_500), 300);
        for (seq, len) in [(1_000, 0), (1_000, 1), (999, 2), (701, 400), (1_499, 1), (1_500, 0)] {
            assert_eq!(of(Ssn::new(seq), len), Place::Window, "{len} from {seq}");
        }
        for (seq, len) in [(999, 0), (999, 1), (700, 0), (700, 300)] {
            assert_eq!(of(Ssn::new(seq), len), Place::Repeated, "{len} from {seq}");
        }
        for (seq, len) in [(699, 0), (600, 400), (1_501, 0), (1_501, 1), (u64::MAX, 1)] {
            assert_eq!(of(Ssn::new(seq), len), Place::Outside, "{len} from {seq}");
        }
        // A closed window.
        let closed = |seq, len| place(seq, len, Ssn::new(1_000), Ssn::new(1_000), 300);
        assert_eq!(closed(Ssn::new(1_000), 0), Place::Window);
        assert_eq!(closed(Ssn::new(1_001), 0), Place::Outside);
    }
}
