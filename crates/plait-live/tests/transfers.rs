//! Many transfers against stock kernels, and nginx behind plait. A handful in every test; with
//! PLAIT_SOAK the numbers that the project promises, which are then written to docs/results/live.md.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

mod net;

use libtest_mimic::{Failed, Trial};
use net::kernel::{self, Service, Speaks};
use net::nginx::{self, Nginx};
use net::plait::{Serving, exchange, spec};
use net::{Bed, Family, Line, stamp};
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

/// From this size on both subflows have to carry data, with schedulers that fill every path.
const LARGE: usize = 4_000_000;
const FILLING: [&str; 4] = ["minrtt", "roundrobin", "redundant", "linux"];

/// What a download was.
struct Download {
    scheduler: &'static str,
    size: usize,
    took: Duration,
    /// Of the bytes on both paths, how many came over the second.
    share: f64,
    /// Nothing was handed on late.
    timely: bool,
}

/// What plait is in a transfer; of the kernels among themselves one learns what is usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Server,
    Client,
    Neither,
}

/// What was seen of a kind of transfers.
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

fn main() {
    stamp::stamp();
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let no_nginx = nginx::obstacle();
    if let Some(why) = &no_nginx {
        println!("skipped: {why}");
    }
    let mut trials = Vec::new();
    for (number, (scheduler, family, sizes)) in batches(soak).into_iter().enumerate() {
        let name = format!("nginx_is_downloaded_from/{number}/{scheduler}/{family:?}");
        let test = move || downloads(number, scheduler, family, &sizes);
        trials.push(Trial::test(name, test).with_ignored_flag(no_nginx.is_some()));
    }
    let count = if soak { 250 } else { 8 };
    for family in [V4, V6] {
        for role in [Role::Server, Role::Client, Role::Neither] {
            if role == Role::Neither && !soak {
                continue;
            }
            let name = format!("mixed_transfers_arrive/{role:?}/{family:?}");
            let test = move || mixed(family, role, count);
            trials.push(Trial::test(name, test));
        }
    }
    if soak {
        let write = Trial::test("the_results_are_written", results);
        trials.push(write.with_ignored_flag(no_nginx.is_some()));
    }
    net::conduct(trials)
}

/// Downloads that have a bed of their own: scheduler, family and sizes.
fn batches(soak: bool) -> Vec<(&'static str, Family, Vec<usize>)> {
    if !soak {
        let sizes = vec![1_000, 30_000, 300_000, 1_500_000];
        let families = [V4, V6].map(|family| (family, sizes.clone()));
        let of = |scheduler| families.clone().map(|(family, sizes)| (scheduler, family, sizes));
        return ["minrtt", "ecf", "redundant"].into_iter().flat_map(of).collect();
    }
    // From 1 kB to 100 MB, every size a step of the same factor, in an order that gives each scheduler
    // small and large ones.
    let schedulers = plait_sched::SCHEDULERS;
    let batch = |n: usize| {
        let size = 1_000.0 * 10_f64.powf(5.0 * ((n * 37) % 100) as f64 / 99.0);
        let family = if n.is_multiple_of(2) { V4 } else { V6 };
        (schedulers[n % schedulers.len()].name, family, vec![size as usize])
    };
    (0..100).map(batch).collect()
}

/// The first of what must hold: an unmodified client downloads from nginx behind plait.
fn downloads(
    number: usize,
    scheduler: &'static str,
    family: Family,
    sizes: &[usize],
) -> Result<(), Failed> {
    let bed = Bed::build(family, &lines())?;
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-{number}"));
    let nginx = Nginx::start(&bed.server, &dir, sizes)?;
    let serving = Serving::start(&bed, nginx.address, spec(scheduler))?;
    let to = SocketAddr::new(family.service(), 80);
    let [before, _] = bed.counters();
    let mut last = Duration::ZERO;
    for size in sizes {
        let start = Instant::now();
        let bytes = bed.client.within(|| nginx::fetch(to, *size))??;
        last = start.elapsed();
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(*size)));
    }
    let [after, _] = bed.counters();
    let (_, counters) = serving.stop()?;
    let report = bed.emulator.stop()?;
    assert_eq!(counters.dropped, 0, "{counters:?}");
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    let down: Vec<u64> = report.links.iter().map(|[down, _]| down.delivered_bytes).collect();
    let size = sizes.iter().sum();
    if size >= LARGE && FILLING.contains(&scheduler) {
        assert!(down.iter().all(|bytes| *bytes > 200_000), "{down:?}");
    }
    let share = down[1] as f64 / (down[0] + down[1]) as f64;
    let timely = report.lateness.allows_timing();
    DOWNLOADS.lock().unwrap().push(Download { scheduler, size, took: last, share, timely });
    Ok(())
}

