//! `plait serve` and `plait get` as programs, each in its own namespace: their output, and that they leave
//! nothing behind however they end.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

#[path = "../../plait-live/tests/net/mod.rs"]
mod net;

mod attacks;
mod decoder;
mod deployed;
mod duplex;
mod measure;
mod operator;
mod race;
mod schema;
mod shell;
mod sim_live;

use libtest_mimic::{Failed, Trial};
use net::kernel::{self, Service, Speaks};
use net::timely::{agreed, all_carried};
use net::{Bed, Family, Line};
use plait_live::Namespace;
use plait_live::emulate::Strip;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

fn main() {
    net::stamp::stamp();
    let mut trials = Vec::new();
    for signal in ["TERM", "INT", "KILL", "ABRT"] {
        let name = format!("nothing_is_left_behind_by_a_server_that_ends_by/{signal}");
        trials.push(Trial::test(name, move || clean_up(signal)));
    }
    trials.push(Trial::test("a_file_is_fetched_from_a_kernel", fetch));
    for (name, from, local) in [
        ("addresses", ["10.98.1.77@c0", "10.98.2.77@c1"], ["10.98.1.77", "10.98.2.77"]),
        ("devices", ["c0", "c1"], ["10.98.1.1", "10.98.2.1"]),
    ] {
        let name = format!("a_second_fetch_begins_on_the_better_path/{name}");
        trials.push(Trial::test(name, move || remembered(from, local)));
    }
    for family in [Family::V4, Family::V6] {
        let name = format!("another_decoder_understands_a_server/{family:?}");
        trials.push(Trial::test(name, move || capture_server(family)));
    }
    trials.push(Trial::test("another_decoder_understands_a_client", capture_client));
    trials.push(Trial::test("a_server_tells_how_it_stands", standing));
    trials.push(Trial::test("clients_get_the_scheduler_of_their_rule", ruled));
    for family in [Family::V4, Family::V6] {
        let name = format!("local_programs_use_both_paths/{family:?}");
        let via = [0, 1].map(|path| format!("{}@c{path}", family.guest(path)));
        trials.push(Trial::test(name, move || proxied(family, &via)));
    }
    trials.push(Trial::test("a_client_that_says_nothing_costs_nothing", idle));
    trials
        .push(Trial::test("a_server_that_was_killed_resets_its_clients_when_it_is_back", crashed));
    let mut crowds = vec![UNREAD, CROWD];
    crowds.extend(std::env::var_os("PLAIT_SOAK").map(|_| THRONG));
    for crowd in crowds {
        let name = format!("clients_that_do_not_read_leave_room_for_others/{}", crowd.clients);
        trials.push(Trial::test(name, move || unread(crowd)));
    }
    trials.push(Trial::test("a_client_that_takes_nothing_is_ended_in_time", untaken));
    trials.push(Trial::test("a_client_that_vanishes_is_ended_in_time", vanished));
    trials.push(Trial::test("a_relay_without_a_service_is_ended", orphaned));
    trials.push(Trial::test("one_connection_too_many_is_refused", refused));
    trials.push(Trial::test("a_silent_target_is_given_up_in_time", given_up));
    trials.push(Trial::test("an_own_address_is_reached_by_its_device_or_refused", own_address));
    trials.push(Trial::test("a_device_that_goes_is_named", device_gone));
    trials.push(Trial::test("a_host_without_addresses_has_none_of_them", bare));
    trials.push(Trial::test("what_the_doctor_prescribes_helps", doctor));
    trials.push(Trial::test("a_public_port_leads_to_a_server", public_port));
    let via = ["c0", "c1"].map(str::to_owned);
    let proxied = move || proxied(Family::V4, &via);
    trials.push(Trial::test("local_programs_use_both_devices", proxied));
    trials.push(Trial::test("a_fallback_is_seen_in_metrics", fallen_back));
    trials.extend(attacks::trials());
    trials.extend(deployed::trials());
    trials.extend(duplex::trials());
    trials.extend(measure::trials());
    trials.extend(operator::trials());
    trials.extend(race::trials());
    trials.extend(shell::trials());
    trials.extend(net::trials(("sim_live", sim_live::cases())));
    net::conduct(trials)
}

/// The first path is slow and far. A first `plait get` begins there, and leaves a file. A second one reads it
/// and begins on the other path. The file names the paths by addresses that stay the same (`local`).
fn remembered(from: [&str; 2], local: [&str; 2]) -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(3, 120, 60_000), Line::new(30, 20, 60_000)])?;
    let service = bed.family.service();
    bed.own_service()?;
    let served = Service::start(&bed.server, SocketAddr::new(service, 80), Speaks::Mptcp, 2)?;
    let name = format!("plait-paths-{}-{}.toml", std::process::id(), local[0]);
    let memory = std::env::temp_dir().join(name);
    let answer = memory.with_extension("answer");
    let _ = fs::remove_file(&memory);
    let fetch = || -> Result<Value, Failed> {
        let [_, before] = bed.counters();
        let mut child = bed.client.within(|| {
            Command::new(PLAIT)
                .args(["get", &served.address.to_string(), "--json", "--path-memory"])
                .arg(&memory)
                .arg("--output")
                .arg(&answer)
                .args(["--from", from[0], "--from", from[1]])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        })??;
        let stdin = child.stdin.as_mut().unwrap();
        stdin.write_all(b"get ")?;
        net::until("a join", || bed.has_taken(1, &before));
        stdin.write_all(b"3000000\n")?;
        net::until("the answer", || fs::metadata(&answer).is_ok_and(|it| it.len() == 3_000_000));
        let output = child.wait_with_output()?;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(kernel::hash(&fs::read(&answer)?), kernel::hash(&kernel::pattern(3_000_000)));
        fs::remove_file(&answer)?;
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let paths = || -> Result<Vec<Value>, Failed> {
        let output =
            Command::new(PLAIT).args(["paths", "--json", "--file"]).arg(&memory).output()?;
        let document: Value = serde_json::from_slice(&output.stdout)?;
        Ok(document["paths"].as_array().unwrap().clone())
    };
    assert_eq!(fetch()?["paths"][0]["name"], "c0");
    let known = paths()?;
    let texts = |name: &str| known.iter().map(|path| path[name].clone()).collect::<Vec<_>>();
    assert_eq!(texts("local"), local);
    assert_eq!(texts("destination"), ["10.99.0.0/24"; 2]);
    assert_eq!(texts("source"), ["get"; 2]);
    let received = |path: &Value| path["received_bps"].as_u64().unwrap_or(0);
    assert!(received(&known[1]) > 2 * received(&known[0]), "{known:?}");
    assert_eq!(fetch()?["paths"][0]["name"], "c1", "{known:?}");
    assert_eq!(paths()?.len(), 2);
    let forget = ["paths", "forget", "10.99.0.0/16", "--file"];
    let output = Command::new(PLAIT).args(forget).arg(&memory).output()?;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 paths forgotten, 0 left\n");
    assert_eq!(paths()?.len(), 0);
    fs::remove_file(&memory)?;
    Ok(())
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
        // If a program is missing, plait cannot have changed its output: plait starts no programs.
        if let Ok(output) = Command::new(words.next().unwrap()).args(words).output() {
            all.push_str(&format!("{line}\n{}", String::from_utf8_lossy(&output.stdout)));
        }
    }
    all
}

