//! Captures made by hand, in every format, cut, damaged and in several files.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]

mod made;

use made::{CLIENT_KEY, Format, Link, PIECE, SERVER_KEY, Talk, explained, two_paths, written};
use plait_capture::{CaptureExplanation, Cause, Place, Protocol, explain, is_capture};
use plait_wire::ResetReason;
use proptest::prelude::*;
use std::fs;

/// Returns the document as JSON without what may differ between formats.
fn comparable(mut document: CaptureExplanation) -> String {
    document.files.clear();
    serde_json::to_string_pretty(&document).unwrap()
}

#[test]
fn subflows_are_joined_and_their_data_is_counted() {
    let file = written("joined.pcapng", &Format::USUAL.file(&two_paths(false).packets, true));
    assert!(is_capture(&fs::read(&file).unwrap()));
    let document = explained(&[file]);
    assert_eq!((document.connections_found, document.files[0].packets), (1, 20));
    let connection = &document.connections[0];
    assert_eq!(connection.protocol, Protocol::Mptcp);
    assert_eq!(connection.token, Some(format!("{:08x}", SERVER_KEY.token())));
    assert_ne!(CLIENT_KEY.token(), SERVER_KEY.token());
    let data = &connection.data;
    assert_eq!((data.bytes, data.acked_bytes), (6 * u64::from(PIECE), 6 * u64::from(PIECE)));
    assert_eq!((data.reinjected_bytes, data.reinjected_segments), (1_000, 1));
    let [fast, slow] = &connection.paths[..] else { panic!("{:?}", connection.paths) };
    assert_eq!((fast.name.as_str(), slow.name.as_str()), ("wifi", "lte"));
    assert_eq!((fast.place, slow.place), (Place::Sender, Place::Sender));
    assert_eq!((fast.traffic.segments, fast.traffic.bytes), (5, 5_000));
    assert_eq!((fast.traffic.retransmitted_segments, fast.traffic.retransmitted_bytes), (1, 1_000));
    assert_eq!((fast.traffic.reinjected_bytes, slow.traffic.reinjected_bytes), (1_000, 0));
    assert_eq!((slow.traffic.segments, slow.traffic.retransmitted_segments), (3, 0));
    let (fast, slow) = (fast.rtt.as_ref().unwrap(), slow.rtt.as_ref().unwrap());
    assert_eq!((fast.method, fast.min_ms, fast.samples), ("data-ack", 20.0, 2));
    assert_eq!((slow.min_ms, slow.samples), (50.0, 2));
    // The receive window is 60,000 << 4.
    assert_eq!(data.window_max_bytes, Some(960_000));
}

#[test]
fn every_format_and_link_type_gives_the_same() {
    for v6 in [false, true] {
        let talk = two_paths(v6);
        let usual = written("usual.pcapng", &Format::USUAL.file(&talk.packets, false));
        let expected = comparable(explained(&[usual]));
        assert!(expected.contains("\"bytes\": 6000"));
        for link in Link::ALL {
            for bits in 0..8 {
                let format = Format {
                    next_generation: bits & 1 > 0,
                    big_endian: bits & 2 > 0,
                    nanoseconds: bits & 4 > 0,
                    link,
                    // Enough for all headers, with 40 bytes of options.
                    snap: if bits % 3 == 0 { 65_535 } else { 134 },
                };
                let file = written("one.pcap", &format.file(&talk.packets, false));
                assert_eq!(comparable(explained(&[file])), expected, "{format:?}, IPv6 {v6}");
            }
        }
    }
}

#[test]
fn a_short_snap_length_is_told() {
    let talk = two_paths(false);
    let packets = &talk.packets;
    let of = |snap: usize| {
        let file = Format { snap, ..Format::USUAL }.file(packets, false);
        explained(&[written("cut.pcapng", &file)])
    };
    // 20 bytes of IP and 20 of TCP remain: ports and numbers, without options.
    let document = of(40);
    assert_eq!(document.files[0].segments, 20);
    assert!(
        document.files[0].notes[0].contains("at least 134 bytes"),
        "{:?}",
        document.files[0].notes
    );
    assert_eq!(document.connections[0].paths[0].traffic.segments, 5);
    let document = of(30);
    assert_eq!((document.files[0].segments, document.connections_found), (0, 0));
    assert!(document.files[0].notes[0].starts_with("20 packets were cut before the end"));
    assert_eq!(document.sentence, "There is no TCP connection in the capture.");
}

