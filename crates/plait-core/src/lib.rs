//! Floor 2: the transport. It has one TCP subflow, the Multipath TCP connection over several of
//! them, and the endpoint that holds connections. It has no I/O, no clock and no threads.
#![no_std]

extern crate alloc;

pub mod buffers;
mod config;
mod conn;
mod data;
mod endpoint;
mod error;
mod event;
pub mod formulas;
mod paths;
#[cfg(feature = "planted-bugs")]
pub mod planted;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
mod sched;
mod segments;
mod seldom;
mod stats;
mod tcp;

#[cfg(feature = "laboratory")]
pub use config::StartOffsets;
pub use config::{
    BufferSizes, Config, Dial, FallbackRules, JoinRules, JoinTiming, KernelBuffers, KernelRules,
    LossDetection, Pacing, PacketSizes, PathConfig, Prr, RecoveryRules, ReduceFrom, RtoMode,
    Timeouts, WindowRules,
};
pub use conn::context::Entropy;
pub use conn::spec::{ConnectionSpec, ConnectionState, ControllerFactory, SchedulerFactory};
pub use data::agreement::FallbackCause;
pub use data::memory_limit::MemoryLimit;
pub use endpoint::{Endpoint, MemoryReport};
pub use error::Error;
pub use event::{Block, Carry, Detail, Event, SizeCause, WindowCause};
pub use segments::{Report, Transmit};
/// True if bugs can be switched on in this build. Shipped builds cannot do so.
pub const PLANTED_BUGS: bool = cfg!(feature = "planted-bugs");

pub use stats::{
    Carried, ConnectionStats, Overflows, Progress, Sizes, SubflowStats, TimedOut, Totals,
};
