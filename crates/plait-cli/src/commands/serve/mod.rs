//! `plait serve`: Multipath TCP in front of a TCP service.

mod metrics;
mod notify;
mod rules;
mod top;

use crate::commands::address::{address, address_and_port};
use crate::commands::endpoint::{
    EndpointFlags, ended, not_own, own, resolve, set_rules, stop_on_signal,
};
use crate::commands::limits::LimitFlags;
use crate::console::{Console, deliver, remark};
use crate::failure::Failure;
use plait_app::Host;
use plait_core::ConnectionSpec;
use plait_live::{Choice, Happening, Rules, ServeSettings, Server};
use rules::Rule;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait serve --listen 10.77.0.1:80 --to 127.0.0.1:8080 --dry-run
  plait serve --listen [fd77::1]:80 --to 127.0.0.1:8080 --scheduler ecf --cc lia --dry-run";

/// Multipath TCP in front of a TCP service
///
/// Listens on an address of its own behind a TUN device, terminates Multipath TCP there (and plain
/// TCP, where the client or something between speaks no more), and relays each connection to the
/// service. Packets for the address have to reach this host; what is needed here is made at the
/// start and goes with the process, however it ends: a device that is not persistent, and a route
/// through it. Needs CAP_NET_ADMIN, which is dropped once the device is there.
///
/// Exit codes: 0 after TERM, 2 for arguments that cannot be taken, 3 for a missing privilege, 130 after
/// Ctrl-C.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where clients connect to: an address that no device of this host has
    #[arg(long, value_name = "ADDR:PORT", value_parser = address_and_port)]
    listen: SocketAddr,
    /// The TCP service behind it
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    /// An address and port of this host that leads there too, by rules of nftables
    #[arg(long, value_name = "ADDR:PORT", value_parser = address_and_port)]
    public: Option<SocketAddr>,
    /// A further address to listen on, which clients are told of (ADD_ADDR); may be repeated
    #[arg(long, value_name = "ADDR", value_parser = address)]
    advertise: Vec<IpAddr>,
    /// A further port to listen on, with a scheduler of its own; may be repeated
    #[arg(long, value_name = "PORT=SCHEDULER")]
    port: Vec<String>,
    /// Which clients get which scheduler (docs/live.md): lines of `SCHEDULER [port=PORT]
    /// [from=ADDR[/BITS]]`, the first that is for a client counts
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Tell the service each client's address, by the PROXY protocol
    #[arg(long, value_name = "VERSION")]
    proxy_protocol: Option<ProxyProtocol>,
    /// Tell Prometheus how it stands, at http://ADDR:PORT/metrics
    #[arg(long, value_name = "ADDR:PORT", value_parser = address_and_port)]
    metrics: Option<SocketAddr>,
    /// Show connections and their paths on stdout, each second
    #[arg(long)]
    top: bool,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    endpoint: EndpointFlags,
}

/// Which header.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ProxyProtocol {
    /// The binary one
    V2,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let internal = |error: io::Error| Failure::Internal(error.to_string());
    let rules = args.rules()?;
    if let (Some(file), true) = (&args.rules, rules.is_empty()) {
        let file = file.display();
        console.remark(1, &format!("plait: --rules: `{file}` has no rule: ports decide alone"));
    }
    let settings = args.settings(&rules)?;
    let limits = args.limits.limits()?;
    if args.endpoint.dry_run {
        let own = std::iter::once(args.listen.ip()).chain(args.advertise.iter().copied());
        let mut plan = args.endpoint.plan(own);
        if let Some(public) = args.public {
            plan.push_str("rules of nftables:\n");
            plan.push_str(&Rules::public_port(public, args.listen));
        }
        return deliver(&format!("{plan}All of it goes when the process ends.\n"), None);
    }
    let schedulers = Arc::new(args.schedulers(rules));
    let of = Arc::clone(&schedulers);
    let metrics = args.metrics.map(listen).transpose()?;
    let files = args.endpoint.files(Host::Server, BTreeMap::new(), console)?;
    let opened = Server::open(settings);
    let mut server = opened.map_err(|error| args.endpoint.refused("--listen", &error))?;
    server.limit(limits);
    let public = args.public.map(|public| args.lead_there(public)).transpose()?;
    plait_live::drop_capabilities().map_err(internal)?;
    let interrupted = stop_on_signal(server.stopper().map_err(internal)?).map_err(internal)?;
    if let Some(files) = &files {
        server.observe(Box::new(files.clone()));
    }
    if console.chatter > 0 {
        let device = server.device();
        remark(&format_args!("listening on {} behind {device}, to {}", args.listen, args.to));
    }
    if let Some(listener) = metrics {
        metrics::serve(listener, server.asker(), schedulers);
    }
    if args.top {
        top::show(server.asker(), console);
    }
    notify::tell(notify::READY);
    // The picture is not to be written over.
    let wanted = if args.top { 2 } else { 1 };
    let tell = |happening: &Happening| match happening {
        Happening::Accepted { port, rule, .. } => {
            console.remark(wanted, &format!("{happening} scheduler={}", of.of(*port, *rule)));
        }
        _ => console.remark(wanted, &happening.to_string()),
    };
    let served = server.run(tell).map_err(|error| ended(&error));
    drop(public);
    notify::tell(notify::STOPPING);
    let written = files.map_or(Ok(()), |files| files.finish());
    served.and(written)?;
    if interrupted.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The names of schedulers, by port and by the place of a rule.
struct Schedulers {
    ports: BTreeMap<u16, String>,
    rules: Vec<String>,
}

