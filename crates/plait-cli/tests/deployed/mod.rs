//! The deployments of the guides: a home with two lines and a rented server, nginx with TLS, and a client with the
//! kernel's Multipath TCP. The commands of each guide run in namespaces that model it.
#![allow(unreachable_pub)]

mod site;

use crate::net::kernel;
use crate::net::timely::measured;
use crate::net::{nginx, run, until};
use crate::{await_state, settled};
use libtest_mimic::{Failed, Trial};
use site::{LINES, Site, commands, file_with};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const HOME: &str = include_str!("../../../../docs/guides/home.md");
const NGINX: &str = include_str!("../../../../docs/guides/nginx.md");
const PHONE: &str = include_str!("../../../../docs/guides/phone.md");

/// Payload of a packet of 1,500 bytes: without the headers of IPv4 and TCP (40), time stamps (12) and DSS (20).
const PAYLOAD: f64 = 1_428.0 / 1_500.0;

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("deployed/the_guide_of_a_home_runs", home),
        Trial::test("deployed/all_downloads_of_a_home_fill_both_lines", filled),
        Trial::test("deployed/a_stranger_cannot_use_the_server_of_a_home", strangers),
        Trial::test("deployed/the_guide_of_nginx_runs", in_front_of_nginx),
        Trial::test("deployed/the_guide_of_a_phone_runs", phone),
    ];
    for (name, signal) in
        [("server", "KILL"), ("router", "KILL"), ("server", "TERM"), ("router", "TERM")]
    {
        let trial = format!("deployed/no_byte_of_a_home_is_lost_silently/{name}-{signal}");
        trials.push(Trial::test(trial, move || crashed(name, signal)));
    }
    trials
}

/// The keep-alive of the guide.
const KEEP_ALIVE: &str = "--keep-alive 60s";

const ORIGIN: ([u8; 4], u16) = ([198, 51, 100, 80], 80);

/// Builds a home without the programs of its guide.
fn site_of_home(name: &str) -> Result<Site, Failed> {
    Site::build(name, ["wan0", "wan1"])
}

/// Starts both ends of a home as the guide does, with `flags` in place of the guide's keep-alive.
fn start_home(site: &mut Site, flags: &str) -> Result<(), Failed> {
    for (name, line) in commands(HOME) {
        if line.starts_with("plait serve ") || line.starts_with("plait proxy ") {
            site.start(&name, &line.replace(KEEP_ALIVE, flags))?;
        } else if name != "host" {
            site.run(&name, &line)?;
        }
    }
    Ok(())
}

/// The whole guide; then UDP, which goes past the proxy, and IPv6, which goes through it.
fn home() -> Result<(), Failed> {
    let mut site = site_of_home("home")?;
    let bytes = kernel::pattern(2_000_000);
    fs::write(site.dir.join("site/file"), &bytes)?;
    site.web("origin", "::", 80)?;
    let (first, then): (Vec<_>, Vec<_>) =
        commands(HOME).into_iter().partition(|(_, line)| line.starts_with("sysctl "));
    for (name, line) in first {
        site.run(&name, &line)?;
    }
    let before = [&site.network.client, &site.server].map(|space| space.within(settled).unwrap());
    for (name, line) in then {
        site.run(&name, &line)?;
    }
    let line = "curl -sS -o by-v6 http://[2001:db8:2::80]/file";
    site.run("host", line)?;
    for name in ["download", "by-name", "by-v6"] {
        assert_eq!(kernel::hash(&fs::read(site.dir.join(name))?), kernel::hash(&bytes), "{name}");
    }
    let server = site.daemon("server");
    server.line(&["event=asked", "by=192.168.1.5:", "to=198.51.100.80:80"]);
    server.line(&["event=asked", "to=origin.example:80"]);
    server.line(&["event=asked", "by=[fd00:1::5]:", "to=[2001:db8:2::80]:80"]);
    let ended = server.line(&["event=ended", "multipath=true", "; 10.98.2.1 sent_bytes="]);
    assert!(
        ended.contains("paths=\"10.98.1.1 sent_bytes=") && !ended.contains("problem"),
        "{ended}"
    );
    // The origin sees the router's own address, not that of the server.
    let socket = site.origin.within(|| UdpSocket::bind("198.51.100.80:9"))??;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    site.host.within(|| UdpSocket::bind("0.0.0.0:0")?.send_to(b"call", "198.51.100.80:9"))??;
    let (_, from) = socket.recv_from(&mut [0; 16])?;
    assert_eq!(from.ip(), std::net::IpAddr::from([10, 98, 1, 1]), "{from}");
    // A connection to the router itself is not redirected.
    let listener = site.network.client.within(|| TcpListener::bind("192.168.1.1:22"))??;
    drop(site.host.within(|| TcpStream::connect("192.168.1.1:22"))??);
    drop(listener);
    // Nothing is left behind.
    for name in ["router", "server"] {
        site.daemon(name).end("KILL")?;
    }
    for (space, before) in [&site.network.client, &site.server].into_iter().zip(before) {
        space.within(|| await_state(&before))?;
    }
    Ok(())
}

