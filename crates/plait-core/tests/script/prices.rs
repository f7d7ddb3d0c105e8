//! Which path is dialled if paths have a cost or a quota.

use crate::harness::{PORT, Script, multipath, plain, spec};
use crate::segment::{ACK, SYN, Seg, want};
use plait_base::{PathId, Span};
use plait_core::{
    Config, ConnectionSpec, ConnectionState, Dial, MemorySettings, PathEntry, PathKey, PathName,
    PathRecord, Quota,
};
use std::net::IpAddr;

/// A quota with room for a full segment, and one without.
const ROOM: Option<u64> = Some(10_000);
const SPENT: Option<u64> = Some(1_000);

/// Returns the settings for paths with these costs and quotas.
fn priced(config: Config, prices: &[(u32, Option<u64>)]) -> ConnectionSpec {
    let mut spec = spec(config, prices.len() as u32, None);
    for (path, (cost, quota)) in spec.paths.iter_mut().zip(prices) {
        (path.cost, path.quota) = (*cost, *quota);
    }
    spec
}

/// Returns the path and the time in milliseconds of each SYN that a client sends if none is answered.
fn syns(spec: ConnectionSpec, millis: u64) -> Vec<(u32, f64)> {
    let mut s = Script::client(spec);
    s.after(millis);
    let sent = s.out.iter().filter(|(_, seg, _)| seg.flags == SYN);
    sent.map(|(at, seg, _)| (seg.path, at.as_nanos() as f64 / 1e6)).collect()
}

/// The connection begins on the cheapest path. A path with a used-up quota comes last.
#[test]
fn the_cheapest_path_is_dialled_first() {
    let free = (0, None);
    for (prices, first) in [
        (vec![free, free], 0),
        (vec![(1, None), free], 1),
        (vec![(2, None), (1, None), (1, None)], 1),
        (vec![(1, None), (2, None), free], 2),
        (vec![(0, ROOM), free], 0),
        (vec![(0, SPENT), free], 1),
        (vec![(0, SPENT), (1, ROOM)], 1),
        (vec![(0, SPENT), (2, None), (1, SPENT), (1, None)], 3),
        (vec![(2, SPENT), (1, SPENT)], 1),
    ] {
        for dial in [Dial::Any, Dial::Primary] {
            let config = multipath().with(|it| it.joins.dial = dial);
            let syns = syns(priced(config, &prices), 10);
            assert_eq!(syns, [(first, 0.0)], "{prices:?}");
        }
    }
}

/// A backup takes the place of the first path only if all other quotas are used up.
#[test]
fn a_cheap_backup_does_not_replace_the_first_path() {
    for (prices, backup, first) in [
        ([(1, None), (0, None)], 1, 0),
        ([(0, None), (0, None)], 0, 0),
        ([(1, None), (0, None)], 0, 1),
        ([(0, SPENT), (1, None)], 1, 1),
    ] {
        let mut spec = priced(multipath(), &prices);
        spec.paths[backup].backup = true;
        assert_eq!(syns(spec, 10), [(first, 0.0)], "{prices:?}, backup {backup}");
    }
}

/// The price that the user has set replaces that of the path.
#[test]
fn a_price_that_is_set_later_counts() {
    for (cost, quota) in [(1, None), (0, Some(Quota::new(1_000)))] {
        let mut s = Script::client(spec(multipath(), 2, None));
        s.endpoint.abort(s.now, s.id).unwrap();
        s.after(1);
        s.lose_all();
        s.endpoint.set_price(PathId(0), cost, quota);
        s.id = s.endpoint.connect(s.now, PORT, spec(multipath(), 2, None)).unwrap();
        s.drain();
        s.expect(want(1, SYN));
    }
}

/// The memory chooses among the cheapest paths.
#[test]
fn the_memory_prefers_no_path_with_a_higher_price() {
    let own = |path: u32| IpAddr::from([10, 0, 0, path as u8]);
    let theirs = IpAddr::from([10, 9, 0, 1]);
    for (costs, first) in [([0, 0, 0], 2), ([2, 1, 1], 2), ([0, 1, 1], 0), ([1, 0, 0], 2)] {
        let mut s = Script::client(spec(multipath(), 1, None));
        s.lose_all();
        s.endpoint.remember_paths(&MemorySettings::default());
        let memory = s.endpoint.path_memory().unwrap();
        for path in 0..3 {
            memory.name(PathId(path), PathName { own: Some(own(path)), theirs });
            let (rate, min_rtt) = (Some(1_000_000 << path), Some(Span::from_millis(30)));
            let record = PathRecord { rate, min_rtt, ..PathRecord::default() };
            let key = PathKey::new(own(path), theirs);
            memory.restore(s.now, &PathEntry { key, record, age: Span::ZERO });
        }
        let spec = priced(multipath(), &costs.map(|cost| (cost, None)));
        s.id = s.endpoint.connect(s.now, PORT, spec).unwrap();
        s.drain();
        s.expect(want(first, SYN));
    }
}

