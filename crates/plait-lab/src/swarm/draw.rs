//! Draws the case of a seed.

use super::case::{Case, End, EndCase, Finish, LATEST_MS, MemoryCase, PathCase, Settings};
use super::fault::{Fault, KINDS, log_within};
use crate::scenario::{IDLE_RESTARTS, RTOS};
use plait_base::RandomStream;
use plait_cc::HyStart;
use plait_core::{JoinTiming, Prr, ReduceFrom};
use plait_sched::Goal;

/// Approximate transfer time on the slowest path alone without faults, in milliseconds. It limits
/// the sent bytes.
const BUDGET_MS: u64 = 12_000;
/// Latest drawn time at which the faults heal, in milliseconds. A fault that ends later postpones
/// it.
const HEALED_MS: u64 = 12_000;
/// Half of the time of a transfer after all faults have healed, in milliseconds.
const QUEUE_MS: u64 = 30_000;

/// Sizes at a boundary: nothing, one byte, about a segment, about the largest unscaled window.
const ODD_SIZES: [u64; 14] =
    [0, 1, 2, 199, 535, 1_427, 1_428, 1_429, 2_856, 14_280, 14_281, 65_535, 65_536, 99_991];

/// The properties of a case that a fault depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) paths: usize,
    /// Number of bytes that the client and the server expect.
    pub(super) expects: [u64; 2],
    /// Approximate transfer time without faults, in milliseconds.
    pub(super) lasts_ms: u64,
}

impl Shape {
    pub(super) fn any_path(&self, stream: &mut RandomStream) -> usize {
        stream.below(self.paths as u64) as usize
    }

    pub(super) const fn expects(&self, end: End) -> u64 {
        match end {
            End::Client => self.expects[0],
            End::Server => self.expects[1],
        }
    }

    /// Returns an end that reads data, more often the one that reads more.
    pub(super) fn reader(&self, stream: &mut RandomStream) -> End {
        let more = if self.expects[0] >= self.expects[1] { End::Client } else { End::Server };
        if stream.below(4) == 0 { more.other() } else { more }
    }

    /// Returns a random time of the transfer, in milliseconds.
    pub(super) fn moment(&self, stream: &mut RandomStream) -> u64 {
        if stream.below(4) == 0 { stream.below(100) } else { stream.below(self.lasts_ms.max(1)) }
    }
}

fn pick<T: Copy>(stream: &mut RandomStream, from: &[T]) -> T {
    from[stream.below(from.len() as u64) as usize]
}

/// Returns true with a probability of 1/n.
fn one_in(stream: &mut RandomStream, n: u64) -> bool {
    stream.below(n) == 0
}

/// Draws the case of a seed. Each part has its own random stream, so that a new part does not
/// change the others.
#[must_use]
pub fn draw(seed: u64) -> Case {
    let part = |name: &str| RandomStream::new(seed, &["swarm", name]);
    let paths = draw_paths(&mut part("paths"));
    let (controller, window) =
        draw_controller(&mut part("controller"), &mut part("added controller"));
    let (client, server) = draw_ends(&mut part("ends"), &paths, window);
    let mut case = Case {
        seed,
        shared_kbps: log_within(&mut part("shared"), 2_000, 40_000),
        scheduler: draw_scheduler(&mut part("scheduler"), &mut part("added scheduler")),
        controller,
        settings: draw_settings(&mut part("settings")),
        pairs: 1 + u32::from(one_in(&mut part("pairs"), 10)),
        connections: 1 + u32::from(one_in(&mut part("connections"), 10)),
        paths,
        client,
        server,
        ..Case::default()
    };
    if one_in(&mut part("copy"), 8) {
        case.scheduler.push_str("+copy");
    }
    if case.settings.join == JoinTiming::AfterSynAck && one_in(&mut part("join"), 2) {
        case.settings.join = JoinTiming::Agreed;
    }
    if one_in(&mut part("recovery"), 4) {
        case.settings.prr = Prr::Rfc6937;
    }
    if case.settings.hystart == HyStart::PlusPlus {
        let all = [HyStart::PlusPlus, HyStart::PlusPlus, HyStart::Linux, HyStart::Linux3];
        case.settings.hystart = pick(&mut part("hystart"), &all);
    }
    case.settings.kernel = one_in(&mut part("kernel"), 8);
    let mut growth = part("growth");
    (case.client.grows, case.server.grows) = (one_in(&mut growth, 3), one_in(&mut growth, 3));
    draw_prices(&mut part("price"), &mut case);
    let mut works = part("send cost");
    if one_in(&mut works, 6) {
        case.settings.send_cost_ns = log_within(&mut works, 500, 100_000);
    }
    draw_memory(&mut part("memory"), &mut case);
    let shape = shape(&case);
    for kind in KINDS {
        let mut stream = part(kind.name);
        if stream.below(100) < kind.per_cent {
            case.faults.push(kind.draw(&mut stream, &shape));
            // Occasionally there are two faults of a kind.
            if one_in(&mut stream, 8) {
                case.faults.push(kind.draw(&mut stream, &shape));
            }
        }
    }
    make_room(&mut case);
    let last = case.faults.iter().map(Fault::ends_ms).max().unwrap_or(0);
    let heals = part("heals").within(2_000, HEALED_MS);
    case.heals_ms = if case.faults.is_empty() { 0 } else { heals.max(last).min(LATEST_MS) };
    case
}

