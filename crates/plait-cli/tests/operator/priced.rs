//! Paths with a cost or a quota, of a server and of a client.

use crate::net::kernel::{self, Service, Speaks};
use crate::net::timely::agreed;
use crate::net::{self, Bed, Family, Line};
use crate::{PLAIT, metrics, serve, value};
use libtest_mimic::Failed;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Bytes of each transfer. The first path needs 0.4 s for them.
const LEN: usize = 1_000_000;

fn lines() -> [Line; 2] {
    [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)]
}

/// Fails unless the second path carried nothing with thrifty, and a part with aggregate.
fn wrong([thrifty, aggregate]: &[u64; 2]) -> Option<String> {
    let right = *thrifty == 0 && *aggregate > LEN as u64 / 50;
    (!right)
        .then(|| format!("thrifty sent {thrifty} bytes on the second path, aggregate {aggregate}"))
}

/// A server whose clients' second addresses cost something, with a goal for each of two ports.
pub(super) fn server() -> Result<(), Failed> {
    agreed("the second path of a client rests", by_port, wrong).map(drop)
}

/// Returns the bytes sent on joined subflows, by port.
fn by_port() -> Result<Option<[u64; 2]>, Failed> {
    let accepted = [
        "port=\"81\",scheduler=\"minrtt+price:goal=thrifty\"",
        "port=\"80\",scheduler=\"minrtt+price\"",
    ];
    let prices = ["--cost", "10.98.2.0/24=1", "--goal", "81=thrifty"];
    downloads(&prices, [81, 80], &accepted)
}

/// A server may send 100 kB to its clients' second addresses, on all connections.
pub(super) fn server_quota() -> Result<(), Failed> {
    let look = || {
        let accepted = ["port=\"80\",scheduler=\"minrtt+price:goal=thrifty\""];
        let prices = ["--quota", "10.98.2.0/24=100kB", "--goal", "thrifty"];
        downloads(&prices, [80, 80], &accepted)
    };
    let wrong = |[first, second]: &[u64; 2]| {
        let sent = first + second;
        (!(90_000..=100_000).contains(&sent)).then(|| format!("{sent} bytes of 100,000"))
    };
    agreed("a server keeps to a quota", look, wrong).map(drop)
}

/// Downloads from a port and then from another one. Returns the bytes sent on joined subflows for each.
/// Returns `None` if packets were late. `accepted` has the labels of connections.
fn downloads(
    prices: &[&str],
    ports: [u16; 2],
    accepted: &[&str],
) -> Result<Option<[u64; 2]>, Failed> {
    let bed = Bed::build(Family::V4, &lines())?;
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let served = Service::start(&bed.server, local, Speaks::Tcp, 2)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let scraped = "127.0.0.1:9100";
    let flags = ["--scheduler", "minrtt", "--port", "81=minrtt", "--metrics", scraped];
    let flags = [&flags[..], prices].concat();
    let mut server = bed.server.within(|| serve(listen, served.address, &flags))?;
    let joined = || {
        let all = metrics(&bed.server, scraped.parse().unwrap());
        value(&all, "plait_sent_bytes_total{subflow=\"joined\"}")
    };
    let get = |port: u16| {
        let before = joined();
        bed.client.within(|| {
            let to = SocketAddr::new(listen.ip(), port);
            let from = Some(bed.family.on_path(0).0);
            let request = ["get ", &format!("{LEN}\n")];
            let mut stream = kernel::request_from(from, to, Speaks::Over(2), request)?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes)?;
            assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(LEN)));
            std::io::Result::Ok(())
        })??;
        Ok::<u64, Failed>(joined() - before)
    };
    let sent = [get(ports[0])?, get(ports[1])?];
    served.join();
    let all = metrics(&bed.server, scraped.parse()?);
    for labels in accepted {
        let name = "plait_connections_accepted_total";
        let count = value(&all, &format!("{name}{{{labels},multipath=\"true\"}}"));
        assert_eq!(count, 2 / accepted.len() as u64);
    }
    server.kill()?;
    server.wait()?;
    Ok(bed.emulator.stop()?.lateness.allows_timing().then_some(sent))
}

/// A client whose second device costs something.
pub(super) fn client() -> Result<(), Failed> {
    let look = || {
        let sent = |goal| {
            let document = upload("minrtt", &["--cost", "c1=1", "--goal", goal])?;
            Ok::<_, Failed>(document.map(|it| sent_on(&it, 1)))
        };
        let (thrifty, aggregate) = (sent("thrifty")?, sent("aggregate")?);
        Ok(thrifty.zip(aggregate).map(|(thrifty, aggregate)| [thrifty, aggregate]))
    };
    agreed("the second device of a client rests", look, wrong).map(drop)
}

fn sent_on(document: &Value, path: usize) -> u64 {
    document["paths"][path]["sent_bytes"].as_u64().unwrap()
}

