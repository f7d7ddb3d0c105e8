//! `plait serve` and `plait get` as programs, in namespaces of their own: what they print, and that
//! nothing of theirs is left behind however they end.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

#[path = "../../plait-live/tests/net/mod.rs"]
mod net;

use libtest_mimic::{Arguments, Failed, Trial};
use net::kernel::{self, Service, Speaks};
use net::{Bed, Family, Line};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

fn main() {
    let mut args = Arguments::from_args();
    args.test_threads = Some(1);
    let obstacle = net::obstacle();
    if let Some(why) = &obstacle {
        println!("skipped: {why}");
    }
    let mut trials = Vec::new();
    for signal in ["TERM", "INT", "KILL", "ABRT"] {
        let name = format!("nothing_is_left_behind_by_a_server_that_ends_by/{signal}");
        trials.push(Trial::test(name, move || clean_up(signal)));
    }
    trials.push(Trial::test("a_file_is_fetched_from_a_kernel", fetch));
    let trials = trials.into_iter().map(|it| it.with_ignored_flag(obstacle.is_some())).collect();
    libtest_mimic::run(&args, trials).exit();
}

/// Links, addresses, routes, rules, nft tables and sysctls of the namespace of the calling thread.
fn state() -> String {
    let mut all = String::new();
    for line in [
        "ip -o link",
        "ip -o addr",
        "ip route show table all",
        "ip -6 route show table all",
        "ip rule",
        "ip -6 rule",
        "nft list ruleset",
        "sysctl -a --pattern ^net.(ipv4|ipv6|mptcp|netfilter)",
    ] {
        let mut words = line.split(' ');
        // Where a program is not there, what it would tell cannot have been changed by plait, which
        // starts none.
        if let Ok(output) = Command::new(words.next().unwrap()).args(words).output() {
            all.push_str(&format!("{line}\n{}", String::from_utf8_lossy(&output.stdout)));
        }
    }
    all
}

/// Starts a server in the namespace of the calling thread, and waits until it listens.
fn serve(listen: SocketAddr, to: SocketAddr) -> Child {
    let (listen, to) = (listen.to_string(), to.to_string());
    let mut child = Command::new(PLAIT)
        .args(["serve", "--listen", &listen, "--to", &to])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
    lines.read_line(&mut said).unwrap();
    assert!(said.starts_with("listening on "), "{said}");
    child
}

/// F13 and the ninth of what must hold: the server ends in the middle of a download.
fn clean_up(signal: &'static str) -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(10, 20, 60_000)])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let before = bed.server.within(state)?;
    let mut server = bed.server.within(|| serve(listen, served.address))?;
    let during = bed.server.within(state)?;
    assert_ne!(before, during);
    assert!(during.contains("plait0"), "{during}");
    // Longer than a server waits for its connections.
    let client = bed.client.try_clone()?;
    let transfer = std::thread::spawn(move || {
        client.within(|| kernel::get(listen, Speaks::Mptcp, 20_000_000))
    });
    std::thread::sleep(Duration::from_millis(500));
    let kill = |signal: &str| net::run(&format!("kill -{signal} {}", server.id()));
    kill(signal);
    if ["TERM", "INT"].contains(&signal) {
        // The second one ends it at once.
        std::thread::sleep(Duration::from_millis(300));
        kill(signal);
    }
    let status = server.wait()?;
    let after = bed.server.within(state)?;
    assert_eq!(before, after);
    match signal {
        "TERM" | "INT" => assert_eq!(status.code(), Some(0)),
        _ => assert_eq!(status.code(), None),
    }
    if ["TERM", "INT"].contains(&signal) {
        // The client was told.
        assert!(transfer.join().unwrap()?.is_err());
    }
    Ok(())
}

/// `plait get` from a stock kernel, by way of a file.
fn fetch() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let service = bed.family.service();
    bed.own_service()?;
    let served = Service::start(&bed.server, SocketAddr::new(service, 80), Speaks::Mptcp, 1)?;
    let [_, before] = bed.counters();
    let mut child = bed.client.within(|| {
        Command::new(PLAIT)
            .args(["get", &served.address.to_string()])
            .args(["--from", "10.98.1.77@c0", "--from", "10.98.2.77@c1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    })??;
    let len = 500_000;
    // Standard input stays open until the answer is there: a kernel takes no join after its end.
    child.stdin.as_mut().unwrap().write_all(format!("get {len}\n").as_bytes())?;
    let mut bytes = Vec::new();
    child.stdout.as_mut().unwrap().read_to_end(&mut bytes)?;
    let output = child.wait_with_output()?;
    let [_, after] = bed.counters();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&before, "MPJoinAckRx"), 1, "{:?}", after.risen(&before));
    Ok(())
}
