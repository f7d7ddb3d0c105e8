//! A window that never changes.

use crate::{About, Ack, Algorithm, Entry, FixedWindow, Param, ParamKind, View};
use alloc::boxed::Box;
use plait_base::Time;

const CWND: Param = Param {
    name: "cwnd",
    kind: ParamKind::Window { default: FixedWindow::Bdp },
    unit: "bytes or segments",
    help: "the window: 20 or 20seg for 20 segments, 64KiB, or BDP for the path's bandwidth times its RTT",
    clause: "",
};

pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "fixed",
    aliases: &[],
    idea: "a constant window: shows the effect of the scheduler alone",
    page: "\
The window is `cwnd` from the first segment on. Acknowledgements, losses, timeouts, idle times and
penalties do not change it, and it is never in slow start.

Good at: hand calculations, and separating the effect of a scheduler from that of congestion control.
Bad at: any network that others use.
",
    params: &[CWND],
    state: &[],
    },
    clause: "none",
    make: |params| Box::new(Fixed::new(params.window(&CWND).unwrap_or(FixedWindow::Bdp))),
};

/// Value of `BDP` if the path is unknown: the initial window of RFC 6928.
const UNRESOLVED_SEGMENTS: u64 = 10;

/// A fixed window. Only the caller knows the value of a bandwidth-delay product
/// ([`Spec::with_bdp`](crate::Spec::with_bdp)). If it is not given, the window is ten segments.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    window: FixedWindow,
}

impl Fixed {
    /// Creates an algorithm with this window.
    #[must_use]
    pub fn new(window: FixedWindow) -> Fixed {
        Fixed { window }
    }
}

impl Algorithm for Fixed {
    fn couples(&self) -> bool {
        false
    }

    fn increase(&mut self, _ack: &Ack, _bytes: u64, _view: &View<'_>) -> f64 {
        0.0
    }

    fn threshold(&mut self, _now: Time, _inflight: u64, view: &View<'_>) -> u64 {
        view.own().cwnd
    }

    fn fixed_window(&self, mss: u32) -> Option<u64> {
        match self.window {
            FixedWindow::Bytes(bytes) => Some(bytes),
            FixedWindow::Segments(segments) => Some(u64::from(segments) * u64::from(mss)),
            FixedWindow::Bdp => Some(UNRESOLVED_SEGMENTS.saturating_mul(u64::from(mss))),
        }
    }
}
