//! `plait serve`: Multipath TCP in front of a TCP service.

mod reach;
mod rules;
mod top;

use crate::commands::live::endpoint::{EndpointFlags, ended, resolve, set_rules, stop_on_signal};
use crate::commands::live::key;
use crate::commands::live::limits::LimitFlags;
use crate::commands::live::prices::{ServePrices, ServerPrices, named};
use crate::console::{Console, deliver, remark};
use crate::failure::Failure;
use crate::log;
use plait_app::Role;
use plait_core::ConnectionSpec;
use plait_live::HostState;
use plait_live::argument::{address, address_and_port};
use plait_live::{
    Choice, LogEvent, Rules, ServeSettings, Server, ServiceAddress, Target, metrics, systemd,
};
use plait_report::metrics::{Schedulers, render};
use plait_sched::Goal;
use reach::Reach;
use rules::Rule;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait serve --listen 10.77.0.1:80 --to 127.0.0.1:8080 --dry-run
  plait serve --listen [fd77::1]:80 --to 127.0.0.1:8080 --cc lia --dry-run";

/// Serve a TCP service over Multipath TCP
///
/// Listens on an address of its own behind a TUN device, terminates Multipath TCP there, and relays
/// each connection to the service. If the client or a middlebox supports only plain TCP, the connection
/// is plain TCP. Packets for the address must reach this host. The server creates a device and a route
/// when it starts; both disappear with the process, however it ends. Needs CAP_NET_ADMIN, and drops it
/// after it has created the device.
///
/// Exit codes: 0 after TERM; 2 for wrong arguments, or a capture that can no longer be written; 3 for a
/// missing privilege or a removed device; 130 after Ctrl-C.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address for clients; no device of this host may have it
    #[arg(long, value_name = "ADDR:PORT", value_parser = address_and_port)]
    listen: SocketAddr,
    /// TCP service to which the server relays each connection
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "key")]
    to: Option<String>,
    /// Relay each connection to the destination that `plait proxy --through` requests, in place of --to
    ///
    /// The file has the key of both ends, at least 32 bytes. Requests with another key are refused. Names are
    /// resolved on this host. Addresses of this host itself (127.0.0.1) are refused.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "proxy_protocol"])]
    key: Option<PathBuf>,
    /// Address of this host for clients; may be repeated
    ///
    /// Rules of nftables redirect its connections to the server: to the same port if --port has it,
    /// otherwise to the port of --listen.
    #[arg(long, value_name = "ADDR:PORT", value_parser = address_and_port)]
    public: Vec<SocketAddr>,
    /// A further address that the server advertises to clients (ADD_ADDR); may be repeated
    ///
    /// If a device of this host has the address, rules of nftables redirect it to the server.
    #[arg(long, hide_short_help = true, value_name = "ADDR", value_parser = address)]
    advertise: Vec<IpAddr>,
    /// A further port to listen on, with its own scheduler; may be repeated
    #[arg(long, hide_short_help = true, value_name = "PORT=SCHEDULER")]
    port: Vec<String>,
    /// Choose the scheduler by the client's address and port
    ///
    /// Each line of the file is `SCHEDULER [port=PORT] [from=ADDR[/BITS]] [goal=GOAL]`. The first line that
    /// matches applies.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Send each client's address to the service, by the PROXY protocol
    #[arg(long, hide_short_help = true, value_name = "VERSION")]
    proxy_protocol: Option<ProxyProtocol>,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics
    #[arg(long, hide_short_help = true, value_name = "ADDR:PORT", value_parser = address_and_port)]
    metrics: Option<SocketAddr>,
    /// Show connections and paths every second
    #[arg(long)]
    top: bool,
    #[command(flatten, next_help_heading = "Prices")]
    prices: ServePrices,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitFlags,
    #[command(flatten, next_help_heading = "Connections and device")]
    endpoint: EndpointFlags,
}

