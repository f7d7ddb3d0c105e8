//! The time limit of a run.

use crate::swarm::server::case::{Group, ServerCase};
use crate::swarm::server::service;
use plait_base::{Span, Time};

/// Time for transfers after everything has healed. Four times their transfer time and [`waits`]
/// come on top.
pub(super) const TIME_AFTER_HEALING: Span = Span::from_secs(25);
/// Bytes of the first flight of a connection: ten segments. Each further round trip doubles it.
const FIRST_FLIGHT: u64 = 14_000;
/// Round trips of a connection in addition to its data: the handshake, the request, and both ends.
const ROUND_TRIPS: u64 = 4;

/// Returns the time by which the transfers of a case must have ended.
pub(super) fn deadline(case: &ServerCase) -> Time {
    let clients = || case.guests.iter().filter(|it| it.visit.is_client());
    let bytes: u64 = clients().map(|it| 2 * it.bytes * u64::from(it.count * it.times)).sum();
    let takes = Span::from_micros(bytes.saturating_mul(4 * 8_000) / case.rate_kbps);
    let waits = clients().map(|it| waits(case, it)).max().unwrap_or_default();
    case.heals() + TIME_AFTER_HEALING + takes + waits
}

/// Returns the waiting time of the connections of a client, one after the other, on an idle link.
/// It consists of round trips and of late accepts.
fn waits(case: &ServerCase, group: &Group) -> Span {
    let doublings = u64::from((group.bytes / FIRST_FLIGHT + 1).ilog2());
    let round_trip = Span::from_micros(case.rtt_us + case.spread_us);
    let late = if case.service.late > 0 { service::LATE } else { Span::ZERO };
    let each = round_trip.times(ROUND_TRIPS + doublings) + late;
    each.times(u64::from(group.times))
}
