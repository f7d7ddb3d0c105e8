//! R3: a client's address vanishes before a subflow from it has ended. The subflow must end in bounded time and
//! release its record and number.

use crate::net::kernel::Speaks;
use crate::net::{self, Bed, Family, Line};
use crate::{Watched, at_once};
use libtest_mimic::{Failed, Trial};
use plait_live::emulate::Direction;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    let trial = |(name, loss, most)| {
        let name = format!("a_subflow_whose_client_is_gone_ends/{name}");
        Trial::test(name, move || deserted(loss, most))
    };
    let cases = [
        ("fin_lost", Loss::Fin, FIN_WAIT),
        ("upward", Loss::Upward, LAST_FIN),
        ("both", Loss::Both, LAST_FIN),
    ];
    cases.into_iter().map(trial).collect()
}

/// Segments of the first path that are lost; the loss begins before both ends close.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// The client's FIN. The server's FIN is acknowledged, and its subflow is in FIN-WAIT-2.
    Fin,
    /// All segments of the client. The server's FIN is not acknowledged.
    Upward,
    /// All segments.
    Both,
}

/// Time in FIN-WAIT-2 (Linux: `tcp_fin_timeout`), plus the round trips before it.
const FIN_WAIT: Duration = Duration::from_secs(62);
/// Time for which a server retransmits a FIN that is not acknowledged: eight times, as Linux does
/// (`tcp_orphan_retries`). That is 102 s for a retransmission timeout of 200 ms.
const LAST_FIN: Duration = Duration::from_secs(110);
/// Interval at which a server releases numbers of addresses.
const REST: Duration = Duration::from_secs(5);

fn deserted(loss: Loss, most: Duration) -> Result<(), Failed> {
    let lines = [Line::new(20, 10, 60_000), Line::new(20, 20, 60_000)];
    let bed = Bed::build(Family::V4, &lines)?;
    let server = Watched::start(&bed, at_once(&bed.server)?, &[])?;
    let mut client = server.ask_last(Speaks::Over(2), 10_000)?;
    client.read_exact(&mut [0; 10_000])?;
    // Segments copied to the first path are acknowledged there.
    thread::sleep(Duration::from_millis(500));
    match loss {
        Loss::Fin => bed.emulator.fins(0).unwrap().set_one(Direction::Up, true),
        Loss::Upward => bed.emulator.cut(0).unwrap().set_one(Direction::Up, true),
        Loss::Both => bed.emulator.cut(0).unwrap().set(true),
    }
    drop(client);
    if matches!(loss, Loss::Fin) {
        // The server's FIN is acknowledged before the address vanishes.
        thread::sleep(Duration::from_millis(500));
    }
    bed.client.within(|| net::run("ip addr flush dev c0"))?;
    let gone = Instant::now();
    let count = |series: &str| server.told(&format!("plait_connections_{series}"));
    let kept = || (count("closing"), count("time_wait"), server.told("plait_client_addresses"));
    let mut seen = Vec::new();
    while gone.elapsed() < 2 * LAST_FIN {
        let now = kept();
        if seen.last().is_none_or(|(_, last)| *last != now) {
            seen.push((gone.elapsed(), now));
        }
        if now == (0, 0, 0) {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let took = gone.elapsed();
    eprintln!("{loss:?}: {took:.1?}; closing, in TIME-WAIT or FIN-WAIT-2, numbers: {seen:.1?}");
    assert_eq!(kept(), (0, 0, 0));
    assert!(took < most + REST, "{took:?}");
    server.end()?;
    bed.emulator.stop()?;
    Ok(())
}
