//! The engine of `plait serve`, `get` and `proxy` (floor 3 of plait). It processes packets of clients
//! and relays each connection to a program. It limits connections and memory, and reports events.
//!
//! It uses no kernel interface. A [`World`] supplies time, packets and streams: `plait-live` has
//! one over a TUN device and sockets, and the swarm of `plait-lab` has one in virtual time.

#![forbid(unsafe_code)]

mod choice;
mod crowd;
mod dials;
mod ending;
mod engine;
mod limits;
mod log_event;
mod names;
mod numbers;
mod observe;
mod overview;
mod path_table;
#[cfg(feature = "planted-bugs")]
#[allow(dead_code, reason = "only the tree with the patch has the bugs")]
pub mod planted;
mod proxy_header;
mod relay;
mod remembered;
mod request;
mod requests;
mod service;
mod stack;
mod stream;
mod virtio;
mod world;

pub use choice::{Choice, Match, Prefix};
pub use crowd::Buffers;
pub use engine::Engine;
pub use limits::{Limits, Shortage};
pub use log_event::{ExtraBytes, LogEvent, PathTraffic};
pub use names::Names;
pub use observe::{Observe, PacketEvent};
pub use overview::{ConnectionView, Opened, Overview, Tally};
pub use path_table::{OwnAddress, PathTable};
pub use relay::{Greeting, PIECE};
pub use request::{Destination, Request, RequestKey};
pub use service::Service;
pub use stack::{Stack, StackCounters, Untaken};
pub use stream::Stream;
pub use virtio::Virtio;
pub use world::{Exit, Interest, Outgoing, Ready, World};