/// Returns the state once the kernel has assigned addresses to all new devices.
fn settled() -> String {
    net::until("addresses that are no longer tentative", || !state().contains(" tentative "));
    state()
}

/// Returns the changes from one state to another.
fn changes(before: &str, after: &str) -> Vec<String> {
    let own = |sign: char, one: &str, than: &str| -> Vec<String> {
        let lines = one.lines().filter(|line| !than.lines().any(|it| it == *line));
        lines.map(|line| format!("{sign} {line}")).collect()
    };
    [own('-', before, after), own('+', after, before)].concat()
}

/// Waits until the namespace of the calling thread is in this state again. Ignores connection tracking: it has
/// its own sysctls and counters, and is enabled for the whole machine on first use.
fn await_state(before: &str) {
    let others = || {
        let mut changes = changes(before, &state());
        changes.retain(|line| !line.contains("nf_conntrack"));
        changes
    };
    let begun = Instant::now();
    while !others().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:#?}", others());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the output of a program, which has to have ended with this code.
fn ended(code: i32, output: Output) -> Output {
    assert_eq!(output.status.code(), Some(code), "{}", problem(&output));
    output
}

/// Returns the messages of a program.
fn problem(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for the first line of a program's output. Returns it, and the reader of the other lines.
fn first_line<T: Read>(output: Option<T>) -> Result<(String, BufReader<T>), Failed> {
    let mut reader = BufReader::new(output.unwrap());
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok((line, reader))
}

/// Starts a server in the namespace of the calling thread, and waits until it listens.
fn serve(listen: SocketAddr, to: SocketAddr, flags: &[&str]) -> Running {
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
    Running(child)
}

/// A server in a test's network, and its output.
struct Watched<'a> {
    bed: &'a Bed,
    listen: SocketAddr,
    server: Running,
    log: JoinHandle<Vec<String>>,
}

impl Watched<'_> {
    fn start<'a>(bed: &'a Bed, to: SocketAddr, flags: &[&str]) -> Result<Watched<'a>, Failed> {
        let listen = SocketAddr::new(bed.family.service(), 80);
        let flags = [flags, &["--metrics", "127.0.0.1:9100"]].concat();
        let mut server = bed.server.within(|| serve(listen, to, &flags))?;
        let log = BufReader::new(server.stderr.take().unwrap());
        let log = std::thread::spawn(move || log.lines().map_while(Result::ok).collect());
        Ok(Watched { bed, listen, server, log })
    }

    /// Returns a sample of its metrics.
    fn told(&self, series: &str) -> u64 {
        value(&metrics(&self.bed.server, ([127, 0, 0, 1], 9100).into()), series)
    }

    /// Requests `len` bytes with a client.
    fn ask(&self, speaks: Speaks, len: usize) -> std::io::Result<Socket> {
        let len = format!("{len}\n");
        self.bed.client.within(|| kernel::request(self.listen, speaks, ["get ", &len]))?
    }

    /// Requests `len` bytes in the same way; the service ends its side after the answer.
    fn ask_last(&self, speaks: Speaks, len: usize) -> std::io::Result<Socket> {
        let len = format!("{len}\n");
        self.bed.client.within(|| kernel::request(self.listen, speaks, ["last ", &len]))?
    }

    /// Ends the server with TERM and returns its exit code and its log.
    fn end(mut self) -> Result<(Option<i32>, Vec<String>), Failed> {
        net::run(&format!("kill -TERM {}", self.server.id()));
        let code = self.server.wait()?.code();
        Ok((code, self.log.join().unwrap()))
    }
}

/// A program that is killed if a test fails before it ends.
struct Running(Child);

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program has usually ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// F13 and must-hold property 9: the server ends in the middle of a download.
fn clean_up(signal: &'static str) -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(10, 20, 60_000)])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let before = bed.server.within(settled)?;
    let mut server = bed.server.within(|| serve(listen, served.address, &[]))?;
    let during = bed.server.within(state)?;
    assert_ne!(before, during);
    assert!(during.contains("plait0"), "{during}");
    // This is longer than the server waits for its connections.
    let client = bed.client.try_clone()?;
    let transfer = std::thread::spawn(move || {
        client.within(|| kernel::get(listen, Speaks::Mptcp, 20_000_000))
    });
    bed.await_received("c0", 300_000);
    let kill = |signal: &str| net::run(&format!("kill -{signal} {}", server.id()));
    kill(signal);
    if ["TERM", "INT"].contains(&signal) {
        // The second signal ends it at once.
        std::thread::sleep(Duration::from_millis(300));
        kill(signal);
    }
    let status = server.wait()?;
    bed.server.within(|| await_state(&before))?;
    match signal {
        "TERM" => assert_eq!(status.code(), Some(0)),
        "INT" => assert_eq!(status.code(), Some(130)),
        _ => assert_eq!(status.code(), None),
    }
    if ["TERM", "INT"].contains(&signal) {
        // The client received the end.
        assert!(transfer.join().unwrap()?.is_err());
    }
    Ok(())
}

/// `plait get` from a stock kernel, into a file.
fn fetch() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let service = bed.family.service();
    bed.own_service()?;
    let served = Service::start(&bed.server, SocketAddr::new(service, 80), Speaks::Mptcp, 1)?;
    let [_, before] = bed.counters();
    let mut child = bed.client.within(|| {
        Command::new(PLAIT)
            .args(["get", &served.address.to_string(), "--path-memory", "off"])
            .args(["--from", "10.98.1.77@c0", "--from", "10.98.2.77@c1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    })??;
    let len = 500_000;
    // Standard input stays open until the answer has arrived: a kernel accepts no join after its end.
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(b"get ")?;
    net::until("a join", || bed.has_taken(1, &before));
    stdin.write_all(format!("{len}\n").as_bytes())?;
    let mut bytes = Vec::new();
    child.stdout.as_mut().unwrap().read_to_end(&mut bytes)?;
    let output = child.wait_with_output()?;
    let [_, after] = bed.counters();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&before, "MPJoinAckRx"), 1, "{:?}", after.risen(&before));
    Ok(())
}

/// Returns a new file of this test program.
fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join(name);
    let _ = fs::remove_file(&file);
    file
}

/// Checks a capture of either end. `paths` are the names of the interfaces, `sender` is the filter for this
/// end's packets. Returns the number of data bytes that have a reason.
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

/// Returns the records of a qlog file after its head, which must be of this end.
fn records(qlog: &Path, end: &str) -> Vec<Value> {
    let text = fs::read_to_string(qlog).unwrap();
    let mut records = text.split('\u{1e}').skip(1).map(|it| serde_json::from_str(it).unwrap());
    let head: Value = records.next().unwrap();
    assert_eq!(head["trace"]["vantage_point"]["type"], end);
    let records: Vec<Value> = records.collect();
    assert!(records.is_sorted_by_key(|it| it["time"].as_f64().unwrap().to_bits()));
    records
}

