//! The far side of a measurement.

use super::channel::Channel;
use super::clock::Clock;
use super::collect::Collector;
use super::message::{Load, MAX_LINE_BYTES, Reply, Request, Sent, VERSION, digits};
use super::packet::{HEADER_BYTES, Kind, MAX_DATAGRAM_BYTES, Packet, Token};
use super::{MeasureError, pace, socket};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Longest wait for the next line of a client.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time beyond that of the measurement for its waits.
const SLACK: Duration = Duration::from_secs(15);
/// Longest load. It goes on to its end if the client disappears.
const MAX_LOAD: Duration = Duration::from_secs(10);
/// How often the server looks whether it must stop.
const POLL: Duration = Duration::from_millis(100);
/// Most loads that one request may have, and most paths of a measurement.
const MAX_PATHS: usize = 8;
/// Most loads that are remembered in a measurement.
const MAX_COLLECTORS: usize = 512;
/// Most connections that are waited for at once, those that only show options included.
const MAX_CONNECTIONS: usize = 64;

/// The limits of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Measurements at a time.
    pub clients: usize,
    /// Bytes that one measurement may send, in each direction.
    pub bytes: u64,
    /// Time of one measurement.
    pub time: Duration,
}

/// A measurement that is open.
#[derive(Debug)]
struct Session {
    token: Token,
    /// Where the client is on each path.
    addresses: Mutex<BTreeMap<u8, SocketAddr>>,
    collectors: Mutex<BTreeMap<(u8, u16), Collector>>,
    /// Bytes that it may send in all.
    bytes: u64,
    /// Bytes that may still be sent.
    left_bytes: AtomicU64,
    /// Bytes that may still arrive.
    left_arriving: AtomicU64,
    over: AtomicBool,
}

/// All that threads of a server share.
#[derive(Debug)]
struct Shared {
    socket: UdpSocket,
    header_bytes: u64,
    limits: Limits,
    mptcp: bool,
    sessions: Mutex<BTreeMap<Token, Arc<Session>>>,
    connections: AtomicU64,
    /// Keys of the proofs.
    proofs: RandomState,
}

/// Serves measurements until `stop` is set. Remarks go to `say`.
///
/// # Errors
/// If the address cannot be used.
pub fn serve(
    at: SocketAddr,
    limits: Limits,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), MeasureError> {
    let refused = |error: io::Error| {
        let text =
            format!("--listen: {at}: {error}\n  give an address of this host, and a free port");
        match error.kind() {
            ErrorKind::PermissionDenied => MeasureError::Privilege(text),
            _ => MeasureError::Usage(text),
        }
    };
    let (listener, mptcp) = socket::listener(at).map_err(refused)?;
    let socket = socket::datagrams(at).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    socket.set_read_timeout(Some(POLL)).map_err(refused)?;
    let shared = Shared {
        socket,
        header_bytes: socket::header_bytes(at),
        limits,
        mptcp,
        sessions: Mutex::default(),
        connections: AtomicU64::new(0),
        proofs: RandomState::new(),
    };
    say(&format!("measure: ready at {at}; it ends with Ctrl-C"));
    let mut refused = 0_u64;
    thread::scope(|scope| {
        scope.spawn(|| shared.receive(stop));
        while !stop.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, from)) => {
                    let shared = &shared;
                    let open = shared.connections.fetch_add(1, Ordering::Relaxed);
                    if open >= MAX_CONNECTIONS as u64 {
                        shared.connections.fetch_sub(1, Ordering::Relaxed);
                        refused += 1;
                        // A flood of connections must not become a flood of lines.
                        if refused.is_power_of_two() {
                            say(&format!(
                                "measure: {from}: refused: {MAX_CONNECTIONS} connections are open \
                                 ({refused} refused so far)"
                            ));
                        }
                        continue;
                    }
                    scope.spawn(move || {
                        shared.attend(stream, from, stop, say);
                        shared.connections.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                Err(_) => super::clock::sleep(POLL / 4),
            }
        }
    });
    Ok(())
}

