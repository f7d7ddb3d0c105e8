//! What a connection has to tell those who use it and those who keep it.

/// What others are to be told of.
pub(crate) struct Notices {
    /// Something happened that the user of the connection may want to know.
    pub(crate) news: bool,
    /// Its addresses or its key may have changed.
    pub(crate) changed: bool,
}
