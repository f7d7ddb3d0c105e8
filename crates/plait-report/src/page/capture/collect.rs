//! Collects a transfer of a capture for the page: values in bins, and marks. The length of the transfer is known, so the
//! bins keep their length.

use super::super::marks::{MarkKind, Marks};
use super::super::series::{Grid, Sum, Track};
use plait_base::{Span, Time};
use plait_capture::{ConnectionReport, DataKind, Happening, Moment, Watch};

/// One path over time.
#[derive(Clone, Default, Debug)]
pub(super) struct PathTracks {
    /// Payload bytes, with copies.
    pub(super) sent: Sum,
    /// Segments sent again, or whose first copy was lost before the capture.
    pub(super) again: Sum,
    pub(super) unacked: Track,
    pub(super) rtt_us: Track,
}

/// The observer of the transfer.
#[derive(Debug)]
pub struct TransferCollector {
    pub(super) grid: Grid,
    /// Acknowledgement of the last data.
    pub(super) end: Time,
    pub(super) paths: Vec<PathTracks>,
    pub(super) marks: Marks,
    pub(super) acked: Track,
    pub(super) unacked: Track,
    pub(super) window: Track,
    /// True if there was an acknowledgement, and the number of those with an unknown window.
    pub(super) is_acked: bool,
    pub(super) unknown_windows: u64,
}

impl Default for TransferCollector {
    fn default() -> TransferCollector {
        TransferCollector {
            grid: Grid::new(Time::ZERO),
            end: Time::ZERO,
            paths: Vec::new(),
            marks: Marks::default(),
            acked: Track::starting(Some(0)),
            unacked: Track::starting(Some(0)),
            window: Track::default(),
            is_acked: false,
            unknown_windows: 0,
        }
    }
}

impl TransferCollector {
    /// Returns true if there is something to draw: data, and times.
    pub(super) fn is_drawn(&self) -> bool {
        self.end > Time::ZERO && self.paths.iter().any(|path| !path.sent.0.is_empty())
    }

    /// Returns the number of bins.
    pub(super) fn bins(&self) -> usize {
        self.grid.index(self.end).map_or(0, |last| last + 1)
    }
}

impl Watch for TransferCollector {
    fn begin(&mut self, connection: &ConnectionReport) {
        let length = Span::from_nanos((connection.duration_ms.max(0.0) * 1e6) as u64);
        self.grid = Grid::spanning(Time::ZERO, length);
        self.end = Time::ZERO + length;
        self.paths = vec![PathTracks::default(); connection.paths.len()];
    }

    fn happens(&mut self, moment: &Moment) {
        // The length has whole microseconds.
        let at = Time::from_nanos(moment.at_ns / 1_000 * 1_000);
        let Some(path) = self.paths.get_mut(moment.path).filter(|_| at <= self.end) else { return };
        let Some(bin) = self.grid.index(at) else { return };
        match moment.what {
            Happening::Data { start, end, kind } => {
                let kind = match kind {
                    DataKind::First => MarkKind::Sent,
                    DataKind::Again => MarkKind::Again,
                    DataKind::Reinjected => MarkKind::Copied,
                };
                self.marks.push(kind, moment.path as u32, at.as_nanos() / 1_000, start, end);
                path.sent.add(bin, end - start);
                if kind == MarkKind::Again {
                    path.again.add(bin, 1);
                }
            }
            Happening::Acked(position) => {
                self.is_acked = true;
                self.acked.note(bin, position);
                match moment.window {
                    Some(window) => self.window.note(bin, window),
                    None => self.unknown_windows += 1,
                }
            }
            Happening::RoundTrip(ns) => {
                path.rtt_us.note(bin, ns / 1_000);
                return;
            }
        }
        path.unacked.note(bin, moment.path_unacked);
        self.unacked.note(bin, moment.unacked);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::marks::MARKS;
    use super::super::super::series::BINS;
    use super::*;

    /// A transfer of any length takes the same room.
    #[test]
    fn a_long_transfer_is_bounded() {
        let mut seen = TransferCollector::default();
        let length = Span::from_millis(86_400_000);
        (seen.grid, seen.end) = (Grid::spanning(Time::ZERO, length), Time::ZERO + length);
        seen.paths = vec![PathTracks::default(); 2];
        let count = 500_000_u64;
        for nth in 0..=count {
            let at_ns = length.as_nanos() / count * nth;
            let (start, path) = (nth * 1_400, (nth % 2) as usize);
            let kind = if nth % 50 == 0 { DataKind::Again } else { DataKind::First };
            let data = Happening::Data { start, end: start + 1_400, kind };
            for what in [data, Happening::Acked(start), Happening::RoundTrip(30_000_000)] {
                let (unacked, path_unacked, window) = (1_400, 1_400, Some(nth));
                seen.happens(&Moment { at_ns, path, what, unacked, path_unacked, window });
            }
        }
        assert_eq!(seen.bins(), BINS);
        assert!(seen.paths.iter().all(|path| path.sent.0.len() <= BINS));
        let marks: usize = seen.marks.groups().iter().map(|group| group.marks.len()).sum();
        assert!((MARKS / 8..=MARKS).contains(&marks), "{marks}");
        let sent: u64 = seen.paths.iter().flat_map(|path| &path.sent.0).sum();
        assert_eq!(sent, (count + 1) * 1_400);
        // Later moments are left out.
        let what = Happening::Acked(u64::MAX);
        let at_ns = length.as_nanos() * 2;
        seen.happens(&Moment { at_ns, path: 0, what, unacked: 0, path_unacked: 0, window: None });
        assert_eq!((seen.bins(), seen.unknown_windows), (BINS, 0));
    }
}
