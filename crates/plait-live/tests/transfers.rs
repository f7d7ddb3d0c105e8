//! Runs many transfers against stock kernels, and with nginx behind plait. A normal run has a few of them.
//! With PLAIT_SOAK it has the promised numbers, and writes docs/results/live.md.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

use crate::net::Case;
use crate::net::kernel::{self, Service, Speaks};
use crate::net::nginx::{self, Nginx};
use crate::net::plait::{Serving, exchange, spec};
use crate::net::timely::{TRIES, agreed, none_dropped};
use crate::net::{Bed, Family, Line, simulated, stamp};
use libtest_mimic::Failed;
use plait_live::emulate::Report;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use Family::{V4, V6};

/// 200 and 100 Mbit/s.
fn lines() -> [Line; 2] {
    [Line::new(200, 10, 400_000), Line::new(100, 30, 500_000)]
}

/// Returns the lines for a download of `size` bytes. A large one must last some round trips but only few
/// seconds, because late packets are more likely in a long one.
fn lines_for(size: usize) -> [Line; 2] {
    if size < 20_000_000 {
        [Line::new(40, 20, 200_000), Line::new(20, 40, 200_000)]
    } else {
        lines()
    }
}

/// From this size in bytes, the shares of the paths must match the simulator. Schedulers that fill every
/// path must then use both subflows.
const LARGE: usize = 4_000_000;
const FILLING: [&str; 4] = ["minrtt", "roundrobin", "redundant", "linux"];
/// Largest difference between shares.
const NEAR: f64 = 0.1;
/// Approximate receive window of a stock client in these downloads. `daps` and `otias` assign data ahead
/// and use all of it.
const WINDOW: &str = "2MiB";

/// The result of a download.
struct Download {
    scheduler: &'static str,
    size: usize,
    /// Only for large downloads.
    large: Option<Large>,
}

/// The path shares of a large download.
struct Large {
    /// Share of the second path in the simulator.
    simulated: f64,
    /// The live share and the duration, if no packet was late.
    seen: Option<(f64, Duration)>,
}

/// The role of plait in a transfer. Transfers between kernels show the normal behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Server,
    Client,
    Neither,
}

/// The results of one kind of transfers.
struct Transfers {
    what: String,
    count: usize,
    bytes: u64,
    took: Duration,
    /// Subflows that a kernel reset.
    resets: u64,
}

static DOWNLOADS: Mutex<Vec<Download>> = Mutex::new(Vec::new());
static TRANSFERS: Mutex<Vec<Transfers>> = Mutex::new(Vec::new());

/// Returns the tests of this file.
pub fn cases() -> Vec<Case> {
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let no_nginx = nginx::obstacle();
    if let Some(why) = &no_nginx {
        println!("skipped: {why}");
    }
    let mut cases = Vec::new();
    for (number, (scheduler, family, sizes)) in batches(soak).into_iter().enumerate() {
        let name = format!("nginx_is_downloaded_from/{number}/{scheduler}/{family:?}");
        let test = move || downloads(number, scheduler, family, &sizes);
        cases.push(Case::test(name, test).with_ignored_flag(no_nginx.is_some()));
    }
    let count = if soak { 250 } else { 8 };
    for family in [V4, V6] {
        for role in [Role::Server, Role::Client, Role::Neither] {
            if role == Role::Neither && !soak {
                continue;
            }
            let name = format!("mixed_transfers_arrive/{role:?}/{family:?}");
            let test = move || mixed(family, role, count);
            cases.push(Case::test(name, test));
        }
    }
    if soak {
        let write = Case::test("the_results_are_written", results);
        cases.push(write.with_ignored_flag(no_nginx.is_some()));
    }
    cases
}

/// Prints how many shares of paths were compared, if downloads were made.
pub fn print_compared() {
    let downloads = DOWNLOADS.lock().unwrap();
    if !downloads.is_empty() {
        let (compared, late) = compared(&downloads);
        println!("shares of the paths: {compared} compared, {late} not measured");
    }
}

/// Returns the number of large downloads with a compared share, and of those with late packets each time.
fn compared(downloads: &[Download]) -> (usize, usize) {
    let large = downloads.iter().filter_map(|it| it.large.as_ref());
    let (seen, late): (Vec<_>, Vec<_>) = large.partition(|it| it.seen.is_some());
    (seen.len(), late.len())
}

/// Returns the downloads of each separate bed: scheduler, family and sizes.
fn batches(soak: bool) -> Vec<(&'static str, Family, Vec<usize>)> {
    if !soak {
        let sizes = vec![1_000, 30_000, 300_000, 4_000_000];
        let families = [V4, V6].map(|family| (family, sizes.clone()));
        let of = |scheduler| families.clone().map(|(family, sizes)| (scheduler, family, sizes));
        return ["minrtt", "ecf", "redundant"].into_iter().flat_map(of).collect();
    }
    // Sizes from 1 kB to 100 MB in steps of the same factor, ordered so that each scheduler gets small and
    // large ones.
    let schedulers = plait_sched::SCHEDULERS;
    let batch = |n: usize| {
        let size = 1_000.0 * 10_f64.powf(5.0 * ((n * 37) % 100) as f64 / 99.0);
        let family = if n.is_multiple_of(2) { V4 } else { V6 };
        (schedulers[n % schedulers.len()].about.name, family, vec![size as usize])
    };
    (0..100).map(batch).collect()
}