/// A path with a higher price is dialled 250 ms after the repetition of the SYN. Later, all paths take
/// turns.
#[test]
fn a_path_with_a_higher_price_is_dialled_if_the_cheaper_one_is_down() {
    let slow = [(0, 0.0), (0, 1_000.0), (1, 1_250.0), (0, 2_250.0), (1, 4_250.0)];
    for prices in [[(0, None), (1, None)], [(1, None), (2, None)], [(5, None), (0, SPENT)]] {
        assert_eq!(syns(priced(multipath(), &prices), 5_000), slow, "{prices:?}");
    }
    let soon = [(0, 0.0), (1, 250.0), (0, 1_250.0), (1, 3_250.0)];
    for prices in [[(1, None), (1, None)], [(0, ROOM), (0, None)], [(0, None), (0, ROOM)]] {
        assert_eq!(syns(priced(multipath(), &prices), 5_000), soon, "{prices:?}");
    }
    // Without probes, and with plain TCP, each SYN has its timeout.
    for config in [plain(), multipath().with(|it| it.joins.probe = None)] {
        let syns = syns(priced(config, &[(0, None), (1, None)]), 3_500);
        assert_eq!(syns, [(0, 0.0), (0, 1_000.0), (1, 3_000.0)]);
    }
}

/// Paths with the same price are all tried before a path with a higher one.
#[test]
fn prices_are_dialled_in_turn() {
    let prices = [(3, None), (0, None), (1, None), (0, None)];
    let syns = syns(priced(multipath(), &prices), 5_000);
    let expected = [(1, 0.0), (3, 250.0), (3, 1_250.0), (2, 1_500.0), (2, 2_500.0), (0, 2_750.0)];
    assert_eq!(syns[..6], expected);
    assert!(syns[6..].iter().all(|(_, at)| *at >= 3_750.0), "{syns:?}");
}

/// If the address of the cheaper path goes away, the other path is dialled at once.
#[test]
fn a_path_with_a_higher_price_replaces_a_lost_address() {
    let mut s = Script::client(priced(multipath(), &[(0, None), (1, None)]));
    s.expect(want(0, SYN));
    s.after(100);
    s.endpoint.lose_address(s.now, PathId(0));
    s.drain();
    s.expect(want(1, SYN).at(100.0));
    s.after(10_000);
    assert!(s.out.iter().all(|(_, seg, _)| seg.path == 1));
}

/// If the address of the costly path goes away before the dial, the SYNs have their usual timeouts.
#[test]
fn a_lost_costly_path_changes_no_timeout() {
    let mut s = Script::client(priced(multipath(), &[(0, None), (1, None)]));
    s.after(1_100);
    s.endpoint.lose_address(s.now, PathId(1));
    s.after(12_000);
    let at: Vec<f64> = s.out.iter().map(|(at, ..)| at.as_nanos() as f64 / 1e6).collect();
    assert_eq!(at, [0.0, 1_000.0, 1_250.0, 3_250.0, 7_250.0]);
}

/// A late answer on the cheaper path opens the connection there.
#[test]
fn the_cheaper_path_may_still_answer() {
    let mut s = Script::client(priced(multipath(), &[(0, None), (1, None)]));
    s.after(1_300);
    for (path, at) in [(0, 0.0), (0, 1_000.0)] {
        s.expect(want(path, SYN).at(at));
    }
    let late = s.syn_ack(0);
    s.expect(want(1, SYN).at(1_250.0));
    s.send(late);
    s.expect(want(0, ACK).mptcp("capable2"));
    assert_eq!(s.state(), ConnectionState::Open);
    s.send(Seg { path: 1, ..s.syn_ack(0) });
    s.expect(want(1, plait_wire::Flags::RST));
}