/// Number of schedulers when seeds were first named in tests.
const FIRST_SCHEDULERS: usize = 13;

fn draw_paths(stream: &mut RandomStream) -> Vec<PathCase> {
    let count = stream.within(2, 4);
    let shares = one_in(stream, 5);
    let backup = one_in(stream, 5);
    (0..count)
        .map(|index| PathCase {
            rate_kbps: log_within(stream, 1_000, 50_000),
            rtt_us: log_within(stream, 1_000, 400_000),
            queue_packets: if one_in(stream, 3) { stream.within(5, 60) as u32 } else { 0 },
            jitter_us: if one_in(stream, 3) { log_within(stream, 500, 30_000) } else { 0 },
            codel: one_in(stream, 6),
            shared: shares && !one_in(stream, 3),
            backup: backup && index + 1 == count,
            ..PathCase::default()
        })
        .collect()
}

/// Draws costs of paths, a quota of one path, and a goal. Data continues beyond the quota if no other path works,
/// because every transfer must end.
fn draw_prices(stream: &mut RandomStream, case: &mut Case) {
    if !one_in(stream, 6) {
        return;
    }
    let mut has_quota = false;
    for path in &mut case.paths {
        path.cost = pick(stream, &[0, 0, 1, 1, 2, 3]);
        if one_in(stream, 3) {
            let bytes = log_within(stream, 2_000, 2_000_000);
            path.quota_bytes = if has_quota { 0 } else { bytes };
            has_quota = true;
        }
    }
    let (goal, _) = pick(stream, Goal::ALL);
    case.scheduler.push_str(&format!("+price:goal={goal},over_quota=down"));
}

/// Draws what the hosts remember of their paths: right numbers, wrong ones, and old ones.
fn draw_memory(stream: &mut RandomStream, case: &mut Case) {
    if !one_in(stream, 4) {
        return;
    }
    let wrong = stream.below(3);
    let thresholds = one_in(stream, 3);
    for end in [End::Client, End::Server] {
        for (path, known) in case.paths.iter().enumerate() {
            let mut memory = MemoryCase {
                end,
                path,
                rate_kbps: known.rate_kbps,
                received_kbps: if end == End::Client { known.rate_kbps * 3 / 4 } else { 0 },
                rtt_us: known.rtt_us,
                ssthresh_bytes: if thresholds { log_within(stream, 1_000, 4_000_000) } else { 0 },
                age_s: if one_in(stream, 8) { stream.within(3_500, 3_700) } else { 0 },
            };
            // All numbers are right, all are wrong, or each may be either.
            let mut is_wrong = || wrong == 1 || wrong == 2 && one_in(stream, 2);
            let [rate, rtt] = [is_wrong(), is_wrong()];
            if rate {
                memory.rate_kbps = log_within(stream, 1, 100_000_000);
                memory.received_kbps = log_within(stream, 1, 100_000_000);
            }
            if rtt {
                memory.rtt_us = log_within(stream, 1, 60_000_000);
            }
            if !one_in(stream, 6) {
                case.memory.push(memory);
            }
        }
    }
}

/// Draws a scheduler. Those that were added after seeds had been named are drawn from a stream of their own,
/// so that few named seeds draw another scheduler than before.
fn draw_scheduler(stream: &mut RandomStream, added: &mut RandomStream) -> String {
    let names: Vec<&str> = plait_sched::SCHEDULERS.iter().map(|entry| entry.about.name).collect();
    let (first, later) = names.split_at(FIRST_SCHEDULERS.min(names.len()));
    let mut name = pick(stream, first).to_owned();
    if added.below(names.len() as u64) < later.len() as u64 {
        pick(added, later).clone_into(&mut name);
    }
    if one_in(stream, 3) {
        name.push_str("+rp");
    }
    if one_in(stream, 6) {
        name.push_str(pick(stream, &["+bm", "+bm:estimate=rate"]));
    }
    name
}

/// Number of controllers when seeds were first named in tests.
const FIRST_CONTROLLERS: usize = 7;