/// Tests the first requirement: an unmodified client downloads from nginx behind plait.
fn downloads(
    number: usize,
    scheduler: &'static str,
    family: Family,
    sizes: &[usize],
) -> Result<(), Failed> {
    let (large, small): (Vec<usize>, Vec<usize>) = sizes.iter().partition(|size| **size >= LARGE);
    if !small.is_empty() {
        fetch(number, scheduler, family, &lines(), &small)?;
    }
    let small = small.into_iter().map(|size| Download { scheduler, size, large: None });
    DOWNLOADS.lock().unwrap().extend(small);
    for size in large {
        let large = Some(compare(number, scheduler, family, size)?);
        DOWNLOADS.lock().unwrap().push(Download { scheduler, size, large });
    }
    Ok(())
}

/// Downloads files of these sizes from nginx behind plait, and checks them. Each download waits for both
/// subflows, because the kernel joins from a work queue. Returns the duration of the last one and the
/// emulator's report.
fn fetch(
    number: usize,
    scheduler: &str,
    family: Family,
    lines: &[Line],
    sizes: &[usize],
) -> Result<(Duration, Report), Failed> {
    let bed = Bed::build(family, lines)?;
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-{number}"));
    let nginx = Nginx::start(&bed.server, &dir, sizes)?;
    let serving = Serving::start(&bed, nginx.address, spec(scheduler))?;
    let to = SocketAddr::new(family.service(), 80);
    let [before, _] = bed.counters();
    let mut last = Duration::ZERO;
    for size in sizes {
        let start = Instant::now();
        let bytes = bed.client.within(|| nginx::fetch(to, Speaks::Over(2), *size))??;
        last = start.elapsed();
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(*size)));
    }
    let [after, _] = bed.counters();
    serving.until_ended(sizes.len());
    let (_, counters) = serving.stop()?;
    let report = bed.emulator.stop()?;
    none_dropped(&counters, &report);
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    Ok((last, report))
}

/// Repeats a large download while packets are late, at most [`TRIES`] times. The shares of the paths must
/// match the simulator, in which both subflows exist from the start.
fn compare(
    number: usize,
    scheduler: &'static str,
    family: Family,
    size: usize,
) -> Result<Large, Failed> {
    let lines = lines_for(size);
    let simulated = simulated::share(scheduler, &lines, size, WINDOW);
    let what = format!("share of the paths: {scheduler}, {family:?}, {size} bytes");
    let look = || {
        let (took, report) = fetch(number, scheduler, family, &lines, &[size])?;
        let [first, second] = [0, 1].map(|path| report.links[path].down.delivered_bytes);
        let share = second as f64 / (first + second) as f64;
        eprintln!("{what}: {simulated:.3} simulated, {share:.3} live; {}", report.lateness);
        Ok(report.lateness.allows_timing().then_some((share, first.min(second), took)))
    };
    let wrong = |(share, least, _): &(f64, u64, Duration)| {
        let idle = *least <= 200_000 && FILLING.contains(&scheduler);
        let wrong = idle || (share - simulated).abs() > NEAR;
        wrong.then(|| format!("{simulated:.3} simulated, {share:.3} live, {least} bytes over one"))
    };
    let seen = agreed(&what, look, wrong)?.map(|(share, _, took)| (share, took));
    Ok(Large { simulated, seen })
}

