//! Bounds computed by hand.

use crate::compare::Cell;
use crate::compare::cells;
use crate::scenario::{RawScenario, no_files};

/// Returns the first row of a comparison with these arguments.
fn cell(paths: &[&str], workload: &str, more: &[(&'static str, &str)]) -> Cell {
    let mut raw = RawScenario::new();
    for path in paths {
        raw.argument("path", path).unwrap();
    }
    raw.argument("workload", workload).unwrap();
    raw.argument("exact", "on").unwrap();
    for (name, text) in more {
        raw.argument(name, text).unwrap();
    }
    let scenario = raw.build_with(&no_files).unwrap();
    cells(&scenario).remove(0)
}

fn bound(paths: &[&str], workload: &str, more: &[(&'static str, &str)], measure: &str) -> f64 {
    let bound = crate::simulated::bound_of(&cell(paths, workload, more), 1).unwrap();
    bound.of_measure(measure).unwrap()
}

/// Asserts that two times in ms differ by at most a microsecond.
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-3, "{found} in place of {expected}");
}

const FIXED: &[(&str, &str)] = &[("cc", "fixed:cwnd=1000"), ("rcvbuf", "1GB"), ("sndbuf", "1GB")];
const GREAT: &[(&str, &str)] = &[("rcvbuf", "1GB"), ("sndbuf", "1GB")];

#[test]
fn one_path_carries_its_rate_after_the_handshake() {
    // SYN, SYN/ACK, request: 30 ms. One way: 10 ms. 1,448,000 bytes are 1,500,000 on the wire, which
    // are 1,200 ms at 10 Mbit/s.
    let found = bound(&["a:rtt=20ms,rate=10mbit"], "download:1448kB", FIXED, "completion_ms");
    assert_near(found, 30.0 + 10.0 + 1_200.0);
    // The client may send with the third ACK: after 20 ms.
    let found = bound(&["a:rtt=20ms,rate=10mbit"], "upload:1448kB", FIXED, "completion_ms");
    assert_near(found, 20.0 + 10.0 + 1_200.0);
}

#[test]
fn two_paths_add_up_from_the_time_at_which_each_is_open() {
    // a begins to arrive at 40 ms, b at 200 ms. By then a has carried 160 ms of 10 Mbit/s, 200,000
    // bytes. Both together have 15 Mbit/s for the other 1,300,000 bytes: 693.33 ms.
    let paths = ["a:rtt=20ms,rate=10mbit", "b:rtt=100ms,rate=5mbit"];
    let found = bound(&paths, "download:1448kB", FIXED, "completion_ms");
    assert_near(found, 200.0 + 1_300.0 * 8.0 / 15.0);
}

#[test]
fn a_shared_link_limits_both_paths() {
    // The shared link has 8 Mbit/s: 1,500,000 bytes are 1,500 ms from 30 ms on, and no further delay.
    let paths = ["a:rtt=20ms,rate=10mbit,via=cell", "b:rtt=20ms,rate=5mbit,via=cell"];
    let link: &[(&str, &str)] = &[("link", "cell:rate=8mbit")];
    let found = bound(&paths, "download:1448kB", &[FIXED, link].concat(), "completion_ms");
    // Its packets arrive at once, but the paths' own delay of 10 ms still follows a handshake.
    assert_near(found, 30.0 + 1_500.0);
}

#[test]
fn slow_start_doubles_from_the_initial_window() {
    // Ten segments a window and 100 ms a round trip, at a rate that does not matter: 10, 30, 70, 150
    // segments by 200, 300, 400, 500 ms.
    let path = ["a:rtt=100ms,rate=inf,nic=inf"];
    for (segments, expected) in [(10, 200.0), (11, 300.0), (30, 300.0), (70, 400.0), (71, 500.0)] {
        let workload = format!("download:{}B", segments * 1_448);
        assert_near(bound(&path, &workload, GREAT, "completion_ms"), expected);
    }
    // At 11.584 Mbit/s the payload of ten segments, 14,480 bytes, takes 10.359 ms (15,000 on the wire).
    let slower = ["a:rtt=100ms,rate=11584kbit"];
    assert_near(
        bound(&slower, "download:20seg", GREAT, "completion_ms"),
        300.0 + 15_000.0 * 8.0 / 11_584.0,
    );
}

#[test]
fn the_rate_follows_slow_start_as_soon_as_it_is_reached() {
    // 1 Mbit/s and 100 ms: a window of ten segments takes 120 ms, so the link is never idle.
    let found = bound(&["a:rtt=100ms,rate=1mbit"], "download:100seg", GREAT, "completion_ms");
    assert_near(found, 200.0 + 100.0 * 12.0);
}

#[test]
fn a_buffer_lets_one_window_pass_in_a_round_trip() {
    // 64,000 bytes each 20 ms from 40 ms on: 640,000 bytes need ten rounds.
    let small: &[(&str, &str)] =
        &[("cc", "fixed:cwnd=1000"), ("rcvbuf", "64000B"), ("sndbuf", "1GB")];
    let path = ["a:rtt=20ms,rate=inf,nic=inf"];
    assert_near(bound(&path, "download:640000B", small, "completion_ms"), 40.0 + 9.0 * 20.0);
    // An acknowledgement may take the faster path back: 5 ms there and 5 ms back.
    let both =
        ["a:owd_down=5ms,owd_up=15ms,rate=inf,nic=inf", "b:owd_down=15ms,owd_up=5ms,rate=inf"];
    let found = bound(&both, "download:640000B", small, "completion_ms");
    assert_near(found, 30.0 + 9.0 * 10.0);
}

#[test]
fn a_rate_that_changes_counts_as_it_is() {
    // 4 Mbit/s until 1 s, then 16. From 30 ms to 1 s: 485,000 bytes. The other 1,015,000: 507.5 ms.
    let path = ["a:rtt=20ms,rate=4mbit@0s/16mbit@1s"];
    let found = bound(&path, "download:1448kB", FIXED, "completion_ms");
    assert_near(found, 1_000.0 + 507.5 + 10.0);
}

#[test]
fn a_bulk_transfer_has_a_goodput() {
    // 10 Mbit/s of IP packets from 40 ms to 2 s.
    let found = bound(&["a:rtt=20ms,rate=10mbit"], "bulk:2s", FIXED, "goodput_mbps");
    let expected = 10.0 * 1_448.0 / 1_500.0 * 1.96 / 2.0;
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn a_burst_takes_the_windows_of_warm_subflows() {
    // The example of the ToN paper: 15 segments, 10 ms: ten at 5 ms, five at 15 ms. A second path of
    // 100 ms would have them at 50 ms.
    let more: &[(&str, &str)] = &[("ideal", "on")];
    let one = bound(&["a:rtt=10ms"], "burst:15seg", more, "message_delay_ms");
    assert_near(one, 15.0);
    let two = bound(&["a:rtt=10ms", "b:rtt=20ms"], "burst:15seg", more, "message_delay_ms");
    assert_near(two, 10.0);
}

#[test]
fn messages_wait_for_those_before_them() {
    // A message of 14,480 bytes (15,000 on the wire) takes 15 ms at 8 Mbit/s and 5 ms of delay.
    let path = ["a:rtt=10ms,rate=8mbit"];
    let one = |interval: &str, measure| {
        bound(&path, &format!("stream:14480B@{interval},for=1s"), FIXED, measure)
    };
    assert_near(one("20ms", "message_delay_max_ms"), 20.0);
    // At one each 10 ms, the link is 5 ms a message behind: 100 messages.
    assert_near(one("10ms", "message_delay_max_ms"), 20.0 + 99.0 * 5.0);
    assert_near(one("10ms", "message_delay_median_ms"), 20.0 + 49.5 * 5.0);
}

#[test]
fn a_message_larger_than_the_buffer_takes_rounds() {
    let small: &[(&str, &str)] =
        &[("cc", "fixed:cwnd=1000"), ("rcvbuf", "10000B"), ("sndbuf", "1GB")];
    let path = ["a:rtt=10ms,rate=inf,nic=inf"];
    let found = bound(&path, "stream:25kB@100ms,for=1s", small, "message_delay_max_ms");
    assert_near(found, 5.0 + 2.0 * 10.0);
}

#[test]
fn a_run_has_its_share_of_the_bound() {
    let cell = cell(&["a:rtt=20ms,rate=10mbit,queue=2MB"], "download:1448kB", FIXED);
    let bound = crate::simulated::bound_of(&cell, 1).unwrap();
    let outcome = crate::compare::World::run(&crate::Simulator, &cell, 1);
    let share = bound.share("completion_ms", &outcome.measures).unwrap();
    // The run has the handshake's bytes and the header of the last segment in addition.
    assert!((0.99..=1.0).contains(&share), "{share}");
    assert_eq!(bound.share("ooo_delay_ms", &outcome.measures), None);
}

#[test]
fn workloads_without_messages_known_in_advance_have_none() {
    let page = cell(&["a:rtt=20ms,rate=10mbit"], "web:wikipedia", &[]);
    assert_eq!(crate::simulated::bound_of(&page, 1), None);
}
