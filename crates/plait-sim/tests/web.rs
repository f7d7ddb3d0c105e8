//! Pages over HTTP/1.1 and HTTP/2, measured from the traffic.

use crate::common;
use crate::common::{at, ideal, limited, ms, setup, spec, with_loss};
use plait_app::workload::web::Http;
use plait_app::{AppEvent, Role, Workload};
use plait_base::{Rate, Span, Time};
use plait_core::{Carry, Config, Detail, Event};
use plait_link::RateSource;
use plait_sim::{ConnectionOutcome, PathSetup, Setup, Watch, Who, run_watched};
use std::collections::BTreeMap;

const PAGES: [(&str, u64, u64, u64); 6] = [
    ("google", 6, 906_147, 1_028),
    ("wikipedia", 19, 131_954, 1_027),
    ("instagram", 30, 1_671_349, 478),
    ("amazon", 59, 1_200_666, 2_032),
    ("guardian", 228, 3_147_398, 7_978),
    ("huffpost", 141, 3_132_974, 12_420),
];

/// Traffic of the connections.
#[derive(Default)]
struct Traffic {
    /// Bytes sent for the first time by the client and by the server.
    sent: [u64; 2],
    /// Times of each object's request and arrival.
    objects: BTreeMap<u64, (Time, Option<Time>)>,
    /// Open connections, and the requests pending on each.
    open: BTreeMap<usize, u64>,
    most_at_once: u64,
    loaded: Option<Time>,
}

impl Watch for Traffic {
    fn on_core(&mut self, _: Time, who: Who, event: &Event) {
        if let Event::DataSent { data, carry: Carry::New, .. } = event {
            self.sent[usize::from(who.host == Role::Server)] += data.len();
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        let open = self.open.entry(who.connection).or_default();
        match *event {
            AppEvent::ObjectAsked { id } => {
                *open += 1;
                self.most_at_once = self.most_at_once.max(*open);
                assert!(self.objects.insert(id, (now, None)).is_none(), "asked for twice");
            }
            AppEvent::ObjectRead { id } => {
                *open -= 1;
                let object = self.objects.get_mut(&id).expect("was asked for");
                assert!(object.1.replace(now).is_none(), "came twice");
            }
            AppEvent::Loaded => assert!(self.loaded.replace(now).is_none(), "loaded twice"),
            _ => {}
        }
    }

    fn detail(&self) -> Detail {
        Detail::Everything
    }
}

fn load(setup: &Setup) -> (Traffic, ConnectionOutcome) {
    let mut seen = Traffic::default();
    let mut outcome = run_watched(setup, &mut seen);
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete() && outcome.over, "ended at {:?}", outcome.ended);
    let session = outcome.pairs.remove(0).remove(0);
    assert_eq!(
        session.measures.page_load_ms,
        seen.loaded.map(|at| at.since(Time::ZERO).as_millis_f64())
    );
    assert!(seen.objects.values().all(|(_, came)| came.is_some()));
    (seen, session)
}

fn over(paths: Vec<PathSetup>, scheduler: &str, workload: &str) -> Setup {
    let config = Config { multipath: paths.len() > 1, ..Config::default() };
    let spec = spec(scheduler, "cubic", paths.len(), config);
    setup(paths, &spec, workload)
}

/// A path that takes (almost) no time.
fn instant() -> PathSetup {
    ideal("none", Span::from_nanos(200))
}

/// Claim web-u1.
#[test]
fn pages_have_the_objects_and_bytes_that_were_measured_and_take_as_long_as_computing_does() {
    for (name, objects, bytes, floor) in PAGES {
        for http in ["http=1", "http=2"] {
            let text = format!("web:{name},{http}");
            let (seen, session) = load(&over(vec![instant()], "minrtt", &text));
            assert_eq!(seen.objects.len() as u64, objects, "{text}");
            let Ok(Workload::Web(web)) = Workload::parse(&text) else { panic!("a page") };
            let (request, head) = web.http().head_bytes();
            let [up, down] = seen.sent;
            match web.http() {
                Http::One { .. } => {
                    assert_eq!(down - objects * head as u64, bytes, "{text}");
                    assert_eq!(up, objects * request as u64);
                }
                Http::Two { .. } => {
                    // Frame headers of nine bytes: one for each 16 KiB of a body, and two SETTINGS.
                    let bodies = down - objects * head as u64 - 18;
                    let frames = (bodies - bytes) / 9;
                    assert_eq!(bodies, bytes + 9 * frames, "{text}");
                    assert!((objects..=objects + bytes / 16_384).contains(&frames), "{frames}");
                }
            }
            let load = session.measures.page_load_ms.expect("loaded");
            assert!((load - floor as f64).abs() < 1.0, "{text}: {load} ms, not {floor}");
        }
    }
}

