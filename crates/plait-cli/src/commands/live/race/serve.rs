//! `plait race serve`: the far side of races over real links.

use super::kernel::missing_controller;
use super::message::{
    Contender, DEFAULT_PORT, MAX_LINE_BYTES, MAX_SENDERS, Reply, Request, VERSION,
};
use super::plain;
use crate::commands::live::endpoint::stand_in;
use crate::console::{Console, deliver};
use crate::failure::Failure;
use crate::progress;
use plait_app::{Role, Workload};
use plait_base::Span;
use plait_core::Entropy;
use plait_live::transfer::{Far, FarEnd, Reach, Sender, Token, Transfer};
use plait_live::{Clock, SystemEntropy};
use plait_measure::live::Channel;
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Longest time in which a line has to arrive.
const LINE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the end of the race before.
const BUSY_TIMEOUT: Span = Span::from_secs(3);
/// Longest wait for a further request. A near side that predicts asks for the time every few seconds.
const IDLE_TIMEOUT: Span = Span::from_secs(60);
/// How often the far side looks whether it must stop.
const POLL: Duration = Duration::from_millis(20);
/// Most connections at a time. Only one of them has a race.
const MAX_CONNECTIONS: usize = 8;
/// Most paths of a race: the kernel has as many endpoints.
const MAX_PATHS: u8 = 8;

const EXAMPLES: &str = "Examples:
  plait race serve --listen 192.0.2.1:7789 --dry-run
  plait race serve --time 30s --dry-run";

/// Run the far side of races over real links
///
/// Answers `plait race --to HOST` until Ctrl-C, one race at a time. The near side asks over TCP for each run, and connects
/// to the next port for its data. Connections without the secret of the run are closed. If plait sends from here, a run
/// has a TUN device and a rule of nftables, which disappear after it, however the process ends. This needs CAP_NET_ADMIN;
/// senders of the kernel need no privilege.
///
/// Exit codes: 130 after Ctrl-C, 2 for an address that cannot be used.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address and port to listen on; the runs use the next port
    #[arg(long, value_name = "ADDR:PORT", default_value_t = SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT)), value_parser = listened)]
    listen: SocketAddr,
    /// Longest time of a run
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = time)]
    time: Span,
    /// Print what would be allowed, and serve nobody
    #[arg(long)]
    dry_run: bool,
}

/// Reads the address to listen on.
fn listened(text: &str) -> Result<SocketAddr, String> {
    let allowed =
        "allowed: ADDR:PORT with a port up to 65534, such as 192.0.2.1:7789 or [2001:db8::1]:7789";
    match text.parse::<SocketAddr>() {
        Ok(at) if (1..u16::MAX).contains(&at.port()) => Ok(at),
        Ok(_) => Err(format!("the port is out of range\n  {allowed}")),
        Err(_) => Err(format!("it is not an address with a port\n  {allowed}")),
    }
}

/// Reads `--time`.
fn time(text: &str) -> Result<Span, String> {
    let allowed = "allowed: from 1s to 30min";
    match plait_app::quantity::time(text) {
        Ok(time) if (Span::from_secs(1)..=Span::from_secs(1_800)).contains(&time) => Ok(time),
        Ok(_) => Err(format!("that is out of range\n  {allowed}")),
        Err(error) => Err(format!("{error}\n  {allowed}")),
    }
}

pub(super) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let (at, data) = (args.listen, args.listen.port() + 1);
    if args.dry_run {
        return deliver(
            &format!(
                "listen on {at} (TCP) for races, one at a time\n\
                 listen on port {data} (TCP) for the data of a run, which takes at most {}\n\
                 if plait sends from here: a TUN device, and a rule of nftables that leads from port {data} to it\n\
                 All of this is removed when a run ends, or the process.\n",
                args.time
            ),
            None,
        );
    }
    let refused = |error: io::Error| {
        let remedy = "give an address of this host, and a free port";
        let text = format!("--listen: {at}: {error}\n  {remedy}");
        match error.kind() {
            ErrorKind::PermissionDenied => Failure::Privilege(text),
            _ => Failure::Usage(text),
        }
    };
    let listener = TcpListener::bind(at).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let stop = progress::on_interrupt()?;
    let say = |text: &str| console.remark(1, &format!("plait: race: {}", plain(text)));
    let shared = Shared {
        time: args.time,
        stop,
        say: &say,
        clock: Clock::start(),
        busy: AtomicBool::new(false),
        connections: AtomicUsize::new(0),
    };
    say(&format!("ready at {at}; it ends with Ctrl-C"));
    shared.serve(&listener);
    Err(Failure::Interrupted)
}

/// All that threads of the far side share.
struct Shared<'a> {
    /// Longest time of a run.
    time: Span,
    stop: &'a AtomicBool,
    say: &'a (dyn Fn(&str) + Sync),
    clock: Clock,
    /// A race is open.
    busy: AtomicBool,
    connections: AtomicUsize,
}

