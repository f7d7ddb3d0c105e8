//! A subflow: its ends, handshake and both directions.

use crate::half::{Half, Scale};
use crate::packet::Seen;
use plait_wire::{Flags, Mptcp, ResetReason};
use std::net::SocketAddr;

/// A capture is at an end if at most this share of the handshake's RTT is between them: one in this many.
const AT_END: i64 = 4;

/// Where the capture was made, for one direction of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vantage {
    Sender,
    Receiver,
    Between,
    Unknown,
}

/// A packet as evidence.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Mark {
    pub(crate) file: usize,
    /// Its number in the file, from 1.
    pub(crate) number: u64,
    pub(crate) at_ns: i64,
}

impl Mark {
    pub(crate) const fn of(seen: &Seen) -> Mark {
        Mark { file: seen.file, number: seen.number, at_ns: seen.at_ns }
    }
}

/// The three segments of a handshake.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Handshake {
    /// The last SYN before the first SYN/ACK.
    pub(crate) syn: Option<Mark>,
    pub(crate) syns: u32,
    /// The first SYN/ACK.
    pub(crate) answered: Option<Mark>,
    /// The last SYN/ACK before the third segment.
    pub(crate) syn_ack: Option<Mark>,
    pub(crate) third: Option<Mark>,
}

/// The agreement on MPTCP of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Agreed {
    /// The capture has a SYN with all its options, and a SYN/ACK with them.
    pub(crate) syn_is_whole: bool,
    pub(crate) answer_is_whole: bool,
    /// The SYN asked for MPTCP (MP_CAPABLE or MP_JOIN).
    pub(crate) asked: bool,
    /// The SYN/ACK agreed.
    pub(crate) answered: bool,
    /// Its SYN has an MP_JOIN.
    pub(crate) join: bool,
    pub(crate) backup: bool,
    /// A later segment of the opener has an MPTCP option.
    pub(crate) confirmed: bool,
    /// The other end has answered the third segment.
    pub(crate) accepted: bool,
    /// A segment after the handshake lacks the option that it needs.
    pub(crate) fell_back: bool,
    /// Version of an MP_CAPABLE that is not version 1.
    pub(crate) version: Option<u8>,
}

/// The first RST of a subflow, or an MP_FASTCLOSE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    /// The side that sent it.
    pub(crate) side: usize,
    pub(crate) mark: Mark,
    /// The reason of its MP_TCPRST.
    pub(crate) reason: Option<ResetReason>,
    /// True if it has an MP_FASTCLOSE, which ends the connection.
    pub(crate) is_of_connection: bool,
    /// Each side had ended its data and had all of it acknowledged.
    pub(crate) was_complete: [bool; 2],
}

/// A subflow of a connection. Side 0 is the client of the connection, and side 1 its server.
#[derive(Clone, Debug)]
pub(crate) struct Subflow {
    pub(crate) ends: [SocketAddr; 2],
    /// The side that sent the SYN.
    pub(crate) opener: usize,
    /// The file that counts, of each side. Packets in other files are copies, until it ends.
    pub(crate) files: [Option<usize>; 2],
    pub(crate) interface: u32,
    pub(crate) handshake: Handshake,
    pub(crate) agreed: Agreed,
    /// Data of each side.
    pub(crate) halves: [Half; 2],
    /// Packets of each side.
    pub(crate) packets: [u64; 2],
    pub(crate) first: Mark,
    pub(crate) last: Mark,
    pub(crate) reset: Option<Reset>,
    /// Packets whose options do not fit into the snap length.
    pub(crate) cut_packets: u64,
}

impl Subflow {
    pub(crate) fn new(ends: [SocketAddr; 2], opener: usize, seen: &Seen) -> Subflow {
        let mark = Mark::of(seen);
        Subflow {
            ends,
            opener,
            files: [None; 2],
            interface: seen.interface,
            handshake: Handshake::default(),
            agreed: Agreed::default(),
            halves: [Half::default(), Half::default()],
            packets: [0; 2],
            first: mark,
            last: mark,
            reset: None,
            cut_packets: 0,
        }
    }

    /// Returns the side that sent a segment.
    pub(crate) fn side(&self, seen: &Seen) -> usize {
        usize::from(seen.src != self.ends[0])
    }

    /// Returns true if a SYN without ACK on the ports of this subflow begins another one. A repeated SYN does not.
    pub(crate) fn is_replaced_by(&self, syn: &Seen) -> bool {
        let half = &self.halves[self.side(syn)];
        // Without the first SYN, the data shows that the subflow began before.
        let has_data = || self.halves.iter().any(|half| half.seen.next() > 1);
        half.is_isn(syn.segment.seq).map_or_else(has_data, |same| !same)
    }

    /// Returns true if a segment may follow the segments before it: it has data that is not acknowledged, or the latest
    /// acknowledgement, or it is the first FIN or reset.
    pub(crate) fn is_current(&self, seen: &Seen) -> bool {
        let side = self.side(seen);
        let (own, other) = (&self.halves[side], &self.halves[1 - side]);
        let flags = seen.segment.flags;
        let is_first_reset = self.reset.is_none() && reset(side, seen).is_some();
        let is_first_fin = flags.has(Flags::FIN) && !own.has_ended();
        is_first_reset
            || is_first_fin
            || match seen.payload > 0 || !flags.has(Flags::ACK) {
                true => own.is_unacked(seen),
                false => other.is_acked_again(seen.segment.ack),
            }
    }

