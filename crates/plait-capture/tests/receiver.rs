//! Captures made by hand as at the receiver of the data: which losses it shows.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]

mod made;

use made::{Format, Talk};
use plait_capture::{Cause, ConnectionReport, Place, explain};
use std::fs;
use std::path::PathBuf;

/// RTT of both paths in ms, and segments of a round on each.
const RTT_MS: u64 = 40;
const LOSSY_PIECES: u64 = 8;
const CLEAN_PIECES: u64 = 10;

/// A download over two paths, captured at the client.
struct Download {
    talk: Talk,
    /// The path that loses segments, and the other one.
    lossy: usize,
    clean: usize,
    /// The next piece of the data.
    next: u64,
}

impl Download {
    fn new() -> Download {
        let mut talk = Talk::new(false);
        let lossy = talk.open_at_client(RTT_MS);
        talk.ack(lossy, Some(0));
        let clean = talk.open_at_client(RTT_MS);
        let mut all = Download { talk, lossy, clean, next: 0 };
        (0..10).for_each(|_| all.round());
        all
    }

    /// One segment arrives on a path, and is acknowledged.
    fn piece(&mut self, path: usize) {
        self.talk.data(path, self.next);
        self.next += 1;
        self.talk.ack(path, Some(self.next));
    }

    /// A round of both paths, spread over an RTT.
    fn round(&mut self) {
        let all = LOSSY_PIECES + CLEAN_PIECES;
        for at in 0..all {
            let path = if at < LOSSY_PIECES * 2 && at % 2 == 0 { self.lossy } else { self.clean };
            self.piece(path);
            self.talk.now += RTT_MS * 1_000_000 / all;
        }
    }

    /// A round of the clean path alone, while `missing` is missing, if it is given.
    fn clean_round(&mut self, missing: Option<u64>) {
        for _ in 0..CLEAN_PIECES {
            self.talk.data(self.clean, self.next);
            self.next += 1;
            self.talk.ack(self.clean, Some(missing.unwrap_or(self.next)));
            self.talk.now += RTT_MS * 1_000_000 / CLEAN_PIECES;
        }
    }

    /// A segment of the lossy path is lost, and the next one arrives. The first one arrives again after `rounds`.
    fn lose_and_repair(&mut self, rounds: usize) {
        let missing = self.next;
        self.talk.lose(self.lossy);
        self.talk.data(self.lossy, missing + 1);
        self.next += 2;
        self.talk.ack_without(self.lossy, 2, missing);
        (0..rounds).for_each(|_| self.clean_round(Some(missing)));
        self.talk.late(self.lossy, missing, 2);
        self.talk.ack(self.lossy, Some(self.next));
    }

    fn explained(&self, name: &str) -> ConnectionReport {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("receiver");
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join(format!("{name}.pcapng"));
        fs::write(&file, Format::USUAL.file(&self.talk.packets, false)).unwrap();
        let document = explain(&[file], "command".to_owned(), &mut |_| true).unwrap();
        let connection = document.connections.into_iter().next().unwrap();
        assert!(connection.paths.iter().all(|path| path.place == Place::Receiver));
        assert_incidents_are_apart(&connection);
        connection
    }
}

/// Incidents of one cause and path do not overlap, and their costs are those of their cause.
fn assert_incidents_are_apart(connection: &ConnectionReport) {
    let incidents = &connection.incidents;
    for (nth, one) in incidents.iter().enumerate() {
        for other in incidents.iter().take(nth) {
            let same = (one.cause, &one.path) == (other.cause, &other.path);
            let apart = one.from_ms >= other.to_ms || other.from_ms >= one.to_ms;
            assert!(!same || apart, "{one:?} {other:?}");
        }
    }
    for cause in &connection.lost_time {
        let of = incidents.iter().filter(|it| (it.cause, &it.path) == (cause.cause, &cause.path));
        let (count, sum) = (of.clone().count(), of.filter_map(|it| it.cost_ms).sum::<f64>());
        assert_eq!(count, cause.incidents, "{cause:?}");
        assert!((sum - cause.cost_ms.unwrap()).abs() < 0.1, "{cause:?} {sum}");
    }
}

/// Returns the first cause with its path.
fn first(connection: &ConnectionReport) -> (Cause, Option<&str>) {
    let first = &connection.lost_time[0];
    (first.cause, first.path.as_deref())
}

/// While a gap of a path is open, its sender repairs a loss. The path does not have room.
#[test]
fn a_gap_that_is_filled_late_is_a_loss() {
    let mut all = Download::new();
    for _ in 0..12 {
        all.lose_and_repair(5);
        (0..3).for_each(|_| all.round());
    }
    let connection = all.explained("gap");
    assert_eq!(first(&connection), (Cause::Loss, Some("p1")), "{:#?}", connection.lost_time);
    // Of each repair, the lossy path lost nearly all of 200 ms. It has 8 of 18 parts of the rate.
    let cost = connection.lost_time[0].cost_ms.unwrap();
    assert!((cost / (12.0 * 200.0 * 8.0 / 18.0) - 1.0).abs() < 0.3, "{:#?}", connection.lost_time);
}

/// The last segment of a flight is lost, so there is no gap. The sender repeats it after its timeout, and meanwhile the
/// other path has brought the data.
#[test]
fn a_repetition_after_a_timeout_is_a_loss() {
    let mut all = Download::new();
    for _ in 0..12 {
        let missing = all.next;
        all.next += 1;
        (0..5).for_each(|_| all.clean_round(Some(missing)));
        all.talk.data(all.clean, missing);
        all.talk.ack(all.clean, Some(all.next));
        all.clean_round(None);
        all.talk.data(all.lossy, missing);
        all.talk.ack(all.lossy, Some(all.next));
        (0..3).for_each(|_| all.round());
    }
    let connection = all.explained("timeout");
    assert_eq!(first(&connection), (Cause::Loss, Some("p1")), "{:#?}", connection.lost_time);
}

/// A path that brings only new data after a pause lost nothing.
#[test]
fn a_path_without_a_gap_lost_nothing() {
    let mut all = Download::new();
    for _ in 0..12 {
        (0..6).for_each(|_| all.clean_round(None));
        (0..3).for_each(|_| all.round());
    }
    let connection = all.explained("unused");
    let losses = connection.lost_time.iter().filter(|it| it.cause == Cause::Loss);
    assert_eq!(losses.count(), 0, "{:#?}", connection.lost_time);
}

/// A copy of recent data on a path that paused is none of lost data: its sender had sent nothing there.
#[test]
fn a_copy_of_recent_data_is_no_loss() {
    let mut all = Download::new();
    for _ in 0..12 {
        (0..7).for_each(|_| all.clean_round(None));
        all.talk.data(all.lossy, all.next - 1);
        all.talk.ack(all.lossy, Some(all.next));
        (0..3).for_each(|_| all.round());
    }
    let connection = all.explained("copy");
    let losses = connection.lost_time.iter().filter(|it| it.cause == Cause::Loss);
    assert_eq!(losses.count(), 0, "{:#?}", connection.lost_time);
}