/// If computing takes no time and the link is fast, an object costs one round trip of a connection.
/// Connections therefore divide the time. (The experiment web-model judges the claims web-h1 and
/// web-h2.)
#[test]
fn connections_divide_the_time_of_the_guardian() {
    for rtt in [80, 194] {
        let time = |connections: u64| {
            let path = PathSetup {
                nic_down: Rate::from_bps(1_000_000_000),
                ..limited("path", 100, ms(rtt))
            };
            let text = format!("web:guardian,http=1,connections={connections},think=off");
            let (seen, session) = load(&over(vec![path], "minrtt", &text));
            assert_eq!((seen.open.len() as u64, seen.most_at_once), (connections, 1));
            session.measures.page_load_ms.expect("loaded")
        };
        let [one, six, eighteen] = [1, 6, 18].map(time);
        let rounds = one / (228.0 * rtt as f64);
        assert!((1.0..=1.35).contains(&rounds), "{rounds} round trips an object");
        assert!((4.5..6.0).contains(&(one / six)), "six: {}", one / six);
        assert!((8.0..18.0).contains(&(one / eighteen)), "eighteen: {}", one / eighteen);
    }
}

#[test]
fn objects_of_http_2_come_in_turns_on_one_connection() {
    let path = limited("path", 8, ms(40));
    let (seen, session) = load(&over(vec![path], "minrtt", "web:google,think=off"));
    assert_eq!(seen.open.len(), 1);
    assert!(seen.most_at_once > 2, "{} at once", seen.most_at_once);
    // Mean time computed from the traffic.
    let took = seen.objects.values().map(|(asked, came)| came.expect("came").since(*asked));
    let mean = took.map(|took| took.as_millis_f64()).sum::<f64>() / 6.0;
    let measured = session.measures.object_time_ms.expect("objects");
    assert_eq!(measured.n, 6);
    assert!((measured.mean - mean).abs() < 1e-6);
}

/// RFC 9113 section 6.9: the data in flight never exceeds the windows, so each round trip delivers
/// one window.
#[test]
fn a_small_window_of_http_2_holds_the_server_back() {
    let wide = PathSetup {
        down: plait_link::LinkConfig::new(RateSource::Fixed(Rate::INFINITE), ms(50)),
        ..ideal("path", ms(100))
    };
    let time = |workload: &str| {
        let (_, session) = load(&over(vec![wide.clone()], "minrtt", workload));
        session.measures.page_load_ms.expect("loaded")
    };
    let [small, large] = ["web:google,window=64KiB,think=off", "web:google,think=off"].map(time);
    // 906 kB in windows of 64 kB take at least fourteen round trips; WINDOW_UPDATE covers half a
    // window.
    assert!((1_400.0..2_800.0).contains(&small), "{small}");
    assert!(large < 1_000.0, "{large}");
}

#[test]
fn pages_load_over_two_paths_with_loss_whatever_the_protocol() {
    for http in ["http=1", "http=1,connections=1", "http=2", "http=2,window=20kB"] {
        let paths =
            vec![with_loss(limited("wifi", 25, ms(15)), 10_000_000), limited("3g", 4, ms(70))];
        let mut setup = over(paths, "minrtt", &format!("web:amazon,{http}"));
        setup.linger = true;
        let (seen, session) = load(&setup);
        let shares: f64 = session.measures.paths.iter().filter_map(|path| path.path_share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        assert_eq!(seen.objects.len(), 59);
    }
}

#[test]
fn a_run_whose_paths_are_dead_ends_without_a_page() {
    let path = common::silent(limited("wifi", 25, ms(15)), at(300), Time::NEVER);
    let mut setup = over(vec![path], "minrtt", "web:amazon,http=1");
    setup.until = at(30_000);
    let outcome = plait_sim::run(&setup);
    assert!(!outcome.complete());
    let measures = &outcome.pairs[0][0].measures;
    assert_eq!(measures.page_load_ms, None);
    assert!(measures.object_time_ms.is_some_and(|time| time.n < 59));
}
