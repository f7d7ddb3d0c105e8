//! Workloads over streams in memory. The one-way delay is 10 ms; the ends are open after 20 and 30
//! ms.

use super::fake::{Act, Setting, run};
use super::*;
use plait_base::{DataRange, Dsn, Time};
use proptest::prelude::*;

fn parse(text: &str) -> Workload {
    Workload::parse(text).unwrap()
}

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

#[test]
fn a_download_takes_two_round_trips() {
    // The SYN leaves at 5 ms, the client is open at 25, the request arrives at 35, the answer at
    // 45.
    let outcome = run(&parse("download:512kB"), &Setting::default(), ms(5));
    assert!(outcome.done && outcome.measures.complete);
    assert_eq!(outcome.client, [(ms(25), Act::Write(200)), (ms(45), Act::Finish)]);
    assert_eq!(outcome.server, [(ms(35), Act::Write(512_000)), (ms(35), Act::Finish)]);
    assert_eq!(outcome.measures.completion_ms, Some(40.0));
    let data = DataRange::between(0, 512_000);
    assert_eq!(outcome.when(Role::Client, AppEvent::Read { data }), Some(ms(45)));
    assert_eq!(outcome.when(Role::Server, AppEvent::RequestRead), Some(ms(35)));
    assert_eq!(outcome.when(Role::Server, AppEvent::Complete), Some(ms(55)));
}

#[test]
fn segments_are_those_of_the_connection_at_hand() {
    for payload in [1428, 1448] {
        let setting = Setting { payload, ..Setting::default() };
        let outcome = run(&parse("download:15seg"), &setting, ms(0));
        assert_eq!(outcome.server[0].1, Act::Write(15 * payload));
    }
}

#[test]
fn an_upload_writes_its_request_apart() {
    let outcome = run(&parse("upload:15seg"), &Setting::default(), ms(0));
    assert_eq!(
        outcome.client,
        [(ms(20), Act::Write(200)), (ms(20), Act::Write(15 * 1428)), (ms(20), Act::Finish)]
    );
    assert!(outcome.done);
    assert_eq!(outcome.server.len(), 1);
    assert_eq!(outcome.measures.completion_ms, Some(30.0));
    // 21,420 bytes in 30 ms, without the request.
    assert_eq!(outcome.measures.goodput_mbps, Some(5.712));
}

#[test]
fn the_request_waits_for_a_poll_of_its_own() {
    let setting = Setting { sndbuf: 64, ..Setting::default() };
    let outcome = run(&parse("upload:100B"), &setting, ms(0));
    assert!(outcome.done && outcome.measures.complete);
    let writes = outcome.client.iter().filter_map(|(_, act)| match act {
        Act::Write(count) => Some(*count),
        _ => None,
    });
    // 200 = 64 + 64 + 64 + 8. Then writes use the room that is left.
    assert_eq!(writes.collect::<Vec<_>>(), [64, 64, 64, 8, 56, 44]);
}

#[test]
fn bulk_writes_what_the_buffer_takes_until_the_duration_is_over() {
    let setting = Setting { sndbuf: 50_000, ..Setting::default() };
    let outcome = run(&parse("bulk:1s"), &setting, ms(100));
    assert!(outcome.done && outcome.measures.complete);
    assert_eq!(outcome.end, ms(1100));
    // One buffer every 20 ms, from 130 to 1100 ms; it is readable 10 ms later.
    assert_eq!(outcome.measures.goodput_mbps, Some(49.0 * 50_000.0 * 8.0 / 1e6));
    assert_eq!(outcome.server.last(), Some(&(ms(1100), Act::Finish)));
}

#[test]
fn bulk_ends_although_nobody_answers() {
    let setting = Setting { unreachable: true, ..Setting::default() };
    let outcome = run(&parse("bulk:1s"), &setting, ms(0));
    assert!(outcome.done);
    assert_eq!((outcome.end, outcome.measures.goodput_mbps), (ms(1000), Some(0.0)));
}

