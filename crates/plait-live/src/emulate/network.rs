//! A client's and a server's namespace, joined by emulated paths.

use super::{Emulator, Path, Report, Strip, TimeZero};
use crate::{Device, Namespace};
use plait_link::LinkConfig;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// MTU of each device.
const MTU: u16 = 1_500;
/// Number of the first routing table.
const FIRST_TABLE: usize = 101;

/// A path of a network.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name, which is also that of its device in both namespaces.
    pub name: String,
    /// Server to client.
    pub down: LinkConfig,
    /// Client to server.
    pub up: LinkConfig,
    /// Whether the client's kernel uses it only if no other path works.
    pub backup: bool,
}

/// A client's and a server's namespace, joined by emulated paths.
///
/// Each path is a device in both namespaces. The client's addresses are endpoints of its kernel, so Multipath TCP
/// joins from all of them. A connection begins on the first path, unless its socket is bound to an address of
/// another one. When this value is dropped, the devices are gone, and the kernel removes the namespaces after
/// their last process.
#[derive(Debug)]
pub struct Network {
    /// The client's side.
    pub client: Namespace,
    /// The server's side.
    pub server: Namespace,
    emulator: Emulator,
}

impl Network {
    /// The address of the server. Every path leads to it.
    pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
    /// Maximum number of paths: the kernel has as many endpoints.
    pub const MOST_PATHS: usize = 8;
    /// The settings of both namespaces. Answers may leave by another path than the requests, and plait needs
    /// forwarding. The links carry IPv4: their devices have no IPv6 addresses, for which kernels would send packets.
    pub const SYSCTLS: [(&str, &str); 4] = [
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.default.disable_ipv6", "1"),
    ];
    /// Longest name of a device in bytes.
    pub const LONGEST_NAME: usize = 15;

    /// Returns the client's address on the path with this number.
    #[must_use]
    pub fn client_address(path: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 98, path as u8 + 1, 1)
    }

    /// Returns the server's address on the path with this number.
    #[must_use]
    pub fn server_address(path: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 98, path as u8 + 1, 2)
    }

    /// Creates the namespaces and devices, and emulates `lines` between them. All random numbers of the links
    /// derive from `seed`, and their time begins at `zero`. The server's namespace does not have [`Network::SERVER`] yet.
    ///
    /// # Errors
    /// If the process may not create namespaces and devices, if the kernel has no Multipath TCP, or if there are
    /// more than [`Network::MOST_PATHS`] lines. [`ErrorKind::NotFound`]: there is no program `ip`.
    pub fn build(lines: &[Line], seed: u64, zero: TimeZero) -> io::Result<Network> {
        if lines.len() > Network::MOST_PATHS {
            return Err(io::Error::other(format!("more than {} paths", Network::MOST_PATHS)));
        }
        let (client, server) = (Namespace::create()?, Namespace::create()?);
        for space in [&client, &server] {
            space.within(prepare)??;
        }
        let mut paths = Vec::new();
        for line in lines {
            let open = |space: &Namespace| {
                space.within(|| Device::open(&line.name, MTU)).and_then(|it| it)
            };
            paths.push(Path {
                name: line.name.clone(),
                client: open(&client)?,
                server: open(&server)?,
                down: line.down.clone(),
                up: line.up.clone(),
                strip: Strip::Nothing,
            });
        }
        client.within(|| configure(&Network::client_commands(lines)))??;
        server.within(|| configure(&Network::server_commands(lines)))??;
        let emulator = Emulator::start_realtime(paths, seed, zero)?;
        Ok(Network { client, server, emulator })
    }

    /// Adds [`Network::SERVER`] to the server's kernel.
    ///
    /// # Errors
    /// If the process may not do so.
    pub fn add_server_address(&self) -> io::Result<()> {
        let command = format!("address add {}/32 dev lo\n", Network::SERVER);
        self.server.within(|| configure(&command))?
    }

    /// Returns the switch that cuts the path with this number.
    #[must_use]
    pub fn cut(&self, path: usize) -> Option<super::Switch> {
        self.emulator.cut(path)
    }

    /// Returns the gauges of the links.
    #[must_use]
    pub fn gauges(&self) -> super::Gauges {
        self.emulator.gauges()
    }

    /// Ends the emulation.
    ///
    /// # Errors
    /// If the emulation had already failed.
    pub fn stop(self) -> io::Result<Report> {
        self.emulator.stop()
    }

    /// Returns the commands of `ip` for the client's side, one in each line.
    #[must_use]
    pub fn client_commands(lines: &[Line]) -> String {
        let mut all =
            "link set lo up\nmptcp limits set subflows 8 add_addr_accepted 8\n".to_owned();
        for (at, line) in lines.iter().enumerate() {
            let (name, table) = (&line.name, FIRST_TABLE + at);
            let (ours, theirs) = (Network::client_address(at), Network::server_address(at));
            let backup = if line.backup { " backup" } else { "" };
            let metric = 10 * (at + 1);
            let _ = write!(
                all,
                "address add {ours}/24 dev {name}\n\
                 rule add from {ours} table {table}\n\
                 route add default via {theirs} dev {name} table {table}\n\
                 route add default via {theirs} dev {name} metric {metric}\n\
                 mptcp endpoint add {ours} dev {name} subflow{backup}\n"
            );
        }
        all
    }

    /// Returns the commands of `ip` for the server's side, one in each line.
    #[must_use]
    pub fn server_commands(lines: &[Line]) -> String {
        let mut all =
            "link set lo up\nmptcp limits set subflows 8 add_addr_accepted 8\n".to_owned();
        for (at, line) in lines.iter().enumerate() {
            let theirs = Network::server_address(at);
            let _ = writeln!(all, "address add {theirs}/24 dev {}", line.name);
        }
        all
    }
}

/// Sets the sysctls of the namespace of the calling thread.
fn prepare() -> io::Result<()> {
    for (key, value) in Network::SYSCTLS {
        match fs::write(format!("/proc/sys/{}", key.replace('.', "/")), value) {
            // The kernel has no IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound && key.contains("ipv6") => {}
            written => written?,
        }
    }
    Ok(())
}

/// Runs commands of `ip` in the namespace of the calling thread.
fn configure(commands: &str) -> io::Result<()> {
    let mut ip = Command::new("ip");
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ip.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => io::Error::new(ErrorKind::NotFound, "there is no program `ip`"),
        _ => error,
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(commands.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    let problem = problem.lines().next().unwrap_or("it failed").to_owned();
    Err(io::Error::other(format!("ip: {problem}")))
}
