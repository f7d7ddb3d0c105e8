//! Middleboxes that strip MPTCP options, at each position, with real bytes (R50 to R54, F5). The
//! bytes read equal the bytes written, and the fallback is reported.
#![allow(clippy::unwrap_used)]

use plait_base::{ConnId, PathId, RandomStream, Span, Time};
use plait_core::{
    Config, ConnectionSpec, ConnectionState, Endpoint, Entropy, FallbackCause, PathConfig,
};
use plait_sim::{Middlebox, MiddleboxConfig, Strip, StripAt};
use plait_wire::Segment;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

struct Draws(RandomStream);

impl Entropy for Draws {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
struct Case {
    middleboxes: [MiddleboxConfig; 2],
    paths: u32,
    checksum: bool,
    client_sends: bool,
    len: usize,
}

/// The outcome of a run.
struct Outcome {
    /// Bytes that arrived, all equal to the bytes written.
    arrived: usize,
    client: (ConnectionState, Option<FallbackCause>),
    server: (ConnectionState, Option<FallbackCause>),
    ended: Time,
}

fn spec(case: &Case) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse("roundrobin").expect("scheduler");
    let controller = plait_cc::Spec::parse("reno").expect("controller");
    ConnectionSpec {
        config: Config { checksum: case.checksum, ..Config::default() },
        addresses: Vec::new(),
        paths: (0..case.paths).map(|id| PathConfig::new(PathId(id))).collect(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    }
}

/// Longest duration of a run.
const DEADLINE: Span = Span::from_secs(300);

/// Sends `len` random bytes in one or both directions, over paths of 10 and 15 ms each way. Checks
/// that the bytes read equal the bytes written.
fn run(case: &Case) -> Outcome {
    exchange(case, true)
}

/// As [`run`], but after the fallback plain TCP may deliver bytes that a middlebox changed.
fn run_up_to_first_edit(case: &Case) -> Outcome {
    exchange(case, false)
}

fn exchange(case: &Case, exact: bool) -> Outcome {
    let mut stream = RandomStream::new(7, &["data"]);
    let data: Vec<u8> = (0..case.len).map(|_| stream.bits() as u8).collect();
    let end = |name: &str| {
        let mut endpoint = Endpoint::new(Box::new(Draws(RandomStream::new(7, &["entropy", name]))));
        endpoint.check_invariants(true);
        endpoint
    };
    let mut ends = [end("client"), end("server")];
    let middlebox = |path: usize, way: &str| {
        Middlebox::new(case.middleboxes[path], 7, &[&format!("path{path}"), way])
    };
    let mut middleboxes =
        [[middlebox(0, "down"), middlebox(1, "down")], [middlebox(0, "up"), middlebox(1, "up")]];
    let mut now = Time::ZERO;
    ends[1].listen(80, spec(case));
    let mut ids = [Some(ends[0].connect(now, 80, spec(case)).unwrap()), None];
    let sender = usize::from(!case.client_sends);
    let (mut written, mut got) = (0, Vec::new());
    let mut finished = [false; 2];
    let mut flying: BTreeMap<(Time, u64), (usize, u32, Box<Segment>)> = BTreeMap::new();
    let mut count = 0;
    loop {
        ids[1] = ids[1].or_else(|| ends[1].poll_accept());
        for (index, endpoint) in ends.iter_mut().enumerate() {
            while endpoint.poll_news().is_some() {}
            if let Some(id) = ids[index] {
                if index == sender {
                    written += endpoint.write_bytes(now, id, &data[written..]).unwrap_or(0);
                } else {
                    read_all(endpoint, now, id, &mut got);
                }
                let done = if index == sender { written } else { got.len() } == data.len();
                if !finished[index] && done {
                    finished[index] = true;
                    endpoint.finish(now, id).unwrap();
                }
            }
            while let Some(transmit) = endpoint.poll_transmit(now) {
                let delay = [10, 15][transmit.path.index()];
                count += 1;
                let arrival = (1 - index, transmit.path.0, transmit.segment);
                flying.insert((now + Span::from_millis(delay), count), arrival);
            }
            assert_eq!(endpoint.violation(), None, "{case:?} at {now:?}");
        }
        let fell_back = ids[1 - sender]
            .and_then(|id| ends[1 - sender].stats(id))
            .is_some_and(|stats| !stats.multipath);
        let right = data.starts_with(&got);
        assert!(right || !exact && fell_back, "{case:?}: other bytes than were written");
        let over = |endpoint: &Endpoint, id: Option<ConnId>| {
            id.is_some_and(|id| {
                use ConnectionState::{Closed, Failed};
                matches!(endpoint.state(id).unwrap(), Closed | Failed) && endpoint.is_over()
            })
        };
        if over(&ends[0], ids[0]) && (over(&ends[1], ids[1]) || ids[1].is_none()) {
            break;
        }
        let timer = ends[0].poll_timeout().min(ends[1].poll_timeout());
        let arrival = flying.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        now = timer.min(arrival).max(now);
        if now > Time::ZERO + DEADLINE {
            break;
        }
        if arrival <= now
            && let Some((_, (to, path, mut segment))) = flying.pop_first()
        {
            if let Some(middlebox) = &mut middleboxes[to][path as usize] {
                middlebox.pass(now, &mut segment);
            }
            ends[to].handle(now, PathId(path), &segment);
        } else {
            ends.iter_mut().for_each(|endpoint| endpoint.handle_timeout(now));
        }
    }
    let told = |index: usize| {
        let stats = ids[index].and_then(|id| ends[index].stats(id));
        stats.map_or((ConnectionState::Failed, None), |stats| (stats.state, stats.fallback))
    };
    Outcome { arrived: got.len(), client: told(0), server: told(1), ended: now }
}

fn read_all(endpoint: &mut Endpoint, now: Time, id: ConnId, got: &mut Vec<u8>) {
    let mut buffer = [0; 8_192];
    loop {
        let count = endpoint.read(now, id, &mut buffer).unwrap();
        got.extend_from_slice(&buffer[..count]);
        if count == 0 {
            return;
        }
    }
}

const LEN: usize = 600_000;

fn strip(at: StripAt, from_ms: u64) -> MiddleboxConfig {
    let from = Time::ZERO + Span::from_millis(from_ms);
    MiddleboxConfig {
        strip: Some(Strip { at, from, until: Time::NEVER }),
        ..MiddleboxConfig::default()
    }
}

fn word(cause: Option<FallbackCause>) -> String {
    cause.map_or_else(|| "-".to_owned(), |cause| format!("{cause:?}"))
}

/// R50, R51, R52, R54, F5, S11: the whole matrix. A connection that cannot continue fails with an
/// error and never delivers other bytes.
#[test]
fn the_matrix() {
    let nothing = MiddleboxConfig::default();
    let positions = [
        ("syn", strip(StripAt::Syn, 0)),
        ("synack", strip(StripAt::SynAck, 0)),
        ("third ack", strip(StripAt::ThirdAck, 0)),
        ("first data", strip(StripAt::FirstData, 0)),
        ("data", strip(StripAt::Data, 0)),
        ("data later", strip(StripAt::Data, 75)),
        ("all", strip(StripAt::All, 0)),
        ("all later", strip(StripAt::All, 75)),
    ];
    let mut table =
        String::from("position    paths       sender  sums  arrived  ms      client / server\n");
    for (position, it) in positions {
        let layouts = [
            ("one", 1, [it, nothing]),
            ("first of 2", 2, [it, nothing]),
            ("other of 2", 2, [nothing, it]),
            ("both", 2, [it, it]),
        ];
        for (layout, paths, middleboxes) in layouts {
            for (client_sends, checksum) in
                [(true, false), (true, true), (false, false), (false, true)]
            {
                let case = Case { middleboxes, paths, checksum, client_sends, len: LEN };
                let it = run(&case);
                let arrived = if it.arrived == LEN { "all".into() } else { it.arrived.to_string() };
                let end = |(state, cause): (ConnectionState, Option<FallbackCause>)| {
                    let failed = if state == ConnectionState::Closed { "" } else { " failed" };
                    format!("{}{failed}", word(cause))
                };
                let _ = writeln!(
                    table,
                    "{position:<12}{layout:<12}{:<8}{:<6}{arrived:<9}{:<8}{} / {}",
                    if client_sends { "client" } else { "server" },
                    if checksum { "on" } else { "off" },
                    it.ended.since(Time::ZERO).as_micros() / 1_000,
                    end(it.client),
                    end(it.server),
                );
            }
        }
    }
    insta::assert_snapshot!(table);
}

/// R34, R53, F4: a middlebox changes bytes and repairs the TCP checksum. With DSS checksums and a
/// second, clean path, the bytes read equal the bytes written. On a single path the connection
/// continues as plain TCP, which cannot detect the change.
#[test]
fn edits_are_found() {
    let edit = |ppb| MiddleboxConfig {
        edit: plait_base::Chance::from_ppb(ppb),
        ..MiddleboxConfig::default()
    };
    let nothing = MiddleboxConfig::default();
    for client_sends in [true, false] {
        let case = Case {
            middleboxes: [nothing, edit(20_000_000)],
            paths: 2,
            checksum: true,
            client_sends,
            len: LEN,
        };
        let it = run(&case);
        assert_eq!((it.arrived, it.client.1, it.server.1), (LEN, None, None), "{case:?}");
        // The first edit on a single path: no wrong byte is delivered before the fallback.
        let case = Case { middleboxes: [edit(10_000_000), nothing], paths: 1, ..case };
        let it = run_up_to_first_edit(&case);
        let checksum = Some(FallbackCause::Checksum);
        assert_eq!((it.client.1, it.server.1), (checksum, checksum), "{case:?}");
        assert_eq!(it.arrived, LEN, "{case:?}");
        assert_eq!(it.client.0, ConnectionState::Closed, "{case:?}");
    }
}

/// R52, R54, F5: the HMAC of a join never arrives, so the server does not know the second path.
/// Then the first path loses its options too.
///
/// If the client sends, it follows the server, which falls back alone. If the server sends, the
/// client cannot know that no data was sent to it on the other path. It resets the subflow, and no
/// wrong byte is delivered.
#[test]
fn a_peer_that_falls_back_alone_is_followed() {
    let unproven = strip(StripAt::ThirdAck, 0);
    for at in [StripAt::Data, StripAt::All] {
        for (client_sends, checksum) in [(true, false), (true, true), (false, false), (false, true)]
        {
            let middleboxes = [strip(at, 75), unproven];
            let case = Case { middleboxes, paths: 2, checksum, client_sends, len: LEN };
            let it = run(&case);
            if client_sends {
                let end = (ConnectionState::Closed, Some(FallbackCause::Mappings));
                assert_eq!((it.arrived, it.client, it.server), (LEN, end, end), "{case:?}");
                assert!(it.ended < Time::ZERO + Span::from_secs(5), "{case:?}: {:?}", it.ended);
            } else {
                let failed = (ConnectionState::Failed, None);
                assert_eq!((it.client, it.server), (failed, failed), "{case:?}");
            }
        }
    }
}
