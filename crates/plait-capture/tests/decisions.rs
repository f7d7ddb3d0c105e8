//! Decisions of the kernel: a recorded trace of Linux 6.18, and traces made by hand in the form of each tool.
//!
//! The recorded transfer has 400 kB over two emulated links (20 Mbit/s with an RTT of 12 ms, 10 Mbit/s with 24 ms).
//! `kernel/server.pcap` is the capture at the server, `kernel/trace.txt` the file `trace` of tracefs with the clock
//! `boot`, and `kernel/perf.txt` the output of `perf script` for the same transfer.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]

mod made;

use made::{Format, Talk, written};
use plait_capture::{
    CaptureExplanation, ConnectionReport, KernelDecisions, KernelReport, Unexplained, explain,
    explain_with,
};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel").join(name)
}

fn with(capture: &Path, trace: &Path) -> Result<CaptureExplanation, Unexplained> {
    let kernel = KernelDecisions::read(trace).unwrap();
    explain_with(&[capture.to_owned()], &kernel, "command".to_owned(), &mut |_| true)
}

fn kernel(document: &CaptureExplanation) -> (&ConnectionReport, &KernelReport) {
    let connection = &document.connections[0];
    (connection, connection.kernel.as_ref().unwrap())
}

#[test]
fn a_recorded_trace_is_aligned_and_its_lines_belong_to_paths() {
    let document = with(&recorded("server.pcap"), &recorded("trace.txt")).unwrap();
    let (connection, found) = kernel(&document);
    // The client of the same machine decided once, before its only path carried data.
    assert_eq!((found.lines, found.left_out_lines), (293, 1));
    assert!(found.matched_percent > 95.0, "{found:?}");
    let [wifi, lte] = &found.paths[..] else { panic!("{found:?}") };
    assert_eq!((wifi.asked, lte.asked, found.decisions), (180, 112, 180));
    // The kernel takes a path as often as it says, and nothing after the others.
    assert_eq!(wifi.taken + lte.taken + found.nothing_sent, found.decisions);
    // The faster path is taken more often, and paced faster: both agree with the capture.
    assert!(wifi.taken > 5 * lte.taken, "{found:?}");
    assert!(connection.paths[0].traffic.bytes > 5 * connection.paths[1].traffic.bytes);
    assert!(wifi.pace_mbps > lte.pace_mbps, "{found:?}");
    assert_eq!((wifi.backup, wifi.active), (0, 180));
    // Until the join, the kernel considers the first path alone.
    let join = connection.paths[1].joined_ms.unwrap();
    let before = connection.incidents.iter().filter(|it| it.to_ms < join);
    let counts = before.flat_map(|it| it.kernel.as_ref().unwrap()).map(|it| (&*it.path, it.asked));
    let counts: Vec<(&str, usize)> = counts.collect();
    assert!(counts.len() >= 2 && counts.iter().all(|it| it.0 == "p1" || it.1 == 0), "{counts:?}");
}

#[test]
fn perf_and_tracefs_show_the_same_decisions() {
    let tracefs = with(&recorded("server.pcap"), &recorded("trace.txt")).unwrap();
    let perf = with(&recorded("server.pcap"), &recorded("perf.txt")).unwrap();
    let (one, other) = (kernel(&tracefs), kernel(&perf));
    assert_eq!(format!("{:?}", one.1.paths), format!("{:?}", other.1.paths));
    for (one, other) in one.0.incidents.iter().zip(&other.0.incidents) {
        assert_eq!(format!("{:?}", one.kernel), format!("{:?}", other.kernel));
    }
    // Perf has a clock of its own, 1.5 ms from that of tracefs.
    let between = one.1.offset_s - other.1.offset_s;
    assert!((0.001..0.002).contains(&between.abs()), "{between}");
}

/// The form of a trace.
#[derive(Clone, Copy, Debug)]
enum Tool {
    Tracefs,
    TraceCmd,
    Perf,
}

/// Seconds from the clock of the trace to that of the capture.
const AHEAD_S: i64 = 1_699_995_000;

/// A transfer with decisions: the capture, and the lines of the trace as time and fields.
struct Made {
    talk: Talk,
    lines: Vec<(i64, String)>,
}

