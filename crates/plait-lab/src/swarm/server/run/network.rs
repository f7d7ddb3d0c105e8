//! The links between the server and its clients.

use crate::swarm::server::case::ServerCase;
use plait_base::{RandomStream, Rate, Span, Time};
use plait_link::{Fate, Link, LinkConfig, RateSource};

pub(super) struct Network {
    down: Link,
    up: Link,
    /// Draws packet losses, and the ports of strangers.
    pub(super) random: RandomStream,
}

impl Network {
    pub(super) fn new(case: &ServerCase) -> Network {
        let rate = RateSource::Fixed(Rate::from_bps(case.rate_kbps * 1_000));
        let one_way = Span::from_micros(case.rtt_us / 2);
        let link =
            |name| Link::new(&LinkConfig::new(rate.clone(), one_way), case.seed, &["server", name]);
        Network {
            down: link("down"),
            up: link("up"),
            random: RandomStream::new(case.seed, &["server swarm", "network"]),
        }
    }

    /// Returns the arrival time of a packet of a client, or `None` if it is lost. `up` gives the
    /// direction. The client's address is at offset `field`.
    pub(super) fn carry(
        &mut self,
        case: &ServerCase,
        now: Time,
        up: bool,
        bytes: &[u8],
        field: usize,
    ) -> Option<Time> {
        if now < Time::ZERO + Span::from_millis(case.heals_ms)
            && self.random.below(1_000_000) < u64::from(case.loss_ppm)
        {
            return None;
        }
        let spread = bytes
            .get(field..field + 4)
            .map_or(0, |it| it.iter().fold(0, |sum: u64, byte| sum * 251 + u64::from(*byte)));
        let extra = Span::from_micros(spread % (case.spread_us / 2 + 1));
        let link = if up { &mut self.up } else { &mut self.down };
        match link.offer(now, bytes.len() as u32) {
            Fate::Deliver { arrives, .. } if arrives < Time::NEVER => Some(arrives + extra),
            _ => None,
        }
    }
}
