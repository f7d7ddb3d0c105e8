//! The live runs of a race.

use super::view::View;
use crate::commands::live::emulated::{lines, not_made};
use crate::console::Console;
use crate::failure::Failure;
use plait_app::Role;
use plait_base::Span;
use plait_core::{Config, ConnectionSpec, JoinTiming, Pacing};
use plait_lab::race::{Entrant, Heat, LiveRuns, RaceRun, Stack};
use plait_lab::run_seed;
use plait_live::emulate::{Line, Network};
use plait_live::transfer::{Sender, Transfer, Transferred};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time that a run may take beyond the duration of its workload.
const LONGEST_REST: Span = Span::from_secs(300);
/// Most tries of a run.
const TRIES: u32 = 8;
/// Congestion controllers of the kernel that a new connection may take.
const CONTROLLERS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The links of a run, and the view that shows them.
#[derive(Clone, Copy)]
struct Course<'a> {
    lines: &'a [Line],
    seed: u64,
    view: &'a View,
}

/// Makes the live runs.
pub(super) struct Track {
    /// Greatest lateness of the emulator in a run that counts.
    late: Span,
}

impl Track {
    /// Checks that this host can run the heats.
    pub(super) fn prepare(heats: &[Heat], late: Span) -> Result<Track, Failure> {
        let available = fs::read_to_string(CONTROLLERS).unwrap_or_default();
        for heat in heats {
            for entrant in &heat.entrants {
                let (Stack::Kernel(cc) | Stack::Tcp(_, cc)) = &entrant.stack else { continue };
                if !available.split_whitespace().any(|known| known == cc) {
                    return Err(Failure::Privilege(format!(
                        "--schedulers: `{}`: the kernel has no congestion controller `{cc}`\n  \
                         it has {}; load it: modprobe tcp_{cc}",
                        entrant.name,
                        available.trim()
                    )));
                }
            }
        }
        if let Some(heat) = heats.first() {
            let lines = lines(&heat.scenario, heat.scenario.seed)?;
            drop(Network::build(&lines, 1).map_err(|error| not_made(&error))?);
        }
        Ok(Track { late })
    }

    /// Makes `runs` runs of each sender. In each round, every heat and every sender has one run, so that changes
    /// of the machine over time affect all alike. The order of the senders changes from round to round.
    pub(super) fn run(
        &self,
        heats: &[Heat],
        runs: u64,
        cancelled: &AtomicBool,
        console: Console,
    ) -> Result<Vec<Vec<LiveRuns>>, Failure> {
        let mut live: Vec<Vec<LiveRuns>> =
            heats.iter().map(|heat| vec![LiveRuns::default(); heat.entrants.len()]).collect();
        let view = View::start(console);
        for round in 0..runs {
            for (heat, live) in heats.iter().zip(&mut live) {
                let seed = run_seed(heat.scenario.seed, u32::try_from(round).unwrap_or(u32::MAX));
                let lines = lines(&heat.scenario, seed)?;
                let count = heat.entrants.len();
                for turn in 0..count {
                    let at = (turn + round as usize) % count;
                    let entrant = &heat.entrants[at];
                    let place = if heat.name.is_empty() { "" } else { " " };
                    let (name, sender, round) = (&heat.name, &entrant.name, round + 1);
                    let heading = format!("{round}/{runs}{place}{name} {sender}");
                    view.head(format!("{heading}, {}", heat.scenario.workload));
                    view.stand(heat, live);
                    let course = Course { lines: &lines, seed, view: &view };
                    let Some(said) = self.one(heat, entrant, course, cancelled, &mut live[at])
                    else {
                        break;
                    };
                    view.remark(console, &format!("{heading}: {said}"));
                }
            }
            if cancelled.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(live)
    }

    /// Makes one run of a sender, and repeats it if the emulator was late. Returns its result in words, or `None`
    /// if it was cancelled.
    fn one(
        &self,
        heat: &Heat,
        entrant: &Entrant,
        Course { lines, seed, view }: Course<'_>,
        cancelled: &AtomicBool,
        live: &mut LiveRuns,
    ) -> Option<String> {
        let sender = sender(&entrant.stack);
        let transfer = Transfer {
            workload: &heat.scenario.workload,
            sender: &sender,
            rcvbuf: heat.rcvbuf(),
            deadline: deadline(heat),
        };
        let names: Vec<_> = lines.iter().map(|it| it.name.clone()).collect();
        let way = way(heat);
        let mut late = Span::ZERO;
        for _ in 0..TRIES {
            if cancelled.load(Ordering::Relaxed) {
                return None;
            }
            match transfer.run(lines, seed, cancelled, |links| view.watch(links, &names, way)) {
                Ok(Some(run)) => {
                    late = run.report.lateness.worst();
                    if late <= self.late {
                        return Some(count(heat, run, live));
                    }
                    live.repeated += 1;
                }
                Ok(None) if cancelled.load(Ordering::Relaxed) => return None,
                Ok(None) => {
                    return Some(failed(live, format!("not finished after {}", deadline(heat))));
                }
                Err(error) => return Some(failed(live, error.to_string())),
            }
        }
        let why = format!("the emulator was late in each of {TRIES} tries, the last time {late}");
        Some(failed(live, why))
    }
}

/// Returns the time after which an unfinished run is aborted.
fn deadline(heat: &Heat) -> Span {
    let workload = heat.scenario.workload.duration().unwrap_or(Span::ZERO);
    heat.scenario.deadline().min(workload + LONGEST_REST)
}

/// Returns 0 if the data goes down, and 1 if it goes up.
fn way(heat: &Heat) -> usize {
    usize::from(heat.scenario.workload.sender() == Role::Client)
}

/// Adds a run that counts, and returns its result in words.
fn count(heat: &Heat, run: Transferred, live: &mut LiveRuns) -> String {
    let Transferred { measures, report, joins } = run;
    let way = way(heat);
    let delivered = report.links.iter().map(|link| link[way].delivered_bytes).collect();
    let late_us = report.lateness.worst().as_micros();
    live.worst_late_us = live.worst_late_us.max(late_us);
    live.joined += u32::from(joins > 0);
    let names = plait_lab::race::measures(&heat.scenario.workload);
    let value = |name: &&str| {
        let value = measures.value(name).map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"));
        format!("{name}={value}")
    };
    let said: Vec<String> = names.iter().map(value).collect();
    live.runs.push(Some(RaceRun { measures, delivered }));
    format!("{}, {joins} joins, at most {late_us} us late", said.join(" "))
}

/// Adds a run that does not count.
fn failed(live: &mut LiveRuns, why: String) -> String {
    live.runs.push(None);
    live.failures.push(why.clone());
    why
}

fn sender(stack: &Stack) -> Sender {
    match stack {
        Stack::Plait(scheduler, cc) => {
            let (scheduler, cc) = (scheduler.clone(), cc.clone());
            Sender::Plait(Box::new(ConnectionSpec {
                // As `plait serve` and `plait get`.
                config: Config::default().with(|it| {
                    it.packets.superpacket = Config::SUPERPACKET;
                    it.joins.timing = JoinTiming::Agreed;
                    it.window.pacing = Pacing::asked_by(&scheduler);
                }),
                paths: Vec::new(),
                scheduler: Arc::new(move || scheduler.build()),
                controller: Arc::new(move |_| cc.build()),
                addresses: Vec::new(),
            }))
        }
        Stack::Kernel(cc) => Sender::Kernel(cc.clone()),
        Stack::Tcp(path, cc) => Sender::Tcp(*path, cc.clone()),
    }
}