impl Made {
    /// Makes a transfer in which the kernel takes the slow path each third time, at irregular times. `slow` is the
    /// state of the slow path: the fields `active`, `free` and `backup`.
    fn new(rounds: u64, slow: [u8; 3]) -> Made {
        let mut talk = Talk::new(false);
        let fast = talk.open(true, 20);
        talk.ack(fast, Some(0));
        let other = talk.open(true, 50);
        let mut made = Made { talk, lines: Vec::new() };
        let mut state = 11_u64;
        for piece in 0..rounds {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            made.talk.now += 300_000 + (state >> 43);
            let takes_slow = piece % 3 == 2 && slow == [1, 1, 0];
            // 5 ms are queued on one path, 9 ms on the other.
            let queued = |ms: u64| (ms << 32) / 1_000;
            let (first, second) = if takes_slow { (9, 5) } else { (5, 9) };
            let fields = |active: u8, free: u8, backup: u8, pace: u32, ms: u64| {
                format!(
                    "active={active} free={free} snd_wnd=65536 pace={pace} backup={backup} ratio={}",
                    queued(ms)
                )
            };
            let at = made.talk.now as i64 - AHEAD_S * 1_000_000_000 - 12_000;
            made.lines.push((at, fields(1, 1, 0, 2_500_000, first)));
            let [active, free, backup] = slow;
            made.lines.push((at + 1_000, fields(active, free, backup, 1_250_000, second)));
            let path = if takes_slow { other } else { fast };
            made.talk.data(path, piece);
            made.talk.now += 500_000 + (state >> 42) % 700_000;
            made.talk.ack(path, Some(piece + 1));
        }
        made
    }

    fn trace(&self, tool: Tool) -> String {
        let line = |(at, fields): &(i64, String)| {
            let (seconds, micros) = (at / 1_000_000_000, at % 1_000_000_000 / 1_000);
            let event = "mptcp_subflow_get_send";
            match tool {
                Tool::Tracefs => {
                    format!(
                        "  <idle>-0       [002] b.s3. {seconds}.{micros:06}: {event}: {fields}\n"
                    )
                }
                Tool::TraceCmd => {
                    format!(
                        "          <idle>-0     [002] {seconds}.{micros:06}: {event}: {fields}\n"
                    )
                }
                Tool::Perf => {
                    format!("swapper     0 [002] {seconds}.{micros:06}: mptcp:{event}: {fields}\n")
                }
            }
        };
        let head = match tool {
            Tool::Tracefs => "# tracer: nop\n#\n#           TASK-PID     CPU#\n",
            Tool::TraceCmd => "CPU 0 is empty\ncpus=4\n",
            Tool::Perf => "",
        };
        head.to_owned() + &self.lines.iter().map(line).collect::<String>()
    }

    fn explained(&self, name: &str, tool: Tool) -> Result<CaptureExplanation, Unexplained> {
        let capture = Format::USUAL.file(&self.talk.packets, true);
        let capture = written(&format!("{name}.pcapng"), &capture);
        with(&capture, &written(&format!("{name}.txt"), self.trace(tool).as_bytes()))
    }
}

#[test]
fn the_trace_of_each_tool_is_counted_by_path() {
    let made = Made::new(150, [1, 1, 0]);
    for tool in [Tool::Tracefs, Tool::TraceCmd, Tool::Perf] {
        let document = made.explained("counted", tool).unwrap();
        let (_, found) = kernel(&document);
        assert_eq!((found.lines, found.decisions, found.left_out_lines), (300, 150, 0), "{tool:?}");
        let [wifi, lte] = &found.paths[..] else { panic!("{found:?}") };
        assert_eq!((wifi.path.as_str(), lte.path.as_str()), ("wifi", "lte"));
        assert_eq!((wifi.asked, wifi.could_take, wifi.taken), (150, 150, 100), "{tool:?}");
        assert_eq!((lte.asked, lte.could_take, lte.taken), (150, 150, 50), "{tool:?}");
        let near =
            |value: Option<f64>, expected: f64| (value.unwrap() / expected - 1.0).abs() < 0.02;
        assert!(near(wifi.pace_mbps, 20.0) && near(lte.pace_mbps, 10.0), "{found:?}");
        assert!(near(wifi.queued_ms, 5.0) && near(lte.queued_ms, 9.0), "{found:?}");
        assert!(near(wifi.send_window_bytes, 65_536.0), "{found:?}");
        // The decisions are 12 us before their packets, and times have microseconds.
        assert!((found.offset_s - AHEAD_S as f64 - 12e-6).abs() < 3e-6, "{}", found.offset_s);
        assert_eq!((found.matched_percent, found.nothing_sent), (100.0, 0));
    }
}

