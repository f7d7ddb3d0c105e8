//! Finds the settings of this host that prevent Multipath TCP, and the commands that correct them.

use crate::capabilities::Capabilities;
use crate::rules::Rules;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// A use of the host.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Run `plait serve`
    Serve,
    /// Run `plait get` or `plait proxy`
    Get,
    /// Run `plait proxy --lan` for the hosts of a network
    Lan,
    /// Use Multipath TCP sockets of the kernel, from several interfaces
    Kernel,
}

/// The result of a check.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Correct.
    Fine,
    /// Prevents Multipath TCP.
    Missing,
    /// Needed only for a part: several interfaces for the kernel's sockets, redirection for `plait proxy --lan`, or
    /// forwarding for IPv6 if the host also has IPv4.
    Optional,
    /// Could not be checked.
    Unknown,
}

/// `plait doctor --json`.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(title = "Document")]
pub struct DoctorDocument {
    /// Always `plait.doctor/1`.
    pub schema: &'static str,
    /// Whether no check is missing.
    pub fine: bool,
    /// The checks, in a fixed order.
    pub checks: Vec<Check>,
}

/// A check and its result.
#[derive(Serialize, JsonSchema, Debug)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Roles that need it.
    pub roles: Vec<Role>,
    /// The result.
    pub state: State,
    /// The observed setting, as text.
    pub found: String,
    /// Commands that correct the setting. Empty if nothing is missing or no command helps.
    pub mend: Vec<String>,
}

impl Check {
    /// Returns a check that is missing if `mend` has commands, else fine.
    fn new(name: &'static str, roles: &[Role], found: String, mend: Vec<String>) -> Check {
        let state = if mend.is_empty() { State::Fine } else { State::Missing };
        Check { name, roles: roles.to_vec(), state, found, mend }
    }

    /// Makes a missing check optional.
    fn waive(&mut self) {
        if self.state == State::Missing {
            self.state = State::Optional;
        }
    }

    fn unknown(name: &'static str, roles: &[Role], found: &str) -> Check {
        let (found, mend) = (found.to_owned(), Vec::new());
        Check { name, roles: roles.to_vec(), state: State::Unknown, found, mend }
    }
}

/// Every role.
pub const ALL: &[Role] = &[Role::Serve, Role::Get, Role::Lan, Role::Kernel];
const OURS: &[Role] = &[Role::Serve, Role::Get, Role::Lan];
const DIALS: &[Role] = &[Role::Get, Role::Lan];
const LAN: &[Role] = &[Role::Lan];
const KERNEL: &[Role] = &[Role::Kernel];

/// Checks the host for `roles` without changing it. If `roles` is empty, checks all roles. Settings that
/// only the kernel's sockets or `plait proxy --lan` need are then optional. `program` is the file that can be given capabilities, if there is
/// one.
#[must_use]
pub fn look(roles: &[Role], program: Option<&Path>) -> DoctorDocument {
    let all = roles.is_empty();
    let roles = if all { ALL } else { roles };
    let mut checks = vec![tun(), net_admin(program), net_raw(program), nft(), redirection(), lo()];
    checks.extend([forwarding(4), forwarding(6), rp_filter()]);
    checks.extend([mptcp(), limits(), routes(), endpoints()]);
    if all {
        checks
            .iter_mut()
            .filter(|check| [KERNEL, LAN].contains(&&check.roles[..]))
            .for_each(Check::waive);
    }
    checks.retain(|check| check.roles.iter().any(|role| roles.contains(role)));
    let fine = checks.iter().all(|check| check.state != State::Missing);
    DoctorDocument { schema: "plait.doctor/1", fine, checks }
}

fn tun() -> Check {
    let device = "/dev/net/tun";
    let (found, mend) = match OpenOptions::new().read(true).write(true).open(device) {
        Ok(_) => (format!("{device} opens"), Vec::new()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            (format!("{device}: {error}"), vec![format!("chmod 0666 {device}")])
        }
        Err(error) if error.kind() == ErrorKind::NotFound && makes_nodes() && has_driver() => {
            (format!("{device} is missing; plait creates it"), Vec::new())
        }
        Err(error) => (format!("{device}: {error}"), vec!["modprobe tun".to_owned()]),
    };
    Check::new("tun", OURS, found, mend)
}