/// A file that ends inside packet N is read up to packet N - 1, and its error names packet N.
#[test]
fn a_file_that_ends_early_is_read_until_there() {
    for next_generation in [false, true] {
        let format = Format { next_generation, ..Format::USUAL };
        let packets = two_paths(false).packets;
        let whole = format.file(&packets, false);
        let starts: Vec<usize> =
            (0..=packets.len()).map(|count| format.file(&packets[..count], false).len()).collect();
        for end in (starts[0]..whole.len()).step_by(7) {
            let complete = starts.iter().rposition(|start| *start <= end).unwrap() as u64;
            let document = explained(&[written("early.pcap", &whole[..end])]);
            let file = &document.files[0];
            match &file.broken {
                Some(broken) => {
                    // Behind its packet, a pcapng file has a block without one.
                    let packet = if file.packets > complete { complete + 2 } else { complete + 1 };
                    assert_eq!((broken.packet, file.packets), (packet, packet - 1), "{end}");
                    assert!(broken.problem.contains("ends inside"), "{}", broken.problem);
                }
                None => assert!(starts.contains(&end) || next_generation, "{end}"),
            }
        }
    }
}

#[test]
fn a_damaged_packet_has_its_number() {
    let packets = two_paths(false).packets;
    let mut file = Format::USUAL.file(&packets, false);
    let fifth = Format::USUAL.file(&packets[..4], false).len();
    // Its interface is number 7 of 2.
    file[fifth + 8] = 7;
    let document = explained(&[written("damaged.pcapng", &file)]);
    let broken = document.files[0].broken.clone().unwrap();
    assert_eq!((broken.packet, document.files[0].packets), (5, 4));
    assert!(broken.problem.contains("no description"), "{}", broken.problem);
}

#[test]
fn a_damaged_log_names_one_line() {
    let head = "\u{1e}{\"file_schema\":\"\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n";
    let log = format!("{head}\u{1e}{{\"time\": 1");
    let document = explained(&[written("damaged.sqlog", log.as_bytes())]);
    let broken = document.files[0].broken.clone().unwrap();
    let expected = "its record is damaged: EOF while parsing an object";
    assert_eq!((broken.packet, broken.problem.as_str()), (2, expected));
}

#[test]
fn other_files_are_refused_with_a_remedy() {
    let refused = |bytes: &[u8]| {
        let file = written("other", bytes);
        explain(&[file], String::new(), &mut |_| true).unwrap_err().1.problem
    };
    assert!(refused(b"").contains("empty"));
    assert!(refused(b"{\"event\": 1}").contains("no capture"));
    assert!(refused(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0]).contains("gunzip"));
    assert!(refused(&[0x0a, 0x0d, 0x0d, 0x0a, 9, 9]).contains("no capture"));
    assert!(!is_capture(b"{\"event\""));
    let missing = explain(&["/nowhere.pcap".into()], String::new(), &mut |_| true);
    assert!(missing.unwrap_err().1.problem.contains("cannot be opened"));
}

/// One file an interface, and one of the other host with the same packets.
#[test]
fn several_files_are_one_capture() {
    let talk = two_paths(false);
    let of = |path: usize| -> Vec<_> {
        talk.packets.iter().filter(|packet| packet.path == path).cloned().collect()
    };
    let format = Format { link: Link::Ethernet, ..Format::USUAL };
    let first = written("wlan.pcapng", &format.file(&of(0), false));
    let second = written("wwan.pcapng", &format.file(&of(1), false));
    let both = explained(&[first.clone(), second]);
    let one = explained(&[written("both.pcapng", &format.file(&talk.packets, false))]);
    assert_eq!((both.connections_found, both.connections[0].paths.len()), (1, 2));
    assert_eq!(both.connections[0].data.reinjected_bytes, 1_000);
    assert_eq!(both.connections[0].duration_ms, one.connections[0].duration_ms);
    let copy = written("copy.pcapng", &format.file(&of(0), false));
    let twice = explained(&[first, copy]);
    assert!(twice.files[1].notes[0].contains("in another file too"), "{:?}", twice.files[1].notes);
    assert_eq!(twice.connections[0].paths[0].traffic.segments, 5);
}

