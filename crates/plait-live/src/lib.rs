//! Floor 4: the real world. The same endpoint that the simulator runs, over TUN devices and against
//! the clock of the host; and links of `plait-link` that join network namespaces in real time.
//!
//! Everything that is created here hangs on a file descriptor of the process: devices are not
//! persistent, and their routes go with them. So nothing is left behind, however the process ends.

mod addresses;
mod capabilities;
mod choice;
mod clock;
mod device;
mod dial;
pub mod emulate;
mod engine;
mod entropy;
mod exit;
mod happening;
mod host;
mod limits;
mod links;
mod names;
mod namespace;
mod netlink;
mod nftables;
mod numbers;
mod observe;
mod overview;
mod poller;
mod proxy_header;
mod relay;
mod routes;
mod rules;
mod serve;
mod signals;
mod stack;
mod stdout;
mod stream;
mod virtio;
mod ways;

pub use addresses::{has_address, has_addresses};
pub use capabilities::{Capabilities, Identity, drop_capabilities};
pub use choice::{Choice, Match, Prefix};
pub use clock::Clock;
pub use device::Device;
pub use dial::{Client, Dial, DialSettings, Dialler, Greeting, Origin};
pub use entropy::SystemEntropy;
pub use happening::{Happening, PathTraffic};
pub use host::Host;
pub use limits::{Limits, Shortage};
pub use namespace::Namespace;
pub use observe::{Observe, Sight};
pub use overview::{Asker, ConnectionView, Opened, Overview, Tally};
pub use routes::add_route;
pub use rules::{Rule, Rules};
pub use serve::{ServeSettings, Server, ServiceAddress};
pub use signals::{Signals, Wish};
pub use stack::{StackCounters, Untaken};
pub use stdout::close_stdout;
