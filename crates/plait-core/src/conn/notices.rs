//! What a connection has to tell: news for its user, and changes for the endpoint.

/// What the owners report. They only add to it; the endpoint alone reads it.
pub(crate) struct Notices {
    /// An event has happened that may interest the user of the connection.
    news: bool,
    /// Its addresses or its key may have changed.
    changed: bool,
}

impl Notices {
    /// Returns those of a new connection: the endpoint does not know its addresses yet.
    pub(crate) const fn new() -> Notices {
        Notices { news: false, changed: true }
    }

    /// Reports an event that may interest the user of the connection.
    pub(crate) const fn tell_user(&mut self) {
        self.news = true;
    }

    /// Reports that the addresses or the key of the connection may have changed.
    pub(crate) const fn tell_endpoint(&mut self) {
        self.changed = true;
    }

    /// Returns whether there is news.
    pub(crate) const fn has_news(&self) -> bool {
        self.news
    }

    /// Returns whether there is news since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.news)
    }

    /// Returns whether the addresses or the key may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }
}
