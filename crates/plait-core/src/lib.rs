//! Floor 2: the transport. One TCP subflow, the Multipath TCP connection over several of them, and
//! the endpoint that holds connections. No I/O, no clock, no thread.
#![no_std]

extern crate alloc;

mod config;
mod event;

pub use config::{Config, JoinTiming, PathConfig, RtoMode};
pub use event::{Block, Carry, Event, WindowCause};
