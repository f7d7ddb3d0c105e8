//! A silent path never blocks a connection. Each scheduler finishes within two timeouts plus 1.1
//! times the remaining data at the survivor's rate.

use crate::common;
use crate::common::{at, limited, ms, setup, silent, spec};
use plait_app::{AppEvent, Role};
use plait_base::{Span, SubflowId, Time};
use plait_core::{Config, Event, JoinTiming};
use plait_sim::{Setup, Watch, Who, run_watched};

const SIZE: u64 = 4_000_000;
/// Payload rate of the survivor in bytes per second: 4 Mbit/s, 1428 of 1500 bytes.
const SURVIVOR: f64 = 4e6 / 8.0 * 0.952;

/// Records the bytes read before the outage, and the longest timeout of the silent path after it.
struct Notes {
    down: Time,
    read: u64,
    rto: Span,
}

impl Watch for Notes {
    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if let AppEvent::Read { data } = event
            && who.host == Role::Client
            && now <= self.down
        {
            self.read = data.end.get();
        }
    }

    fn on_core(&mut self, _now: Time, _who: Who, event: &Event) {
        if let Event::Timeout { subflow: SubflowId(0), rto } = event
            && self.rto == Span::ZERO
        {
            self.rto = *rto;
        }
    }
}

#[test]
fn a_fast_path_that_falls_silent_for_ever_holds_nobody() {
    let mut wrong = Vec::new();
    // In steady state, in slow start, during the join, between the SYN/ACK and the first data,
    // before the request has arrived, and from the start.
    for down in [1_000, 300, 120, 60, 45, 30, 20, 0] {
        for scheduler in [
            "minrtt",
            "roundrobin",
            "redundant",
            "ecf",
            "blest",
            "blest:mode=paper",
            "minrtt+rp",
            "otias",
            "sttf",
            "daps",
        ] {
            let down = Time::ZERO + ms(down);
            let wifi = silent(limited("wifi", 25, ms(25)), down, Time::NEVER);
            let paths = vec![wifi, limited("lte", 4, ms(75))];
            let spec = spec(scheduler, "cubic", 2, Config::default());
            let setup = setup(paths, &spec, &format!("download:{SIZE}B"));
            let mut notes = Notes { down, read: 0, rto: Span::ZERO };
            let outcome = run_watched(&setup, &mut notes);
            assert_eq!(outcome.violation, None);
            let done = outcome.pairs[0][0].measures.completion_ms.unwrap_or(f64::INFINITY);
            // Before its first sample, a subflow's timeout is one second (RFC 6298).
            let rto = if notes.rto == Span::ZERO { Span::from_secs(1) } else { notes.rto };
            let left = (SIZE - notes.read) as f64 / SURVIVOR * 1e3;
            let bound =
                down.since(Time::ZERO).as_millis_f64() + 2.0 * rto.as_millis_f64() + 1.1 * left;
            if done > bound {
                wrong.push(format!(
                    "{scheduler}, silent at {down:?}: {done:.0} ms > {bound:.0} ms (rto {rto})"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn early_joins_get_through_where_the_first_handshake_does_not() {
    let mut wrong = Vec::new();
    for join in [JoinTiming::AfterSynAck, JoinTiming::Simultaneous] {
        for down in [0, 5, 13, 15, 20, 24, 30, 45] {
            for workload in ["download", "upload"] {
                let down = Time::ZERO + ms(down);
                let wifi = silent(limited("wifi", 25, ms(25)), down, Time::NEVER);
                let paths = vec![wifi, limited("lte", 4, ms(75))];
                let spec =
                    spec("minrtt", "cubic", 2, Config::default().with(|it| it.joins.timing = join));
                let setup = setup(paths, &spec, &format!("{workload}:{SIZE}B"));
                let outcome = common::checked(&setup);
                let done = outcome.pairs[0][0].measures.completion_ms.unwrap_or(f64::INFINITY);
                // Two timeouts of a second before any sample, and all data on the survivor.
                let bound = 2_000.0 + 1.1 * SIZE as f64 / SURVIVOR * 1e3;
                if done > bound {
                    wrong
                        .push(format!("{join:?}, {workload}, {down:?}: {done:.0} > {bound:.0} ms"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_slow_path_may_fall_silent_too() {
    for scheduler in ["minrtt", "roundrobin", "redundant", "ecf", "blest", "otias", "sttf", "daps"]
    {
        let lte = silent(limited("lte", 4, ms(75)), Time::ZERO + ms(500), Time::NEVER);
        let paths = vec![limited("wifi", 25, ms(25)), lte];
        let spec = spec(scheduler, "cubic", 2, Config::default());
        let outcome = common::checked(&setup(paths, &spec, &format!("download:{SIZE}B")));
        let done = outcome.pairs[0][0].measures.completion_ms.unwrap_or(f64::INFINITY);
        assert!(done < 2_500.0, "{scheduler}: {done} ms");
    }
}

/// Counts bytes on a subflow after `heals` that extend the client's stream. Bytes that other paths
/// had delivered before do not count.
struct Again {
    subflow: SubflowId,
    heals: Time,
    bytes: u64,
    /// Time at which the count reached [`ENOUGH`].
    enough: Option<Time>,
}

/// More than the bytes of probes and of one lost window.
const ENOUGH: u64 = 500_000;

impl Again {
    /// Returns the time from the repair of the path to [`ENOUGH`].
    fn on(setup: &Setup, subflow: u8, heals: Time) -> Option<Span> {
        let subflow = SubflowId(subflow);
        let mut again = Again { subflow, heals, bytes: 0, enough: None };
        let outcome = run_watched(setup, &mut again);
        assert_eq!(outcome.violation, None);
        again.enough.map(|at| at.since(heals))
    }
}

impl Watch for Again {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if let Event::DataReadable { subflow, data, .. } = event
            && who.host == Role::Client
            && *subflow == self.subflow
            && now >= self.heals
        {
            self.bytes += data.len();
            if self.bytes >= ENOUGH {
                self.enough.get_or_insert(now);
            }
        }
    }
}

#[test]
fn a_healed_path_delivers_new_data_again_within_two_seconds() {
    for (down, up) in [(1_000, 4_000), (1_000, 21_000), (500, 61_000)] {
        // Excludes DAPS, which plans a whole send buffer for the small window after the timeout.
        for scheduler in ["minrtt", "roundrobin", "redundant", "ecf", "blest", "otias", "sttf"] {
            let heals = at(up);
            let wifi = silent(limited("wifi", 25, ms(25)), at(down), heals);
            let paths = vec![wifi, limited("lte", 4, ms(75))];
            let spec = spec(scheduler, "cubic", 2, Config::default());
            let wait = Again::on(&setup(paths, &spec, &format!("bulk:{}ms", up + 4_000)), 0, heals);
            assert!(wait.is_some_and(|wait| wait <= ms(2_000)), "{scheduler}, {up} ms: {wait:?}");
        }
    }
}

#[test]
fn all_paths_silent_for_thirty_seconds_flow_again_within_five() {
    for scheduler in ["minrtt", "roundrobin", "redundant", "ecf", "blest", "otias", "sttf", "daps"]
    {
        let (down, heals) = (at(2_000), at(32_000));
        let paths = vec![
            silent(limited("wifi", 25, ms(25)), down, heals),
            silent(limited("lte", 4, ms(75)), down, heals),
        ];
        let spec = spec(scheduler, "cubic", 2, Config::default());
        let setup = setup(paths, &spec, "bulk:50s");
        let wait = Again::on(&setup, 0, heals);
        assert!(wait.is_some_and(|wait| wait <= ms(5_000)), "{scheduler}: {wait:?}");
    }
}

#[test]
fn without_probes_a_healed_path_waits_for_its_timeout() {
    let heals = at(23_000);
    let wifi = silent(limited("wifi", 25, ms(25)), at(1_000), heals);
    let config = Config::default().with(|it| it.joins.probe = None);
    let spec = spec("minrtt", "cubic", 2, config);
    let setup = setup(vec![wifi, limited("lte", 4, ms(75))], &spec, "bulk:60s");
    let wait = Again::on(&setup, 0, heals);
    assert!(wait.is_none_or(|wait| wait > ms(2_000)), "{wait:?}");
}
