//! Addresses that clients lose and regain during a connection.

use crate::common::{at, limited, ms, setup, spec, watched};
use plait_app::{AppEvent, Role};
use plait_base::{PathId, Span, Time};
use plait_core::{Config, ConnectionState};
use plait_sim::{Direction, Hop, PathSetup, Setup, Watch, Who, run_watched};
use plait_wire::{Flags, Mptcp, Segment};
use std::net::IpAddr;

#[derive(Default)]
struct Seen {
    /// Time of the last read; `gap` is the longest time between two reads.
    last_read: Option<Time>,
    gap: Span,
    /// Data delivered to the client: time and path.
    data: Vec<(Time, PathId)>,
    /// REMOVE_ADDR sent: time and path.
    removals: Vec<(Time, PathId)>,
    /// SYNs sent: time and path.
    syns: Vec<(Time, PathId)>,
}

impl Watch for Seen {
    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if let (Role::Client, AppEvent::Read { .. }) = (who.host, event)
            && let Some(last) = self.last_read.replace(now)
        {
            self.gap = self.gap.max(now.since(last));
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        if hop == Hop::Delivered && way == Direction::Down && !segment.payload.is_empty() {
            self.data.push((now, path));
        }
        if hop == Hop::Sent
            && matches!(segment.options.mptcp.as_deref(), Some(Mptcp::RemoveAddr(_)))
        {
            self.removals.push((now, path));
        }
        if hop == Hop::Sent && segment.flags == Flags::SYN {
            self.syns.push((now, path));
        }
    }
}

fn two_paths(workload: &str, config: Config) -> Setup {
    let paths = vec![limited("one", 8, ms(30)), limited("two", 6, ms(50))];
    setup(paths, &spec("minrtt", "cubic", 2, config), workload)
}

fn removed(path: &mut PathSetup, from: u64, to: u64) {
    path.removed.push((at(from), at(to)));
}

/// R46: the client sends REMOVE_ADDR on the other path. Data in flight is delivered there within
/// 300 ms. When the address is back, its path carries data after two round trips.
#[test]
fn an_address_goes_and_comes_back() {
    for scheduler in ["minrtt", "blest", "ecf", "roundrobin", "redundant", "otias", "sttf", "daps"]
    {
        let mut setup = two_paths("download:8MB", Config::default());
        let spec = spec(scheduler, "cubic", 2, Config::default());
        setup.pairs[0].connections[0].client = spec.clone();
        setup.pairs[0].connections[0].server = spec;
        removed(&mut setup.paths[0], 1_000, 3_000);
        let seen = watched::<Seen>(&setup);
        assert_eq!(seen.removals, [(at(1_000), PathId(1))], "{scheduler}");
        assert!(seen.gap <= ms(300), "{scheduler}: a gap of {}", seen.gap);
        let meanwhile = |(time, path): &&(Time, PathId)| {
            *path == PathId(0) && *time > at(1_016) && *time < at(3_000)
        };
        assert_eq!(seen.data.iter().filter(meanwhile).count(), 0, "{scheduler}");
        let back = seen.data.iter().find(|(time, path)| *path == PathId(0) && *time >= at(3_000));
        let back = back.map(|(time, _)| time.since(at(3_000)));
        assert!(back.is_some_and(|back| back <= ms(2 * 30 + 15)), "{scheduler}: {back:?}");
    }
}

/// R58: if the only usable address is absent for 20 s, the connection waits and then continues.
#[test]
fn every_address_is_gone_for_a_while() {
    let mut setup = two_paths("download:4MB", Config::default());
    for path in &mut setup.paths {
        removed(path, 1_000, 21_000);
    }
    let seen = watched::<Seen>(&setup);
    let resumed = seen.data.iter().find(|(time, _)| *time > at(1_100)).map(|(time, _)| *time);
    assert!(resumed.is_some_and(|time| time < at(21_200)), "{resumed:?}");
    assert!(seen.syns.iter().all(|(time, _)| *time < at(1_000) || *time >= at(21_000)));
}

