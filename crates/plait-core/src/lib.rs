//! The Multipath TCP transport (floor 2 of plait): TCP subflows, the connection over several subflows,
//! and the [`Endpoint`] that holds connections. It has no I/O, no clock and no threads.
//!
//! # Example
//! A client and a server without a network between them: each segment arrives at once.
//!
//! ```
//! use plait_base::{PathId, RandomStream, Time};
//! use plait_core::{Config, ConnectionSpec, Endpoint, Entropy, PathConfig};
//! use std::sync::Arc;
//!
//! struct Seeded(RandomStream);
//!
//! impl Entropy for Seeded {
//!     fn bits(&mut self) -> u64 {
//!         self.0.bits()
//!     }
//! }
//!
//! let endpoint = |name| Endpoint::new(Box::new(Seeded(RandomStream::new(1, &[name]))));
//! let (mut client, mut server) = (endpoint("client"), endpoint("server"));
//! let scheduler = plait_sched::Spec::parse("minrtt")?;
//! let controller = plait_cc::Spec::parse("cubic")?;
//! let spec = Arc::new(ConnectionSpec {
//!     config: Config::default(),
//!     paths: vec![PathConfig::new(PathId(0))],
//!     addresses: Vec::new(),
//!     scheduler: Arc::new(move || scheduler.build()),
//!     controller: Arc::new(move |_| controller.build()),
//! });
//! let now = Time::ZERO;
//! server.listen(80, Arc::clone(&spec));
//! let dialled = client.connect(now, 80, spec)?;
//! client.write_bytes(now, dialled, b"hello")?;
//! let mut buffer = [0; 16];
//! let (mut accepted, mut len) = (None, 0);
//! while len == 0 {
//!     let (to_server, to_client) = (client.poll_transmit(now), server.poll_transmit(now));
//!     assert!(to_server.is_some() || to_client.is_some());
//!     for sent in to_server {
//!         server.handle(now, sent.path, &sent.segment);
//!     }
//!     for sent in to_client {
//!         client.handle(now, sent.path, &sent.segment);
//!     }
//!     accepted = accepted.or_else(|| server.poll_accept());
//!     if let Some(accepted) = accepted {
//!         len = server.read(now, accepted, &mut buffer)?;
//!     }
//! }
//! assert_eq!(&buffer[..len], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

pub mod buffers;
mod config;
mod conn;
mod context;
mod data;
mod directory;
mod endpoint;
mod error;
mod event;
pub mod formulas;
mod notices;
mod parts;
mod path_memory;
mod paths;
#[cfg(feature = "planted-bugs")]
#[allow(dead_code, reason = "only the tree with the patch has the bugs")]
pub mod planted;
mod prices;
mod sched;
mod segments;
mod seldom;
mod spec;
mod stats;
mod tcp;
mod timers;

#[cfg(feature = "laboratory")]
pub use config::StartOffsets;
pub use config::{
    BufferSizes, Config, Dial, FallbackRules, JoinRules, JoinTiming, KernelBuffers, KernelRules,
    LossDetection, MemoryLimit, Pacing, PacketSizes, PathConfig, Prr, RecoveryRules, ReduceFrom,
    RtoMode, Timeouts, WindowRules,
};
pub use context::Entropy;
pub use endpoint::{Endpoint, Lent, MemoryReport, SubflowPorts};
pub use error::Error;
pub use event::{Block, Carry, Detail, Event, FallbackCause, SizeCause, WindowCause};
pub use path_memory::{MemorySettings, PathEntry, PathKey, PathMemory, PathName, PathRecord};
pub use prices::Quota;
pub use segments::{Report, Transmit};
pub use spec::{ConnectionSpec, ConnectionState, ControllerFactory, SchedulerFactory};
/// True if bugs can be switched on in this build. Shipped builds cannot do so.
pub const PLANTED_BUGS: bool = cfg!(feature = "planted-bugs");

pub use stats::{
    Carried, ConnectionStats, Overflows, Progress, Sizes, SubflowCounters, SubflowStats, TimedOut,
    Totals, UniqueBytes,
};