impl Shared {
    /// Takes datagrams: answers probes, and counts loads.
    fn receive(&self, stop: &AtomicBool) {
        let clock = Clock::start();
        let mut bytes = [0; MAX_DATAGRAM_BYTES + 100];
        while !stop.load(Ordering::Relaxed) {
            let Ok((length, from)) = self.socket.recv_from(&mut bytes) else { continue };
            let arrived_ns = clock.now_ns();
            let Some(packet) = bytes.get(..length).and_then(Packet::read) else { continue };
            let session = lock(&self.sessions).get(&packet.token).cloned();
            let Some(session) = session.filter(|_| usize::from(packet.path) < MAX_PATHS) else {
                continue;
            };
            let size = length as u64 + self.header_bytes;
            if !take(&session.left_arriving, size) {
                continue;
            }
            match packet.kind {
                Kind::Probe => {
                    // Nobody but the owner of an address can send its proof, so no load goes to others.
                    let proof = self.proofs.hash_one((packet.token, packet.path, from));
                    if packet.proof == proof {
                        lock(&session.addresses).insert(packet.path, from);
                    }
                    let echo = Packet {
                        kind: Kind::Echo,
                        probe_ns: packet.sent_ns,
                        arrived_ns,
                        sent_ns: clock.now_ns(),
                        proof,
                        ..packet
                    };
                    let mut answer = [0; MAX_DATAGRAM_BYTES];
                    echo.write(&mut answer);
                    // An answer is never longer than its probe.
                    if take(&session.left_bytes, size) {
                        let _ = self.socket.send_to(&answer[..length.min(HEADER_BYTES)], from);
                    }
                }
                Kind::Data => {
                    let mut collectors = lock(&session.collectors);
                    let key = (packet.path, packet.phase);
                    if collectors.len() < MAX_COLLECTORS || collectors.contains_key(&key) {
                        collectors.entry(key).or_default().add(packet.sent_ns, arrived_ns);
                    }
                }
                Kind::Echo => {}
            }
        }
    }

    /// Serves a connection to its end.
    fn attend(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        stop: &AtomicBool,
        say: &(dyn Fn(&str) + Sync),
    ) {
        let Ok(mut channel) = Channel::new(stream, IDLE_TIMEOUT, MAX_LINE_BYTES) else { return };
        let hello = match channel.receive() {
            Ok(Some(Request::Hello { version, time_ms, bytes, paths })) => {
                self.open(version, Duration::from_millis(time_ms), bytes, paths)
            }
            Ok(Some(Request::Options) | None) => return,
            _ => Err("the first line must say hello".to_owned()),
        };
        let (session, time) = match hello {
            Ok(opened) => opened,
            Err(problem) => {
                say(&format!("measure: {from}: refused: {problem}"));
                let _ = channel.send(&Reply::Refused { problem });
                return;
            }
        };
        say(&format!("measure: {from}: begins, for at most {} s", time.as_secs()));
        let token = digits(&session.token);
        let host = host(&session.token);
        if channel.send(&Reply::Welcome { token, host, mptcp: self.mptcp }).is_ok() {
            self.answer(&mut channel, &session, time, stop);
        }
        session.over.store(true, Ordering::Relaxed);
        lock(&self.sessions).remove(&session.token);
        let sent = session.bytes.saturating_sub(session.left_bytes.load(Ordering::Relaxed));
        say(&format!("measure: {from}: ended, {:.1} MB sent", sent as f64 / 1e6));
    }

    /// Opens a measurement within the limits.
    fn open(
        &self,
        version: u32,
        time: Duration,
        bytes: u64,
        paths: u8,
    ) -> Result<(Arc<Session>, Duration), String> {
        if version != VERSION {
            return Err(format!("the client speaks version {version}, and this server {VERSION}"));
        }
        if usize::from(paths) > MAX_PATHS {
            return Err(format!("{paths} paths; allowed: at most {MAX_PATHS}"));
        }
        if time > self.limits.time {
            let most = self.limits.time.as_secs();
            return Err(format!("{} s are asked for; allowed: --time {most}s", time.as_secs()));
        }
        if bytes > self.limits.bytes {
            let most = self.limits.bytes / 1_000_000;
            return Err(format!(
                "{} MB are asked for; allowed: --quota {most}MB",
                bytes / 1_000_000
            ));
        }
        let mut token = Token::default();
        getrandom::fill(&mut token).map_err(|error| format!("no random numbers: {error}"))?;
        let session = Arc::new(Session {
            token,
            addresses: Mutex::default(),
            collectors: Mutex::default(),
            bytes,
            left_bytes: AtomicU64::new(bytes),
            left_arriving: AtomicU64::new(bytes),
            over: AtomicBool::new(false),
        });
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= self.limits.clients {
            let most = self.limits.clients;
            return Err(busy(most));
        }
        sessions.insert(token, Arc::clone(&session));
        Ok((session, time + SLACK))
    }

    /// Answers requests until the connection or its time is over.
    fn answer(&self, channel: &mut Channel, session: &Session, time: Duration, stop: &AtomicBool) {
        let clock = Clock::start();
        while !stop.load(Ordering::Relaxed) {
            let Some(left) = time.checked_sub(clock.elapsed()).filter(|left| !left.is_zero())
            else {
                let _ = channel.send(&Reply::Refused { problem: "the time is over".to_owned() });
                return;
            };
            channel.set_timeout(left.min(IDLE_TIMEOUT));
            let Ok(Some(request)) = channel.receive() else { return };
            let reply = match request {
                Request::Send { loads } => self.send(session, &loads, left, stop),
                Request::Collect { path, phase } => {
                    let collector = lock(&session.collectors).remove(&(path, phase));
                    Reply::Collected { summary: collector.unwrap_or_default().summary() }
                }
                Request::Hello { .. } | Request::Options => {
                    Reply::Refused { problem: "the connection has begun already".to_owned() }
                }
            };
            if channel.send(&reply).is_err() {
                return;
            }
        }
    }

