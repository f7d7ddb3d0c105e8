//! Implements the world of an engine on the host's kernel: a clock, a TUN device and sockets.

use crate::device::Device;
use crate::exit::Exit;
use crate::poller::Poller;
use crate::program::Program;
use crate::{Clock, SystemEntropy};
use plait_base::{ConnId, Time};
use plait_engine::{Buffers, Interest, Names, Outgoing, Stack, Virtio, World};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Token of the device in the poller. The token of a stream is the number of its connection.
pub(crate) const DEVICE: u64 = u64::MAX;
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// The kernel of this host.
pub(crate) struct Kernel {
    pub(crate) clock: Clock,
    pub(crate) device: Device,
    pub(crate) poller: Poller,
    /// Raw sockets of the paths that do not send through the TUN device.
    pub(crate) exits: Vec<Exit>,
}

impl Kernel {
    pub(crate) fn new(device: Device) -> io::Result<Kernel> {
        let poller = Poller::open()?;
        poller.add(&device, DEVICE, true, false)?;
        Ok(Kernel { clock: Clock::start(), device, poller, exits: Vec::new() })
    }

    /// Creates a stack in this world with these names.
    pub(crate) fn stack(self, names: Names) -> io::Result<Stack<Kernel>> {
        Ok(Stack::new(self, names, Box::new(SystemEntropy::open()?)))
    }
}

impl World for Kernel {
    type Stream = Program;

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn epoch_ns(&self) -> u64 {
        self.clock.epoch_ns()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Virtio)>> {
        self.device.try_recv_offloaded(buffer)
    }

    fn offloads(&self) -> bool {
        self.device.offloads()
    }

    fn send(&mut self, packet: &Outgoing<'_>) -> io::Result<io::Result<()>> {
        let Outgoing { headers, payload, virtio, exit, to } = *packet;
        match exit.map(|exit| self.exits.get(exit.0)) {
            Some(Some(exit)) => Ok(exit.try_send(headers, to)),
            Some(None) => Ok(Err(io::ErrorKind::NotFound.into())),
            None if self.device.offloads() => {
                self.device.try_send_offloaded(virtio, headers, payload)
            }
            None if payload.is_empty() => self.device.try_send(headers),
            None => self.device.try_send_parts(headers, payload),
        }
    }

    fn dial(&mut self, to: SocketAddr, buffers: Option<Buffers>) -> io::Result<Program> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None)?;
        socket.set_tcp_nodelay(true)?;
        if let Some(Buffers { receive_bytes, mss_bytes }) = buffers {
            socket.set_recv_buffer_size(receive_bytes)?;
            socket.set_tcp_mss(mss_bytes)?;
        }
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
            _ => Ok(Program::new(socket)),
        }
    }

    fn watch(
        &mut self,
        conn: ConnId,
        stream: &Program,
        from: Option<Interest>,
        to: Option<Interest>,
    ) -> io::Result<()> {
        self.poller.change(stream, u64::from(conn.0), from, to)
    }
}

/// Returns whether this host has the address.
pub(crate) fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}
