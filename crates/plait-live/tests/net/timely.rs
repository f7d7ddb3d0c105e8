//! What is said of times, on machines that have other things to do.

use super::urgent::Urgent;
use libtest_mimic::Failed;
use plait_live::emulate::Report;
use plait_live::{StackCounters, Untaken};

/// How often something is looked at whose times count, where packets were late.
pub const TRIES: usize = 5;
/// So many of these looks have to refute what is said, where one does not decide.
const REFUTATIONS: usize = 3;

/// Looks at something until no packet was late, [`TRIES`] times at most; what is said of its times has to
/// hold then. `look` gives what was seen, or nothing where packets were late, and `refute` tells what is
/// wrong with it. What was seen is given back; where nothing is settled, that is told and there is
/// nothing.
///
/// That one look decides is for machines that put these programs before all others. On those that do not,
/// one may have been at a program that waited for a core while no packet did: more looks have to bear it
/// out than refute it, and [`REFUTATIONS`] to refute it.
pub fn measured<T>(
    what: &str,
    look: impl FnMut() -> Result<Option<T>, Failed>,
    refute: impl Fn(&T) -> Option<String>,
) -> Result<Option<T>, Failed> {
    let urgent = Urgent::start();
    let refutations = if urgent.holds() { 1 } else { REFUTATIONS };
    settled(what, refutations, look, refute)
}

/// The same of what is compared with a number that it scatters about, such as the share of a path with
/// that in the simulator: more looks have to bear it out than refute it.
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
    // Where it holds in the end, that is seen as well.
    let refute = |seen: &T| refute(seen).inspect(|why| eprintln!("refuted: {what}: {why}"));
    Ok(match weighed(what, refutations, look, refute)? {
        Ok(seen) => Some(seen),
        Err(why) => {
            println!("skipped: {what}: not measured, {why}");
            None
        }
    })
}

/// The looks themselves: what was seen, or why nothing is settled.
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

/// The kernel took every packet of plait's, and there were bytes for each. A TUN device answers before the
/// packet comes to TCP, so nothing that TCP thinks of one that is late (a number outside the window, an
/// old stamp) is an answer: it refuses what is malformed (EINVAL), what comes while it is down (EIO), and
/// what it has no memory for. The last is the machine's affair, where it was also late.
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

/// Every link carried data: `bytes` of it, where no packet was late, and in any case more than
/// handshakes are. `part` is the direction that counts, down or up, where only one does.
pub fn all_carried(report: &Report, part: Option<usize>, bytes: u64) {
    // Ten segments, which a subflow sends before it has heard anything.
    let least = if report.lateness.allows_timing() { bytes } else { 10_000 };
    for links in &report.links {
        for (at, link) in links.iter().enumerate() {
            let counts = part.is_none_or(|part| part == at);
            assert!(!counts || link.delivered_bytes > least, "{link:?}; {}", report.lateness);
        }
    }
}
