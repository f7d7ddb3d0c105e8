//! Captures made by hand, in every format, cut, damaged and in several files.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]

mod made;

use made::{CLIENT_KEY, Format, Link, PIECE, SERVER_KEY, Talk, two_paths};
use plait_capture::{CaptureExplanation, Cause, Place, Protocol, explain, is_capture};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("captures");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join(name);
    fs::write(&file, bytes).unwrap();
    file
}

fn explained(files: &[PathBuf]) -> CaptureExplanation {
    explain(files, "command".to_owned(), &mut |_| true).unwrap()
}

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
    assert_eq!(data.window_max_bytes, 960_000);
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