/// Returns whether this process may create device nodes. It needs the capability in the initial user
/// namespace.
fn makes_nodes() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let first = map.split_whitespace().eq(["0", "0", "4294967295"]);
    first && Capabilities::effective().is_ok_and(|own| own.mknod)
}

/// Returns whether the TUN driver is loaded or built into the kernel.
fn has_driver() -> bool {
    let drivers = fs::read_to_string("/proc/misc").unwrap_or_default();
    drivers.lines().any(|line| line.split_whitespace().nth(1) == Some("tun"))
}

/// Returns the command that gives `program` the capabilities `set`. A program of an interpreter cannot have
/// capabilities of its own, so it needs root.
fn grant(set: &str, program: Option<&Path>) -> String {
    match program {
        Some(path) => format!("setcap {set} {}", path.display()),
        None => "sudo \"$(command -v plait)\" ...".to_owned(),
    }
}

/// The capabilities of plait.
const CAPABILITIES: &str = "cap_net_admin,cap_net_raw+ep";

fn capability(name: &'static str, roles: &[Role], wanted: &str, program: Option<&Path>) -> Check {
    match Capabilities::effective() {
        Ok(own) => {
            let has = if name == "net-admin" { own.net_admin } else { own.net_raw };
            let word = if has { "available" } else { "missing" };
            let found = format!("{wanted}: {word}");
            let mend = if has { vec![] } else { vec![grant(CAPABILITIES, program)] };
            Check::new(name, roles, found, mend)
        }
        Err(error) => Check::unknown(name, roles, &error.to_string()),
    }
}

fn net_admin(program: Option<&Path>) -> Check {
    let wanted = "CAP_NET_ADMIN (for the device and its routes)";
    capability("net-admin", OURS, wanted, program)
}

fn net_raw(program: Option<&Path>) -> Check {
    let wanted = "CAP_NET_RAW (for `--from ADDR@DEVICE`)";
    capability("net-raw", DIALS, wanted, program)
}

fn nft() -> Check {
    let wanted = "nf_tables in the kernel (for `--from DEVICE`, `--public` and own addresses)";
    let found = |word: &str| format!("{wanted}: {word}");
    match Rules::probe() {
        Ok(()) => Check::new("nf-tables", OURS, found("available"), Vec::new()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Check::unknown("nf-tables", OURS, &found("unknown without CAP_NET_ADMIN"))
        }
        Err(error) => {
            let mend = vec!["modprobe -a nf_tables nft_nat nft_masq nft_chain_nat".to_owned()];
            Check::new("nf-tables", OURS, found(&format!("missing: {error}")), mend)
        }
    }
}

/// Checks whether the kernel redirects connections of other hosts.
fn redirection() -> Check {
    let (name, wanted) = ("nft-redir", "redirection by nf_tables (for `--lan`)");
    let found = |word: &str| format!("{wanted}: {word}");
    match Rules::probe_redirection() {
        Ok(()) => Check::new(name, LAN, found("available"), Vec::new()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Check::unknown(name, LAN, &found("unknown without CAP_NET_ADMIN"))
        }
        Err(error) => {
            let mend =
                vec!["modprobe -a nf_tables nft_redir nft_fib_inet nft_chain_nat".to_owned()];
            Check::new(name, LAN, found(&format!("missing: {error}")), mend)
        }
    }
}

/// Checks the device lo, which reaches services and programs of this host. It is down in a new namespace.
fn lo() -> Check {
    let Some(lines) = ip("-o link show lo") else {
        return Check::unknown("lo", OURS, "`ip link` fails");
    };
    let up = lines.iter().any(|line| line.contains("UP,") || line.contains(",UP"));
    let found = format!("the device lo (for 127.0.0.1) is {}", if up { "up" } else { "down" });
    let mend = if up { Vec::new() } else { vec!["ip link set lo up".to_owned()] };
    Check::new("lo", OURS, found, mend)
}

/// Returns the value of a sysctl.
fn sysctl(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
    Some(text.trim().to_owned())
}

