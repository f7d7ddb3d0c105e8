//! `plait proxy`: Multipath TCP for local programs that use SOCKS, and for the hosts of a network.

mod through;

use crate::commands::live::endpoint::{EndpointFlags, astray, ended, origins, stop_on_signal};
use crate::commands::live::limits::{DialFlags, LimitFlags};
use crate::commands::live::prices::{DialPrices, rests};
use crate::console::{Console, deliver};
use crate::failure::Failure;
use crate::log;
use plait_app::Role;
use plait_live::HostState;
use plait_live::argument::{address_and_port, not_dialled};
use plait_live::socks::{self, Reply};
use plait_live::{Client, Dial, DialSettings, Dialler, Greeting, LogEvent, Origin};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use through::{Through, ThroughFlags};

/// Time that a program has to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest number of programs that are connected but have not sent their request. Further ones are
/// disconnected.
const MAX_UNDECIDED: usize = 256;

const EXAMPLES: &str = "Examples:
  plait proxy --socks 127.0.0.1:1080 --via 10.98.1.77 --via 10.98.2.77 --dry-run
  plait proxy --socks [::1]:1080 --via fd98::77 --scheduler redundant --dry-run";

/// Run a proxy over Multipath TCP for programs or a network
///
/// Accepts SOCKS 5 (CONNECT; addresses and names) and connects over several paths, as `plait get` does.
/// If a server does not support Multipath TCP, the connection is plain TCP over the first path. Each
/// --via is an address of its own behind a TUN device. Packets for it must reach this host, and this host
/// must forward them. With --through, connections go to a `plait serve --key`, which relays them to their
/// destinations and schedules the downloads. Needs CAP_NET_ADMIN, and CAP_NET_RAW for `@DEVICE`; drops both before it sends any
/// packet.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address for local programs; every program that reaches it can use it
    #[arg(long, value_name = "ADDR:PORT", value_parser = address_and_port, required_unless_present = "lan")]
    socks: Option<SocketAddr>,
    /// Address or device to dial from; may be repeated
    ///
    /// No device of this host may have the address. With `@DEVICE`, its packets leave by that device.
    /// With a device alone, they leave with the address of the device (IPv4), by rules of nftables.
    /// A connection begins on the first path of its address family.
    #[arg(long, value_name = "ADDR[@DEVICE]|DEVICE", required = true)]
    via: Vec<String>,
    #[command(flatten)]
    through: ThroughFlags,
    #[command(flatten, next_help_heading = "Prices")]
    prices: DialPrices,
    #[command(flatten, next_help_heading = "Limits")]
    dial: DialFlags,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitFlags,
    #[command(flatten, next_help_heading = "Connections and device")]
    endpoint: EndpointFlags,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let internal = |error: io::Error| Failure::Internal(error.to_string());
    let mut from = origins("--via", &args.via)?;
    let goal = args.prices.set("--via", &mut from.all, &args.endpoint.scheduler)?;
    let mut spec = args.endpoint.spec(goal)?;
    args.limits.apply(&mut spec);
    let limits = args.limits.limits()?;
    from.check_devices("--via")?;
    args.through.check_devices()?;
    let through = args.through.server(&from.all)?;
    if args.endpoint.dry_run {
        return deliver(&args.endpoint.plan_for(&from, args.through.rules(0)), None);
    }
    let memory = args.endpoint.memory.open("proxy", from.aliases(), console)?;
    let files = args.endpoint.files_for(Role::Client, &from.all, console)?;
    let listener = args.socks.map(bind).transpose()?;
    let lan = args.through.listen()?;
    let via = from.all.clone();
    let priced = via.clone();
    let rules = lan.as_ref().map_or_else(Vec::new, |lan| args.through.rules(lan.port()));
    let hiding = from.hide(args.through.flag(), rules)?;
    let device = args.endpoint.device.clone();
    let opened = Client::open(DialSettings { from: from.all, device, spec });
    let mut client = opened.map_err(|error| args.endpoint.refused("--via", &error))?;
    args.dial.apply(&mut client);
    let host =
        HostState::look(client.device(), client.short_queue(), via.iter().map(|it| it.address));
    client.limit(limits);
    memory.iter().for_each(|it| client.remember_paths(&it.settings, &it.entries));
    client.drain_for(args.limits.drain);
    args.endpoint.drop_privileges()?;
    let interrupted = stop_on_signal(client.stopper().map_err(internal)?).map_err(internal)?;
    log::start().map_err(internal)?;
    if let Some(files) = &files {
        client.observe(Box::new(files.clone()));
    }
    if let (Some(through), Some(lan)) = (&through, lan) {
        through.relay(lan, &client.dialler(), console);
        console.remark(1, &args.through.announcement(through));
    }
    if let Some((listener, address)) = listener.zip(args.socks) {
        listen(listener, Ways { dialler: client.dialler(), via: via.into(), through }, console);
        console.remark(1, &format!("listening on {address}"));
    }
    host.problems().iter().for_each(|problem| console.remark(1, problem));
    let served = client.serve(|happening: &LogEvent| {
        use LogEvent::{Device, TurnedAway, Unreached};
        let rare = matches!(happening, Unreached { .. } | TurnedAway { .. } | Device { .. });
        let level = if rare { 1 } else { 2 };
        console.remark(level, &happening.to_string());
    });
    drop(hiding);
    rests(&priced).iter().for_each(|line| console.remark(1, line));
    memory.into_iter().for_each(|it| it.close(&client.remembered_paths(), console));
    files.map_or(Ok(()), |files| files.finish())?;
    served.map_err(|error| ended(&error))?;
    if interrupted.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        let remedy = "give a free address and port of this host";
        Failure::Usage(format!("--socks: `{address}`: {error}\n  {remedy}"))
    })
}

