//! The peer's receive window: one pool for all subflows, whose right edge only moves right (RFC
//! 8684 section 3.3.5).

use crate::planted::{Planted, planted};
use plait_base::Dsn;

/// The send window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWindow {
    end: Dsn,
    largest: u64,
}

impl SendWindow {
    pub(crate) const fn new() -> SendWindow {
        SendWindow { end: Dsn::ZERO, largest: 0 }
    }

    /// Data must end at or below this DSN.
    pub(crate) const fn end(self) -> Dsn {
        self.end
    }

    /// The largest window that the peer ever told: the most that a segment can hope for.
    pub(crate) const fn largest(self) -> u64 {
        self.largest
    }

    /// Takes in a DATA_ACK with its window; true where the edge moved. An older segment cannot
    /// move it left.
    pub(crate) fn update(&mut self, data_ack: Dsn, window: u64) -> bool {
        let edge = data_ack.saturating_add(window);
        if window > self.largest {
            self.largest = window;
        }
        let moved = edge > self.end || planted(Planted::StaleWindow);
        if moved {
            self.end = edge;
        }
        moved
    }
}

/// The smallest shift that lets a window field of 16 bits tell `rcvbuf` bytes (RFC 7323 section
/// 2.3; at most 14).
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
