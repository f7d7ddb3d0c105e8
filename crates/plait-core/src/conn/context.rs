//! What the connections of an endpoint share, and what the parts of one get with every call.

use crate::config::Config;
use crate::data::memory_limit::MemoryLimit;
use crate::endpoint::directory::{Directory, FIRST_PORT};
use crate::event::{Detail, Event};
use crate::stats::{Overflows, Sizes};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use plait_base::{ConnId, Time};
use plait_sched::Outcome;
use plait_wire::{Key, Payload, Segment};

/// Source of random numbers: the operating system's for live endpoints, a seeded stream for
/// simulated ones.
pub trait Entropy: Send {
    /// 64 random bits.
    fn bits(&mut self) -> u64;
}

/// Where events go. With nobody listening an event costs one comparison.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    pub(crate) detail: Detail,
    /// The connection that is speaking.
    pub(crate) speaker: ConnId,
    pub(crate) events: Vec<(ConnId, Event)>,
}

impl EventLog {
    /// Room for what happens at one instant, nearly always: a hole that is filled lets hundreds of
    /// runs go.
    const STRIDE: usize = 1_024;

    pub(crate) fn emit(&mut self, event: Event) {
        let wanted = match self.detail {
            Detail::Nothing => false,
            Detail::Measures => event.is_measured(),
            Detail::Everything => true,
        };
        if wanted {
            if self.events.len() == self.events.capacity() {
                self.events.reserve(EventLog::STRIDE.max(3 * self.events.len()));
            }
            self.events.push((self.speaker, event));
        }
    }
}

/// What every connection of an endpoint draws from.
pub(crate) struct Shared {
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) log: EventLog,
    /// Port for the next subflow that this end opens.
    next_port: u16,
    /// How far apart ports may be.
    port_stride: u16,
    spare: SpareSegments,
    /// What goes with the decision that is being made.
    pub(crate) outcome: Outcome,
    /// Invariants are verified.
    pub(crate) checked: bool,
    pub(crate) directory: Directory,
    /// The tokens of all connections.
    pub(crate) tokens: BTreeMap<u32, ConnId>,
    /// What each connection may keep of either direction, where memory is short.
    pub(crate) memory_limit: Option<MemoryLimit>,
    pub(crate) sizes: Sizes,
    pub(crate) overflows: Overflows,
}

impl Shared {
    pub(crate) fn new(entropy: Box<dyn Entropy>) -> Shared {
        Shared {
            entropy,
            log: EventLog::default(),
            next_port: FIRST_PORT,
            port_stride: 1,
            spare: SpareSegments::default(),
            outcome: Outcome::default(),
            checked: false,
            directory: Directory::default(),
            tokens: BTreeMap::new(),
            memory_limit: None,
            sizes: Sizes::default(),
            overflows: Overflows::default(),
        }
    }

    /// Ports begin anywhere, and are up to so many apart.
    pub(crate) fn draw_ports(&mut self) {
        self.port_stride = 8;
        self.next_port = FIRST_PORT | self.entropy.bits() as u16;
    }

    /// What the parts of the connection `speaker` get with a call.
    pub(crate) fn context(&mut self, now: Time, speaker: ConnId) -> Context<'_> {
        self.log.speaker = speaker;
        Context { now, shared: self }
    }

    /// Keeps a segment that is not needed any more for one to come.
    pub(crate) fn recycle(&mut self, segment: Box<Segment>) {
        self.spare.keep(segment);
    }

    /// Gives memory back that was not used since the last call.
    pub(crate) fn shrink_idle(&mut self) {
        self.spare.shrink_idle();
    }
}

/// What the parts get with every call: the time, and all that is shared.
pub(crate) struct Context<'a> {
    pub(crate) now: Time,
    shared: &'a mut Shared,
}

impl Deref for Context<'_> {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        self.shared
    }
}

impl DerefMut for Context<'_> {
    fn deref_mut(&mut self) -> &mut Shared {
        self.shared
    }
}

/// Segments that were delivered, for those to come: the steady state allocates nothing.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes are what is kept")]
pub(crate) struct SpareSegments {
    spare: Vec<Box<Segment>>,
    /// How many were made, and how often one was given back.
    made: usize,
    kept: usize,
    /// Segments that were taken and have not been given back.
    out: usize,
    /// The least number of spare segments since the last rest: so many were not needed.
    unused: usize,
}

impl SpareSegments {
    /// Windows of this many segments turn over without an allocation.
    const MAX_SPARE_SEGMENTS: usize = 4_096;

    /// How many are made at least for a driver that gives them back.
    const BATCH: usize = 64;

    /// Room for the segments of a window or two.
    const STRIDE: usize = 256;

