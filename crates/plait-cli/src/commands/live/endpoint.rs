//! Flags, addresses and signals common to `serve`, `get` and `proxy`.

use crate::commands::live::memory::{Alias, MemoryFlags};
use crate::console::{Console, remark};
use crate::failure::Failure;
use crate::invocation;
use plait_app::Role;
use plait_base::RandomStream;
use plait_core::{Config, ConnectionSpec, JoinTiming, Pacing};
use plait_live::argument::{device_name, host_problem, not_of_a_host};
use plait_live::{
    Identity, Origin, Rule, Rules, Signals, Wish, first_v4, has_address, has_addresses,
};
use plait_report::live::{LiveFiles, Tell};
use plait_report::names::spec_problem;
use plait_sched::Goal;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Flags of `serve`, `get` and `proxy`.
#[derive(clap::Args, Debug)]
pub(crate) struct EndpointFlags {
    /// The scheduler of every connection
    #[arg(long, value_name = "SCHEDULER", default_value = plait_sched::DEFAULT)]
    pub(crate) scheduler: String,
    /// The congestion controller of every subflow
    #[arg(long, value_name = "CC", default_value = "cubic")]
    cc: String,
    /// Name of the TUN device; a `%d` in it becomes the next free number
    #[arg(long, hide_short_help = true, value_name = "NAME", default_value = "plait%d", value_parser = device_name)]
    pub(crate) device: String,
    /// Let the kernel segment superpackets (TSO) and compute checksums
    #[arg(long, hide_short_help = true, value_name = "on|off", default_value = "on")]
    offload: Offload,
    /// When further paths join: right after the SYN/ACK if both ends agree, or after the first data
    ///
    /// Ends that are not plait ignore the offer, which is a TCP option (kind 253, identifier 0x504A).
    /// If both ends agree, a client also sends data on a further path one round trip earlier.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "agreed|after-data",
        default_value = "agreed"
    )]
    join: Join,
    /// Write every packet to this file (pcapng), with the reasons of the scheduler as comments
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the packets and decisions of this end to this file, in the sequential form of qlog
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    qlog: Option<PathBuf>,
    /// Run as this user after the setup (needs CAP_SETUID and CAP_SETGID)
    ///
    /// Without GROUP, the group is that of the user.
    #[arg(long, hide_short_help = true, value_name = "NAME|UID[:GROUP]", value_parser = Identity::find)]
    user: Option<Identity>,
    #[command(flatten)]
    pub(crate) memory: MemoryFlags,
    /// Print the changes to this host, and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// When further paths join.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Join {
    Agreed,
    AfterData,
}

/// Whether the kernel works for the device.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Offload {
    On,
    Off,
}

impl EndpointFlags {
    /// Returns the settings of connections. The scheduler keeps to `goal`, if there is one.
    pub(crate) fn spec(&self, goal: Option<Goal>) -> Result<ConnectionSpec, Failure> {
        self.spec_with("--scheduler", &self.scheduler, goal)
    }

    /// Returns the settings of connections with another scheduler, which `flag` names.
    pub(crate) fn spec_with(
        &self,
        flag: &str,
        scheduler: &str,
        goal: Option<Goal>,
    ) -> Result<ConnectionSpec, Failure> {
        self.check_files()?;
        let scheduler = plait_sched::Spec::parse(scheduler)
            .map_err(|error| Failure::Usage(format!("{flag}: {}", spec_problem(&error))))?;
        let scheduler = match goal {
            Some(goal) => scheduler.with_goal(goal),
            None => scheduler,
        };
        let controller = plait_cc::Spec::parse(&self.cc)
            .map_err(|error| Failure::Usage(format!("--cc: {}", spec_problem(&error))))?;
        let superpacket = if self.offload == Offload::On { Config::SUPERPACKET } else { 0 };
        let timing = match self.join {
            Join::Agreed => JoinTiming::Agreed,
            Join::AfterData => JoinTiming::AfterData,
        };
        Ok(ConnectionSpec {
            config: Config::default().with(|it| {
                it.packets.superpacket = superpacket;
                it.joins.timing = timing;
                it.window.pacing = Pacing::asked_by(&scheduler);
            }),
            paths: Vec::new(),
            scheduler: Arc::new(move || scheduler.build()),
            controller: Arc::new(move |_| controller.build()),
            addresses: Vec::new(),
        })
    }

