//! `plait serve` and `plait get` as programs, in namespaces of their own: what they print, and that
//! nothing of theirs is left behind however they end.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

#[path = "../../plait-live/tests/net/mod.rs"]
mod net;

mod decoder;

use libtest_mimic::{Arguments, Failed, Trial};
use net::kernel::{self, Service, Speaks};
use net::{Bed, Family, Line};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

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
    for family in [Family::V4, Family::V6] {
        let name = format!("another_decoder_understands_a_server/{family:?}");
        trials.push(Trial::test(name, move || capture_server(family)));
    }
    trials.push(Trial::test("another_decoder_understands_a_client", capture_client));
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
fn serve(listen: SocketAddr, to: SocketAddr, flags: &[&str]) -> Child {
    let (listen, to) = (listen.to_string(), to.to_string());
    let mut child = Command::new(PLAIT)
        .args(["serve", "--listen", &listen, "--to", &to])
        .args(flags)
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
    let mut server = bed.server.within(|| serve(listen, served.address, &[]))?;
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
        "TERM" => assert_eq!(status.code(), Some(0)),
        "INT" => assert_eq!(status.code(), Some(130)),
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

/// A file of this test program, new.
fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join(name);
    let _ = fs::remove_file(&file);
    file
}

/// What is true of the capture of every end: `paths` are the names of the interfaces, `sender` is the
/// filter of this end's packets. Gives the bytes of data that have a reason.
fn explained(pcap: &Path, name: &str, paths: [&str; 2], sender: &str) -> u64 {
    decoder::finds_nothing_wrong(pcap, name);
    assert_eq!(decoder::understands(pcap, name), 1);
    let fields = ["frame.interface_name", "frame.time_epoch", "frame.comment", "tcp.len"];
    let packets = decoder::tshark(pcap, "tcp", &fields);
    for path in paths {
        assert!(packets.iter().filter(|it| it[0] == path).count() > 20, "{name}: {path}");
    }
    assert!(packets.iter().all(|it| paths.contains(&it[0].as_str())), "{name}");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let mut before = 0.0;
    for packet in &packets {
        assert_eq!(packet[1].rsplit('.').next().unwrap().len(), 9, "{packet:?}");
        let at = packet[1].parse().unwrap();
        assert!(before <= at && now - 120.0 < at && at <= now, "{packet:?}");
        before = at;
    }
    let data = decoder::tshark(pcap, &format!("tcp.len > 0 && {sender}"), &fields);
    for packet in &data {
        let words =
            ["new data ", "retransmission ", "reinjection ", "tail probe ", "redundant copy "];
        assert!(words.iter().any(|word| packet[2].starts_with(word)), "{name}: {packet:?}");
        let decided = packet[2].contains("; decision ");
        assert_eq!(decided, !packet[2].starts_with("ret") && !packet[2].starts_with("tail"));
    }
    data.iter().map(|packet| packet[3].parse::<u64>().unwrap()).sum()
}

/// The records of a qlog file that follow its head, which is of this end.
fn records(qlog: &Path, end: &str) -> Vec<Value> {
    let text = fs::read_to_string(qlog).unwrap();
    let mut records = text.split('\u{1e}').skip(1).map(|it| serde_json::from_str(it).unwrap());
    let head: Value = records.next().unwrap();
    assert_eq!(head["trace"]["vantage_point"]["type"], end);
    let records: Vec<Value> = records.collect();
    assert!(records.is_sorted_by_key(|it| it["time"].as_f64().unwrap().to_bits()));
    records
}

/// How many of the records have this name, and at their place in the data this value.
fn count(records: &[Value], name: &str, (place, value): (&str, Value)) -> usize {
    records.iter().filter(|it| it["name"] == name && it["data"][place] == value).count()
}

/// A download as the server sees it; Ctrl-C ends it.
fn capture_server(family: Family) -> Result<(), Failed> {
    let bed = Bed::build(family, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let listen = SocketAddr::new(family.service(), 80);
    let (pcap, qlog) = (file(&format!("{family:?}.pcapng")), file(&format!("{family:?}.sqlog")));
    let flags = ["--pcap", pcap.to_str().unwrap(), "--qlog", qlog.to_str().unwrap()];
    let mut server = bed.server.within(|| serve(listen, served.address, &flags))?;
    let len = 1_000_000;
    let bytes = bed.client.within(|| kernel::get(listen, Speaks::Mptcp, len))??;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    served.join();
    net::run(&format!("kill -INT {}", server.id()));
    assert_eq!(server.wait()?.code(), Some(130));
    let paths = [0, 1].map(|path| family.on_path(path).0.to_string());
    let records = records(&qlog, "server");
    for path in &paths {
        let up = count(&records, "mptcp:subflow_established", ("path", path.as_str().into()));
        assert_eq!(up, 1);
        assert!(count(&records, "transport:packet_sent", ("path", path.as_str().into())) > 20);
    }
    assert!(count(&records, "mptcp:scheduler_decision", ("chosen", 0.into())) > 20);
    if decoder::has_tshark() {
        let sent =
            explained(&pcap, "server", paths.each_ref().map(|it| &**it), "tcp.srcport == 80");
        assert!(sent >= len as u64, "{sent}");
    }
    Ok(())
}

/// What a client sees of its download, and of its question the reason.
fn capture_client() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    bed.own_service()?;
    let service = SocketAddr::new(bed.family.service(), 80);
    let served = Service::start(&bed.server, service, Speaks::Mptcp, 1)?;
    let (pcap, qlog) = (file("client.pcapng"), file("client.sqlog"));
    let mut child = bed.client.within(|| {
        Command::new(PLAIT)
            .args(["get", &service.to_string(), "--from", "10.98.1.77@c0"])
            .args(["--from", "10.98.2.77@c1"])
            .arg("--pcap")
            .arg(&pcap)
            .arg("--qlog")
            .arg(&qlog)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    })??;
    let len = 500_000;
    let request = format!("put {len}\n");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(request.as_bytes())?;
    stdin.write_all(&kernel::pattern(len))?;
    let mut hash = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut hash)?;
    drop(stdin);
    assert_eq!(child.wait()?.code(), Some(0));
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    served.join();
    let records = records(&qlog, "client");
    for path in ["c0", "c1"] {
        assert!(count(&records, "transport:packet_sent", ("path", path.into())) > 20);
    }
    if decoder::has_tshark() {
        let sent = explained(&pcap, "client", ["c0", "c1"], "tcp.dstport == 80");
        assert!(sent >= (request.len() + len) as u64, "{sent}");
    }
    Ok(())
}
