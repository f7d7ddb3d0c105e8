//! Each measure, on handmade lists of events.

use super::*;
use plait_base::{Dsn, Rate, ServerAddress};
use plait_core::{Block, WindowCause};

const SENDER: Role = Role::Server;
const RECEIVER: Role = Role::Client;

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn span(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn observer(workload: &str) -> Observer {
    let mut observer = Observer::new(&Workload::parse(workload).unwrap(), 2, ms(10));
    for (subflow, path) in [(0, 1), (1, 0)] {
        let (subflow, path) = (SubflowId(subflow), PathId(path));
        observer.observe(
            ms(10),
            SENDER,
            &Event::SubflowUp { subflow, path, server: ServerAddress(0) },
        );
    }
    observer
}

fn sent(subflow: u8, start: u64, end: u64, carry: Carry) -> Event {
    Event::DataSent { subflow: SubflowId(subflow), data: DataRange::between(start, end), carry }
}

fn acked(subflow: u8, rtt: Option<u64>) -> Event {
    let rtt = rtt.map(span);
    let subflow = SubflowId(subflow);
    Event::Acked { subflow, bytes: 1, rtt, srtt: span(1), cwnd: 1, inflight: 0 }
}

fn readable(start: u64, end: u64, waited: u64) -> Event {
    let data = DataRange::between(start, end);
    Event::DataReadable { data, waited: span(waited), subflow: SubflowId(0) }
}

fn read(start: u64, end: u64) -> AppEvent {
    AppEvent::Read { data: DataRange::between(start, end) }
}

fn due(id: u64, start: u64, end: u64, at: u64) -> AppEvent {
    AppEvent::MessageDue { id, data: DataRange::between(start, end), due: ms(at) }
}

#[test]
fn a_download_takes_from_the_first_syn_to_the_last_byte() {
    let mut o = observer("download:3kB");
    o.observe_app(ms(40), SENDER, &due(0, 0, 3000, 40));
    o.observe_app(ms(55), RECEIVER, &read(0, 1000));
    o.observe_app(ms(70), RECEIVER, &read(1000, 3000));
    let m = o.finish(ms(500));
    assert!(m.complete);
    assert_eq!(m.completion_ms, Some(60.0));
    // 24,000 bits in 60 ms.
    assert_eq!(m.goodput_mbps, Some(0.4));
    assert_eq!(m.message_delay_ms, None);
}

#[test]
fn an_unfinished_download_has_no_completion_time() {
    let mut o = observer("download:3kB");
    o.observe_app(ms(40), SENDER, &due(0, 0, 3000, 40));
    o.observe_app(ms(55), RECEIVER, &read(0, 2999));
    let m = o.finish(ms(500));
    assert!(!m.complete);
    assert_eq!((m.completion_ms, m.goodput_mbps), (None, None));
}

#[test]
fn an_upload_counts_from_the_client_without_its_request() {
    let (sender, receiver) = (Role::Client, Role::Server);
    let mut o = Observer::new(&Workload::parse("upload:1kB").unwrap(), 1, ms(0));
    let (subflow, path) = (SubflowId(0), PathId(0));
    o.observe(ms(30), sender, &Event::SubflowUp { subflow, path, server: ServerAddress(0) });
    o.observe(ms(30), sender, &sent(0, 0, 200, Carry::New));
    o.observe_app(ms(30), sender, &AppEvent::MeasureFrom { offset: Dsn::new(200) });
    o.observe_app(ms(30), sender, &due(0, 200, 1200, 30));
    o.observe(ms(30), sender, &sent(0, 200, 1200, Carry::New));
    o.observe(ms(45), receiver, &readable(0, 200, 0));
    o.observe_app(ms(45), receiver, &read(0, 200));
    o.observe(ms(50), sender, &sent(0, 0, 200, Carry::Retransmission));
    o.observe(ms(50), receiver, &readable(200, 1200, 4));
    o.observe_app(ms(50), receiver, &read(200, 1200));
    let m = o.finish(ms(60));
    assert_eq!(m.completion_ms, Some(50.0));
    assert_eq!(m.goodput_mbps, Some(0.16));
    assert_eq!(m.retransmitted_share, Some(0.0));
    assert_eq!(m.ooo_delay_ms.map(|d| (d.mean, d.n)), Some((4.0, 1)));
}

#[test]
fn bulk_goodput_stops_at_the_duration() {
    let mut o = observer("bulk:1s");
    o.observe(ms(1000), SENDER, &Event::Blocked(Some(Block::ReceiveWindow)));
    o.observe_app(ms(500), RECEIVER, &read(0, 1_000_000));
    o.observe_app(ms(1010), RECEIVER, &read(1_000_000, 1_250_000));
    o.observe_app(ms(1011), RECEIVER, &read(1_250_000, 9_000_000));
    o.observe(ms(1010), SENDER, &sent(0, 0, 1000, Carry::New));
    o.observe(ms(1011), SENDER, &sent(1, 1000, 9000, Carry::New));
    let m = o.finish(ms(5000));
    assert!(m.complete);
    assert_eq!(m.goodput_mbps, Some(10.0));
    assert_eq!(m.rwnd_blocked_ms, Some(10.0));
    assert_eq!(m.paths[1].path_share, Some(1.0));
    assert_eq!((m.completion_ms, m.message_delay_ms), (None, None));
}

#[test]
fn a_bulk_run_cut_short_is_not_complete_and_its_goodput_is_over_its_own_time() {
    let mut o = observer("bulk:10s");
    o.observe_app(ms(500), RECEIVER, &read(0, 1_250_000));
    let m = o.finish(ms(1010));
    assert!(!m.complete);
    assert_eq!(m.goodput_mbps, Some(10.0));
}

#[test]
fn message_delays_run_from_when_a_message_was_due() {
    let mut o = observer("stream:1kB@100ms,for=300ms");
    o.observe_app(ms(100), SENDER, &due(0, 0, 1000, 100));
    o.observe_app(ms(120), RECEIVER, &read(0, 1000));
    // The event comes late; the due time counts.
    o.observe_app(ms(205), SENDER, &due(1, 1000, 2000, 200));
    o.observe_app(ms(300), SENDER, &due(2, 2000, 3000, 300));
    // One read completes both messages.
    o.observe_app(ms(330), RECEIVER, &read(1000, 3000));
    let m = o.finish(ms(400));
    let d = m.message_delay_ms.unwrap();
    // The delays are 20, 130 and 30 ms.
    assert_eq!((d.mean, d.median, d.max, d.n), (60.0, 30.0, 130.0, 3));
    assert!((d.p95 - 120.0).abs() < 1e-9);
    // 3000 bytes from 100 to 330 ms.
    assert!((m.goodput_mbps.unwrap() - 0.024 / 0.23).abs() < 1e-12);
    assert!(m.complete);
    assert_eq!(m.completion_ms, None);
}

#[test]
fn a_burst_counts_nothing_of_its_warm_up() {
    let mut o = observer("burst:2kB");
    o.observe(ms(20), SENDER, &sent(0, 0, 5000, Carry::New));
    o.observe(ms(21), SENDER, &sent(0, 0, 5000, Carry::Retransmission));
    o.observe(ms(22), SENDER, &acked(0, Some(500)));
    o.observe(ms(23), RECEIVER, &readable(0, 5000, 77));
    o.observe_app(ms(23), RECEIVER, &read(0, 5000));
    o.observe(ms(24), SENDER, &Event::Blocked(Some(Block::SendBuffer)));
    o.observe(ms(34), SENDER, &Event::Blocked(None));
    o.observe_app(ms(1000), SENDER, &AppEvent::MeasureFrom { offset: Dsn::new(5000) });
    o.observe_app(ms(1000), SENDER, &due(0, 5000, 7000, 1000));
    // A reset caused by the idle time of the warm-up does not count for the burst.
    let reset = Event::IdleReset { subflow: SubflowId(1), before: 300_000, after: 14_480 };
    o.observe(ms(1000), SENDER, &reset);
    o.observe(ms(1000), SENDER, &sent(1, 5000, 6500, Carry::New));
    o.observe(ms(1000), SENDER, &sent(0, 6500, 7000, Carry::New));
    o.observe(ms(1010), RECEIVER, &readable(5000, 6500, 0));
    o.observe_app(ms(1010), RECEIVER, &read(5000, 6500));
    o.observe_app(ms(1015), RECEIVER, &read(6500, 7000));
    let m = o.finish(ms(1100));
    assert_eq!(m.message_delay_ms.map(|d| (d.mean, d.n)), Some((15.0, 1)));
    assert_eq!(m.paths.iter().map(|p| p.path_share).collect::<Vec<_>>(), [Some(0.75), Some(0.25)]);
    assert_eq!(m.retransmitted_share, Some(0.0));
    assert_eq!(m.paths[1].rtt_ms, None);
    assert_eq!(m.ooo_delay_ms.map(|d| (d.max, d.n)), Some((0.0, 1)));
    assert_eq!(m.sndbuf_blocked_ms, Some(0.0));
    assert_eq!(m.idle_resets, Some(0));
    assert_eq!((m.completion_ms, m.goodput_mbps), (None, None));
}

#[test]
fn the_ooo_delay_weighs_every_segment_the_same() {
    let mut o = observer("download:1MB");
    for (start, len, waited) in [(0, 1428, 0), (1428, 100, 40), (1528, 1428, 20), (2956, 1428, 0)] {
        o.observe(ms(50), RECEIVER, &readable(start, start + len, waited));
    }
    // The request, in the other direction, is not measured data.
    o.observe(ms(50), SENDER, &readable(0, 200, 1000));
    let d = o.finish(ms(60)).ooo_delay_ms.unwrap();
    assert_eq!((d.mean, d.max, d.n), (15.0, 40.0, 4));
    assert!((d.p95 - 40.0).abs() < 0.5);
}

#[test]
fn copies_are_counted_apart_from_path_shares() {
    let mut o = observer("download:1MB");
    o.observe(ms(20), SENDER, &sent(0, 0, 600, Carry::New));
    o.observe(ms(20), SENDER, &sent(1, 600, 800, Carry::New));
    o.observe(ms(21), SENDER, &sent(1, 0, 50, Carry::Reinjection));
    o.observe(ms(21), SENDER, &sent(1, 50, 75, Carry::Redundant));
    o.observe(ms(21), SENDER, &sent(1, 75, 100, Carry::Opportunistic));
    o.observe(ms(22), SENDER, &sent(0, 0, 60, Carry::Retransmission));
    o.observe(ms(22), SENDER, &sent(0, 560, 600, Carry::TailProbe));
    // The client's request is not measured data.
    o.observe(ms(22), RECEIVER, &sent(0, 0, 200, Carry::New));
    let m = o.finish(ms(60));
    assert_eq!(m.paths.iter().map(|p| p.path_share).collect::<Vec<_>>(), [Some(0.25), Some(0.75)]);
    // 300 of 1000 bytes.
    let sent = m.paths.iter().map(|p| p.path_sent_share);
    assert_eq!(sent.collect::<Vec<_>>(), [Some(0.3), Some(0.7)]);
    assert_eq!((m.reinjected_share, m.retransmitted_share), (Some(0.1), Some(0.1)));
}

#[test]
fn rtt_samples_belong_to_the_path_of_their_subflow() {
    let mut o = observer("download:1MB");
    for rtt in [Some(20), Some(40), None, Some(30)] {
        o.observe(ms(50), SENDER, &acked(1, rtt));
    }
    o.observe(ms(50), RECEIVER, &acked(1, Some(999)));
    o.observe(ms(50), SENDER, &acked(7, Some(999)));
    let m = o.finish(ms(60));
    let path = m.paths[0];
    assert_eq!(
        (path.rtt_ms, path.rtt_min_ms, path.rtt_max_ms),
        (Some(30.0), Some(20.0), Some(40.0))
    );
    assert_eq!(m.paths[1], PathMeasures::default());
}

#[test]
fn blocked_time_is_settled_at_each_change_of_cause() {
    let mut o = observer("download:1MB");
    let block = |o: &mut Observer, at, cause| o.observe(ms(at), SENDER, &Event::Blocked(cause));
    block(&mut o, 100, Some(Block::ReceiveWindow));
    block(&mut o, 130, Some(Block::CongestionWindow));
    block(&mut o, 150, Some(Block::SendBuffer));
    block(&mut o, 157, None);
    block(&mut o, 200, Some(Block::ReceiveWindow));
    o.observe(ms(300), RECEIVER, &Event::Blocked(None));
    let m = o.finish(ms(205));
    assert_eq!((m.rwnd_blocked_ms, m.sndbuf_blocked_ms), (Some(35.0), Some(7.0)));
}

#[test]
fn a_cause_that_holds_when_measuring_begins_counts_from_then() {
    let mut o = observer("burst:1kB");
    o.observe(ms(100), SENDER, &Event::Blocked(Some(Block::ReceiveWindow)));
    o.observe_app(ms(400), SENDER, &AppEvent::MeasureFrom { offset: Dsn::ZERO });
    assert_eq!(o.finish(ms(405)).rwnd_blocked_ms, Some(5.0));
}

#[test]
fn idle_resets_count_at_the_sender_once_it_has_sent() {
    let mut o = observer("stream:1kB@100ms,for=300ms");
    let reset = Event::IdleReset { subflow: SubflowId(0), before: 2000, after: 1000 };
    o.observe(ms(20), SENDER, &reset);
    o.observe(ms(20), SENDER, &sent(0, 0, 1000, Carry::New));
    o.observe(ms(900), SENDER, &reset);
    o.observe(ms(950), RECEIVER, &reset);
    o.observe(ms(1900), SENDER, &reset);
    let (cause, ssthresh) = (WindowCause::Loss, None);
    o.observe(ms(1901), SENDER, &Event::Window { subflow: SubflowId(0), cwnd: 1, ssthresh, cause });
    assert_eq!(o.finish(ms(2000)).idle_resets, Some(2));
}

#[test]
fn ids_out_of_range_change_nothing() {
    let mut o = observer("download:1MB");
    let (subflow, path) = (SubflowId(200), PathId(9));
    o.observe(ms(20), SENDER, &Event::SubflowUp { subflow, path, server: ServerAddress(0) });
    o.observe(
        ms(20),
        SENDER,
        &Event::SubflowUp { subflow: SubflowId(2), path, server: ServerAddress(0) },
    );
    o.observe(ms(20), SENDER, &sent(200, 0, 10, Carry::New));
    o.observe(ms(20), SENDER, &sent(2, 10, 20, Carry::New));
    o.observe(ms(20), SENDER, &acked(2, Some(1)));
    o.observe(ms(20), SENDER, &Event::IdleReset { subflow, before: 2, after: 1 });
    let m = o.finish(ms(60));
    assert_eq!(m.idle_resets, Some(0));
    assert_eq!(m.paths[0].path_share, Some(0.0));
}

#[test]
fn every_measure_of_the_list_is_absent_where_its_workload_lacks_it() {
    for workload in crate::WORKLOADS {
        for example in workload.examples {
            let workload = Workload::parse(example).unwrap();
            let mut o = observer(example);
            o.observe(ms(100), SENDER, &sent(0, 0, 1000, Carry::New));
            o.observe_app(ms(100), SENDER, &due(0, 0, 1000, 100));
            o.observe_app(ms(110), RECEIVER, &AppEvent::ObjectAsked { id: 0 });
            o.observe_app(ms(150), RECEIVER, &read(0, 1000));
            if workload.primary() == "bit_rate_mbps" {
                let (rate, lasts) = (Rate::from_bps(260_000), Span::from_secs(5));
                o.observe_app(ms(150), RECEIVER, &AppEvent::Chunk { id: 0, rate, lasts });
            }
            o.observe_app(ms(150), RECEIVER, &AppEvent::ObjectRead { id: 0 });
            o.observe_app(ms(160), RECEIVER, &AppEvent::Loaded);
            let m = o.finish(ms(200));
            for entry in MEASURES.iter().filter(|entry| !entry.applies_to(&workload)) {
                assert_eq!(m.value(entry.name), None, "{} of {example}", entry.name);
            }
            if workload.sender() == SENDER && workload.name() != "bulk" {
                assert!(m.value(workload.primary()).is_some(), "{example}");
            }
        }
    }
}
