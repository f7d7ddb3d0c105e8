//! `plait serve`: Multipath TCP in front of a TCP service.

use crate::commands::list::spec_problem;
use crate::console::{Console, deliver};
use crate::failure::Failure;
use plait_core::{Config, ConnectionSpec};
use plait_live::{Happening, ServeSettings, Server};
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  plait serve --listen 10.77.0.1:80 --to 127.0.0.1:8080 --dry-run
  plait serve --listen [fd77::1]:80 --to localhost:8080 --scheduler ecf --cc lia --dry-run";

/// Multipath TCP in front of a TCP service
///
/// Listens on an address of its own behind a TUN device, terminates Multipath TCP there (and plain
/// TCP, where the client or something between speaks no more), and relays each connection to the
/// service. Packets for the address have to reach this host; what is needed here is made at the
/// start and goes with the process, however it ends: a device that is not persistent, and a route
/// through it. Needs CAP_NET_ADMIN, which is dropped once the device is there.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where clients connect to: an address that no device of this host has
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// The TCP service behind it
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    /// The scheduler of every connection
    #[arg(long, value_name = "SCHEDULER", default_value = "minrtt")]
    scheduler: String,
    /// The congestion controller of every subflow
    #[arg(long, value_name = "CC", default_value = "cubic")]
    cc: String,
    /// A further address to listen on, which clients are told of (ADD_ADDR); may be repeated
    #[arg(long, value_name = "ADDR")]
    advertise: Vec<IpAddr>,
    /// Name of the TUN device; a `%d` in it becomes the next free number
    #[arg(long, value_name = "NAME", default_value = "plait%d")]
    device: String,
    /// Say what would be set, and set nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let settings = args.settings()?;
    if args.dry_run {
        return deliver(&plan(&settings), None);
    }
    let mut server = Server::open(settings).map_err(|error| refused(args, &error))?;
    plait_live::drop_capabilities().map_err(|error| Failure::Internal(error.to_string()))?;
    let mut stopper = server.stopper().map_err(|error| Failure::Internal(error.to_string()))?;
    let handler = move || {
        let _ = stopper.write_all(&[0]);
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::Internal(error.to_string()))?;
    if console.chatter > 0 {
        eprintln!("listening on {} behind {}, to {}", args.listen, server.device(), args.to);
    }
    let tell = |happening: &Happening| {
        if console.chatter > 0 {
            eprintln!("{happening}");
        }
    };
    server.run(tell).map_err(|error| Failure::Internal(error.to_string()))
}

impl Args {
    fn settings(&self) -> Result<ServeSettings, Failure> {
        let scheduler = plait_sched::Spec::parse(&self.scheduler)
            .map_err(|error| Failure::Usage(format!("--scheduler: {}", spec_problem(&error))))?;
        let controller = plait_cc::Spec::parse(&self.cc)
            .map_err(|error| Failure::Usage(format!("--cc: {}", cc_problem(&error))))?;
        let found = self.to.to_socket_addrs().map(|mut found| found.next());
        let to = match found {
            Ok(Some(to)) => to,
            Ok(None) => {
                return Err(Failure::Usage(format!("--to: `{}` has no address", self.to)));
            }
            Err(error) => {
                let problem = format!("--to: `{}`: {error}\n  allowed: HOST:PORT", self.to);
                return Err(Failure::Usage(problem));
            }
        };
        let family = |address: &IpAddr| address.is_ipv4() == self.listen.is_ipv4();
        if let Some(other) = self.advertise.iter().find(|address| !family(address)) {
            let problem = format!("--advertise: `{other}` is of another family than --listen");
            return Err(Failure::Usage(problem));
        }
        Ok(ServeSettings {
            listen: self.listen,
            advertise: self.advertise.clone(),
            to,
            device: self.device.clone(),
            spec: ConnectionSpec {
                config: Config::default(),
                paths: Vec::new(),
                scheduler: Arc::new(move || scheduler.build()),
                controller: Arc::new(move |_| controller.build()),
                addresses: Vec::new(),
            },
        })
    }
}

fn cc_problem(error: &plait_cc::SpecError) -> String {
    let allowed = error.allowed();
    let near = plait_app::name::nearest(error.given(), allowed.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("{error}{near}")
}

/// What would be set, as one would set it by hand.
fn plan(settings: &ServeSettings) -> String {
    let device = settings.device.replace("%d", "0");
    let mtu = settings.spec.config.mtu;
    let mut lines = format!(
        "TUN device {device}, not persistent, MTU {mtu}, up\n\
         as by: ip tuntap add {device} mode tun; ip link set {device} mtu {mtu} up\n"
    );
    for address in std::iter::once(settings.listen.ip()).chain(settings.advertise.clone()) {
        lines.push_str(&format!("as by: ip route add {address} dev {device}\n"));
    }
    lines.push_str("All of it goes when the process ends.\n");
    lines
}

/// Why there is no server, and what would help.
fn refused(args: &Args, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::Privilege(format!(
            "no TUN device: {error}\n  it needs CAP_NET_ADMIN: run it as root, or once: \
             setcap cap_net_admin+ep \"$(command -v plait)\""
        )),
        ErrorKind::NotFound => Failure::Privilege(
            "no TUN device: /dev/net/tun is not there\n  load the driver: modprobe tun".to_owned(),
        ),
        ErrorKind::AlreadyExists => Failure::Usage(format!(
            "--listen: there is a route for {} already\n  see it: ip route show {}",
            args.listen.ip(),
            args.listen.ip()
        )),
        _ => Failure::Usage(format!("no TUN device `{}`: {error}", args.device)),
    }
}
