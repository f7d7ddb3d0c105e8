//! Properties on which an operator of `plait serve` relies: privileges, own addresses, shutdown and log.
#![allow(unreachable_pub)]

mod dropped;
mod priced;

use crate::net::kernel::{self, Service, Speaks};
use crate::net::{self, Bed, Family, Line};
use crate::{PLAIT, Running, Watched, at_once, file, serve};
use libtest_mimic::{Failed, Trial};
use plait_live::Namespace;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("no_process_keeps_a_privilege", unprivileged),
        Trial::test("nobody_else_removes_the_rules", kept_rules),
        Trial::test("both_public_addresses_lead_to_a_server", two_public),
        Trial::test("a_host_that_does_not_forward_is_named", not_forwarding),
        Trial::test("a_server_runs_in_a_user_namespace", user_namespace),
        Trial::test("a_server_makes_the_node_of_its_device", without_node),
        Trial::test("connections_have_the_time_of_drain_to_end", drained),
        Trial::test("a_watchdog_hears_of_a_live_server", watchdog),
        Trial::test("the_log_counts_what_clients_have_acknowledged", logged),
        Trial::test("a_log_that_nobody_reads_stops_no_server", unread_log),
        Trial::test("lines_that_nobody_reads_are_dropped_and_counted", dropped::dropped),
        Trial::test("paths_of_clients_with_a_cost_rest", priced::server),
        Trial::test("a_device_with_a_cost_rests", priced::client),
        Trial::test("a_server_keeps_to_a_quota", priced::server_quota),
        Trial::test("a_client_keeps_to_a_quota", priced::client_quota),
        Trial::test("a_client_counts_its_copies", priced::copies),
        Trial::test("a_client_that_fails_names_the_rest_of_its_quotas", priced::failed),
        Trial::test("own_addresses_reset_old_clients_after_a_crash", crashed_public),
    ];
    for family in [Family::V4, Family::V6] {
        let name = format!("an_own_address_is_offered_and_joined/{family:?}");
        trials.push(Trial::test(name, move || offered(family)));
    }
    trials
}

const LOCAL: [u8; 4] = [127, 0, 0, 1];

fn two_lines() -> [Line; 2] {
    [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)]
}

/// Address behind its device on which a server listens.
fn behind(family: Family) -> SocketAddr {
    let address: IpAddr = match family {
        Family::V4 => [10, 77, 0, 1].into(),
        Family::V6 => "fd77::1".parse().unwrap(),
    };
    SocketAddr::new(address, 8080)
}

/// Returns a value of `/proc/.../status`.
fn status(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().to_owned()
}

/// Checks that no thread of a process has a capability, that all run as this user and group, and that none has
/// started a program.
fn has_nothing(process: &Child, user: u32) {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    let mut threads = 0;
    for task in tasks {
        let task = task.unwrap().path().display().to_string();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status(&format!("{task}/status"), set), "0000000000000000", "{task} {set}");
        }
        let ids = vec![user.to_string(); 4].join("\t");
        assert_eq!(status(&format!("{task}/status"), "Uid"), ids, "{task}");
        assert_eq!(status(&format!("{task}/status"), "Gid"), ids, "{task}");
        let groups = status(&format!("{task}/status"), "Groups");
        assert!(user == 0 || groups == user.to_string(), "{task}: {groups}");
        assert_eq!(status(&format!("{task}/status"), "NoNewPrivs"), "1", "{task}");
        assert_eq!(fs::read_to_string(format!("{task}/children")).unwrap(), "", "{task}");
        threads += 1;
    }
    assert!(threads > 1, "{threads}");
}