/// Draws a controller, and the largest window that it can have, in segments. Later ones are drawn as later
/// schedulers are.
fn draw_controller(stream: &mut RandomStream, added: &mut RandomStream) -> (String, u64) {
    let names: Vec<&str> = plait_cc::CONTROLLERS.iter().map(|entry| entry.about.name).collect();
    let (first, later) = names.split_at(FIRST_CONTROLLERS.min(names.len()));
    let name = pick(stream, first);
    if added.below(names.len() as u64) < later.len() as u64 {
        return (pick(added, later).to_owned(), u64::MAX);
    }
    match name {
        "fixed" => {
            let window = stream.within(1, 60);
            (format!("fixed:cwnd={window}seg"), window)
        }
        name => (name.to_owned(), u64::MAX),
    }
}

/// The values that seeds drew before [`JoinTiming::Agreed`] was added, which replaces half of one of them.
const FIRST_JOINS: [JoinTiming; 3] =
    [JoinTiming::AfterData, JoinTiming::AfterSynAck, JoinTiming::Simultaneous];

fn draw_settings(stream: &mut RandomStream) -> Settings {
    Settings {
        join: pick(stream, &FIRST_JOINS),
        rto: pick(stream, RTOS).1,
        idle_restart: pick(stream, IDLE_RESTARTS).1,
        reduce_from: pick(stream, &[ReduceFrom::Window, ReduceFrom::Flight]),
        ssthresh_bytes: if one_in(stream, 3) { 64 << 10 } else { 0 },
        initial_window: pick(stream, &[10, 10, 10, 1, 2, 4, 32]),
        hystart: if one_in(stream, 3) { HyStart::PlusPlus } else { HyStart::Off },
        tsq: one_in(stream, 3),
        probes: !one_in(stream, 4),
        subflows: pick(stream, &[1, 1, 1, 1, 1, 2, 3]),
        second_address: one_in(stream, 6),
        pacing: one_in(stream, 4),
        undo: !one_in(stream, 4),
        ..Settings::default()
    }
}

fn draw_ends(stream: &mut RandomStream, paths: &[PathCase], window: u64) -> (EndCase, EndCase) {
    let real_bytes = one_in(stream, 3);
    let mut ends = [(); 2].map(|()| {
        let mtu_bytes = pick(stream, &[1500, 1500, 1500, 1500, 576, 1280, 1400, 9000]);
        EndCase {
            real_bytes,
            multipath: !one_in(stream, 20),
            rcvbuf_bytes: draw_buffer(stream, u64::from(mtu_bytes), 6 << 20),
            sndbuf_bytes: draw_buffer(stream, u64::from(mtu_bytes), 4 << 20),
            mtu_bytes,
            delayed_ack: !one_in(stream, 4),
            checksum: one_in(stream, 6),
            ..EndCase::default()
        }
    });
    let segment = u64::from(ends[0].mtu_bytes.min(ends[1].mtu_bytes)) - 72;
    for (sender, receiver) in [(0, 1), (1, 0)] {
        let buffers = ends[sender].sndbuf_bytes.min(ends[receiver].rcvbuf_bytes);
        let most = capacity(paths, buffers.min(window.saturating_mul(segment)), segment);
        let sender = &mut ends[sender];
        sender.send_bytes = match stream.below(10) {
            0 => pick(stream, &ODD_SIZES).min(most),
            _ if most < 200_000 => log_within(stream, 1_000, most.max(2_000)),
            _ => log_within(stream, 100_000, most.min(4_000_000)),
        };
        if one_in(stream, 6) {
            // In pieces, with pauses between them.
            sender.write_bytes = sender.send_bytes / stream.within(2, 20) + 1;
            sender.write_every_ms = log_within(stream, 1, 400);
        }
    }
    let finish = [Finish::AtOnce, Finish::AfterReceipt, Finish::AfterPeer];
    ends[0].finish = pick(stream, &finish);
    ends[1].finish =
        pick(stream, &finish[..if ends[0].finish == Finish::AfterPeer { 2 } else { 3 }]);
    let [client, server] = ends;
    (client, server)
}

/// Draws a buffer size from one segment up to `most`.
fn draw_buffer(stream: &mut RandomStream, mtu: u64, most: u64) -> u64 {
    match stream.below(10) {
        0 => mtu - 40,
        1 => mtu * stream.within(1, 5),
        2 | 3 => log_within(stream, 4_000, 65_536),
        4 | 5 => log_within(stream, 65_536, 400_000),
        _ => most,
    }
}

