//! Two endpoints exchange bytes over a network that delays, loses, reorders and repeats segments.
//! With every scheduler, each end reads exactly the bytes that the other one wrote.
#![allow(clippy::unwrap_used, clippy::panic)]

use plait_base::{ConnId, PathId, RandomStream, Span, Time};
use plait_core::{
    Config, ConnectionSpec, ConnectionState, Endpoint, Entropy, JoinTiming, PathConfig, Transmit,
};
use plait_wire::Segment;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

struct Draws(RandomStream);

impl Entropy for Draws {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

/// Parameters of a run.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    scheduler: String,
    paths: u32,
    multipath: bool,
    /// Each end's request for checksums.
    checksum: [bool; 2],
    rcvbuf: u64,
    sndbuf: u64,
    /// Bytes from the client and from the server.
    sizes: [usize; 2],
    /// In percent, until [`HEALED`].
    loss: u64,
    repeat: u64,
    delay_ms: [u64; 3],
    jitter_ms: u64,
    /// Bit n: the n-th segment is lost.
    drops: u64,
    join: JoinTiming,
}

/// One end and its user's sessions. A client without an answer dials again on another path, so its
/// server may have seen both attempts.
struct End {
    endpoint: Endpoint,
    data: Vec<u8>,
    sessions: Vec<Session>,
}

/// The bytes that a user has written to a connection and read from it.
#[derive(Debug)]
struct Session {
    id: ConnId,
    written: usize,
    got: Vec<u8>,
    finished: bool,
}

impl Session {
    fn new(id: ConnId) -> Session {
        Session { id, written: 0, got: Vec::new(), finished: false }
    }

    /// Writes and reads pieces of any length.
    fn turn(&mut self, now: Time, endpoint: &mut Endpoint, data: &[u8], stream: &mut RandomStream) {
        let mut buffer = [0; 5_000];
        loop {
            let room = stream.within(1, buffer.len() as u64) as usize;
            let count = endpoint.read(now, self.id, &mut buffer[..room]).unwrap();
            self.got.extend_from_slice(&buffer[..count]);
            if count == 0 {
                break;
            }
        }
        while self.written < data.len() {
            let piece = stream.within(1, 4_000) as usize;
            let end = (self.written + piece).min(data.len());
            let count = endpoint.write_bytes(now, self.id, &data[self.written..end]).unwrap_or(0);
            self.written += count;
            if count == 0 {
                break;
            }
        }
        if self.written == data.len() && !self.finished {
            self.finished = true;
            endpoint.finish(now, self.id).unwrap();
        }
    }
}

impl End {
    fn new(seed: u64, name: &str, len: usize) -> End {
        let mut endpoint =
            Endpoint::new(Box::new(Draws(RandomStream::new(seed, &["entropy", name]))));
        endpoint.check_invariants(true);
        let mut stream = RandomStream::new(seed, &["data", name]);
        let data = (0..len).map(|_| stream.bits() as u8).collect();
        End { endpoint, data, sessions: Vec::new() }
    }

    fn turn(&mut self, now: Time, stream: &mut RandomStream) {
        while self.endpoint.poll_news().is_some() {}
        while let Some(id) = self.endpoint.poll_accept() {
            self.sessions.push(Session::new(id));
        }
        for session in &mut self.sessions {
            session.turn(now, &mut self.endpoint, &self.data, stream);
        }
    }

    /// Returns the session whose connection is closed.
    fn closed(&self) -> Option<&Session> {
        let closed = |it: &&Session| self.endpoint.state(it.id).unwrap() == ConnectionState::Closed;
        self.sessions.iter().find(closed)
    }
}

/// From this time on, the network is faultless.
const HEALED: Time = Time::from_nanos(15_000_000_000);

struct Network {
    case: Case,
    stream: RandomStream,
    /// By arrival time and number: the receiving end, the path and the segment.
    flying: BTreeMap<(Time, u64), (usize, u32, Box<Segment>)>,
    count: u64,
    offered: u32,
}

