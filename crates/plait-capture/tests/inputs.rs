//! Captures with a fault of the recording: one direction, copies, wrong times, missing packets.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]

mod made;

use made::{Format, Link, Packet, Talk, explained, two_paths, written};
use plait_capture::{CaptureExplanation, Place};
use std::path::PathBuf;

fn of(name: &str, packets: &[Packet]) -> CaptureExplanation {
    explained(&[written(name, &Format::USUAL.file(packets, false))])
}

/// Returns [`two_paths`] with another time for each packet.
fn spaced(v6: bool) -> Talk {
    let mut talk = two_paths(v6);
    (0..).zip(&mut talk.packets).for_each(|(nth, packet)| packet.at_ns += nth * 1_000);
    talk
}

/// Returns the document as JSON without files and packet numbers.
fn comparable(mut document: CaptureExplanation) -> String {
    document.files.clear();
    for incident in document.connections.iter_mut().flat_map(|it| &mut it.incidents) {
        (incident.first.file, incident.first.packet) = (0, 0);
        (incident.last.file, incident.last.packet) = (0, 0);
    }
    serde_json::to_string_pretty(&document).unwrap()
}

#[test]
fn one_direction_has_no_causes() {
    let talk = two_paths(false);
    let document = of("server.pcapng", &talk.of(true));
    let expected = "The capture has only the packets from the server: 6.0 kB of data in ";
    assert!(document.sentence.starts_with(expected), "{}", document.sentence);
    assert_eq!(document.connections_found, 1, "the paths are joined by their numbers");
    let connection = &document.connections[0];
    assert!(connection.lost_time.is_empty() && connection.incidents.is_empty());
    assert!(connection.paths.iter().all(|path| path.link_mbps.is_none()));
    assert!(connection.fit.is_none());
    let [note] = &connection.notes[..] else { panic!("{:?}", connection.notes) };
    assert!(note.contains("only the packets from the server"), "{note}");
    let document = of("client.pcapng", &talk.of(false));
    assert!(document.connections[0].notes[0].contains("only the packets from the client"));
    assert!(document.connections[0].lost_time.is_empty());
}

#[test]
fn a_file_for_each_direction_is_one_capture() {
    for v6 in [false, true] {
        let talk = spaced(v6);
        let file =
            |name: &str, server: bool| written(name, &Format::USUAL.file(&talk.of(server), false));
        let (server, client) = (file("out.pcapng", true), file("in.pcapng", false));
        let expected = comparable(of("whole.pcapng", &talk.packets));
        for files in [[server.clone(), client.clone()], [client, server]] {
            let document = explained(&files);
            assert!(document.files.iter().all(|file| file.notes.is_empty()));
            assert!(comparable(document) == expected);
        }
    }
}

/// A path of which the capture has one direction has no causes of its own.
#[test]
fn one_direction_of_a_path_has_no_causes() {
    let talk = two_paths(false);
    let heard = talk.of(true).into_iter().map(|packet| packet.bytes);
    let heard: Vec<Vec<u8>> = heard.collect();
    let packets: Vec<Packet> = talk
        .packets
        .iter()
        .filter(|packet| packet.path == 0 || heard.contains(&packet.bytes))
        .cloned()
        .collect();
    let connection = &of("half.pcapng", &packets).connections[0];
    assert_eq!(connection.paths.len(), 2);
    assert!(
        connection.notes[0].starts_with("On p2 the capture has only"),
        "{:?}",
        connection.notes
    );
    assert!(connection.incidents.iter().all(|it| it.path.as_deref() != Some("p2")));
}

/// Returns each packet twice; `change` makes the copy.
fn twice(packets: &[Packet], change: impl Fn(&mut Packet)) -> Vec<Packet> {
    let copies = packets.iter().flat_map(|packet| {
        let mut copy = packet.clone();
        change(&mut copy);
        [packet.clone(), copy]
    });
    copies.collect()
}

