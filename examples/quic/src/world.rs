//! One download over two emulated paths: two endpoints of noq, plait's links between them, and virtual time.

use crate::adapter::Adapter;
use crate::gate::Gates;
use crate::host::{Host, Identity};
use bytes::BytesMut;
use noq_proto::congestion::{ControllerFactory, CubicConfig};
use noq_proto::{Connection, Dir, FourTuple, PathStatus, StreamId};
use noq_proto::{ReadError, Transmit, WriteError};
use plait_base::{Chance, Rate, Span, Time};
use plait_link::{Fate, Impairments, Link, LinkConfig, RateSource};
use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// UDP payload of a full packet.
pub(crate) const MTU: u16 = 1452;
/// Bytes of the headers of IPv4 and UDP.
const HEADERS: u32 = 28;
/// Bytes that the client grants to a stream.
pub(crate) const WINDOW: u32 = 4_000_000;
/// Time of the request. Both paths are open and idle by then.
const START: Duration = Duration::from_secs(1);
/// A download that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(300);
/// Largest random delay of a packet.
const JITTER: Span = Span::from_millis(1);
/// The client's addresses, one on each path.
const CLIENT: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1))];
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 1));
pub(crate) const PORT: u16 = 4433;

/// A path, with the same link in both directions.
#[derive(Clone, Copy, Debug)]
pub struct PathConfig {
    /// Rate in bit/s, counted over IP packets.
    pub bps: u64,
    /// Round-trip time without a queue, in milliseconds.
    pub rtt_ms: u64,
    /// Random loss, in packets of a thousand million.
    pub loss_ppb: u32,
}

/// The result of a download.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Download {
    /// Time from the request to the last byte.
    pub seconds: f64,
    /// Bytes of the UDP datagrams that the server sent on each path.
    pub sent: [u64; 2],
}

/// A datagram on its way.
struct Packet {
    to_server: bool,
    tuple: FourTuple,
    bytes: BytesMut,
}

struct World {
    epoch: Instant,
    now: Instant,
    client: Host,
    server: Host,
    adapter: Option<Adapter>,
    /// The links of each path: to the client, and to the server.
    links: Vec<[Link; 2]>,
    /// Datagrams on their way, by time of arrival and number.
    flying: BTreeMap<(Time, u64), Packet>,
    packets: u64,
    sent: [u64; 2],
    buffer: Vec<u8>,
}

/// Downloads `bytes` over one path or two. The server takes a `scheduler` of plait, or noq's own choice if it is
/// `None`.
///
/// # Errors
/// Returns an error if there is no such scheduler, or the download does not end.
pub fn download(
    scheduler: Option<&str>,
    paths: &[PathConfig],
    bytes: u64,
    seed: u64,
) -> Result<Download, Box<dyn Error>> {
    let mut world = World::new(scheduler, paths, seed)?;
    let mut transfer = Transfer { bytes, written: 0, request: None, response: None };
    let mut opened = paths.len() < 2;
    let start = world.epoch + START;
    loop {
        world.exchange();
        if let Some(client) = world.client.connection() {
            if !opened && client.is_multipath_negotiated() {
                let path = FourTuple::new(SocketAddr::new(SERVER, PORT), Some(CLIENT[1]));
                opened = client.open_path(path, PathStatus::Available, world.now).is_ok();
            }
            if transfer.request.is_none() && world.now >= start {
                transfer.request = Some(request(client)?);
                world.sent = [0; 2];
            }
            if transfer.is_read(client)? {
                let seconds = world.now.duration_since(start).as_secs_f64();
                return Ok(Download { seconds, sent: world.sent });
            }
        }
        transfer.answer(&mut world)?;
        world.exchange();
        let start = transfer.request.is_none().then_some(start);
        if !world.advance(start) {
            return Err("the download does not end".into());
        }
    }
}

/// Opens a stream and asks for the data.
fn request(client: &mut Connection) -> Result<StreamId, Box<dyn Error>> {
    let id = client.streams().open(Dir::Bi).ok_or("no stream can be opened")?;
    let mut stream = client.send_stream(id);
    stream.write(b"get")?;
    stream.finish()?;
    Ok(id)
}

/// Both ends of the transfer.
struct Transfer {
    bytes: u64,
    written: u64,
    request: Option<StreamId>,
    response: Option<StreamId>,
}

