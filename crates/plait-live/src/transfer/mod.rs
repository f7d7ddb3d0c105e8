//! Runs a workload once: between the two namespaces of an emulated network, or one end of it over real links. The data
//! is sent by plait, or by the kernel over Multipath TCP or plain TCP. The other end is the kernel in each case.

mod conversation;
mod door;
mod plait;
mod real;
mod sockets;
mod stream;

use crate::emulate::{Gauges, Line, Network, Report, TimeZero};
use crate::{Clock, Origin, enter_realtime};
use conversation::Conversation;
use door::Door;
pub use door::Token;
use plait::Running;
use plait_app::{Measures, Role, Workload};
use plait_base::{Span, Time};
use plait_core::ConnectionSpec;
pub use real::{Dial, Dialled, Far, FarEnd, Reach};
use socket2::Socket;
use sockets::{Protocol, connecting, listening};
pub use sockets::{Start, allows_controller};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use stream::SocketStream;

/// Port of the server.
const PORT: u16 = 80;
/// Priority of both ends in the real-time class, below that of the emulator.
const REALTIME_PRIORITY: u8 = 10;
/// Time between the set-up and the first SYN, until programs that watch devices have finished.
const SETTLING: Duration = Duration::from_millis(400);

/// The sender of the data.
#[derive(Clone, Debug)]
pub enum Sender {
    /// plait, with these settings of connections.
    Plait(Box<ConnectionSpec>),
    /// Multipath TCP of the kernel, over all paths, with this congestion controller.
    Kernel(String),
    /// Plain TCP of the kernel over the path with this number, with this congestion controller.
    Tcp(usize, String),
}

/// A workload, and how to run it.
#[derive(Clone, Debug)]
pub struct Transfer<'a> {
    /// The workload. It has one connection.
    pub workload: &'a Workload,
    /// The sender of the data.
    pub sender: &'a Sender,
    /// The value of SO_RCVBUF at the end that receives the data, in bytes. `None` if the kernel tunes the buffer.
    pub rcvbuf: Option<u64>,
    /// Time after which an unfinished run is aborted.
    pub deadline: Span,
}

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Transferred {
    /// The measures of the apps. Measures of paths and of the transport are absent.
    pub measures: Measures,
    /// The links and the lateness of the emulator.
    pub report: Report,
    /// Number of subflows that have joined.
    pub joins: u64,
}

