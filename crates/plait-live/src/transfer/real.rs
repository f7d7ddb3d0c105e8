//! The two ends of a workload on two hosts, over real links. The client's end compares its clock with that of the
//! server's end, and adds the events of that end to its own.

use super::conversation::{Conversation, EndData};
use super::door::{Door, Token};
use super::plait::Running;
use super::sockets::{Protocol, Start, connecting, listening};
use super::stream::SocketStream;
use super::{SETTLING, Sender, Transfer, joins};
use crate::{Clock, Origin, Rule, Rules};
use plait_app::{AppEvent, Measures, Role, Workload};
use plait_base::{DataRange, Dsn, Span, Time};
use socket2::Socket;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;

/// Where clients reach the server's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// An address of this host, and a free port.
    pub public: SocketAddr,
    /// An address that no device of this host has. plait listens there if it sends from here, and rules of nftables
    /// lead from `public` to it.
    pub stand_in: IpAddr,
    /// The first bytes of the client.
    pub secret: Token,
}

/// The server's end of a run. It waits for its client.
pub struct FarEnd {
    talk: Conversation,
    protocol: Protocol,
    paths: usize,
    deadline: Span,
    clock: Clock,
    joins_before: u64,
    running: Option<Running>,
    rules: Option<Rules>,
}

impl std::fmt::Debug for FarEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FarEnd").finish_non_exhaustive()
    }
}

/// Results of the server's end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Far {
    /// Bytes of the messages that the server had to send.
    pub due_bytes: u64,
    /// When the first of these messages was due, by the server's clock.
    pub first_due: Option<Time>,
    /// Bytes that the server has read of an upload, with the request.
    pub read_bytes: u64,
    /// Time of the last of these reads, by the server's clock.
    pub last_read: Option<Time>,
    /// Joins that the kernel of the server has counted meanwhile, of any connection.
    pub joins: u64,
}

/// How the client's end dials.
#[derive(Clone, Copy, Debug)]
pub struct Dial<'a> {
    /// The server's end.
    pub to: SocketAddr,
    /// Where the packets of each path start, the first one first.
    pub starts: &'a [Start],
    /// Where the packets of each path start if plait sends from here.
    pub origins: &'a [Origin],
    /// The first bytes of the client.
    pub secret: Token,
    /// The clock of all times.
    pub clock: Clock,
}

/// The client's end of a run that is done.
pub struct Dialled<'a> {
    workload: &'a Workload,
    /// Bytes of each message, and the time from one to the next, if messages are due at regular times.
    messages: Option<(u64, Span)>,
    talk: Conversation,
    data: EndData,
    /// Joins that the kernel of the client has counted meanwhile, of any connection.
    joins: u64,
    /// Whether the kernel of the server counts the joins.
    far_counts: bool,
}

impl std::fmt::Debug for Dialled<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialled").finish_non_exhaustive()
    }
}

