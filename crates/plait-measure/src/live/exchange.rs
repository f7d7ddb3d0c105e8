//! The client's end of a measurement: its connection, its sockets, and the packets that arrive.

use super::analysis::{Echo, Offered};
use super::channel::Channel;
use super::clock::{Clock, sleep};
use super::collect::{Collector, Summary};
use super::message::{Load, MAX_LINE_BYTES, Reply, Request, VERSION, token};
use super::packet::{HEADER_BYTES, Kind, MAX_DATAGRAM_BYTES, Packet, Token};
use super::server::{host, lock, take};
use super::socket::{From, header_bytes};
use super::{MeasureError, pace};
use socket2::Protocol;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longest wait for an answer over TCP, beyond the time of a load.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a receiver looks whether it must stop.
const POLL: Duration = Duration::from_millis(100);
/// Longest wait for a TCP connection of one of several paths.
const TCP_TIMEOUT: Duration = Duration::from_secs(3);
/// Time between probes.
const PROBE_GAP: Duration = Duration::from_millis(20);
/// Longest wait for the queues of a path to become empty.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);
/// Most answers that are kept of one probing.
const MAX_ECHOES: usize = 20_000;
/// Direction of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Down,
    Up,
}

/// Packets that arrived on a path.
#[derive(Debug, Default)]
struct Inbox {
    echoes: Vec<(u16, Echo)>,
    collectors: BTreeMap<u16, Collector>,
}

/// A path of a measurement.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) from: From,
    socket: UdpSocket,
    inbox: Mutex<Inbox>,
    /// The number of the last echo, which shows the server that its datagrams arrive here.
    proof: AtomicU64,
}

/// An open measurement.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    pub(super) lines: Vec<Line>,
    /// Whether both ends have the same clock.
    pub(super) one_host: bool,
    /// Whether the far side has Multipath TCP.
    pub(super) mptcp: bool,
    channel: Mutex<Channel>,
    to: SocketAddr,
    token: Token,
    clock: Clock,
    header_bytes: u64,
    /// Bytes that may still be sent, down and up.
    left_bytes: [AtomicU64; 2],
    next_phase: AtomicU64,
    stop: &'a AtomicBool,
}

/// A load for [`Exchange::load`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Wanted {
    pub(super) line: usize,
    pub(super) rate_bps: f64,
    pub(super) time: Duration,
    pub(super) size_bytes: u16,
}