    /// Fails if `--pcap` and `--qlog` name the same file.
    fn check_files(&self) -> Result<(), Failure> {
        let (Some(pcap), Some(qlog)) = (&self.pcap, &self.qlog) else { return Ok(()) };
        // A symlink and its target are one file. A file that does not exist yet is compared by its absolute
        // path.
        let whole = |file: &Path| {
            let known = file.canonicalize().or_else(|_| std::path::absolute(file));
            known.unwrap_or_else(|_| file.to_owned())
        };
        let same = whole(pcap) == whole(qlog);
        if same && pcap != Path::new("/dev/null") {
            let problem = "it is the file of --pcap\n  give another one";
            return Err(Failure::Usage(format!("--qlog: `{}`: {problem}", qlog.display())));
        }
        Ok(())
    }

    /// Drops all capabilities and changes to the user of `--user`, permanently. No other thread may be running.
    pub(crate) fn drop_privileges(&self) -> Result<(), Failure> {
        if let Some(user) = self.user {
            user.assume().map_err(|error| {
                let remedy = "it needs CAP_SETUID and CAP_SETGID: run it as root";
                Failure::Privilege(format!("--user: {error}\n  {remedy}"))
            })?;
        }
        let internal = |error: io::Error| Failure::Internal(error.to_string());
        plait_live::drop_capabilities().map_err(internal)
    }

    /// Creates the files of `--pcap` and `--qlog`, if either is given. `names` maps the client's addresses to
    /// names of paths.
    pub(crate) fn files(
        &self,
        end: Role,
        names: BTreeMap<IpAddr, String>,
        console: Console,
    ) -> Result<Option<LiveFiles>, Failure> {
        let files = (self.pcap.as_deref(), self.qlog.as_deref());
        if files == (None, None) {
            return Ok(None);
        }
        let title = format!("{}, {}", self.scheduler, self.cc);
        let command = invocation::words().join(" ");
        let tell = (console.chatter > 0).then_some(remark as Tell);
        Ok(Some(LiveFiles::create(files, end, (&title, command), names, tell)?))
    }

    /// Creates the same files for an end that dials.
    pub(crate) fn files_for(
        &self,
        end: Role,
        from: &[Origin],
        console: Console,
    ) -> Result<Option<LiveFiles>, Failure> {
        let name = |it: &Origin| Some((it.address, it.device.clone()?));
        self.files(end, from.iter().filter_map(name).collect(), console)
    }

    /// Describes the settings for an end that dials from these addresses, with further rules.
    pub(crate) fn plan_for(&self, from: &Origins, more: Vec<Rule>) -> String {
        let mut plan = self.plan(from.all.iter().map(|origin| origin.address));
        for Origin { address, device, .. } in &from.all {
            if let Some(device) = device {
                plan.push_str(&format!("packets from {address} leave by {device}: a raw socket\n"));
            }
        }
        let rules = from.rules_with(more);
        if !rules.is_empty() {
            plan.push_str("rules of nftables:\n");
            plan.push_str(&Rules::text(&rules));
        }
        plan + "All of this is removed when the process ends.\n"
    }

