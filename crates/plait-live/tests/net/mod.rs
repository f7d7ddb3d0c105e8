//! Common parts of live tests: namespaces joined by emulated paths, and programs on stock kernels.

pub mod dump;
pub mod kernel;
pub mod nginx;
pub mod plait;
pub mod simulated;
pub mod stamp;
pub mod timely;
pub mod urgent;

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};
use plait_base::{Chance, Rate, Span, Time};
use plait_link::{LinkConfig, QueueLimit, RateSource};
use plait_live::emulate::{self, Emulator, Strip};
use plait_live::{Device, DeviceBytes, Namespace};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The address family of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    /// Returns the client's and the server's address on the path with this number.
    pub fn on_path(self, path: usize) -> (IpAddr, IpAddr) {
        let net = path as u8 + 1;
        match self {
            Family::V4 => {
                (Ipv4Addr::new(10, 98, net, 1).into(), Ipv4Addr::new(10, 98, net, 2).into())
            }
            Family::V6 => {
                let at = |host| Ipv6Addr::new(0xfd98, 0, 0, u16::from(net), 0, 0, 0, host);
                (at(1).into(), at(2).into())
            }
        }
    }

    /// Returns an address of the client's network on a path. No device has it.
    pub fn guest(self, path: usize) -> IpAddr {
        let net = path as u8 + 1;
        match self {
            Family::V4 => Ipv4Addr::new(10, 98, net, 77).into(),
            Family::V6 => Ipv6Addr::new(0xfd98, 0, 0, u16::from(net), 0, 0, 0, 77).into(),
        }
    }

    /// Returns the address of the service. All paths reach it.
    pub fn service(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::new(10, 99, 0, 1).into(),
            Family::V6 => Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 1).into(),
        }
    }

    /// Returns the option of `ip` that makes an address usable at once.
    fn nodad(self) -> &'static str {
        if self == Family::V4 { "" } else { "nodad" }
    }

    /// Returns a further address of the service.
    pub fn second_service(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::new(10, 99, 0, 2).into(),
            Family::V6 => Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 2).into(),
        }
    }

    fn prefix(self) -> u8 {
        if self == Family::V4 { 24 } else { 64 }
    }
}

/// A path of a test.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub mbit: u64,
    pub rtt: Span,
    pub queue: u64,
    pub strip: Strip,
    /// Loss rate in percent.
    pub loss: u32,
    /// Longest packet in bytes. Longer packets are lost without an ICMP error.
    pub mtu: u32,
    /// Begin and length of an outage.
    pub outage: Option<(Time, Span)>,
    /// Time from which the rate is another one, in kbit/s.
    pub later: Option<(Time, u64)>,
}

impl Line {
    pub fn new(mbit: u64, rtt_ms: u64, queue: u64) -> Line {
        Line {
            mbit,
            rtt: Span::from_millis(rtt_ms),
            queue,
            strip: Strip::Nothing,
            loss: 0,
            mtu: 1_500,
            outage: None,
            later: None,
        }
    }

    fn link(&self) -> LinkConfig {
        let rate = Rate::from_bps(self.mbit * 1_000_000);
        let rate = match self.later {
            None => RateSource::Fixed(rate),
            Some((at, kbit)) => {
                RateSource::Steps(vec![(Time::ZERO, rate), (at, Rate::from_bps(kbit * 1_000))])
            }
        };
        let mut link = LinkConfig::new(rate, self.rtt.over(2));
        link.queue = QueueLimit::Bytes(self.queue);
        link.mtu = vec![(Time::ZERO, self.mtu)];
        link.outages = self.outage.map(|(from, len)| (from, from + len)).into_iter().collect();
        link.impairments.loss = Chance::from_ppb(self.loss * 10_000_000).into();
        link
    }
}

/// A client's and a server's namespace, joined by emulated paths.
pub struct Bed {
    pub family: Family,
    pub client: Namespace,
    pub server: Namespace,
    pub emulator: Emulator,
}