/// Returns the number of bytes that the slowest path carries within the budget with this window. A
/// small queue reduces it to the bytes that the queue passes in [`QUEUE_MS`]. Bursts overflow such
/// a queue long before the path is full.
fn capacity(paths: &[PathCase], window: u64, segment: u64) -> u64 {
    let of = |path: &PathCase| {
        // The queue, a delayed ACK and the jitter add to the propagation delay.
        let rtt_ms = (path.rtt_us + 2 * path.jitter_us) / 1_000 + 140;
        let stands = match u64::from(path.queue_packets) {
            0 => u64::MAX,
            packets => packets * segment * QUEUE_MS / (path.rtt_us / 1_000).max(1),
        };
        (path.rate_kbps / 8 / 2 * BUDGET_MS).min(window * BUDGET_MS / rtt_ms).min(stands)
    };
    paths.iter().map(of).min().unwrap_or(0)
}

fn shape(case: &Case) -> Shape {
    let expects = [case.server.send_bytes, case.client.send_bytes];
    let kbps: u64 = case.paths.iter().map(|path| path.rate_kbps).sum();
    let rtt = case.paths.iter().map(|path| path.rtt_us / 1_000).min().unwrap_or(0);
    let lasts_ms = (expects[0].max(expects[1]) * 8 / kbps.max(1) + 2 * rtt).min(HEALED_MS / 2);
    Shape { paths: case.paths.len(), expects, lasts_ms }
}

/// Limits the buffer of a slow or stopping reader to less than the sent data, so that the fault has
/// an effect.
fn make_room(case: &mut Case) {
    for fault in case.faults.clone() {
        let (Fault::ZeroWindow { end, .. } | Fault::SlowReader { end, .. }) = fault else {
            continue;
        };
        let sent = case.end(end.other()).send_bytes;
        let reader = case.end_mut(end);
        let segment = u64::from(reader.mtu_bytes);
        reader.rcvbuf_bytes = reader.rcvbuf_bytes.min((sent / 4).max(segment));
        reader.grows = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_choice_is_drawn() {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut note = |what: String| *seen.entry(what).or_default() += 1;
        for seed in 0..2_000 {
            let case = draw(seed);
            assert!((2..=4).contains(&case.paths.len()));
            assert!(case.client.send_bytes <= 4_000_000 && case.server.send_bytes <= 4_000_000);
            note(case.scheduler.clone());
            note(case.controller.split(':').next().unwrap_or_default().to_owned());
            note(format!("{:?}", case.settings.join));
            note(format!("{:?}", case.settings.rto));
            note(format!("{:?}", case.settings.idle_restart));
            note(format!("{:?}", case.client.finish));
            case.faults.iter().for_each(|fault| note(fault.kind().to_owned()));
        }
        for entry in plait_sched::SCHEDULERS {
            assert!(seen.contains_key(entry.about.name), "{}", entry.about.name);
            assert!(seen.contains_key(&format!("{}+rp", entry.about.name)), "{}", entry.about.name);
            assert!(seen.contains_key(&format!("{}+bm", entry.about.name)), "{}", entry.about.name);
            assert!(
                seen.contains_key(&format!("{}+copy", entry.about.name)),
                "{}",
                entry.about.name
            );
        }
        for entry in plait_cc::CONTROLLERS {
            assert!(seen.contains_key(entry.about.name), "{}", entry.about.name);
        }
        for kind in KINDS {
            assert!(seen.get(kind.name).is_some_and(|count| *count >= 200), "{}", kind.name);
        }
    }

    #[test]
    fn large_transfers_and_small_buffers_are_both_common() {
        let cases: Vec<Case> = (0..1_000).map(draw).collect();
        let share = |holds: fn(&Case) -> bool| cases.iter().filter(|case| holds(case)).count();
        assert!(
            share(|case| case.client.send_bytes.max(case.server.send_bytes) >= 1_000_000) > 150
        );
        assert!(share(|case| case.server.rcvbuf_bytes <= 1_500) > 50);
        assert!(share(|case| case.server.grows && case.client.rcvbuf_bytes < 1 << 18) > 50);
        assert!(share(|case| case.client.rcvbuf_bytes == 6 << 20) > 200);
        assert!(share(|case| case.client.real_bytes) > 200);
        assert!(share(|case| case.paths.iter().any(|path| path.cost > 0)) > 100);
        assert!(share(|case| case.paths.iter().any(|path| path.quota_bytes > 0)) > 50);
        assert!((200..300).contains(&share(|case| !case.memory.is_empty())));
        assert!(share(|case| case.memory.iter().any(|it| it.ssthresh_bytes > 0)) > 50);
        assert!(share(|case| case.memory.iter().any(|it| it.age_s > 3_600)) > 50);
        let is_right = |case: &Case, it: &MemoryCase| it.rate_kbps == case.paths[it.path].rate_kbps;
        let some = |right: bool| {
            let has = |case: &&Case| case.memory.iter().any(|it| is_right(case, it) == right);
            cases.iter().filter(has).count()
        };
        assert!(some(true) > 100 && some(false) > 100);
    }
}
