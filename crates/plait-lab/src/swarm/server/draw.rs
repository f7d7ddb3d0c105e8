//! Draws the case of a server from a seed.

use super::case::{Blow, Group, ServerCase, ServiceCase, Visit};
use crate::swarm::fault::log_within;
use plait_base::RandomStream;
use plait_engine::Limits;

/// Approximate number of bytes that all clients of a case send and receive together.
const BUDGET_BYTES: u64 = 3_000_000;

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
pub fn draw_server(seed: u64) -> ServerCase {
    let part = |name: &str| RandomStream::new(seed, &["server swarm", "draw", name]);
    let mut base = part("base");
    let memory_bytes = log_within(&mut base, 16 << 20, 64 << 20);
    let fit = Limits::fit(memory_bytes) as u64;
    let mut case = ServerCase {
        seed,
        rate_kbps: log_within(&mut base, 4_000, 400_000),
        rtt_us: log_within(&mut base, 1_000, 200_000),
        spread_us: if one_in(&mut base, 2) { log_within(&mut base, 1_000, 100_000) } else { 0 },
        loss_ppm: if one_in(&mut base, 3) { log_within(&mut base, 500, 30_000) as u32 } else { 0 },
        heals_ms: base.within(500, 4_000),
        memory_bytes,
        connections: if one_in(&mut base, 3) { log_within(&mut base, 4, fit) } else { fit },
        numbers: if one_in(&mut base, 3) { log_within(&mut base, 16, 1_024) } else { 1 << 24 },
        scheduler: pick(&mut base, &["minrtt", "minrtt", "linux", "redundant", "roundrobin"])
            .to_owned(),
        controller: pick(&mut base, &["cubic", "cubic", "lia", "reno"]).to_owned(),
        proxy_header: one_in(&mut base, 2),
        check: one_in(&mut base, 3),
        ..ServerCase::default()
    };
    if !one_in(&mut base, 2) {
        case.service = draw_service(&mut part("service"));
    }
    draw_clients(&mut part("clients"), &mut case);
    draw_strangers(&mut part("strangers"), &mut case);
    let mut crowd = part("crowd");
    if one_in(&mut crowd, 8) {
        draw_crowd(&mut crowd, &mut case);
    }
    draw_blows(&mut part("blows"), &mut case);
    case
}

fn draw_service(stream: &mut RandomStream) -> ServiceCase {
    let mut share = || if stream.below(3) == 0 { stream.within(10, 150) as u32 } else { 0 };
    ServiceCase {
        refuse: share(),
        late: share(),
        close: share(),
        reset: share(),
        deaf: share(),
        slow: share(),
    }
}

fn draw_clients(stream: &mut RandomStream, case: &mut ServerCase) {
    let mut visits = vec![pick(stream, &[Visit::Download, Visit::Upload, Visit::Both])];
    for visit in
        [Visit::Download, Visit::Upload, Visit::Both, Visit::Abort, Visit::Vanish, Visit::Stay]
    {
        if one_in(stream, 4) {
            visits.push(visit);
        }
    }
    let budget = BUDGET_BYTES / visits.len() as u64;
    for visit in visits {
        let churn = one_in(stream, 4);
        let count = log_within(stream, 1, 24) as u32;
        let times = if churn { log_within(stream, 2, 60) as u32 } else { 1 };
        let most = (budget / u64::from(count * times)).max(2);
        case.guests.push(Group {
            visit,
            count,
            from_ms: stream.below(2_000),
            every_us: log_within(stream, 10, 100_000),
            bytes: log_within(stream, 1, most),
            addresses: stream.within(1, 2) as u32,
            times,
            multipath: !one_in(stream, 4),
        });
    }
}

fn draw_strangers(stream: &mut RandomStream, case: &mut ServerCase) {
    let kinds = [Visit::Syn, Visit::OneShot, Visit::Idle, Visit::Unread, Visit::Garbage];
    for visit in kinds {
        if !one_in(stream, 4) {
            continue;
        }
        let most = if matches!(visit, Visit::Unread | Visit::Idle) { 200 } else { 2_000 };
        let count = log_within(stream, 5, most) as u32;
        case.guests.push(Group {
            visit,
            count,
            from_ms: stream.below(1_500),
            every_us: log_within(stream, 10, 2_000_000 / u64::from(count)),
            bytes: log_within(stream, 1_000, 1_000_000),
            addresses: 1,
            times: 1,
            multipath: false,
        });
    }
}

/// Adds many clients that do not read, then one that does.
fn draw_crowd(stream: &mut RandomStream, case: &mut ServerCase) {
    case.memory_bytes = 64 << 20;
    case.connections = Limits::fit(case.memory_bytes) as u64;
    case.numbers = 1 << 24;
    case.rate_kbps = case.rate_kbps.max(20_000);
    let group = |visit, count, from_ms, bytes| Group {
        visit,
        count,
        from_ms,
        every_us: 5_000,
        bytes,
        addresses: 1,
        times: 1,
        multipath: false,
    };
    let count = stream.within(80, 160) as u32;
    case.guests.truncate(1);
    case.guests.push(group(Visit::Unread, count, 0, 20_000_000));
    case.guests.push(group(Visit::Download, 1, 2_000, stream.within(2_000_000, 3_000_000)));
}

fn draw_blows(stream: &mut RandomStream, case: &mut ServerCase) {
    let window = |stream: &mut RandomStream| {
        let from = stream.below(4_000);
        (from, from + log_within(stream, 10, 4_000))
    };
    if one_in(stream, 8) {
        let (at_ms, back_ms) = window(stream);
        case.blows.push(Blow::Crash { at_ms, back_ms });
    }
    if one_in(stream, 6) {
        let (from_ms, to_ms) = window(stream);
        case.blows.push(Blow::Device { from_ms, to_ms });
    }
    if one_in(stream, 5) {
        let (from_ms, to_ms) = window(stream);
        case.blows.push(Blow::Address { from_ms, to_ms });
    }
    if one_in(stream, 10) {
        case.blows.push(Blow::Drain { at_ms: stream.below(5_000) });
    }
}