/// A client may send 200 kB from its first address. With less than a segment it begins on the second one.
pub(super) fn client_quota() -> Result<(), Failed> {
    for (quota, least) in [(200_000, 198_000), (1_000, 0)] {
        let quota_of_first = format!("10.98.1.77={quota}B");
        let look = || upload("minrtt", &["--quota", &quota_of_first, "--goal", "thrifty"]);
        let wrong = |document: &Value| {
            let of_first = |path: &&Value| path["name"] == "c0";
            let first = document["paths"].as_array().unwrap().iter().find(of_first);
            let count = |name: &str| first.map_or(0, |path| path[name].as_u64().unwrap());
            let (sent, left) = (count("sent_bytes"), count("quota_left_bytes"));
            let right = (least..=quota).contains(&sent) && sent + left == quota;
            (least > 0 && !right || least == 0 && sent > 0).then(|| document.to_string())
        };
        agreed("a client keeps to a quota", look, wrong)?;
    }
    Ok(())
}

/// A client whose scheduler copies counts the copies apart: the paths together have sent more than the data.
pub(super) fn copies() -> Result<(), Failed> {
    let wrong = |document: &Value| {
        let extra = document["extra_sent_bytes"].as_u64().unwrap();
        let all = sent_on(document, 0) + sent_on(document, 1);
        let right = extra > 100_000 && all == document["sent_bytes"].as_u64().unwrap() + extra;
        (!right).then(|| document.to_string())
    };
    agreed("a client counts its copies", || upload("redundant", &[]), wrong)?;
    let wrong =
        |document: &Value| (document["extra_sent_bytes"] != 0).then(|| document.to_string());
    agreed("a client without copies has none", || upload("minrtt", &[]), wrong).map(drop)
}

/// A client that is ended by a signal, or refused, writes the bytes of its paths and the rests of their quotas.
pub(super) fn failed() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &lines())?;
    bed.own_service()?;
    let to = SocketAddr::new(bed.family.service(), 80);
    let _served = Service::start(&bed.server, to, Speaks::Mptcp, 2)?;
    let get = |to: SocketAddr| {
        bed.client.within(|| {
            Command::new(PLAIT)
                .args(["get", &to.to_string(), "--path-memory", "off", "--output", "/dev/null"])
                .args(["--from", "10.98.1.77@c0", "--quota", "c0=1MB"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        })
    };
    let line = |stderr: &[u8]| {
        let told = String::from_utf8_lossy(stderr).into_owned();
        let line = told.lines().find(|line| line.starts_with("c0: sent "));
        line.unwrap_or_else(|| panic!("no line of the path: {told}")).to_owned()
    };
    for (signal, code) in [("TERM", 4), ("INT", 130)] {
        let before = bed.received("c0");
        let mut child = get(to)??;
        child.stdin.as_mut().unwrap().write_all(b"get 9000000\n")?;
        bed.await_received("c0", before + 300_000);
        net::run(&format!("kill -{signal} {}", child.id()));
        // Standard input is still open.
        let _stdin = child.stdin.take();
        let output = child.wait_with_output()?;
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let line = line(&output.stderr);
        assert!(line.starts_with("c0: sent 12 B, received "), "{line}");
        assert!(!line.contains("received 0 B"), "{line}");
        assert!(line.ends_with(", 1.00 MB left of the quota"), "{line}");
    }
    // Nothing listens there.
    let child = get(SocketAddr::new(to.ip(), 81))??;
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let line = line(&output.stderr);
    assert!(line.starts_with("c0: sent 0 B, received 0 B, "), "{line}");
    assert!(line.ends_with(", 1.00 MB left of the quota"), "{line}");
    Ok(())
}

/// Uploads to a kernel. Returns the document of `plait get`, or `None` if packets were late.
fn upload(scheduler: &str, prices: &[&str]) -> Result<Option<Value>, Failed> {
    let bed = Bed::build(Family::V4, &lines())?;
    bed.own_service()?;
    let to = SocketAddr::new(bed.family.service(), 80);
    let served = Service::start(&bed.server, to, Speaks::Mptcp, 1)?;
    let [_, before] = bed.counters();
    let mut child = bed.client.within(|| {
        Command::new(PLAIT)
            .args(["get", &to.to_string(), "--json", "--output", "/dev/null"])
            .args(["--from", "10.98.1.77@c0", "--from", "10.98.2.77@c1"])
            .args(["--scheduler", scheduler])
            .args(prices)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    })??;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"put ")?;
    net::until("a join", || bed.has_taken(1, &before));
    stdin.write_all(format!("{LEN}\n").as_bytes())?;
    stdin.write_all(&kernel::pattern(LEN))?;
    drop(stdin);
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(0));
    served.join();
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let all = sent_on(&document, 0) + sent_on(&document, 1);
    assert!(all >= LEN as u64, "{document}");
    Ok(bed.emulator.stop()?.lateness.allows_timing().then_some(document))
}