/// Returns the largest connection of `plait explain FILE --json`.
fn explained_connection(file: &Path) -> Value {
    let output = Command::new(PLAIT).args(["explain", "--json"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["connections"][0].clone()
}

/// Counts the records with this name and with this value at their place in the data.
fn count(records: &[Value], name: &str, (place, value): (&str, Value)) -> usize {
    records.iter().filter(|it| it["name"] == name && it["data"][place] == value).count()
}

/// A download as the server sees it. Ctrl-C ends the server.
fn capture_server(family: Family) -> Result<(), Failed> {
    let bed = Bed::build(family, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let listen = SocketAddr::new(family.service(), 80);
    let (pcap, qlog) = (file(&format!("{family:?}.pcapng")), file(&format!("{family:?}.sqlog")));
    let flags = ["--pcap", pcap.to_str().unwrap(), "--qlog", qlog.to_str().unwrap()];
    let mut server = bed.server.within(|| serve(listen, served.address, &flags))?;
    let len = 1_000_000;
    let bytes = bed.client.within(|| kernel::get(listen, Speaks::Over(2), len))??;
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

/// The client's view of its download, and the reason for its request.
fn capture_client() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    bed.own_service()?;
    let service = SocketAddr::new(bed.family.service(), 80);
    let served = Service::start(&bed.server, service, Speaks::Mptcp, 1)?;
    let (pcap, qlog) = (file("client.pcapng"), file("client.sqlog"));
    let [_, before] = bed.counters();
    let mut child = bed.client.within(|| {
        Command::new(PLAIT)
            .args(["get", &service.to_string(), "--path-memory", "off", "--from", "10.98.1.77@c0"])
            .args(["--from", "10.98.2.77@c1"])
            .arg("--pcap")
            .arg(&pcap)
            .arg("--qlog")
            .arg(&qlog)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    })??;
    let len = 1_000_000;
    let request = format!("put {len}\n");
    let (first, others) = request.as_bytes().split_at(1);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(first)?;
    net::until("a join", || bed.has_taken(1, &before));
    stdin.write_all(others)?;
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
    // The qlog has the transfer of the capture, and the state of the sender.
    let [by_qlog, by_pcap] = [&qlog, &pcap].map(|file| explained_connection(file));
    for it in [&by_qlog, &by_pcap] {
        assert_eq!((&it["protocol"], &it["sender"]), (&"mptcp".into(), &"client".into()));
        assert!(it["data"]["bytes"].as_u64().unwrap() >= len as u64, "{it:#}");
    }
    for key in ["name", "joined_ms", "traffic", "rtt", "link_mbps"] {
        let of = |it: &Value| [0, 1].map(|path| it["paths"][path][key].clone());
        assert_eq!(of(&by_qlog), of(&by_pcap), "{key}");
    }
    assert_eq!((&by_qlog["sender_known"], &by_pcap["sender_known"]), (&true.into(), &false.into()));
    if decoder::has_tshark() {
        let sent = explained(&pcap, "client", ["c0", "c1"], "tcp.dstport == 80");
        assert!(sent >= (request.len() + len) as u64, "{sent}");
    }
    Ok(())
}

/// Returns the answer of `http://ADDR/metrics` within this namespace. If a request is slow, the server refuses
/// it with an error; the request is then repeated.
fn metrics(space: &Namespace, at: SocketAddr) -> Vec<String> {
    let ask = || {
        let mut text = String::new();
        let mut stream = TcpStream::connect(at)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: plait\r\n\r\n")?;
        stream.read_to_string(&mut text).map(|_| text)
    };
    let begun = Instant::now();
    loop {
        let answer = space.within(ask).unwrap();
        if let Ok(Some((head, body))) = answer.as_ref().map(|text| text.split_once("\r\n\r\n"))
            && head.starts_with("HTTP/1.1 200 OK\r\n")
        {
            return body.lines().map(str::to_owned).collect();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the value of a series.
fn value(metrics: &[String], series: &str) -> u64 {
    let line = metrics.iter().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {metrics:#?}")).parse().unwrap()
}

/// A service that expects the header of the PROXY protocol on each of two connections, answers a request, and
/// returns the addresses of the header.
fn introduced(listener: &TcpListener) -> Vec<([u8; 4], [u8; 4], [u8; 2])> {
    let mut clients = Vec::new();
    for stream in listener.incoming().take(2) {
        let mut stream = stream.unwrap();
        let mut header = [0; 28];
        stream.read_exact(&mut header).unwrap();
        assert_eq!(header[..12], *b"\r\n\r\n\0\r\nQUIT\n");
        assert_eq!(header[12..16], [0x21, 0x11, 0, 12]);
        let at = |from: usize| header[from..from + 4].try_into().unwrap();
        clients.push((at(16), at(20), header[26..28].try_into().unwrap()));
        let mut request = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        reader.read_line(&mut request).unwrap();
        let len = request.trim().strip_prefix("get ").unwrap().parse().unwrap();
        stream.write_all(&kernel::pattern(len)).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while reader.read(&mut [0; 16]).unwrap() > 0 {}
    }
    clients
}

/// Metrics, the display of `--top`, the scheduler of another port, the PROXY protocol, and the notification of
/// the service manager.
fn standing() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let listener = bed.server.within(|| TcpListener::bind("127.0.0.1:0"))??;
    let to = listener.local_addr()?;
    let service = std::thread::spawn(move || introduced(&listener));
    let (listen, scraped) = (SocketAddr::new(bed.family.service(), 80), "127.0.0.1:9100");
    let heard = file("notify");
    let notified = UnixDatagram::bind(&heard)?;
    notified.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut server = bed.server.within(|| {
        Command::new(PLAIT)
            .args(["serve", "--listen", &listen.to_string(), "--to", &to.to_string()])
            .args(["--scheduler", "minrtt", "--port", "81=redundant", "--proxy-protocol", "v2"])
            .args(["--metrics", scraped, "--top"])
            .env("NOTIFY_SOCKET", &heard)
            .stdout(Stdio::piped())
            .spawn()
            .map(Running)
    })??;
    let shown = Arc::new(Mutex::new(String::new()));
    let (showing, mut pictures) = (shown.clone(), BufReader::new(server.stdout.take().unwrap()));
    let watching = std::thread::spawn(move || {
        let mut line = String::new();
        while pictures.read_line(&mut line).unwrap() > 0 {
            showing.lock().unwrap().push_str(&std::mem::take(&mut line));
        }
    });
    let is_shown = |words: [&str; 2]| {
        let shown = shown.lock().unwrap();
        shown.lines().any(|line| words.iter().all(|it| line.contains(it)))
    };
    let mut said = [0; 32];
    let len = kernel::persist(|| notified.recv(&mut said))?;
    assert_eq!(&said[..len], b"READY=1");
    let len = 400_000;
    let get = |port| {
        let to = SocketAddr::new(listen.ip(), port);
        let mut stream = kernel::request(to, Speaks::Over(2), ["get ", &format!("{len}\n")])?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
        std::io::Result::Ok(stream)
    };
    let stream = bed.client.within(|| get(80))??;
    net::until("a picture of both subflows", || {
        is_shown(["10.98.1.1 ", "first"]) && is_shown(["10.98.2.1 ", "joined"])
    });
    let one = metrics(&bed.server, scraped.parse()?);
    assert_eq!(value(&one, "plait_connections{multipath=\"true\"}"), 1);
    assert_eq!(value(&one, "plait_subflows{subflow=\"joined\"}"), 1);
    drop(stream);
    drop(bed.client.within(|| get(81))??);
    let clients = service.join().unwrap();
    for (at, port) in [(0, 80), (1, 81)] {
        assert_eq!(clients[at], ([10, 98, 1, 1], [10, 99, 0, 1], [0, port]));
    }
    let two = metrics(&bed.server, scraped.parse()?);
    for series in ["port=\"80\",scheduler=\"minrtt\"", "port=\"81\",scheduler=\"redundant\""] {
        let name = "plait_connections_accepted_total";
        assert_eq!(value(&two, &format!("{name}{{{series},multipath=\"true\"}}")), 1);
    }
    let sent = |kind| value(&two, &format!("plait_sent_bytes_total{{subflow=\"{kind}\"}}"));
    let (first, joined) = (sent("first"), sent("joined"));
    assert_eq!(value(&two, "plait_connections_failed_total"), 0);
    net::run(&format!("kill -TERM {}", server.id()));
    assert_eq!(server.wait()?.code(), Some(0));
    let len = kernel::persist(|| notified.recv(&mut said))?;
    assert_eq!(&said[..len], b"STOPPING=1");
    watching.join().unwrap();
    // The second download was sent twice if copies could be sent in time. FINs count as bytes. If packets are
    // late, data is retransmitted on both subflows even without copies.
    let timely = bed.emulator.stop()?.lateness.allows_timing();
    let (least, most) = if timely { (100_000, 1_300_000) } else { (10_000, 1_600_100) };
    assert!(joined > least && (800_000..most).contains(&(first + joined)), "{first} {joined}");
    Ok(())
}

/// `--rules`: the port and the source of a connection select its scheduler. The first match counts; without a
/// match the scheduler of the port is used.
fn ruled() -> Result<(), Failed> {
    let len = RULED_LEN;
    let wrong = |sent: &[u64; 3]| {
        // With copies, much of the data goes over two paths; otherwise all data is sent once. FINs do not count
        // as bytes.
        let [copied, single, plain] = *sent;
        let right = copied > len * 23 / 20 && single == len && plain == len;
        (!right).then(|| format!("{sent:?} bytes were sent"))
    };
    // If packets are late, some data is sent twice even without copies.
    agreed("what goes twice by a rule", sent_by_rules, wrong).map(drop)
}

/// Bytes of each download of the test of rules.
const RULED_LEN: u64 = 800_000;

/// Returns the bytes sent to three clients: a rule with copies, a rule without copies, and no rule.
/// Returns `None` if packets were late. The metrics must name the schedulers in any case.
fn sent_by_rules() -> Result<Option<[u64; 3]>, Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 3)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let (rules, scraped) = (file("rules"), "127.0.0.1:9100");
    fs::write(&rules, "redundant port=81 from=10.98.1.0/24\notias port=81\n")?;
    let flags = ["--scheduler", "minrtt", "--port", "81=ecf", "--metrics", scraped, "--rules"];
    let flags = [&flags[..], &[rules.to_str().unwrap()]].concat();
    let mut server = bed.server.within(|| serve(listen, served.address, &flags))?;
    let sent = || {
        // A client has read everything before the last copies are sent.
        let all = || metrics(&bed.server, scraped.parse().unwrap());
        net::until("the end of a connection", || {
            let all = all();
            let relayed =
                ["true", "false"].map(|of| format!("plait_connections{{multipath=\"{of}\"}}"));
            relayed.iter().all(|it| value(&all, it) == 0)
                && value(&all, "plait_connections_closing") == 0
        });
        let all = all();
        let of = |kind| value(&all, &format!("plait_sent_bytes_total{{subflow=\"{kind}\"}}"));
        of("first") + of("joined")
    };
    let get = |from: usize, port: u16| {
        let before = sent();
        bed.client.within(|| {
            let to = SocketAddr::new(listen.ip(), port);
            // The second address is the one from which the kernel otherwise joins.
            let speaks = if from == 0 { Speaks::Over(2) } else { Speaks::Mptcp };
            let request = ["get ", &format!("{RULED_LEN}\n")];
            let from = Some(bed.family.on_path(from).0);
            let mut stream = kernel::request_from(from, to, speaks, request)?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes)?;
            let expected = kernel::pattern(RULED_LEN as usize);
            assert_eq!(kernel::hash(&bytes), kernel::hash(&expected));
            std::io::Result::Ok(())
        })??;
        Ok::<u64, Failed>(sent() - before)
    };
    let sent = [get(0, 81)?, get(1, 81)?, get(0, 80)?];
    served.join();
    let all = metrics(&bed.server, scraped.parse()?);
    for labels in [
        "port=\"81\",scheduler=\"redundant\"",
        "port=\"81\",scheduler=\"otias\"",
        "port=\"80\",scheduler=\"minrtt\"",
    ] {
        let name = "plait_connections_accepted_total";
        assert_eq!(value(&all, &format!("{name}{{{labels},multipath=\"true\"}}")), 1);
    }
    server.kill()?;
    server.wait()?;
    Ok(bed.emulator.stop()?.lateness.allows_timing().then_some(sent))
}

/// Must-hold property 4: the metrics of a server show that connections fell back.
fn fallen_back() -> Result<(), Failed> {
    let line = Line { strip: Strip::AfterSyn, ..Line::new(20, 20, 60_000) };
    let bed = Bed::build(Family::V4, &[line])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let flags = ["--metrics", "127.0.0.1:9100"];
    let mut server = bed.server.within(|| serve(listen, served.address, &flags))?;
    let len = 100_000;
    let bytes = bed.client.within(|| kernel::get(listen, Speaks::Mptcp, len))??;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    served.join();
    let metrics = metrics(&bed.server, "127.0.0.1:9100".parse()?);
    let fallbacks = metrics.iter().filter(|it| it.starts_with("plait_fallbacks_total{cause="));
    let counts: Vec<&str> = fallbacks.filter_map(|it| it.rsplit(' ').next()).collect();
    assert_eq!(counts, ["1"], "{metrics:#?}");
    server.kill()?;
    server.wait()?;
    Ok(())
}

/// A server sleeps while its clients are idle, however long ago it connected to their service.
fn idle() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let mut server = bed.server.within(|| serve(listen, served.address, &[]))?;
    // Processor time that it has used, in units of 10 ms.
    let used = || -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        [11, 12].map(|at: usize| fields[at].parse::<u64>().unwrap()).iter().sum()
    };
    let mut idle = 0;
    bed.client.within(|| {
        // Both subflows are established, and the service waits for the rest of the line.
        let mut stream = kernel::request(listen, Speaks::Over(2), ["get ", "1000"])?;
        let before = used();
        std::thread::sleep(Duration::from_secs(2));
        idle = used() - before;
        stream.write_all(b"\n")?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(1000)));
        std::io::Result::Ok(())
    })??;
    served.join();
    server.kill()?;
    server.wait()?;
    assert!(idle < 20, "{idle} hundredths of a second");
    Ok(())
}

