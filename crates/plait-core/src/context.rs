//! State that all connections of an endpoint share, and the context of each call.

use crate::config::{Config, Dial, MemoryLimit, PathConfig};
use crate::directory::{Directory, FIRST_PORT};
use crate::event::{Detail, Event};
use crate::path_memory::{PathKey, PathMemory, PathRecord};
use crate::prices::{DialRank, PathPrices, Prices};
use crate::spec::ConnectionSpec;
use crate::stats::Counters;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use plait_base::{ConnId, PathId, ServerAddress, Time};
use plait_sched::Outcome;
use plait_wire::{Key, Payload, Segment, WireSeq};

/// Source of random numbers: the operating system's for live endpoints, a seeded stream for
/// simulated ones.
pub trait Entropy: Send {
    /// Returns 64 random bits.
    fn bits(&mut self) -> u64;
}

/// The recorded events. If recording is off, an event costs one comparison.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    pub(crate) detail: Detail,
    /// The connection that emits events now.
    pub(crate) speaker: ConnId,
    pub(crate) events: Vec<(ConnId, Event)>,
}

impl EventLog {
    /// Capacity that is nearly always enough for one instant: a filled hole releases hundreds of
    /// runs.
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

/// State that all connections of an endpoint share.
pub(crate) struct Shared {
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) log: EventLog,
    /// Port for the next subflow that this end opens.
    next_port: u16,
    /// Largest distance between consecutive ports.
    port_stride: u16,
    spare: SpareSegments,
    /// Result of the current scheduler decision.
    pub(crate) outcome: Outcome,
    /// Invariants are checked.
    pub(crate) checked: bool,
    pub(crate) directory: Directory,
    /// The tokens of all connections.
    pub(crate) tokens: BTreeMap<u32, ConnId>,
    /// Limit of each connection's data per direction, if memory is short.
    pub(crate) memory_limit: Option<MemoryLimit>,
    pub(crate) counters: Counters,
    pub(crate) prices: PathPrices,
    /// Earlier measurements of paths, if they are kept.
    pub(crate) path_memory: Option<Box<PathMemory>>,
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
            counters: Counters::default(),
            prices: PathPrices::default(),
            path_memory: None,
        }
    }

    /// Draws ports at random: the first one anywhere, later ones at most 8 apart.
    pub(crate) fn draw_ports(&mut self) {
        self.port_stride = 8;
        self.next_port = FIRST_PORT | self.entropy.bits() as u16;
    }

    /// Returns the path that a connection begins on: one with the least cost, if its quota has room for a
    /// full segment. Of equal ones, this is the path that the memory prefers, or the first one. A backup
    /// takes the place of the first path only if all other quotas are used up.
    pub(crate) fn first_path(&mut self, now: Time, spec: &ConnectionSpec) -> Option<PathId> {
        let Shared { prices, path_memory, .. } = self;
        let (named, segment) = (spec.paths.first()?.path, spec.config.segment_payload());
        let order = |it: &PathConfig| {
            let rank = prices.dial_rank(it, segment);
            (rank.is_spent(), it.backup && it.path != named, rank)
        };
        let least = spec.paths.iter().map(order).min()?;
        let mut cheapest = spec.paths.iter().filter(|it| order(it) == least);
        match (path_memory, spec.config.joins.dial) {
            (Some(memory), Dial::Any) => memory.first_path(now, cheapest),
            _ => cheapest.next().map(|it| it.path),
        }
    }

    /// Notes the address of the client that `path` stands for, if paths are remembered.
    pub(crate) fn name_client(&mut self, path: PathId, source: Option<IpAddr>) {
        if let Some(memory) = &mut self.path_memory
            && let Some(source) = source
        {
            memory.name_client(path, source);
        }
    }

    /// Returns the context of a call for the connection `speaker`.
    pub(crate) fn context(&mut self, now: Time, speaker: ConnId) -> Context<'_> {
        self.log.speaker = speaker;
        Context { now, shared: self }
    }

    /// Keeps an unused segment for reuse.
    pub(crate) fn recycle(&mut self, segment: Box<Segment>) {
        self.spare.keep(segment);
    }

    /// Frees memory that was not used since the last call.
    pub(crate) fn shrink_idle(&mut self) {
        self.spare.shrink_idle();
    }
}