impl<'a> Exchange<'a> {
    /// Connects, and asks for a measurement of at most this time and so many bytes each way.
    pub(super) fn open(
        to: SocketAddr,
        from: &[From],
        time: Duration,
        bytes: u64,
        stop: &'a AtomicBool,
    ) -> Result<Exchange<'a>, MeasureError> {
        let mut lines = Vec::new();
        for from in from {
            let socket = from.datagrams(to).map_err(|error| not_bound(from, to, &error))?;
            socket.set_read_timeout(Some(POLL)).map_err(|error| not_bound(from, to, &error))?;
            let (inbox, proof) = (Mutex::default(), AtomicU64::new(0));
            lines.push(Line { from: from.clone(), socket, inbox, proof });
        }
        let unreachable = |error: io::Error| {
            MeasureError::Peer(format!(
                "{to}: no connection: {error}\n  start the far side: plait measure serve --listen {to}"
            ))
        };
        let stream = connected(from, to).map_err(unreachable)?;
        let mut channel =
            Channel::new(stream, ANSWER_TIMEOUT, MAX_LINE_BYTES).map_err(unreachable)?;
        let paths = u8::try_from(from.len()).unwrap_or(u8::MAX);
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let hello = Request::Hello { version: VERSION, time_ms, bytes, paths };
        let answer = channel.send(&hello).and_then(|()| channel.receive::<Reply>());
        let (digits, there, mptcp) = match answer {
            Ok(Some(Reply::Welcome { token, host, mptcp })) => (token, host, mptcp),
            Ok(Some(Reply::Refused { problem })) => {
                return Err(MeasureError::Peer(format!("{to}: the far side refuses: {problem}")));
            }
            _ => {
                let problem = "the program that answers there is not `plait measure serve`";
                return Err(MeasureError::Peer(format!(
                    "{to}: {problem}\n  check HOST and its port"
                )));
            }
        };
        let token = token(&digits)
            .ok_or_else(|| MeasureError::Peer(format!("{to}: the far side sent a bad token")))?;
        Ok(Exchange {
            lines,
            one_host: host(&token) == there,
            mptcp,
            channel: Mutex::new(channel),
            to,
            token,
            clock: Clock::start(),
            header_bytes: header_bytes(to),
            left_bytes: [bytes, bytes].map(AtomicU64::new),
            next_phase: AtomicU64::new(0),
            stop,
        })
    }

    /// Returns the time since the measurement began.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    fn budget(&self, way: Way) -> &AtomicU64 {
        let [down, up] = &self.left_bytes;
        if way == Way::Down { down } else { up }
    }

    /// Returns the bytes that may still be sent in a direction.
    pub(super) fn left_bytes(&self, way: Way) -> u64 {
        self.budget(way).load(Ordering::Relaxed)
    }

    /// Returns the bits of an IP packet with a datagram of this size.
    pub(super) fn packet_bits(&self, size_bytes: u16) -> f64 {
        ((u64::from(size_bytes) + self.header_bytes) * 8) as f64
    }

    /// Returns the bits of a probe.
    pub(super) fn probe_bits(&self) -> f64 {
        ((HEADER_BYTES as u64 + self.header_bytes) * 8) as f64
    }

    /// Receives on a path until `over` is set.
    pub(super) fn receive(&self, line: &Line, over: &AtomicBool) {
        let mut bytes = [0; MAX_DATAGRAM_BYTES + 100];
        while !over.load(Ordering::Relaxed) {
            let Ok(length) = line.socket.recv(&mut bytes) else { continue };
            let now_ns = self.clock.now_ns();
            let Some(packet) = bytes.get(..length).and_then(Packet::read) else { continue };
            if packet.token != self.token {
                continue;
            }
            let mut inbox = lock(&line.inbox);
            match packet.kind {
                Kind::Echo if inbox.echoes.len() < MAX_ECHOES => {
                    line.proof.store(packet.proof, Ordering::Relaxed);
                    let ms = |from: u64, to: u64| to.wrapping_sub(from).cast_signed() as f64 / 1e6;
                    let up_ms = ms(packet.probe_ns, packet.arrived_ns);
                    let down_ms = ms(packet.sent_ns, now_ns);
                    let echo = Echo { rtt_ms: up_ms + down_ms, up_ms, down_ms };
                    inbox.echoes.push((packet.phase, echo));
                }
                Kind::Data => {
                    let collector = inbox.collectors.entry(packet.phase).or_default();
                    collector.add(packet.sent_ns, now_ns);
                }
                _ => {}
            }
        }
    }

    /// Sends probes for a time, and returns the answers and the number of probes.
    pub(super) fn probe(
        &self,
        at: usize,
        time: Duration,
    ) -> Result<(Vec<Echo>, u64), MeasureError> {
        let phase = self.phase();
        let line = &self.lines[at];
        let begin = self.elapsed();
        let mut number = 0;
        while self.elapsed() < begin + time {
            self.check()?;
            self.send_probe(at, phase, number)?;
            number += 1;
            sleep(PROBE_GAP);
        }
        // The last answers are on their way.
        let answered = || {
            let inbox = lock(&line.inbox);
            inbox.echoes.iter().filter(|it| it.0 == phase).count()
        };
        let sent = self.elapsed();
        while answered() < number as usize && self.elapsed() < sent + Duration::from_millis(1_500) {
            self.check()?;
            sleep(PROBE_GAP);
        }
        let mut inbox = lock(&line.inbox);
        let echoes = inbox.echoes.iter().filter(|it| it.0 == phase).map(|it| it.1).collect();
        inbox.echoes.clear();
        Ok((echoes, number.into()))
    }

    fn send_probe(&self, at: usize, phase: u16, number: u32) -> Result<(), MeasureError> {
        let line = &self.lines[at];
        let packet = Packet {
            token: self.token,
            kind: Kind::Probe,
            path: u8::try_from(at).unwrap_or(u8::MAX),
            phase,
            number,
            sent_ns: self.clock.now_ns(),
            probe_ns: 0,
            arrived_ns: 0,
            proof: line.proof.load(Ordering::Relaxed),
        };
        let mut bytes = [0; MAX_DATAGRAM_BYTES];
        packet.write(&mut bytes);
        match line.socket.send_to(&bytes[..HEADER_BYTES], self.to) {
            Err(error) if !pace::passes(&error) => {
                let name = &line.from.name;
                Err(MeasureError::Peer(format!("path {name}: it cannot send: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the queues of a path are empty: a probe comes back in about the time of an idle path.
    pub(super) fn drain(&self, at: usize, idle_ms: f64) -> Result<(), MeasureError> {
        let begin = self.elapsed();
        while self.elapsed() < begin + DRAIN_TIMEOUT {
            let phase = self.phase();
            self.send_probe(at, phase, 0)?;
            let wait = Duration::from_secs_f64((idle_ms / 1e3 + 0.03).clamp(0.0, 5.0));
            let until = self.elapsed() + wait;
            while self.elapsed() < until {
                self.check()?;
                sleep(Duration::from_millis(5));
                let mut inbox = lock(&self.lines[at].inbox);
                if inbox.echoes.iter().any(|it| it.0 == phase) {
                    inbox.echoes.clear();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Sends loads at once in one direction, and returns the offered and the arrived packets of each.
    pub(super) fn load(
        &self,
        way: Way,
        wanted: &[Wanted],
        idle_ms: f64,
    ) -> Result<Vec<(Offered, Summary)>, MeasureError> {
        self.check()?;
        let loads: Vec<Load> = wanted.iter().map(|it| self.load_of(it)).collect();
        let sent = match way {
            Way::Down => {
                let longest = loads.iter().map(|it| it.time_ms).max().unwrap_or(0);
                let wait = ANSWER_TIMEOUT + Duration::from_millis(longest);
                let cost = |load: &Load| load.rate_bps / 8 * load.time_ms / 1_000;
                let cost = loads.iter().map(cost).sum::<u64>().min(self.left_bytes(way));
                take(self.budget(way), cost);
                let all = match self.ask(&Request::Send { loads: loads.clone() }, wait)? {
                    Reply::Sent { all } => all,
                    other => return Err(unexpected(&other)),
                };
                let size = |load: &Load| u64::from(load.size_bytes) + self.header_bytes;
                let sent = loads.iter().zip(&all);
                let sent = sent.map(|(it, sent)| sent.packets.saturating_mul(size(it)));
                // A host that is too slow sends less than it was asked for.
                let unsent = cost.saturating_sub(sent.fold(0, u64::saturating_add));
                self.budget(way).fetch_add(unsent, Ordering::Relaxed);
                all
            }
            Way::Up => self.send_all(&loads)?,
        };
        for load in &loads {
            self.drain(usize::from(load.path), idle_ms)?;
        }
        let mut all = Vec::new();
        for ((load, wanted), sent) in loads.iter().zip(wanted).zip(sent) {
            let summary = match way {
                Way::Down => {
                    let mut inbox = lock(&self.lines[wanted.line].inbox);
                    inbox.collectors.remove(&load.phase).unwrap_or_default().summary()
                }
                Way::Up => {
                    let ask = Request::Collect { path: load.path, phase: load.phase };
                    match self.ask(&ask, ANSWER_TIMEOUT)? {
                        Reply::Collected { summary } => summary,
                        other => return Err(unexpected(&other)),
                    }
                }
            };
            let packet_bits = self.packet_bits(load.size_bytes);
            let offered = Offered { packets: sent.packets, packet_bits, time_ns: sent.time_ns };
            all.push((offered, summary));
        }
        Ok(all)
    }

    fn load_of(&self, wanted: &Wanted) -> Load {
        Load {
            path: u8::try_from(wanted.line).unwrap_or(u8::MAX),
            phase: self.phase(),
            rate_bps: wanted.rate_bps.max(1.0) as u64,
            size_bytes: wanted.size_bytes,
            time_ms: u64::try_from(wanted.time.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Sends the client's loads, each on a thread.
    fn send_all(&self, loads: &[Load]) -> Result<Vec<super::message::Sent>, MeasureError> {
        let run = |load: &Load| {
            let line = &self.lines[usize::from(load.path)];
            let take = |bytes| take(self.budget(Way::Up), bytes);
            let mut send = |bytes: &[u8]| line.socket.send_to(bytes, self.to).map(drop);
            pace::run(load, self.token, self.header_bytes, self.stop, &take, &mut send)
        };
        let sent: io::Result<Vec<_>> = std::thread::scope(|scope| {
            let threads: Vec<_> = loads.iter().map(|it| scope.spawn(|| run(it))).collect();
            let ended = threads.into_iter().map(|it| it.join());
            ended.map(|it| it.unwrap_or_else(|_| Err(io::Error::other("it failed")))).collect()
        });
        sent.map_err(|error| MeasureError::Peer(format!("a path cannot send: {error}")))
    }

    fn ask(&self, request: &Request, timeout: Duration) -> Result<Reply, MeasureError> {
        let mut channel = lock(&self.channel);
        channel.set_timeout(timeout);
        let answer = channel.send(request).and_then(|()| channel.receive::<Reply>());
        self.check()?;
        match answer {
            Ok(Some(Reply::Refused { problem })) => {
                Err(MeasureError::Peer(format!("the far side refuses: {problem}")))
            }
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(MeasureError::Peer("the far side closed the connection".to_owned())),
            Err(error) => {
                Err(MeasureError::Peer(format!("the far side does not answer over TCP: {error}")))
            }
        }
    }

    fn phase(&self) -> u16 {
        // A measurement has far fewer.
        u16::try_from(self.next_phase.fetch_add(1, Ordering::Relaxed) % 65_536).unwrap_or(0)
    }

    fn check(&self) -> Result<(), MeasureError> {
        if self.stop.load(Ordering::Relaxed) { Err(MeasureError::Interrupted) } else { Ok(()) }
    }
}

impl Line {
    /// Returns true if TCP to the far side passes on the path.
    pub(super) fn passes_tcp(&self, to: SocketAddr) -> bool {
        let Ok(stream) = self.from.connect_within(to, Protocol::TCP, TCP_TIMEOUT) else {
            return false;
        };
        // The far side ends the connection.
        if let Ok(mut channel) = Channel::new(stream, TCP_TIMEOUT, MAX_LINE_BYTES) {
            let _ = channel.send(&Request::Options);
        }
        true
    }
}

/// Returns a TCP connection on the first path that has one. The error is that of the first path.
fn connected(from: &[From], to: SocketAddr) -> io::Result<TcpStream> {
    let mut first = None;
    for path in from {
        // Another path may work, so the wait is short.
        let found = match from.len() {
            1 => path.connect(to, Protocol::TCP),
            _ => path.connect_within(to, Protocol::TCP, TCP_TIMEOUT),
        };
        match found {
            Ok(stream) => return Ok(stream),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::ErrorKind::NotConnected.into()))
}

fn unexpected(reply: &Reply) -> MeasureError {
    let kind = match reply {
        Reply::Welcome { .. } => "a welcome",
        Reply::Refused { .. } => "a refusal",
        Reply::Sent { .. } => "counts",
        Reply::Collected { .. } => "a summary",
    };
    MeasureError::Peer(format!("the far side answered with {kind} out of turn"))
}

fn not_bound(from: &From, to: SocketAddr, error: &io::Error) -> MeasureError {
    let start = from.device.clone().or(from.address.map(|it| it.to_string())).unwrap_or_default();
    let text = format!(
        "--from: `{start}`: {error}\n  give a device or an address of this host with a route to {to}"
    );
    match error.kind() {
        io::ErrorKind::PermissionDenied => MeasureError::Privilege(text),
        _ => MeasureError::Usage(text),
    }
}
