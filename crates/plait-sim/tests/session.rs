//! Sessions with several connections between one pair of hosts.

use crate::common::{at, limited, ms, setup, spec};
use plait_app::{App, AppEvent, Ends, Role, Stream, StreamState};
use plait_base::{PathId, Time};
use plait_core::{Config, Detail, Event};
use plait_sim::{Direction, Hop, Watch, Who, run_apps};
use plait_wire::Segment;
use std::sync::{Arc, Mutex};

const OBJECT: u64 = 20_000;

/// State shared by the connections of a client: the number of objects received.
type Session = Arc<Mutex<u64>>;

/// A client that requests one object after `after` other objects have arrived.
#[derive(Debug)]
struct Asker {
    session: Session,
    after: u64,
    /// Bytes still missing; `None` before the request.
    missing: Option<u64>,
    /// The handshake is complete.
    open: bool,
    left: bool,
}

impl Asker {
    fn came(&self) -> u64 {
        *self.session.lock().expect("no panic")
    }

    fn is_due(&self) -> bool {
        self.came() >= self.after
    }
}

impl App for Asker {
    fn poll(&mut self, _: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        let (id, before) = (self.after, self.missing);
        self.open |= stream.state() == StreamState::Open;
        if self.open && self.is_due() && before.is_none() {
            assert_eq!(stream.write_bytes(b"?"), 1);
            self.missing = Some(OBJECT);
            log.push(AppEvent::ObjectAsked { id });
        }
        if let Some(missing) = &mut self.missing {
            *missing -= stream.read(u64::MAX);
            if *missing == 0 && before != Some(0) {
                *self.session.lock().expect("no panic") += 1;
                log.push(AppEvent::ObjectRead { id });
            }
        }
        if self.came() == 3 && !self.left {
            stream.finish();
            self.left = true;
        }
    }

    fn wake(&self) -> Option<Time> {
        let all = self.came() == 3;
        (all && !self.left || self.open && self.missing.is_none() && self.is_due())
            .then_some(Time::ZERO)
    }

    fn opens(&self) -> bool {
        self.is_due() && self.after < 3
    }

    fn done(&self) -> bool {
        self.came() == 3 && (self.left || self.after == 9)
    }
}

/// A server that answers each byte with an object.
#[derive(Debug, Default)]
struct Answerer {
    owed: u64,
    left: bool,
}

impl App for Answerer {
    fn poll(&mut self, _: Time, stream: &mut dyn Stream, _: &mut Vec<AppEvent>) {
        let mut byte = [0];
        while stream.read_bytes(&mut byte) > 0 {
            self.owed += OBJECT;
        }
        self.owed -= stream.write(self.owed);
        if stream.state() == StreamState::PeerDone && !self.left {
            stream.finish();
            self.left = true;
        }
    }

    fn wake(&self) -> Option<Time> {
        None
    }

    fn done(&self) -> bool {
        self.left
    }
}

/// Time of each connection's first SYN, and the payload towards the client.
#[derive(Default)]
struct Seen {
    syns: Vec<(u16, Time)>,
    reads: Vec<(usize, Time)>,
    carried: [u64; 2],
}

impl Watch for Seen {
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, it: &Segment) {
        if hop != Hop::Sent {
            return;
        }
        if way == Direction::Down {
            self.carried[path.index()] += u64::from(it.payload.len());
        } else if it.flags.has(plait_wire::Flags::SYN)
            && !self.syns.iter().any(|syn| syn.0 == it.dst_port)
        {
            self.syns.push((it.dst_port, now));
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if matches!(event, AppEvent::ObjectRead { .. }) {
            assert_eq!(who.host, Role::Client);
            self.reads.push((who.connection, now));
        }
    }

    fn on_core(&mut self, _: Time, _: Who, _: &Event) {}

    fn detail(&self) -> Detail {
        Detail::Everything
    }
}

/// Four connections of one session. The first sends its request at once, the next two after one and
/// two objects, and the last never.
fn session(_: usize, _: usize) -> Vec<Ends> {
    let session = Session::default();
    let lane = |after| -> Ends {
        let session = Arc::clone(&session);
        (
            Box::new(Asker { session, after, missing: None, open: false, left: false }),
            Box::<Answerer>::default(),
        )
    };
    [0, 1, 2, 9].map(lane).into_iter().collect()
}

#[test]
fn connections_open_when_they_are_needed_and_their_measures_add_up() {
    let paths = vec![limited("wifi", 20, ms(20)), limited("lte", 10, ms(60))];
    let spec = spec("minrtt", "cubic", 2, Config::default());
    let mut setup = setup(paths, &spec, "web:google");
    setup.linger = true;
    let mut seen = Seen::default();
    let outcome = run_apps(&setup, &session, &mut seen);
    assert_eq!(outcome.violation, None);
    assert!(outcome.over, "the connection that was never opened is waited for");
    // The second connection opens when the first object is complete, the third after the second
    // object.
    let reads: Vec<Time> = seen.reads.iter().map(|read| read.1).collect();
    assert_eq!(seen.reads.iter().map(|read| read.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(seen.syns, [(443, at(0)), (444, reads[0]), (445, reads[1])]);
    // One session has one outcome, with the shares of all three connections.
    let [pair] = &outcome.pairs[..] else { panic!("one pair") };
    let [session] = &pair[..] else { panic!("one session") };
    let all: u64 = seen.carried.iter().sum();
    assert_eq!(all, 3 * OBJECT);
    for (path, carried) in seen.carried.iter().enumerate() {
        let share = session.measures.paths[path].path_share.unwrap();
        assert_eq!(share, *carried as f64 / all as f64);
    }
    // Each object counts from its request, sent at the end of the handshake, to its last byte.
    let begun = seen.syns.iter().map(|syn| syn.1 + ms(20));
    let times: Vec<_> = begun.zip(&reads).map(|(asked, read)| read.since(asked)).collect();
    let mean = times.iter().map(|time| time.as_millis_f64()).sum::<f64>() / 3.0;
    let measured = session.measures.object_time_ms.unwrap();
    assert_eq!(measured.n, 3);
    assert!((measured.mean - mean).abs() < 0.1, "{} {mean}", measured.mean);
}