/// Bytes that services write, for all connections.
fn written() -> &'static [u8] {
    static WRITTEN: OnceLock<Vec<u8>> = OnceLock::new();
    WRITTEN.get_or_init(|| kernel::pattern(50_000_000))
}

/// A service for any number of simultaneous connections. For each line `get N` it writes N bytes, at most
/// 50,000,000. After `last N` it ends its side.
fn at_once(space: &Namespace) -> Result<SocketAddr, Failed> {
    let listener = space.within(|| TcpListener::bind("127.0.0.1:0"))??;
    let address = listener.local_addr()?;
    let serve = |stream: TcpStream| -> std::io::Result<()> {
        let (mut lines, mut out) = (BufReader::new(stream.try_clone()?), stream);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            let wanted = std::mem::take(&mut line);
            let (verb, len) = wanted.trim().split_once(' ').unwrap_or_default();
            out.write_all(&written()[..len.parse().unwrap_or(0)])?;
            if verb == "last" {
                out.shutdown(Shutdown::Write)?;
            }
        }
        Ok(())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    Ok(address)
}

/// Returns a value of `/proc/PID/status` in bytes.
fn memory(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// Number of clients that request much and read nothing, and the `--memory` of the server.
#[derive(Clone, Copy)]
struct Unread {
    clients: usize,
    memory: u64,
}

const UNREAD: Unread = Unread { clients: 60, memory: 32 << 20 };
/// If plait lets services write far ahead, these clients exhaust the kernel's memory for TCP.
const CROWD: Unread = Unread { clients: 500, memory: 512 << 20 };
const THRONG: Unread = Unread { clients: 2_000, memory: 512 << 20 };

/// Clients request data and do not read it. The server stays within its memory limit, and clients that read are
/// served as before. Connections of ended clients are reported until they are closed.
fn unread(crowd: Unread) -> Result<(), Failed> {
    let slower = |times: &Beside| {
        let slower = times.beside >= times.alone.mul_f64(1.0 / 0.9);
        (slower || times.newcomer > Duration::from_secs(1)).then(|| format!("{times:?}"))
    };
    let look = || beside_unread(crowd);
    agreed("a download beside those who do not read", look, slower).map(drop)
}

/// Durations of a download, of the next one on the same connection beside clients that do not read, and of a
/// new client's first answer.
#[derive(Debug)]
struct Beside {
    alone: Duration,
    beside: Duration,
    newcomer: Duration,
}

/// Measures these durations; returns `None` if packets were late.
fn beside_unread(crowd: Unread) -> Result<Option<Beside>, Failed> {
    let Unread { clients, memory: limit } = crowd;
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000)])?;
    let to = at_once(&bed.server)?;
    let (size, most) = (limit.to_string() + "B", (clients + 40).to_string());
    let mut server = Watched::start(&bed, to, &["--memory", &size, "--max-connections", &most])?;
    let listen = server.listen;
    let told = |series: &str| value(&metrics(&bed.server, ([127, 0, 0, 1], 9100).into()), series);
    let len = 2_000_000;
    let request = format!("get {len}\n");
    let ask = || kernel::request(listen, Speaks::Mptcp, [&request, ""]);
    let mut reader = bed.client.within(ask)??;
    let mut bytes = vec![0; len];
    // The first download probes the rate of the path.
    reader.read_exact(&mut bytes)?;
    let start = Instant::now();
    reader.write_all(request.as_bytes())?;
    reader.read_exact(&mut bytes)?;
    let alone = start.elapsed();
    let before = memory(server.server.id(), "VmRSS");
    let unread: Vec<TcpStream> = bed.client.within(|| {
        let ask = |_| {
            let stream = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            stream.set_recv_buffer_size(8_192)?;
            stream.connect(&listen.into())?;
            let mut stream = TcpStream::from(stream);
            stream.write_all(b"get 10000000\n").map(|()| stream)
        };
        (0..clients).map(ask).collect::<std::io::Result<_>>()
    })??;
    net::until("connections", || told("plait_connections{multipath=\"false\"}") == clients as u64);
    // Each connection holds more than its guaranteed minimum.
    net::until("buffers", || told("plait_memory_bytes") > clients as u64 * 24_000);
    let start = Instant::now();
    reader.write_all(request.as_bytes())?;
    reader.read_exact(&mut bytes)?;
    let beside = start.elapsed();
    let (held, took) = (told("plait_memory_bytes"), memory(server.server.id(), "VmHWM") - before);
    eprintln!("{alone:?}, {beside:?} beside them; {held} bytes are held, {took} were taken");
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert!(held <= limit / 2, "{held}");
    // Memory that the allocator keeps is subtracted.
    assert!(took <= limit + (8 << 20), "{took}");
    assert_eq!(told("plait_memory_limit_bytes"), limit);
    // A new client is served at once.
    let start = Instant::now();
    let fresh =
        bed.client.within(|| kernel::request(listen, Speaks::Tcp, ["get 10000\n", ""]))??;
    Read::take(fresh, 10_000).read_to_end(&mut Vec::new())?;
    let newcomer = start.elapsed();
    eprintln!("a newcomer after {newcomer:?}");
    // The clients end without reading: data in flight to them is not acknowledged.
    assert_eq!(told("plait_connections_closing"), 0);
    drop(unread);
    net::until("their end", || told("plait_connections{multipath=\"false\"}") == 0);
    drop(reader);
    net::until("all ends", || {
        told("plait_connections_closing") == 0 && told("plait_memory_bytes") < 1_000_000
    });
    server.server.kill()?;
    server.server.wait()?;
    Ok(bed.emulator.stop()?.lateness.allows_timing().then_some(Beside { alone, beside, newcomer }))
}