    /// Describes the settings for these addresses, with the equivalent commands.
    pub(crate) fn plan(&self, addresses: impl Iterator<Item = IpAddr>) -> String {
        let device = self.device.replace("%d", "0");
        let mtu = Config::default().packets.mtu;
        let mut lines = format!(
            "TUN device {device}, not persistent, MTU {mtu}, up\n\
             equivalent to: ip tuntap add {device} mode tun; ip link set {device} mtu {mtu} up\n"
        );
        for address in addresses {
            lines.push_str(&format!("equivalent to: ip route add {address} dev {device}\n"));
        }
        lines
    }

    /// Explains why the device could not be made, and suggests a remedy. `flag` names the addresses.
    pub(crate) fn refused(&self, flag: &str, error: &io::Error) -> Failure {
        match error.kind() {
            ErrorKind::PermissionDenied => Failure::Privilege(format!(
                "no TUN device: {error}\n  it needs CAP_NET_ADMIN: run it as root"
            )),
            ErrorKind::NotFound => Failure::Privilege(
                "no TUN device: /dev/net/tun is not there\n  load the driver: modprobe tun"
                    .to_owned(),
            ),
            ErrorKind::AlreadyExists => Failure::Usage(format!(
                "{flag}: there is a route for such an address already\n  see it: ip route show"
            )),
            _ if is_device(&self.device) => Failure::Usage(format!(
                "--device: `{}`: this host has a device of this name, which cannot be used\n  \
                 give another name, such as plait%d",
                self.device
            )),
            _ => Failure::Usage(format!("no TUN device `{}`: {error}", self.device)),
        }
    }
}

/// Addresses to dial from.
pub(crate) struct Origins {
    pub(crate) all: Vec<Origin>,
    /// Origins with masquerade: their packets leave with the address of their device.
    hidden: Vec<Origin>,
}

impl Origins {
    /// Fails if this host lacks one of the devices.
    pub(crate) fn check_devices(&self, flag: &str) -> Result<(), Failure> {
        for Origin { address, device, .. } in &self.all {
            if let Some(device) = device.as_deref().filter(|name| !is_device(name)) {
                let device = device.escape_debug();
                return Err(Failure::Usage(format!(
                    "{flag}: `{address}@{device}`: this host has no device `{device}`\n  \
                     see them: ip link"
                )));
            }
        }
        Ok(())
    }

    /// Returns the addresses under which a path memory keeps the hidden origins: those of their devices. They
    /// do not depend on this process. A device without an address, or with that of another device, gets a
    /// stand-in for its name.
    pub(crate) fn aliases(&self) -> Vec<Alias> {
        let mut aliases: Vec<Alias> = Vec::new();
        for Origin { address, device, .. } in &self.hidden {
            let Some(device) = device.as_deref() else { continue };
            let known = first_v4(device).ok().flatten().map(IpAddr::V4);
            let free = known.filter(|own| !aliases.iter().any(|it| it.in_file == *own));
            let in_file = free.unwrap_or_else(|| stand_in(&["device", device], true));
            aliases.push(Alias { here: *address, in_file });
        }
        aliases
    }

    /// Sets the masquerade rules of hidden origins, and further ones. `flag` needs them.
    pub(crate) fn hide(&self, flag: &str, more: Vec<Rule>) -> Result<Option<Rules>, Failure> {
        let rules = self.rules_with(more);
        match rules.is_empty() {
            true => Ok(None),
            false => set_rules(flag, &rules).map(Some),
        }
    }

    fn rules_with(&self, more: Vec<Rule>) -> Vec<Rule> {
        let own = self.hidden.iter().cloned().map(Rule::Masquerade);
        more.into_iter().chain(own).collect()
    }
}

/// Sets the nftables rules that `flag` needs.
pub(crate) fn set_rules(flag: &str, rules: &[Rule]) -> Result<Rules, Failure> {
    Rules::set(rules).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => "it needs CAP_NET_ADMIN: run it as root",
            _ => "it needs Linux 5.12 with nf_tables and nft_nat: see `plait doctor`",
        };
        Failure::Privilege(format!("{flag}: the kernel refuses the rules: {error}\n  {remedy}"))
    })
}

