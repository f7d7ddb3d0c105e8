//! The near side of a race over real links: it asks the far side for each run, and compares.

use super::kernel::check_controllers;
use super::message::{Contender, DEFAULT_PORT, MAX_LINE_BYTES, Reply, Request, VERSION};
use super::plain;
use super::rounds::{Race, Turn, count, deadline, direction, failed, sender, unfinished};
use super::view::{Gauge, View};
use crate::commands::live::endpoint::{Origins, origins};
use crate::commands::measure::host::{paths, resolve};
use crate::failure::Failure;
use plait_app::{Measures, Role};
use plait_base::{Span, Time};
use plait_lab::race::{Heat, LiveRuns, Stack};
use plait_live::doctor::missing_endpoints;
use plait_live::emulate::Direction;
use plait_live::transfer::{Dial, Far, Start, Token, Transfer};
use plait_live::{Clock, DeviceBytes, HostState, Rules, device_bytes, device_of};
use plait_measure::live::{Channel, From};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Longest wait for an answer that the far side gives at once, or after it has opened a run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the near side looks whether the run must end.
const POLL: Duration = Duration::from_millis(20);
/// Time that a run has after the far side has ended it.
const GRACE: Span = Span::from_secs(5);
/// Questions for the time before each run.
const CLOCK_QUESTIONS: usize = 5;
/// Time between two questions that keep the far side waiting.
const KEEP_ALIVE: Span = Span::from_secs(5);

/// The far side and the paths of a race.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// The far side as given.
    host: String,
    to: SocketAddr,
    from: Vec<From>,
}

impl Ends {
    /// Reads `--to` and `--from`.
    pub(super) fn read(host: &str, from: &[String]) -> Result<Ends, Failure> {
        let from = paths(from)?;
        let to = resolve(("--to", host), DEFAULT_PORT, &from)?;
        Ok(Ends { host: host.to_owned(), to, from })
    }

    /// Returns the names of the paths.
    pub(super) fn names(&self) -> Vec<String> {
        self.from.iter().map(|from| from.name.clone()).collect()
    }

    /// Describes the race.
    pub(super) fn plan(&self, heat: &Heat, runs: u64) -> String {
        let mut text = format!("far side: {} (TCP), and the next port for the data\n", self.to);
        for From { name, address, device } in &self.from {
            let start = device.clone().or(address.map(|it| it.to_string())).unwrap_or_default();
            text += &format!("path {name} from {start}\n");
        }
        let names: Vec<&str> = heat.entrants.iter().map(|it| it.name.as_str()).collect();
        text + &format!("{runs} runs of {} by {}\n", heat.scenario.workload, names.join(", "))
    }
}

/// A path of the race.
struct Line {
    name: String,
    start: Start,
    /// The device by which its packets leave, if it is known.
    device: Option<String>,
    address: IpAddr,
}

/// Why a run could not be made.
enum Trouble {
    /// This run has failed.
    Run(String),
    /// The far side is gone, so no further run can be made.
    Lost(String),
}

impl std::convert::From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Run(error.to_string())
    }
}

/// An open race.
pub(super) struct Near {
    ends: Ends,
    lines: Vec<Line>,
    /// Where plait's packets start, if it sends from here.
    origins: Option<(Origins, Option<Rules>)>,
    channel: Channel,
    clock: Clock,
    /// Why the far side is gone.
    pub(super) lost: Option<String>,
}

impl Near {
    /// Checks that this host can run the heat, and asks the far side for the race.
    pub(super) fn prepare(ends: Ends, heat: &Heat) -> Result<Near, Failure> {
        let lines: Vec<Line> =
            ends.from.iter().map(|from| line(from, ends.to)).collect::<Result<_, _>>()?;
        let sends = heat.scenario.workload.sender() == Role::Client;
        if sends {
            check_controllers(&heat.entrants)?;
        }
        check_kernel(heat, &lines)?;
        let of_plait = heat.entrants.iter().any(|it| matches!(it.stack, Stack::Plait(..)));
        let origins = (sends && of_plait).then(|| plait_starts(&lines, ends.to)).transpose()?;
        let channel = open(&ends, heat)?;
        Ok(Near { ends, lines, origins, channel, clock: Clock::start(), lost: None })
    }