/// Four hosts download at the same time. While all of them do, their goodput is at least 0.95 of the sum of both rates,
/// less the headers of packets that are full.
fn filled() -> Result<(), Failed> {
    const LEAST: f64 = 0.95;
    let capacity = LINES.iter().map(|(mbit, _)| *mbit as f64 * 1e6 / 8.0).sum::<f64>() * PAYLOAD;
    let look = || -> Result<Option<f64>, Failed> {
        let mut site = site_of_home("filled")?;
        start_home(&mut site, KEEP_ALIVE)?;
        let origin = site.origin.within(|| TcpListener::bind(SocketAddr::from(ORIGIN)))??;
        thread::spawn(move || {
            for stream in origin.incoming().take(4) {
                let mut stream = stream.unwrap();
                thread::spawn(move || while stream.write_all(&[7; 1 << 14]).is_ok() {});
            }
        });
        let host = &site.host;
        let rates: Vec<u64> = thread::scope(|scope| {
            let download = || host.within(|| downloaded(2.0, 6.0)).unwrap();
            let all: Vec<_> = (0..4).map(|_| scope.spawn(download)).collect();
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let share = rates.iter().sum::<u64>() as f64 / 6.0 / capacity;
        println!("{rates:?} bytes in 6 s: {share:.3} of both lines");
        Ok(site.stop()?.lateness.allows_timing().then_some(share))
    };
    let refute = |share: &f64| (*share < LEAST).then(|| format!("{share:.3} of both lines"));
    measured("the downloads of a home fill both lines", look, refute).map(drop)
}

/// Downloads without end, and returns the number of bytes that arrive within `length` seconds from `begin`.
fn downloaded(begin: f64, length: f64) -> u64 {
    let mut stream = TcpStream::connect(SocketAddr::from(ORIGIN)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (begun, mut count, mut piece) = (Instant::now(), 0, vec![0; 1 << 16]);
    loop {
        let read = kernel::persist(|| stream.read(&mut piece)).unwrap();
        assert!(read > 0, "the download has ended");
        let now = begun.elapsed().as_secs_f64();
        if now > begin + length {
            return count;
        }
        count += if now > begin { read as u64 } else { 0 };
    }
}

/// One end is killed during a download and an upload. The host and the origin get an error, and not the regular end.
/// A connection that has lost all its subflows waits 60 s for a new one, so an error may take longer than that.
fn crashed(name: &str, signal: &str) -> Result<(), Failed> {
    let mut site = site_of_home(&format!("crashed-{name}-{signal}"))?;
    start_home(&mut site, "--keep-alive 1s --user-timeout 4s --drain 0s")?;
    let origin = site.origin.within(|| TcpListener::bind(SocketAddr::from(ORIGIN)))??;
    let host = |to: SocketAddr| -> Result<TcpStream, Failed> {
        let stream = site.host.within(|| TcpStream::connect(to))??;
        stream.set_read_timeout(Some(Duration::from_secs(180)))?;
        Ok(stream)
    };
    let mut pairs = Vec::new();
    for _ in 0..2 {
        let near = host(origin.local_addr()?)?;
        let (far, _) = origin.accept()?;
        far.set_read_timeout(Some(Duration::from_secs(180)))?;
        pairs.push((near, far));
    }
    let [(down, source), (upload, up)] = <[_; 2]>::try_from(pairs).unwrap();
    // Both senders write until it fails. Both receivers read until the end or an error.
    let feed = |mut stream: TcpStream| {
        thread::spawn(move || while stream.write_all(&[7; 1 << 14]).is_ok() {})
    };
    let drain = |mut stream: TcpStream| {
        let (told, heard) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut piece = [0; 1 << 14];
            loop {
                let read = kernel::persist(|| stream.read(&mut piece));
                let over = !matches!(read, Ok(1..));
                let _ = told.send(read);
                if over {
                    break;
                }
            }
        });
        heard
    };
    let feeding = [feed(source), feed(upload)];
    let receivers = [drain(down), drain(up)];
    for receiver in &receivers {
        let mut count = 0;
        while count < 100_000 {
            count += receiver.recv()?.unwrap();
        }
    }
    site.daemon(name).end(signal)?;
    for (end, receiver) in ["host", "origin"].into_iter().zip(receivers) {
        let last = receiver.iter().last().unwrap();
        let error = last.expect_err(&format!("the {end} was given a regular end"));
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{end}: {error}");
    }
    feeding.into_iter().for_each(|it| it.join().unwrap());
    Ok(())
}

/// Another key, another protocol, and a service of the server itself.
fn strangers() -> Result<(), Failed> {
    let mut site = site_of_home("strangers")?;
    start_home(&mut site, KEEP_ALIVE)?;
    let reset = |site: &Site, to: &str| -> Result<(), Failed> {
        let mut stream = site.host.within(|| TcpStream::connect(to))??;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let error = stream.read(&mut [0]).expect_err("an answer");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{to}");
        Ok(())
    };
    // A web server that only programs of the server should reach.
    site.web("server", "127.0.0.1", 8080)?;
    let asked = "curl -sS --max-time 60 --socks5-hostname 192.168.1.1:1080 http://localhost:8080/ || test $? = 56";
    site.run("host", asked)?;
    let problem = site.daemon("server").line(&["event=ended", "problem="]);
    assert!(problem.contains("it is this host itself"), "{problem}");
    // A client that speaks to the server directly.
    let mut stream = site.network.client.within(|| TcpStream::connect("203.0.113.10:4433"))??;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    site.daemon("server").line(&["problem=", "it is not a request of `plait proxy --through`"]);
    // A router with another key.
    site.daemon("router").end("TERM")?;
    site.daemons.retain(|(name, _)| name != "router");
    fs::write(site.dir.join("other.key"), "another key of more than 32 bytes\n")?;
    let (_, line) = commands(HOME).into_iter().find(|it| it.1.starts_with("plait proxy ")).unwrap();
    site.start("router", &line.replace("plait.key", "other.key"))?;
    reset(&site, "198.51.100.80:80")?;
    site.daemon("server").line(&["problem=", "its key differs"]);
    Ok(())
}

/// Returns true and prints why if a program that a guide needs is missing.
fn lacks(program: &str, package: &str) -> bool {
    let missing = Command::new(program).arg("--version").output().is_err();
    if missing {
        println!("skipped: {program} is not there (Debian package {package})");
    }
    missing
}

fn in_front_of_nginx() -> Result<(), Failed> {
    if let Some(why) = nginx::obstacle() {
        println!("skipped: {why}");
        return Ok(());
    }
    if lacks("mptcpize", "mptcpize") || lacks("openssl", "openssl") {
        return Ok(());
    }
    let mut site = Site::build("nginx", ["wlan0", "wwan0"])?;
    let bytes = kernel::pattern(2_000_000);
    fs::write(site.dir.join("site/file"), &bytes)?;
    // Its worker has another user.
    let config = format!("user root;\n{}", file_with(NGINX, "proxy_protocol;"));
    fs::write(site.dir.join("nginx.conf"), config)?;
    for (name, line) in commands(NGINX) {
        site.run(&name, &line)?;
        if line.starts_with("mptcpize ") {
            assert_eq!(kernel::hash(&fs::read(site.dir.join("download"))?), kernel::hash(&bytes));
            let server = site.daemon("server");
            server.line(&["event=ended", "multipath=true", "; 10.98.2.1 sent_bytes="]);
        }
    }
    Ok(())
}

/// The guide; then a download that loses its first link.
fn phone() -> Result<(), Failed> {
    if lacks("mptcpize", "mptcpize") {
        return Ok(());
    }
    let mut site = Site::build("phone", ["wlan0", "wwan0"])?;
    site.network.client.within(|| run("ip mptcp endpoint flush"))?;
    let bytes = kernel::pattern(4_000_000);
    fs::write(site.dir.join("site/file"), &bytes)?;
    site.web("server", "127.0.0.1", 8080)?;
    for (name, line) in commands(PHONE) {
        site.run(&name, &line)?;
    }
    let told =
        site.daemon("server").line(&["event=ended", "multipath=true", "; 10.98.2.1 sent_bytes="]);
    assert!(!told.contains("problem"), "{told}");
    let fetched = |site: &Site| fs::read(site.dir.join("download")).unwrap_or_default();
    assert_eq!(kernel::hash(&fetched(&site)), kernel::hash(&bytes));
    fs::remove_file(site.dir.join("download"))?;
    let (_, line) = commands(PHONE).into_iter().find(|it| it.1.starts_with("mptcpize ")).unwrap();
    thread::scope(|scope| {
        let (cut, dir) = (site.network.cut(0).unwrap(), site.dir.to_path_buf());
        scope.spawn(move || {
            let so_far = || fs::metadata(dir.join("download")).map_or(0, |it| it.len());
            until("a part of the download", || so_far() > 500_000);
            cut.set(true);
        });
        site.run("client", &line)
    })?;
    assert_eq!(kernel::hash(&fetched(&site)), kernel::hash(&bytes));
    Ok(())
}
