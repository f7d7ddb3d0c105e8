//! Claims of "Low-Latency Scheduling in MPTCP" about hosts: a host queue that holds a burst back, a
//! receive buffer blocked by the slow path, and an RTT that is no longer measured.

use crate::common::{at, ideal, limited, ms, setup, spec, textbook, watched};
use plait_app::{AppEvent, Role};
use plait_base::{DataRange, Dsn, Rate, Span, SubflowId, Time};
use plait_core::{Carry, Config, Event};
use plait_link::RateSource;
use plait_sim::{PathSetup, Snapshot, Watch, Who};

const P1: SubflowId = SubflowId(0);
const P2: SubflowId = SubflowId(1);
/// Payload of a segment: 1448 bytes minus the DSS option.
const SEGMENT: u64 = 1428;

/// Segments that the server sent, bytes that the client could read, and DATA_ACKs that the server
/// received, from the burst on. Times count from the burst's first segment, DSNs from its start.
#[derive(Default)]
struct Trace {
    burst: Option<Dsn>,
    start: Option<Time>,
    sent: Vec<(Span, SubflowId, DataRange, Carry)>,
    arrived: Vec<Span>,
    readable: Vec<(Span, DataRange)>,
    acked: Vec<(Span, u64)>,
}

impl Watch for Trace {
    fn on_app(&mut self, _: Time, who: Who, event: &AppEvent) {
        if let (Role::Server, AppEvent::MeasureFrom { offset }) = (who.host, event) {
            self.burst = Some(*offset);
        }
    }

    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        let Some(base) = self.burst else { return };
        let start = *self.start.get_or_insert(now);
        let after = now.since(start);
        let from = |range: &DataRange| DataRange::between(range.start - base, range.end - base);
        match (who.host, event) {
            (Role::Server, Event::DataSent { subflow, data, carry }) => {
                self.sent.push((after, *subflow, from(data), *carry));
            }
            (Role::Server, Event::DataAcked { new, .. }) => self.acked.push((after, *new - base)),
            (Role::Client, Event::DataArrived { .. }) => self.arrived.push(after),
            (Role::Client, Event::DataReadable { data, .. }) => {
                self.readable.push((after, from(data)));
            }
            _ => {}
        }
    }
}

impl Trace {
    /// Returns the time and the subflow of the first transmission of segment `number`. Segments
    /// have 1428 bytes, and the first is number 1.
    fn departure(&self, number: u64) -> (Span, SubflowId) {
        let found = self.sent.iter().find(|(.., data, _)| data.end == Dsn::new(number * SEGMENT));
        found.map(|(after, subflow, ..)| (*after, *subflow)).expect("it was sent")
    }

    fn readable_at(&self, number: u64) -> Span {
        let holds = |data: &DataRange| {
            data.start.get() < number * SEGMENT && number * SEGMENT <= data.end.get()
        };
        self.readable.iter().find(|(_, data)| holds(data)).expect("it was read").0
    }

    fn places(&self) -> Vec<SubflowId> {
        assert!(self.sent.iter().all(|(.., carry)| *carry == Carry::New));
        self.sent.iter().map(|(_, subflow, ..)| *subflow).collect()
    }
}

/// ton-u6: segments go to the second path before the first has ten in flight.
///
/// The second part of ton-u6 is ten of the fifteen segments on the first path. It depends on the
/// time that the paper's host needs for a segment. Its first path transmits queued segments while
/// the host still writes.
///
/// Here a burst is written in no time. Each path takes three segments at once: two are the limit,
/// and one more exceeds it. After that, each path in turn takes one segment for each that leaves,
/// so the first path carries eight. It carries ten if the host holds nothing back. It also carries
/// ten, by the same rule, if the host needs two thirds of the link's time for a segment
/// ([`ten_of_fifteen_where_the_host_takes_its_time`]).
#[test]
fn ton_u6_minrtt_leaks_while_the_host_queue_is_full() {
    let rate = Rate::from_bps(500_000_000);
    let path =
        |name, rtt| PathSetup { nic_down: rate, nic_up: rate, ..limited(name, 500, ms(rtt)) };
    for (tsq, first_leak, on_p1) in [(true, 4, 8), (false, 11, 10)] {
        let config = Config { tsq, ..Config::default() };
        let paths = vec![path("p1", 10), path("p2", 100)];
        let trace: Trace =
            watched(&setup(paths, &spec("minrtt", "cubic", 2, config), "burst:15seg"));
        let places = trace.places();
        let leak = places.iter().position(|it| *it == P2).expect("it leaks") + 1;
        // No segment is acknowledged yet, so the segments on P1 are in flight.
        assert!(trace.departure(15).0 < ms(10));
        assert_eq!((places.len(), leak), (15, first_leak), "{tsq}");
        assert_eq!(places.iter().filter(|it| **it == P1).count(), on_p1, "{tsq}");
    }
}