#[test]
fn a_burst_comes_after_warm_up_and_idling() {
    let outcome = run(&parse("burst:15seg"), &Setting::default(), ms(0));
    assert!(outcome.done && outcome.measures.complete);
    let warm = 2 * WARM_UP_SEGMENTS * 1428;
    assert_eq!(
        outcome.server,
        [
            // The server is open at 30 ms, and the subflows are established at 60 ms. The idle time
            // is 2 s after the last byte sent.
            (ms(60), Act::WarmUp(true)),
            (ms(60), Act::Write(warm)),
            (ms(2060), Act::WarmUp(false)),
            (ms(2060), Act::Write(15 * 1428)),
            (ms(2060), Act::Finish),
        ]
    );
    let from = AppEvent::MeasureFrom { offset: Dsn::new(warm) };
    assert_eq!(outcome.when(Role::Server, from), Some(ms(2060)));
    let delay = outcome.measures.message_delay_ms.unwrap();
    assert_eq!((delay.mean, delay.n), (10.0, 1));
}

#[test]
fn without_idle_decay_a_burst_sets_the_windows_once_all_is_acknowledged() {
    let setting = Setting { decay: Span::MAX, subflows: 1, sndbuf: 100_000, ..Setting::default() };
    let outcome = run(&parse("burst:1kB"), &setting, ms(0));
    // 285,600 bytes through a buffer of 100,000 take three round trips of 20 ms.
    assert_eq!(
        outcome.server[outcome.server.len() - 4..],
        [
            (ms(120), Act::ResetWindows),
            (ms(120), Act::WarmUp(false)),
            (ms(120), Act::Write(1000)),
            (ms(120), Act::Finish),
        ]
    );
    assert_eq!(outcome.measures.message_delay_ms.map(|delay| delay.mean), Some(10.0));
}

#[test]
fn stream_messages_are_due_on_time_and_queue_behind_a_full_buffer() {
    // 1000 bytes every 20 ms, and the buffer holds as much for a round trip: each message is on
    // time.
    let setting = Setting { sndbuf: 1000, ..Setting::default() };
    let outcome = run(&parse("stream:1kB@20ms,for=100ms"), &setting, ms(0));
    let delay = outcome.measures.message_delay_ms.unwrap();
    assert_eq!((delay.mean, delay.max, delay.n), (10.0, 10.0, 5));
    // With half the buffer, a message is written in two halves, so message k is k round trips late.
    let setting = Setting { sndbuf: 500, ..setting };
    let outcome = run(&parse("stream:1kB@20ms,for=100ms"), &setting, ms(0));
    let delay = outcome.measures.message_delay_ms.unwrap();
    assert_eq!((delay.median, delay.max, delay.n), (70.0, 110.0, 5));
    for id in 0..5 {
        let data = DataRange::with_len(Dsn::new(id * 1000), 1000);
        let due = AppEvent::MessageDue { id, data, due: ms(30 + 20 * id) };
        assert_eq!(outcome.when(Role::Server, due), Some(ms(30 + 20 * id)));
        let written = outcome.when(Role::Server, AppEvent::MessageWritten { id });
        assert_eq!(written, Some(ms(50 + 40 * id)));
    }
}

#[test]
fn a_sender_waits_for_the_data_ack_not_for_the_ack() {
    let data_ack_lag = Span::from_millis(15);
    let tick = Span::from_millis(5);
    let setting = Setting { data_ack_lag, tick, decay: Span::MAX, ..Setting::default() };
    // The warm-up is written at 60 ms, acknowledged at 80 ms, and DATA_ACKed at 95 ms.
    let outcome = run(&parse("burst:1kB"), &setting, ms(0));
    assert!(outcome.server.contains(&(ms(95), Act::ResetWindows)));
    // The burst is written at 95 ms, the client's DATA_FIN arrives at 115 ms, the DATA_ACK at 130
    // ms.
    assert_eq!(outcome.when(Role::Server, AppEvent::Complete), Some(ms(130)));
}

