//! News of a connection for its user, and changes for the endpoint.

/// News for the user, and changes for the endpoint.
pub(crate) struct Notices {
    /// An event has happened that may interest the user of the connection.
    pub(crate) news: bool,
    /// Its addresses or its key may have changed.
    pub(crate) changed: bool,
}

impl Notices {
    /// Returns whether there is news since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.news)
    }

    /// Returns whether the addresses or the key may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }
}