/// The ways to the destinations of programs.
#[derive(Clone)]
struct Ways {
    dialler: Dialler,
    /// Addresses to dial from.
    via: Arc<[Origin]>,
    /// The server that relays, if there is one.
    through: Option<Through>,
}

/// Accepts programs, reads the request of each on its own thread, and dials.
fn listen(listener: TcpListener, ways: Ways, console: Console) {
    let guests = Arc::new(());
    thread::spawn(move || {
        let mut refused = 0_u64;
        for stream in listener.incoming().flatten() {
            if Arc::strong_count(&guests) > MAX_UNDECIDED {
                refused += 1;
                // Refused programs are counted, not logged one by one, so that they cannot fill the log.
                if refused.is_power_of_two() {
                    console.remark(1, &turned_away(refused));
                }
                continue;
            }
            let (guest, ways) = (Arc::clone(&guests), ways.clone());
            thread::spawn(move || {
                // A program that does not speak SOCKS, or disconnects, gets no answer.
                let _ = hear(stream, &ways, console);
                drop(guest);
            });
        }
    });
}

/// Returns the log line about programs that were disconnected.
fn turned_away(count: u64) -> String {
    let problem = format!("{MAX_UNDECIDED} programs have connected without a request");
    let seconds = REQUEST_TIMEOUT.as_secs();
    format!(
        "event=programs-turned-away count={count} problem=\"{problem}; each has {seconds} s for it\""
    )
}

fn hear(mut stream: TcpStream, ways: &Ways, console: Console) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_nodelay(true)?;
    let asked = match &ways.through {
        Some(through) => {
            let by = stream.peer_addr()?;
            let asked = socks::destination(&mut stream)?;
            asked.map(|to| (through.server, through.request(by, to)))
        }
        None => ways.asked(&mut stream, console)?.map(|to| (to, Vec::new())),
    };
    match asked {
        Ok((to, request)) => {
            let greeting = Greeting {
                connected: Reply::Succeeded.bytes().to_vec(),
                refused: Reply::Refused.bytes().to_vec(),
                silent: Reply::HostUnreachable.bytes().to_vec(),
                full: Reply::Failed.bytes().to_vec(),
            };
            let (socket, greeting) = (stream.into(), Some(greeting));
            let asked = ways.dialler.dial(Dial { to, socket, greeting, request });
            if asked { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        }
        Err(reply) => {
            stream.write_all(&reply.bytes())?;
            stream.shutdown(Shutdown::Both)
        }
    }
}

impl Ways {
    /// Reads the request of a program. Returns its destination if packets from this host reach it.
    fn asked(
        &self,
        stream: &mut TcpStream,
        console: Console,
    ) -> io::Result<Result<SocketAddr, Reply>> {
        let same = |to: &SocketAddr, it: &Origin| it.address.is_ipv4() == to.is_ipv4();
        let wanted = |to: &SocketAddr| self.via.iter().any(|it| same(to, it));
        let asked = socks::request(stream, wanted)?;
        Ok(asked.and_then(|to| {
            let refused = not_dialled(to.ip()).map(|problem| (problem, Reply::NotAllowed));
            let lost = || Some((astray("--via", to.ip(), &self.via)?, Reply::HostUnreachable));
            let Some((problem, reply)) = refused.or_else(lost) else { return Ok(to) };
            console.remark(1, &format!("event=unreached to={to} problem={problem:?}"));
            Err(reply)
        }))
    }
}
