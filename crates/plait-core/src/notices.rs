//! Reports of a connection: news for its user, and changes for the endpoint.

/// Reports of the owners. They only add to it, and the endpoint takes the reports.
pub(crate) struct Notices {
    /// An event has happened that may interest the user of the connection.
    news: bool,
    /// Its addresses or its key may have changed.
    changed: bool,
}

impl Notices {
    /// Returns the reports of a new connection: the endpoint does not know its addresses yet.
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

    /// Forgets the news of a connection whose data the user has given up.
    pub(crate) const fn forget_news(&mut self) {
        self.news = false;
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