/// Checks a sysctl that has to be 1.
fn switch(name: &'static str, roles: &[Role], key: &str) -> Check {
    match sysctl(key) {
        Some(value) => {
            let wrong = value != "1";
            let mend = wrong.then(|| format!("sysctl -w {key}=1")).into_iter().collect();
            Check::new(name, roles, format!("{key} = {value}"), mend)
        }
        None => Check::unknown(name, roles, &format!("no sysctl {key}")),
    }
}

/// Checks whether the host forwards packets of a family. If only `lo` has a global address of the family,
/// forwarding is not needed. For IPv6 it is optional beside IPv4: it has side effects, such as that the host no longer
/// takes routes from router advertisements.
fn forwarding(version: u8) -> Check {
    let (name, key) = match version {
        4 => ("forward-4", "net.ipv4.ip_forward"),
        _ => ("forward-6", "net.ipv6.conf.all.forwarding"),
    };
    let mut check = switch(name, OURS, key);
    if check.state != State::Fine && !has_global(version) {
        check.found = format!("{}; not needed: no global address of IPv{version}", check.found);
        (check.state, check.mend) = (State::Fine, Vec::new());
    }
    if version == 6 && check.state == State::Missing && has_global(4) {
        check.found = format!("{}; needed only for connections over IPv6", check.found);
        check.waive();
    }
    check
}

/// Returns whether a device other than `lo` has a global address of the family. Returns true if this is
/// unknown.
fn has_global(version: u8) -> bool {
    let lines = ip(&format!("-{version} -o addr show scope global"));
    lines.is_none_or(|lines| lines.iter().any(|line| line.split_whitespace().nth(1) != Some("lo")))
}

/// Checks the reverse path filter. Strict filtering drops packets that arrive by another device than the
/// one of the return route. The kernel uses the greater of the values for all devices and for this one, so
/// 2 (loose) for all is enough.
fn rp_filter() -> Check {
    let name = "rp-filter";
    let value =
        |device: &str| sysctl(&format!("net.ipv4.conf.{device}.rp_filter"))?.parse::<u8>().ok();
    let (Some(all), Ok(devices)) = (value("all"), fs::read_dir("/proc/sys/net/ipv4/conf")) else {
        return Check::unknown(name, ALL, "no sysctl net.ipv4.conf.all.rp_filter");
    };
    let mut strict: Vec<String> = devices
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|device| !["all", "default", "lo"].contains(&device.as_str()))
        .filter(|device| value(device).is_some_and(|own| own.max(all) == 1))
        .collect();
    strict.sort();
    let mend = match strict.is_empty() {
        true => Vec::new(),
        false => vec!["sysctl -w net.ipv4.conf.all.rp_filter=2".to_owned()],
    };
    let found = match strict.is_empty() {
        true => "no device has strict source filtering".to_owned(),
        false => format!("strict source filtering on {}", strict.join(" ")),
    };
    Check::new(name, ALL, found, mend)
}

fn mptcp() -> Check {
    let check = switch("mptcp", KERNEL, "net.mptcp.enabled");
    if check.state == State::Unknown {
        let found = "the kernel has no Multipath TCP".to_owned();
        let mend = vec!["boot a kernel with CONFIG_MPTCP".to_owned()];
        return Check::new("mptcp", KERNEL, found, mend);
    }
    check
}

/// Returns the output lines of `ip`. Returns `None` if the program is missing or fails.
fn ip(arguments: &str) -> Option<Vec<String>> {
    let output = Command::new("ip").args(arguments.split(' ')).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}

/// Returns the word after `word`.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.split_whitespace().skip_while(|it| *it != word).nth(1)
}

fn limits() -> Check {
    let (name, found) = ("limits", ip("mptcp limits show").map(|lines| lines.join(" ")));
    let Some(found) = found else { return Check::unknown(name, KERNEL, "`ip mptcp` fails") };
    let number = |word| after(&found, word).and_then(|it| it.parse::<u32>().ok()).unwrap_or(0);
    let (subflows, accepted) = (number("subflows"), number("add_addr_accepted"));
    let mend = match subflows {
        0 => vec![format!("ip mptcp limits set subflow 2 add_addr_accepted {accepted}")],
        _ => Vec::new(),
    };
    Check::new(name, KERNEL, found.trim().to_owned(), mend)
}

