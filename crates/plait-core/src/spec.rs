//! Specification of a connection, and the state that its user sees.

use crate::config::{Config, PathConfig};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use plait_base::PathId;
use plait_cc::Algorithm;
use plait_sched::Scheduler;

/// Makes the scheduler of a connection.
pub type SchedulerFactory = Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>;
/// Makes the congestion controller of a subflow on a path.
pub type ControllerFactory = Arc<dyn Fn(PathId) -> Box<dyn Algorithm> + Send + Sync>;

/// The parts that a connection is created from.
#[derive(Clone)]
pub struct ConnectionSpec {
    /// Settings.
    pub config: Config,
    /// Its paths in order of preference; the connection starts on the first one with the lowest cost.
    pub paths: Vec<PathConfig>,
    /// Its scheduler.
    pub scheduler: SchedulerFactory,
    /// Its congestion controllers.
    pub controller: ControllerFactory,
    /// Further addresses of the listening end. It announces them to the client (ADD_ADDR, RFC 8684
    /// section 3.4.1), which joins each from all its paths.
    pub addresses: Vec<IpAddr>,
}

impl ConnectionSpec {
    /// Returns the settings of a path, if there are any.
    pub(crate) fn path(&self, path: PathId) -> Option<&PathConfig> {
        self.paths.iter().find(|config| config.path == path)
    }
}

impl fmt::Debug for ConnectionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSpec")
            .field("config", &self.config)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

/// State of a connection as the user sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// The handshake is under way.
    Connecting,
    /// Data may flow.
    Open,
    /// The peer's data has ended and all of it was read.
    PeerDone,
    /// Both directions have ended in order.
    Closed,
    /// Reset, or timed out.
    Failed,
}