/// A server is killed during downloads and started again. It answers the next segment of each client with a
/// RST. A kernel with Multipath TCP waits for `net.mptcp.close_timeout` after the last subflow; the default is
/// 60 s.
fn crashed() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    bed.client.within(|| net::set("net/mptcp/close_timeout", "1"))?;
    let to = at_once(&bed.server)?;
    let mut server = Watched::start(&bed, to, &[])?;
    let mut clients = [Speaks::Tcp, Speaks::Over(2)].map(|speaks| server.ask(speaks, 50_000_000));
    for client in &mut clients {
        client.as_mut().unwrap().read_exact(&mut [0; 200_000])?;
    }
    server.server.kill()?;
    server.server.wait()?;
    drop(server);
    let server = Watched::start(&bed, to, &[])?;
    for (client, patience) in clients.into_iter().zip([2, 5]) {
        let mut client = client?;
        client.write_all(b"still there?\n")?;
        let asked = Instant::now();
        // Data that had arrived is read first.
        let end = client.read_to_end(&mut Vec::new()).unwrap_err();
        eprintln!("{end} after {:?}", asked.elapsed());
        // The error that a kernel returns for Multipath TCP after its timeout.
        let kinds = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::NotConnected];
        assert!(kinds.contains(&end.kind()), "{end}");
        assert!(asked.elapsed() < Duration::from_secs(patience), "{:?}", asked.elapsed());
    }
    let (code, _) = server.end()?;
    assert_eq!(code, Some(0));
    Ok(())
}