impl Network {
    fn take(&mut self, now: Time, to: usize, transmit: &Transmit) {
        let faulty = now < HEALED;
        self.offered += 1;
        if self.offered <= 64 && self.case.drops >> (self.offered - 1) & 1 == 1 {
            return;
        }
        let Case { loss, repeat, jitter_ms, .. } = self.case;
        if faulty && self.stream.below(100) < loss {
            return;
        }
        let copies = if faulty && self.stream.below(100) < repeat { 2 } else { 1 };
        let delay = self.case.delay_ms[transmit.path.index()];
        for _ in 0..copies {
            let jitter = if faulty { self.stream.below(1_000 * jitter_ms + 1) } else { 0 };
            let at = now + Span::from_millis(delay) + Span::from_micros(jitter);
            self.count += 1;
            let arrival = (to, transmit.path.0, transmit.segment.clone());
            self.flying.insert((at, self.count), arrival);
        }
    }
}

fn spec(case: &Case, end: usize) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse(&case.scheduler).unwrap();
    let controller = plait_cc::Spec::parse("cubic").unwrap();
    let config = Config::default().with(|it| {
        it.multipath = case.multipath;
        it.checksum = case.checksum[end];
        it.buffers.rcvbuf = case.rcvbuf;
        it.buffers.sndbuf = case.sndbuf;
        it.joins.timing = case.join;
    });
    ConnectionSpec {
        config,
        paths: (0..case.paths).map(|id| PathConfig::new(PathId(id))).collect(),
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    }
}

fn run(case: &Case) -> Result<(), String> {
    count_unproven(case).map(|_| ())
}

/// As [`run`], but also returns the number of segments with data that reached the server before their
/// third ACK.
fn count_unproven(case: &Case) -> Result<u64, String> {
    let mut ends = [
        End::new(case.seed, "client", case.sizes[0]),
        End::new(case.seed, "server", case.sizes[1]),
    ];
    let mut users = RandomStream::new(case.seed, &["users"]);
    let stream = RandomStream::new(case.seed, &["network"]);
    let mut network =
        Network { case: case.clone(), stream, flying: BTreeMap::new(), count: 0, offered: 0 };
    let mut now = Time::ZERO;
    ends[1].endpoint.listen(80, spec(case, 1));
    let id = ends[0].endpoint.connect(now, 80, spec(case, 0)).unwrap();
    ends[0].sessions.push(Session::new(id));
    loop {
        for (index, end) in ends.iter_mut().enumerate() {
            end.turn(now, &mut users);
            while let Some(transmit) = end.endpoint.poll_transmit(now) {
                network.take(now, 1 - index, &transmit);
            }
            if let Some(violation) = end.endpoint.violation() {
                return Err(format!("{violation} at {now:?}"));
            }
        }
        let done = |end: &End| end.closed().is_some() && end.endpoint.is_over();
        if ends.iter().all(done) {
            break;
        }
        let timer = ends.iter().map(|end| end.endpoint.poll_timeout()).min().unwrap();
        let arrival = network.flying.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        now = timer.min(arrival).max(now);
        if now > Time::ZERO + Span::from_secs(600) {
            let told =
                ends.map(|end| (end.endpoint.stats(ConnId(0)), end.endpoint.stats(ConnId(1))));
            return Err(format!("not done: {told:#?}"));
        }
        if arrival <= now {
            let (_, (to, path, segment)) = network.flying.pop_first().unwrap();
            ends[to].endpoint.handle(now, PathId(path), &segment);
        } else {
            ends.iter_mut().for_each(|end| end.endpoint.handle_timeout(now));
        }
    }
    for (reader, writer) in [(0, 1), (1, 0)] {
        let (sessions, data) = (&ends[reader].sessions, &ends[writer].data);
        let closed = ends[reader].closed().map(|session| &session.got);
        if closed != Some(data) || sessions.iter().any(|it| !data.starts_with(&it.got)) {
            return Err(format!("the bytes differ, reader {reader}"));
        }
    }
    Ok(ends[1].endpoint.overflows().unproven_data)
}