/// The third of what must hold: downloads and uploads in turn, from a byte to a megabyte, with plait
/// in one of the roles; all of them whole, and no counter of the kernel tells of a fault.
fn mixed(family: Family, role: Role, count: usize) -> Result<(), Failed> {
    let bed = Bed::build(family, &lines())?;
    let schedulers = plait_sched::SCHEDULERS;
    let service = SocketAddr::new(family.service(), 80);
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    // A server has one scheduler for all, a client one for each.
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
            let spec = spec(schedulers[n % schedulers.len()].name);
            let (answer, ..) = exchange(&bed, 2, service, spec, &request)?;
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
        // A join that meets a connection which has just ended is reset, by kernels among themselves too.
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

/// Writes docs/results/live.md. Fails where some of what it is made from failed.
fn results() -> Result<(), Failed> {
    let (downloads, transfers) = (DOWNLOADS.lock().unwrap(), TRANSFERS.lock().unwrap());
    assert_eq!((downloads.len(), transfers.iter().map(|it| it.count).sum()), (100, 1_500));
    let mut text = format!(
        "# Transfers against stock kernels\n\n\
         Written by `make soak` (`tests/transfers.rs` of plait-live) on {}.\n\
         Paths of 200 Mbit/s with an RTT of 10 ms and 100 Mbit/s with 30 ms, emulated on the same cores.\n\
         Every transfer was whole by its SHA-256, and no counter of a kernel told of a fallback or a wrong\n\
         checksum, nor in the downloads of a reset.\n\n",
        stamp::stamp(),
    );
    text.push_str(
        "## nginx behind plait, a stock client\n\n\
         100 downloads of 1 kB to 100 MB, IPv4 and IPv6 in turn. Of those of 4 MB and more: how many, the share of\n\
         the second path (of what both carried), and the rate, in runs in which no packet was more than 5 ms late.\n\n\
         | scheduler | downloads | of 4 MB and more | share of the second path | Mbit/s |\n|---|---|---|---|---|\n",
    );
    let mut by: BTreeMap<&str, Vec<&Download>> = BTreeMap::new();
    downloads.iter().for_each(|it| by.entry(it.scheduler).or_default().push(it));
    for (scheduler, all) in by {
        let large: Vec<&&Download> = all.iter().filter(|it| it.size >= LARGE).collect();
        let range = |mut numbers: Vec<f64>, digits: usize| {
            numbers.sort_by(f64::total_cmp);
            match (numbers.first(), numbers.last()) {
                (Some(least), Some(most)) => format!("{least:.digits$} to {most:.digits$}"),
                _ => "not measured".to_owned(),
            }
        };
        let shares = range(large.iter().map(|it| it.share).collect(), 2);
        let timely = large.iter().filter(|it| it.timely);
        let rates = timely.map(|it| it.size as f64 * 8.0 / 1e6 / it.took.as_secs_f64());
        let rates = range(rates.collect(), 0);
        let (count, large) = (all.len(), large.len());
        let _ = writeln!(text, "| {scheduler} | {count} | {large} | {shares} | {rates} |");
    }
    text.push_str(
        "\n## Mixed transfers\n\nDownloads and uploads in turn, of a byte to a megabyte. As a server plait has \
         `ecf+copy`, as a client every scheduler in turn. A join that meets a connection which has just \
         ended is reset, by kernels among themselves too, so that is counted and not refused.\n\n\
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