/// R58: if the address is absent for more than a minute, the connection fails at both ends.
#[test]
fn every_address_is_gone_for_too_long() {
    let mut setup = two_paths("download:4MB", Config::default());
    for path in &mut setup.paths {
        removed(path, 1_000, 100_000);
    }
    setup.until = at(200_000);
    let mut seen = Seen::default();
    let outcome = run_watched(&setup, &mut seen);
    assert!(!outcome.complete() && outcome.violation.is_none());
    let ends = &outcome.pairs[0][0];
    for end in [&ends.client, &ends.server] {
        assert_eq!(end.as_ref().map(|end| end.state), Some(ConnectionState::Failed));
    }
}

/// The same with four subflows: both subflows of the address are lost, and both are re-established.
#[test]
fn a_mesh_loses_an_address() {
    let mut setup = two_paths("download:8MB", Config::default());
    let connection = &mut setup.pairs[0].connections[0];
    for end in [&mut connection.client, &mut connection.server] {
        end.addresses = vec![IpAddr::from([10, 0, 0, 2])];
    }
    removed(&mut setup.paths[0], 1_000, 3_000);
    let seen = watched::<Seen>(&setup);
    let again: Vec<_> = seen.syns.iter().filter(|(time, _)| *time > at(500)).collect();
    assert_eq!(again, [&(at(3_000), PathId(0)); 2]);
}

/// An address that is lost while the first SYN is in flight.
#[test]
fn an_address_goes_during_the_handshake() {
    for from in [0, 1, 14, 20, 31, 47, 60, 80, 120] {
        let mut setup = two_paths("download:500kB", Config::default());
        removed(&mut setup.paths[0], from, 60_000);
        let seen = watched::<Seen>(&setup);
        assert!(
            seen.last_read.is_some_and(|time| time < at(6_000)),
            "{from}: {:?}",
            seen.last_read
        );
    }
}

/// R26, R58: the only address is lost at any millisecond of the closing and returns two seconds
/// later. Both ends learn that all data has arrived.
#[test]
fn an_address_goes_at_the_very_end() {
    for workload in ["download:200kB", "upload:200kB"] {
        let paths = vec![limited("one", 8, ms(30))];
        let mut undisturbed =
            setup(paths, &spec("minrtt", "cubic", 1, Config::default()), workload);
        undisturbed.linger = true;
        let end = run_watched(&undisturbed, &mut Seen::default()).ended.since(Time::ZERO);
        let end = end.as_micros() / 1_000;
        for from in end - 150..end + 5 {
            let mut setup = undisturbed.clone();
            removed(&mut setup.paths[0], from, from + 2_000);
            let outcome = run_watched(&setup, &mut Seen::default());
            assert_eq!(outcome.violation, None);
            assert!(outcome.complete() && outcome.over, "{workload}, {from}");
            let ends = &outcome.pairs[0][0];
            for stats in [&ends.client, &ends.server] {
                let state = stats.as_ref().map(|stats| stats.state);
                assert_eq!(state, Some(ConnectionState::Closed), "{workload}, {from} of {end}");
            }
        }
    }
}

/// R14: if the server denies joins to its first address, the mesh consists of the first subflow and
/// the subflows to the announced address.
#[test]
fn a_mesh_uses_announced_addresses_only() {
    let mut setup = two_paths("download:2MB", Config::default());
    let connection = &mut setup.pairs[0].connections[0];
    for end in [&mut connection.client, &mut connection.server] {
        end.addresses = vec![IpAddr::from([10, 0, 0, 2])];
    }
    connection.server.config.joins.deny = true;
    let mut seen = Seen::default();
    let outcome = run_watched(&setup, &mut seen);
    assert!(outcome.complete() && outcome.violation.is_none());
    let client = outcome.pairs[0][0].client.as_ref().unwrap();
    let ends: Vec<_> = client.subflows.iter().map(|s| (s.path.0, s.server.0)).collect();
    assert_eq!(ends, [(0, 0), (0, 1), (1, 1)]);
    assert_eq!(seen.syns.len(), 3);
}
