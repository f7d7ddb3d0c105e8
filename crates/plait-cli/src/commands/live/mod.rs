//! The commands that use real networks. They need Linux and the feature `live`; `build.rs` sets `cfg(live)` if
//! both are there.

pub(crate) mod doctor;
mod emulated;
mod endpoint;
pub(crate) mod get;
mod key;
mod limits;
mod memory;
pub(crate) mod paths;
mod prices;
pub(crate) mod proxy;
pub(crate) mod race;
pub(crate) mod serve;
pub(crate) mod shell;