    /// Does other work while the far side waits.
    #[expect(clippy::disallowed_methods, reason = "the far side waits in real time")]
    pub(super) fn meanwhile<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (over, channel, clock) = (AtomicBool::new(false), &mut self.channel, self.clock);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut next = clock.now() + KEEP_ALIVE;
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(POLL);
                    if clock.now() >= next {
                        // The first run notices it if the far side is gone.
                        let _ = ask(channel, &Request::Clock);
                        next = clock.now() + KEEP_ALIVE;
                    }
                }
            });
            let done = work();
            over.store(true, Ordering::Relaxed);
            done
        })
    }

    /// Makes the runs of each sender. Ends early if the far side is gone.
    pub(super) fn run(&mut self, race: Race<'_>) -> Result<Vec<Vec<LiveRuns>>, Failure> {
        let view = View::start(race.console);
        race.run(&view, |Turn { heat, entrant, live, .. }| {
            if race.cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let number = heat.entrants.iter().position(|it| it.name == entrant.name);
            let made = self.one(heat, (number.unwrap_or(0), &entrant.stack), race.cancelled, &view);
            match made {
                Ok((measures, delivered, joins)) => {
                    Ok(Some(count(heat, (measures, delivered), joins, live)))
                }
                Err(_) if race.cancelled.load(Ordering::Relaxed) => Ok(None),
                Err(Trouble::Run(why)) => Ok(Some(failed(live, why))),
                Err(Trouble::Lost(why)) => {
                    failed(live, why.clone());
                    self.lost = Some(why);
                    Ok(None)
                }
            }
        })
    }

    /// Makes one run. Returns the measures, the bytes of each path, and the number of joins.
    fn one(
        &mut self,
        heat: &Heat,
        (number, stack): (usize, &Stack),
        cancelled: &AtomicBool,
        view: &View,
    ) -> Result<(Measures, Vec<u64>, u64), Trouble> {
        let ahead_ns = self.compare_clocks()?;
        let (port, secret) = match self.ask(&Request::Open { sender: number })? {
            Reply::Ready { port, secret } => (port, secret),
            Reply::Failed { problem } => return Err(Trouble::Run(of_far(&problem))),
            other => return Err(out_of_turn(&other)),
        };
        let (names, direction, devices) = (self.ends.names(), direction(heat), self.devices());
        let before = bytes(&devices, direction);
        view.watch(&names, move || gauges(&bytes(&devices, direction)));
        let sender = sender(stack);
        let transfer = Transfer {
            workload: &heat.scenario.workload,
            sender: &sender,
            rcvbuf: heat.rcvbuf(),
            deadline: deadline(heat),
        };
        let dialled = self.dial(&transfer, (port, secret), cancelled);
        let devices = self.devices();
        let after = bytes(&devices, direction);
        if !matches!(dialled, Ok(Some(_))) {
            self.send(&Request::Cancel)?;
        }
        let ended = self.receive()?;
        let dialled = dialled?;
        let far = match ended {
            Reply::Ended { due_bytes, first_due_ns, read_bytes, last_read_ns, joins } => {
                let [first_due, last_read] =
                    [first_due_ns, last_read_ns].map(|ns| ns.map(|ns| shifted(ns, ahead_ns)));
                Far { due_bytes, first_due, read_bytes, last_read, joins }
            }
            Reply::Failed { problem } => return Err(Trouble::Run(of_far(&problem))),
            other => return Err(out_of_turn(&other)),
        };
        let Some(dialled) = dialled else {
            return Err(Trouble::Run(unfinished(heat)));
        };
        let (measures, joins) = dialled.finish(&far)?;
        Ok((measures, delivered(&before, &after), joins))
    }

    /// Runs the near end. If the far side has ended the run, this end has a few seconds more.
    fn dial<'a>(
        &self,
        transfer: &'a Transfer<'_>,
        (port, secret): (u16, Token),
        cancelled: &AtomicBool,
    ) -> io::Result<Option<plait_live::transfer::Dialled<'a>>> {
        let (over, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let (channel, clock) = (&self.channel, self.clock);
        let starts: Vec<Start> = self.lines.iter().map(|line| line.start.clone()).collect();
        let origins = self.origins.as_ref().map_or(&[][..], |(origins, _)| &origins.all);
        let to = SocketAddr::new(self.ends.to.ip(), port);
        let dial = Dial { to, starts: &starts, origins, secret, clock };
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut until = Time::NEVER;
                while !over.load(Ordering::Relaxed) {
                    if cancelled.load(Ordering::Relaxed) || clock.now() >= until {
                        stop.store(true, Ordering::Relaxed);
                        break;
                    }
                    if until == Time::NEVER && !matches!(channel.wait(POLL), Ok(false)) {
                        until = clock.now() + GRACE;
                    }
                    pause(until);
                }
            });
            let dialled = transfer.dial(&dial, &stop);
            over.store(true, Ordering::Relaxed);
            dialled
        })
    }

    /// Returns how far the clock of the far side is ahead, in nanoseconds. The answer with the shortest way counts. If
    /// both directions take different times, half of the difference is the error.
    fn compare_clocks(&mut self) -> Result<i128, Trouble> {
        let mut best: Option<(Span, i128)> = None;
        for _ in 0..CLOCK_QUESTIONS {
            let asked = self.clock.now();
            let now_ns = match self.ask(&Request::Clock)? {
                Reply::Clock { now_ns } => now_ns,
                other => return Err(out_of_turn(&other)),
            };
            let took = self.clock.now().since(asked);
            let middle = asked.as_nanos() + took.as_nanos() / 2;
            if best.is_none_or(|(least, _)| took < least) {
                best = Some((took, i128::from(now_ns) - i128::from(middle)));
            }
        }
        Ok(best.map_or(0, |(_, ahead)| ahead))
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, Trouble> {
        ask(&mut self.channel, request).map_err(|error| self.gone(&error))
    }

    fn send(&mut self, request: &Request) -> Result<(), Trouble> {
        self.channel.send(request).map_err(|error| self.gone(&error))
    }

    fn receive(&mut self) -> Result<Reply, Trouble> {
        receive(&mut self.channel).map_err(|error| self.gone(&error))
    }

    fn gone(&self, error: &io::Error) -> Trouble {
        Trouble::Lost(format!("the far side {} does not answer: {error}", self.ends.host))
    }

    fn devices(&self) -> Vec<Option<String>> {
        self.lines.iter().map(|line| line.device.clone()).collect()
    }
}