/// A race that the far side has agreed to.
struct Session {
    workload: Workload,
    senders: Vec<Sender>,
    rcvbuf: Option<u64>,
    deadline: Span,
    paths: usize,
    /// Where the near side connects for the data of a run.
    public: SocketAddr,
    stand_in: IpAddr,
}

impl Shared<'_> {
    #[expect(clippy::disallowed_methods, reason = "clients come in real time")]
    fn serve(&self, listener: &TcpListener) {
        thread::scope(|scope| {
            while !self.stop.load(Ordering::Relaxed) {
                let Ok((stream, from)) = listener.accept() else {
                    thread::sleep(POLL);
                    continue;
                };
                if self.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                    (self.say)(&format!(
                        "{from}: closed, because {MAX_CONNECTIONS} connections are open"
                    ));
                    continue;
                }
                scope.spawn(move || {
                    // A connection that fails is closed.
                    let _ = self.attend(stream, from);
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }

    /// Serves a connection to its end.
    fn attend(&self, stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        let own = stream.local_addr()?;
        let mut channel = Channel::new(stream, LINE_TIMEOUT, MAX_LINE_BYTES)?;
        let first = channel.receive::<Value>().ok().flatten();
        if !self.claim() {
            let problem = "another race runs; try again later".to_owned();
            return channel.send(&Reply::Refused { problem });
        }
        let agreed = first
            .ok_or_else(|| refused("the first line must say hello"))
            .and_then(|first| self.agree(first, own));
        let ended = match agreed {
            Ok(session) => {
                let (count, workload) = (session.senders.len(), &session.workload);
                (self.say)(&format!("{from}: begins: {workload}, {count} senders"));
                channel.send(&Reply::Welcome).and_then(|()| self.answer(&mut channel, &session))
            }
            Err(reply) => {
                if let Reply::Refused { problem } | Reply::Unable { problem } = &reply {
                    (self.say)(&format!("{from}: refused: {problem}"));
                }
                channel.send(&reply)
            }
        };
        self.busy.store(false, Ordering::Relaxed);
        (self.say)(&format!("{from}: ended"));
        ended
    }

    /// Claims the far side for a race. Returns false if another race goes on.
    #[expect(clippy::disallowed_methods, reason = "the other race ends in real time")]
    fn claim(&self) -> bool {
        let until = self.clock.now() + BUSY_TIMEOUT;
        while self.busy.swap(true, Ordering::Relaxed) {
            if self.stop.load(Ordering::Relaxed) || self.clock.now() >= until {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }

    /// Waits for a message. Returns false if none comes in time, or if the far side must stop.
    fn wait(&self, channel: &Channel, longest: Span) -> bool {
        let until = self.clock.now() + longest;
        while !self.stop.load(Ordering::Relaxed) && self.clock.now() < until {
            match channel.wait(POLL) {
                Ok(false) => {}
                there => return there.is_ok(),
            }
        }
        false
    }

    /// Checks a race, and opens and closes one run of each kind. `own` is the address to which the near side connected.
    fn agree(&self, first: Value, own: SocketAddr) -> Result<Session, Reply> {
        let version = first.pointer("/hello/version").and_then(Value::as_u64);
        if let Some(version) = version.filter(|version| *version != u64::from(VERSION)) {
            return Err(refused(&format!(
                "the near side speaks version {version}, and this far side {VERSION}; install the same plait on both"
            )));
        }
        let Ok(Request::Hello {
            workload, senders: contenders, rcvbuf_bytes, time_us, paths, ..
        }) = serde_json::from_value(first)
        else {
            return Err(refused("the first line must say hello"));
        };
        let workload = Workload::parse(&workload).map_err(|error| refused(&error.to_string()))?;
        if let Some(why) = Transfer::obstacle_between_hosts(&workload) {
            return Err(refused(&format!("workload `{workload}`: {why}")));
        }
        if !(1..=MAX_PATHS).contains(&paths) || !(1..=MAX_SENDERS).contains(&contenders.len()) {
            let problem = format!(
                "{paths} paths and {} senders; allowed: 1 to {MAX_PATHS} and 1 to {MAX_SENDERS}",
                contenders.len()
            );
            return Err(refused(&problem));
        }
        if let Some(least) = workload.duration().filter(|least| *least > self.time) {
            let problem = format!("a run takes {least}; allowed: {} (--time)", self.time);
            return Err(refused(&problem));
        }
        if workload.sender() == Role::Server {
            let mut of_kernel = contenders.iter().filter_map(Contender::of_kernel);
            let missing = of_kernel.find_map(missing_controller);
            missing.map_or(Ok(()), |problem| Err(Reply::Unable { problem }))?;
        }
        let senders: Result<Vec<Sender>, String> =
            contenders.iter().map(Contender::sender).collect();
        let public = SocketAddr::new(own.ip().to_canonical(), own.port().saturating_add(1));
        let session = Session {
            workload,
            senders: senders.map_err(|problem| refused(&problem))?,
            rcvbuf: rcvbuf_bytes,
            deadline: Span::from_micros(time_us.min(self.time.as_micros())),
            paths: usize::from(paths),
            public,
            stand_in: stand_in(&["race", &public.to_string()], public.is_ipv4()),
        };
        session.check(self.clock)?;
        Ok(session)
    }

    /// Answers requests until the connection is over.
    fn answer(&self, channel: &mut Channel, session: &Session) -> io::Result<()> {
        while self.wait(channel, IDLE_TIMEOUT) {
            let Some(request) = channel.receive()? else { return Ok(()) };
            let reply = match request {
                Request::Clock => Reply::Clock { now_ns: self.clock.now().as_nanos() },
                Request::Open { sender } => match session.senders.get(sender) {
                    Some(sender) => self.run(channel, session, sender)?,
                    None => Reply::Failed { problem: format!("there is no sender {sender}") },
                },
                // It came after the end of its run.
                Request::Cancel => continue,
                Request::Hello { .. } => refused("the connection has begun already"),
            };
            channel.send(&reply)?;
        }
        Ok(())
    }

    /// Makes a run. Any message or the end of the connection cancels it.
    fn run(&self, channel: &mut Channel, session: &Session, sender: &Sender) -> io::Result<Reply> {
        let secret = secret()?;
        let end = match session.open(sender, secret, self.clock) {
            Ok(end) => end,
            Err(error) => return Ok(Reply::Failed { problem: explained(&error, session) }),
        };
        channel.send(&Reply::Ready { port: session.public.port(), secret })?;
        let (over, cancelled) = (AtomicBool::new(false), AtomicBool::new(false));
        let channel = &*channel;
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if self.stop.load(Ordering::Relaxed) || !matches!(channel.wait(POLL), Ok(false))
                    {
                        cancelled.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            });
            let result = end.run(&cancelled);
            over.store(true, Ordering::Relaxed);
            result
        });
        Ok(match result {
            Ok(Some(Far { due_bytes, first_due, read_bytes, last_read, joins })) => {
                let [first_due_ns, last_read_ns] =
                    [first_due, last_read].map(|at| at.map(|at| at.as_nanos()));
                Reply::Ended { due_bytes, first_due_ns, read_bytes, last_read_ns, joins }
            }
            Ok(None) => Reply::Failed { problem: unfinished(session.deadline) },
            Err(error) => Reply::Failed { problem: error.to_string() },
        })
    }
}

/// Explains that a run has not ended in time.
fn unfinished(deadline: Span) -> String {
    format!(
        "not finished after {deadline}; give `plait race serve` a longer --time, or take a smaller workload"
    )
}

impl Session {
    fn open(&self, sender: &Sender, secret: Token, clock: Clock) -> io::Result<FarEnd> {
        let Session { workload, rcvbuf, deadline, .. } = self;
        let transfer = Transfer { workload, sender, rcvbuf: *rcvbuf, deadline: *deadline };
        let reach = Reach { public: self.public, stand_in: self.stand_in, secret };
        transfer.wait_at(reach, self.paths, clock)
    }

    /// Opens and closes one run of each kind of sender.
    fn check(&self, clock: Clock) -> Result<(), Reply> {
        let plait = |sender: &Sender| matches!(sender, Sender::Plait(_));
        let mptcp = |sender: &Sender| matches!(sender, Sender::Kernel(_));
        let tcp = |sender: &Sender| matches!(sender, Sender::Tcp(..));
        for kind in [plait, mptcp, tcp] {
            let Some(sender) = self.senders.iter().find(|sender| kind(sender)) else { continue };
            if let Err(error) = self.open(sender, Token::default(), clock) {
                let problem = explained(&error, self);
                return Err(match error.kind() {
                    ErrorKind::AddrInUse => Reply::Refused { problem },
                    _ if plait(sender) && self.workload.sender() == Role::Server => {
                        let remedy = "or leave the schedulers of plait out";
                        Reply::Unable {
                            problem: format!("plait cannot send: {problem}\n  {remedy}"),
                        }
                    }
                    _ => Reply::Unable { problem },
                });
            }
        }
        Ok(())
    }
}

fn explained(error: &io::Error, session: &Session) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => format!("port {} is in use", session.public.port()),
        ErrorKind::PermissionDenied => {
            format!(
                "no TUN device or rule of nftables: {error}\n  it needs CAP_NET_ADMIN: run it as root"
            )
        }
        ErrorKind::NotFound => {
            "/dev/net/tun is not there\n  load the driver: modprobe tun".to_owned()
        }
        _ => error.to_string(),
    }
}

fn refused(problem: &str) -> Reply {
    Reply::Refused { problem: problem.to_owned() }
}

fn secret() -> io::Result<Token> {
    let mut source = SystemEntropy::open()?;
    let mut secret = Token::default();
    let (first, second) = secret.split_at_mut(8);
    first.copy_from_slice(&source.bits().to_be_bytes());
    second.copy_from_slice(&source.bits().to_be_bytes());
    Ok(secret)
}