impl Transfer<'_> {
    /// Returns why a workload cannot run between two hosts. Returns `None` if it can.
    #[must_use]
    pub fn obstacle_between_hosts(workload: &Workload) -> Option<&'static str> {
        match workload {
            Workload::Blocks { rate, .. } if rate.is_infinite() => {
                Some("its blocks are due when the send buffer of the far side has room")
            }
            _ => Transfer::obstacle(workload),
        }
    }

    /// Opens the server's end of a run of one connection over at most `paths` paths. Connections without the secret
    /// are closed. The rules and the device of plait are removed with the returned value, or with the process.
    ///
    /// # Errors
    /// If the port is not free, if the process may not create a device or rules, if a setting of this host keeps
    /// packets from the device, or if the kernel lacks Multipath TCP or the congestion controller.
    #[expect(clippy::disallowed_methods, reason = "programs that watch devices need real time")]
    pub fn wait_at(&self, reach: Reach, paths: usize, clock: Clock) -> io::Result<FarEnd> {
        let Reach { public, stand_in, secret } = reach;
        let rcvbuf = self.rcvbuf_of(Role::Server);
        let (mut running, mut rules) = (None, None);
        let listener = match (self.sender, self.sends()) {
            (Sender::Plait(spec), Role::Server) => {
                let own = SocketAddr::new(loopback(public), 0);
                let listener = listening(own, Protocol::Tcp, None, None)?;
                let to = listener.local_addr()?.as_socket();
                let to = to.ok_or(io::ErrorKind::AddrNotAvailable)?;
                let listen = SocketAddr::new(stand_in, public.port());
                let server = Running::server(None, listen, to, (**spec).clone())?;
                server.check_host()?;
                rules = Some(Rules::set(&[Rule::Redirect { public, to: listen }])?);
                running = Some(server);
                thread::sleep(SETTLING);
                listener
            }
            _ => listening(public, self.protocol(), self.cc_of(Role::Server), rcvbuf)?,
        };
        let door = Some(Door::new(listener, Some(secret)));
        let times = (clock, clock.now());
        let talk = Conversation::new((self.workload, paths), times, Some(Role::Server), door)?;
        let (protocol, deadline) = (self.protocol(), self.deadline);
        let joins_before = joins(Role::Server)?;
        Ok(FarEnd { talk, protocol, paths, deadline, clock, joins_before, running, rules })
    }

    /// Runs the client's end. Returns `None` if it is not done at the deadline, or if `cancelled` becomes true.
    ///
    /// # Errors
    /// If the connection fails, if a start cannot be used, or if the process may not create a device.
    pub fn dial(&self, dial: &Dial<'_>, cancelled: &AtomicBool) -> io::Result<Option<Dialled<'_>>> {
        let joins_before = joins(Role::Client)?;
        let start = dial.clock.now();
        let (socket, running) = self.open(dial)?;
        let (paths, protocol) = (dial.starts.len(), self.protocol());
        let times = (dial.clock, start);
        let mut talk = Conversation::new((self.workload, paths), times, Some(Role::Client), None)?;
        let stream = SocketStream::new(socket, protocol.segment_payload(), paths)?;
        let messages = periodic(self.workload, protocol.segment_payload());
        if messages.is_some() {
            talk.keep_reads();
        }
        talk.connect(stream.preceded_by(&dial.secret))?;
        let finished = talk.run(start + self.deadline, cancelled, |_| unexpected())?;
        let joins = joins(Role::Client)?.saturating_sub(joins_before);
        if let Some(running) = running {
            running.stop()?;
        }
        let far_counts = self.kernel_end() == Role::Server;
        let data = talk.data(Role::Client);
        let workload = self.workload;
        Ok(finished.then_some(Dialled { workload, messages, talk, data, joins, far_counts }))
    }

    /// Returns the congestion controller of an end; `None` if the kernel may choose, because the end only receives.
    fn cc_of(&self, role: Role) -> Option<&str> {
        (role == self.sends()).then(|| self.cc())
    }

    fn open(&self, dial: &Dial<'_>) -> io::Result<(Socket, Option<Running>)> {
        if let (Sender::Plait(spec), Role::Client) = (self.sender, self.sends()) {
            let from = dial.origins.to_vec();
            let (socket, client) = Running::client(None, from, dial.to, (**spec).clone())?;
            client.check_host()?;
            return Ok((socket, Some(client)));
        }
        let path = if let Sender::Tcp(path, _) = self.sender { *path } else { 0 };
        let start = dial.starts.get(path).ok_or(io::ErrorKind::InvalidInput)?;
        let rcvbuf = self.rcvbuf_of(Role::Client);
        Ok((connecting(start, dial.to, self.protocol(), self.cc_of(Role::Client), rcvbuf)?, None))
    }
}