/// R75: with `--user-timeout`, clients that read nothing are disconnected, over plain TCP and Multipath TCP. A
/// client that reads slowly but steadily is not.
fn untaken() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let to = at_once(&bed.server)?;
    let server = Watched::start(&bed, to, &["--user-timeout", "3s"])?;
    let ask = |speaks| server.ask(speaks, 50_000_000);
    let mut slow = ask(Speaks::Over(2))?;
    let mut silent = [ask(Speaks::Tcp)?, ask(Speaks::Mptcp)?];
    let mut piece = vec![0; 400_000];
    let timed_out = "plait_connections_timed_out_total{timeout=\"user\"}";
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(8) || server.told(timed_out) < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody was ended");
        slow.read_exact(&mut piece)?;
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(server.told("plait_connections{multipath=\"true\"}"), 1);
    assert_eq!(server.told("plait_connections{multipath=\"false\"}"), 0);
    assert_eq!(server.told("plait_connections_failed_total"), 2);
    for stream in &mut silent {
        let end = stream.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset, "{end}");
    }
    drop(slow);
    let (_, log) = server.end()?;
    let why =
        "problem=\"the peer neither acknowledged data nor opened its window for the user timeout\"";
    assert_eq!(log.iter().filter(|it| it.ends_with(why)).count(), 2, "{log:#?}");
    Ok(())
}

/// A service that answers a request with three bytes, ends its side, and then reads until its client ends.
fn half_closing(space: &Namespace) -> Result<SocketAddr, Failed> {
    let listener = space.within(|| TcpListener::bind("127.0.0.1:0"))??;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || -> std::io::Result<()> {
                BufReader::new(&stream).read_line(&mut String::new())?;
                stream.write_all(&kernel::pattern(3))?;
                stream.shutdown(Shutdown::Write)?;
                stream.read_to_end(&mut Vec::new()).map(drop)
            });
        }
    });
    Ok(address)
}

/// R75: `--keep-alive` ends connections whose client has acknowledged the server's end, never ends its side,
/// and vanishes silently. A client that still answers, even if only on its second path, keeps its connection.
fn vanished() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let server = Watched::start(&bed, half_closing(&bed.server)?, &["--keep-alive", "1s"])?;
    let mut clients = [server.ask(Speaks::Tcp, 3)?, server.ask(Speaks::Over(2), 3)?];
    for client in &mut clients {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes)?;
        assert_eq!(bytes, kernel::pattern(3));
    }
    let (plain, multipath) =
        ("plait_connections{multipath=\"false\"}", "plait_connections{multipath=\"true\"}");
    // Probes are answered as long as the client exists.
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!((server.told(plain), server.told(multipath)), (1, 1));
    for (device, series) in [("c0", plain), ("c1", multipath)] {
        let start = Instant::now();
        bed.client.within(|| net::run(&format!("ip link set {device} down")))?;
        net::until("the end of who is gone", || server.told(series) == 0);
        // Nine probes are sent, one second apart.
        assert!(start.elapsed() >= Duration::from_secs(9), "{:?}", start.elapsed());
        assert_eq!(server.told(multipath), u64::from(device == "c0"));
    }
    let timed_out = "plait_connections_timed_out_total{timeout=\"keep-alive\"}";
    assert_eq!((server.told(timed_out), server.told("plait_connections_failed_total")), (2, 2));
    drop(clients);
    let (_, log) = server.end()?;
    let why = "problem=\"the peer answered no keep-alive\"";
    assert_eq!(log.iter().filter(|it| it.ends_with(why)).count(), 2, "{log:#?}");
    Ok(())
}

/// R57, R75: clients do not end after their service has ended. One service is closed, and its kernel reports
/// that after `tcp_fin_timeout`: its relay ends in order. The other one still reads, and receives the client's
/// data.
fn orphaned() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000)])?;
    bed.server.within(|| net::run("sysctl -qw net.ipv4.tcp_fin_timeout=2"))?;
    let listener = bed.server.within(|| TcpListener::bind("127.0.0.1:0"))??;
    let to = listener.local_addr()?;
    let service = std::thread::spawn(move || -> std::io::Result<(TcpStream, String)> {
        let (mut leaves, mut stays) = (listener.accept()?.0, listener.accept()?.0);
        for stream in [&mut leaves, &mut stays] {
            BufReader::new(&*stream).read_line(&mut String::new())?;
            stream.write_all(&kernel::pattern(3))?;
        }
        drop(leaves);
        stays.shutdown(Shutdown::Write)?;
        let mut said = String::new();
        BufReader::new(&stays).read_line(&mut said)?;
        Ok((stays, said))
    });
    let server = Watched::start(&bed, to, &[])?;
    let relayed = || server.told("plait_connections{multipath=\"true\"}");
    let mut clients = Vec::new();
    for count in 1..=2 {
        clients.push(server.ask(Speaks::Mptcp, 3)?);
        net::until("a relay", || relayed() == count);
    }
    for client in &mut clients {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes)?;
        assert_eq!(bytes, kernel::pattern(3));
    }
    let start = Instant::now();
    net::until("the end of the relay", || relayed() < 2);
    assert!(start.elapsed() >= Duration::from_millis(1_500), "{:?}", start.elapsed());
    // A half-closed connection is not affected, however long it lasts.
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!((relayed(), server.told("plait_connections_failed_total")), (1, 0));
    clients[1].write_all(b"so it is\n")?;
    let (service, said) = service.join().unwrap()?;
    assert_eq!(said, "so it is\n");
    drop((clients, service));
    net::until("the end of the other one", || relayed() == 0);
    assert_eq!(server.end()?.0, Some(0));
    Ok(())
}

/// `--max-connections`: a further connection is refused, and metrics and the log report it. It is accepted once
/// there is room. A connection that its service has ended and its client has not is reported as closing.
fn refused() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000)])?;
    let to = at_once(&bed.server)?;
    let server = Watched::start(&bed, to, &["--max-connections", "2"])?;
    let connect = || server.ask(Speaks::Mptcp, 3);
    let read = |stream: &mut Socket| {
        let mut bytes = [0; 3];
        stream.read_exact(&mut bytes).map(|()| assert_eq!(bytes[..], kernel::pattern(3)))
    };
    let (mut one, mut two) = (connect()?, connect()?);
    read(&mut one)?;
    read(&mut two)?;
    let third = connect().map(drop).unwrap_err();
    assert_eq!(third.kind(), std::io::ErrorKind::ConnectionRefused, "{third}");
    let refused = "plait_connections_refused_total{shortage=\"connections\"}";
    assert_eq!((server.told(refused), server.told("plait_connections_limit")), (1, 2));
    // Established connections continue.
    one.write_all(b"get 3\n")?;
    read(&mut one)?;
    // The service receives an end and ends too. The client keeps its socket and acknowledges.
    drop(one);
    net::until("room", || server.told("plait_connections{multipath=\"true\"}") == 1);
    read(&mut connect()?)?;
    drop(two);
    let (code, log) = server.end()?;
    assert_eq!(code, Some(0));
    let lines = log.iter().filter(|it| it.starts_with("event=turned-away count=1 "));
    assert_eq!(lines.count(), 1, "{log:#?}");
    Ok(())
}