/// Which header.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ProxyProtocol {
    /// The binary version
    V2,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let internal = |error: io::Error| Failure::Internal(error.to_string());
    let rules = args.rules()?;
    if let (Some(file), true) = (&args.rules, rules.is_empty()) {
        let file = file.display();
        console.remark(
            1,
            &format!("plait: --rules: `{file}` has no rule: only the port selects the scheduler"),
        );
    }
    let ports = args.ports()?;
    let reach = Reach::of(args, &ports)?;
    let prices = args.prices.read(args.listen.is_ipv4(), &args.served()?)?;
    let settings = args.settings(&rules, &reach, &prices)?;
    let limits = args.limits.limits()?;
    if args.endpoint.dry_run {
        return deliver(&args.plan(&reach), None);
    }
    let schedulers = Arc::new(args.schedulers(rules, &prices));
    let of = Arc::clone(&schedulers);
    let metrics = args.metrics.map(listen).transpose()?;
    let memory = args.endpoint.memory.open("serve", Vec::new(), console)?;
    let files = args.endpoint.files(Role::Server, BTreeMap::new(), console)?;
    let opened = Server::open(settings);
    let mut server = opened.map_err(|error| args.endpoint.refused("--listen", &error))?;
    server.limit(limits);
    memory.iter().for_each(|it| server.remember_paths(&it.settings, &it.entries));
    server.drain_for(args.limits.drain);
    let own = std::iter::once(args.listen.ip());
    let host = HostState::look(server.device(), server.short_queue(), own);
    let translation = match reach.rules.is_empty() {
        true => None,
        false => Some(set_rules(reach.flag(), &reach.rules)?),
    };
    args.endpoint.drop_privileges()?;
    let interrupted = stop_on_signal(server.stopper().map_err(internal)?).map_err(internal)?;
    log::start().map_err(internal)?;
    if let Some(files) = &files {
        server.observe(Box::new(files.clone()));
    }
    if console.chatter > 0 {
        remark(&args.announcement(server.device()));
    }
    host.problems().iter().for_each(|problem| console.remark(1, problem));
    if let Some(listener) = metrics {
        let asker = server.asker();
        metrics::serve(listener, move || Some(render(&asker.ask()?, &schedulers)));
    }
    if args.top {
        top::show(server.asker(), console);
    }
    systemd::tell(systemd::READY);
    systemd::watch(server.asker());
    // Other lines would overwrite the display of `--top`.
    let wanted = if args.top { 2 } else { 1 };
    let tell = |happening: &LogEvent| match happening {
        LogEvent::Accepted { port, rule, .. } => {
            console.remark(wanted, &format!("{happening} scheduler={}", of.of(*port, *rule)));
        }
        _ => console.remark(wanted, &happening.to_string()),
    };
    let served = server.run(tell).map_err(|error| ended(&error));
    drop(translation);
    prices.rests().iter().for_each(|line| console.remark(1, line));
    memory.into_iter().for_each(|it| it.close(&server.remembered_paths(), console));
    systemd::tell(systemd::STOPPING);
    served.and(files.map_or(Ok(()), |files| files.finish()).map_err(Failure::from))?;
    if interrupted.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        let remedy = "give a free address and port of this host";
        Failure::Usage(format!("--metrics: `{address}`: {error}\n  {remedy}"))
    })
}

impl Args {
    /// Reads the rules of `--rules`; empty without the flag.
    fn rules(&self) -> Result<Vec<Rule>, Failure> {
        let Some(file) = &self.rules else { return Ok(Vec::new()) };
        rules::read(file, self.listen.is_ipv4(), &self.ports()?)
    }

    /// Returns all ports to listen on, first that of `--listen`.
    fn ports(&self) -> Result<Vec<u16>, Failure> {
        Ok(self.served()?.into_iter().map(|(port, _)| port).collect())
    }

    /// Returns all ports to listen on with their schedulers, first those of `--listen`.
    fn served(&self) -> Result<Vec<(u16, &str)>, Failure> {
        let own = (self.listen.port(), self.endpoint.scheduler.as_str());
        Ok(std::iter::once(own).chain(self.further_ports()?).collect())
    }

    /// Describes the settings that would be made.
    fn plan(&self, reach: &Reach) -> String {
        let own = std::iter::once(self.listen.ip());
        let mut plan = self.endpoint.plan(own.chain(reach.further.iter().map(|it| it.local)));
        if !reach.rules.is_empty() {
            plan.push_str("rules of nftables:\n");
            plan.push_str(&Rules::text(&reach.rules));
        }
        plan + "All of this is removed when the process ends.\n"
    }

