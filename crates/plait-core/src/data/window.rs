//! The peer's receive window: shared by all subflows. Its right edge never moves left (RFC 8684
//! section 3.3.5).

use plait_base::Dsn;

/// The send window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWindow {
    end: Dsn,
    largest: u64,
}

impl SendWindow {
    pub(super) const fn new() -> SendWindow {
        SendWindow { end: Dsn::ZERO, largest: 0 }
    }

    /// Returns the DSN at or below which data must end.
    pub(crate) const fn end(self) -> Dsn {
        self.end
    }

    /// Returns the largest window that the peer ever advertised.
    pub(crate) const fn largest(self) -> u64 {
        self.largest
    }

    /// Processes a DATA_ACK with its window. Returns true if the edge advanced. An older segment
    /// cannot move it left.
    pub(super) fn update(&mut self, data_ack: Dsn, window: u64) -> bool {
        let edge = data_ack.saturating_add(window);
        if window > self.largest {
            self.largest = window;
        }
        let moved = edge > self.end;
        if moved {
            self.end = edge;
        }
        moved
    }
}

/// Returns the smallest shift for which a 16-bit window field can hold `rcvbuf` bytes (RFC 7323
/// section 2.3; at most 14).
pub(crate) const fn scale_for(rcvbuf: u64) -> u8 {
    let mut shift = 0;
    while shift < 14 && (rcvbuf >> shift) > 0xffff {
        shift += 1;
    }
    shift
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R37.
    #[test]
    fn the_edge_never_moves_left() {
        let mut window = SendWindow::new();
        assert!(window.update(Dsn::new(100), 1_000));
        assert!(!window.update(Dsn::new(50), 1_000));
        assert!(!window.update(Dsn::new(200), 900));
        assert!(window.update(Dsn::new(200), 901));
        assert_eq!(window.end(), Dsn::new(1_101));
    }

    /// R64.
    #[test]
    fn the_scale_fits_the_buffer() {
        assert_eq!(scale_for(65_535), 0);
        assert_eq!(scale_for(65_536), 1);
        assert_eq!(scale_for(6 << 20), 7);
        assert_eq!(scale_for(u64::MAX), 14);
    }
}
