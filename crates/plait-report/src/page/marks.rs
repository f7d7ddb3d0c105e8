//! The positions of data over time: marks in the plane of time and data. Neighbouring marks are
//! merged if there are more than a page can carry.

use std::collections::BTreeMap;

/// Greatest number of marks kept.
pub(super) const MARKS: usize = 12_000;
/// Cells along each side of the drawing when merging begins; finer than visible.
const SIDE: u64 = 4_096;

/// The kind of a mark.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MarkKind {
    /// Sent for the first time.
    Sent,
    /// Retransmitted on the same subflow.
    Again,
    /// Sent before on another subflow.
    Copied,
    /// Arrived at the receiver.
    Arrived,
    /// Dropped by the path.
    Lost,
}

impl MarkKind {
    /// Returns its name in the page's data.
    pub(super) fn key(self) -> &'static str {
        match self {
            MarkKind::Sent => "sent",
            MarkKind::Again => "again",
            MarkKind::Copied => "copied",
            MarkKind::Arrived => "arrived",
            MarkKind::Lost => "lost",
        }
    }
}

/// The bounding box of merged marks in microseconds and bytes, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub(super) from_us: u64,
    pub(super) to_us: u64,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Mark {
    fn join(self, other: Mark) -> Mark {
        Mark {
            from_us: self.from_us.min(other.from_us),
            to_us: self.to_us.max(other.to_us),
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// The marks of one kind on one path, ordered by time.
pub(super) struct MarkGroup {
    pub(super) kind: MarkKind,
    pub(super) path: u32,
    pub(super) marks: Vec<Mark>,
}

/// How far marks were merged.
pub(super) struct Thinned {
    /// Marks pushed, and marks after merging.
    pub(super) told: u64,
    pub(super) kept: usize,
    /// The sides of the merged cells.
    pub(super) cell_us: u64,
    pub(super) cell_bytes: u64,
}

/// Kind, path, and the cell of a mark.
type Place = (MarkKind, u32, u64, u64);

/// All marks. Both sides of a cell are powers of two and only ever grow, so that merged marks never
/// need to be split.
#[derive(Debug)]
pub(super) struct Marks {
    cell_us: u64,
    cell_bytes: u64,
    side: u64,
    marks: BTreeMap<Place, Mark>,
    /// Greatest time and byte so far.
    reach: (u64, u64),
    /// Number of marks pushed.
    told: u64,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks {
            cell_us: 1,
            cell_bytes: 1,
            side: SIDE,
            marks: BTreeMap::new(),
            reach: (0, 0),
            told: 0,
        }
    }
}

impl Marks {
    /// Adds a range of bytes at an instant.
    pub(super) fn push(&mut self, kind: MarkKind, path: u32, at_us: u64, start: u64, end: u64) {
        self.reach = (self.reach.0.max(at_us), self.reach.1.max(end));
        self.told += 1;
        self.place(kind, path, Mark { from_us: at_us, to_us: at_us, start, end });
        while self.marks.len() > MARKS {
            self.coarsen();
        }
    }

    fn place(&mut self, kind: MarkKind, path: u32, mark: Mark) {
        let place = (kind, path, mark.from_us / self.cell_us, mark.start / self.cell_bytes);
        let joined = self.marks.get(&place).map_or(mark, |known| known.join(mark));
        self.marks.insert(place, joined);
    }

    /// Enlarges the cells so that the drawing is about `side` cells wide and high. Halves `side`
    /// for the next time if more than half of the marks remain.
    fn coarsen(&mut self) {
        let cell = |reach: u64| (reach / self.side.max(1)).max(1).next_power_of_two();
        self.cell_us = self.cell_us.max(cell(self.reach.0));
        self.cell_bytes = self.cell_bytes.max(cell(self.reach.1));
        let old = std::mem::take(&mut self.marks);
        for ((kind, path, ..), mark) in old {
            self.place(kind, path, mark);
        }
        // Leaves room for as many marks again; otherwise the next mark would trigger another merge.
        if self.marks.len() > MARKS / 2 {
            self.side = (self.side / 2).max(1);
        }
    }

    /// Returns how far the marks were merged.
    pub(super) fn thinned(&self) -> Thinned {
        let Marks { told, cell_us, cell_bytes, .. } = *self;
        Thinned { told, kept: self.marks.len(), cell_us, cell_bytes }
    }

    /// Returns the marks of each kind and path, ordered by time.
    pub(super) fn groups(&self) -> Vec<MarkGroup> {
        let mut groups: Vec<MarkGroup> = Vec::new();
        for ((kind, path, ..), mark) in &self.marks {
            match groups.last_mut() {
                Some(it) if it.kind == *kind && it.path == *path => it.marks.push(*mark),
                _ => groups.push(MarkGroup { kind: *kind, path: *path, marks: vec![*mark] }),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_marks_stay_as_they_are() {
        let mut marks = Marks::default();
        marks.push(MarkKind::Sent, 0, 10, 0, 1_428);
        marks.push(MarkKind::Sent, 1, 10, 1_428, 2_856);
        marks.push(MarkKind::Sent, 0, 12, 2_856, 4_284);
        let groups = marks.groups();
        assert_eq!(groups.len(), 2);
        assert_eq!(
            groups[0].marks,
            [
                Mark { from_us: 10, to_us: 10, start: 0, end: 1_428 },
                Mark { from_us: 12, to_us: 12, start: 2_856, end: 4_284 },
            ]
        );
    }

    #[test]
    fn a_long_run_keeps_to_its_room_and_stays_sharp() {
        let mut marks = Marks::default();
        for n in 0..300_000_u64 {
            marks.push(MarkKind::Sent, (n % 3 == 0).into(), n * 200, n * 1_428, (n + 1) * 1_428);
        }
        let all: usize = marks.groups().iter().map(|it| it.marks.len()).sum();
        assert!((MARKS / 8..=MARKS).contains(&all), "{all}");
        // No mark is longer than a hundredth of the drawing in either direction.
        for group in marks.groups() {
            for mark in group.marks {
                assert!(mark.to_us - mark.from_us <= 600_000, "{mark:?}");
                assert!(mark.end - mark.start <= 3 * 1_428_000, "{mark:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_byte_and_instant_stays_covered(
            points in prop::collection::vec((0..2_u32, 0..1_000_000_u64, 0..50_000_000_u64), 1..400),
            crowd in 0..20_000_u64,
        ) {
            let mut marks = Marks::default();
            for (path, at, start) in &points {
                marks.push(MarkKind::Arrived, *path, *at, *start, start + 1_000);
            }
            for n in 0..crowd {
                marks.push(MarkKind::Again, 0, n * 997 % 1_000_000, n * 104_729 % 50_000_000, 50_001_000);
            }
            let groups = marks.groups();
            let total: usize = groups.iter().map(|it| it.marks.len()).sum();
            prop_assert!(total <= MARKS);
            for (path, at, start) in points {
                let held = groups.iter().any(|it| {
                    it.kind == MarkKind::Arrived && it.path == path && it.marks.iter().any(|mark| {
                        (mark.from_us..=mark.to_us).contains(&at)
                            && mark.start <= start && mark.end >= start + 1_000
                    })
                });
                prop_assert!(held);
            }
        }
    }
}
