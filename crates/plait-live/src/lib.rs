//! Floor 4: the real world. The same endpoint that the simulator runs, over TUN devices and against
//! the clock of the host; and links of `plait-link` that join network namespaces in real time.
//!
//! Everything that is created here hangs on a file descriptor of the process: devices are not
//! persistent, and their routes go with them. So nothing is left behind, however the process ends.

mod clock;
mod device;
pub mod emulate;
mod entropy;
mod namespace;
mod poller;
mod routes;

pub use clock::Clock;
pub use device::Device;
pub use entropy::SystemEntropy;
pub use namespace::Namespace;
pub use routes::add_route;
