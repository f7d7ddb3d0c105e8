//! Simulation in virtual time (floor 4 of plait). Connects endpoints of `plait-core`, links of `plait-link`
//! and workloads of `plait-app` through one event queue.
//!
//! The same configuration gives the same run, bit for bit. Time is an integer. Every random number
//! comes from a stream that is derived from the seed and a purpose. Events of the same instant
//! happen in the order in which they were caused.

#![forbid(unsafe_code)]

mod addresses;
mod changes;
mod digest;
mod host;
mod middlebox;
mod network;
mod queue;
mod setup;
mod simplex_link;
mod strict_turns;
mod wire;
mod world;

pub use addresses::{Addresses, path_key};
pub use digest::RunDigest;
pub use middlebox::{Cut, Middlebox, MiddleboxConfig, MiddleboxCounters, Strip, StripAt};
pub use network::{Direction, Hop, PathSetup, SharedLink};
pub use plait_app::Ends;
pub use setup::{
    ConnectionOutcome, ConnectionSetup, Outcome, PairMemory, PairSetup, Setup, Snapshot, Watch, Who,
};
pub use world::{EVENTS_BETWEEN_LOOKS, run, run_apps, run_unless, run_watched};
