//! What a drawing gets of a capture: every segment and acknowledgement of the largest transfer, in the order of time.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]

mod made;

use made::{Format, PIECE, Talk, explained, two_paths, written};
use plait_capture::{
    CaptureExplanation, ConnectionReport, DataKind, Happening, Moment, Watch, explain_watched,
};
use std::path::PathBuf;

#[derive(Default)]
struct Seen {
    began: Vec<u64>,
    moments: Vec<Moment>,
}

impl Watch for Seen {
    fn begin(&mut self, connection: &ConnectionReport) {
        assert!(self.moments.is_empty());
        self.began.push(connection.data.bytes);
    }

    fn happens(&mut self, moment: &Moment) {
        self.moments.push(*moment);
    }
}

fn watched(files: &[PathBuf]) -> (CaptureExplanation, Seen) {
    let mut seen = Seen::default();
    let document =
        explain_watched(files, None, "plait".to_owned(), &mut |_| true, &mut seen).unwrap();
    (document, seen)
}

fn count(seen: &Seen, wanted: DataKind) -> usize {
    let is = |it: &&Moment| matches!(it.what, Happening::Data { kind, .. } if kind == wanted);
    seen.moments.iter().filter(is).count()
}

#[test]
fn each_segment_is_told_once_with_the_state_after_it() {
    let file = written("watched.pcapng", &Format::USUAL.file(&two_paths(false).packets, true));
    let (document, seen) = watched(std::slice::from_ref(&file));
    let plain = serde_json::to_string(&explained(&[file])).unwrap();
    assert_eq!(
        serde_json::to_value(&document).unwrap()["connections"],
        serde_json::from_str::<serde_json::Value>(&plain).unwrap()["connections"]
    );
    assert_eq!(seen.began, [6 * u64::from(PIECE)]);
    // As in the tables: eight segments, of which one was sent again and one is a copy of the other path's.
    assert_eq!(count(&seen, DataKind::First), 6);
    assert_eq!((count(&seen, DataKind::Again), count(&seen, DataKind::Reinjected)), (1, 1));
    assert!(seen.moments.is_sorted_by_key(|it| it.at_ns));
    let last = seen.moments.last().unwrap();
    assert_eq!((last.unacked, last.path_unacked, last.window), (0, 0, Some(960_000)));
    let trips = |path: usize| {
        let of = |it: &Moment| match it.what {
            Happening::RoundTrip(rtt) if it.path == path => Some(rtt),
            _ => None,
        };
        seen.moments.iter().filter_map(of).collect::<Vec<_>>()
    };
    let [fast, slow] = &document.connections[0].paths[..] else { panic!() };
    assert_eq!(trips(0).len() as u64, fast.rtt.as_ref().unwrap().samples);
    assert_eq!(trips(1).len() as u64, slow.rtt.as_ref().unwrap().samples);
    assert_eq!(trips(0).iter().min(), Some(&20_000_000));
}

/// At the receiver, an acknowledgement takes effect when the sender has it.
#[test]
fn acknowledgements_come_at_the_time_of_the_sender() {
    let mut talk = Talk::new(false);
    let path = talk.open_at_client(40);
    talk.ack(path, Some(0));
    for piece in 0..20 {
        talk.data(path, piece);
        talk.ack(path, Some(piece + 1));
        talk.wait(10);
    }
    let file = written("receiver.pcapng", &Format::USUAL.file(&talk.packets, false));
    let (_, seen) = watched(&[file]);
    assert!(seen.moments.is_sorted_by_key(|it| it.at_ns));
    let acked = seen.moments.iter().filter(|it| matches!(it.what, Happening::Acked(_)));
    let acked: Vec<u64> = acked.map(|it| it.at_ns / 1_000_000).collect();
    assert_eq!(acked[acked.len() - 20..], (0..20).map(|at| at * 10 + 40).collect::<Vec<_>>());
    let most = seen.moments.iter().map(|it| it.unacked).max().unwrap();
    assert!((4..=5).contains(&(most / u64::from(PIECE))), "{most}");
}

/// The largest transfer is drawn, whatever its place in the file, and no other one.
#[test]
fn only_the_largest_transfer_is_told() {
    let mut small = two_paths(true).packets;
    let large = two_paths(false).packets;
    small.truncate(12);
    let all = [small, large].concat();
    let file = written("two.pcapng", &Format::USUAL.file(&all, false));
    let (document, seen) = watched(&[file]);
    assert_eq!(document.connections_found, 2);
    assert_eq!(count(&seen, DataKind::First), 6);
    let empty = written("empty.pcapng", &Format::USUAL.file(&[], false));
    let (document, seen) = watched(&[empty]);
    assert_eq!(document.connections_found, 0);
    assert!(seen.began.is_empty() && seen.moments.is_empty());
}