#[test]
fn copies_count_once() {
    for v6 in [false, true] {
        let talk = two_paths(v6);
        let expected = comparable(of("once.pcapng", &talk.packets));
        let routed = twice(&talk.packets, |copy| {
            copy.at_ns += 3_000;
            copy.bytes[if v6 { 7 } else { 8 }] -= 1;
        });
        let document = of("routed.pcapng", &routed);
        let notes = &document.files[0].notes;
        assert_eq!(notes[0], "20 segments are copies of others in the file, and count once.");
        assert!(comparable(document) == expected);
    }
}

/// With an identification, a copy may come later, and a retransmission has another one.
#[test]
fn the_identification_decides() {
    let mut talk = Talk::new(false);
    let path = talk.open(false, 20);
    for nth in 0..6 {
        talk.plain(path);
        let ident = if nth == 5 { 9 } else { nth + 1 };
        talk.packets.last_mut().unwrap().bytes[4..6].copy_from_slice(&[0, ident]);
        talk.wait(1);
    }
    let last = talk.packets.last().unwrap().clone();
    let later = |ms: u64, ident: u8| {
        let mut copy = last.clone();
        copy.at_ns += ms * 1_000_000;
        copy.bytes[5] = ident;
        copy
    };
    let count = |copy: Packet| {
        let packets = [&talk.packets[..], &[copy]].concat();
        let document = of("ident.pcapng", &packets);
        (document.connections[0].paths[0].traffic.segments, document.files[0].notes.len())
    };
    assert_eq!(count(later(300, 9)), (6, 1));
    assert_eq!(count(later(300, 10)), (7, 0));
    assert_eq!(count(later(2_000, 9)), (7, 0));
    // Without an identification, 1 ms decides.
    assert_eq!(count(later(2, 0)), (7, 0));
}

#[test]
fn packets_are_sorted_by_time() {
    let talk = spaced(false);
    let path = |path: usize| talk.packets.iter().filter(move |it| it.path == path).cloned();
    let expected = comparable(of("sorted.pcapng", &talk.packets));
    for order in [[0, 1], [1, 0]] {
        let packets: Vec<Packet> = order.into_iter().flat_map(path).collect();
        let document = of("appended.pcapng", &packets);
        let [note] = &document.files[0].notes[..] else { panic!("{:?}", document.files) };
        assert!(note.contains("ms earlier than the packet before it."), "{note}");
        assert!(comparable(document) == expected);
    }
}

#[test]
fn a_clock_that_is_set_back_is_told() {
    let mut talk = two_paths(false);
    let expected = of("clock.pcapng", &talk.packets).connections[0].duration_ms;
    talk.packets[12..].iter_mut().for_each(|packet| packet.at_ns -= 3_600_000_000_000);
    let document = of("set.pcapng", &talk.packets);
    let [note] = &document.files[0].notes[..] else { panic!("{:?}", document.files) };
    assert!(
        note.starts_with("Packet 13 is 3599.98 s earlier than packets of its subflow"),
        "{note}"
    );
    let duration = document.connections[0].duration_ms;
    assert!(duration > expected - 60.0 && duration <= expected, "{duration} {expected}");
}

/// Simple Packet Blocks have no times.
#[test]
fn a_file_without_times_has_no_durations() {
    let mut talk = two_paths(false);
    talk.packets.iter_mut().for_each(|packet| packet.at_ns = 0);
    let document = of("timeless.pcapng", &talk.packets);
    assert!(document.sentence.contains("have no times"), "{}", document.sentence);
    let connection = &document.connections[0];
    assert_eq!((connection.duration_ms, connection.data.goodput_mbps), (0.0, 0.0));
    assert!(connection.incidents.is_empty() && connection.fit.is_none());
    for path in &connection.paths {
        assert_eq!((path.link_mbps, path.traffic.mean_mbps), (None, 0.0));
        assert_eq!(path.place, Place::Unknown);
    }
    assert!(connection.notes[0].contains("the same time"), "{:?}", connection.notes);
}

/// Returns a Simple Packet Block.
fn simple(packet: &[u8]) -> Vec<u8> {
    let len = packet.len().next_multiple_of(4) as u32 + 16;
    let mut block = Vec::new();
    for word in [3, len, packet.len() as u32] {
        block.extend(word.to_le_bytes());
    }
    block.extend(packet);
    block.resize(block.len().next_multiple_of(4), 0);
    block.extend(len.to_le_bytes());
    block
}