/// S9: no process keeps a capability, even with rules for a public port. `--user` drops the user, and the
/// server still serves.
fn unprivileged() -> Result<(), Failed> {
    const NOBODY: u32 = 65_534;
    let bed = Bed::build(Family::V4, &two_lines())?;
    bed.own_service()?;
    let served = Service::start(&bed.server, SocketAddr::new(LOCAL.into(), 0), Speaks::Tcp, 1)?;
    let public = SocketAddr::new(bed.family.service(), 80);
    let scraped = ["--metrics", "127.0.0.1:9100"];
    let flags = [&["--public", "10.99.0.1:80", "--user", "65534:65534"][..], &scraped].concat();
    let server = bed.server.within(|| serve(behind(bed.family), served.address, &flags))?;
    has_nothing(&server, NOBODY);
    let bytes = bed.client.within(|| kernel::get(public, Speaks::Over(2), 300_000))??;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(300_000)));
    has_nothing(&server, NOBODY);
    served.join();
    drop(server);
    // A client with its own rules and without another user.
    let mut client = bed.client.within(|| {
        let get = ["get", "10.99.0.1:81", "--from", "c0", "--connect-timeout", "30", "-v"];
        Command::new(PLAIT)
            .args(get)
            .args(["--path-memory", "off"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Running)
    })??;
    let file = format!("/proc/{}/status", client.id());
    net::until("a client without capabilities", || status(&file, "CapPrm") == "0000000000000000");
    net::until("its threads", || status(&file, "Threads") != "1");
    has_nothing(&client, 0);
    client.kill()?;
    // Without the privilege to change the user, the error says so.
    let refused = bed.server.within(|| {
        let listen = ["serve", "--listen", "10.77.0.1:80", "--to", "127.0.0.1:9", "--user"];
        Command::new(PLAIT).args(listen).arg("no-such-user").output()
    })??;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--user: `no-such-user`: this host has no user"), "{said}");
    Ok(())
}

/// Only the server owns its rules: other programs cannot remove them, and they vanish with the server.
fn kept_rules() -> Result<(), Failed> {
    if Command::new("nft").arg("-v").output().is_err() {
        println!("\nskipped: attempts to remove rules: no program nft (Debian package nftables)");
        return Ok(());
    }
    let bed = Bed::build(Family::V4, &two_lines())?;
    bed.own_service()?;
    let to = at_once(&bed.server)?;
    let flags = ["--public", "10.99.0.1:80"];
    let mut server = bed.server.within(|| serve(behind(bed.family), to, &flags))?;
    let table = format!("plait_{}", server.id());
    let nft = |line: &str| {
        let words = line.split(' ');
        bed.server.within(|| Command::new("nft").args(words).output().unwrap()).unwrap()
    };
    let listed = || String::from_utf8_lossy(&nft("list ruleset").stdout).into_owned();
    let rule = "ip daddr 10.99.0.1 tcp dport 80 dnat ip to 10.77.0.1:8080";
    assert!(listed().contains(rule), "{}", listed());
    for attempt in [
        "flush ruleset",
        &format!("delete table inet {table}"),
        &format!("flush table inet {table}"),
    ] {
        nft(attempt);
        assert!(listed().contains(rule), "after {attempt}: {}", listed());
    }
    server.kill()?;
    server.wait()?;
    net::until("the end of the rules", || listed().is_empty());
    Ok(())
}

/// Two addresses of the host lead to one server, each to its own stand-in. A port with its own scheduler leads
/// to that port.
fn two_public() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &two_lines())?;
    bed.own_service()?;
    let second = bed.family.second_service();
    bed.server.within(|| net::run(&format!("ip addr add {second} dev lo")))?;
    let to = at_once(&bed.server)?;
    let flags = ["--public", "10.99.0.1:80", "--public", "10.99.0.2:80", "--port", "443=redundant"];
    let flags =
        [&flags[..], &["--public", "10.99.0.1:443", "--metrics", "127.0.0.1:9100"]].concat();
    let server = bed.server.within(|| serve(behind(bed.family), to, &flags))?;
    let same = SocketAddr::new(LOCAL.into(), 9100);
    for public in ["10.99.0.1:80", "10.99.0.2:80", "10.99.0.1:443"] {
        let public: SocketAddr = public.parse()?;
        let mut stream = bed
            .client
            .within(|| kernel::request(public, Speaks::Over(2), ["get 70", "000\n"]))??;
        let mut bytes = vec![0; 70_000];
        stream.read_exact(&mut bytes)?;
        assert_eq!(bytes, kernel::pattern(70_000), "{public}");
    }
    let told = crate::metrics(&bed.server, same);
    let default = format!("port=\"8080\",scheduler=\"{}\"", plait_sched::DEFAULT);
    for series in [&*default, "port=\"443\",scheduler=\"redundant\""] {
        let name = "plait_connections_accepted_total";
        let count = crate::value(&told, &format!("{name}{{{series},multipath=\"true\"}}"));
        assert_eq!(count, if series.contains("443") { 1 } else { 2 });
    }
    drop(server);
    Ok(())
}