/// A pause of the application and a lost packet, by plain TCP.
#[test]
fn plain_tcp_is_explained_too() {
    let mut talk = Talk::new(false);
    let path = talk.open(false, 20);
    for round in 0..40 {
        if round == 20 {
            talk.wait(2_000);
        }
        for _ in 0..10 {
            talk.plain(path);
            talk.now += 800_000;
        }
        talk.wait(12);
        talk.ack(path, None);
    }
    let document = explained(&[written("tcp.pcapng", &Format::USUAL.file(&talk.packets, false))]);
    let connection = &document.connections[0];
    assert_eq!((connection.protocol, connection.data.bytes), (Protocol::Tcp, 400_000));
    assert_eq!(connection.lost_time[0].cause, Cause::ApplicationIdle);
    // The pause is 2 s, and the path then delivers nothing.
    let main = &connection.incidents[0];
    assert!((main.cost_ms.unwrap() - 2_000.0).abs() < 30.0, "{main:?}");
    let expected = "the sender's application had nothing to send.";
    assert!(document.sentence.ends_with(expected), "{}", document.sentence);
    let incident = &connection.incidents[0];
    // Packets 1 to 3 are the handshake; each round has ten segments and an acknowledgement.
    assert_eq!((incident.first.packet, incident.last.packet), (3 + 20 * 11, 3 + 20 * 11 + 1));
}

/// Rounds of plain TCP with more data on its way than the unscaled window of 60,000 bytes.
fn large_rounds() -> Talk {
    let mut talk = Talk::new(false);
    let path = talk.open(false, 20);
    for _ in 0..20 {
        for _ in 0..80 {
            talk.plain(path);
            talk.now += 500_000;
        }
        talk.wait(20);
        talk.ack(path, None);
    }
    talk
}

/// Without the SYN, or without its options, the scale of the window is unknown, and the window is no cause.
#[test]
fn a_window_of_unknown_scale_is_no_cause() {
    let packets = large_rounds().packets;
    let of = |name: &str, snap: usize, from: usize| {
        let file = Format { snap, ..Format::USUAL }.file(&packets[from..], false);
        explained(&[written(name, &file)]).connections.remove(0)
    };
    assert_eq!(of("scaled.pcapng", 65_535, 0).data.window_max_bytes, Some(960_000));
    let late = of("no-syn.pcapng", 65_535, 3);
    let note = "The receive window is unknown, because the capture lacks the SYN of the client.";
    assert!(late.notes.iter().any(|it| it.starts_with(note)), "{:?}", late.notes);
    assert_eq!(late.protocol, Protocol::Tcp);
    let cut = of("cut-syn.pcapng", 40, 0);
    let note = "The receive window is unknown, because the SYN of the client was cut";
    assert!(cut.notes.iter().any(|it| it.starts_with(note)), "{:?}", cut.notes);
    assert!(cut.notes.iter().any(|it| it.contains("cut within their options")), "{:?}", cut.notes);
    // Options of MPTCP may have been cut too.
    assert_eq!(cut.protocol, Protocol::Unknown);
    for connection in [late, cut] {
        assert_eq!(connection.data.window_max_bytes, None);
        let causes: Vec<Cause> = connection.lost_time.iter().map(|it| it.cause).collect();
        assert!(!causes.contains(&Cause::ReceiveWindow), "{causes:?}");
        let settings = connection.fit.map(|fit| fit.settings).unwrap_or_default();
        assert!(settings.iter().all(|(name, _)| name != "rcvbuf"), "{settings:?}");
    }
}