#[test]
fn a_path_that_the_kernel_cannot_take_is_never_taken() {
    // Without room, as a backup beside a regular path, and inactive.
    for (slow, counts) in
        [([1, 0, 0], (150, 0, 0)), ([1, 1, 1], (150, 150, 150)), ([0, 1, 0], (0, 150, 0))]
    {
        let document = Made::new(150, slow).explained("never", Tool::Tracefs).unwrap();
        let (_, found) = kernel(&document);
        let lte = &found.paths[1];
        assert_eq!((lte.active, lte.free, lte.backup), counts, "{slow:?}");
        assert_eq!((lte.could_take, lte.taken, found.paths[0].taken), (0, 0, 150), "{slow:?}");
        assert_eq!(lte.pace_mbps.is_some(), slow[0] == 1, "{slow:?}");
    }
}

#[test]
fn decisions_that_belong_elsewhere_are_refused() {
    let reason = |outcome: Result<CaptureExplanation, Unexplained>| match outcome {
        Err(Unexplained::Unaligned(reason)) => reason,
        other => panic!("{other:?}"),
    };
    // A trace of another transfer.
    let made = Made::new(150, [1, 1, 0]);
    let capture = written("own.pcapng", &Format::USUAL.file(&made.talk.packets, true));
    assert!(
        reason(with(&capture, &recorded("trace.txt"))).contains("decisions are next to a packet")
    );
    // Few decisions fit anywhere.
    let mut few = Made::new(150, [1, 1, 0]);
    few.lines.truncate(10);
    assert!(reason(few.explained("few", Tool::Perf)).contains("too few"));
    // Plain TCP has no such decisions.
    let mut talk = Talk::new(false);
    let path = talk.open(false, 20);
    talk.plain(path);
    talk.wait(20);
    talk.ack(path, None);
    let plain = written("plain.pcapng", &Format::USUAL.file(&talk.packets, false));
    assert!(
        reason(with(&plain, &recorded("trace.txt"))).contains("no data of a connection with MPTCP")
    );
}

#[test]
fn lines_that_fit_no_path_are_left_out() {
    let mut made = Made::new(150, [1, 1, 0]);
    // One line of a decision is missing, and the trace says that it lost events.
    made.lines.remove(101);
    let trace = made.trace(Tool::Tracefs) + "CPU:2 [LOST 1 EVENTS]\n";
    let capture = written("lost.pcapng", &Format::USUAL.file(&made.talk.packets, true));
    let document = with(&capture, &written("lost.txt", trace.as_bytes())).unwrap();
    let (_, found) = kernel(&document);
    assert_eq!((found.lines, found.left_out_lines, found.decisions), (299, 1, 149));
    assert_eq!(found.notes, ["Lost events in the trace: 1 notices; enlarge its buffer."]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A changed trace is explained or refused; it never causes a panic.
    #[test]
    fn damaged_traces_do_no_harm(
        changes in proptest::collection::vec((0_usize..42_000, any::<u8>()), 1..40),
    ) {
        let mut bytes = fs::read(recorded("trace.txt")).unwrap();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let trace = written("damaged.txt", &bytes);
        match KernelDecisions::read(&trace) {
            Ok(kernel) => {
                let files = [recorded("server.pcap")];
                _ = explain_with(&files, &kernel, String::new(), &mut |_| true);
            }
            Err(broken) => prop_assert!(broken.packet > 12, "{broken:?}"),
        }
    }

    /// Times at both ends of their range cause no overflow.
    #[test]
    fn any_times_do_no_harm(times in proptest::collection::vec(0_u64..5_000_000_000, 12..80)) {
        let line = |at: &u64| {
            format!(
                "nc-1 [000] {at}.5: mptcp_subflow_get_send: active=1 free=1 snd_wnd=1 pace=1 backup=0 \
                 ratio=18446744073709551615\n"
            )
        };
        let trace = written("times.txt", times.iter().map(line).collect::<String>().as_bytes());
        if let Ok(kernel) = KernelDecisions::read(&trace) {
            let files = [recorded("server.pcap")];
            let outcome = explain_with(&files, &kernel, String::new(), &mut |_| true);
            prop_assert!(matches!(outcome, Err(Unexplained::Unaligned(_))), "{outcome:?}");
        }
    }
}

/// A trace adds its decisions and changes nothing else.
#[test]
fn the_rest_of_the_document_stays() {
    let plain = explain(&[recorded("server.pcap")], "command".to_owned(), &mut |_| true).unwrap();
    let mut document = with(&recorded("server.pcap"), &recorded("trace.txt")).unwrap();
    document.connections[0].kernel = None;
    document.connections[0].incidents.iter_mut().for_each(|it| it.kernel = None);
    assert_eq!(format!("{document:?}"), format!("{plain:?}"));
}
