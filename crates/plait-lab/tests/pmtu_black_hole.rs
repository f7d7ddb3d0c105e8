//! R63, F17: a path stops forwarding long packets without an ICMP message. Every subflow on it continues
//! within three timeouts of the first, and the connection uses shorter segments.

use crate::common::scenario;
use plait_base::{Span, SubflowId, Time};
use plait_core::{Event, SizeCause};
use plait_lab::Cell;
use plait_sim::{Watch, Who};

/// A subflow at the sending end.
#[derive(Clone, Copy, Default)]
struct Silence {
    /// Time of its first timeout after the path became narrow, and the length of that timeout.
    began: Option<(Time, Span)>,
    ended: Option<Time>,
}

/// Observations at the sender of a run.
struct Notes {
    from: Time,
    silences: [Silence; 8],
    sizes: Vec<(SubflowId, u64, SizeCause)>,
}

impl Notes {
    fn new(from_ms: u64) -> Notes {
        let from = Time::ZERO + Span::from_millis(from_ms);
        Notes { from, silences: [Silence::default(); 8], sizes: Vec::new() }
    }
}

impl Watch for Notes {
    fn on_core(&mut self, now: Time, _who: Who, event: &Event) {
        match *event {
            Event::Timeout { subflow, rto } if now >= self.from => {
                self.silences[subflow.index()].began.get_or_insert((now, rto));
            }
            Event::Acked { subflow, bytes, .. } if bytes > 0 => {
                let silence = &mut self.silences[subflow.index()];
                if silence.began.is_some() {
                    silence.ended.get_or_insert(now);
                }
            }
            Event::SegmentSize { subflow, bytes, cause } => {
                self.sizes.push((subflow, bytes, cause));
            }
            _ => {}
        }
    }
}

/// Runs every row of `line` over paths that are narrow from `from_ms` on. Returns the errors, one a line.
fn wrong(line: &str, from_ms: u64, seconds: f64) -> Vec<String> {
    let scenario = scenario(&format!("{line} --check --wire"));
    let look = |cell: Cell| {
        let mut notes = Notes::new(from_ms);
        let outcome = plait_lab::simulate(&cell, scenario.seed, &mut notes);
        let mut list = Vec::new();
        list.extend(outcome.violation.clone());
        let done = outcome.pairs[0][0].measures.completion_ms.unwrap_or(f64::INFINITY);
        if done > seconds * 1e3 && !line.contains("bulk") {
            list.push(format!("done at {done} ms"));
        }
        for silence in notes.silences {
            let Some((began, rto)) = silence.began else { continue };
            // The other path may have delivered everything before that.
            let over = Time::ZERO + Span::from_micros((done.min(1e9) * 1e3) as u64);
            let waited = silence.ended.unwrap_or(over).since(began);
            if waited > rto.times(3) {
                list.push(format!("timeout of {rto} at {began:?}, silent for {waited} after it"));
            }
        }
        list.into_iter().map(|it| format!("{cell}: {it}\n  {line}")).collect::<Vec<_>>()
    };
    plait_lab::cells(&scenario).into_iter().flat_map(look).collect()
}

fn none_is_wrong(lines: impl Iterator<Item = (String, u64, f64)>) {
    let all: Vec<String> =
        lines.flat_map(|(line, from, seconds)| wrong(&line, from, seconds)).collect();
    assert!(all.is_empty(), "{} wrong\n{}", all.len(), all.join("\n"));
}

#[test]
fn every_scheduler_moves_on_when_a_path_becomes_narrow() {
    let each = [1_280, 600].into_iter().flat_map(|mtu| {
        ["download:3MB", "upload:3MB", "bulk:6s"].into_iter().flat_map(move |workload| {
            ["a", "b", "ab"].into_iter().map(move |narrow| {
                let mtu_of = |path: &str| match narrow.contains(path) {
                    true => format!(",mtu=1500@0s/{mtu}@1s"),
                    false => String::new(),
                };
                let (a, b) = (mtu_of("a"), mtu_of("b"));
                let line = format!(
                    "--path a:rate=10mbit,rtt=20ms{a} --path b:rate=4mbit,rtt=60ms{b} \
                     --workload {workload}"
                );
                (line, 1_000, 12.0)
            })
        })
    });
    none_is_wrong(each);
}