/// Finds the start of a path.
fn line(from: &From, to: SocketAddr) -> Result<Line, Failure> {
    let address = from.local_address(to).map_err(|error| {
        let start = from.device.clone().or(from.address.map(|it| it.to_string()));
        let start = start.unwrap_or_default();
        let remedy =
            format!("give a device or an address of this host with a route to {}", to.ip());
        let text = format!("--from: `{}`: {error}\n  {remedy}", start.escape_debug());
        match error.kind() {
            ErrorKind::PermissionDenied => Failure::Privilege(text),
            _ => Failure::Usage(text),
        }
    })?;
    let device = from.device.clone().or_else(|| device_of(address).ok().flatten());
    let start = Start { address: from.address, device: from.device.clone() };
    Ok(Line { name: from.name.clone(), start, device, address })
}

/// Fails if the kernel of this host cannot be an end of Multipath TCP over all paths.
fn check_kernel(heat: &Heat, lines: &[Line]) -> Result<(), Failure> {
    let sends = heat.scenario.workload.sender() == Role::Client;
    let uses_kernel = heat.entrants.iter().any(|it| match it.stack {
        Stack::Kernel(_) => true,
        Stack::Plait(..) => !sends,
        Stack::Tcp(..) => false,
    });
    if !uses_kernel {
        return Ok(());
    }
    let enabled = fs::read_to_string("/proc/sys/net/mptcp/enabled").unwrap_or_default();
    if enabled.trim() != "1" {
        let problem = match enabled.trim() {
            "" => "the kernel has no Multipath TCP\n  boot a kernel with CONFIG_MPTCP",
            _ => "the kernel's Multipath TCP is off\n  sysctl -w net.mptcp.enabled=1",
        };
        return Err(Failure::Privilege(format!("--from: {problem}")));
    }
    // A connection starts on the first path, and needs an endpoint for each further one.
    let further: Vec<(String, IpAddr)> =
        lines.iter().skip(1).filter_map(|it| Some((it.device.clone()?, it.address))).collect();
    let missing = missing_endpoints(&further).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let (names, commands): (Vec<&str>, String) =
        (further.iter().map(|it| it.0.as_str()).collect(), missing.join("; "));
    Err(Failure::Privilege(format!(
        "--from: the kernel opens no subflow from {}: an endpoint is missing\n  as root: {commands}",
        names.join(" or ")
    )))
}