    /// Takes note of the handshake and of the options that MPTCP needs.
    pub(crate) fn on_flags(&mut self, side: usize, seen: &Seen) {
        self.packets[side] += 1;
        self.cut_packets += u64::from(seen.cut);
        self.last = Mark::of(seen);
        let flags = seen.segment.flags;
        let (syn, ack) = (flags.has(Flags::SYN), flags.has(Flags::ACK));
        let handshake = &mut self.handshake;
        match (syn, ack, side == self.opener) {
            (true, false, true) => {
                if handshake.answered.is_none() {
                    handshake.syn = Some(Mark::of(seen));
                }
                handshake.syns += 1;
            }
            (true, true, false) if handshake.third.is_none() => {
                handshake.answered.get_or_insert(Mark::of(seen));
                handshake.syn_ack = Some(Mark::of(seen));
            }
            (false, true, true) if handshake.syn_ack.is_some() && handshake.third.is_none() => {
                handshake.third = Some(Mark::of(seen));
            }
            _ => {}
        }
        if self.reset.is_none() {
            self.reset = reset(side, seen);
        }
        self.on_options(side, seen, (syn, ack));
    }

    fn on_options(&mut self, side: usize, seen: &Seen, (syn, ack): (bool, bool)) {
        let options = &seen.segment.options;
        let all = options.mptcp.as_deref().map(Mptcp::all).unwrap_or_default();
        let agreed = &mut self.agreed;
        agreed.version = agreed.version.or(seen.version.filter(|_| syn));
        agreed.syn_is_whole |= syn && !ack && !seen.cut;
        agreed.answer_is_whole |= syn && ack && !seen.cut;
        for option in all {
            match option {
                Mptcp::JoinSyn(join) => {
                    (agreed.asked, agreed.join, agreed.backup) = (true, true, join.backup);
                }
                Mptcp::Capable(_) if syn && !ack => agreed.asked = true,
                Mptcp::JoinSynAck(_) | Mptcp::Capable(_) if syn => agreed.answered = true,
                Mptcp::Prio { backup } => agreed.backup = *backup,
                _ => {}
            }
        }
        if syn || seen.segment.flags.has(Flags::RST) {
            return;
        }
        if side != self.opener {
            agreed.accepted = true;
            return;
        }
        if options.dss.is_some() || options.mptcp.is_some() {
            agreed.confirmed = true;
        } else if agreed.answered && !agreed.confirmed && !seen.cut {
            agreed.fell_back = true;
        }
    }

    /// Returns true if data of MPTCP may be on it.
    pub(crate) const fn is_multipath(&self) -> bool {
        let Agreed { answered, confirmed, fell_back, .. } = self.agreed;
        (answered || confirmed) && !fell_back
    }

    /// Returns true if MPTCP may be on it although the capture shows none of its options, because they were cut.
    pub(crate) const fn hides_options(&self) -> bool {
        let agreed = self.agreed;
        let is_plain =
            (agreed.syn_is_whole && !agreed.asked) || (agreed.answer_is_whole && !agreed.answered);
        self.cut_packets > 0 && !is_plain && !self.is_multipath()
    }

    /// Returns the shift of a side's windows; none if the capture does not show it.
    pub(crate) fn window_shift(&self, side: usize) -> Option<u8> {
        match (self.halves[side].scale, self.halves[1 - side].scale) {
            (Some(Scale::Absent), _) | (_, Some(Scale::Absent)) => Some(0),
            (Some(Scale::Shift(shift)), _) => Some(shift),
            (None, _) => None,
        }
    }

    /// Returns the delay in nanoseconds from the capture to a side and back, by the handshake.
    pub(crate) fn leg(&self, side: usize) -> Option<i64> {
        let Handshake { syn, answered, syn_ack, third, .. } = self.handshake;
        let (from, to) = if side == self.opener { (syn_ack?, third?) } else { (syn?, answered?) };
        Some((to.at_ns - from.at_ns).max(0))
    }

    /// Returns the side that sent all packets of the capture; none if both sides sent some.
    pub(crate) const fn only_from(&self) -> Option<usize> {
        match self.packets {
            [_, 0] => Some(0),
            [0, _] => Some(1),
            _ => None,
        }
    }

    /// Returns the RTT of the handshake in nanoseconds.
    pub(crate) fn handshake_rtt(&self) -> Option<i64> {
        let both = self.leg(0)? + self.leg(1)?;
        (both > 0).then_some(both)
    }

    /// Returns the place of the capture for the data of `side`.
    pub(crate) fn vantage(&self, side: usize) -> Vantage {
        match (self.leg(side), self.leg(1 - side)) {
            (Some(0), Some(0)) => Vantage::Unknown,
            (Some(own), Some(other)) if own * AT_END <= own + other => Vantage::Sender,
            (Some(own), Some(other)) if other * AT_END <= own + other => Vantage::Receiver,
            (Some(_), Some(_)) => Vantage::Between,
            _ => Vantage::Unknown,
        }
    }
}

/// Returns the reset that a segment of a side is, if it is one.
fn reset(side: usize, seen: &Seen) -> Option<Reset> {
    let options = seen.segment.options.mptcp.as_deref().map(Mptcp::all).unwrap_or_default();
    let reason = options.iter().find_map(|option| match option {
        Mptcp::Reset { reason, .. } => Some(*reason),
        _ => None,
    });
    let is_of_connection = options.iter().any(|option| matches!(option, Mptcp::FastClose(_)));
    let (mark, was_complete) = (Mark::of(seen), [false; 2]);
    let is_reset = is_of_connection || seen.segment.flags.has(Flags::RST);
    is_reset.then_some(Reset { side, mark, reason, is_of_connection, was_complete })
}