/// The path never forwards long packets, so only the handshake passes at first.
#[test]
fn a_transfer_may_begin_over_a_hole() {
    let each = [1_280, 600].into_iter().flat_map(|mtu| {
        ["download", "upload"].into_iter().flat_map(move |workload| {
            let narrow = format!("rtt=20ms,mtu={mtu}");
            [
                format!("--path a:rate=10mbit,{narrow} --path b:rate=4mbit,rtt=60ms"),
                format!("--path a:rate=10mbit,{narrow} --path b:rate=4mbit,{narrow}"),
                format!("--path a:rate=10mbit,{narrow} --path b:rate=4mbit,rtt=60ms --checksum on"),
                format!("--path a:rate=10mbit,{narrow} --path b:rate=4mbit,{narrow} --subflows 2"),
            ]
            .map(|paths| (format!("{paths} --workload {workload}:1MB"), 0, 5.0))
        })
    });
    none_is_wrong(each);
}

/// Returns the segment sizes that the sender of each row of `line` reached, for several seeds.
fn sizes(line: &str, seeds: u64) -> Vec<Vec<u64>> {
    let scenario = scenario(line);
    let cells = plait_lab::cells(&scenario);
    let run = |(cell, seed): (&Cell, u64)| {
        let mut notes = Notes::new(0);
        let outcome = plait_lab::simulate(cell, seed, &mut notes);
        assert_eq!(outcome.violation, None, "{cell}");
        notes.sizes.iter().map(|it| it.1).collect()
    };
    cells.iter().flat_map(|cell| (1..=seeds).map(move |seed| (cell, seed))).map(run).collect()
}

/// The base size if it passes, otherwise the minimum. If no path is narrow, the size does not change.
#[test]
fn the_size_is_lowered_once_to_what_passes() {
    let line = |steps: &str| {
        format!(
            "--path a:rate=10mbit,rtt=20ms,mtu={steps} --path b:rate=4mbit,rtt=60ms,mtu={steps} \
             --workload bulk:6s --schedulers minrtt"
        )
    };
    assert_eq!(sizes(&line("1500@0s/1280@1s"), 1), [[1_128], [1_148], [1_148]]);
    assert_eq!(sizes(&line("1500@0s/600@1s"), 1), [[504], [524], [524]]);
    let twice = [[1_128, 504], [1_148, 524], [1_148, 524]];
    assert_eq!(sizes(&line("1500@0s/1280@1s/600@3s"), 1), twice);
    assert_eq!(sizes(&line("1500@0s/1499@1s/1500@1100ms"), 1), [[0; 0]; 3]);
}

/// A path with repeated outages, or with a loss of 3 %, must not be mistaken for one that only forwards short
/// packets.
#[test]
fn outages_and_losses_lower_nothing() {
    let outage = "--path a:rate=10mbit,rtt=20ms,down=1s..3s,down=4s..5s,down=6500ms..9s \
                  --path b:rate=4mbit,rtt=60ms,down=2s..4s --workload bulk:12s";
    let silent = sizes(outage, 1);
    assert!(silent.len() > 10 && silent.iter().all(Vec::is_empty), "{silent:?}");
    let lossy = "--path a:rate=10mbit,rtt=20ms,loss=3%,loss_up=3% --workload bulk:20s \
                 --path b:rate=4mbit,rtt=60ms,loss=3% --schedulers minrtt,roundrobin";
    let lossy = sizes(lossy, 20);
    assert_eq!(lossy.iter().filter(|sizes| !sizes.is_empty()).count(), 0, "of {}", lossy.len());
}