/// Returns where plait's packets start.
fn plait_starts(lines: &[Line], to: SocketAddr) -> Result<(Origins, Option<Rules>), Failure> {
    if to.is_ipv6() {
        let remedy = "give a far side with an IPv4 address, or leave the schedulers of plait out";
        return Err(Failure::Usage(format!(
            "--to: `{to}`: plait dials from devices over IPv4 only\n  {remedy}"
        )));
    }
    let device = |line: &Line| {
        line.device.clone().ok_or_else(|| {
            let (name, remedy) = (&line.name, "give the device in place of the address");
            Failure::Usage(format!("--from: `{name}`: its device is not known\n  {remedy}"))
        })
    };
    let devices: Vec<String> = lines.iter().map(device).collect::<Result<_, _>>()?;
    let origins = origins("--from", &devices)?;
    // The device of plait is not there yet.
    let host = HostState::look("", None, origins.all.iter().map(|it| it.address));
    if let Some(problem) = host.obstacle() {
        return Err(Failure::Privilege(format!("--from: plait cannot send: {problem}")));
    }
    let rules = origins.hide("--from", Vec::new())?;
    Ok((origins, rules))
}

/// Connects on the first path, and asks for the race.
fn open(ends: &Ends, heat: &Heat) -> Result<Channel, Failure> {
    let Ends { to, from, host } = ends;
    let Some(first) = from.first() else {
        return Err(Failure::Usage(
            "--from: there is no path\n  give one: --from DEVICE".to_owned(),
        ));
    };
    let unreachable = |error: io::Error| {
        Failure::Peer(format!(
            "{to}: no connection: {error}\n  start the far side: plait race serve --listen {to}"
        ))
    };
    let stream = first.connect_tcp(*to).map_err(unreachable)?;
    let mut channel = Channel::new(stream, ANSWER_TIMEOUT, MAX_LINE_BYTES).map_err(unreachable)?;
    let hello = Request::Hello {
        version: VERSION,
        workload: heat.scenario.workload.to_string(),
        senders: heat.entrants.iter().map(Contender::of).collect(),
        rcvbuf_bytes: heat.rcvbuf(),
        time_us: deadline(heat).as_micros(),
        paths: u8::try_from(from.len()).unwrap_or(u8::MAX),
    };
    match ask(&mut channel, &hello) {
        Ok(Reply::Welcome) => Ok(channel),
        Ok(Reply::Refused { problem }) => {
            Err(Failure::Peer(format!("{to}: the far side refuses: {}", plain(&problem))))
        }
        Ok(Reply::Unable { problem }) => {
            Err(Failure::Privilege(format!("{to}: the far side cannot: {}", plain(&problem))))
        }
        _ => {
            let problem =
                "the program that answers there is not `plait race serve` of this version";
            Err(Failure::Peer(format!("{host}: {problem}\n  check --to and its port")))
        }
    }
}