impl Schedulers {
    /// That of connections to a port for which a rule was, or none.
    fn of(&self, port: u16, rule: Option<usize>) -> &str {
        let of_rule = rule.and_then(|place| self.rules.get(place));
        of_rule.or_else(|| self.ports.get(&port)).map_or("", String::as_str)
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address)
        .map_err(|error| Failure::Usage(format!("--metrics: `{address}`: {error}")))
}

impl Args {
    /// The rules of `--rules`; none without it.
    fn rules(&self) -> Result<Vec<Rule>, Failure> {
        let Some(file) = &self.rules else { return Ok(Vec::new()) };
        let further = self.further_ports()?.into_iter().map(|(port, _)| port);
        let ports: Vec<u16> = std::iter::once(self.listen.port()).chain(further).collect();
        rules::read(file, self.listen.is_ipv4(), &ports)
    }

    fn settings(&self, rules: &[Rule]) -> Result<ServeSettings, Failure> {
        let spec = self.spec("--scheduler", &self.endpoint.scheduler)?;
        let to = resolve("--to", &self.to, None)?;
        let family = |address: &IpAddr| address.is_ipv4() == self.listen.is_ipv4();
        let remedy =
            "give one that no device has, as 10.77.0.1:80, and --public ADDR:PORT for the host's";
        not_own("--listen", self.listen.ip(), remedy)?;
        for (at, other) in self.advertise.iter().enumerate() {
            not_own("--advertise", *other, "give one that no device has")?;
            let twice = self.advertise[..at].contains(other);
            if twice || *other == self.listen.ip() {
                let problem = if twice { "it is there twice" } else { "it is that of --listen" };
                let remedy = "give a further address";
                let problem = format!("--advertise: `{other}`: {problem}\n  {remedy}");
                return Err(Failure::Usage(problem));
            }
        }
        self.check_loop(to)?;
        if let Some(other) = self.advertise.iter().find(|address| !family(address)) {
            let problem = format!("--advertise: `{other}` is of another family than --listen");
            return Err(Failure::Usage(problem));
        }
        if self.public.is_some_and(|public| public.is_ipv4() != self.listen.is_ipv4()) {
            let problem = "--public: it is of another family than --listen";
            return Err(Failure::Usage(problem.to_owned()));
        }
        self.public.map_or(Ok(()), |public| own("--public", public.ip()))?;
        let mut ports = Vec::new();
        for (port, scheduler) in self.further_ports()? {
            if port == self.listen.port() || ports.iter().any(|(other, _)| *other == port) {
                return Err(Failure::Usage(format!("--port: {port} is listened on already")));
            }
            ports.push((port, self.spec("--port", scheduler)?));
        }
        let choice = |rule: &Rule| {
            // What a rule names has been looked at where it stands.
            let spec = self.spec("--rules", &rule.scheduler)?;
            Ok(Choice { of: rule.of, spec })
        };
        Ok(ServeSettings {
            listen: self.listen,
            advertise: self.advertise.clone(),
            to,
            device: self.endpoint.device.clone(),
            proxy_header: self.proxy_protocol.is_some(),
            spec,
            ports,
            choices: rules.iter().map(choice).collect::<Result<_, Failure>>()?,
        })
    }

    /// What connections with the scheduler that `flag` names are made from.
    fn spec(&self, flag: &str, scheduler: &str) -> Result<ConnectionSpec, Failure> {
        let mut spec = self.endpoint.spec_with(flag, scheduler)?;
        self.limits.apply(&mut spec);
        Ok(spec)
    }

    /// Refuses a service that is this server itself.
    fn check_loop(&self, to: SocketAddr) -> Result<(), Failure> {
        let (ip, port) = (to.ip().to_canonical(), to.port());
        let flag = match ip {
            _ if ip == self.listen.ip() => "--listen",
            _ if self.advertise.contains(&ip) => "--advertise",
            _ if self.public == Some(SocketAddr::new(ip, port)) => "--public",
            _ => return Ok(()),
        };
        let problem = format!("it leads to this server itself, as {flag} does");
        let remedy = "give where the service listens, as 127.0.0.1:8080";
        Err(Failure::Usage(format!("--to: `{}`: {problem}\n  {remedy}", self.to)))
    }

    /// Sets the rules for the public port.
    fn lead_there(&self, public: SocketAddr) -> Result<Rules, Failure> {
        set_rules("--public", &Rules::public_port(public, self.listen))
    }

    /// The further ports, and the name of the scheduler of each.
    fn further_ports(&self) -> Result<Vec<(u16, &str)>, Failure> {
        let mut all = Vec::new();
        for text in &self.port {
            let (port, scheduler) = text.split_once('=').unwrap_or((text, ""));
            let number = port.parse().ok().filter(|port| *port > 0);
            let number = number.filter(|_| !scheduler.is_empty()).ok_or_else(|| {
                let given = text.escape_debug();
                Failure::Usage(format!("--port: `{given}`\n  allowed: PORT=SCHEDULER, as 443=ecf"))
            })?;
            all.push((number, scheduler));
        }
        Ok(all)
    }

    /// The schedulers, for metrics. Only of arguments that `settings` has taken.
    fn schedulers(&self, rules: Vec<Rule>) -> Schedulers {
        let further = self.further_ports().unwrap_or_default();
        let further = further.into_iter().map(|(port, name)| (port, name.to_owned()));
        let own = (self.listen.port(), self.endpoint.scheduler.clone());
        Schedulers {
            ports: further.chain([own]).collect(),
            rules: rules.into_iter().map(|rule| rule.scheduler).collect(),
        }
    }
}