/// ton-u6, both parts in the simulation. The paper's path has 0.5 Gbit/s, and its hosts have links
/// of 1 Gbit/s, which take 12 us for a segment.
///
/// The effect needs a host that works on each segment for more than half and less than three
/// quarters of that time. Then segments go to P2 before P1 has ten in flight, and P1 carries ten of
/// the fifteen. [`by_hand`] gives the same for times twice as long. The experiments of this paper
/// use 7.5 us.
#[test]
fn ton_u6_minrtt_leaks_and_puts_ten_of_fifteen_on_the_fast_path() {
    let nic = Rate::from_bps(1_000_000_000);
    let path = |name, rtt| PathSetup { nic_down: nic, nic_up: nic, ..limited(name, 500, ms(rtt)) };
    for cost_ns in [6_500, 7_000, 7_500, 8_000] {
        let config = Config { tsq: true, ..Config::default() };
        let paths = vec![path("p1", 10), path("p2", 100)];
        let mut it = setup(paths, &spec("minrtt", "cubic", 2, config), "burst:15seg");
        it.send_cost = Span::from_nanos(cost_ns);
        let trace: Trace = watched(&it);
        let places = trace.places();
        let leak = places.iter().position(|it| *it == P2).expect("it leaks");
        // All segments are sent before the first acknowledgement, so the segments on P1 are in
        // flight.
        assert!(trace.departure(15).0 < ms(10));
        assert!(leak < 10, "{cost_ns} ns: {leak}");
        assert_eq!(places.iter().filter(|it| **it == P1).count(), 10, "{cost_ns} ns");
    }
}

/// Calculates by hand which of 15 segments is the first on P2, and how many P1 carries. The host
/// writes a segment every `every_us`, and either link takes 24 us for one.
///
/// The fast path gets each segment that its window of ten and its host queue accept. The slow path
/// gets the others. If neither accepts a segment, it waits until one leaves.
fn by_hand(every_us: u64) -> (usize, usize) {
    let (mut free_at, mut carried, mut first) = ([Vec::new(), Vec::new()], [0; 2], 0);
    let mut now = 0;
    for segment in 0..15 {
        now = now.max(segment * every_us);
        let path = loop {
            let held = |path: usize| free_at[path].iter().filter(|it: &&u64| **it > now).count();
            // Two full segments are the limit, and one more exceeds it.
            let takes = |path: usize| carried[path] < 10 && held(path) <= 2;
            if let Some(path) = [0, 1].into_iter().find(|path| takes(*path)) {
                break path;
            }
            now += 1;
        };
        let leaves = free_at[path].last().map_or(now, |last: &u64| now.max(*last)) + 24;
        free_at[path].push(leaves);
        carried[path] += 1;
        if path == 1 && first == 0 {
            first = segment as usize + 1;
        }
    }
    (first, carried[0])
}

/// ton-u6, second part. A host needs between a half and three quarters of its link's time. The rule
/// then gives ten of fifteen, with a leak before ten are in flight. For a burst written in no time,
/// it gives the same as the simulation.
#[test]
fn ten_of_fifteen_where_the_host_takes_its_time() {
    assert_eq!([14, 16, 18].map(by_hand), [(6, 10), (8, 10), (10, 10)]);
    assert_eq!(by_hand(0), (4, 8));
}