/// A server with two addresses of its own offers the second one (ADD_ADDR), and a kernel joins there.
fn offered(family: Family) -> Result<(), Failed> {
    let bed = Bed::build(family, &two_lines())?;
    bed.own_service()?;
    let (first, second) = (family.service(), family.second_service());
    let nodad = if family == Family::V6 { " nodad" } else { "" };
    bed.server.within(|| net::run(&format!("ip addr add {second} dev lo{nodad}")))?;
    let served = Service::start(&bed.server, SocketAddr::new(LOCAL.into(), 0), Speaks::Tcp, 1)?;
    let public = SocketAddr::new(first, 80);
    let (given, offer) = (public.to_string(), second.to_string());
    let flags = ["--scheduler", "minrtt", "--public", &given, "--advertise", &offer];
    let server = bed.server.within(|| serve(behind(family), served.address, &flags))?;
    let len = 2_000_000;
    let [before, _] = bed.counters();
    let bytes = bed.client.within(|| kernel::get(public, Speaks::Over(3), len))??;
    let [after, _] = bed.counters();
    served.join();
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    // One is from the client's endpoint, one goes to the offered address.
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 2, "{:?}", after.risen(&before));
    assert!(after.since(&before, "EchoAddTx") > 0, "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    drop(server);
    Ok(())
}

/// Returns the first lines on stderr of a program, up to one with this prefix. The program continues.
fn lines_to(child: &mut Child, begin: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = BufReader::new(child.stderr.as_mut().unwrap());
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "{lines:#?}");
        lines.push(line.trim_end().to_owned());
        if line.starts_with(begin) {
            return lines;
        }
    }
}

/// If clients on other hosts would time out, the server says so at its start, with the remedy.
fn not_forwarding() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &two_lines())?;
    let to = at_once(&bed.server)?;
    bed.server.within(|| {
        net::set("net/ipv4/ip_forward", "0");
        net::set("net/ipv6/conf/all/forwarding", "0");
    })?;
    for (family, remedy) in [
        (Family::V4, "sysctl -w net.ipv4.ip_forward=1"),
        (Family::V6, "sysctl -w net.ipv6.conf.all.forwarding=1"),
    ] {
        let listen = SocketAddr::new(family.service(), 80).to_string();
        let start = || -> Result<Running, Failed> {
            let begin = ["serve", "--listen", &listen, "--to", &to.to_string()];
            let child = bed.server.within(|| {
                Command::new(PLAIT).args(begin).stderr(Stdio::piped()).spawn().map(Running)
            })??;
            Ok(child)
        };
        let mut server = start()?;
        let told = lines_to(&mut server, "event=not-forwarding");
        drop(server);
        let line = told.last().unwrap();
        assert!(line.ends_with(&format!("remedy=\"{remedy}\"")), "{line}");
        bed.server.within(|| net::run(remedy))?;
        let mut server = start()?;
        lines_to(&mut server, "listening on ");
        net::run(&format!("kill -TERM {}", server.id()));
        let mut rest = String::new();
        server.stderr.as_mut().unwrap().read_to_string(&mut rest)?;
        assert_eq!((server.wait()?.code(), rest.as_str()), (Some(0), ""));
    }
    Ok(())
}

/// In a user namespace the kernel refuses the ioctl for the queue of a device; netlink sets it.
fn user_namespace() -> Result<(), Failed> {
    let within = |script: &str| {
        Command::new("unshare")
            .args(["-Urn", "sh", "-c", script])
            .env("PLAIT", PLAIT)
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map(Running)
    };
    let possible = within("ip link set lo up").and_then(|mut it| it.wait());
    if !possible.is_ok_and(|status| status.success()) {
        println!("\nskipped: a server in a user namespace: no such namespace can be made here");
        return Ok(());
    }
    let script = "ip link set lo up; sysctl -qw net.ipv4.ip_forward=1; \
                  exec \"$PLAIT\" serve --listen 10.77.0.1:80 --to 127.0.0.1:9";
    let mut server = within(script)?;
    let told = lines_to(&mut server, "listening on ");
    assert_eq!(told.len(), 1, "{told:?}");
    let space = Namespace::open(format!("/proc/{}/ns/net", server.id()).as_ref())?;
    let link = space.within(|| net::said("ip -o link show plait0"))?;
    assert!(link.contains("qlen 8192"), "{link}");
    net::run(&format!("kill -TERM {}", server.id()));
    assert_eq!(server.wait()?.code(), Some(0));
    // The doctor checks the same things that the server needs.
    let script =
        "ip link set lo up; sysctl -qw net.ipv4.ip_forward=1; exec \"$PLAIT\" doctor serve";
    let mut doctor = within(script)?;
    let mut said = String::new();
    doctor.stdout.as_mut().unwrap().read_to_string(&mut said)?;
    assert_eq!(doctor.wait()?.code(), Some(0), "{said}");
    Ok(())
}