#[test]
fn a_packet_without_a_stamp_has_the_time_before_it() {
    let talk = two_paths(false);
    let mut file = Format::USUAL.file(&talk.packets[..9], false);
    file.extend(simple(&talk.packets[9].bytes));
    let document = explained(&[written("simple.pcapng", &file)]);
    assert_eq!((document.files[0].packets, document.files[0].segments), (10, 10));
    assert!(document.files[0].notes.is_empty() && document.files[0].broken.is_none());
}

#[test]
fn missing_bytes_are_counted() {
    let mut talk = Talk::new(false);
    let path = talk.open(false, 20);
    for round in 0..10 {
        for _ in 0..4 {
            talk.plain(path);
        }
        talk.wait(20);
        talk.ack(path, None);
        talk.wait(round);
    }
    let all = &of("all.pcapng", &talk.packets).connections[0];
    assert!(all.notes.is_empty(), "{:?}", all.notes);
    // Every fourth segment of each round, and the last round.
    let kept = talk.packets.iter().enumerate();
    let kept = kept.filter(|(at, it)| *at < 3 || it.bytes.len() < 500 || (at - 3) % 5 != 1);
    let kept: Vec<Packet> = kept.map(|(_, packet)| packet.clone()).collect();
    let notes = &of("some.pcapng", &kept).connections[0].notes;
    assert_eq!(
        notes[0],
        "10000 bytes were acknowledged on its paths and are not in the capture, which lacks packets."
    );
}

#[test]
fn data_of_a_missing_path_is_counted() {
    let talk = two_paths(false);
    let first: Vec<Packet> = talk.packets.iter().filter(|it| it.path == 0).cloned().collect();
    let connection = &of("first.pcapng", &first).connections[0];
    assert_eq!(connection.paths.len(), 1);
    // Pieces 0 to 3 are on this path; the last ACK of the file is for 4 of them.
    assert!(connection.notes.is_empty(), "{:?}", connection.notes);
    let second: Vec<Packet> = talk.packets.iter().filter(|it| it.path == 1).cloned().collect();
    let connection = &of("second.pcapng", &second).connections[0];
    let note = connection.notes.iter().find(|note| note.contains("on no path")).unwrap();
    assert!(note.starts_with("2000 acknowledged bytes of the data"), "{note}");
}

/// Without handshakes, the data sequence numbers of 8 or of 4 bytes join the paths.
#[test]
fn a_capture_from_the_middle_has_one_connection() {
    let talk = two_paths(false);
    let document = of("middle.pcapng", &talk.packets[7..]);
    assert_eq!(document.connections_found, 1);
    assert_eq!(document.connections[0].paths.len(), 2);
    assert!(document.connections[0].token.is_none());
}

#[test]
fn a_length_beyond_the_packet_is_damage() {
    for v6 in [false, true] {
        let mut talk = two_paths(v6);
        let bytes = &mut talk.packets[8].bytes;
        let at = if v6 { 4 } else { 2 };
        bytes[at..at + 2].copy_from_slice(&[0xff, 0xff]);
        let document = of("long.pcapng", &talk.packets);
        assert_eq!((document.files[0].packets, document.files[0].segments), (20, 19));
        let note = &document.files[0].notes[0];
        assert!(note.starts_with("1 packets have headers that contradict"), "{note}");
    }
}

/// A unit of time may be a power of two.
#[test]
fn binary_units_of_time_are_read() {
    let mut talk = two_paths(false);
    let expected = of("decimal.pcapng", &talk.packets).connections[0].duration_ms;
    for packet in &mut talk.packets {
        let ns = packet.at_ns - 1_700_000_000_000_000_000;
        packet.at_ns = (u128::from(ns) << 30).div_ceil(1_000_000_000) as u64;
    }
    let mut file = Format { link: Link::Raw, ..Format::USUAL }.file(&talk.packets, false);
    for at in 0..file.len().min(200) {
        if file[at..].starts_with(&[9, 0, 1, 0, 9]) {
            file[at + 4] = 0x80 | 30;
        }
    }
    let document = explained(&[written("binary.pcapng", &file)]);
    assert!(document.files[0].broken.is_none(), "{:?}", document.files);
    assert_eq!(document.connections[0].duration_ms, expected);
}