impl FarEnd {
    /// Serves the client. Returns `None` if it is not done at the deadline, or if `cancelled` becomes true.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn run(mut self, cancelled: &AtomicBool) -> io::Result<Option<Far>> {
        let stream =
            |socket| SocketStream::new(socket, self.protocol.segment_payload(), self.paths);
        let deadline = self.clock.now() + self.deadline;
        let finished = self.talk.run(deadline, cancelled, stream)?;
        let EndData { due_bytes, first_due, read_bytes, last_read } = self.talk.data(Role::Server);
        let joins = joins(Role::Server)?.saturating_sub(self.joins_before);
        // The connection ends before plait does.
        drop(self.talk);
        if let Some(running) = self.running {
            running.stop()?;
        }
        drop(self.rules);
        Ok(finished.then_some(Far { due_bytes, first_due, read_bytes, last_read, joins }))
    }
}

impl Dialled<'_> {
    /// Returns the measures and the number of joins. `far` has the results of the server's end, with times of the
    /// client's clock.
    ///
    /// # Errors
    /// If the receiver has read another number of bytes than the sender had to send.
    pub fn finish(mut self, far: &Far) -> io::Result<(Measures, u64)> {
        let all = |bytes| DataRange::new(Dsn::ZERO, Dsn::new(bytes));
        let (due, read) = match self.workload {
            Workload::Download { .. } | Workload::Stream { .. } | Workload::Blocks { .. } => {
                (far.due_bytes, self.data.read_bytes)
            }
            Workload::Upload { .. } => {
                (self.data.due_bytes + plait_app::workload::REQUEST, far.read_bytes)
            }
            _ => (0, 0),
        };
        if due != read {
            return Err(io::Error::other(format!("{read} of {due} bytes have arrived")));
        }
        match self.workload {
            // The time from the request to the message counts, too.
            Workload::Download { .. } => {
                let last = self.data.last_read.unwrap_or(Time::ZERO);
                let due = AppEvent::MessageDue { id: 0, data: all(due), due: last };
                self.talk.observe(last, Role::Server, &due);
            }
            Workload::Upload { .. } => {
                let last = far.last_read.unwrap_or(Time::ZERO);
                self.talk.observe(last, Role::Server, &AppEvent::Read { data: all(read) });
            }
            _ => {}
        }
        if let Some(messages) = self.messages {
            self.observe_messages(messages, far.first_due.unwrap_or(Time::ZERO));
        }
        let joins = if self.far_counts { far.joins } else { self.joins };
        Ok((self.talk.finish(), joins))
    }

    /// Observes messages and the reads of them in the order of time.
    fn observe_messages(&mut self, (bytes, interval): (u64, Span), first: Time) {
        let count = self.workload.messages();
        let mut next = 0;
        let reads = self.talk.take_reads();
        let reads = reads.into_iter().map(Some).chain([None]);
        for read in reads {
            let until = read.map_or(Time::NEVER, |(at, _)| at);
            while next < count && first + interval.times(next) <= until {
                let (due, start) = (first + interval.times(next), next * bytes);
                let data = DataRange::with_len(Dsn::new(start), bytes);
                let message = AppEvent::MessageDue { id: next, data, due };
                self.talk.observe(due, Role::Server, &message);
                next += 1;
            }
            if let Some((at, data)) = read {
                self.talk.observe(at, Role::Client, &AppEvent::Read { data });
            }
        }
    }
}

/// Returns the bytes of each message of a workload, and the time from one to the next, if the server sends messages at
/// regular times.
fn periodic(workload: &Workload, segment_payload: u64) -> Option<(u64, Span)> {
    match workload {
        Workload::Stream { size, interval, .. } => Some((size.bytes(segment_payload), *interval)),
        Workload::Blocks { bytes, rate, .. } if !rate.is_infinite() => {
            Some((*bytes, rate.time_for(*bytes)))
        }
        _ => None,
    }
}

fn loopback(of: SocketAddr) -> IpAddr {
    if of.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() }
}

fn unexpected() -> io::Result<SocketStream> {
    Err(io::Error::other("a client accepts no connection"))
}
