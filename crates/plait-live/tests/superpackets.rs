//! Tests superpackets between plait and a stock kernel. The kernel segments them towards the client,
//! parts are lost, and segments are merged on the way back. Needs root, TUN and MPTCP.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, reason = "each test file uses its own part")]

use crate::net::kernel::{self, Service, Speaks};
use crate::net::plait::{Serving, spec};
use crate::net::{self, Case};
use crate::net::{Bed, Family, Line};
use libtest_mimic::Failed;
use plait_core::{Config, ConnectionSpec};
use plait_live::Namespace;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use Family::{V4, V6};

/// Returns the tests of this file.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for family in [V4, V6] {
        for loss in [0, 1] {
            for speaks in [Speaks::Over(2), Speaks::Tcp] {
                let name = format!("superpackets_are_cut/{family:?}/{speaks:?}/loss={loss}%");
                cases.push(Case::test(name, move || cut(family, speaks, false, loss)));
            }
            let name = format!("superpackets_are_paced/{family:?}/loss={loss}%");
            cases.push(Case::test(name, move || paced(family, loss)));
            let name = format!("superpackets_with_checksums_are_cut/{family:?}/loss={loss}%");
            cases.push(Case::test(name, move || cut(family, Speaks::Over(2), true, loss)));
        }
        for checksum in [false, true] {
            let name = format!("superpackets_come_in/{family:?}/checksum={checksum}");
            cases.push(Case::test(name, move || at_once(family, checksum)));
        }
    }
    cases
}

fn offloaded() -> ConnectionSpec {
    let mut spec = spec("minrtt");
    spec.config.packets.superpacket = Config::SUPERPACKET;
    spec
}

/// Sets whether the kernel of a namespace requires and verifies DSS checksums.
fn ask_for_checksums(space: &Namespace, checksum: bool) -> io::Result<()> {
    space.within(|| net::set("net/mptcp/checksum_enabled", if checksum { "1" } else { "0" }))
}

/// Tests a download and an upload over paths that lose `loss` percent of the packets. The kernel segments
/// superpackets before the paths, so parts of them are lost and retransmitted.
fn cut(family: Family, speaks: Speaks, checksum: bool, loss: u32) -> Result<(), Failed> {
    const LEN: usize = 1_500_000;
    let line = |rtt| Line { loss, ..Line::new(200, rtt, 400_000) };
    let bed = Bed::build(family, &[line(10), line(30)])?;
    ask_for_checksums(&bed.client, checksum)?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 2)?;
    let serving = Serving::start(&bed, served.address, offloaded())?;
    let to = SocketAddr::new(family.service(), 80);
    let [before, _] = bed.counters();
    let bytes = bed.client.within(|| kernel::get(to, speaks, LEN))??;
    let expected = kernel::hash(&kernel::pattern(LEN));
    assert_eq!(kernel::hash(&bytes), expected);
    serving.until_ended(1);
    let (_, counters) = serving.stop()?;
    // The initial window has ten segments. One of them, with the keys, may be sent separately.
    assert!(counters.longest_out > 9 * 1_400, "{counters:?}");
    // In slow start, which lasts until a queue is full, each ACK releases two segments at once. After a loss
    // it releases one, and the amount sent before the loss is random.
    let share = counters.bytes_cut as f64 / counters.bytes_out as f64;
    assert!(loss > 0 || share > 0.8, "{share:.3}: {counters:?}");
    let serving = Serving::start(&bed, served.address, offloaded())?;
    assert_eq!(bed.client.within(|| kernel::put(to, speaks, LEN))??, expected);
    let [after, _] = bed.counters();
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    served.join();
    serving.until_ended(1);
    serving.stop()?;
    let report = bed.emulator.stop()?;
    let lost: u64 = report.links.iter().map(|it| it.down.dropped_loss).sum();
    assert!(
        if loss == 0 { lost == 0 } else { lost > 3 },
        "{lost} packets were lost on the way down"
    );
    Ok(())
}

/// Tests a download at the pacing rate of bbr, in superpackets of its quanta.
fn paced(family: Family, loss: u32) -> Result<(), Failed> {
    const LEN: usize = 20_000_000;
    let bed = Bed::build(family, &[Line { loss, ..Line::new(200, 20, 400_000) }])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let mut spec = offloaded();
    let controller = plait_cc::Spec::parse("bbr").unwrap();
    spec.controller = Arc::new(move |_| controller.build());
    let serving = Serving::start(&bed, served.address, spec)?;
    let to = SocketAddr::new(family.service(), 80);
    let bytes = bed.client.within(|| kernel::get(to, Speaks::Mptcp, LEN))??;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(LEN)));
    served.join();
    serving.until_ended(1);
    let (_, counters) = serving.stop()?;
    // At 200 Mbit/s a quantum has 17 segments. Segments that leave when an ACK opens the window leave alone.
    let share = counters.bytes_cut as f64 / counters.bytes_out as f64;
    assert!(share > 0.2 && counters.longest_out > 9 * 1_400, "{share:.3}: {counters:?}");
    let report = bed.emulator.stop()?;
    let lost: u64 = report.links.iter().map(|it| it.down.dropped_loss).sum();
    assert!(loss == 0 || lost > 3, "{lost} packets were lost on the way down");
    Ok(())
}

/// Tests a download and an upload with the kernel behind the device, which passes superpackets unchanged in
/// both directions.
fn at_once(family: Family, checksum: bool) -> Result<(), Failed> {
    const LEN: usize = 30_000_000;
    let bed = Bed::build(family, &[Line::new(200, 10, 400_000)])?;
    ask_for_checksums(&bed.server, checksum)?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 2)?;
    let serving = Serving::start(&bed, served.address, offloaded())?;
    let to = SocketAddr::new(family.service(), 80);
    let [_, before] = bed.counters();
    let bytes = bed.server.within(|| kernel::get(to, Speaks::Mptcp, LEN))??;
    let expected = kernel::hash(&kernel::pattern(LEN));
    assert_eq!(kernel::hash(&bytes), expected);
    assert_eq!(bed.server.within(|| kernel::put(to, Speaks::Mptcp, LEN))??, expected);
    let [_, after] = bed.counters();
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    served.join();
    serving.until_ended(2);
    let (_, counters) = serving.stop()?;
    let long = |bytes: u64, packets: u64| bytes > 4_000 * packets;
    assert!(long(counters.bytes_in, counters.packets_in), "{counters:?}");
    assert!(long(counters.bytes_out, counters.packets_out), "{counters:?}");
    Ok(())
}