impl Transfer<'_> {
    /// Returns why a workload cannot run over sockets of the kernel. Returns `None` if it can.
    #[must_use]
    pub fn obstacle(workload: &Workload) -> Option<&'static str> {
        match workload {
            Workload::Burst { .. } => {
                Some("it reads and sets the windows of the simulator's hosts")
            }
            _ if workload.connections() > 1 => Some("it has several connections"),
            _ => None,
        }
    }

    /// Runs the workload once in fresh namespaces. All random numbers of the links derive from `seed`. Calls `watch`
    /// with the links before they carry the first packet. Returns `None` if `cancelled` becomes true before the end.
    ///
    /// # Errors
    /// If the network cannot be made, or if the connection fails.
    pub fn run(
        &self,
        lines: &[Line],
        seed: u64,
        cancelled: &AtomicBool,
        watch: impl Fn(Gauges) + Sync,
    ) -> io::Result<Option<Transferred>> {
        // The thread and those that it starts run in the real-time class.
        thread::scope(|scope| {
            let work = scope.spawn(|| {
                let _ = enter_realtime(REALTIME_PRIORITY);
                self.attempt(lines, seed, cancelled, &watch)
            });
            work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    #[expect(clippy::disallowed_methods, reason = "real time comes in here")]
    fn attempt(
        &self,
        lines: &[Line],
        seed: u64,
        cancelled: &AtomicBool,
        watch: &(dyn Fn(Gauges) + Sync),
    ) -> io::Result<Option<Transferred>> {
        let network = Network::build(lines, seed, TimeZero::FirstSyn)?;
        watch(network.gauges());
        let (listener, running) = self.serve(&network)?;
        thread::sleep(SETTLING);
        let clock = Clock::start();
        let (socket, running) = self.connect(&network, lines, running)?;
        let protocol = self.protocol();
        let stream = |socket| SocketStream::new(socket, protocol.segment_payload(), lines.len());
        let door = Some(Door::new(listener, None));
        let workload = (self.workload, lines.len());
        let mut talk = Conversation::new(workload, (clock, Time::ZERO), None, door)?;
        talk.connect(stream(socket)?)?;
        let finished = talk.run(Time::ZERO + self.deadline, cancelled, stream)?;
        let joins = self.joins(&network)?;
        let measures = talk.finish();
        if let Some(running) = running {
            running.stop()?;
        }
        let report = network.stop()?;
        Ok(finished.then_some(Transferred { measures, report, joins }))
    }

    fn sends(&self) -> Role {
        self.workload.sender()
    }

    fn protocol(&self) -> Protocol {
        match self.sender {
            Sender::Tcp(..) => Protocol::Tcp,
            _ => Protocol::Mptcp,
        }
    }

    fn cc(&self) -> &str {
        match self.sender {
            Sender::Kernel(cc) | Sender::Tcp(_, cc) => cc,
            // The kernel only receives.
            Sender::Plait(_) => "cubic",
        }
    }

    fn rcvbuf_of(&self, role: Role) -> Option<u64> {
        self.rcvbuf.filter(|_| role != self.sends())
    }

    /// Opens the server's end. If plait sends from there, it runs in front of a service.
    fn serve(&self, network: &Network) -> io::Result<(Socket, Option<Running>)> {
        let public = SocketAddr::new(Network::SERVER.into(), PORT);
        let rcvbuf = self.rcvbuf_of(Role::Server);
        let (Sender::Plait(spec), Role::Server) = (self.sender, self.sends()) else {
            network.add_server_address()?;
            let listen = || listening(public, self.protocol(), Some(self.cc()), rcvbuf);
            return Ok((network.server.within(listen)??, None));
        };
        let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let listen = || listening(local, Protocol::Tcp, Some(self.cc()), None);
        let listener = network.server.within(listen)??;
        let to = listener.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((listener, Some(Running::server(Some(&network.server), public, to, (**spec).clone())?)))
    }

    /// Opens the client's end, whose handshake begins.
    fn connect(
        &self,
        network: &Network,
        lines: &[Line],
        running: Option<Running>,
    ) -> io::Result<(Socket, Option<Running>)> {
        let to = SocketAddr::new(Network::SERVER.into(), PORT);
        if let (Sender::Plait(spec), Role::Client) = (self.sender, self.sends()) {
            let origin = |(at, line): (usize, &Line)| {
                // The kernel of the client has another address of this network.
                let [a, b, c, _] = Network::client_address(at).octets();
                let address = Ipv4Addr::new(a, b, c, 77).into();
                Origin { address, device: Some(line.name.clone()), cost: 0, quota: None }
            };
            let from = lines.iter().enumerate().map(origin).collect();
            let space = Some(&network.client);
            let (socket, client) = Running::client(space, from, to, (**spec).clone())?;
            return Ok((socket, Some(client)));
        }
        let mut from = Start::default();
        if let Sender::Tcp(path, _) = self.sender {
            from.address = Some(Network::client_address(*path).into());
        }
        let rcvbuf = self.rcvbuf_of(Role::Client);
        let connect = || connecting(&from, to, self.protocol(), Some(self.cc()), rcvbuf);
        Ok((network.client.within(connect)??, running))
    }

    /// Returns the number of joins that the kernel's end has counted.
    fn joins(&self, network: &Network) -> io::Result<u64> {
        let end = self.kernel_end();
        let space = if end == Role::Server { &network.server } else { &network.client };
        space.within(|| joins(end))?
    }

    /// Returns the end that counts joins. If plait sends, it is the other one.
    fn kernel_end(&self) -> Role {
        let plait_dials = matches!(self.sender, Sender::Plait(_)) && self.sends() == Role::Client;
        if plait_dials { Role::Server } else { Role::Client }
    }
}

/// Returns the number of joins that the kernel of the calling thread's namespace has counted as this end.
fn joins(end: Role) -> io::Result<u64> {
    let name = if end == Role::Server { "MPJoinAckRx" } else { "MPJoinSynAckRx" };
    let text = fs::read_to_string("/proc/thread-self/net/netstat")?;
    Ok(counter(&text, name).unwrap_or(0))
}

/// Returns a counter of the group `MPTcpExt` in the text of `/proc/net/netstat`.
fn counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|it| it == name)?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::counter;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPJoinAckRx A\nMPTcpExt: 7 8\n";
        assert_eq!(counter(text, "A"), Some(8));
        assert_eq!(counter(text, "MPJoinAckRx"), Some(7));
        assert_eq!(counter(text, "B"), None);
        assert_eq!(counter("MPTcpExt: A\n", "A"), None);
    }
}
