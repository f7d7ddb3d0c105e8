//! Times in which the sender had sent all that its program had written.

/// Options of a segment vary by at most this, in bytes. A segment that lacks more payload was not full.
const MAX_OPTIONS: i64 = 40;
/// Data that follows the last data or an acknowledgement sooner than this was waiting, in nanoseconds.
const AT_ONCE_NS: i64 = 1_000_000;

/// The new data of a sender.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct NewData {
    /// Time of the last data beyond all earlier data, in nanoseconds.
    pub(super) last_ns: i64,
    /// True if its segment was not full.
    ended_short: bool,
    /// Payload of the largest segment in bytes.
    full: i64,
    /// Sum of the times after such segments in which nothing new was sent, and their number.
    dry: (i64, u64),
}

impl NewData {
    /// Takes `len` new bytes at `now`. `acked` is the time of the last acknowledgement. A sender with more data sends it at once when an acknowledgement lets it.
    pub(super) fn add(&mut self, now: i64, len: i64, acked: i64) {
        let pause = now - self.last_ns;
        let waited = acked > now || now - acked >= AT_ONCE_NS;
        if self.ended_short && pause >= AT_ONCE_NS && waited {
            self.dry = (self.dry.0 + pause, self.dry.1 + 1);
        }
        self.full = self.full.max(len);
        (self.last_ns, self.ended_short) = (now, len + MAX_OPTIONS < self.full);
    }

    /// Returns the time in nanoseconds in which the program had written no more, and the number of its messages.
    pub(super) const fn dry(&self) -> (i64, u64) {
        self.dry
    }
}