/// A host that leaves the segmentation to its network card captures several segments as one. They count as several.
#[test]
fn joined_segments_are_counted_one_by_one() {
    let of = |name: &str, joined: u32| {
        let mut talk = Talk::new(false);
        let path = talk.open(false, 20);
        for _ in 0..60 {
            (0..8 / joined).for_each(|_| talk.plain_of(path, joined * 1_460));
            talk.wait(22);
            talk.ack(path, None);
        }
        let file = Format::USUAL.file(&talk.packets, false);
        explained(&[written(name, &file)]).connections.remove(0)
    };
    let (single, joined) = (of("single.pcapng", 1), of("joined.pcapng", 8));
    assert_eq!(single.paths[0].traffic.segments, 480);
    let (one, other) = (&single.paths[0], &joined.paths[0]);
    assert_eq!(format!("{:?}", one.traffic), format!("{:?}", other.traffic));
    assert_eq!(one.link_mbps, other.link_mbps);
    assert_eq!(format!("{:?}", one.rtt), format!("{:?}", other.rtt));
    assert_eq!(single.lost_time.len(), joined.lost_time.len());
}

/// A program that writes 3000 bytes each 20 ms does not show the rate of its link.
#[test]
fn a_stream_shows_the_least_rate_of_its_link() {
    let mut talk = Talk::new(false);
    let path = talk.open(false, 22);
    let begin = talk.now;
    for message in 0..200 {
        talk.now = begin + message * 20_000_000;
        for bytes in [1_460, 1_460, 80] {
            talk.plain_of(path, bytes);
        }
        talk.wait(3);
        // The message before this one has arrived.
        if message > 0 {
            talk.ack_before(path, 3_000);
        }
    }
    talk.wait(20);
    talk.ack(path, None);
    let document =
        explained(&[written("stream.pcapng", &Format::USUAL.file(&talk.packets, false))]);
    let connection = &document.connections[0];
    assert!(!connection.paths[0].link_is_known, "{:?}", connection.paths);
    assert!((connection.paths[0].link_mbps.unwrap() - 1.2).abs() < 0.1, "{:?}", connection.paths);
    let main = &connection.lost_time[0];
    assert_eq!(main.cause, Cause::ApplicationIdle, "{:?}", connection.lost_time);
    assert!(main.cost_ms.unwrap() > 3_500.0, "{main:?}");
    let fit = connection.fit.as_ref().unwrap();
    assert!(fit.workload.starts_with("stream:3kB@20."), "{fit:?}");
    assert!(fit.paths[0].rate_mbps > 10.0 && fit.paths[0].rtt_ms > 20.0, "{fit:?}");
}

#[test]
fn a_reset_or_unanswered_connection_is_told_first() {
    let of = |name: &str, talk: &Talk| {
        explained(&[written(name, &Format::USUAL.file(&talk.packets, false))])
    };
    let mut talk = large_rounds();
    talk.plain(0);
    talk.wait(5);
    talk.reset(0, false, None);
    let last = talk.packets.len();
    let document = of("reset.pcapng", &talk);
    let begin = format!("The client reset the connection after 1.60 MB and 1.21 s (packet {last})");
    assert!(document.sentence.starts_with(&begin), "{}", document.sentence);
    let connection = &document.connections[0];
    let note = format!("The client reset the connection at 1.205 s (packet {last}).");
    assert!(connection.notes.contains(&note), "{:?}", connection.notes);
    assert!(!connection.paths[0].reset.as_ref().unwrap().after_completion);
    // A SYN is sent three times.
    let mut talk = Talk::new(false);
    talk.open(false, 20);
    talk.packets.truncate(1);
    for _ in 0..2 {
        let mut again = talk.packets[talk.packets.len() - 1].clone();
        again.at_ns += 1_000_000_000;
        talk.packets.push(again);
    }
    let document = of("syns.pcapng", &talk);
    let expected = "The 3 SYNs from 10.0.0.1:50000 to 10.0.0.9:443 have no answer.";
    assert_eq!(document.sentence, expected);
}