/// If `/dev/net/tun` is missing, the server creates it, and the doctor accepts that.
fn without_node() -> Result<(), Failed> {
    let script =
        "mount -t tmpfs none /dev/net && ip link set lo up && exec \"$PLAIT\" doctor serve --json";
    let within = |script: &str| {
        Command::new("unshare").args(["-mn", "sh", "-c", script]).env("PLAIT", PLAIT).output()
    };
    let output = within(script)?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let tun = &document["checks"][0];
    assert_eq!((&tun["name"], &tun["state"]), (&"tun".into(), &"fine".into()), "{tun}");
    assert_eq!(tun["found"], "/dev/net/tun is missing; plait creates it");
    let script = "mount -t tmpfs none /dev/net && ip link set lo up && \
                  timeout -s TERM 2 \"$PLAIT\" serve --listen 10.77.0.1:80 --to 127.0.0.1:9";
    let said = String::from_utf8(within(script)?.stderr)?;
    assert!(said.starts_with("listening on 10.77.0.1:80 behind plait0"), "{said}");
    Ok(())
}

/// `--drain`: a connection that stays open is ended after this time, and not before.
fn drained() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &[Line::new(20, 20, 60_000)])?;
    let to = at_once(&bed.server)?;
    let server = Watched::start(&bed, to, &["--drain", "1s"])?;
    let mut client = server.ask(Speaks::Mptcp, 3)?;
    client.read_exact(&mut [0; 3])?;
    let start = Instant::now();
    let (code, log) = server.end()?;
    let took = start.elapsed();
    assert_eq!(code, Some(0), "{log:#?}");
    // The default is 5 seconds.
    assert!((1_000..4_500).contains(&took.as_millis()), "{took:?}");
    assert!(log.iter().any(|line| line.contains("problem=\"the server ends\"")), "{log:#?}");
    Ok(())
}

/// A server answers the watchdog of systemd as long as its event loop runs.
fn watchdog() -> Result<(), Failed> {
    let heard = file("watchdog");
    let notified = UnixDatagram::bind(&heard)?;
    notified.set_read_timeout(Some(Duration::from_secs(60)))?;
    let space = Namespace::create()?;
    let server = space.within(|| {
        net::run("ip link set lo up");
        Command::new(PLAIT)
            .args(["serve", "--listen", "10.77.0.1:80", "--to", "127.0.0.1:9", "-q"])
            .env("NOTIFY_SOCKET", &heard)
            .env("WATCHDOG_USEC", "200000")
            .spawn()
            .map(Running)
    })??;
    for expected in ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"] {
        let mut said = [0; 32];
        let len = kernel::persist(|| notified.recv(&mut said))?;
        assert_eq!(&said[..len], expected.as_bytes());
    }
    // A stopped server does not answer.
    net::run(&format!("kill -STOP {}", server.id()));
    notified.set_nonblocking(true)?;
    std::thread::sleep(Duration::from_millis(300));
    while notified.recv(&mut [0; 32]).is_ok() {}
    std::thread::sleep(Duration::from_millis(600));
    assert!(notified.recv(&mut [0; 32]).is_err());
    Ok(())
}

/// Returns a number from a line of the log.
fn number(line: &str, key: &str) -> u64 {
    let value =
        line.split([' ', '"', ';']).find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("no {key} in {line}")).parse().unwrap()
}

/// A client reads part of its answer and resets the connection. The log counts acknowledged bytes, not bytes
/// read from the service. For a client that reads everything, it also counts them by path.
fn logged() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &two_lines())?;
    let to = at_once(&bed.server)?;
    let server = Watched::start(&bed, to, &["--scheduler", "minrtt"])?;
    let len = 1_000_000;
    let rest = format!("{len}\n");
    let request = ["get ", rest.as_str()];
    let mut all =
        bed.client.within(|| kernel::request(server.listen, Speaks::Over(2), request))??;
    let mut bytes = vec![0; len];
    all.read_exact(&mut bytes)?;
    all.shutdown(std::net::Shutdown::Write)?;
    let _ = all.read(&mut [0; 16])?;
    drop(all);
    let slow = || -> std::io::Result<u64> {
        let stream = kernel::socket(server.listen.ip(), Speaks::Tcp)?;
        stream.set_recv_buffer_size(16_384)?;
        stream.connect(&server.listen.into())?;
        let mut stream = stream;
        stream.write_all(b"get 50000000\n")?;
        stream.read_exact(&mut [0; 10_000])?;
        // The loop ends when the buffers are full.
        std::thread::sleep(Duration::from_millis(500));
        stream.set_linger(Some(Duration::ZERO))?;
        Ok(10_000)
    };
    let read = bed.client.within(slow)??;
    let failed = "plait_connections_failed_total";
    net::until("the end of who resets", || server.told(failed) == 1);
    let (code, log) = server.end()?;
    assert_eq!(code, Some(0));
    let ended: Vec<&String> = log.iter().filter(|it| it.starts_with("event=ended ")).collect();
    let (whole, cut) = (ended[0], ended[1]);
    assert_eq!(number(whole, "sent_bytes"), len as u64, "{whole}");
    assert!(!whole.contains("unacked_bytes="), "{whole}");
    let paths = whole.split_once(" paths=\"").unwrap().1;
    assert!(paths.starts_with("10.98.1.1 sent_bytes="), "{paths}");
    let sum: u64 = paths.split("; ").map(|path| number(path, "sent_bytes")).sum();
    assert!(paths.contains("; 10.98.2.1 sent_bytes=") && sum >= len as u64, "{paths}");
    // The client's window bounds the acknowledged bytes.
    let sent = number(cut, "sent_bytes");
    assert!((read..500_000).contains(&sent), "{cut}");
    assert!(number(cut, "unacked_bytes") > 500_000, "{cut}");
    Ok(())
}

