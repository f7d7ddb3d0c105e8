//! The host of an engine.

use crate::{Buffers, Stream, Virtio};
use plait_base::{ConnId, Time};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Readiness of a stream that the engine waits for. With neither, it waits for the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// It waits until the stream can be read.
    pub read: bool,
    /// It waits until the stream can be written.
    pub write: bool,
}

/// An exit other than the device for the packets of a path: its index in the world's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit(pub usize);

/// A ready source of events, for [`Engine::turn`](crate::Engine::turn).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready {
    /// Packets can be received.
    Packets,
    /// The stream of this connection is ready, or has failed.
    Stream(ConnId),
}

/// An outgoing packet.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The bytes from the IP header on, including a payload that is not lent.
    pub headers: &'a [u8],
    /// The payload that is lent to the device. It follows the headers.
    pub payload: &'a [u8],
    /// The work of the device, if it [offloads](World::offloads).
    pub virtio: Virtio,
    /// The exit; `None` is the device.
    pub exit: Option<Exit>,
    /// The destination.
    pub to: IpAddr,
}

/// Time, packets and streams to programs: all that an engine needs from its host. No function
/// blocks.
pub trait World {
    /// A stream to a program.
    type Stream: Stream;

    /// Returns the time. It never decreases.
    fn now(&self) -> Time;

    /// Returns the wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    fn epoch_ns(&self) -> u64;

    /// Writes the next arrived packet into `buffer`. Returns its length and its virtio header, or
    /// `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the device is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Virtio)>>;

    /// Returns true if the device splits superpackets and completes checksums.
    fn offloads(&self) -> bool;

    /// Sends a packet. The inner error is the reason why it was not accepted; the packet is then
    /// lost.
    ///
    /// # Errors
    /// Returns an error if the device is gone.
    fn send(&mut self, packet: &Outgoing<'_>) -> io::Result<io::Result<()>>;

    /// Opens a stream to the program at `to`, with these buffer sizes or the defaults.
    ///
    /// # Errors
    /// Returns an error if the stream cannot be opened.
    fn dial(&mut self, to: SocketAddr, buffers: Option<Buffers>) -> io::Result<Self::Stream>;

    /// Changes the watched readiness of the stream of `conn` from `from` to `to`. `None` means that it is not
    /// watched.
    ///
    /// # Errors
    /// Returns an error if the stream cannot be watched.
    fn watch(
        &mut self,
        conn: ConnId,
        stream: &Self::Stream,
        from: Option<Interest>,
        to: Option<Interest>,
    ) -> io::Result<()>;
}