/// ton-u5: RTTs of 100 and 10 ms, a receive buffer of six segments, windows of two segments.
/// Segments 1 and 2 go to the slow path, the others to the fast path.
#[test]
fn ton_u5_the_slow_path_blocks_a_buffer_of_six_segments() {
    let paths = vec![ideal("slow", ms(100)), ideal("fast", ms(10))];
    let config = textbook().with(|it| it.buffers.rcvbuf = 6 * SEGMENT);
    let spec = spec("strict", "fixed:cwnd=2seg", 2, config);
    let trace: Trace = watched(&setup(paths, &spec, "burst:8seg"));
    let (slow, fast) = (P1, P2);
    assert_eq!(trace.places(), [slow, slow, fast, fast, fast, fast, fast, fast]);
    // 3 and 4 have crossed after 5 ms, and 5 and 6 follow after an RTT of the fast path ...
    let departures: Vec<Span> = (1..=6).map(|number| trace.departure(number).0).collect();
    assert_eq!(departures, [0, 0, 0, 0, 10, 10].map(ms));
    assert_eq!(trace.arrived, [5, 5, 15, 15, 50, 50, 60, 60].map(ms));
    // ... but no segment is read before the slow path has delivered 1 and 2,
    assert_eq!((1..=6).map(|it| trace.readable_at(it)).min(), Some(ms(50)));
    assert_eq!([trace.readable_at(3), trace.readable_at(4)], [ms(50); 2]);
    // and 7 is not sent before their DATA_ACK, which returns on the fast path.
    let acked = trace.acked.iter().find(|(_, dsn)| *dsn >= 2 * SEGMENT).expect("acknowledged").0;
    assert_eq!(acked, ms(55));
    assert!(trace.acked.iter().all(|(after, _)| *after >= acked));
    assert_eq!(trace.departure(7).0, acked);
}

/// Bytes that the server sent for the first time, by second and subflow.
#[derive(Default)]
struct Shares {
    by_second: Vec<[u64; 2]>,
    /// Last time at which the first path's queue held bytes.
    busy: Option<Time>,
}

impl Watch for Shares {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if let (Role::Server, Event::DataSent { subflow, data, carry: Carry::New }) =
            (who.host, event)
        {
            let second = (now.as_nanos() / 1_000_000_000) as usize;
            self.by_second.resize(self.by_second.len().max(second + 1), [0; 2]);
            self.by_second[second][subflow.index()] += data.len();
        }
    }

    fn interval(&self) -> Option<Span> {
        Some(ms(1))
    }

    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        if snapshot.queued_down[0] > 0 {
            self.busy = Some(at);
        }
    }
}

/// Base RTTs of 20 and 30 ms. The first link is slow from 5 to 6 s. The load is 1 Mbit/s in single
/// segments.
fn after_a_transient_queue(scheduler: &str) -> Shares {
    let mut first = limited("s1", 10, ms(20));
    first.down.rate = RateSource::Steps(vec![
        (Time::ZERO, Rate::from_bps(10_000_000)),
        (at(5_000), Rate::from_bps(400_000)),
        (at(6_000), Rate::from_bps(10_000_000)),
    ]);
    let paths = vec![first, limited("s2", 10, ms(30))];
    let spec = spec(scheduler, "cubic", 2, Config::default());
    watched(&setup(paths, &spec, "stream:1250B@10ms,for=30s"))
}

/// ton-u4: minrtt stays on the other path while the load fits there. STTF, which does not use an
/// old RTT, returns to the first path.
#[test]
fn ton_u4_minrtt_does_not_come_back_to_a_path_that_has_recovered() {
    let shares = after_a_transient_queue("minrtt");
    let empty_since = shares.busy.expect("a queue while the link was slow");
    assert!(at(5_000) < empty_since && empty_since < at(6_000), "{empty_since:?}");
    // The first path is used until the queue builds, and the other path from the next second on. It
    // is still used ten seconds after the queue was empty, and then until the end.
    assert!(shares.by_second[..5].iter().all(|[_, second]| *second == 0), "{:?}", shares.by_second);
    let later = &shares.by_second[6..30];
    assert_eq!(later, [[0, 125_000]; 24]);
    let reset = after_a_transient_queue("sttf");
    assert_eq!(reset.by_second[15..30], [[125_000, 0]; 15]);
}