/// The context of each call: the time and the shared state.
pub(crate) struct Context<'a> {
    pub(crate) now: Time,
    shared: &'a mut Shared,
}

/// Delivered segments for reuse, so that the steady state allocates nothing.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes are what is kept")]
pub(crate) struct SpareSegments {
    spare: Vec<Box<Segment>>,
    /// Segments allocated, and segments given back.
    made: usize,
    kept: usize,
    /// Segments taken and not given back.
    out: usize,
    /// Smallest number of spare segments since the last call of `shrink_idle`: these were not
    /// needed.
    unused: usize,
}

impl SpareSegments {
    /// A window of up to this many segments is reused without an allocation.
    const MAX_SPARE_SEGMENTS: usize = 4_096;

    /// Least number of segments allocated at once for a driver that gives them back.
    const BATCH: usize = 64;

    /// Capacity for the segments of one or two windows.
    const STRIDE: usize = 256;

    /// Keeps a segment and drops its references. Segments allocated elsewhere, such as handshake
    /// segments, come back as well. The pool keeps at most as many as were taken from it.
    #[inline(always)]
    pub(crate) fn keep(&mut self, mut segment: Box<Segment>) {
        let spare = &self.spare;
        let full =
            spare.len() == spare.capacity() || spare.len() >= SpareSegments::MAX_SPARE_SEGMENTS;
        if self.out == 0 || full || SpareSegments::refers(&segment) {
            return self.keep_if_wanted(segment);
        }
        self.kept += 1;
        self.out -= 1;
        segment.options.clear_inline();
        self.spare.push(segment);
    }

    /// Returns true if a segment has references.
    fn refers(segment: &Segment) -> bool {
        matches!(segment.payload, Payload::Bytes { .. }) || segment.options.mptcp.is_some()
    }

    /// Keeps a segment that has references, or for which there may be no place.
    #[cold]
    #[inline(never)]
    fn keep_if_wanted(&mut self, mut segment: Box<Segment>) {
        self.kept += 1;
        let Some(out) = self.out.checked_sub(1) else { return };
        self.out = out;
        if self.spare.len() < SpareSegments::MAX_SPARE_SEGMENTS {
            segment.payload = Payload::Empty;
            segment.options.clear();
            if self.spare.len() == self.spare.capacity() {
                self.spare.reserve(SpareSegments::STRIDE.max(3 * self.spare.len()));
            }
            self.spare.push(segment);
        }
    }

    /// Returns a spare segment. If there is none, allocates three times as many as exist already,
    /// so that a growing window finds some. A driver that gives none back gets one.
    fn take(&mut self) -> Box<Segment> {
        let segment = self.spare.pop().unwrap_or_else(|| self.make());
        self.out += 1;
        self.unused = self.unused.min(self.spare.len());
        segment
    }

    /// Frees the segments that were not needed since the last call. After an idle time all are
    /// freed: a few remaining ones could keep the allocator from releasing the memory around them.
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
        // All of them may come back before the next is taken, and handshake segments too.
        self.spare
            .reserve((self.made + SpareSegments::BATCH).min(SpareSegments::MAX_SPARE_SEGMENTS));
        self.spare.extend((1..more).map(|_| Box::default()));
        Box::default()
    }
}