/// A stream that has only a state.
#[derive(Debug)]
struct Still(StreamState);

impl Stream for Still {
    fn state(&self) -> StreamState {
        self.0
    }
    fn write(&mut self, _: u64) -> u64 {
        0
    }
    fn write_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.write(bytes.len() as u64)
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> u64 {
        self.read(buffer.len() as u64)
    }

    fn readable(&self) -> u64 {
        0
    }
    fn read(&mut self, _: u64) -> u64 {
        0
    }
    fn unacked(&self) -> u64 {
        0
    }
    fn finish(&mut self) {}
    fn segment_payload(&self) -> u64 {
        1428
    }
    fn subflows(&self) -> u32 {
        1
    }
    fn subflows_ready(&self) -> bool {
        false
    }
    fn warm_up(&mut self, _: bool) {}
    fn initial_window_at(&self) -> Option<Time> {
        None
    }
    fn reset_windows(&mut self) {}
}

#[test]
fn blocks_come_as_often_as_their_rate_says() {
    // 8 KiB at 500 kbit/s: one block every 131.072 ms, the first at 30 ms.
    let outcome = run(&parse("blocks:8KiB@500kbit,for=1s"), &Setting::default(), ms(0));
    assert!(outcome.done && outcome.measures.complete);
    let delay = outcome.measures.message_delay_ms.unwrap();
    assert_eq!((delay.mean, delay.n), (10.0, 8));
    assert_eq!(outcome.measures.message_delay_sd_ms, Some(0.0));
    let data = DataRange::with_len(Dsn::new(7 * 8192), 8192);
    let due = ms(30) + Span::from_micros(7 * 131_072);
    assert_eq!(outcome.when(Role::Server, AppEvent::MessageDue { id: 7, data, due }), Some(due));
}

#[test]
fn blocks_without_a_rate_follow_each_other_through_the_send_buffer() {
    // The buffer of 2500 bytes empties every 20 ms, from 30 ms on. A block is due when the previous
    // one was accepted: 0, 1 and 2 at 30, 3 to 5 at 50, 6 and 7 at 70, 8 and 9 at 90. Blocks 2, 5
    // and 7 leave with the next buffer.
    let setting = Setting { sndbuf: 2_500, ..Setting::default() };
    let outcome = run(&parse("blocks:1kB@inf,for=100ms"), &setting, ms(0));
    assert!(outcome.done && outcome.measures.complete);
    let delay = outcome.measures.message_delay_ms.unwrap();
    assert_eq!((delay.n, delay.median, delay.max), (10, 10.0, 30.0));
    // Seven delays of 10 ms and three of 30 ms: mean 16, variance 84.
    assert_eq!(delay.mean, 16.0);
    let deviation = outcome.measures.message_delay_sd_ms.unwrap();
    assert!((deviation * deviation - 84.0).abs() < 1e-9, "{deviation}");
    assert_eq!(outcome.end, ms(100));
}

#[test]
fn a_server_whose_client_leaves_without_asking_gives_up() {
    for state in [StreamState::PeerDone, StreamState::Closed] {
        let (_, mut server) = parse("download:1MB").apps().remove(0);
        let mut log = Vec::new();
        server.poll(ms(0), &mut Still(StreamState::Open), &mut log);
        assert!(log.is_empty() && !server.done());
        server.poll(ms(1), &mut Still(state), &mut log);
        assert_eq!(log, [AppEvent::Failed]);
        assert!(server.done() && server.wake().is_none());
    }
}