    fn settings(
        &self,
        rules: &[Rule],
        reach: &Reach,
        prices: &ServerPrices,
    ) -> Result<ServeSettings, Failure> {
        let goal = prices.goal(None, Some(self.listen.port()));
        let spec = self.spec("--scheduler", &self.endpoint.scheduler, goal)?;
        let to = self.target(reach)?;
        let mut ports = Vec::new();
        for (port, scheduler) in self.further_ports()? {
            if port == self.listen.port() || ports.iter().any(|(other, _)| *other == port) {
                return Err(Failure::Usage(format!(
                    "--port: {port} is given twice\n  give each port once"
                )));
            }
            ports.push((port, self.spec("--port", scheduler, prices.goal(None, Some(port)))?));
        }
        let choice = |rule: &Rule| {
            // The scheduler of a rule was checked when the file was read.
            let spec = self.spec("--rules", &rule.scheduler, rule.goal(prices))?;
            Ok(Choice { of: rule.of, spec })
        };
        Ok(ServeSettings {
            listen: self.listen,
            further: reach.further.clone(),
            to,
            device: self.endpoint.device.clone(),
            proxy_header: self.proxy_protocol.is_some(),
            spec,
            ports,
            costs: prices.costs.clone(),
            quotas: prices.quotas.clone(),
            choices: rules.iter().map(choice).collect::<Result<_, Failure>>()?,
        })
    }

    /// Returns the settings of connections with the scheduler that `flag` names.
    fn spec(
        &self,
        flag: &str,
        scheduler: &str,
        goal: Option<Goal>,
    ) -> Result<ConnectionSpec, Failure> {
        let mut spec = self.endpoint.spec_with(flag, scheduler, goal)?;
        self.limits.apply(&mut spec);
        Ok(spec)
    }

    /// Returns the line for the log when the server listens.
    fn announcement(&self, device: &str) -> String {
        let to = self.to.as_deref().unwrap_or("requested destinations");
        format!("listening on {} behind {device}, to {to}", self.listen)
    }

    /// Returns where connections are relayed to.
    fn target(&self, reach: &Reach) -> Result<Target, Failure> {
        if let Some(file) = &self.key {
            return Ok(Target::Requested(key::read(file)?));
        }
        // The parser requires one of both flags.
        let text = self.to.as_deref().unwrap_or_default();
        let to = resolve("--to", text, None)?;
        self.check_loop(text, to, reach)?;
        Ok(Target::Service(to))
    }

    /// Fails if the service, given as `text`, is this server itself.
    fn check_loop(&self, text: &str, to: SocketAddr, reach: &Reach) -> Result<(), Failure> {
        let (ip, port) = (to.ip().to_canonical(), to.port());
        let own = |further: &&ServiceAddress| further.local == ip;
        let flag = match reach.further.iter().find(own) {
            _ if ip == self.listen.ip() => "--listen",
            Some(_) => "--advertise",
            None if reach.leads(SocketAddr::new(ip, port)) => reach.flag(),
            None => return Ok(()),
        };
        let problem = format!("it leads to this server itself, as {flag} does");
        let remedy = "give the address of the service, such as 127.0.0.1:8080";
        Err(Failure::Usage(format!("--to: `{text}`: {problem}\n  {remedy}")))
    }

    /// Returns the further ports, each with the name of its scheduler.
    fn further_ports(&self) -> Result<Vec<(u16, &str)>, Failure> {
        let mut all = Vec::new();
        for text in &self.port {
            let (port, scheduler) = text.split_once('=').unwrap_or((text, ""));
            let number = port.parse().ok().filter(|port| *port > 0);
            let number = number.filter(|_| !scheduler.is_empty()).ok_or_else(|| {
                let given = text.escape_debug();
                Failure::Usage(format!(
                    "--port: `{given}`\n  allowed: PORT=SCHEDULER, such as 443=ecf"
                ))
            })?;
            all.push((number, scheduler));
        }
        Ok(all)
    }

    /// Returns the schedulers, for metrics. Call it only after `settings` has accepted the arguments.
    fn schedulers(&self, rules: Vec<Rule>, prices: &ServerPrices) -> Schedulers {
        let further = self.further_ports().unwrap_or_default();
        let own = (self.listen.port(), self.endpoint.scheduler.as_str());
        let all = further.into_iter().chain([own]);
        let of_rule = |rule: Rule| named(&rule.scheduler, rule.goal(prices));
        Schedulers {
            ports: all
                .map(|(port, name)| (port, named(name, prices.goal(None, Some(port)))))
                .collect(),
            rules: rules.into_iter().map(of_rule).collect(),
        }
    }
}