/// Returns true if this process's network namespace has a device of this name.
pub(crate) fn is_device(name: &str) -> bool {
    let none = ["", ".", "..", "all", "default"].contains(&name) || name.contains('/');
    !none && Path::new("/proc/sys/net/ipv4/conf").join(name).exists()
}

/// Returns true if the kernel of this host has the address, or `None` if that is unknown.
pub(crate) fn is_own(address: IpAddr) -> Option<bool> {
    let which = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    let file = format!("/proc/sys/net/{which}/ip_nonlocal_bind");
    let any = std::fs::read_to_string(file).is_ok_and(|text| text.trim() != "0");
    // A socket binds only to an address of the host. Exception: if the host has no address at all, IPv4 binds
    // to any.
    let takes = || UdpSocket::bind((address, 0)).is_ok();
    (!any).then(|| takes() && has_addresses(address.is_ipv4()).unwrap_or(true))
}

/// Returns the failure for an error that ended the engine.
pub(crate) fn ended(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NetworkDown => Failure::Privilege(format!(
            "{error}: another program has removed it and its routes\n  start plait again, and configure the \
             network manager of this host to leave plait's devices alone"
        )),
        _ => Failure::Internal(error.to_string()),
    }
}

/// Fails if this host is known not to have the address, or if clients cannot reach it.
pub(crate) fn own(flag: &str, address: IpAddr) -> Result<(), Failure> {
    let refuse = |problem: &str| {
        let remedy = "give an address by which clients reach this host; see it: ip addr";
        Err(Failure::Usage(format!("{flag}: `{address}`: {problem}\n  {remedy}")))
    };
    match not_of_a_host(address) {
        Some(problem) => Err(Failure::Usage(format!("{flag}: `{address}`: {problem}"))),
        None if address.is_loopback() => refuse("only this host itself can reach it"),
        None if is_own(address) == Some(false) => refuse("no device of this host has it"),
        None => Ok(()),
    }
}

/// Explains why `to`, an address of this host, cannot be reached from these origins of `flag`; `None` if it
/// can. The host delivers locally if a packet follows its routes or leaves by the device that has the address.
/// If a packet leaves by another device, it gets no answer.
pub(crate) fn astray(flag: &str, to: IpAddr, from: &[Origin]) -> Option<String> {
    if is_own(to) != Some(true) {
        return None;
    }
    let mut family = from.iter().filter(|it| it.address.is_ipv4() == to.is_ipv4()).peekable();
    let leads_there = |it: &Origin| match &it.device {
        Some(device) => has_address(device, to).unwrap_or(true),
        None => true,
    };
    (family.peek().is_some() && !family.any(leads_there))
        .then(|| format!("this host has it, but on no device of {flag}: no answer would arrive"))
}

/// Fails if the kernel of this host has the address: the kernel would answer and plait would receive nothing.
/// `remedy` is the advice for the user.
pub(crate) fn not_own(flag: &str, address: IpAddr, remedy: &str) -> Result<(), Failure> {
    if let Some(problem) = not_of_a_host(address) {
        return Err(Failure::Usage(format!("{flag}: `{address}`: {problem}")));
    }
    if is_own(address) != Some(true) {
        return Ok(());
    }
    let problem = "the kernel of this host has this address and answers there itself";
    Err(Failure::Usage(format!("{flag}: `{address}`: {problem}\n  {remedy}")))
}

/// Returns an address that no device has, from the benchmarking ranges (198.18.0.0/15, RFC 2544;
/// 2001:2::/48, RFC 5180). It stands behind the TUN device for an address of this host, and depends
/// on `purpose` alone. So the kernel's translation of old connections leads to a restarted program.
pub(crate) fn stand_in(purpose: &[&str], v4: bool) -> IpAddr {
    let bits = RandomStream::new(0, purpose).bits().to_be_bytes();
    match v4 {
        true => Ipv4Addr::new(198, 18 + (bits[0] & 1), bits[1], bits[2].clamp(1, 254)).into(),
        false => {
            let [a, b, c, d] = [0, 2, 4, 6].map(|at| u16::from_be_bytes([bits[at], bits[at + 1]]));
            Ipv6Addr::new(0x2001, 2, 0, a, b, c, d, 1).into()
        }
    }
}

