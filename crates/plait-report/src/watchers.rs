//! Several observers of one run.

use plait_app::AppEvent;
use plait_base::{PathId, Span, Time};
use plait_core::Event;
use plait_sim::{Direction, Hop, Snapshot, Watch, Who};
use plait_wire::Segment;

/// Several observers of one run; events reach them in this order.
pub struct Watchers<'a>(pub Vec<&'a mut dyn Watch>);

impl Watch for Watchers<'_> {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        self.0.iter_mut().for_each(|watch| watch.on_core(now, who, event));
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        self.0.iter_mut().for_each(|watch| watch.on_app(now, who, event));
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        self.0.iter_mut().for_each(|watch| watch.on_segment(now, hop, path, way, segment));
    }

    /// Returns the shortest interval of the observers. An observer may get more samples than it
    /// requested.
    fn interval(&self) -> Option<Span> {
        self.0.iter().filter_map(|watch| watch.interval()).min()
    }

    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        self.0.iter_mut().for_each(|watch| watch.on_sample(at, snapshot));
    }

    fn goes_on(&self) -> bool {
        self.0.iter().all(|watch| watch.goes_on())
    }
}