/// Returns the devices with a default route, in order of preference.
fn default_devices() -> Option<Vec<String>> {
    let mut devices = Vec::new();
    for family in ["-4", "-6"] {
        for line in ip(&format!("{family} route show default"))? {
            if let Some(device) = after(&line, "dev")
                && !devices.iter().any(|known| known == device)
            {
                devices.push(device.to_owned());
            }
        }
    }
    Some(devices)
}

fn routes() -> Check {
    let name = "routes";
    let Some(devices) = default_devices() else {
        return Check::unknown(name, KERNEL, "`ip route` fails");
    };
    let (state, found) = about_routes(&devices);
    Check { name, roles: KERNEL.to_vec(), state, found, mend: Vec::new() }
}

/// Judges the devices with a default route. No command helps, because only the user knows the second line.
fn about_routes(devices: &[String]) -> (State, String) {
    let found = match devices {
        [] => "no default route".to_owned(),
        [one] => format!("a default route through {one} only"),
        _ => return (State::Fine, format!("default routes through {}", devices.join(" "))),
    };
    let remedy = "add one for each line, with its own gateway, device and metric, as in: \
                  ip route add default via 192.0.2.1 dev wwan0 metric 200";
    (State::Missing, format!("{found}; {remedy}"))
}

/// Returns the commands that add the missing endpoints of these devices and addresses, from which the kernel opens
/// further subflows. Returns `None` if the endpoints are unknown, as without CAP_NET_ADMIN.
#[must_use]
pub fn missing_endpoints(of: &[(String, IpAddr)]) -> Option<Vec<String>> {
    let known = ip("mptcp endpoint show")?;
    let known: Vec<&str> = known.iter().filter(|it| joins(it)).filter_map(|it| first(it)).collect();
    let missing = of.iter().filter(|(_, address)| !known.contains(&address.to_string().as_str()));
    let add = |(device, address): &(String, IpAddr)| {
        format!("ip mptcp endpoint add {address} dev {device} subflow")
    };
    Some(missing.map(add).collect())
}

/// Returns whether the kernel opens subflows from an endpoint, given by its line of `ip mptcp endpoint show`.
fn joins(line: &str) -> bool {
    line.contains(" subflow") || line.contains(" fullmesh")
}

fn first(line: &str) -> Option<&str> {
    line.split(' ').next()
}

/// Checks the endpoints, from which the kernel opens further subflows. Every device needs one, except the
/// preferred device, from which connections start.
fn endpoints() -> Check {
    let name = "endpoints";
    let (Some(devices), Some(known)) = (default_devices(), ip("mptcp endpoint show")) else {
        return Check::unknown(name, KERNEL, "`ip mptcp` fails");
    };
    let known: Vec<&str> = known.iter().filter(|it| joins(it)).filter_map(|it| first(it)).collect();
    let mut mend = Vec::new();
    for device in devices.iter().skip(1) {
        let lines = ip(&format!("-o addr show dev {device} scope global")).unwrap_or_default();
        let address = |line: &String| {
            let address = after(line, "inet").or_else(|| after(line, "inet6"))?;
            Some(address.split('/').next()?.to_owned())
        };
        let own: Vec<String> = lines.iter().filter_map(address).collect();
        if let Some(first) = own.first()
            && !own.iter().any(|it| known.contains(&it.as_str()))
        {
            mend.push(format!("ip mptcp endpoint add {first} dev {device} subflow"));
        }
    }
    let found = match known.is_empty() {
        true if devices.len() < 2 => {
            "no endpoint is needed before there is a second line".to_owned()
        }
        true => "no endpoint from which the kernel opens further subflows".to_owned(),
        false => format!("the kernel opens further subflows from {}", known.join(" ")),
    };
    Check::new(name, KERNEL, found, mend)
}

#[cfg(test)]
mod tests {
    use super::{State, about_routes};

    #[test]
    fn one_default_route_is_not_enough() {
        let devices = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(about_routes(&devices(&["eth0", "wwan0"])).0, State::Fine);
        for (names, found) in
            [(&[][..], "no default route; add"), (&["eth0"], "through eth0 only; add")]
        {
            let (state, text) = about_routes(&devices(names));
            assert_eq!(state, State::Missing);
            assert!(text.contains(found), "{text}");
        }
    }
}
