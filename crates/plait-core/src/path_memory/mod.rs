//! The path memory of an endpoint: measurements of earlier subflows, by the addresses of both ends (RFC
//! 9040 section 6, "Temporal Sharing"). Linux has the same in `tcp_metrics`.
//!
//! A subflow writes its values when it ends, and a long one every few seconds. A new subflow reads
//! them when its handshake ends. Nothing happens per packet.

mod key;
mod record;
mod table;

pub use key::{PathKey, PathName};
pub use record::PathRecord;
use record::Received;
pub(crate) use record::{PathSample, shows_queue};
pub use table::PathEntry;

use crate::config::PathConfig;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use plait_base::{ConnId, PathId, Span, SubflowId, Time};
use table::Table;

/// Paths with a name before those that are not in use lose theirs. Afterwards they do each time
/// the list has doubled.
const MIN_NAMES: usize = 1_024;
/// Bytes of the small and of the large transfer for which the first path is chosen, because the
/// size of the coming one is not known.
const CHOICE_BYTES: [u64; 2] = [64 << 10, 1 << 20];
/// Percent of the time on the first path that both transfers together may take on another one, if
/// the connection is to begin there.
const CHOICE_PERCENT: u64 = 90;
/// Bytes that must have arrived for a rate of arrivals.
const MIN_RECEIVED_BYTES: u64 = 16 << 10;

/// Settings of a path memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySettings {
    /// Largest number of entries. Beyond it, the one that was used least recently is dropped.
    pub entries: usize,
    /// Age beyond which an entry is not used.
    pub lifetime: Span,
    /// The address that clients dial, on an end that listens.
    pub own: Option<IpAddr>,
    /// Subflows begin with the remembered slow start threshold. Linux has stored none by default
    /// since 5.6 (`net.ipv4.tcp_no_ssthresh_metrics_save`).
    pub ssthresh: bool,
}

impl MemorySettings {
    /// Default of [`MemorySettings::entries`].
    pub const ENTRIES: usize = 1_024;
    /// Default of [`MemorySettings::lifetime`]: `TCP_METRICS_TIMEOUT` of Linux.
    pub const LIFETIME: Span = Span::from_secs(3_600);
}

impl Default for MemorySettings {
    fn default() -> MemorySettings {
        let (entries, lifetime) = (MemorySettings::ENTRIES, MemorySettings::LIFETIME);
        MemorySettings { entries, lifetime, own: None, ssthresh: false }
    }
}

/// A subflow that this end has opened, and its arrivals until they were last counted.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    since: Time,
    bytes: u64,
}

/// The path memory of an endpoint.
#[derive(Debug)]
pub struct PathMemory {
    own: Option<IpAddr>,
    ssthresh: bool,
    table: Table,
    names: BTreeMap<PathId, PathName>,
    /// Number of names at which those of unused paths are dropped.
    enough: usize,
    arrivals: BTreeMap<(ConnId, SubflowId), Arrivals>,
}

impl PathMemory {
    pub(crate) fn new(settings: &MemorySettings) -> PathMemory {
        PathMemory {
            own: settings.own,
            ssthresh: settings.ssthresh,
            table: Table::new(settings.entries, settings.lifetime),
            names: BTreeMap::new(),
            enough: MIN_NAMES,
            arrivals: BTreeMap::new(),
        }
    }

    /// Returns every entry that is young enough to be used, by address.
    #[must_use]
    pub fn entries(&self, now: Time) -> Vec<PathEntry> {
        self.table.entries(now)
    }

    /// Adds an entry of an earlier memory, unless it is too old or a younger one of these addresses is known.
    pub fn restore(&mut self, now: Time, entry: &PathEntry) {
        self.table.restore(now, entry);
    }

    /// Sets the addresses of a path. Without them nothing is remembered of the path.
    pub fn name(&mut self, path: PathId, name: PathName) {
        self.names.insert(path, name);
    }

    /// Sets the address of the client that a path of a listening end stands for.
    pub(crate) fn name_client(&mut self, path: PathId, theirs: IpAddr) {
        let dialled = self.names.get(&path).is_some_and(|name| name.own.is_some());
        if !dialled {
            self.name(path, PathName { own: None, theirs });
        }
    }

