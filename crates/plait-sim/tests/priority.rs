//! Subflows that become backups during a connection, and later regular again (MP_PRIO).

use crate::common::{at, limited, ms, setup, silent, spec, watched};
use plait_app::Role;
use plait_base::{PathId, Time};
use plait_core::{Carry, Config, Event};
use plait_sim::{Direction, Hop, Setup, Watch, Who};
use plait_wire::{Mptcp, Segment};

const RESTS: PathId = PathId(1);
const FROM: u64 = 2_000;
const TO: u64 = 4_000;

#[derive(Default)]
struct Seen {
    /// MP_PRIO sent: time, path, direction, backup flag.
    asked: Vec<(Time, PathId, Direction, bool)>,
    /// Times of data sent on the backup path, in either direction.
    sent: Vec<Time>,
    /// The same for the server, without retransmissions of the subflow's earlier data.
    chosen: Vec<Time>,
}

impl Watch for Seen {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if let Event::DataSent { subflow, carry, .. } = event
            && (who.host, subflow.index()) == (Role::Server, RESTS.index())
            && !matches!(carry, Carry::Retransmission | Carry::TailProbe)
        {
            self.chosen.push(now);
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        if hop != Hop::Sent {
            return;
        }
        if let Some(Mptcp::Prio { backup }) = segment.options.mptcp.as_deref() {
            self.asked.push((now, path, way, *backup));
        }
        if path == RESTS && !segment.payload.is_empty() {
            self.sent.push(now);
        }
    }
}

fn two_paths(scheduler: &str, workload: &str) -> Setup {
    let paths = vec![limited("one", 8, ms(30)), limited("two", 6, ms(50))];
    setup(paths, &spec(scheduler, "cubic", 2, Config::default()), workload)
}

/// Counts the `times` within a span given in milliseconds.
fn within(times: &[Time], from: u64, to: u64) -> usize {
    times.iter().filter(|time| (at(from)..at(to)).contains(time)).count()
}

/// R47, R48: the client sends MP_PRIO, and both ends respect it. In a download the server receives
/// it half a round trip later. In an upload the client itself is the sender.
#[test]
fn both_ends_schedule_by_it() {
    for scheduler in ["minrtt", "roundrobin", "redundant", "ecf", "blest"] {
        for workload in ["download:9MB", "upload:9MB"] {
            let mut setup = two_paths(scheduler, workload);
            setup.paths[RESTS.index()].resting.push((at(FROM), at(TO)));
            let seen = watched::<Seen>(&setup);
            let up = |time, backup| (at(time), RESTS, Direction::Up, backup);
            assert_eq!(seen.asked, [up(FROM, true), up(TO, false)], "{scheduler}, {workload}");
            let heard = if workload.starts_with("download") { 26 } else { 0 };
            let (before, rest, after) = (
                within(&seen.sent, 1_000, FROM),
                within(&seen.sent, FROM + heard + 1, TO),
                within(&seen.sent, TO, TO + 1_000),
            );
            assert_eq!(rest, 0, "{scheduler}, {workload}");
            assert!(before.min(after) > 100, "{scheduler}, {workload}: {before}, {after}");
        }
    }
}

/// R47: a lost MP_PRIO is not retransmitted; this end still treats the subflow as a backup.
#[test]
fn one_that_is_lost_is_not_repeated() {
    let mut setup = two_paths("minrtt", "download:4MB");
    setup.paths[RESTS.index()].resting.push((at(1_000), at(2_000)));
    setup.paths[RESTS.index()].up.outages.push((at(1_000), at(1_001)));
    let seen = watched::<Seen>(&setup);
    assert_eq!(seen.asked.len(), 2);
    assert!(within(&seen.sent, 1_100, 2_000) > 100);
}

/// R48: while the regular path is silent, the backup carries the data.
#[test]
fn a_backup_is_for_emergencies() {
    let mut setup = two_paths("minrtt", "download:6MB");
    setup.paths[RESTS.index()].resting.push((at(1_500), at(100_000)));
    setup.paths[0] = silent(setup.paths[0].clone(), at(2_000), at(4_000));
    let seen = watched::<Seen>(&setup);
    // 6 Mbit/s are 500 packets a second.
    assert_eq!(within(&seen.chosen, 1_530, 2_000), 0);
    assert!(within(&seen.sent, 2_500, 4_000) > 700);
    assert_eq!(within(&seen.chosen, 4_300, 100_000), 0);
}