impl Bed {
    /// Builds a bed. The client's further addresses are endpoints of its kernel, which joins from them.
    pub fn build(family: Family, lines: &[Line]) -> io::Result<Bed> {
        let (client, server) = (Namespace::create()?, Namespace::create()?);
        for space in [&client, &server] {
            space.within(|| -> io::Result<()> {
                run("ip link set lo up");
                set("net/ipv4/conf/all/rp_filter", "0");
                set("net/ipv4/conf/default/rp_filter", "0");
                set("net/ipv6/conf/default/accept_dad", "0");
                set("net/ipv4/ip_forward", "1");
                set("net/ipv6/conf/all/forwarding", "1");
                set("net/mptcp/blackhole_timeout", "0");
                // The kernel must not fall back if a SYN/ACK is late. Older kernels lack this sysctl.
                let patience = "/proc/sys/net/mptcp/syn_retrans_before_tcp_fallback";
                if fs::exists(patience)? {
                    fs::write(patience, "128")?;
                }
                run("ip mptcp limits set subflow 8 add_addr_accepted 8");
                Ok(())
            })??;
        }
        let mut paths = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let (ours, theirs) = family.on_path(at);
            let open = |space: &Namespace, tag: char, address: IpAddr| {
                space.within(|| {
                    let device = Device::open(&format!("{tag}{at}"), 1500)?;
                    set(&format!("net/ipv4/conf/{tag}{at}/rp_filter"), "0");
                    let (prefix, nodad) = (family.prefix(), family.nodad());
                    run(&format!("ip addr add {address}/{prefix} dev {tag}{at} {nodad}"));
                    io::Result::Ok(device)
                })?
            };
            let (up, down) = (line.link(), line.link());
            paths.push(emulate::Path {
                name: format!("path{at}"),
                client: open(&client, 'c', ours)?,
                server: open(&server, 's', theirs)?,
                down,
                up,
                strip: line.strip,
            });
        }
        client.within(|| {
            let service = family.service();
            for at in 0..lines.len() {
                let (ours, theirs) = family.on_path(at);
                let metric = 10 * (at + 1);
                for to in [service, family.second_service()] {
                    run(&format!("ip route add {to} via {theirs} dev c{at} metric {metric}"));
                }
                if at > 0 {
                    run(&format!("ip mptcp endpoint add {ours} dev c{at} subflow id {}", at + 1));
                }
            }
        })?;
        let emulator = Emulator::start(paths, 1)?;
        urgent::raise_emulators();
        Ok(Bed { family, client, server, emulator })
    }

    /// Adds the service's address to the server's kernel.
    pub fn own_service(&self) -> io::Result<()> {
        let (service, nodad) = (self.family.service(), self.family.nodad());
        self.server.within(|| run(&format!("ip addr add {service} dev lo {nodad}")))
    }

    /// Limits the client's receive buffers, so that it holds less than 2 MB of unread data.
    pub fn bound_buffers(&self) -> io::Result<()> {
        self.client.within(|| set("net/ipv4/tcp_rmem", "4096 131072 1000000"))
    }

    /// Returns the number of bytes that a device of the client has received.
    pub fn received(&self, device: &str) -> u64 {
        self.client.within(|| device_bytes(device).received).unwrap()
    }

    /// Waits until a device of the client has received this many bytes.
    pub fn await_received(&self, device: &str, bytes: u64) {
        until(device, || self.received(device) >= bytes);
    }

    /// Returns whether the server's kernel has accepted at least `joins` joins since `since`.
    pub fn has_taken(&self, joins: u64, since: &Counters) -> bool {
        self.counters()[1].since(since, "MPJoinAckRx") >= joins
    }

    /// Returns the counters of both kernels: client, server.
    pub fn counters(&self) -> [Counters; 2] {
        [&self.client, &self.server].map(|space| space.within(Counters::read).unwrap())
    }
}

/// The counters of a namespace, by group and name.
#[derive(Clone, Default, Debug)]
pub struct Counters(BTreeMap<(String, String), u64>);

impl Counters {
    /// Counters that a transfer without fault does not raise: fallbacks, resets, refusals.
    const FAULTS: [&str; 9] = [
        "Fallback",
        "Rst",
        "Fail",
        "Infinite",
        "Csum",
        "Corrupt",
        "NoMatch",
        "Fastclose",
        "Blackhole",
    ];

    /// Reads the counters of the calling thread's namespace.
    pub fn read() -> Counters {
        let mut all = BTreeMap::new();
        for file in ["netstat", "snmp"] {
            let text = fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for two in lines.chunks_exact(2) {
                let mut names = two[0].split_whitespace();
                let group = names.next().unwrap().trim_end_matches(':');
                let values = two[1].split_whitespace().skip(1);
                all.extend(names.zip(values).filter_map(|(name, value)| {
                    Some(((group.to_owned(), name.to_owned()), value.parse().ok()?))
                }));
            }
        }
        Counters(all)
    }

    /// Returns the increase of a counter of MPTCP.
    pub fn since(&self, earlier: &Counters, name: &str) -> u64 {
        let key = ("MPTcpExt".to_owned(), name.to_owned());
        let now = *self.0.get(&key).unwrap_or_else(|| panic!("no counter {name}"));
        now - earlier.0.get(&key).copied().unwrap_or(0)
    }