/// `plait get --connect-timeout`: the peer does not answer, or answers in time.
fn given_up() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000)])?;
    // No host has the address: packets for it end at the server's host.
    bed.server.within(|| net::run("ip route add blackhole 10.99.0.1/32"))?;
    let start = Instant::now();
    let output = bed.client.within(|| {
        let get = ["get", "10.99.0.1:80", "--from", "10.98.1.77@c0", "--connect-timeout", "2"];
        Command::new(PLAIT).args(get).stdin(Stdio::null()).output()
    })??;
    let took = start.elapsed();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("10.99.0.1:80: no answer"), "{said}");
    // TCP alone retries for minutes.
    assert!((2..30).contains(&took.as_secs()), "{took:?}");
    Ok(())
}

/// The target is an address of the host itself. The kernel delivers locally if packets leave by the device that
/// has the address. If they leave by another device, plait refuses at once and does not wait for TCP to give
/// up.
fn own_address() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let own = SocketAddr::new([10, 98, 2, 1].into(), 0);
    let served = Service::start(&bed.client, own, Speaks::Tcp, 2)?;
    let to = served.address;
    let get = |from: &str| -> std::io::Result<Output> {
        let mut get = Command::new(PLAIT)
            .args(["get", &to.to_string(), "--from", from, "-q", "--path-memory", "off"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // A client that is refused at once does not read its standard input.
        let _ = get.stdin.take().unwrap().write_all(b"get 1000\n");
        get.wait_with_output()
    };
    let output = bed.client.within(|| get("10.98.2.77@c1"))??;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""));
    assert_eq!(output.stdout, kernel::pattern(1000));
    let start = Instant::now();
    let output = bed.client.within(|| get("10.98.1.77@c0"))??;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("this host has it, but on no device of --from"), "{said}");
    let socks = SocketAddr::new([127, 0, 0, 1].into(), 1080);
    for (via, expected) in [("10.98.1.77@c0", 4), ("10.98.2.77@c1", 0)] {
        let mut proxy = bed.client.within(|| {
            Command::new(PLAIT)
                .args([
                    "proxy",
                    "--socks",
                    &socks.to_string(),
                    "--via",
                    via,
                    "--path-memory",
                    "off",
                ])
                .stderr(Stdio::piped())
                .spawn()
                .map(Running)
        })??;
        let mut log = BufReader::new(proxy.stderr.take().unwrap());
        log.read_line(&mut String::new())?;
        let (mut stream, code) = bed.client.within(|| by_socks(socks, to, false))??;
        assert_eq!(code, expected, "{via}");
        if code == 0 {
            stream.write_all(b"get 1000\n")?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes)?;
            assert_eq!(bytes, kernel::pattern(1000));
        } else {
            let mut line = String::new();
            log.read_line(&mut line)?;
            let told =
                format!("event=unreached to={to} problem=\"this host has it, but on no device of");
            assert!(line.starts_with(&told), "{line}");
        }
        drop(stream);
        // The connection ends in order: the service receives the end.
        net::run(&format!("kill -TERM {}", proxy.id()));
        proxy.wait()?;
    }
    // TCP gives up after two minutes.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    served.join();
    Ok(())
}

/// Another program sets the device down and up and removes it. Before that, the log reports a connection that
/// the service refuses.
fn device_gone() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000)])?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let flags = ["--scheduler", "ecf:beta=0.5"];
    // No program listens there.
    let nobody = SocketAddr::new([127, 0, 0, 1].into(), 9);
    let mut server = bed.server.within(|| serve(listen, nobody, &flags))?;
    let mut log = BufReader::new(server.stderr.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        log.read_line(&mut line).map(|_| line.trim_end().to_owned())
    };
    drop(bed.client.within(|| kernel::request(listen, Speaks::Mptcp, ["get ", "3\n"]))?);
    let accepted = next()?;
    let told = " from=10.98.1.1 port=80 multipath=true scheduler=ecf:beta=0.5";
    assert!(accepted.starts_with("event=accepted ") && accepted.ends_with(told), "{accepted}");
    let ended = next()?;
    let refused = "the service 127.0.0.1:9: Connection refused";
    assert!(ended.contains(refused), "{ended}");
    bed.server.within(|| {
        net::run("ip link set plait0 down");
        net::run("ip link set plait0 up");
    })?;
    let (down, up) = (next()?, next()?);
    assert!(down.starts_with("event=device-down device=plait0 "), "{down}");
    assert!(up.starts_with("event=device-up device=plait0 "), "{up}");
    // The suggested remedy works.
    let (_, remedy) = up.split_once("remedy=\"").unwrap();
    bed.server.within(|| net::run(remedy.trim_end_matches('"')))?;
    drop(bed.client.within(|| kernel::request(listen, Speaks::Mptcp, ["get ", "3\n"]))?);
    assert!(next()?.starts_with("event=accepted "));
    assert!(next()?.starts_with("event=ended "));
    bed.server.within(|| net::run("ip link del plait0"))?;
    let mut told = next()?;
    // The server may notice first that the device goes down.
    if told.starts_with("event=device-down ") {
        told = next()?;
    }
    assert!(told.starts_with("plait: the TUN device plait0 is gone: "), "{told}");
    assert_eq!(server.wait()?.code(), Some(3));
    Ok(())
}

/// A host whose devices have no address, not even `lo`: the server can listen on any address.
fn bare() -> Result<(), Failed> {
    let dry = ["serve", "--listen", "10.77.0.1:80", "--to", "127.0.0.1:8080", "--dry-run"];
    let space = Namespace::create()?;
    let plan = || space.within(|| Command::new(PLAIT).args(dry).output());
    let output = plan()??;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, names, _) = examined(&space, ALL_ROLES);
    assert!(names.contains(&"lo".to_owned()), "{names:?}");
    // Addresses that the host has are refused as before.
    space.within(|| {
        net::run("ip link set lo up");
        net::run("ip addr add 10.77.0.1/32 dev lo");
    })?;
    let output = plan()??;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("the kernel of this host has this address"), "{told}");
    Ok(())
}

/// Runs `plait doctor` in a namespace for these roles. Returns its exit code, the failed checks, and the
/// commands that remedy them.
fn examined(space: &Namespace, roles: &[&str]) -> (Option<i32>, Vec<String>, Vec<String>) {
    let ask = || Command::new(PLAIT).args(["doctor", "--json"]).args(roles).output();
    let output = space.within(ask);
    let output = output.unwrap().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap().iter();
    let missing: Vec<&Value> = checks.filter(|it| it["state"] != "fine").collect();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let names = missing.iter().map(|it| word(&it["name"])).collect();
    let mends = missing.iter().flat_map(|it| it["mend"].as_array().unwrap()).map(word).collect();
    (output.status.code(), names, mends)
}

