//! Windows of a lossless transfer, round by round, for hand calculations.

use crate::{Ack, Congestion, Flows, Reno, Settings};
use alloc::boxed::Box;
use plait_base::{Span, Time};

/// One round trip of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Round {
    /// Segments sent in this round.
    pub window: u64,
    /// Segments that all rounds up to this one can send.
    pub total: u64,
}

/// Iterates over the windows of a transfer without loss and without effects of delay, until it is
/// complete. Every round sends a whole window, and every segment is acknowledged on its own. Above
/// the threshold the window grows as in Reno.
#[derive(Debug)]
pub struct Rounds {
    congestion: Congestion,
    mss: u64,
    segments: u64,
    total: u64,
}

impl Rounds {
    /// Returns the rounds of a transfer of `segments` full segments.
    #[must_use]
    pub fn new(settings: Settings, segments: u64) -> Rounds {
        let mss = settings.segment();
        Rounds {
            congestion: Congestion::new(settings, Box::new(Reno::default())),
            mss,
            segments,
            total: 0,
        }
    }
}

impl Iterator for Rounds {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        if self.total >= self.segments {
            return None;
        }
        let window = self.congestion.cwnd() / self.mss;
        self.total = self.total.saturating_add(window);
        if self.total < self.segments {
            let ack = Ack {
                now: Time::ZERO,
                bytes: self.mss,
                rtt: None,
                srtt: Span::ZERO,
                min_rtt: Span::ZERO,
                cwnd_limited: true,
                round: false,
                acked: 0,
                sent: 0,
            };
            for _ in 0..window {
                self.congestion.on_ack(&ack, Flows { all: &[], own: 0 });
            }
        }
        Some(Round { window, total: self.total })
    }
}