    /// Sends loads at once.
    fn send(&self, session: &Session, loads: &[Load], left: Duration, stop: &AtomicBool) -> Reply {
        let addresses = lock(&session.addresses).clone();
        let refused = |problem: &str| Reply::Refused { problem: problem.to_owned() };
        if loads.len() > MAX_PATHS {
            return refused("too many loads");
        }
        let mut all: Vec<(Load, SocketAddr)> = Vec::new();
        for load in loads {
            let Some(to) = addresses.get(&load.path) else {
                return refused("the path has not answered an echo yet");
            };
            let longest = u64::try_from(left.min(MAX_LOAD).as_millis()).unwrap_or(u64::MAX);
            all.push((Load { time_ms: load.time_ms.min(longest), ..*load }, *to));
        }
        let run = |(load, to): &(Load, SocketAddr)| -> io::Result<Sent> {
            let take = |bytes| take(&session.left_bytes, bytes);
            let mut send = |bytes: &[u8]| self.socket.send_to(bytes, to).map(drop);
            pace::run(load, session.token, self.header_bytes, stop, &take, &mut send)
        };
        let sent: io::Result<Vec<Sent>> = thread::scope(|scope| {
            let threads: Vec<_> = all.iter().map(|it| scope.spawn(|| run(it))).collect();
            let ended = threads.into_iter().map(|it| it.join());
            ended.map(|it| it.unwrap_or_else(|_| Err(io::Error::other("it failed")))).collect()
        });
        match sent {
            Ok(all) => Reply::Sent { all },
            Err(error) => Reply::Refused { problem: format!("it cannot send: {error}") },
        }
    }
}

/// Takes bytes from a budget. Returns false if too few are left.
pub(super) fn take(left: &AtomicU64, bytes: u64) -> bool {
    let less = |left: u64| left.checked_sub(bytes);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

/// Returns a number that both ends of a measurement have in common if they are one host.
pub(super) fn host(token: &Token) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (token, boot).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Explains that so many measurements are as many as may run at once.
fn busy(most: usize) -> String {
    let run = if most == 1 {
        "a measurement runs".to_owned()
    } else {
        format!("{most} measurements run")
    };
    format!("{run} already; try again later")
}

#[cfg(test)]
mod tests {
    use super::super::message::token;
    use super::*;
    use std::net::TcpListener;

    fn probe(token: Token, proof: u64) -> [u8; HEADER_BYTES] {
        let (kind, path, phase) = (Kind::Probe, 0, 0);
        let (number, sent_ns, probe_ns, arrived_ns) = (0, 1, 0, 0);
        let packet =
            Packet { token, kind, path, phase, number, sent_ns, probe_ns, arrived_ns, proof };
        let mut bytes = [0; MAX_DATAGRAM_BYTES];
        packet.write(&mut bytes);
        bytes[..HEADER_BYTES].try_into().unwrap()
    }

    #[test]
    fn one_measurement_is_one() {
        assert_eq!(busy(1), "a measurement runs already; try again later");
        assert_eq!(busy(2), "2 measurements run already; try again later");
    }

    /// A client that knows the token cannot direct a load to an address of somebody else: that address does not
    /// return the number of the echo.
    #[test]
    fn a_load_goes_only_to_an_address_that_returned_its_proof() {
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let stop = AtomicBool::new(false);
        let limits = Limits { clients: 1, bytes: 1_000_000, time: Duration::from_secs(20) };
        thread::scope(|scope| {
            scope.spawn(|| serve(at, limits, &stop, &|_| ()));
            let stream = (0..200).find_map(|_| {
                crate::live::clock::sleep(Duration::from_millis(10));
                TcpStream::connect(at).ok()
            });
            let mut channel = Channel::new(stream.unwrap(), IDLE_TIMEOUT, MAX_LINE_BYTES).unwrap();
            let hello =
                Request::Hello { version: VERSION, time_ms: 9_000, bytes: 100_000, paths: 1 };
            channel.send(&hello).unwrap();
            let Some(Reply::Welcome { token: digits, .. }) = channel.receive().unwrap() else {
                panic!("no welcome");
            };
            let token = token(&digits).unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut echo = [0; 2_000];
            let mut exchanged = |proof| {
                socket.send_to(&probe(token, proof), at).unwrap();
                let length = socket.recv(&mut echo).unwrap();
                Packet::read(&echo[..length]).unwrap().proof
            };
            let proof = exchanged(0);
            let load =
                Load { path: 0, phase: 1, rate_bps: 1_000_000, size_bytes: 400, time_ms: 100 };
            let mut ask = || {
                channel.send(&Request::Send { loads: vec![load] }).unwrap();
                channel.receive::<Reply>().unwrap().unwrap()
            };
            assert!(matches!(ask(), Reply::Refused { .. }));
            assert_eq!(exchanged(proof), proof);
            assert!(matches!(ask(), Reply::Sent { all } if all[0].packets > 10));
            drop(channel);
            stop.store(true, Ordering::Relaxed);
        });
    }
}
