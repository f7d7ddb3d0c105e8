//! The data of one end at the level of the connection, by data sequence number.

use crate::histogram::Histogram;
use crate::joining::Number;
use crate::sequence::{Coverage, data_position};
use crate::transmissions::Transmissions;
use std::collections::BTreeMap;

/// Records of acknowledged data that are kept, for copies that come late on another path.
const MAX_ACKED_RECORDS: usize = 4_096;
/// The same for a connection of one path.
const MAX_ACKED_RECORDS_ALONE: usize = 16;
/// Largest number of records. Beyond it, the oldest is dropped.
const MAX_RECORDS: usize = 131_072;

/// Stands for a window of an unknown scale, in bytes. No sender fills it.
pub(crate) const UNKNOWN_WINDOW: i64 = 1 << 40;

/// The window of the receiver, as its acknowledgements tell it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ReceiveWindow {
    /// Its right edge; far away while the window is unknown.
    pub(crate) edge: i64,
    /// True if there was a window of an unknown scale.
    pub(crate) is_lacking: bool,
    /// The largest known one in bytes.
    most: u64,
    /// Acknowledgements of data that leave less than a segment of it.
    pub(crate) full: u64,
}

/// The data of one end.
#[derive(Clone, Default, Debug)]
pub(crate) struct DataLevel {
    /// Data sequence number of the first byte. If it has 4 bytes, only these of other numbers count.
    first: Option<Number>,
    /// True if the connection has several paths.
    pub(crate) is_shared: bool,
    pub(crate) seen: Coverage,
    sent: Transmissions,
    /// Position of the next byte that the receiver expects.
    pub(crate) acked: i64,
    pub(crate) window: ReceiveWindow,
    /// Bytes sent on one path after another path, for the first time on that path.
    pub(crate) reinjected_bytes: u64,
    pub(crate) reinjected_segments: u64,
    /// The same with retransmissions of such bytes, as tshark counts reinjections.
    pub(crate) on_several_paths_bytes: u64,
    /// Reinjected bytes of each path.
    pub(crate) reinjected_by_path: BTreeMap<usize, u64>,
    /// Bytes that the capture has beyond a gap of the data.
    pub(crate) out_of_order_bytes: u64,
    /// Ages in nanoseconds of the gaps that were filled.
    pub(crate) gap_ages: Histogram,
    /// Bytes that were acknowledged and are on no path of the capture.
    pub(crate) unseen_bytes: u64,
}

/// Data that the capture has at the level of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Bytes beyond all earlier data.
    pub(crate) fresh: u64,
    /// True if all of it was there before.
    pub(crate) copy: bool,
}

impl DataLevel {
    /// Sets the data sequence number of the first byte, from the key.
    pub(crate) fn begin(&mut self, first: u64) {
        if self.first.is_none() {
            self.first = Some(Number { value: first, long: true });
            self.seen.begin(0);
        }
    }

    /// Returns the position of a data sequence number of 4 or 8 bytes.
    pub(crate) fn position(&self, dsn: u64, long: bool) -> Option<i64> {
        let first = self.first?;
        Some(data_position(dsn, long && first.long, first.value, self.seen.next()))
    }

    /// Takes `len` bytes from data sequence number `dsn` on, sent on `path`.
    pub(crate) fn on_mapped(
        &mut self,
        (dsn, long): (u64, bool),
        len: i64,
        path: usize,
        now: i64,
    ) -> Option<Placed> {
        self.first.get_or_insert(Number { value: dsn, long });
        let start = self.position(dsn, long)?;
        // Nothing sends so far ahead of its receiver; such a number is an error or an attack.
        let far = (start - self.seen.next()).unsigned_abs() > 1 << 31;
        (!far).then(|| self.on_data(start, start + len, path, now))
    }

    /// Takes the data from `start` up to `end`, sent on `path`.
    pub(crate) fn on_data(&mut self, start: i64, end: i64, path: usize, now: i64) -> Placed {
        let before = self.seen.in_order();
        let news = self.seen.add(start, end, now);
        if news.again > 0 {
            self.count_reinjection(start, end, path);
        }
        if news.filled > 0 {
            self.gap_ages.add(news.gap_age as f64);
        }
        if start > before && news.fresh > 0 {
            self.out_of_order_bytes += news.fresh;
        }
        if news.fresh + news.filled > 0 {
            self.sent.add(start, end, path);
            self.prune();
        }
        Placed { start, end, fresh: news.fresh, copy: news.fresh + news.filled == 0 }
    }