/// The TCP header after an extension header decides about copies, and not only its options.
#[test]
fn segments_after_extension_headers_are_no_copies() {
    let extended = |talk: &Talk| {
        let mut packets = talk.packets.clone();
        for packet in &mut packets {
            let len = u16::from_be_bytes([packet.bytes[4], packet.bytes[5]]) + 8;
            packet.bytes[4..6].copy_from_slice(&len.to_be_bytes());
            // Destination options with one option of padding.
            packet.bytes[6] = 60;
            packet.bytes.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
            // The network card writes the checksum later.
            packet.bytes[64..66].fill(0);
        }
        packets
    };
    // All data segments of a burst have the same options, and only their numbers differ.
    let mut talk = Talk::new(true);
    let path = talk.open(false, 20);
    for _ in 0..8 {
        talk.plain_with_clock(path, 77);
        talk.now += 10_000;
    }
    talk.wait(20);
    talk.ack(path, None);
    let expected = comparable(of("plain-v6.pcapng", &talk.packets));
    let document = of("extended.pcapng", &extended(&talk));
    assert!(document.files[0].notes.is_empty(), "{:?}", document.files);
    assert_eq!(document.connections[0].paths[0].traffic.segments, 8);
    assert!(comparable(document) == expected);
    // If the TCP header was cut, its place is unknown.
    let cut = Format { snap: 40 + 8 + 20 + 4, ..Format::USUAL }.file(&extended(&talk), false);
    let document = explained(&[written("extended-cut.pcapng", &cut)]);
    // The ACK without options and the third segment of the handshake are whole.
    assert_eq!(document.files[0].segments, 2, "{:?}", document.files);
}

/// Returns a file in which packet `nth` has another length on the link.
fn with_length(talk: &Talk, nth: usize, length: u32) -> Vec<u8> {
    let mut file = Format::USUAL.file(&talk.packets, false);
    let at = Format::USUAL.file(&talk.packets[..nth - 1], false).len() + 24;
    file[at..at + 4].copy_from_slice(&length.to_le_bytes());
    file
}

/// The length of the IP header counts, and that of the frame only if the IP header has none.
#[test]
fn a_wrong_length_of_a_frame_makes_no_data() {
    for v6 in [false, true] {
        let talk = two_paths(v6);
        let expected = comparable(of("lengths.pcapng", &talk.packets));
        for length in [70_000, 600_000, u32::MAX] {
            let file = written("length.pcapng", &with_length(&talk, 9, length));
            assert!(comparable(explained(&[file])) == expected, "{length}");
        }
        // A packet of segmentation offload has as many bytes as its frame, up to the limit of Linux.
        let mut offloaded = Talk::new(v6);
        let path = offloaded.open(false, 20);
        offloaded.plain(path);
        let bytes = &mut offloaded.packets[3].bytes;
        let at = if v6 { 4 } else { 2 };
        bytes[at..at + 2].fill(0);
        let headers = bytes.len() as u32 - made::PIECE;
        let data = |payload: u32| {
            let file = written("offload.pcapng", &with_length(&offloaded, 4, headers + payload));
            let document = explained(&[file]);
            (document.connections[0].data.bytes, document.files[0].notes.len())
        };
        assert_eq!(data(200_000), (200_000, 0));
        assert_eq!(data(524_280), (524_280, 0));
        assert_eq!(data(524_281), (0, 1));
    }
}

/// Returns the first packet of a conversation, a SYN, with another number.
fn syn_with(talk: &Talk, seq: u32, at_ns: u64) -> Packet {
    let mut syn = talk.packets[0].clone();
    syn.bytes[24..28].copy_from_slice(&seq.to_be_bytes());
    Packet { at_ns, ..syn }
}

