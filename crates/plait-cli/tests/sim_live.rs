//! The simulator against the real thing: the same scenario in both, the receiver a stock kernel. With
//! PLAIT_SOAK, as it takes minutes and a machine that is not busy; writes docs/results/sim-live.md.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

#[path = "../../plait-live/tests/net/mod.rs"]
mod net;

use libtest_mimic::{Arguments, Failed, Trial};
use net::kernel::{self, Service, Speaks};
use net::{Bed, Family, Line};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const SCHEDULERS: [&str; 3] = ["minrtt", "ecf", "blest"];
const SIZES: [usize; 4] = [8_000, 64_000, 512_000, 4_000_000];
/// The same two paths in the words of the bed and of the command line.
const LINES: [(u64, u64, u64); 2] = [(25, 20, 100_000), (4, 60, 50_000)];
const REPEATS: usize = 5;
/// How often a cell is begun again where packets were late.
const TRIES: usize = 3;
/// How far the medians may be apart.
const CLOSE: f64 = 0.05;

/// Medians in milliseconds of what was seen in a cell.
struct Cell {
    scheduler: &'static str,
    size: usize,
    simulated: f64,
    /// Where it could be measured.
    seen: Option<f64>,
    /// The quickest of all downloads, packets late or not.
    quickest: f64,
}

static CELLS: Mutex<Vec<Cell>> = Mutex::new(Vec::new());

fn main() {
    let mut args = Arguments::from_args();
    args.test_threads = Some(1);
    let mut trials = Vec::new();
    match net::obstacle() {
        Some(why) => println!("skipped: {why}"),
        None if std::env::var_os("PLAIT_SOAK").is_none() => {
            println!("the simulator against live links is for `make soak`");
        }
        None => {
            for scheduler in SCHEDULERS {
                for size in SIZES {
                    let name = format!("medians_agree/{scheduler}/{size}");
                    trials.push(Trial::test(name, move || cell(scheduler, size)));
                }
            }
            trials.push(Trial::test("the_results_are_written", results));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

/// How long a download takes in the simulator, where nothing is random.
fn simulated(scheduler: &str, size: usize) -> f64 {
    let mut command = Command::new(PLAIT);
    command.args(["compare", "--schedulers", scheduler, "--json"]);
    for (name, (mbit, rtt, queue)) in ["a", "b"].into_iter().zip(LINES) {
        command.args(["--path", &format!("{name}:rate={mbit}mbit,rtt={rtt}ms,queue={queue}B")]);
    }
    let output = command.args(["--workload", &format!("download:{size}B")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["scheduler"] == scheduler).unwrap();
    row["measures"]["completion_ms"]["median"].as_f64().unwrap()
}

/// How long it takes a stock client of `plait serve`: the median, `None` where packets were late, and
/// the quickest.
fn live(scheduler: &str, size: usize) -> Result<(Option<f64>, f64), Failed> {
    let lines = LINES.map(|(mbit, rtt, queue)| Line::new(mbit, rtt, queue));
    let bed = Bed::build(Family::V4, &lines)?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, REPEATS)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let mut server = bed.server.within(|| {
        Command::new(PLAIT)
            .args(["serve", "--listen", &listen.to_string(), "--to", &served.address.to_string()])
            .args(["--scheduler", scheduler])
            .stderr(Stdio::piped())
            .spawn()
    })??;
    let mut said = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut said)?;
    let mut took = Vec::new();
    for _ in 0..REPEATS {
        let start = Instant::now();
        let bytes = bed.client.within(|| kernel::get(listen, Speaks::Mptcp, size))??;
        took.push(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(size)));
        // What is still on its way is not to meet the next one.
        std::thread::sleep(Duration::from_millis(300));
    }
    served.join();
    server.kill()?;
    server.wait()?;
    let report = bed.emulator.stop()?;
    eprintln!("{scheduler} {size}: {took:.1?} ms; {}", report.lateness);
    took.sort_by(f64::total_cmp);
    Ok((report.lateness.allows_timing().then_some(took[REPEATS / 2]), took[0]))
}

/// The eleventh of what must hold.
fn cell(scheduler: &'static str, size: usize) -> Result<(), Failed> {
    let simulated = simulated(scheduler, size);
    let (mut seen, mut quickest) = (None, f64::INFINITY);
    for _ in 0..TRIES {
        let (median, least) = live(scheduler, size)?;
        (seen, quickest) = (median, least.min(quickest));
        if seen.is_some() {
            break;
        }
    }
    CELLS.lock().unwrap().push(Cell { scheduler, size, simulated, seen, quickest });
    // A machine that is busy with other things measures nothing; the table says so.
    let Some(seen) = seen else { return Ok(()) };
    let apart = (seen - simulated) / simulated;
    if apart.abs() > CLOSE {
        let percent = apart * 100.0;
        return Err(format!("{simulated:.1} ms simulated, {seen:.1} live: {percent:+.1} %").into());
    }
    Ok(())
}

fn results() -> Result<(), Failed> {
    let cells = CELLS.lock().unwrap();
    assert_eq!(cells.len(), SCHEDULERS.len() * SIZES.len());
    let mut text = String::from(
        "# The simulator against live links\n\n\
         Written by `make soak` (`crates/plait-cli/tests/sim_live.rs`). Downloads over 25 Mbit/s with an RTT of\n\
         20 ms and a queue of 100 kB, and 4 Mbit/s with 60 ms and 50 kB; cubic. Simulated: one run, as nothing is\n\
         random. Live: `plait serve` to a stock kernel over emulated links, the median of 5, from `connect` to\n\
         the end, where no packet was more than 5 ms late. The quickest of all runs had least to do with what\n\
         else the machine did.\n\n\
         | scheduler | bytes | simulated ms | live ms | apart | quickest ms | apart |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for Cell { scheduler, size, simulated, seen, quickest } in cells.iter() {
        let apart = |live: f64| format!("{live:.1} | {:+.1} %", (live / simulated - 1.0) * 100.0);
        let seen = seen.map_or("not measured |".to_owned(), apart);
        let quickest = apart(*quickest);
        let _ = writeln!(text, "| {scheduler} | {size} | {simulated:.1} | {seen} | {quickest} |");
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("sim-live.md"), text)?;
    Ok(())
}