    /// Returns true if the names of unused paths must be dropped.
    pub(crate) fn is_crowded(&self) -> bool {
        self.names.len() >= self.enough
    }

    /// Drops the names of unused paths.
    pub(crate) fn shrink(&mut self, in_use: impl Fn(PathId) -> bool) {
        self.names.retain(|path, _| in_use(*path));
        self.enough = MIN_NAMES.max(2 * self.names.len());
    }

    /// Returns the key of a path to the server's address `server`; `None` is the dialled one.
    pub(crate) fn key(&self, path: PathId, server: Option<IpAddr>) -> Option<PathKey> {
        let PathName { own, theirs } = *self.names.get(&path)?;
        Some(match own {
            Some(own) => PathKey::new(own, server.unwrap_or(theirs)),
            None => PathKey::new(server.or(self.own)?, theirs),
        })
    }

    /// Returns the record of a key, unless it is too old.
    pub(crate) fn recall(&mut self, now: Time, key: PathKey) -> Option<PathRecord> {
        self.table.recall(now, key)
    }

    /// Returns the threshold with which a subflow begins: the remembered one, but not less than two
    /// bandwidth-delay products, so that a wrong one costs little.
    pub(crate) fn first_threshold(&self, known: &PathRecord) -> Option<u64> {
        let (threshold, rate, rtt) = (known.ssthresh?, known.rate?, known.min_rtt?);
        let product = rate.saturating_mul(rtt.as_micros()) / 1_000_000;
        self.ssthresh.then_some(threshold.max(product.saturating_mul(2)))
    }

    /// Notes a subflow that this end has opened.
    pub(crate) fn on_opened(&mut self, now: Time, conn: ConnId, subflow: SubflowId, bytes: u64) {
        self.arrivals.insert((conn, subflow), Arrivals { since: now, bytes });
    }

    /// Takes in the values of a subflow, with the `received` bytes so far. `over` is true if it has
    /// ended.
    pub(crate) fn learn(&mut self, now: Time, key: PathKey, of: Learner, mut seen: PathSample) {
        let Learner { conn, subflow, received, over } = of;
        if let Some(arrivals) = self.arrivals.get_mut(&(conn, subflow)) {
            let (bytes, span) =
                (received - arrivals.bytes.min(received), now.since(arrivals.since));
            if bytes >= MIN_RECEIVED_BYTES && span > Span::ZERO {
                let rate = bytes.saturating_mul(1_000_000) / span.as_micros().max(1);
                seen.received = Some(Received { rate, bytes });
            }
            *arrivals = Arrivals { since: now, bytes: received };
        }
        if over {
            self.arrivals.remove(&(conn, subflow));
        }
        self.table.learn(now, key, &seen);
    }

    /// Returns the one of `paths` that a connection should begin on. They cost the same. It is the first one, unless
    /// another one is better: a small and a large transfer take no more time there, and both together take
    /// notably less. A rate may change more than an RTT, and a connection stays where it has begun. So
    /// on a path with twice the RTT, this must hold even if the first path has twice the remembered
    /// rate, and so on. Paths are compared if both have a rate: the RTT of a handshake does not
    /// show a slow link. A backup is never preferred, nor a path with a quota to one without.
    pub(crate) fn first_path<'a>(
        &mut self,
        now: Time,
        paths: impl IntoIterator<Item = &'a PathConfig>,
    ) -> Option<PathId> {
        let mut others = paths.into_iter();
        let first = others.next()?;
        let mut recall = |path| self.recall(now, self.key(path, None)?);
        let Some(known) = recall(first.path) else { return Some(first.path) };
        let Some(times) = Times::of(&known) else { return Some(first.path) };
        let least = times.sum().times(CHOICE_PERCENT).over(100);
        let usable = |it: &&PathConfig| {
            let limited = it.quota.is_some() && first.quota.is_none();
            !it.backup && !limited
        };
        let sums = others.filter(usable).filter_map(|it| {
            let other = recall(it.path)?;
            let (own, longer) = (Times::of(&other)?, known.min_rtt?.max(other.min_rtt?));
            let better = own.at_most(&Times::of(&known.scaled(longer, known.min_rtt?))?);
            better.then_some((own.sum(), it.path))
        });
        let best = sums.min().filter(|(sum, _)| *sum < least);
        Some(best.map_or(first.path, |(_, path)| path))
    }
}

