//! Packets on their way: from the moment of sending to their arrival or loss.

use plait_base::{PathId, Time};
use plait_core::Carry;
use plait_link::DropCause;
use plait_sim::Direction;
use plait_wire::{Payload, Segment};
use std::collections::VecDeque;

/// Words of a packet: sent at us, ended at us, first byte, bytes, and [`flags`](Packets).
pub(crate) const WORDS: usize = 5;
/// Greatest number of packets of a run; later ones are not recorded.
const MAX_PACKETS: usize = 300_000;
/// Greatest number of packets that the data of an event is looked for in.
const MAX_SEARCHED_PACKETS: usize = 512;
/// Ended at, of a packet that is still on its way.
const ON_ITS_WAY: u32 = u32::MAX;

/// Bits of the flags: path 0 to 3, way 4 (1 with the data), carry 5 to 7, fate 8 to 11.
const WITH_DATA: u32 = 1 << 4;
const CARRY_SHIFT: u32 = 5;
const FATE_SHIFT: u32 = 8;
const DELIVERED: u32 = 1;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    seq: u32,
    ack: u32,
    len: u32,
    /// Index among all packets.
    packet: usize,
}

/// The packets of a run.
#[derive(Debug)]
pub(crate) struct Packets {
    pub(crate) words: Vec<u32>,
    /// Packets on their way, for each path and direction.
    pending: Vec<[VecDeque<Pending>; 2]>,
    /// Time of the first packet that was not recorded.
    pub(crate) full_at: Option<Time>,
}

pub(crate) fn micros(at: Time) -> u32 {
    u32::try_from(at.since(Time::ZERO).as_micros()).unwrap_or(ON_ITS_WAY - 1)
}

pub(crate) fn word(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Packets {
    pub(crate) fn new(paths: usize) -> Packets {
        Packets {
            words: Vec::new(),
            pending: (0..paths).map(|_| Default::default()).collect(),
            full_at: None,
        }
    }

    fn len(&self) -> usize {
        self.words.len() / WORDS
    }

    /// Records a packet that was sent.
    pub(crate) fn sent(&mut self, now: Time, path: PathId, with_data: bool, segment: &Segment) {
        if self.len() >= MAX_PACKETS {
            self.full_at = self.full_at.or(Some(now));
            return;
        }
        let packet = self.len();
        let Some(ways) = self.pending.get_mut(path.index()) else { return };
        let len = segment.payload.len();
        ways[usize::from(with_data)].push_back(Pending {
            seq: segment.seq,
            ack: segment.ack,
            len,
            packet,
        });
        let start = match segment.payload {
            Payload::Pattern { offset, .. } => word(offset),
            _ => 0,
        };
        let way = if with_data { WITH_DATA } else { 0 };
        self.words.extend([micros(now), ON_ITS_WAY, start, len, path.0 & 0xf | way]);
    }

    /// Records the end of a packet. `lost` is the cause if it did not arrive.
    pub(crate) fn ended(
        &mut self,
        now: Time,
        path: PathId,
        with_data: bool,
        segment: &Segment,
        lost: Option<DropCause>,
    ) {
        let Some(ways) = self.pending.get_mut(path.index()) else { return };
        let list = &mut ways[usize::from(with_data)];
        let is_it = |it: &Pending| {
            it.seq == segment.seq && it.ack == segment.ack && it.len == segment.payload.len()
        };
        // A packet is dropped when it is offered, or it arrives in the order of sending, with few exceptions.
        let at = match lost {
            Some(_) => list.iter().rposition(is_it),
            None => list.iter().position(is_it),
        };
        let Some(found) = at.and_then(|at| list.remove(at)) else { return };
        let first = found.packet * WORDS;
        self.words[first + 1] = micros(now);
        self.words[first + 4] |= lost.map_or(DELIVERED, fate) << FATE_SHIFT;
    }

    /// Records why the data of a packet was sent. `path` is the path of the subflow.
    pub(crate) fn carries(&mut self, path: PathId, start: u64, carry: Carry) {
        let code = match carry {
            Carry::New => return,
            Carry::Retransmission | Carry::TailProbe => 1,
            Carry::Reinjection | Carry::Opportunistic => 2,
            Carry::Redundant => 3,
        };
        let mine = (path.0 & 0xf) | WITH_DATA;
        let recent = self.words.rchunks_exact_mut(WORDS).take(MAX_SEARCHED_PACKETS);
        let mut same = recent.filter(|it| it[4] & 0x1f == mine && it[2] == word(start));
        if let Some(packet) = same.next() {
            packet[4] |= code << CARRY_SHIFT;
        }
    }
}

/// Returns the code of a loss.
fn fate(cause: DropCause) -> u32 {
    match cause {
        DropCause::Loss => 2,
        DropCause::Queue => 3,
        DropCause::Aqm => 4,
        DropCause::Outage => 5,
        DropCause::Mtu => 6,
        DropCause::Corrupt => 7,
    }
}

/// Returns true if the direction is that of the data.
pub(crate) fn with_data(way: Direction, sends_down: bool) -> bool {
    (way == Direction::Down) == sends_down
}