#[test]
fn a_broken_connection_ends_both_sides() {
    for text in ["download:1MB", "upload:1MB", "bulk:60s", "burst:1MB", "stream:1kB@1s,for=60s"] {
        for at in [1, 25, 35, 61, 70] {
            let setting = Setting { sndbuf: 1000, fails_at: ms(at), ..Setting::default() };
            let outcome = run(&parse(text), &setting, ms(0));
            assert!(outcome.done && !outcome.measures.complete, "{text} at {at} ms");
            assert_eq!(outcome.end, ms(at));
            for host in [Role::Client, Role::Server] {
                assert_eq!(outcome.when(host, AppEvent::Failed), Some(ms(at)), "{text}");
            }
        }
    }
}

#[test]
fn apps_of_an_unreachable_server_wait() {
    let setting = Setting { unreachable: true, ..Setting::default() };
    for text in ["download:1MB", "upload:1MB", "burst:1MB", "stream:1kB@1s,for=60s"] {
        let outcome = run(&parse(text), &setting, ms(0));
        assert!(!outcome.done && outcome.log.is_empty(), "{text}");
    }
}

proptest! {
    #[test]
    fn polls_that_nobody_asked_for_change_nothing(tick in 1u64..30, sndbuf in 1000u64..50_000) {
        let tick = Span::from_millis(tick);
        let workloads =
            ["download:40kB", "upload:40kB", "bulk:1s", "burst:9seg", "stream:3kB@33ms,for=1s"];
        for text in workloads {
            let plain = Setting { sndbuf, ..Setting::default() };
            let often = Setting { tick, ..plain };
            let (plain, often) = (run(&parse(text), &plain, ms(3)), run(&parse(text), &often, ms(3)));
            prop_assert_eq!(plain.log, often.log);
            prop_assert_eq!(plain.client, often.client);
            prop_assert_eq!(plain.server, often.server);
            prop_assert_eq!(plain.measures, often.measures);
        }
    }

    #[test]
    fn every_byte_arrives_whatever_the_buffer(
        which in 0..4, segments in 1u32..20, interval in 1u64..50, messages in 1u64..20,
        sndbuf in 300u64..50_000, delay in 1u64..40, subflows in 1u32..3, decays: bool,
    ) {
        let size = Size::Segments(segments);
        let duration = Span::from_millis(interval * messages);
        let workload = match which {
            0 => Workload::Download { size },
            1 => Workload::Upload { size },
            2 => Workload::Burst { size },
            _ => Workload::Stream { size, interval: Span::from_millis(interval), duration },
        };
        let decay = if decays { Span::from_millis(500) } else { Span::MAX };
        let delay = Span::from_millis(delay);
        let setting = Setting { delay, sndbuf, subflows, decay, ..Setting::default() };
        let outcome = run(&workload, &setting, ms(7));
        prop_assert!(outcome.done && outcome.measures.complete);
        // The receiver read from 0 without gaps; every message was due in order, and written.
        let receiver = if workload.sender() == Role::Client { Role::Server } else { Role::Client };
        let (mut position, mut next) = (Dsn::ZERO, 0);
        for (now, host, event) in &outcome.log {
            match event {
                AppEvent::Read { data } if *host == receiver => {
                    prop_assert_eq!(data.start, position);
                    position = data.end;
                }
                AppEvent::MessageDue { id, due, .. } => {
                    prop_assert_eq!((*id, *due), (next, *now));
                    next += 1;
                }
                AppEvent::Failed => prop_assert!(false, "failed"),
                _ => {}
            }
        }
        let warm = WARM_UP_SEGMENTS * u64::from(subflows) * 1428;
        let before = match which { 1 => REQUEST, 2 => warm, _ => 0 };
        let all = before + workload.messages() * u64::from(segments) * 1428;
        prop_assert_eq!(position, Dsn::new(all));
        prop_assert_eq!(next, workload.messages());
        // No message is faster than the network.
        if let Some(found) = outcome.measures.message_delay_ms {
            prop_assert!(found.mean >= delay.as_millis_f64());
            prop_assert_eq!(found.n, workload.messages());
        }
        if let Some(found) = outcome.measures.completion_ms {
            prop_assert!(found >= delay.times(3).as_millis_f64());
        }
    }
}
