//! Packets between the server and its guests, and what is kept of them.

use super::{Event, Guest, Run, Trail};
use crate::swarm::run::{Broken, segment_line};
use plait_base::{ConnId, Span, Time};
use plait_engine::LogEvent;
use plait_link::Fate;
use plait_wire::codec::{self, Verify};
use plait_wire::{Flags, Segment};
use std::net::IpAddr;

impl Run<'_> {
    /// Packets of guests leave for the server.
    pub(super) fn send_up(&mut self, client: bool, out: &mut Vec<Vec<u8>>) {
        for bytes in out.drain(..) {
            self.note(&bytes);
            let arrives = self.carry(client, true, &bytes, 12);
            if let Some(arrives) = arrives {
                self.at(arrives, Event::Arrive(bytes));
            }
        }
    }

    /// When a packet is at the other end, if it gets there. The guest's address is at `field`.
    fn carry(&mut self, client: bool, up: bool, bytes: &[u8], field: usize) -> Option<Time> {
        if !client {
            // Strangers have links of their own.
            return Some(self.now + Span::from_micros(self.case.rtt_us / 2));
        }
        if self.now < Time::ZERO + Span::from_millis(self.case.heals_ms)
            && self.random.below(1_000_000) < u64::from(self.case.loss_ppm)
        {
            return None;
        }
        let spread = bytes
            .get(field..field + 4)
            .map_or(0, |it| it.iter().fold(0, |sum: u64, byte| sum * 251 + u64::from(*byte)));
        let extra = Span::from_micros(spread % (self.case.spread_us / 2 + 1));
        let link = if up { &mut self.up } else { &mut self.down };
        match link.offer(self.now, bytes.len() as u32) {
            Fate::Deliver { arrives, .. } if arrives < Time::NEVER => Some(arrives + extra),
            _ => None,
        }
    }

    /// A packet of the server leaves.
    pub(super) fn send_down(&mut self, bytes: Vec<u8>) {
        self.note(&bytes);
        let Some(to) = bytes.get(16..20).and_then(|it| <[u8; 4]>::try_from(it).ok()) else {
            return;
        };
        let Some(guest) = self.guests.get(&IpAddr::from(to)).copied() else {
            return self.broke(
                Broken::Invariant,
                format!("a packet to {}, which nobody has", IpAddr::from(to)),
            );
        };
        let client = matches!(guest, Guest::Client(_));
        match (self.carry(client, false, &bytes, 16), guest) {
            (Some(arrives), _) => self.at(arrives, Event::Deliver(guest, bytes)),
            (None, Guest::Client(at)) => self.miss(at, &bytes),
            (None, Guest::Stranger(_)) => {}
        }
    }

    /// A packet to a client is lost. If it is a RST, the client may wait for what the server has forgotten.
    fn miss(&mut self, at: usize, bytes: &[u8]) {
        let mut segment = Segment::default();
        let parsed = codec::parse_into(bytes, Verify::Checksum, &mut segment);
        if parsed.is_ok() && segment.flags.has(Flags::RST) {
            self.clients[at].miss_reset(segment.dst_port);
        }
    }

    /// Counts a packet.
    fn note(&mut self, bytes: &[u8]) {
        self.packets += 1;
        let mut mix =
            |byte: u8| self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        bytes.iter().take(60).for_each(|byte| mix(*byte));
        self.now.as_nanos().to_le_bytes().into_iter().for_each(mix);
        if self.trail.keep > 0 {
            let mut segment = Segment::default();
            if let Ok(packet) = codec::parse_into(bytes, Verify::Checksum, &mut segment) {
                let (src, dst) = (packet.headers.src, packet.headers.dst);
                let line = format!(
                    "{src} > {dst} len {}: {}",
                    packet.payload.len(),
                    segment_line(&segment)
                );
                self.tell(&line);
            }
        }
    }

    fn tell(&mut self, line: &str) {
        let Trail { keep, lines } = &mut self.trail;
        if *keep > 0 {
            if lines.len() >= *keep {
                lines.pop_front();
            }
            lines.push_back(format!("{:>14.6} s  {line}", self.now.as_nanos() as f64 / 1e9));
        }
    }

    /// The server has accepted a connection: the next stream is its.
    fn on_accepted(&mut self, conn: ConnId, from: Option<IpAddr>) {
        let guest = from.and_then(|from| self.guests.get(&from));
        let Some(Guest::Client(at)) = guest.copied() else { return self.owners.push(None) };
        self.owners.push(Some(at));
        let engine = self.engine.as_ref();
        let ports = engine.and_then(|it| it.stack.endpoint.ports(conn)).unwrap_or_default();
        self.clients[at].accept(self.now, ports.first().map(|(.., theirs)| *theirs));
    }

    pub(super) fn hear(&mut self, event: &LogEvent) {
        match event {
            LogEvent::TurnedAway { count, .. } => self.told_away += count,
            LogEvent::Accepted { conn, from, .. } => self.on_accepted(*conn, *from),
            _ => {}
        }
        if self.trail.keep > 0 {
            self.tell(&event.to_string());
        }
    }
}
