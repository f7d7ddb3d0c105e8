//! The host that an engine runs on.

use crate::{Buffers, Stream, Virtio};
use plait_base::{ConnId, Time};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Readiness that the engine waits for: to read, and to write. `None` if it does not wait.
pub type Interest = Option<(bool, bool)>;

/// A second way out for the packets of one path, beside the device: its place in the list of the world.
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

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// From the IP header on; with a payload that is not lent.
    pub headers: &'a [u8],
    /// The payload that is lent to the device: it follows the headers.
    pub payload: &'a [u8],
    /// The work of the device, if it [offloads](World::offloads).
    pub virtio: Virtio,
    /// Where it leaves, if not by the device.
    pub exit: Option<Exit>,
    /// The destination.
    pub to: IpAddr,
}

/// Time, packets and streams to programs: all that an engine needs of its host. Nothing here waits.
pub trait World {
    /// A stream to a program.
    type Stream: Stream;

    /// The time now. It never goes back.
    fn now(&self) -> Time;

    /// The wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    fn epoch_ns(&self) -> u64;

    /// Writes the next packet that has arrived into `buffer`. Returns how many bytes it has and what
    /// was left to do to it, or `None` if there is none.
    ///
    /// # Errors
    /// The device is gone.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Virtio)>>;

    /// Whether the device cuts superpackets and adds up checksums.
    fn offloads(&self) -> bool;

    /// Sends a packet. The inner error is why it was not taken: it is lost, as on a wire.
    ///
    /// # Errors
    /// The device is gone.
    fn send(&mut self, packet: &Outgoing<'_>) -> io::Result<io::Result<()>>;

    /// Begins a stream to the program at `to`, with buffers of these sizes, or the usual ones.
    ///
    /// # Errors
    /// There is no way there.
    fn dial(&mut self, to: SocketAddr, buffers: Option<Buffers>) -> io::Result<Self::Stream>;

    /// From now on the stream of `conn` is waited for as `to` says.
    ///
    /// # Errors
    /// The stream cannot be waited for.
    fn watch(
        &mut self,
        conn: ConnId,
        stream: &Self::Stream,
        from: Interest,
        to: Interest,
    ) -> io::Result<()>;
}