    /// Keeps a segment; what it refers to is let go. Segments that were made elsewhere, as those of handshakes
    /// are, come back as well. No more are kept than were taken, so that they do not fill the pool.
    #[inline(always)]
    pub(crate) fn keep(&mut self, mut segment: Box<Segment>) {
        self.kept = self.kept.saturating_add(1);
        let Some(out) = self.out.checked_sub(1) else { return };
        self.out = out;
        if self.spare.len() < SpareSegments::MAX_SPARE_SEGMENTS {
            if matches!(segment.payload, Payload::Bytes { .. }) || segment.options.mptcp.is_some() {
                SpareSegments::let_go(&mut segment);
            }
            segment.options.clear_inline();
            if self.spare.len() == self.spare.capacity() {
                self.spare.reserve(SpareSegments::STRIDE.max(3 * self.spare.len()));
            }
            self.spare.push(segment);
        }
    }

    /// Lets go what a segment refers to.
    #[cold]
    fn let_go(segment: &mut Segment) {
        segment.payload = Payload::Empty;
        segment.options.mptcp = None;
    }

    /// A segment that was kept. Where there is none, three times as many are made as there are
    /// already: a window that grows a little later on finds some. A driver that gives none back
    /// gets one.
    fn take(&mut self) -> Box<Segment> {
        let segment = self.spare.pop().unwrap_or_else(|| self.make());
        self.out = self.out.saturating_add(1);
        self.unused = self.unused.min(self.spare.len());
        segment
    }

    /// Frees the segments that nobody has taken since the last rest. After an idle time none is left:
    /// the few that would stay lie anywhere, and keep the allocator from giving back what is below them.
    fn shrink_idle(&mut self) {
        let surplus = self.unused.min(self.spare.len());
        self.spare.truncate(self.spare.len() - surplus);
        self.made = self.made.saturating_sub(surplus);
        if surplus > 0 {
            self.spare.shrink_to(2 * self.spare.len());
        }
        self.unused = self.spare.len();
    }

    #[cold]
    fn make(&mut self) -> Box<Segment> {
        let fewest = if self.kept == 0 { 1 } else { SpareSegments::BATCH };
        let more = (3 * self.made.min(self.kept)).clamp(fewest, SpareSegments::MAX_SPARE_SEGMENTS);
        self.made = self.made.saturating_add(more);
        // All of them may come back before one is asked for, and those of handshakes besides.
        self.spare
            .reserve((self.made + SpareSegments::BATCH).min(SpareSegments::MAX_SPARE_SEGMENTS));
        self.spare.extend((1..more).map(|_| Box::default()));
        Box::default()
    }
}

impl Context<'_> {
    /// A segment without options. Its header and its payload are not blank: every field is to be set.
    pub(crate) fn blank_segment(&mut self) -> Box<Segment> {
        self.spare.take()
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.log.emit(event);
    }

    /// An initial sequence number.
    pub(crate) fn first_sequence(&mut self, config: &Config) -> u32 {
        let drawn = self.entropy.bits() as u32;
        config.offsets.isn.unwrap_or(drawn)
    }

    /// A key whose token no connection has (RFC 8684 section 3.1).
    pub(crate) fn unique_key(&mut self) -> Key {
        loop {
            let key = Key(self.entropy.bits());
            if !self.tokens.contains_key(&key.token()) {
                return key;
            }
        }
    }

    /// An ephemeral port: the next one (RFC 6335 section 6), or where ports are drawn one not far
    /// behind, so that those in use do not come again soon (RFC 6056 section 3.3.5).
    pub(crate) fn take_port(&mut self) -> u16 {
        if self.port_stride > 1 {
            let skipped = self.entropy.bits() as u16 % self.port_stride;
            self.next_port = self.next_port.wrapping_add(skipped) | FIRST_PORT;
        }
        let port = self.next_port;
        self.next_port = if port == u16::MAX { FIRST_PORT } else { port + 1 };
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many segments at a time, and gives them back.
    fn burst(spares: &mut SpareSegments, count: usize) {
        let taken: Vec<_> = (0..count).map(|_| spares.take()).collect();
        taken.into_iter().for_each(|it| spares.keep(it));
    }

    #[test]
    fn segments_that_nobody_takes_are_freed() {
        let mut spares = SpareSegments::default();
        burst(&mut spares, 3_000);
        spares.shrink_idle();
        assert!(spares.spare.len() >= 3_000);
        // 500 are in use at a time. They stay, and nothing is allocated for them.
        for _ in 0..3 {
            burst(&mut spares, 500);
            spares.shrink_idle();
        }
        let (len, capacity) = (spares.spare.len(), spares.spare.capacity());
        assert!((500..=564).contains(&len) && capacity <= 4 * len, "{len}, {capacity}");
        burst(&mut spares, len);
        assert_eq!((spares.spare.len(), spares.spare.capacity()), (len, capacity));
        // Segments that were made elsewhere do not add to them.
        (0..1_000).for_each(|_| spares.keep(Box::default()));
        assert_eq!(spares.spare.len(), len);
        // Once nobody takes any, none stays.
        spares.shrink_idle();
        spares.shrink_idle();
        assert_eq!((spares.spare.len(), spares.spare.capacity()), (0, 0));
    }
}
