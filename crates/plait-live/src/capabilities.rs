use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use std::io;

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