prop_compose! {
    fn cases()(
        seed: u64,
        paths in 1u32..=3,
        multipath in prop::bool::weighted(0.85),
        checksum in [prop::bool::weighted(0.2), prop::bool::weighted(0.2)],
        rcvbuf in prop::sample::select(vec![2_000, 9_000, 65_536, 1 << 20]),
        sndbuf in prop::sample::select(vec![3_000, 20_000, 200_000]),
        sizes in [4_000usize..60_000, 4_000usize..60_000],
        loss in prop::sample::select(vec![0u64, 1, 5, 20]),
        repeat in prop::sample::select(vec![0u64, 10, 50]),
        delay_ms in [1u64..100, 1u64..100, 1u64..100],
        jitter_ms in prop::sample::select(vec![0u64, 2, 40]),
        join in prop::sample::select(vec![JoinTiming::AfterData, JoinTiming::Agreed]),
    ) -> Case {
        let (scheduler, drops) = (String::new(), 0);
        Case {
            seed, scheduler, paths, multipath, checksum, rcvbuf, sndbuf, sizes, loss, repeat, delay_ms,
            jitter_ms, drops, join,
        }
    }
}

/// R31, R35, R39, R40, F1 to F3, F12.
#[test]
fn what_is_written_is_read() {
    let entries = plait_sched::SCHEDULERS.iter().map(|entry| entry.about.name.to_owned());
    let decorated =
        plait_sched::DECORATORS.iter().map(|entry| format!("minrtt+{}", entry.about.name));
    for scheduler in entries.chain(decorated) {
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(case in cases())| {
            let case = Case { scheduler: scheduler.clone(), ..case };
            let verdict = run(&case);
            prop_assert!(verdict.is_ok(), "{}\n{case:?}", verdict.unwrap_err());
        });
    }
}

/// A transfer of 200 kB in each direction over two unequal paths.
#[test]
fn a_longer_transfer() {
    for (seed, entry) in plait_sched::SCHEDULERS.iter().enumerate() {
        let case = Case {
            seed: seed as u64,
            scheduler: entry.about.name.to_owned(),
            paths: 2,
            multipath: true,
            checksum: [seed % 2 == 1, false],
            rcvbuf: 100_000,
            sndbuf: 100_000,
            sizes: [200_000, 200_000],
            loss: 3,
            repeat: 3,
            delay_ms: [10, 60, 0],
            jitter_ms: 5,
            drops: 0,
            join: JoinTiming::default(),
        };
        assert_eq!(run(&case), Ok(()), "{}", entry.about.name);
    }
}

/// Two paths that lose exactly the segments of `drops`.
fn lossy(drops: u64, sizes: [usize; 2], join: JoinTiming) -> Case {
    Case {
        seed: 1,
        scheduler: "minrtt".to_owned(),
        paths: 2,
        multipath: true,
        checksum: [false, drops.is_multiple_of(3)],
        rcvbuf: 100_000,
        sndbuf: 100_000,
        sizes,
        loss: 0,
        repeat: 0,
        delay_ms: [10, 15, 0],
        jitter_ms: 0,
        drops,
        join,
    }
}

/// R8, R22: any of the first eight segments are lost, and either end writes first.
#[test]
fn every_subset_of_the_first_segments_lost() {
    for (drops, sizes) in (0..256).flat_map(|drops| [(drops, [5_000, 10]), (drops, [10, 5_000])]) {
        let case = lossy(drops, sizes, JoinTiming::default());
        assert_eq!(run(&case), Ok(()), "{drops:08b}, {sizes:?}");
    }
}

/// R21, R22: a client sends data right after the third ACK of its join. Up to eight neighbouring segments are
/// lost: the answer to the join, the third ACK, the data and the fourth ACK among them.
#[test]
fn early_data_survives_losses() {
    let mut unproven = 0;
    for drops in (8..44).step_by(4).flat_map(|at| (0..256_u64).map(move |bits| bits << at)) {
        let case = lossy(drops, [60_000, 10], JoinTiming::Agreed);
        let early = count_unproven(&case);
        assert!(early.is_ok(), "{drops:b}: {early:?}");
        unproven += early.unwrap_or(0);
    }
    assert!(unproven > 1_000, "{unproven} segments arrived before their third ACK");
}
