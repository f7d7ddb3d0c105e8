//! R1: a paced download during segments from more client addresses than 16 bits can number.

use super::Strangers;
use crate::net::kernel::Speaks;
use crate::net::timely::agreed;
use crate::net::{self, Bed, Family, Line};
use crate::{Watched, at_once};
use libtest_mimic::{Failed, Trial};
use plait_live::emulate::Report;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// A paced download, and the number of addresses that send segments during it.
#[derive(Clone, Copy)]
struct Addresses {
    mbit: u64,
    count: u32,
    per_second: u32,
}

const SOME: Addresses = Addresses { mbit: 20, count: 9_000, per_second: 1_500 };
/// R1 of the reliability goals.
const ALL: Addresses = Addresses { mbit: 80, count: 66_500, per_second: 3_500 };

pub fn trial(soak: bool) -> Trial {
    let crowd = if soak { ALL } else { SOME };
    Trial::test("many_addresses_leave_a_download_its_rate", move || kept(crowd))
}

/// Time after the attack in which the download continues. A backlog must not grow in it.
const AFTER: Duration = Duration::from_secs(2);
/// The rate is also checked in every window of this length; one begins every [`STEP`]. In a longer window a
/// download could make up for lost bytes.
const WINDOW: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(250);
/// Each request gets the bytes of this time at the given pace. One request is always in flight.
const PIECE: Duration = Duration::from_millis(50);
/// Largest part of a run for which the emulator may be late. Beyond it the run does not count.
const MOST_LATE: f64 = 0.05;

/// Results of a download during the attack.
#[derive(Debug)]
struct Kept {
    /// Bytes delivered from the start of the attack until [`AFTER`] its end, relative to the pace.
    share: f64,
    /// Least share of any [`WINDOW`] within that time, relative to the pace. Times when the emulator was late
    /// are excluded.
    least: f64,
    /// Longest time that a new client waited for its answer.
    longest: Duration,
}

/// R1: a download keeps 95 % of its rate, and new clients are served within a second.
fn kept(crowd: Addresses) -> Result<(), Failed> {
    let worse = |kept: &Kept| {
        let worse = kept.share < 0.95 || kept.least < 0.95 || kept.longest > Duration::from_secs(1);
        worse.then(|| format!("{kept:?}"))
    };
    agreed("a download beside many addresses", || beside(crowd), worse).map(drop)
}