/// If stderr is not read and the log exceeds the pipe, the server still serves clients and obeys TERM. Written
/// lines are complete.
fn unread_log() -> Result<(), Failed> {
    const CLIENTS: usize = 400;
    let bed = Bed::build(Family::V4, &[Line::new(100, 1, 400_000)])?;
    let to = at_once(&bed.server)?;
    let listen = SocketAddr::new(bed.family.service(), 80);
    let mut server = bed.server.within(|| serve(listen, to, &[]))?;
    for _ in 0..CLIENTS {
        let request = || kernel::request(listen, Speaks::Tcp, ["get 10\n", ""]);
        bed.client.within(request)??.read_exact(&mut [0; 10])?;
    }
    net::run(&format!("kill -TERM {}", server.id()));
    let begun = Instant::now();
    let status = server.wait()?;
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let mut text = String::new();
    server.stderr.take().unwrap().read_to_string(&mut text)?;
    let accepted = text.lines().filter(|it| it.starts_with("event=accepted ")).count();
    assert!(text.len() > 60_000 && (1..CLIENTS).contains(&accepted), "{} {accepted}", text.len());
    Ok(())
}

/// A server on two own public addresses, one of them offered too, is killed and started again. Rules lead segments of old
/// connections to the new server. It answers each with a RST, on both addresses and at both ports.
fn crashed_public() -> Result<(), Failed> {
    let bed = Bed::build(Family::V4, &two_lines())?;
    bed.own_service()?;
    let second = bed.family.second_service();
    bed.server.within(|| net::run(&format!("ip addr add {second} dev lo")))?;
    bed.client.within(|| net::set("net/mptcp/close_timeout", "1"))?;
    let to = at_once(&bed.server)?;
    let flags =
        ["--public", "10.99.0.1:80", "--public", "10.99.0.2:81", "--advertise", "10.99.0.2"];
    let start = || bed.server.within(|| serve(behind(bed.family), to, &flags));
    let mut server = start()?;
    let public = SocketAddr::new(bed.family.service(), 80);
    let other = SocketAddr::new(second, 81);
    // There are three subflows, one of them to the offered address. The last client is idle until it writes.
    let clients = [
        (public, Speaks::Tcp, "000000\n"),
        (public, Speaks::Over(3), "000000\n"),
        (other, Speaks::Tcp, ""),
    ];
    let ask = |at, speaks, rest| kernel::request(at, speaks, ["get 50", rest]);
    let clients =
        clients.map(|(at, speaks, rest)| bed.client.within(|| ask(at, speaks, rest)).unwrap());
    server.kill()?;
    server.wait()?;
    let server = start()?;
    for (client, patience) in clients.into_iter().zip([2, 5, 2]) {
        let (mut client, asked) = (client?, Instant::now());
        // While no server was running, the host may have answered an acknowledgement with its own RST.
        let mut end = || {
            client.write_all(b"still there?\n").and_then(|()| client.read_to_end(&mut Vec::new()))
        };
        let end = end().unwrap_err();
        eprintln!("{end} after {:?}", asked.elapsed());
        let kinds = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::NotConnected];
        assert!(kinds.contains(&end.kind()), "{end}");
        assert!(asked.elapsed() < Duration::from_secs(patience), "{:?}", asked.elapsed());
    }
    drop(server);
    Ok(())
}
