//! An endpoint that sends and receives the packets of a world.

use crate::choice::Choices;
use crate::names::{Departure, Names, PathPrice};
use crate::observe::{Observe, Observed, PacketEvent};
use crate::virtio::Virtio;
use crate::world::{Outgoing, World};
use plait_base::{ConnId, PathId, Span, Time};
use plait_core::{Detail, Endpoint, Entropy};
use plait_wire::codec::{self, EncodeError, Headers, TcpChecksum, TooBig, Verify};
use plait_wire::{Flags, Payload, Segment};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Packets read per turn.
const BATCH: usize = 64;
/// Segments written per turn.
const SENT_AT_ONCE: usize = 256;
/// Interval at which idle connections free memory.
const REST: Span = Span::from_secs(5);
/// Bytes of the largest packet.
const LARGEST: usize = 0x1_0000;

/// Least MTU of a link that carries IPv6 (RFC 8200 section 5).
const LEAST_V6: u32 = 1_280;

/// Counters of a stack.
#[derive(Clone, Copy, Default, Debug)]
pub struct StackCounters {
    /// Packets read.
    pub packets_in: u64,
    /// Bytes of IP packets read.
    pub bytes_in: u64,
    /// Packets written.
    pub packets_out: u64,
    /// Bytes of IP packets written.
    pub bytes_out: u64,
    /// Bytes in packets that the device splits (superpackets).
    pub bytes_cut: u64,
    /// Bytes of the longest packet written.
    pub longest_out: u64,
    /// Packets without effect: damaged, of another protocol, to another address, or from a client
    /// without a path number.
    pub refused: u64,
    /// Packets that were not sent, because they could not be encoded or the kernel refused them.
    pub dropped: u64,
    /// The reason for the last dropped packet.
    pub why: Option<Untaken>,
}

/// Why a packet was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untaken {
    /// It cannot be encoded.
    Unencodable(EncodeError),
    /// The kernel's error.
    Refused(io::ErrorKind, Option<i32>),
}

fn untaken(sent: Result<(), io::Error>) -> Option<Untaken> {
    sent.err().map(|error| Untaken::Refused(error.kind(), error.raw_os_error()))
}

/// An endpoint, its addresses, and the world whose packets it processes.
#[expect(missing_debug_implementations, reason = "worlds and observers have none")]
pub struct Stack<W> {
    /// The world.
    pub world: W,
    /// The endpoint.
    pub endpoint: Endpoint,
    pub(crate) names: Names,
    pub(crate) counters: StackCounters,
    pub(crate) observed: Observed,
    pub(crate) choices: Choices,
    /// Ends that sent a RST since this was last cleared.
    pub(crate) resets: Vec<SocketAddr>,
    /// When idle connections free memory next.
    rests_at: Time,
    segment: Segment,
    incoming: Box<[u8]>,
    outgoing: Vec<u8>,
}

impl<W: World> Stack<W> {
    /// Returns an endpoint in `world` that draws keys and ports from `entropy`.
    #[must_use]
    pub fn new(world: W, names: Names, entropy: Box<dyn Entropy>) -> Stack<W> {
        let mut endpoint = Endpoint::new(entropy);
        endpoint.draw_ports();
        Stack {
            world,
            endpoint,
            names,
            counters: StackCounters::default(),
            observed: Observed::default(),
            choices: Choices::default(),
            resets: Vec::new(),
            rests_at: Time::ZERO,
            segment: Segment::default(),
            incoming: vec![0; LARGEST].into(),
            outgoing: Vec::with_capacity(LARGEST),
        }
    }

    /// Aborts and releases a connection. An unknown connection is already released.
    pub(crate) fn discard(&mut self, now: Time, conn: ConnId) {
        if self.endpoint.abort(now, conn).is_ok() {
            self.endpoint.release(now, conn).ok();
        }
    }

