//! Classification of segments by sequence number (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323
//! section 5).

use plait_base::RecvSsn;

/// The place of a segment's sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acceptability {
    /// Partly or wholly in the window, or at its right edge without using space: a FIN, or an
    /// acknowledgement beyond lost data.
    Window,
    /// All of it has arrived before, within the range that a sender may retransmit.
    Repeated,
    Outside,
}

/// Returns the place of `len` sequence numbers from `seq` on. `nxt` is expected next, and the
/// window ends at `edge`. Numbers up to `reach` below `nxt` are retransmissions.
pub(crate) fn place(
    seq: RecvSsn,
    len: u64,
    nxt: RecvSsn,
    edge: RecvSsn,
    reach: u64,
) -> Acceptability {
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
