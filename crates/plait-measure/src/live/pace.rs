//! Sends a load at a steady rate.

use super::clock::{Clock, sleep};
use super::message::{Load, Sent};
use super::packet::{HEADER_BYTES, Kind, MAX_DATAGRAM_BYTES, Packet, Token};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shortest sleep. Packets that are due meanwhile are sent together.
const TICK: Duration = Duration::from_micros(500);

/// A sender that was held up sends at most the packets of this time at once.
const MAX_ARREARS_NS: u64 = 10_000_000;

/// Sends the packets of a load through `send`, until its time is over, `stop` is set, or `take` refuses the bytes of
/// a packet.
pub(super) fn run(
    load: &Load,
    token: Token,
    header_bytes: u64,
    stop: &AtomicBool,
    take: &dyn Fn(u64) -> bool,
    send: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Sent> {
    let size = usize::from(load.size_bytes).clamp(HEADER_BYTES, MAX_DATAGRAM_BYTES);
    let packet_bits = (size as u64 + header_bytes) * 8;
    let gap_ns = (packet_bits.saturating_mul(1_000_000_000) / load.rate_bps.max(1)).max(1);
    let time_ns = load.time_ms.saturating_mul(1_000_000);
    let clock = Clock::start();
    let mut bytes = [0; MAX_DATAGRAM_BYTES];
    let (mut number, mut due) = (0_u32, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        let elapsed = clock.elapsed_ns();
        if elapsed >= time_ns {
            break;
        }
        due = due.max(elapsed.saturating_sub(MAX_ARREARS_NS));
        if due > elapsed {
            sleep(Duration::from_nanos(due - elapsed).max(TICK).min(Duration::from_millis(50)));
            continue;
        }
        if !take(size as u64 + header_bytes) {
            break;
        }
        let packet = Packet {
            token,
            kind: Kind::Data,
            path: load.path,
            phase: load.phase,
            number,
            sent_ns: clock.now_ns(),
            probe_ns: 0,
            arrived_ns: 0,
            proof: 0,
        };
        packet.write(&mut bytes);
        match send(&bytes[..size]) {
            // The peer's port may be closed for a moment, and the queue of the device may be full.
            Err(error) if passes(&error) => {}
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        number = number.saturating_add(1);
        due += gap_ns;
    }
    Ok(Sent { packets: number.into(), time_ns: clock.elapsed_ns() })
}

/// Returns true for errors of a datagram that do not end a measurement.
pub(super) fn passes(error: &io::Error) -> bool {
    const NO_BUFFER_SPACE: i32 = 105;
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::WouldBlock | ErrorKind::Interrupted
    ) || matches!(error.kind(), ErrorKind::TimedOut)
        || error.raw_os_error() == Some(NO_BUFFER_SPACE)
}
