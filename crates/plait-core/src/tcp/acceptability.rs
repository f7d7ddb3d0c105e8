//! Classification of segments by sequence number (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323
//! section 5).

use crate::config::Config;
use crate::data::agreement::{Mode, ssn_in_step};
use crate::data::level::DataLevel;
use crate::tcp::clock::before;
use crate::tcp::subflow::{Numbers, Subflow};
use plait_base::{RecvRange, RecvSsn};
use plait_wire::Segment;

/// The place of a segment's sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Acceptability {
    /// Partly or wholly in the window, or at its right edge without using space: a FIN, or an
    /// acknowledgement beyond lost data.
    Window,
    /// All of it has arrived before, within the range that a sender may retransmit.
    Repeated,
    Outside,
}

/// Returns the place of `len` sequence numbers from `seq` on. `nxt` is expected next, and the
/// window ends at `edge`. Numbers up to `reach` below `nxt` are retransmissions.
fn place(seq: RecvSsn, len: u64, nxt: RecvSsn, edge: RecvSsn, reach: u64) -> Acceptability {
    if seq > edge {
        Acceptability::Outside
    } else if seq >= nxt || seq.saturating_add(len) > nxt {
        Acceptability::Window
    } else if nxt - seq <= reach {
        Acceptability::Repeated
    } else {
        Acceptability::Outside
    }
}

/// Returns true if the segment of `subflow` must be processed. A retransmission is, because its
/// acknowledgement may be new; it is answered when its payload is processed.
pub(crate) fn accepts(
    subflow: &mut Subflow,
    data: &DataLevel,
    config: &Config,
    segment: &Segment,
    Numbers { seq, ack }: Numbers,
) -> bool {
    let place = place_on(subflow, data, config, seq, u64::from(segment.seq_len()));
    // RFC 5961 section 5.2: the ACK covers unsent data, or is older than any window.
    let credible = ack <= subflow.sender.tx.nxt()
        && ack.saturating_add(data.window().largest().max(0xffff)) >= subflow.sender.tx.una();
    if place == Acceptability::Outside || !credible {
        return false;
    }
    let stamps = segment.options.timestamps.filter(|_| subflow.negotiated.timestamps);
    let Some(stamp) = stamps else { return true };
    // Protection against wrapped sequence numbers (RFC 7323 section 5.3).
    if before(stamp.value, subflow.negotiated.ts_recent) {
        // An original overtaken by its retransmission looks the same.
        let len = u64::from(segment.payload.len());
        subflow.rx.note_refused(RecvRange::with_len(seq, len));
        return false;
    }
    if seq <= subflow.rx.nxt() {
        subflow.note_timestamp(stamp.value);
    }
    true
}

/// Returns the place of `len` sequence numbers from `seq` on.
fn place_on(
    subflow: &Subflow,
    data: &DataLevel,
    config: &Config,
    seq: RecvSsn,
    len: u64,
) -> Acceptability {
    let (nxt, reach) = (subflow.rx.nxt(), data.reach(config));
    let edge = match data.mode() {
        Mode::Plain => ssn_in_step(data.reassembly().right_edge()).max(nxt),
        _ => nxt + reach,
    };
    place(seq, len, nxt, edge, reach)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R61: the table of RFC 9293 section 3.10.7.4. A segment without length is accepted at the
    /// edge itself.
    #[test]
    pub(crate) fn the_window_has_two_ends() {
        let of = |seq, len| place(seq, len, RecvSsn::new(1_000), RecvSsn::new(1_500), 300);
        for (seq, len) in [(1_000, 0), (1_000, 1), (999, 2), (701, 400), (1_499, 1), (1_500, 0)] {
            assert_eq!(of(RecvSsn::new(seq), len), Acceptability::Window, "{len} from {seq}");
        }
        for (seq, len) in [(999, 0), (999, 1), (700, 0), (700, 300)] {
            assert_eq!(of(RecvSsn::new(seq), len), Acceptability::Repeated, "{len} from {seq}");
        }
        for (seq, len) in [(699, 0), (600, 400), (1_501, 0), (1_501, 1), (u64::MAX, 1)] {
            assert_eq!(of(RecvSsn::new(seq), len), Acceptability::Outside, "{len} from {seq}");
        }
        // A closed window.
        let closed = |seq, len| place(seq, len, RecvSsn::new(1_000), RecvSsn::new(1_000), 300);
        assert_eq!(closed(RecvSsn::new(1_000), 0), Acceptability::Window);
        assert_eq!(closed(RecvSsn::new(1_001), 0), Acceptability::Outside);
    }
}