fn download() -> Talk {
    let mut talk = Talk::new(false);
    let path = talk.open(false, 20);
    for _ in 0..10 {
        talk.plain(path);
        talk.plain(path);
        talk.wait(20);
        talk.ack(path, None);
    }
    talk
}

#[test]
fn a_repeated_syn_begins_no_subflow() {
    let mut talk = download();
    let mut syn = talk.packets[0].clone();
    syn.at_ns = talk.packets[6].at_ns;
    talk.packets.insert(7, syn);
    let document = of("repeated-syn.pcapng", &talk.packets);
    assert_eq!(document.connections_found, 1);
    assert_eq!(document.connections[0].data.bytes, 20_000);
}

/// A SYN has no answer, and the next attempt on the same ports has another number.
#[test]
fn a_syn_with_another_number_begins_a_connection() {
    let mut talk = download();
    let expected = &of("one-syn.pcapng", &talk.packets).connections[0];
    for isn in [5, 1 << 31, u32::MAX - 100_000] {
        let first = syn_with(&talk, isn, talk.packets[0].at_ns - 1_000_000_000);
        talk.packets.insert(0, first);
        let document = of("two-syns.pcapng", &talk.packets);
        assert_eq!((document.connections_found, document.connections.len()), (2, 2), "{isn}");
        let connection = &document.connections[0];
        assert_eq!(connection.data.bytes, 20_000, "{isn}");
        assert_eq!(connection.duration_ms, expected.duration_ms);
        assert_eq!(
            format!("{:?}", connection.paths[0].traffic),
            format!("{:?}", expected.paths[0].traffic)
        );
        talk.packets.remove(0);
    }
}

/// Writes the packets to files, each from one of `starts` to the next one.
fn rotated(name: &str, packets: &[Packet], starts: &[usize]) -> Vec<PathBuf> {
    let ends = starts.iter().skip(1).copied().chain([packets.len()]);
    let parts = starts.iter().zip(ends).enumerate();
    let write = |(nth, (start, end)): (usize, (&usize, usize))| {
        let file = Format::USUAL.file(&packets[*start..end], false);
        written(&format!("{name}-{nth}.pcapng"), &file)
    };
    parts.map(write).collect()
}

/// Tcpdump begins a new file now and then (`-C`, `-G`).
#[test]
fn rotated_files_are_one_capture() {
    for v6 in [false, true] {
        let talk = spaced(v6);
        let expected = comparable(of("unrotated.pcapng", &talk.packets));
        for starts in [vec![0, 12], vec![0, 1, 9, 14], (0..20).collect()] {
            let files = rotated("rotated", &talk.packets, &starts);
            let document = explained(&files);
            assert!(document.files.iter().all(|file| file.notes.is_empty()), "{starts:?}");
            assert!(comparable(document) == expected, "{starts:?}");
        }
    }
}

/// Ports are used again in a later file.
#[test]
fn a_later_file_has_a_new_connection_on_the_same_ports() {
    let first = download().packets;
    let mut second = first.clone();
    for packet in &mut second {
        packet.at_ns += 60_000_000_000;
        // The server's acknowledgements do not matter here.
        let at = if packet.bytes[15] == 1 { 24 } else { 28 };
        let number = u32::from_be_bytes(packet.bytes[at..at + 4].try_into().unwrap());
        let number = number.wrapping_add(1 << 20).to_be_bytes();
        packet.bytes[at..at + 4].copy_from_slice(&number);
    }
    let starts = [0, first.len()];
    let files = rotated("reused", &[first, second].concat(), &starts);
    let document = explained(&files);
    assert_eq!(document.connections_found, 2);
    assert!(document.connections.iter().all(|it| it.data.bytes == 20_000));
    assert!(document.files.iter().all(|file| file.notes.is_empty()), "{:?}", document.files);
}