    fn count_reinjection(&mut self, start: i64, end: i64, path: usize) {
        let (all, bytes) = self.sent.send_again(start, end, path);
        self.on_several_paths_bytes += all;
        if bytes > 0 {
            self.reinjected_bytes += bytes;
            self.reinjected_segments += 1;
            *self.reinjected_by_path.entry(path).or_default() += bytes;
        }
    }

    fn prune(&mut self) {
        let kept = if self.is_shared { MAX_ACKED_RECORDS } else { MAX_ACKED_RECORDS_ALONE };
        while self.sent.len() > kept {
            let Some(end) = self.sent.first_end() else { return };
            if end > self.acked && self.sent.len() <= MAX_RECORDS {
                return;
            }
            self.sent.pop_first();
        }
    }

    /// Takes an acknowledgement up to `position` with a window of `window` bytes; none if that is unknown.
    pub(crate) fn on_ack(&mut self, position: i64, window: Option<u64>, mss: i64) {
        if position > self.acked && position <= self.seen.next() + 1 {
            self.acked = position;
            // The DATA_FIN has a number too.
            self.unseen_bytes += self.seen.acknowledge(position.min(self.seen.next()));
        }
        let edge = position.saturating_add(window.map_or(UNKNOWN_WINDOW, |window| window as i64));
        let known = &mut self.window;
        known.is_lacking |= window.is_none();
        known.most = known.most.max(window.unwrap_or(0));
        known.edge = if known.is_lacking { edge } else { known.edge.max(edge) };
        known.full += u64::from(known.edge - self.seen.next() < mss);
    }

    /// Returns unused memory.
    pub(crate) fn shrink(&mut self) {
        self.sent.shrink();
    }

    /// Returns the largest receive window in bytes; none if it is unknown.
    pub(crate) fn window(&self) -> Option<u64> {
        (self.window.edge > 0 && !self.window.is_lacking).then_some(self.window.most)
    }

    /// Returns the path that first sent the byte at `position`.
    pub(crate) fn holder(&self, position: i64) -> Option<usize> {
        self.sent.holder(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_on_another_path_is_a_reinjection() {
        let mut data = DataLevel::default();
        data.begin(1_000);
        assert_eq!(data.on_mapped((1_000, true), 100, 0, 1).unwrap().fresh, 100);
        assert_eq!(data.on_mapped((1_200, true), 100, 1, 2).unwrap().end, 300);
        assert_eq!((data.out_of_order_bytes, data.holder(250)), (100, Some(1)));
        data.on_mapped((1_100, false), 100, 0, 5);
        assert_eq!(data.seen.in_order(), 300);
        // A retransmission on the same path is none, and of the next 150 bytes 100 are.
        data.on_mapped((1_000, true), 100, 0, 6);
        assert_eq!(data.reinjected_bytes, 0);
        data.on_mapped((1_150, true), 150, 0, 7);
        assert_eq!((data.reinjected_bytes, data.reinjected_segments), (100, 1));
        data.on_ack(300, Some(50), 10);
        assert_eq!((data.acked, data.window.edge), (300, 350));
        assert!(data.on_mapped((u64::MAX / 3, true), 100, 0, 8).is_none());
    }

    #[test]
    fn a_first_number_of_four_bytes_is_enough() {
        let mut data = DataLevel::default();
        data.on_mapped((0xffff_ff00, false), 100, 0, 1);
        let long = data.on_mapped((0x7_ffff_ff64, true), 1_000, 1, 2).unwrap();
        assert_eq!((long.start, long.end), (100, 1_100));
        assert_eq!(data.position(0x8_0000_0000, true), Some(256));
    }

    #[test]
    fn acknowledged_data_on_no_path_is_counted() {
        let mut data = DataLevel::default();
        data.begin(1_000);
        data.on_mapped((1_000, true), 100, 0, 1);
        data.on_mapped((1_400, true), 100, 0, 1);
        data.on_ack(300, Some(50), 10);
        data.on_ack(501, Some(50), 10);
        assert_eq!((data.unseen_bytes, data.seen.in_order()), (300, 500));
    }
}