fn ask(channel: &mut Channel, request: &Request) -> io::Result<Reply> {
    channel.send(request)?;
    receive(channel)
}

fn receive(channel: &mut Channel) -> io::Result<Reply> {
    channel.receive()?.ok_or_else(|| io::Error::other("it has closed the connection"))
}

/// Waits a little. Before a message has come, the wait for it takes the time.
#[expect(clippy::disallowed_methods, reason = "the run goes on in real time")]
fn pause(until: Time) {
    if until != Time::NEVER {
        thread::sleep(POLL);
    }
}

/// Returns a time of the far side by the clock of this one, which is behind by so much.
fn shifted(far_ns: u64, ahead_ns: i128) -> Time {
    let ns = (i128::from(far_ns) - ahead_ns).clamp(0, i128::from(u64::MAX));
    Time::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

fn of_far(problem: &str) -> String {
    format!("far side: {}", plain(problem))
}

fn out_of_turn(reply: &Reply) -> Trouble {
    let kind = match reply {
        Reply::Welcome => "a welcome",
        Reply::Refused { .. } | Reply::Unable { .. } => "a refusal",
        Reply::Clock { .. } => "its time",
        Reply::Ready { .. } => "the beginning of a run",
        Reply::Ended { .. } | Reply::Failed { .. } => "the end of a run",
    };
    Trouble::Lost(format!("the far side answered with {kind} out of turn"))
}

/// Returns the bytes that each path has carried to this host, the client, or from it. Empty if they are unknown.
fn bytes(devices: &[Option<String>], direction: Direction) -> Vec<u64> {
    let known: Vec<String> = devices.iter().flatten().cloned().collect();
    let shared = known.iter().enumerate().any(|(at, it)| known[..at].contains(it));
    if known.len() < devices.len() || shared {
        return Vec::new();
    }
    let of = |it: DeviceBytes| match direction {
        Direction::Down => it.received,
        Direction::Up => it.sent,
    };
    let all: Option<Vec<u64>> =
        device_bytes(&known).unwrap_or_default().into_iter().map(|it| it.map(of)).collect();
    all.unwrap_or_default()
}

fn gauges(bytes: &[u64]) -> Vec<Gauge> {
    bytes.iter().map(|bytes| Gauge { bytes: *bytes, queued_bytes: None }).collect()
}

/// Returns the bytes of each path in a run. Empty if they are unknown.
fn delivered(before: &[u64], after: &[u64]) -> Vec<u64> {
    if before.len() != after.len() {
        return Vec::new();
    }
    before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_the_far_side_is_moved_to_this_clock() {
        assert_eq!(shifted(5_000, 2_000), Time::from_nanos(3_000));
        assert_eq!(shifted(5_000, -2_000), Time::from_nanos(7_000));
        assert_eq!(shifted(5_000, 6_000), Time::ZERO);
        assert_eq!(shifted(u64::MAX, -9), Time::from_nanos(u64::MAX));
    }

    #[test]
    fn bytes_are_unknown_if_two_paths_share_a_device() {
        let lo = || Some("lo".to_owned());
        assert_eq!(bytes(&[lo()], Direction::Down).len(), 1);
        for devices in [vec![lo(), lo()], vec![lo(), None], vec![Some("none0".to_owned())]] {
            assert!(bytes(&devices, Direction::Down).is_empty(), "{devices:?}");
        }
        assert_eq!(delivered(&[10, 20], &[15, 20]), [5, 0]);
        assert!(delivered(&[10, 20], &[]).is_empty());
    }
}
