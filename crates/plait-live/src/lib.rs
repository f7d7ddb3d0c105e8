//! Runs the endpoint of the simulator over TUN devices, on the clock of the host (floor 4 of plait). It
//! also joins network namespaces by links of `plait-link` that run in real time.
//!
//! Each object created here belongs to a file descriptor of the process. Devices are not persistent,
//! and their routes are removed with them. So nothing is left behind, however the process ends.

mod addresses;
pub mod argument;
mod asker;
mod capabilities;
mod capacity;
mod cleaner;
mod clock;
mod device;
mod dial;
pub mod doctor;
mod driver;
pub mod emulate;
mod entropy;
mod exit;
mod heap;
mod host;
pub mod http;
mod lan;
mod links;
mod lookup;
pub mod metrics;
mod namespace;
mod netlink;
mod nftables;
mod path_file;
mod poller;
mod process;
mod program;
mod realtime;
mod routes;
mod rules;
mod serve;
mod settings_of_host;
mod signals;
pub mod socks;
mod stdout;
mod sys;
pub mod systemd;
mod traffic;
pub mod transfer;
mod world;

pub use addresses::{device_of, first_v4, has_address, has_addresses};
pub use asker::Asker;
pub use capabilities::{Capabilities, Identity, drop_capabilities};
pub use capacity::{connections_of_host, memory_of_host};
pub use cleaner::Cleaner;
pub use clock::{Clock, now_s};
pub use device::Device;
pub use dial::{Client, Dial, DialSettings, Dialler, Origin};
pub use entropy::SystemEntropy;
pub use host::Host;
pub use lan::{LanConnection, LanListener};
pub use namespace::Namespace;
pub use path_file::{PathFile, PathFileError, StoredPath, StoredPaths, merged};
pub use plait_engine::{
    Choice, ConnectionView, Destination, ExtraBytes, Greeting, Limits, LogEvent, Match, Observe,
    Opened, Overview, PacketEvent, PathTraffic, Prefix, Request, RequestKey, Shortage,
    StackCounters, Tally, Untaken,
};
pub use process::{End, Process};
pub use realtime::enter_realtime;
pub use routes::add_route;
pub use rules::{Rule, Rules};
pub use serve::{ServeSettings, Server, ServiceAddress, Target};
pub use settings_of_host::HostState;
pub use signals::{Signals, Wish};
pub use stdout::close_stdout;
pub use traffic::{DeviceBytes, device_bytes};
