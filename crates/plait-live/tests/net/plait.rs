//! plait as the server and as the client.

use super::{Bed, until};
use plait_core::{Config, ConnectionSpec, JoinTiming, Pacing};
use plait_live::{
    Client, DialSettings, LogEvent, Origin, ServeSettings, Server, ServiceAddress, StackCounters,
};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Returns the settings of connections with this scheduler.
pub fn spec(scheduler: &str) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse(scheduler).unwrap();
    let controller = plait_cc::Spec::parse("cubic").unwrap();
    ConnectionSpec {
        // As `plait get` and `plait serve`.
        config: Config::default().with(|it| {
            it.joins.timing = JoinTiming::Agreed;
            it.window.pacing = Pacing::asked_by(&scheduler);
        }),
        paths: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
        addresses: Vec::new(),
    }
}

/// A server that runs on a separate thread.
pub struct Serving {
    stopper: UnixStream,
    /// Number of ended connections.
    ended: Arc<AtomicUsize>,
    thread: JoinHandle<io::Result<(Vec<LogEvent>, StackCounters)>>,
}

impl Serving {
    /// Starts a server in front of `to`, at the bed's service address and the further addresses of `spec`.
    pub fn start(bed: &Bed, to: SocketAddr, spec: ConnectionSpec) -> io::Result<Serving> {
        let listen = SocketAddr::new(bed.family.service(), 80);
        let further = spec.addresses.iter().copied().map(ServiceAddress::from).collect();
        let settings = ServeSettings { further, ..ServeSettings::new(listen, to, "plait0", spec) };
        let mut server = bed.server.within(|| Server::open(settings))??;
        let stopper = server.stopper()?;
        let space = bed.server.try_clone()?;
        let ended = Arc::new(AtomicUsize::new(0));
        let count = ended.clone();
        let thread = thread::spawn(move || {
            space.enter()?;
            let mut log_events = Vec::new();
            server.run(|event| {
                let over = matches!(event, LogEvent::Ended { .. });
                count.fetch_add(usize::from(over), Ordering::Relaxed);
                log_events.push(event.clone());
            })?;
            Ok((log_events, server.counters()))
        });
        Ok(Serving { stopper, ended, thread })
    }

    /// Returns the number of ended connections.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits until `count` connections have ended. A stopped server would wait only a few seconds for them.
    pub fn until_ended(&self, count: usize) {
        until("the end of connections", || self.ended() >= count);
    }

    /// Stops the server and returns its events and counters.
    pub fn stop(mut self) -> io::Result<(Vec<LogEvent>, StackCounters)> {
        self.stopper.write_all(&[0])?;
        self.thread.join().unwrap()
    }
}

/// Runs plait as a client, and reads the answer up to its end. Dials from an own address on every path of
/// the bed. Writes the first byte of `request`, and the others when `ready` returns true.
pub fn exchange(
    bed: &Bed,
    paths: usize,
    to: SocketAddr,
    spec: ConnectionSpec,
    request: &[u8],
    ready: impl Fn() -> bool,
) -> io::Result<(Vec<u8>, Vec<LogEvent>, StackCounters)> {
    let from = (0..paths).map(|at| Origin {
        address: bed.family.guest(at),
        device: Some(format!("c{at}")),
        cost: 0,
        quota: None,
    });
    let (from, device) = (from.collect(), "plait0".to_owned());
    let settings = DialSettings { from, device, spec };
    let mut client = bed.client.within(|| Client::open(settings))??;
    let (ours, theirs) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
    client.connect(to, theirs, None)?;
    let running = thread::spawn(move || {
        let mut log_events = Vec::new();
        client.run(|event| log_events.push(event.clone()))?;
        io::Result::Ok((log_events, client.counters()))
    });
    let (mut reader, mut writer) = (ours.try_clone()?, ours);
    let (first, others) = request.split_at(1);
    writer.write_all(first)?;
    until("what a request waits for", ready);
    let bytes = thread::scope(|scope| {
        let writing = scope.spawn(move || writer.write_all(others).map(|()| writer));
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        // A kernel refuses joins after it has received the DATA_FIN.
        writing.join().unwrap()?.shutdown(Shutdown::Write)?;
        io::Result::Ok(bytes)
    })?;
    let (log_events, counters) = running.join().unwrap()?;
    Ok((bytes, log_events, counters))
}
