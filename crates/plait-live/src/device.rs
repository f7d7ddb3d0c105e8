use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// A TUN device that is up and not persistent: it goes when this is dropped, and its routes go with
/// it. Reading and writing do not block.
pub struct Device {
    tun: SyncDevice,
    name: String,
    index: u32,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Device {
    /// Packets that wait for this process at most. The kernel drops what finds the queue full, so it
    /// holds more than a receive window of full packets.
    pub const QUEUE: u32 = 8_192;

    /// A device in the namespace of the calling thread, with a largest packet of `mtu` bytes. A
    /// `%d` in its name becomes the next free number.
    ///
    /// # Errors
    /// Where there is no TUN driver, the process may not make devices, or the name is taken.
    pub fn open(name: &str, mtu: u16) -> io::Result<Device> {
        let tun = DeviceBuilder::new()
            .name(name)
            .mtu(mtu)
            .tx_queue_len(Device::QUEUE)
            .enable(true)
            .build_sync()?;
        tun.set_nonblocking(true)?;
        let index = tun.if_index()?;
        let name = tun.name()?;
        Ok(Device { tun, name, index })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number, for routes.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The next packet that the kernel sends, and how long it is; `None` where there is none.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tun.recv(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a packet to the kernel. False where it did not take it: it is lost, as on a wire.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn try_send(&self, packet: &[u8]) -> io::Result<bool> {
        match self.tun.send(packet) {
            Ok(_) => Ok(true),
            // No memory, a packet that the kernel does not understand, or a device that is down.
            Err(error) if is_transient(&error) => Ok(false),
            Err(error) => match error.raw_os_error() {
                Some(code) if [EIO, EINVAL, ENOBUFS, ENOMEM].contains(&code) => Ok(false),
                _ => Err(error),
            },
        }
    }
}

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
