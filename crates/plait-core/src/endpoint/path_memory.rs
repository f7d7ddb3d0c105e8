//! The path memory of an endpoint, for drivers.

use crate::endpoint::Endpoint;
use crate::path_memory::{MemorySettings, PathMemory};
use alloc::boxed::Box;
use plait_base::Time;

impl Endpoint {
    /// Remembers measurements of paths from now on, for later subflows.
    ///
    /// The driver [names](PathMemory::name) its paths before it dials. For a listening end,
    /// [`Endpoint::handle_from`] has the addresses of clients.
    pub fn remember_paths(&mut self, settings: &MemorySettings) {
        self.shared.path_memory = Some(Box::new(PathMemory::new(settings)));
    }

    /// Returns the path memory, if there is one.
    pub fn path_memory(&mut self) -> Option<&mut PathMemory> {
        self.shared.path_memory.as_deref_mut()
    }

    /// Takes the values of open subflows into the path memory. It visits every connection. Subflows
    /// leave their values when they end, so only those that last long need it.
    pub fn learn_paths(&mut self, now: Time) {
        if let Some(mut memory) = self.shared.path_memory.take() {
            if memory.is_crowded() {
                memory.shrink(|path| self.uses_path(path));
            }
            self.shared.path_memory = Some(memory);
            self.connections.leave_values(&mut self.shared, now);
        }
    }
}