impl Context<'_> {
    /// Returns the same context for a shorter time.
    pub(crate) fn again(&mut self) -> Context<'_> {
        Context { now: self.now, shared: self.shared }
    }

    /// Returns a segment without options. The caller must set every field of its header and its
    /// payload.
    pub(crate) fn blank_segment(&mut self) -> Box<Segment> {
        self.shared.spare.take()
    }

    /// Returns the prices of a new connection on these paths.
    pub(crate) fn prices(&mut self, paths: &[PathConfig]) -> Prices {
        self.shared.prices.of(paths)
    }

    /// Returns the rank of a path of `spec` to dial.
    pub(crate) fn dial_rank(&self, spec: &ConnectionSpec, path: &PathConfig) -> DialRank {
        self.shared.prices.dial_rank(path, spec.config.segment_payload())
    }

    /// Gives `prices` the price that the endpoint's user has set for a path.
    pub(crate) fn price(&self, prices: &mut Prices, path: PathId) {
        if let Some(cost) = self.shared.prices.cost(path) {
            prices.set_cost(path, cost);
        }
        prices.set_quota(path, self.shared.prices.quota(path));
    }

    /// Emits an event of the connection.
    pub(crate) fn emit(&mut self, event: Event) {
        self.shared.log.emit(event);
    }

    /// Returns true if events are recorded with every detail.
    pub(crate) fn has_every_detail(&self) -> bool {
        self.shared.log.detail == Detail::Everything
    }

    /// Returns the connection of this call.
    pub(crate) fn conn(&self) -> ConnId {
        self.shared.log.speaker
    }

    /// Returns true if invariants are checked.
    #[cfg(debug_assertions)]
    pub(crate) fn is_checked(&self) -> bool {
        self.shared.checked
    }

    /// Returns the result of the scheduler's current decision.
    pub(crate) fn outcome(&mut self) -> &mut Outcome {
        &mut self.shared.outcome
    }

    /// Returns the limit of the connection's data per direction, if memory is short.
    pub(crate) fn memory_limit(&self) -> Option<MemoryLimit> {
        self.shared.memory_limit
    }

    /// Returns the counters of the endpoint.
    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.shared.counters
    }

    /// Returns the path memory with the key of a path, if there is a memory and the path has a name.
    pub(crate) fn memory_of(
        &mut self,
        path: PathId,
        server: ServerAddress,
    ) -> Option<(&mut PathMemory, PathKey)> {
        let memory = self.shared.path_memory.as_deref_mut()?;
        let key = memory.key(path, self.shared.directory.address(server))?;
        Some((memory, key))
    }

    /// Returns the remembered values of a path, if there are any.
    pub(crate) fn recall(&mut self, path: PathId, server: ServerAddress) -> Option<PathRecord> {
        let now = self.now;
        let (memory, key) = self.memory_of(path, server)?;
        memory.recall(now, key)
    }

    /// Returns the numbers of addresses.
    pub(crate) fn directory(&mut self) -> &mut Directory {
        &mut self.shared.directory
    }

    /// Returns 64 random bits.
    pub(crate) fn draw(&mut self) -> u64 {
        self.shared.entropy.bits()
    }

    /// Returns an initial sequence number.
    pub(crate) fn first_sequence(&mut self, config: &Config) -> WireSeq {
        let drawn = WireSeq(self.draw() as u32);
        config.start_offsets().isn.unwrap_or(drawn)
    }

    /// Returns a key whose token no connection has (RFC 8684 section 3.1).
    pub(crate) fn unique_key(&mut self) -> Key {
        loop {
            let key = Key(self.draw());
            if self.is_unique(key) {
                return key;
            }
        }
    }

    /// Returns true if no connection has the token of `key`.
    pub(crate) fn is_unique(&self, key: Key) -> bool {
        !self.shared.tokens.contains_key(&key.token())
    }

    /// Returns an ephemeral port: the next one (RFC 6335 section 6), or a randomly chosen nearby
    /// one if ports are drawn. Recently used ports are not reused soon (RFC 6056 section 3.3.5).
    pub(crate) fn take_port(&mut self) -> u16 {
        let Shared { entropy, next_port, port_stride, .. } = &mut *self.shared;
        if *port_stride > 1 {
            let skipped = entropy.bits() as u16 % *port_stride;
            *next_port = next_port.wrapping_add(skipped) | FIRST_PORT;
        }
        let port = *next_port;
        *next_port = if port == u16::MAX { FIRST_PORT } else { port + 1 };
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `count` segments at a time, and gives them back.
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
        // 500 are in use at a time. They stay, and no further ones are allocated.
        for _ in 0..3 {
            burst(&mut spares, 500);
            spares.shrink_idle();
        }
        let (len, capacity) = (spares.spare.len(), spares.spare.capacity());
        assert!((500..=564).contains(&len) && capacity <= 4 * len, "{len}, {capacity}");
        burst(&mut spares, len);
        assert_eq!((spares.spare.len(), spares.spare.capacity()), (len, capacity));
        // Segments allocated elsewhere do not add to them.
        (0..1_000).for_each(|_| spares.keep(Box::default()));
        assert_eq!(spares.spare.len(), len);
        // When no segment is taken any more, all are freed.
        spares.shrink_idle();
        spares.shrink_idle();
        assert_eq!((spares.spare.len(), spares.spare.capacity()), (0, 0));
    }
}