/// `plait doctor` on a host that is set up correctly, then on one that is not, then after its remedies.
fn doctor() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    let client = &bed.client;
    client.within(|| {
        net::run("ip route add default via 10.98.1.2 dev c0 metric 10");
        net::run("ip route add default via 10.98.2.2 dev c1 metric 20");
    })?;
    assert_eq!(examined(client, ALL_ROLES), (Some(0), vec![], vec![]));
    client.within(|| {
        net::run("ip link set lo down");
        net::set("net/mptcp/enabled", "0");
        net::set("net/ipv4/ip_forward", "0");
        net::set("net/ipv6/conf/all/forwarding", "0");
        net::set("net/ipv4/conf/c1/rp_filter", "1");
        net::run("ip mptcp endpoint del id 2");
        net::run("ip mptcp limits set subflow 0");
    })?;
    let (code, names, mends) = examined(client, ALL_ROLES);
    // No device has a global IPv6 address, so IPv6 forwarding is not needed.
    let all = ["lo", "forward-4", "rp-filter", "mptcp", "limits", "endpoints"];
    assert_eq!((code, names), (Some(3), all.map(str::to_owned).to_vec()));
    assert!(mends.contains(&"ip mptcp endpoint add 10.98.2.1 dev c1 subflow".to_owned()));
    client.within(|| mends.iter().for_each(|mend| net::run(mend)))?;
    assert_eq!(examined(client, ALL_ROLES), (Some(0), vec![], vec![]));
    // With such an address it is optional, because the host also has IPv4. Without IPv4 it is needed.
    client.within(|| net::run("ip addr add 2001:db8::1/64 dev c0 nodad"))?;
    let forward_6 = vec!["forward-6".to_owned()];
    for roles in [&["serve"][..], &[]] {
        let (code, names, _) = examined(client, roles);
        assert_eq!((code, names), (Some(0), forward_6.clone()));
    }
    let lone = Namespace::create()?;
    lone.within(|| {
        net::run("ip link set lo up");
        net::run("ip link add d0 type veth peer name d1");
        net::run("ip addr add 2001:db8::1/64 dev d0 nodad");
    })?;
    let (code, names, _) = examined(&lone, &["serve"]);
    assert_eq!((code, names), (Some(3), forward_6));
    client.within(|| net::set("net/ipv6/conf/all/forwarding", "1"))?;
    // One uplink is enough for a server, but not for a client of the kernel.
    client.within(|| net::run("ip route del default dev c1"))?;
    assert_eq!(examined(client, &[]), (Some(0), vec!["routes".to_owned()], vec![]));
    assert_eq!(examined(client, &["serve", "get"]), (Some(0), vec![], vec![]));
    assert_eq!(examined(client, &["kernel"]), (Some(3), vec!["routes".to_owned()], vec![]));
    Ok(())
}

const ALL_ROLES: &[&str] = &["serve", "get", "kernel"];

/// Requests a connection from the proxy, by address or by name. Returns the connection and the reply code.
fn by_socks(proxy: SocketAddr, to: SocketAddr, by_name: bool) -> std::io::Result<(TcpStream, u8)> {
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(&[5, 1, 0])?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer)?;
    assert_eq!(answer, [5, 0]);
    let mut request = vec![5, 1, 0];
    match to.ip() {
        ip if by_name => {
            let name = ip.to_string();
            request.extend([3, name.len() as u8]);
            request.extend(name.bytes());
        }
        IpAddr::V4(ip) => {
            request.push(1);
            request.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            request.push(4);
            request.extend(ip.octets());
        }
    }
    request.extend(to.port().to_be_bytes());
    stream.write_all(&request)?;
    let mut answer = [0; 10];
    stream.read_exact(&mut answer)?;
    assert_eq!((answer[0], answer[3]), (5, 1));
    Ok((stream, answer[1]))
}

/// Must-hold property 2: a download and an upload through the proxy to a stock kernel, each over both subflows. A port
/// without a listener is reported as such. Connections to this host itself are refused.
fn proxied(family: Family, via: &[String; 2]) -> Result<(), Failed> {
    let bed = Bed::build(family, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    bed.own_service()?;
    let to = SocketAddr::new(family.service(), 80);
    let served = Service::start(&bed.server, to, Speaks::Mptcp, 2)?;
    let socks = SocketAddr::new([127, 0, 0, 1].into(), 1080);
    let mut proxy = bed.client.within(|| {
        Command::new(PLAIT)
            .args(["proxy", "--socks", &socks.to_string(), "--via", &via[0], "--via", &via[1]])
            .args(["--path-memory", "off"])
            .args(["--scheduler", "minrtt"])
            .stderr(Stdio::piped())
            .spawn()
            .map(Running)
    })??;
    let mut said = String::new();
    BufReader::new(proxy.stderr.as_mut().unwrap()).read_line(&mut said)?;
    assert_eq!(said, "listening on 127.0.0.1:1080\n");
    let [_, before] = bed.counters();
    let len = 1_000_000;
    bed.client.within(|| {
        let (mut stream, code) = by_socks(socks, to, false)?;
        assert_eq!(code, 0);
        stream.write_all(b"get ")?;
        net::until("a join", || bed.has_taken(1, &before));
        stream.write_all(format!("{len}\n").as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
        drop(stream);
        let (mut stream, code) = by_socks(socks, to, true)?;
        assert_eq!(code, 0);
        stream.write_all(b"put ")?;
        net::until("a join", || bed.has_taken(2, &before));
        stream.write_all(format!("{len}\n").as_bytes())?;
        stream.write_all(&kernel::pattern(len))?;
        let mut hash = String::new();
        stream.read_to_string(&mut hash)?;
        assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
        let (_, code) = by_socks(socks, SocketAddr::new(to.ip(), 81), false)?;
        assert_eq!(code, 5);
        let own: IpAddr =
            if to.is_ipv4() { [127, 0, 0, 1].into() } else { Ipv6Addr::LOCALHOST.into() };
        let (_, code) = by_socks(socks, SocketAddr::new(own, 81), false)?;
        assert_eq!(code, 2);
        std::io::Result::Ok(())
    })??;
    served.join();
    let [_, after] = bed.counters();
    net::run(&format!("kill -INT {}", proxy.id()));
    assert_eq!(proxy.wait()?.code(), Some(130));
    assert_eq!(after.since(&before, "MPJoinAckRx"), 2, "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    all_carried(&bed.emulator.stop()?, None, 100_000);
    Ok(())
}

/// Clients reach the server at an address of the host itself. The rules vanish when the server is killed.
fn public_port() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    bed.own_service()?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let public = SocketAddr::new(bed.family.service(), 80);
    let listen = SocketAddr::new([10, 77, 0, 1].into(), 8080);
    let before = bed.server.within(settled)?;
    let flags = ["--scheduler", "minrtt", "--public", &public.to_string()];
    let mut server = bed.server.within(|| serve(listen, served.address, &flags))?;
    let [counters, _] = bed.counters();
    let len = 1_000_000;
    let bytes = bed.client.within(|| kernel::get(public, Speaks::Over(2), len))??;
    served.join();
    let [after, _] = bed.counters();
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&counters, "MPJoinSynAckRx"), 1, "{:?}", after.risen(&counters));
    assert!(after.faults(&counters).is_empty(), "{:?}", after.faults(&counters));
    server.kill()?;
    server.wait()?;
    // The state includes the rules if a program can list them.
    bed.server.within(|| await_state(&before))?;
    Ok(())
}