fn beside(crowd: Addresses) -> Result<Option<Kept>, Failed> {
    let Addresses { mbit, count, per_second } = crowd;
    let bed = Bed::build(Family::V4, &[Line::new(mbit * 5 / 4, 20, mbit * 5_000)])?;
    let server = Watched::start(&bed, at_once(&bed.server)?, &[])?;
    let strangers = Strangers::behind(&bed)?;
    let (over, pieces) = (AtomicBool::new(false), AtomicU64::new(0));
    let attack = Duration::from_secs_f64(f64::from(count) / f64::from(per_second));
    let (arrivals, judged, longest) = thread::scope(|scope| {
        let reading = download(&server, scope, mbit, &over, &pieces);
        // A download that is behind would catch up during the attack.
        let begun = Instant::now();
        let due = || (begun.elapsed().as_millis() / PIECE.as_millis()) as u64;
        thread::sleep(Duration::from_secs(3));
        net::until("the pace", || pieces.load(Relaxed) + 2 >= due());
        let start = Instant::now();
        let crowded = scope.spawn(|| strangers.pace(count, per_second, &over, Strangers::knock));
        let mut longest = Duration::ZERO;
        while start.elapsed() < attack + AFTER {
            longest = longest.max(served_within(&server).unwrap_or(Duration::MAX));
            thread::sleep(Duration::from_millis(200));
        }
        let judged = start..start + attack + AFTER;
        crowded.join().unwrap();
        over.store(true, Relaxed);
        io::Result::Ok((reading.join().unwrap()?, judged, longest))
    })?;
    let told = |series| server.told(series);
    eprintln!(
        "{} client addresses have a number, {} half-open connections",
        told("plait_client_addresses"),
        told("plait_connections_half_open")
    );
    assert_eq!(told("plait_connections_refused_total{shortage=\"addresses\"}"), 0);
    server.end()?;
    let report = bed.emulator.stop()?;
    let late = late_spans(&report);
    let held_up = within(&late, &judged);
    let length = judged.end - judged.start;
    let pace = (mbit * 125_000) as f64;
    let bytes = |range: &Range<Instant>| -> u64 {
        arrivals.iter().filter(|(at, _)| range.contains(at)).map(|(_, bytes)| bytes).sum()
    };
    let windows = (0..).map(|n| judged.start + STEP * n).map(|start| start..start + WINDOW);
    let windows = windows.take_while(|window| window.end <= judged.end);
    let least = windows
        .map(|window| {
            bytes(&window) as f64 / pace / (WINDOW - within(&late, &window)).as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    let kept = Kept { share: bytes(&judged) as f64 / pace / length.as_secs_f64(), least, longest };
    eprintln!("{kept:?} in {length:?}, of which the emulator was late for {held_up:?}");
    let link = report.links[0];
    let drops = [link.down.dropped_queue, link.up.dropped_queue];
    eprintln!("{}; the link's queue dropped {drops:?} packets, down and up", report.lateness);
    Ok((held_up < length.mul_f64(MOST_LATE)).then_some(kept))
}

/// Times when the emulator was late, in order and without overlaps.
fn late_spans(report: &Report) -> Vec<Range<Instant>> {
    let (now, here) = (Instant::now(), report.clock.now());
    let instant = |at| now - Duration::from_nanos(here.since(at).as_nanos());
    let mut all: Vec<Range<Instant>> = Vec::new();
    for late in &report.late {
        let end = instant(late.at);
        let start = end - Duration::from_nanos(late.by.as_nanos());
        // They are sorted by their ends.
        let mut span = start..end;
        while let Some(last) = all.pop_if(|last| last.end >= span.start) {
            span.start = span.start.min(last.start);
        }
        all.push(span);
    }
    all
}

/// Returns the total length of these spans within a range.
fn within(spans: &[Range<Instant>], range: &Range<Instant>) -> Duration {
    let part = |span: &Range<Instant>| {
        span.end.min(range.end).saturating_duration_since(span.start.max(range.start))
    };
    spans.iter().map(part).sum()
}

/// Downloads at `mbit` until `over`, in pieces requested at the pace. Counts the pieces, and returns the times
/// and byte counts of arrivals.
fn download<'scope>(
    server: &'scope Watched<'_>,
    scope: &'scope thread::Scope<'scope, '_>,
    mbit: u64,
    over: &'scope AtomicBool,
    pieces: &'scope AtomicU64,
) -> ScopedJoinHandle<'scope, io::Result<Vec<(Instant, u64)>>> {
    scope.spawn(move || {
        let piece = (mbit * 125_000 * PIECE.as_millis() as u64 / 1_000) as usize;
        let request = format!("get {piece}\n");
        let (mut stream, mut buffer) = (server.ask(Speaks::Mptcp, piece)?, vec![0; 0x1_0000]);
        let start = Instant::now();
        let mut arrivals = Vec::new();
        for number in 1_u32.. {
            let due = start + PIECE * number;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            stream.write_all(request.as_bytes())?;
            let mut left = piece;
            while left > 0 {
                let wanted = left.min(buffer.len());
                let count = stream.read(&mut buffer[..wanted])?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                left -= count;
                arrivals.push((Instant::now(), count as u64));
            }
            pieces.fetch_add(1, Relaxed);
            if over.load(Relaxed) {
                break;
            }
        }
        Ok(arrivals)
    })
}

/// Returns the time that a new client waits for an answer.
fn served_within(server: &Watched<'_>) -> io::Result<Duration> {
    let start = Instant::now();
    server.ask(Speaks::Tcp, 1_000)?.read_exact(&mut [0; 1_000])?;
    Ok(start.elapsed())
}
