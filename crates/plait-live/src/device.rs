use crate::netlink::{self, attribute};
use plait_engine::Virtio;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// IFLA_TXQLEN.
const QUEUE_LENGTH: u16 = 13;

/// A TUN device that is up and not persistent. The kernel removes it and its routes when this value is
/// dropped. Reads and writes do not block.
pub struct Device {
    tun: SyncDevice,
    name: String,
    index: u32,
    /// Whether packets have a virtio header, in both directions.
    offload: bool,
    short_queue: Option<io::Error>,
}

/// Sets the length, in packets, of the queue towards this process.
fn set_queue(index: u32, packets: u32) -> io::Result<()> {
    // `struct ifinfomsg` has the index at this byte. Without a mask, its flags change nothing.
    let mut link = [0; netlink::LINK_BYTES];
    link[4..8].copy_from_slice(&index.to_ne_bytes());
    let body = [&link[..], &attribute(QUEUE_LENGTH, &packets.to_ne_bytes())].concat();
    netlink::change(netlink::SET_LINK, 0, &body)
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Device {
    /// Length, in packets, of the queue towards this process. The kernel drops packets when the queue is
    /// full, so it holds more than a receive window of full packets.
    pub const QUEUE: u32 = 8_192;

    /// Creates a device with an MTU of `mtu` bytes in the namespace of the calling thread. The kernel
    /// replaces `%d` in the name by the next free number.
    ///
    /// # Errors
    /// If there is no TUN driver, if the process may not make devices, or if the name is taken.
    pub fn open(name: &str, mtu: u16) -> io::Result<Device> {
        Device::build(name, mtu, false)
    }

    /// Creates a device as [`Device::open`] does, optionally with offload. With `offload` the kernel segments
    /// written superpackets and computes checksums, and a read packet may be longer than the MTU.
    ///
    /// # Errors
    /// As for [`Device::open`].
    pub(crate) fn build(name: &str, mtu: u16, offload: bool) -> io::Result<Device> {
        let tun =
            DeviceBuilder::new().name(name).mtu(mtu).enable(true).offload(offload).build_sync()?;
        tun.set_nonblocking(true)?;
        let index = tun.if_index()?;
        let name = tun.name()?;
        // In a user namespace, netlink may set the queue length, but the ioctl of `ip tuntap` may not.
        let short_queue = set_queue(index, Device::QUEUE).err();
        Ok(Device { tun, name, index, offload, short_queue })
    }

    /// Returns the error if the queue could not be set to [`Device::QUEUE`]. A shorter queue drops bursts.
    #[must_use]
    pub fn short_queue(&self) -> Option<&io::Error> {
        self.short_queue.as_ref()
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its interface index, for routes.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Reads the next packet that the kernel sends and returns its length. Returns `None` if there is none.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tun.recv(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(self.gone(error)),
        }
    }

    /// Replaces EBADFD, which means that the device is gone, by an error with an explanation.
    fn gone(&self, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(EBADFD) => {
                let text = format!("the TUN device {} is gone", self.name);
                io::Error::new(io::ErrorKind::NetworkDown, text)
            }
            _ => error,
        }
    }

    /// Reads the next packet and its virtio header. Without offload the header is empty.
    pub(crate) fn try_recv_offloaded(
        &self,
        buffer: &mut [u8],
    ) -> io::Result<Option<(usize, Virtio)>> {
        if !self.offload {
            return Ok(self.try_recv(buffer)?.map(|len| (len, Virtio::default())));
        }
        let mut header = [0; Virtio::LEN];
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        match rustix::io::readv(&self.tun, &mut parts).map_err(io::Error::from) {
            Ok(len) => Ok(Some((len.saturating_sub(Virtio::LEN), Virtio::from_bytes(header)))),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(self.gone(error)),
        }
    }

    /// Returns whether packets are written with a virtio header.
    pub(crate) fn offloads(&self) -> bool {
        self.offload
    }

    /// Writes a packet (headers and payload) to the device. `virtio` describes the remaining offload work. The
    /// inner error is the same as in [`Device::try_send`].
    pub(crate) fn try_send_offloaded(
        &self,
        virtio: Virtio,
        headers: &[u8],
        payload: &[u8],
    ) -> io::Result<io::Result<()>> {
        let first = virtio.to_bytes();
        let parts = [IoSlice::new(&first), IoSlice::new(headers), IoSlice::new(payload)];
        self.taken(rustix::io::writev(&self.tun, &parts).map_err(io::Error::from))
    }

    /// Writes a packet to the device. If the kernel refuses the packet, it is lost, and the inner error is
    /// the reason.
    ///
    /// # Errors
    /// If the device is gone ([`io::ErrorKind::NetworkDown`]).
    pub fn try_send(&self, packet: &[u8]) -> io::Result<io::Result<()>> {
        if self.offload {
            return self.try_send_offloaded(Virtio::default(), packet, &[]);
        }
        self.taken(self.tun.send(packet))
    }

    /// Writes a complete packet (headers and payload) to the device. The inner error is the same as in
    /// [`Device::try_send`].
    pub(crate) fn try_send_parts(
        &self,
        headers: &[u8],
        payload: &[u8],
    ) -> io::Result<io::Result<()>> {
        let parts = [IoSlice::new(headers), IoSlice::new(payload)];
        self.taken(rustix::io::writev(&self.tun, &parts).map_err(io::Error::from))
    }

    fn taken(&self, written: io::Result<usize>) -> io::Result<io::Result<()>> {
        match written {
            Ok(_) => Ok(Ok(())),
            // The kernel has no memory, the packet is malformed, or the device is down.
            Err(error) if is_transient(&error) => Ok(Err(error)),
            Err(error) => match error.raw_os_error() {
                Some(code) if [EIO, EINVAL, ENOBUFS, ENOMEM].contains(&code) => Ok(Err(error)),
                _ => Err(self.gone(error)),
            },
        }
    }
}

const EBADFD: i32 = rustix::io::Errno::BADFD.raw_os_error();
const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
const EINVAL: i32 = rustix::io::Errno::INVAL.raw_os_error();
const ENOBUFS: i32 = rustix::io::Errno::NOBUFS.raw_os_error();
const ENOMEM: i32 = rustix::io::Errno::NOMEM.raw_os_error();

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
