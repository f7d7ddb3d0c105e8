//! Connections of a proxy through a server that relays them (`plait serve --key`).

use crate::commands::live::endpoint::{astray, is_device, resolve};
use crate::commands::live::key;
use crate::console::Console;
use crate::failure::Failure;
use plait_live::argument::not_dialled;
use plait_live::{Destination, Dial, Dialler, LanConnection, LanListener, Origin, Request, now_s};
use plait_live::{RequestKey, Rule};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Wait after an error of accepting, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Flags of a proxy with a server.
#[derive(clap::Args, Debug)]
pub(crate) struct ThroughFlags {
    /// Connect through the `plait serve --key` at this address
    ///
    /// Names are then resolved at the server, and downloads are scheduled by it.
    #[arg(long, value_name = "HOST:PORT", requires = "key")]
    through: Option<String>,
    /// The file with the key of both ends, at least 32 bytes
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "through")]
    key: Option<PathBuf>,
    /// Relay all TCP connections that arrive by this device; may be repeated
    ///
    /// Rules of nftables redirect connections to other hosts to this proxy. UDP and connections to this host
    /// are not redirected.
    #[arg(long, value_name = "DEVICE", requires = "through")]
    lan: Vec<String>,
}

/// A server that relays, and the key for it.
#[derive(Clone, Debug)]
pub(super) struct Through {
    pub(super) server: SocketAddr,
    key: RequestKey,
}

impl ThroughFlags {
    /// Returns the server, if there is one. `via` are the addresses to dial from.
    pub(super) fn server(&self, via: &[Origin]) -> Result<Option<Through>, Failure> {
        let (Some(text), Some(file)) = (&self.through, &self.key) else { return Ok(None) };
        let first = via.first().is_none_or(|it| it.address.is_ipv4());
        let both = via.iter().any(|it| it.address.is_ipv4() != first);
        let server = resolve("--through", text, (!both).then_some(("--via", first)))?;
        match not_dialled(server.ip()).or_else(|| astray("--via", server.ip(), via)) {
            None => Ok(Some(Through { server, key: key::read(file)? })),
            Some(problem) => Err(Failure::Usage(format!("--through: `{text}`: {problem}"))),
        }
    }

    /// Returns the rules that redirect connections of the devices to `port`.
    pub(super) fn rules(&self, port: u16) -> Vec<Rule> {
        let rule = |device: &String| Rule::Intercept { device: device.clone(), port };
        self.lan.iter().map(rule).collect()
    }

    /// Fails if this host lacks one of the devices of --lan.
    pub(super) fn check_devices(&self) -> Result<(), Failure> {
        match self.lan.iter().find(|name| !is_device(name)) {
            None => Ok(()),
            Some(name) => Err(Failure::Usage(format!(
                "--lan: `{}`: this host has no such device\n  see them: ip link",
                name.escape_debug()
            ))),
        }
    }

    /// Returns the flags that need rules.
    pub(super) fn flag(&self) -> &'static str {
        if self.lan.is_empty() { "--via" } else { "--lan and --via" }
    }

    /// Returns the line for the log when the proxy relays connections of the devices.
    pub(super) fn announcement(&self, through: &Through) -> String {
        let (lan, server) = (self.lan.join(", "), through.server);
        format!("relaying TCP connections that arrive by {lan}, through {server}")
    }

    /// Opens the sockets for redirected connections, if a device is given.
    pub(super) fn listen(&self) -> Result<Option<LanListener>, Failure> {
        if self.lan.is_empty() {
            return Ok(None);
        }
        let listener = LanListener::open();
        listener.map(Some).map_err(|error| Failure::Internal(format!("--lan: {error}")))
    }
}

impl Through {
    /// Returns the request for a connection of `by` to a destination.
    pub(super) fn request(&self, by: SocketAddr, to: Destination) -> Vec<u8> {
        Request { by, to }.encode(&self.key, now_s())
    }

    /// Dials for each redirected connection, on a thread for each family.
    #[expect(clippy::disallowed_methods, reason = "a thread of its own waits for file descriptors")]
    pub(super) fn relay(&self, listener: LanListener, dialler: &Dialler, console: Console) {
        for socket in listener.into_sockets() {
            let (through, dialler) = (self.clone(), dialler.clone());
            thread::spawn(move || {
                loop {
                    let LanConnection { socket, by, to } = match LanListener::accept(&socket) {
                        Ok(connection) => connection,
                        Err(error) => {
                            console.remark(2, &format!("event=not-accepted problem=\"{error}\""));
                            thread::sleep(PAUSE);
                            continue;
                        }
                    };
                    let request = through.request(by, Destination::Address(to));
                    if !dialler.dial(Dial { to: through.server, socket, greeting: None, request }) {
                        break;
                    }
                }
            });
        }
    }
}