/// Tests the third requirement: alternating downloads and uploads from 1 byte to 1 MB, with plait in one
/// of the roles. All are complete, and no counter of the kernel shows a fault.
fn mixed(family: Family, role: Role, count: usize) -> Result<(), Failed> {
    let bed = Bed::build(family, &lines())?;
    let schedulers = plait_sched::SCHEDULERS;
    let service = SocketAddr::new(family.service(), 80);
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    // A server has one scheduler for all connections, a client one for each.
    let (served, serving) = if role == Role::Server {
        let served = Service::start(&bed.server, local, Speaks::Tcp, count)?;
        let serving = Serving::start(&bed, served.address, spec("ecf+copy"))?;
        (served, Some(serving))
    } else {
        bed.own_service()?;
        (Service::start(&bed.server, service, Speaks::Mptcp, count)?, None)
    };
    let before = bed.counters();
    let (start, mut bytes) = (Instant::now(), 0);
    for n in 0..count {
        let size = 10_f64.powf(6.0 * ((n * 37) % 100) as f64 / 99.0) as usize;
        let (get, expected) = (n.is_multiple_of(2), kernel::hash(&kernel::pattern(size)));
        let hash = if role != Role::Client && get {
            kernel::hash(&bed.client.within(|| kernel::get(service, Speaks::Mptcp, size))??)
        } else if role != Role::Client {
            bed.client.within(|| kernel::put(service, Speaks::Mptcp, size))??
        } else {
            let mut request = format!("{} {size}\n", if get { "get" } else { "put" }).into_bytes();
            if !get {
                request.extend(kernel::pattern(size));
            }
            let spec = spec(schedulers[n % schedulers.len()].about.name);
            let (answer, ..) = exchange(&bed, 2, service, spec, &request, || true)?;
            if get { kernel::hash(&answer) } else { String::from_utf8(answer)? }
        };
        assert_eq!(hash, expected, "transfer {n} of {size} bytes");
        bytes += size as u64;
    }
    let took = start.elapsed();
    let after = bed.counters();
    served.join();
    if let Some(serving) = serving {
        serving.stop()?;
    }
    let mut resets = 0;
    for (after, before) in after.iter().zip(&before) {
        // A join to a connection that has just ended is reset, also between kernels.
        resets += after.since(before, "MPRstTx");
        let mut faults = after.faults(before);
        faults.retain(|(name, _)| !name.starts_with("MPRst"));
        assert!(faults.is_empty(), "{faults:?}");
    }
    let what = match role {
        Role::Server => format!("plait as server, {family:?}"),
        Role::Client => format!("plait as client, {family:?}"),
        Role::Neither => format!("kernels alone, {family:?}"),
    };
    TRANSFERS.lock().unwrap().push(Transfers { what, count, bytes, took, resets });
    Ok(())
}

/// Writes docs/results/live.md. Fails if a transfer for it failed.
fn results() -> Result<(), Failed> {
    let (downloads, transfers) = (DOWNLOADS.lock().unwrap(), TRANSFERS.lock().unwrap());
    assert_eq!((downloads.len(), transfers.iter().map(|it| it.count).sum()), (100, 1_500));
    let mut text = format!(
        "# Transfers against stock kernels\n\n\
         After this page you know how far live shares of paths are from simulated ones, and that transfers with stock kernels are\n\
         complete. Compare the columns `simulated` and `live` of a line: both are the share of the second path in the same download.\n\
         `make soak PARTS=live` makes the page again; it needs root.\n\n\
         Written by `make soak` (`tests/transfers.rs` of plait-live) on {}.\n\n\
         The paths have 200 Mbit/s with an RTT of 10 ms and 100 Mbit/s with 30 ms if no others are named. They are emulated\n\
         on the same cores. Every transfer was complete by its SHA-256, and no counter of a kernel reported a fallback or a\n\
         wrong checksum.\n\n",
        stamp::stamp(),
    );
    text.push_str(
        "## nginx behind plait, a stock client\n\n\
         100 downloads of 1 kB to 100 MB, IPv4 and IPv6 in turn. Each begins when both subflows are established. The\n\
         number of downloads with each scheduler:\n\n",
    );
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    downloads.iter().for_each(|it| *by.entry(it.scheduler).or_default() += 1);
    let counts: Vec<String> = by.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let _ = writeln!(text, "{}.", counts.join(", "));
    let (counted, late) = compared(&downloads);
    let _ = write!(
        text,
        "\nDownloads from 4 to 20 MB are over 40 Mbit/s with an RTT of 20 ms and 20 Mbit/s with 40 ms. For these and larger\n\
         ones, the table has the rate, and the share of the second path in the bytes of both, simulated and live. A run counts\n\
         if no packet was more than 5 ms late. A download has at most {TRIES} tries. {} of {} have a run that counts.\n\n\
         | scheduler | bytes | simulated | live | Mbit/s |\n|---|---:|---:|---:|---:|\n",
        counted,
        counted + late,
    );
    let mut large: Vec<&Download> = downloads.iter().filter(|it| it.large.is_some()).collect();
    large.sort_by_key(|it| (it.scheduler, it.size));
    for Download { scheduler, size, large } in large {
        let Some(Large { simulated, seen }) = large else { continue };
        let seen = seen.map_or("not measured |".to_owned(), |(share, took)| {
            format!("{share:.2} | {:.0}", *size as f64 * 8.0 / 1e6 / took.as_secs_f64())
        });
        let _ = writeln!(text, "| {scheduler} | {size} | {simulated:.2} | {seen} |");
    }
    text.push_str(
        "\n## Mixed transfers\n\nDownloads and uploads in turn, of one byte to one megabyte. As a server plait has \
         `ecf+copy`, as a client every scheduler in turn. A join to a connection that has just ended is reset, \
         also between kernels. So these resets are counted, and the test does not fail.\n\n\
         | | transfers | MB | s | subflows reset by a kernel |\n|---|---|---|---|---|\n",
    );
    for Transfers { what, count, bytes, took, resets } in transfers.iter() {
        let (mega, seconds) = (*bytes as f64 / 1e6, took.as_secs_f64());
        let _ = writeln!(text, "| {what} | {count} | {mega:.1} | {seconds:.0} | {resets} |");
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("live.md"), text)?;
    Ok(())
}