/// Times of the small and of the large transfer over a path.
struct Times([Span; 2]);

impl Times {
    fn of(known: &PathRecord) -> Option<Times> {
        let [small, large] = CHOICE_BYTES.map(|bytes| known.transfer_time(bytes));
        Some(Times([small?, large?]))
    }

    fn sum(&self) -> Span {
        self.0[0] + self.0[1]
    }

    /// Returns true if no transfer takes longer than in `other`.
    fn at_most(&self, other: &Times) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own <= other)
    }
}

/// The subflow that changes an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Learner {
    pub(crate) conn: ConnId,
    pub(crate) subflow: SubflowId,
    /// Bytes that have arrived on it.
    pub(crate) received: u64,
    /// It has ended.
    pub(crate) over: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::string::ToString;

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Three own addresses, 7 to 9, from which a server is dialled.
    fn client() -> PathMemory {
        let mut memory = PathMemory::new(&MemorySettings::default());
        for path in 0..3 {
            let own = Some(address(7 + path as u8));
            memory.name(PathId(path), PathName { own, theirs: address(99) });
        }
        memory
    }

    fn paths() -> Vec<PathConfig> {
        let path = |path| PathConfig::new(PathId(path));
        (0..3).map(path).collect()
    }

    fn know(memory: &mut PathMemory, path: u32, rtt: u64, rate: Option<u64>) {
        let key = memory.key(PathId(path), None).unwrap();
        let min_rtt = Some(Span::from_millis(rtt));
        let record = PathRecord { min_rtt, rate, ..PathRecord::default() };
        memory.restore(Time::ZERO, &PathEntry { key, record, age: Span::ZERO });
    }

    #[test]
    fn a_connection_begins_where_a_transfer_ends_first() {
        let mut memory = client();
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(0)));
        know(&mut memory, 1, 10, Some(50_000_000));
        // Nothing is known of the first path.
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(0)));
        know(&mut memory, 0, 10, Some(1_000_000));
        know(&mut memory, 2, 10, Some(30_000_000));
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(1)));
        know(&mut memory, 1, 10, Some(1_050_000));
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(2)));
        // 64 KiB take four round trips there, and 100 ms on the first path.
        know(&mut memory, 2, 50, Some(40_000_000));
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(0)));
        // Without the third path, the second one is not notably better.
        assert_eq!(memory.first_path(at(0), &paths()[..2]), Some(PathId(0)));
        assert_eq!(memory.first_path(at(0), &[]), None);
        assert_eq!(memory.first_path(at(3_601), &paths()), Some(PathId(0)), "all are old");
    }

    #[test]
    fn a_longer_rtt_needs_a_rate_that_is_higher_by_more() {
        let mut memory = client();
        know(&mut memory, 1, 30, Some(40_000_000));
        // 64 KiB take 122 ms there, and 174 ms on the first path. At three times the rate they take 65 ms.
        know(&mut memory, 0, 10, Some(400_000));
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(0)));
        // At three times this rate they take 155 ms.
        know(&mut memory, 0, 10, Some(150_000));
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(1)));
        know(&mut memory, 0, 30, Some(400_000));
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(1)));
    }

    #[test]
    fn a_backup_or_a_path_with_a_quota_is_not_preferred() {
        let mut memory = client();
        for (path, rate) in [(0, 1), (1, 50), (2, 90)] {
            know(&mut memory, path, 10, Some(rate * 1_000_000));
        }
        let mut paths = paths();
        paths[2].backup = true;
        assert_eq!(memory.first_path(at(0), &paths), Some(PathId(1)));
        paths[1].quota = Some(1_000_000);
        assert_eq!(memory.first_path(at(0), &paths), Some(PathId(0)));
        paths[0].quota = Some(1_000_000);
        assert_eq!(memory.first_path(at(0), &paths), Some(PathId(1)));
    }

    #[test]
    fn a_path_without_a_rate_is_not_compared() {
        let mut memory = client();
        know(&mut memory, 0, 50, None);
        know(&mut memory, 1, 20, Some(50_000_000));
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(0)));
        know(&mut memory, 0, 50, Some(1_000_000));
        know(&mut memory, 1, 20, None);
        assert_eq!(memory.first_path(at(0), &paths()), Some(PathId(0)));
    }

    #[test]
    fn a_first_threshold_is_at_least_two_bandwidth_delay_products() {
        let min_rtt = Some(Span::from_millis(20));
        let known = |ssthresh| {
            let (rate, ssthresh) = (Some(1_000_000), Some(ssthresh));
            PathRecord { rate, min_rtt, ssthresh, ..PathRecord::default() }
        };
        let of = |ssthresh| MemorySettings { ssthresh, ..MemorySettings::default() };
        let (off, on) = (PathMemory::new(&of(false)), PathMemory::new(&of(true)));
        assert_eq!(off.first_threshold(&known(90_000)), None);
        assert_eq!(on.first_threshold(&known(90_000)), Some(90_000));
        assert_eq!(on.first_threshold(&known(9_000)), Some(40_000));
        assert_eq!(on.first_threshold(&PathRecord { rate: None, ..known(9_000) }), None);
    }

    #[test]
    fn a_key_has_the_address_that_a_subflow_uses() {
        let mut memory = client();
        let shown = |memory: &PathMemory, path, server| {
            memory.key(PathId(path), server).map(|key| key.to_string())
        };
        let key = |text: &str| Some(text.to_owned());
        let announced = Some(IpAddr::from([192, 0, 2, 1]));
        assert_eq!(shown(&memory, 1, None), key("10.0.0.8 10.0.0.0/24"));
        assert_eq!(shown(&memory, 1, announced), key("10.0.0.8 192.0.2.0/24"));
        assert_eq!(shown(&memory, 3, None), None);
        memory.name_client(PathId(1), address(1));
        assert_eq!(shown(&memory, 1, None), key("10.0.0.8 10.0.0.0/24"), "it dials");
        let settings = MemorySettings { own: announced, ..MemorySettings::default() };
        let mut server = PathMemory::new(&settings);
        server.name_client(PathId(1), address(7));
        assert_eq!(shown(&server, 1, None), key("192.0.2.1 10.0.0.0/24"));
        assert_eq!(shown(&server, 1, Some(address(99))), key("10.0.0.99 10.0.0.0/24"));
        server.name_client(PathId(1), IpAddr::from([10, 0, 1, 7]));
        assert_eq!(shown(&server, 1, None), key("192.0.2.1 10.0.1.0/24"), "the number is reused");
    }

    #[test]
    fn names_of_unused_paths_are_dropped() {
        let mut memory = PathMemory::new(&MemorySettings::default());
        for path in 0..5_000 {
            memory.name_client(PathId(path), address(7));
            if memory.is_crowded() {
                memory.shrink(|path| path.0 < 10);
            }
        }
        assert!(memory.names.len() <= MIN_NAMES, "{}", memory.names.len());
        assert!(memory.key(PathId(9), Some(address(1))).is_some());
    }

    #[test]
    fn arrivals_are_counted_between_two_visits() {
        let mut memory = client();
        let key = memory.key(PathId(0), None).unwrap();
        let of = |received, over| {
            let (conn, subflow) = (ConnId(1), SubflowId(0));
            Learner { conn, subflow, received, over }
        };
        memory.on_opened(at(1), ConnId(1), SubflowId(0), 0);
        memory.learn(at(3), key, of(200_000, false), PathSample::default());
        assert_eq!(memory.recall(at(3), key).unwrap().received, Some(100_000));
        // Less than 16 KiB is no sample.
        memory.learn(at(5), key, of(216_000, false), PathSample::default());
        assert_eq!(memory.recall(at(3), key).unwrap().received, Some(100_000));
        memory.learn(at(6), key, of(416_000, true), PathSample::default());
        assert_eq!(memory.recall(at(3), key).unwrap().received, Some(200_000));
        assert!(memory.arrivals.is_empty());
    }
}