/// Parses the addresses to dial from, given with `flag`. A device without an address gets a stand-in.
pub(crate) fn origins(flag: &str, texts: &[String]) -> Result<Origins, Failure> {
    let mut origins = Origins { all: Vec::new(), hidden: Vec::new() };
    for text in texts {
        let (address, device) = match text.split_once('@') {
            Some((address, device)) => (address, Some(device.to_owned())),
            None => (text.as_str(), None),
        };
        let is_device = device.is_none() && is_device(address);
        let origin = match address.parse::<IpAddr>() {
            Ok(address) => {
                let remedy = format!("name its device instead, as {flag} eth0; see it: ip addr");
                not_own(flag, address, &remedy)?;
                if origins.all.iter().any(|origin| origin.address == address) {
                    let problem = "the address is given twice\n  give each path its own address";
                    return Err(Failure::Usage(format!("{flag}: `{address}`: {problem}")));
                }
                Origin { address, device, cost: 0, quota: None }
            }
            Err(_) if is_device => {
                let place = origins.hidden.len().to_string();
                let own = stand_in(&[&std::process::id().to_string(), &place], true);
                let device = Some(address.to_owned());
                let origin = Origin { address: own, device, cost: 0, quota: None };
                origins.hidden.push(origin.clone());
                origin
            }
            Err(_) => {
                let problem = "it is neither an IP address nor a device of this host";
                let allowed = "ADDR, ADDR@DEVICE or DEVICE";
                let given = text.escape_debug();
                return Err(Failure::Usage(format!(
                    "{flag}: `{given}`: {problem}\n  allowed: {allowed}"
                )));
            }
        };
        origins.all.push(origin);
    }
    Ok(origins)
}

/// Writes a byte to `stopper` at each signal that requests an end. Returns a flag that is set if the first such
/// signal was Ctrl-C. No other thread may be running.
pub(crate) fn stop_on_signal(mut stopper: UnixStream) -> io::Result<Arc<AtomicBool>> {
    let signals = Signals::take_over()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&interrupted);
    thread::spawn(move || {
        let mut first = true;
        while let Ok(wish) = signals.wait() {
            if std::mem::take(&mut first) {
                told.store(wish == Wish::Interrupt, Ordering::Relaxed);
            }
            if stopper.write_all(&[0]).is_err() {
                break;
            }
        }
    });
    Ok(interrupted)
}

/// Resolves `HOST:PORT` to its first address. If `wanted` is given, the family must be that of its flag (true:
/// IPv4). `place` is the argument that gave the text.
pub(crate) fn resolve(
    place: &str,
    text: &str,
    wanted: Option<(&str, bool)>,
) -> Result<SocketAddr, Failure> {
    if let Some(problem) = host_problem(text) {
        return Err(Failure::Usage(format!("{place}: `{}`: {problem}", text.escape_debug())));
    }
    let found = text.to_socket_addrs().map_err(|error| {
        Failure::Usage(format!("{place}: `{text}`: {error}\n  allowed: HOST:PORT"))
    })?;
    let mut found = found.filter(|to| wanted.is_none_or(|(_, v4)| to.is_ipv4() == v4));
    found.next().ok_or_else(|| {
        let (flag, v4) = wanted.unwrap_or_default();
        let family = if v4 { "IPv4" } else { "IPv6" };
        let problem = format!("it has no {family} address, and {flag} has only {family} addresses");
        Failure::Usage(format!("{place}: `{text}`: {problem}\n  use one family for both"))
    })
}