/// Both hosts have the same packets, and one clock is behind: copies that come after the end of the first file count
/// once too.
#[test]
fn copies_of_a_slow_clock_count_once() {
    let mut talk = download();
    talk.reset(0, false, None);
    let expected = comparable(of("one-clock.pcapng", &talk.packets));
    let first = written("first-clock.pcapng", &Format::USUAL.file(&talk.packets, false));
    for behind in [0, 30_000_000, 10_000_000_000] {
        let mut packets = talk.packets.clone();
        packets.iter_mut().for_each(|packet| packet.at_ns += behind);
        let second = written("second-clock.pcapng", &Format::USUAL.file(&packets, false));
        let document = explained(&[first.clone(), second]);
        let note = &document.files[1].notes[0];
        let count = packets.len();
        assert!(note.starts_with(&format!("{count} segments are in another file")), "{note}");
        // Only the name of the file differs.
        assert_eq!(comparable(document).replace(" of file 0", ""), expected, "{behind}");
    }
}

/// The same without acknowledgements, by the time stamps of IPv6.
#[test]
fn copies_of_one_direction_count_once() {
    let mut talk = Talk::new(true);
    let path = talk.open(false, 20);
    for clock in 1..=50 {
        talk.plain_with_clock(path, clock);
        talk.wait(1);
    }
    let mut packets = talk.of(true);
    let first = written("one-way.pcapng", &Format::USUAL.file(&packets, false));
    packets.iter_mut().for_each(|packet| packet.at_ns += 10_000_000_000);
    let second = written("one-way-late.pcapng", &Format::USUAL.file(&packets, false));
    let document = explained(&[first, second]);
    let traffic = &document.connections[0].paths[0].traffic;
    assert_eq!((traffic.segments, traffic.retransmitted_segments), (50, 0));
}

/// Returns the packets with another sequence number of packet `nth`, from zero, in which one bit is wrong.
fn with_wrong_bit(packets: &[Packet], nth: usize, byte: usize, bit: u8) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    packets[nth].bytes[byte] ^= 1 << bit;
    packets
}

#[test]
fn a_wrong_bit_in_a_sequence_number_makes_no_data() {
    let talk = download();
    let expected = of("right.pcapng", &talk.packets);
    let sizes = talk.packets.iter().map(|it| it.bytes.len());
    let data: Vec<usize> = sizes.enumerate().filter(|it| it.1 > 500).map(|it| it.0).collect();
    for (nth, bit) in data[2..18].iter().zip((5..8).cycle()) {
        let document = of("wrong-bit.pcapng", &with_wrong_bit(&talk.packets, *nth, 24, bit));
        let connection = &document.connections[0];
        // The missing data is acknowledged later.
        assert_eq!((connection.data.bytes, connection.data.acked_bytes), (20_000, 20_000), "{nth}");
        assert_eq!(connection.duration_ms, expected.connections[0].duration_ms);
        assert_eq!(connection.paths[0].traffic.segments, 19);
        let note =
            "1 segments have sequence numbers far outside the receive window, and are left out.";
        assert!(connection.notes.iter().any(|it| it == note), "{:?}", connection.notes);
    }
}

/// Tcpdump may drop packets, and data then continues far away: only the first segment there does not count.
#[test]
fn data_after_a_large_gap_of_the_capture_counts() {
    for (lost, strays) in [(1_000, 0), (1_800, 0), (2_000, 1), (400_000, 1)] {
        let mut talk = Talk::new(false);
        let path = talk.open(false, 20);
        talk.plain(path);
        talk.wait(20);
        talk.ack(path, None);
        (0..lost).for_each(|_| talk.lose(path));
        for _ in 0..10 {
            talk.plain(path);
            talk.now += 100_000;
        }
        talk.wait(20);
        talk.ack(path, None);
        let document = of("large-gap.pcapng", &talk.packets);
        let connection = &document.connections[0];
        let bytes = 1_000 * (lost + 11);
        assert_eq!((connection.data.bytes, connection.data.acked_bytes), (bytes, bytes));
        assert_eq!(connection.paths[0].traffic.segments, 11 - strays);
        let far = connection.notes.iter().any(|note| note.starts_with("1 segments have sequence"));
        assert_eq!(far, strays > 0, "{:?}", connection.notes);
    }
}

const DAY_NS: u64 = 86_400_000_000_000;

