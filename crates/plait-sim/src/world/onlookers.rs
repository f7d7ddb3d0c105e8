//! Onlookers of a run: a watcher, and a wire that encodes and parses segments.

use crate::network::{Direction, Hop};
use crate::setup::{Setup, Snapshot, Watch, Who};
use crate::wire::Wire;
use plait_app::AppEvent;
use plait_base::{ConnId, PathId, Span, Time};
use plait_core::{Detail, Event};
use plait_wire::Segment;

/// A segment with the place and time of its event.
#[derive(Clone, Copy)]
pub(super) struct SegmentEvent<'s> {
    pub(super) now: Time,
    pub(super) hop: Hop,
    pub(super) pair: usize,
    pub(super) path: PathId,
    pub(super) way: Direction,
    pub(super) segment: &'s Segment,
}

/// Onlookers of a run, which change nothing.
pub(super) struct Onlookers<'a> {
    setup: &'a Setup,
    /// `None` if the run has no watcher that needs anything.
    watch: Option<&'a mut dyn Watch>,
    /// `None` if segments are not encoded.
    wire: Option<Box<Wire>>,
    /// True if the watcher or the wire needs segments.
    segments: bool,
    /// The first invariant that was violated.
    pub(super) violation: Option<String>,
}

impl<'a> Onlookers<'a> {
    pub(super) fn new(setup: &'a Setup, watch: Option<&'a mut dyn Watch>) -> Onlookers<'a> {
        let wire = Wire::new(setup);
        let watch = watch.filter(|watch| watch.watches());
        let segments = watch.is_some() || wire.is_some();
        Onlookers { setup, watch, wire, segments, violation: None }
    }

    /// Returns the detail that the watcher needs. Measures alone need the least.
    pub(super) fn detail(&self) -> Detail {
        self.watch.as_ref().map_or(Detail::Measures, |watch| watch.detail())
    }

    /// Records a violation unless an earlier one exists.
    pub(super) fn violated(&mut self, now: Time, what: impl FnOnce() -> String) {
        self.violation.get_or_insert_with(|| format!("{now:?}: {}", what()));
    }

    fn watch_of(&mut self, pair: usize) -> Option<&mut (dyn Watch + 'a)> {
        match &mut self.watch {
            Some(watch) if !self.setup.pairs[pair].background => Some(&mut **watch),
            _ => None,
        }
    }

    /// Reports a segment that was sent, delivered or dropped. Returns false after a violated
    /// invariant. Without an onlooker that needs segments, the event is not built.
    #[inline(always)]
    pub(super) fn on_segment<'s>(&mut self, event: impl FnOnce() -> SegmentEvent<'s>) -> bool {
        !self.segments || self.look_at(event())
    }

    #[cold]
    fn look_at(&mut self, event: SegmentEvent<'_>) -> bool {
        let SegmentEvent { now, hop, pair, path, way, segment } = event;
        if let Some(watch) = self.watch_of(pair) {
            watch.on_segment(now, hop, path, way, segment);
        }
        let crosses = match hop {
            Hop::Sent => true,
            Hop::Delivered => self.setup.meddles(path),
            Hop::Dropped(_) => false,
        };
        if crosses
            && let Some(wire) = &mut self.wire
            && let Err(what) = wire.cross(pair, path, way, segment)
        {
            self.violated(now, || what);
        }
        self.violation.is_none()
    }

    /// Reports events of a connection's core.
    #[inline(always)]
    pub(super) fn on_core(&mut self, now: Time, who: Who, said: &[(ConnId, Event)]) {
        if self.watch.is_some() {
            self.show_core(now, who, said);
        }
    }

    #[inline(never)]
    fn show_core(&mut self, now: Time, who: Who, said: &[(ConnId, Event)]) {
        if let Some(watch) = self.watch_of(who.pair) {
            said.iter().for_each(|(_, event)| watch.on_core(now, who, event));
        }
    }

    /// Reports events of an app.
    #[inline(always)]
    pub(super) fn on_app(&mut self, now: Time, who: Who, events: &[AppEvent]) {
        if self.watch.is_some() {
            self.show_app(now, who, events);
        }
    }

    #[inline(never)]
    fn show_app(&mut self, now: Time, who: Who, events: &[AppEvent]) {
        if let Some(watch) = self.watch_of(who.pair) {
            events.iter().for_each(|event| watch.on_app(now, who, event));
        }
    }

    /// Returns the watcher's sampling interval.
    pub(super) fn interval(&self) -> Option<Span> {
        self.watch.as_ref().and_then(|watch| watch.interval())
    }

    /// Reports a sample. Returns false if the watcher ends the run.
    pub(super) fn on_sample(&mut self, at: Time, snapshot: &Snapshot) -> bool {
        self.watch.as_mut().is_none_or(|watch| {
            watch.on_sample(at, snapshot);
            watch.goes_on()
        })
    }
}
