use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::io;

/// What the calling thread may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Make devices and routes.
    pub net_admin: bool,
    /// Open raw sockets.
    pub net_raw: bool,
}

impl Capabilities {
    /// Those that are in effect.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn effective() -> io::Result<Capabilities> {
        let effective = capabilities(None)?.effective;
        Ok(Capabilities {
            net_admin: effective.contains(CapabilitySet::NET_ADMIN),
            net_raw: effective.contains(CapabilitySet::NET_RAW),
        })
    }
}

/// Gives up every capability of the calling thread, and of threads and programs that it starts
/// later: devices that are open stay open, and none can be made any more.
///
/// # Errors
/// Where the kernel does not allow it.
pub fn drop_capabilities() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
