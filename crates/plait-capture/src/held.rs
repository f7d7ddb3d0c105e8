//! The state of a sender, which a log of plait has and a capture lacks.

/// Why a sender with unsent data does not send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// The receive window is full while a path has room.
    ReceiveWindow,
    /// The send buffer is full while a path has room and the application has more data.
    SendBuffer,
    /// The scheduler waits although a path has room.
    Scheduler,
    /// The congestion windows of all paths are full.
    CongestionWindow,
    /// There is no path.
    NoPath,
}

impl Held {
    /// Returns the state with this name in the logs of plait.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Held> {
        Some(match word {
            "receive-window" => Held::ReceiveWindow,
            "send-buffer" => Held::SendBuffer,
            "scheduler" => Held::Scheduler,
            "cwnd" => Held::CongestionWindow,
            "no-subflow" => Held::NoPath,
            _ => return None,
        })
    }
}

/// A change of a sender's state. If `held` is none, the sender has no unsent data, or sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    /// The end of the log: 0 is the client, 1 is the server.
    pub(crate) side: usize,
    pub(crate) held: Option<Held>,
}

/// The changes of one file, of which only those of a single connection can be used.
#[derive(Clone, Default, Debug)]
pub(crate) struct Senders {
    /// The connection of all changes so far.
    group: Option<Option<String>>,
    /// True if the changes are those of several connections.
    pub(crate) mixed: bool,
}

impl Senders {
    /// Takes the name of a change's connection. Returns true if there was no other name.
    pub(crate) fn is_single(&mut self, group: Option<String>) -> bool {
        match &self.group {
            None => self.group = Some(group),
            Some(known) => self.mixed |= *known != group,
        }
        !self.mixed
    }

    /// Returns true if there was a change.
    pub(crate) const fn is_used(&self) -> bool {
        self.group.is_some()
    }
}
