//! Against stock kernels: namespaces joined by emulated paths. Needs root, TUN and MPTCP.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub)]

mod net;

use libtest_mimic::{Arguments, Failed, Trial};
use net::kernel::{self, Service, Speaks};
use net::plait::{Serving, spec};
use net::{Bed, Family, Line};
use std::net::SocketAddr;
use std::time::Instant;

fn main() {
    let mut args = Arguments::from_args();
    // The tests share the machine's few cores with their own emulators.
    args.test_threads = Some(1);
    let obstacle = net::obstacle();
    if let Some(why) = &obstacle {
        println!("skipped: {why}");
    }
    let mut trials = Vec::new();
    for family in [Family::V4, Family::V6] {
        trials
            .push(Trial::test(format!("kernels_talk_over_emulated_paths_{family:?}"), move || {
                kernels_talk(family)
            }));
        trials.push(Trial::test(
            format!("a_kernel_downloads_over_two_paths_{family:?}"),
            move || a_kernel_downloads(family, "minrtt"),
        ));
    }
    let trials = trials.into_iter().map(|it| it.with_ignored_flag(obstacle.is_some())).collect();
    libtest_mimic::run(&args, trials).exit();
}

/// The bed itself: two stock kernels join over both of its paths, and the links have their rates.
fn kernels_talk(family: Family) -> Result<(), Failed> {
    let lines = [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)];
    let bed = Bed::build(family, &lines)?;
    let service = bed.family.service();
    bed.server.within(|| net::run(&format!("ip addr add {service} dev lo")))?;
    let served = Service::start(&bed.server, SocketAddr::new(service, 80), Speaks::Mptcp, 2)?;
    let [before, _] = bed.counters();
    let len = 2_000_000;
    let start = Instant::now();
    let bytes = bed.client.within(|| kernel::get(served.address, Speaks::Mptcp, len))??;
    let took = start.elapsed();
    let sent = bed.client.within(|| kernel::put(served.address, Speaks::Mptcp, len))??;
    served.join();
    let [after, _] = bed.counters();
    let hash = kernel::hash(&kernel::pattern(len));
    assert_eq!((kernel::hash(&bytes), sent), (hash.clone(), hash));
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 2, "{:?}", after.risen(&before));
    let report = bed.emulator.stop()?;
    eprintln!("{took:?}; {}; {:?}", report.lateness, after.risen(&before));
    for link in report.links.iter().flatten() {
        assert!(link.delivered_bytes > 200_000, "{link:?}");
    }
    // 2 MB over 30 Mbit/s take half a second, whatever the machine does.
    assert!(took.as_millis() > 500, "{took:?}");
    Ok(())
}

/// A stock client downloads from a stock service through plait, over both paths.
fn a_kernel_downloads(family: Family, scheduler: &str) -> Result<(), Failed> {
    let lines = [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)];
    let bed = Bed::build(family, &lines)?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let serving = Serving::start(&bed, served.address, spec(scheduler))?;
    let [before, _] = bed.counters();
    let len = 4_000_000;
    let to = SocketAddr::new(family.service(), 80);
    let start = Instant::now();
    let bytes = bed.client.within(|| kernel::get(to, Speaks::Mptcp, len))?;
    let took = start.elapsed();
    let [after, _] = bed.counters();
    served.join();
    let (happenings, counters) = serving.stop()?;
    let report = bed.emulator.stop()?;
    eprintln!("{took:?}; {}; {:?}", report.lateness, after.risen(&before));
    let bytes = bytes?;
    let refused = (counters.dropped, happenings.len());
    assert_eq!(refused, (0, 2), "{happenings:?} {counters:?}");
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 1, "{:?}", after.risen(&before));
    for [down, _] in report.links {
        assert!(down.delivered_bytes > 200_000, "{down:?}");
    }
    Ok(())
}