    /// Returns all counters of MPTCP that have risen.
    pub fn risen(&self, earlier: &Counters) -> Vec<(&str, u64)> {
        self.risen_in("MPTcpExt", earlier)
    }

    /// Returns all counters of a group that have risen.
    pub fn risen_in(&self, wanted: &str, earlier: &Counters) -> Vec<(&str, u64)> {
        let ours = self.0.iter().filter(|((group, _), _)| group == wanted);
        let risen = ours.map(|(key, now)| (key.1.as_str(), now - earlier.0.get(key).unwrap_or(&0)));
        risen.filter(|(_, by)| *by > 0).collect()
    }

    /// Returns the counters of faults that have risen. A subflow reset by this kernel is not a fault by itself:
    /// it also resets late joins and copies for a closed connection. Invalid segments have their own counters.
    pub fn faults(&self, earlier: &Counters) -> Vec<(&str, u64)> {
        let mut risen = self.risen(earlier);
        risen.retain(|(name, _)| {
            Counters::FAULTS.iter().any(|fault| name.contains(fault)) && *name != "MPRstTx"
        });
        risen
    }
}

/// Returns why live tests cannot run here, if they cannot.
pub fn obstacle() -> Option<String> {
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("live tests: `ip` of iproute2 is not there".to_owned());
    }
    let space = match Namespace::create() {
        Ok(space) => space,
        Err(error) => return Some(format!("live tests: no network namespace: {error}")),
    };
    let tried = space.within(|| Device::open("probe", 1500).map(drop)).and_then(|tried| tried);
    if let Err(error) = tried {
        return Some(format!("live tests: no TUN device: {error}"));
    }
    let enabled = space.within(|| fs::read_to_string("/proc/sys/net/mptcp/enabled"));
    match enabled {
        Ok(Ok(text)) if text.trim() == "1" => None,
        _ => Some("live tests: the kernel has no MPTCP, or it is off".to_owned()),
    }
}

/// A test of a file of tests.
pub struct Case {
    name: String,
    ignored: bool,
    run: Box<dyn FnOnce() -> Result<(), Failed> + Send>,
}

impl Case {
    pub fn test(
        name: impl Into<String>,
        run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Case {
        Case { name: name.into(), ignored: false, run: Box::new(run) }
    }

    pub fn with_ignored_flag(self, ignored: bool) -> Case {
        Case { ignored, ..self }
    }
}

/// Returns the tests of a file. Their names begin with that of the file.
pub fn trials((file, cases): (&str, Vec<Case>)) -> Vec<Trial> {
    let trial = |case: Case| {
        Trial::test(format!("{file}/{}", case.name), case.run).with_ignored_flag(case.ignored)
    };
    cases.into_iter().map(trial).collect()
}

/// Set in a run of all tests in which the live tests run apart: they then run in a process of their own,
/// beside tests that only compute.
const APART: &str = "PLAIT_LIVE_APART";

/// Runs the live tests that the command line selects, one after another, because they share the cores with
/// their emulators. If live tests cannot run, it prints the reason and skips them.
pub fn conduct(trials: Vec<Trial>) -> ! {
    outcome(trials).exit()
}

/// Does the same, but returns, so that the program can print more before it ends.
pub fn outcome(mut trials: Vec<Trial>) -> Conclusion {
    let mut args = Arguments::from_args();
    args.test_threads = Some(1);
    if std::env::var_os(APART).is_some() {
        trials.clear();
    }
    if let Some(why) = obstacle() {
        println!("skipped: {why}");
        trials = trials.into_iter().map(|trial| trial.with_ignored_flag(true)).collect();
    }
    libtest_mimic::run(&args, trials)
}

/// Waits until `happened` returns true, at most one minute. Panics after that.
pub fn until(what: &str, happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: nothing in a minute");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command in the namespace of the calling thread.
pub fn run(line: &str) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
}

/// Runs a command in the namespace of the calling thread and returns its output.
pub fn said(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the counters of a device of the namespace of the calling thread.
pub fn device_bytes(device: &str) -> DeviceBytes {
    plait_live::device_bytes(&[device.to_owned()]).unwrap()[0].unwrap()
}

/// Sets a sysctl of the namespace of the calling thread.
pub fn set(name: &str, value: &str) {
    fs::write(format!("/proc/sys/{name}"), value).unwrap_or_else(|e| panic!("{name}: {e}"));
}