/// The first packet has no time, or an early one.
#[test]
fn one_early_stamp_leaves_the_other_times() {
    let talk = two_paths(false);
    let expected = &of("in-time.pcapng", &talk.packets).connections[0];
    let check = |document: &CaptureExplanation, note: &str| {
        let connection = &document.connections[0];
        // The time from the first packet to the second one is lost, which is the RTT.
        let duration = connection.duration_ms;
        assert!((duration - expected.duration_ms).abs() <= 20.0, "{duration}");
        assert_eq!(
            connection.paths[1].traffic.mean_mbps, expected.paths[1].traffic.mean_mbps,
            "times of the second path"
        );
        assert!(document.files[0].notes[0].starts_with(note), "{:?}", document.files);
        assert_eq!(document.files[0].notes.len(), 1);
    };
    let no_time = "The packets before packet 2 have no times.";
    for (stamp, note) in [(0, no_time), (DAY_NS, "Packet 2 is 19674.9 days later than all")] {
        let mut packets = talk.packets.clone();
        packets[0].at_ns = stamp;
        check(&of("early.pcapng", &packets), note);
    }
    let header = Format::USUAL.file(&[], false);
    let rest = Format::USUAL.file(&talk.packets[1..], false);
    let file = [&header[..], &simple(&talk.packets[0].bytes), &rest[header.len()..]].concat();
    check(&explained(&[written("simple-first.pcapng", &file)]), no_time);
}

#[test]
fn a_clock_that_is_set_forward_is_told() {
    let mut talk = two_paths(false);
    let expected = of("not-set.pcapng", &talk.packets).connections[0].duration_ms;
    // A connection may pause for some hours.
    for (hours, note) in [
        (20, None),
        (48, Some("Packet 13 is 2.0 days later than all packets before it")),
        (4 * 365 * 24, Some("Packet 13 is 1460.0 days later than all packets before it")),
    ] {
        let set = hours * 3_600_000_000_000;
        talk.packets[12..].iter_mut().for_each(|packet| packet.at_ns += set);
        let document = of("set-forward.pcapng", &talk.packets);
        talk.packets[12..].iter_mut().for_each(|packet| packet.at_ns -= set);
        let notes = &document.files[0].notes;
        assert_eq!(notes.len(), usize::from(note.is_some()), "{notes:?}");
        assert!(note.is_none_or(|note| notes[0].starts_with(note)), "{notes:?}");
        let kept = if note.is_none() { hours as f64 * 3.6e6 } else { 0.0 };
        let duration = document.connections[0].duration_ms - kept;
        assert!(duration > expected - 60.0 && duration <= expected, "{duration} {expected}");
    }
}

/// Captures of several days in one file.
#[test]
fn days_between_connections_are_no_fault() {
    let mut later = two_paths(true).packets;
    later.iter_mut().for_each(|packet| packet.at_ns += 100 * DAY_NS);
    let first = download().packets;
    let document = of("days.pcapng", &[first, later].concat());
    assert_eq!(document.connections_found, 2);
    assert!(document.files[0].notes.is_empty(), "{:?}", document.files);
}

/// One of two hosts begins with the clock of 1970.
#[test]
fn a_file_with_a_wrong_clock_leaves_the_times_of_others() {
    let talk = download();
    let expected = &of("right-clock.pcapng", &talk.packets).connections[0];
    let mut early = two_paths(true).packets;
    early.iter_mut().for_each(|packet| packet.at_ns -= 19_675 * DAY_NS);
    let early = written("clock-of-1970.pcapng", &Format::USUAL.file(&early, false));
    let right = written("right-clock.pcapng", &Format::USUAL.file(&talk.packets, false));
    let document = explained(&[early, right]);
    assert_eq!(document.connections_found, 2);
    let connection = &document.connections[0];
    assert_eq!(connection.data.bytes, 20_000);
    assert_eq!(connection.duration_ms, expected.duration_ms);
    let note = "Packet 1 is 19675.0 days later than all packets before it, so a clock was wrong.";
    assert!(document.files[1].notes[0].starts_with(note), "{:?}", document.files);
}
