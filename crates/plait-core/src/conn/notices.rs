//! News of a connection for its user, and changes for the endpoint.

/// News for the user, and changes for the endpoint.
pub(crate) struct Notices {
    /// Something happened that the user of the connection may want to know.
    pub(crate) news: bool,
    /// Its addresses or its key may have changed.
    pub(crate) changed: bool,
}
