//! Repeats measurements of time, because a busy machine can falsify one.

use super::urgent::Urgent;
use libtest_mimic::Failed;
use plait_live::emulate::{Direction, Report};
use plait_live::{StackCounters, Untaken};

/// Most measurements of one claim. If they settle nothing, the claim is skipped.
pub const TRIES: usize = 5;
/// Number of measurements that refute a claim, if one is not enough.
const REFUTATIONS: usize = 3;

/// Measures a claim about times until it is settled, at most [`TRIES`] times. `look` returns a measurement,
/// or `None` if packets were late. `refute` returns the contradiction to the claim, if there is one. Returns
/// the measurement that settled the claim, or `None` with a printed note if none did.
///
/// With real-time priority, one measurement decides. Without it, a program may have waited for a core while
/// no packet was late. Then more measurements have to support the claim than refute it, and [`REFUTATIONS`]
/// refute it.
pub fn measured<T>(
    what: &str,
    look: impl FnMut() -> Result<Option<T>, Failed>,
    refute: impl Fn(&T) -> Option<String>,
) -> Result<Option<T>, Failed> {
    let urgent = Urgent::start();
    let refutations = if urgent.holds() { 1 } else { REFUTATIONS };
    settled(what, refutations, look, refute)
}

/// Does the same for a value that scatters about its expectation, such as the share of a path. More
/// measurements have to support the claim than refute it.
pub fn agreed<T>(
    what: &str,
    look: impl FnMut() -> Result<Option<T>, Failed>,
    refute: impl Fn(&T) -> Option<String>,
) -> Result<Option<T>, Failed> {
    let _urgent = Urgent::start();
    settled(what, REFUTATIONS, look, refute)
}

fn settled<T>(
    what: &str,
    refutations: usize,
    look: impl FnMut() -> Result<Option<T>, Failed>,
    refute: impl Fn(&T) -> Option<String>,
) -> Result<Option<T>, Failed> {
    // Print refutations even if the claim holds in the end.
    let refute = |seen: &T| refute(seen).inspect(|why| eprintln!("refuted: {what}: {why}"));
    Ok(match weighed(what, refutations, look, refute)? {
        Ok(seen) => Some(seen),
        Err(why) => {
            println!("skipped: {what}: not measured, {why}");
            None
        }
    })
}

/// Measures until the claim is settled. Returns the measurement, or the reason why nothing is settled.
pub fn weighed<T>(
    what: &str,
    refutations: usize,
    mut look: impl FnMut() -> Result<Option<T>, Failed>,
    refute: impl Fn(&T) -> Option<String>,
) -> Result<Result<T, String>, Failed> {
    let (mut borne_out, mut refuted) = (0, Vec::new());
    for _ in 0..TRIES {
        let Some(seen) = look()? else { continue };
        match refute(&seen) {
            None => borne_out += 1,
            Some(why) => refuted.push(why),
        }
        if borne_out > refuted.len() {
            return Ok(Ok(seen));
        }
        if refuted.len() >= refutations {
            return Err(format!("{what}: {}", refuted.join("; ")).into());
        }
    }
    let why = if refuted.is_empty() { "packets were late".to_owned() } else { refuted.join("; ") };
    Ok(Err(why))
}

/// EAGAIN, ENOMEM and ENOBUFS: the kernel had no room for a packet.
const NO_ROOM: [i32; 3] = [11, 12, 105];

/// Asserts that the kernel accepted every packet of plait. A TUN device returns before TCP processes the
/// packet, so TCP's judgement of a late packet (outside the window, old timestamp) is no error. The device
/// refuses malformed packets (EINVAL), packets while it is down (EIO), and packets without memory. Lack of
/// memory is excused if packets were also late.
pub fn none_dropped(counters: &StackCounters, report: &Report) {
    let late = !report.lateness.allows_timing();
    let excused = match counters.why {
        Some(Untaken::Refused(_, Some(code))) => late && NO_ROOM.contains(&code),
        Some(_) => false,
        None => true,
    };
    if counters.dropped > 0 {
        eprintln!("dropped: {counters:?}");
    }
    assert!(excused && counters.dropped < 5, "{counters:?}");
}

/// Asserts that every link carried data: `bytes` if no packet was late, else more than handshakes need.
/// `None` checks both directions.
pub fn all_carried(report: &Report, direction: Option<Direction>, bytes: u64) {
    // Less than an initial window of ten segments.
    let least = if report.lateness.allows_timing() { bytes } else { 10_000 };
    for links in &report.links {
        let checked = match direction {
            Some(direction) => vec![links[direction]],
            None => vec![links.down, links.up],
        };
        for link in checked {
            assert!(link.delivered_bytes > least, "{link:?}; {}", report.lateness);
        }
    }
}