/// A join has no answer, and the first path is silent for two seconds. The sentence names both.
#[test]
fn a_join_without_an_answer_does_not_hide_other_causes() {
    let mut talk = Talk::new(false);
    let path = talk.open(true, 20);
    talk.ack(path, Some(0));
    let before = talk.packets.len();
    talk.open(true, 20);
    talk.packets.truncate(before + 1);
    let mut again = talk.packets[before].clone();
    again.at_ns += 1_000_000_000;
    let mut piece = 0;
    for round in 0..60 {
        for _ in 0..8 {
            talk.data(path, piece);
            piece += 1;
            talk.now += 1_000_000;
        }
        talk.wait(if round == 30 { 2_012 } else { 12 });
        talk.ack(path, Some(piece));
    }
    talk.packets.push(again);
    talk.packets.sort_by_key(|it| it.at_ns);
    let document = explained(&[written("join.pcapng", &Format::USUAL.file(&talk.packets, false))]);
    let (begin, end) = (
        "; the join of p2 was refused or not answered, and ",
        " were lost because p1 was silent: nothing that it carried was acknowledged.",
    );
    assert!(
        document.sentence.contains(begin) && document.sentence.ends_with(end),
        "{}",
        document.sentence
    );
    assert_eq!(document.connections[0].lost_time[0].cause, Cause::JoinRefused);
}

/// A path is reset in the middle of a transfer over two paths.
#[test]
fn a_reset_path_is_an_incident_with_its_reason() {
    let mut talk = Talk::new(false);
    let fast = talk.open(true, 20);
    talk.ack(fast, Some(0));
    let slow = talk.open(true, 20);
    let (mut piece, mut at) = (0, 0);
    for round in 0..60 {
        for _ in 0..8 {
            for path in [fast, slow].into_iter().take(if round < 30 { 2 } else { 1 }) {
                talk.data(path, piece);
                piece += 1;
            }
            talk.now += 1_000_000;
        }
        talk.wait(12);
        talk.ack(fast, Some(piece));
        if round < 30 {
            talk.ack(slow, Some(piece));
        }
        if round == 29 {
            talk.reset(slow, false, Some(ResetReason::Middlebox));
            at = talk.packets.len();
        }
    }
    let document = explained(&[written("gone.pcapng", &Format::USUAL.file(&talk.packets, true))]);
    let connection = &document.connections[0];
    let note = format!(
        "The client reset lte at 0.600 s (packet {at}), with the reason \"middlebox interference\"."
    );
    assert!(connection.notes.contains(&note), "{:?}", connection.notes);
    let incident = connection.incidents.iter().find(|it| it.cause == Cause::PathReset).unwrap();
    assert_eq!((incident.path.as_deref(), incident.first.packet), (Some("lte"), at as u64));
    // For 600 ms, half of the rate was missing.
    assert!((incident.cost_ms.unwrap() - 300.0).abs() < 20.0, "{incident:?}");
    let silent = connection.lost_time.iter().any(|it| it.cause == Cause::PathSilent);
    assert!(!silent, "{:?}", connection.lost_time);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// No bytes make it panic, and damage ends in an error or in a report.
    #[test]
    fn damaged_bytes_do_no_harm(
        bits in 0u8..8,
        v6 in any::<bool>(),
        link in 0usize..7,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        end in any::<prop::sample::Index>(),
    ) {
        let format = Format {
            next_generation: bits & 1 > 0,
            big_endian: bits & 2 > 0,
            nanoseconds: bits & 4 > 0,
            link: Link::ALL[link],
            snap: 200,
        };
        let mut bytes = format.file(&two_paths(v6).packets, true);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let end = end.index(bytes.len() * 2).min(bytes.len());
        let file = written(&format!("fuzz-{}.pcap", std::process::id()), &bytes[..end]);
        if let Ok(document) = explain(&[file], String::new(), &mut |_| true) {
            serde_json::to_string(&document).unwrap();
            for connection in &document.connections {
                prop_assert!(connection.duration_ms >= 0.0);
                let costs = connection.lost_time.iter().filter_map(|cause| cause.cost_ms);
                prop_assert!(costs.sum::<f64>() <= connection.duration_ms * 1.001 + 1.0);
            }
        }
    }
}