    /// Passes the addresses of dialled paths to the path memory, if there is one.
    pub(crate) fn name_paths(&mut self, paths: &[PathId]) {
        if let Some(memory) = self.endpoint.path_memory() {
            let names = paths.iter().filter_map(|path| Some((*path, self.names.of_path(*path)?)));
            names.for_each(|(path, name)| memory.name(path, name));
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// Returns the counters.
    pub fn counters(&self) -> StackCounters {
        self.counters
    }

    /// Clears the list of ends that sent a RST. It is for drivers without an engine.
    pub fn forget_resets(&mut self) {
        self.resets.clear();
    }

    /// Reports every packet and event to `observer` from now on.
    pub fn observe(&mut self, observer: Box<dyn Observe>) {
        self.observed.start(observer, self.world.epoch_ns());
        self.endpoint.record_events(Detail::Everything);
    }

    /// Reads up to 64 arrived packets.
    ///
    /// # Errors
    /// Returns an error if the device is gone.
    pub fn take_in(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            let read = self.world.receive(&mut self.incoming)?;
            let Some((len, virtio)) = read else { break };
            self.counters.packets_in += 1;
            self.counters.bytes_in += len as u64;
            if self.observed.is_on() {
                virtio.finish_checksum(self.incoming.get_mut(..len).unwrap_or_default());
            }
            let taken = self.handle(len, virtio.verify());
            self.counters.refused += u64::from(taken.is_none());
        }
        Ok(())
    }

    /// Passes the packet at the start of the buffer to the endpoint.
    fn handle(&mut self, len: usize, verify: Verify) -> Option<()> {
        let bytes = self.incoming.get(..len)?;
        let Ok(packet) = codec::parse_into(bytes, verify, &mut self.segment) else {
            return self.on_too_big(len);
        };
        let Headers { src, dst, .. } = packet.headers;
        let (path, server) =
            self.names.of_arrival(&self.endpoint, src, dst, self.segment.dst_port)?;
        if let Some(PathPrice { path, cost, quota }) = self.names.take_price() {
            self.endpoint.set_price(path, cost, quota);
        }
        self.segment.server = server;
        if !packet.payload.is_empty() {
            self.segment.payload = Payload::from_bytes(packet.payload);
        }
        let now = self.world.now();
        if self.observed.is_on()
            && let Some(client) = self.names.client_of(path)
        {
            let segment = &self.segment;
            let packet = PacketEvent { path, client, outbound: false, segment, bytes };
            self.observed.on_packet(now, &packet);
        }
        if !self.choices.is_empty() {
            self.choose(src);
        }
        self.endpoint.handle_from(now, src, path, &self.segment);
        if self.segment.flags.has(Flags::RST) {
            self.resets.push(SocketAddr::new(src, self.segment.src_port));
        }
        self.observed.tell(now, &mut self.endpoint);
        Some(())
    }

    /// Passes a router's "packet too big" message about one of our packets to the endpoint, if the
    /// buffer starts with one.
    #[cold]
    fn on_too_big(&mut self, len: usize) -> Option<()> {
        let told = codec::parse_too_big(self.incoming.get(..len)?)?;
        // Source and destination are swapped, because names look up arrivals.
        let (path, server) =
            self.names.of_arrival(&self.endpoint, told.dst, told.src, told.src_port)?;
        // The core counts with an IPv4 header. A smaller MTU than 1,280 bytes is invalid for IPv6
        // (RFC 8201 section 4).
        let mtu = match told.src {
            IpAddr::V4(_) => told.mtu,
            IpAddr::V6(_) if told.mtu < LEAST_V6 => 0,
            IpAddr::V6(_) => told.mtu - 20,
        };
        let TooBig { src_port, dst_port, seq, .. } = told;
        let quoted = Segment { src_port, dst_port, seq, server, ..Segment::default() };
        let now = self.world.now();
        self.endpoint.on_too_big(now, path, &quoted, mtu);
        self.observed.tell(now, &mut self.endpoint);
        Some(())
    }

    /// Applies the rules to a client that opens a connection.
    fn choose(&mut self, from: IpAddr) {
        let Segment { flags, dst_port, .. } = self.segment;
        if flags.has(Flags::SYN)
            && !flags.has(Flags::ACK)
            && let Some(spec) = self.choices.spec(dst_port, from)
        {
            self.endpoint.listen(dst_port, Arc::clone(spec));
        }
    }

    /// Writes up to 256 segments of the endpoint. Returns true if there may be more. The limit
    /// keeps thousands of answers to strangers from delaying arrived packets.
    ///
    /// # Errors
    /// Returns an error if the device is gone.
    pub fn send(&mut self) -> io::Result<bool> {
        let now = self.world.now();
        for _ in 0..SENT_AT_ONCE {
            let Some(transmit) = self.endpoint.poll_transmit(now) else { return Ok(false) };
            self.observed.tell(now, &mut self.endpoint);
            self.send_segment(now, transmit.path, &transmit.segment, transmit.cut)?;
            self.endpoint.recycle(transmit.segment);
        }
        Ok(true)
    }

    /// Writes a segment. The device splits it into segments with `cut` bytes of payload if `cut` is
    /// not zero.
    fn send_segment(
        &mut self,
        now: Time,
        path: PathId,
        segment: &Segment,
        cut: u16,
    ) -> io::Result<()> {
        if segment.flags.has(Flags::SYN) {
            self.names.on_syn(&self.endpoint, path, segment.src_port, segment.server);
        }
        let departure = self.names.of_departure(&self.endpoint, path, segment.server);
        let Some(Departure { src, dst, exit }) = departure else { return Ok(()) };
        let headers = Headers::new(src, dst);
        let offloaded = exit.is_none() && self.world.offloads();
        self.outgoing.clear();
        let out = &mut self.outgoing;
        let checksum = if offloaded { TcpChecksum::PseudoHeader } else { TcpChecksum::Full };
        // If the payload is lent to the device, only the headers are written here.
        let lent = segment.payload.bytes().filter(|_| exit.is_none()).unwrap_or_default();
        let encoded = match lent.is_empty() {
            false => codec::encode_headers(&headers, segment, checksum, out),
            true => codec::encode(&headers, segment, checksum, out),
        };
        let len = codec::encoded_len(&headers, segment) as u64;
        let cut = if segment.payload.len() > u32::from(cut) { cut } else { 0 };
        let virtio = match offloaded {
            true => {
                let header_len = len as usize - segment.payload.len() as usize;
                Virtio::of_tcp(headers.len(), header_len, cut)
            }
            false => Virtio::default(),
        };
        let taken = match &encoded {
            Err(error) => Some(Untaken::Unencodable(*error)),
            Ok(_) => {
                let packet = Outgoing { headers: out, payload: lent, virtio, exit, to: dst };
                untaken(self.world.send(&packet)?)
            }
        };
        self.counters.why = taken.or(self.counters.why);
        if taken.is_none() {
            self.counters.packets_out += 1;
            self.counters.bytes_out += len;
            self.counters.bytes_cut += if cut > 0 { len } else { 0 };
            self.counters.longest_out = self.counters.longest_out.max(len);
            if self.observed.is_on()
                && let Some(client) = self.names.client_of(path)
            {
                if (self.outgoing.len() as u64) < len {
                    self.outgoing.extend_from_slice(lent);
                }
                virtio.finish_checksum(&mut self.outgoing);
                let bytes = &self.outgoing;
                let packet = PacketEvent { path, client, outbound: true, segment, bytes };
                self.observed.on_packet(now, &packet);
            }
        } else {
            self.counters.dropped += 1;
        }
        Ok(())
    }

    /// Processes the timers of the endpoint that are due.
    pub fn expire(&mut self) {
        let now = self.world.now();
        if self.endpoint.poll_timeout() <= now {
            self.endpoint.handle_timeout(now);
            self.observed.tell(now, &mut self.endpoint);
        }
        self.observed.show(now);
        if now >= self.rests_at {
            self.endpoint.shrink_idle(now);
            self.names.shrink_idle(&self.endpoint);
            self.endpoint.learn_paths(now);
            self.rests_at = now + REST;
        }
    }

    /// Returns when the endpoint or the observer must be called.
    pub fn next(&self) -> Time {
        self.endpoint.poll_timeout().min(self.observed.due())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use plait_core::Entropy;

    /// Numbers that are all different, but not random.
    #[derive(Default)]
    pub(crate) struct Counted(u64);

    impl Entropy for Counted {
        fn bits(&mut self) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.0 ^ self.0 >> 29
        }
    }
}