impl Transfer {
    /// Writes as much as the server's connection takes.
    fn answer(&mut self, world: &mut World) -> Result<(), Box<dyn Error>> {
        let Some(server) = world.server.connection() else { return Ok(()) };
        if self.response.is_none() {
            self.response = server.streams().accept(Dir::Bi);
            if self.response.is_none() {
                return Ok(());
            }
            if let Some(adapter) = &mut world.adapter {
                adapter.offer(server, world.now, self.bytes);
            }
        }
        let Some(id) = self.response.filter(|_| self.written < self.bytes) else { return Ok(()) };
        let (mut stream, zeros) = (server.send_stream(id), [0; 16_384]);
        while self.written < self.bytes {
            let len = zeros.len().min(usize::try_from(self.bytes - self.written)?);
            match stream.write(&zeros[..len]) {
                Ok(written) => self.written += written as u64,
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(stream.finish()?)
    }

    /// Reads what has arrived in order. Returns true if that is all.
    fn is_read(&self, client: &mut Connection) -> Result<bool, Box<dyn Error>> {
        let Some(id) = self.request else { return Ok(false) };
        let mut stream = client.recv_stream(id);
        let mut chunks = stream.read(true)?;
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(ReadError::Blocked) => break false,
                Err(error) => return Err(error.into()),
            }
        };
        let _ = chunks.finalize();
        Ok(end)
    }
}

impl World {
    fn new(
        scheduler: Option<&str>,
        paths: &[PathConfig],
        seed: u64,
    ) -> Result<World, Box<dyn Error>> {
        let epoch = Instant::now();
        let cubic = Arc::new(CubicConfig::default());
        let (adapter, controllers): (_, Arc<dyn ControllerFactory + Send + Sync>) = match scheduler
        {
            Some(name) => {
                let gates = Arc::new(Gates::new(cubic, MTU, epoch));
                (Some(Adapter::new(name, Arc::clone(&gates), u64::from(WINDOW))?), gates)
            }
            None => (None, cubic),
        };
        let identity = Identity::new()?;
        let link = |path: &PathConfig, at: usize, way: &str| {
            let delay = Span::from_micros(path.rtt_ms * 500);
            let mut config = LinkConfig::new(RateSource::Fixed(Rate::from_bps(path.bps)), delay);
            config.impairments = Impairments {
                loss: Chance::from_ppb(path.loss_ppb).into(),
                jitter: JITTER,
                ..Impairments::NONE
            };
            Link::new(&config, seed, &[&at.to_string(), way])
        };
        let links =
            paths.iter().enumerate().map(|(at, it)| [link(it, at, "down"), link(it, at, "up")]);
        Ok(World {
            epoch,
            now: epoch,
            client: Host::client(&identity, seed, epoch)?,
            server: Host::server(&identity, seed, controllers)?,
            adapter,
            links: links.collect(),
            flying: BTreeMap::new(),
            packets: 0,
            sent: [0; 2],
            buffer: Vec::new(),
        })
    }

    fn time(&self) -> Time {
        let elapsed = self.now.duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Sends all that both hosts have to send now.
    fn exchange(&mut self) {
        self.client.handle_events();
        self.server.handle_events();
        while let Some(transmit) = self.client.poll_transmit(self.now, None, &mut self.buffer) {
            self.send(true, &transmit);
        }
        while let Some(transmit) =
            self.server.poll_transmit(self.now, self.adapter.as_mut(), &mut self.buffer)
        {
            self.send(false, &transmit);
        }
    }

    /// Puts a datagram on the link of its path.
    fn send(&mut self, to_server: bool, transmit: &Transmit) {
        let address = match to_server {
            true => transmit.src_ip.unwrap_or(CLIENT[0]),
            false => transmit.destination.ip(),
        };
        let bytes = BytesMut::from(self.buffer.as_slice());
        self.buffer.clear();
        let Some(path) = CLIENT.iter().position(|it| *it == address) else { return };
        let now = self.time();
        let Some(links) = self.links.get_mut(path) else { return };
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_add(HEADERS);
        let tuple = match to_server {
            true => FourTuple::new(SocketAddr::new(address, PORT), Some(SERVER)),
            false => FourTuple::new(SocketAddr::new(SERVER, PORT), Some(address)),
        };
        if !to_server {
            self.sent[path] += bytes.len() as u64;
        }
        if let Fate::Deliver { arrives, .. } = links[usize::from(to_server)].offer(now, size) {
            self.packets += 1;
            self.flying.insert((arrives, self.packets), Packet { to_server, tuple, bytes });
        }
    }

    /// Goes on to the next event, `start` included. Returns false if there is none within the time limit.
    fn advance(&mut self, start: Option<Instant>) -> bool {
        let arrival = self.flying.keys().next();
        let arrival = arrival.map(|(at, _)| self.epoch + Duration::from_nanos(at.as_nanos()));
        let timeouts = [self.client.timeout(), self.server.timeout()];
        let next = timeouts.into_iter().chain([start, arrival]).flatten().min();
        let Some(next) = next.filter(|next| *next < self.epoch + LIMIT) else { return false };
        self.now = self.now.max(next);
        let now = self.time();
        while let Some(first) = self.flying.first_entry() {
            if first.key().0 > now {
                break;
            }
            let packet = first.remove();
            let host = if packet.to_server { &mut self.server } else { &mut self.client };
            host.receive(self.now, packet.tuple, packet.bytes);
        }
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        true
    }
}
