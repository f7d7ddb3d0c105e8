//! The plan: the order of the runs and their lengths. A heap holds the next run of each subflow, so
//! the cost does not depend on the length of the plan.

use crate::exact;
use plait_base::{SubflowId, SubflowSet};

/// A subflow's part of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Flow {
    pub(super) id: SubflowId,
    /// Forward delay in ms. The subflow has a run at each multiple of it.
    pub(super) delay: u64,
    /// Segments of a run.
    pub(super) window: u64,
    /// Time within the plan, in ms, of the subflow's next or current run.
    pub(super) due: u64,
}

/// A plan that is being carried out.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Plan {
    /// The candidates for which the plan was made.
    candidates: SubflowSet,
    /// The planned subflows, in the order of their smoothed RTTs.
    flows: [Flow; SubflowId::MAX],
    count: usize,
    /// A heap of indices into `flows`, with the current run first. It is ordered by the time of the
    /// run and, for equal times, by the index in `flows`.
    heap: [u8; SubflowId::MAX],
    length: u64,
    /// Segments left of the current run; `None` before it begins.
    left: Option<u64>,
    /// Loaded values that are not in the heap yet.
    loaded: Option<Loaded>,
}

/// A plan from a saved state, by subflow id.
#[derive(Clone, Copy, Default, Debug)]
struct Loaded {
    flows: [Flow; SubflowId::MAX],
    ranks: [u64; SubflowId::MAX],
}

/// Returns the least common multiple of the delays, or `None` if it exceeds `cap`.
fn least_common_multiple(flows: &[Flow], cap: u64) -> Option<u64> {
    let mut lcm = 1_u64;
    for flow in flows {
        let (mut a, mut b) = (lcm, flow.delay);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        lcm = (lcm / a.max(1)).checked_mul(flow.delay).filter(|lcm| *lcm <= cap)?;
    }
    Some(lcm)
}

impl Plan {
    /// Creates a plan for these subflows, which are in the order of their RTTs. All delays are
    /// halved until their least common multiple does not exceed `cap`.
    pub(super) fn new(candidates: SubflowSet, flows: &[Flow], cap: u64) -> Plan {
        let mut plan = Plan { candidates, ..Plan::default() };
        for (place, flow) in plan.flows.iter_mut().zip(flows) {
            *place = *flow;
            plan.count += 1;
        }
        plan.length = loop {
            if let Some(length) = least_common_multiple(&plan.flows[..plan.count], cap.max(1)) {
                break length;
            }
            for flow in &mut plan.flows[..plan.count] {
                flow.delay = (flow.delay / 2).max(1);
            }
        };
        for flow in &mut plan.flows[..plan.count] {
            flow.due = flow.delay;
        }
        plan.heapify();
        plan
    }

    pub(super) fn flows(&self) -> &[Flow] {
        &self.flows[..self.count]
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the length of the plan in ms.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Returns true if the plan was made for `candidates`.
    pub(super) fn serves(&mut self, candidates: SubflowSet) -> bool {
        if let Some(loaded) = self.loaded.take() {
            self.take_over(&loaded);
        }
        let known = |flow: &Flow| candidates.contains(flow.id);
        self.candidates == candidates && !self.is_empty() && self.flows().iter().all(known)
    }

    /// Returns the subflow of the current run.
    pub(super) fn current(&self) -> Option<Flow> {
        if self.is_empty() { None } else { Some(self.flows[usize::from(self.heap[0])]) }
    }

    /// Returns true if no run is left. It moves to the next run if the current one is finished.
    pub(super) fn is_used_up(&mut self) -> bool {
        if self.left == Some(0) && !self.is_empty() {
            let flow = &mut self.flows[usize::from(self.heap[0])];
            flow.due = flow.due.saturating_add(flow.delay);
            self.left = None;
            self.sift_down(0);
        }
        self.current().is_none_or(|flow| flow.due > self.length)
    }

    /// Returns the segments left of the current run. The first call begins the run: with `window`
    /// segments if given, otherwise with the planned number.
    pub(super) fn left(&mut self, window: Option<u64>) -> u64 {
        let planned = self.current().map_or(1, |flow| flow.window);
        *self.left.get_or_insert(window.unwrap_or(planned).max(1))
    }

    /// Removes one segment from the current run.
    pub(super) fn take_one(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    fn heapify(&mut self) {
        for at in 0..self.count {
            self.heap[at] = at as u8;
        }
        for at in (0..self.count / 2).rev() {
            self.sift_down(at);
        }
    }

    /// Returns the time and rank of the run at this position of the heap.
    fn turn(&self, at: usize) -> (u64, u8) {
        (self.flows[usize::from(self.heap[at])].due, self.heap[at])
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let children = (2 * at + 1..=2 * at + 2).filter(|child| *child < self.count);
            match children.min_by_key(|child| self.turn(*child)) {
                Some(child) if self.turn(child) < self.turn(at) => {
                    self.heap.swap(at, child);
                    at = child;
                }
                _ => return,
            }
        }
    }

    /// Replaces the plan with the loaded one.
    fn take_over(&mut self, loaded: &Loaded) {
        let Plan { candidates, length, left, .. } = *self;
        *self = Plan { candidates, length, left, ..Plan::default() };
        let mut order: [usize; SubflowId::MAX] = core::array::from_fn(|id| id);
        order.sort_unstable_by_key(|id| (loaded.ranks[*id], *id));
        for id in order {
            if loaded.flows[id].delay > 0 {
                self.flows[self.count] = Flow { id: SubflowId(id as u8), ..loaded.flows[id] };
                self.count += 1;
            }
        }
        self.heapify();
    }

    /// Returns the plan as a saved state holds it.
    fn as_loaded(&self) -> Loaded {
        let mut loaded = Loaded::default();
        for (rank, flow) in self.flows().iter().enumerate() {
            let id = flow.id.index();
            (loaded.flows[id], loaded.ranks[id]) = (*flow, rank as u64);
        }
        loaded
    }

    pub(super) fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        let loaded = self.loaded.unwrap_or_else(|| self.as_loaded());
        if self.length > 0 {
            write("plan_ms", self.length as f64);
        }
        if !self.candidates.is_empty() {
            write("candidates", f64::from(self.candidates.0));
        }
        if let Some(left) = self.left {
            write("left", left as f64);
        }
        let some = |value: u64| (value > 0).then_some(value as f64);
        crate::state::save_each("delay.", "_ms", &loaded.flows, write, |it| some(it.delay));
        crate::state::save_each("window.", "", &loaded.flows, write, |it| some(it.window));
        crate::state::save_each("rank.", "", &loaded.ranks, write, |rank| some(*rank));
        crate::state::save_each("due.", "_ms", &loaded.flows, write, |it| some(it.due));
    }

    pub(super) fn load_state(&mut self, name: &str, value: f64) -> bool {
        let whole = exact::nearest(value);
        match name {
            "plan_ms" => self.length = whole,
            "candidates" => self.candidates = SubflowSet(u8::try_from(whole).unwrap_or(0)),
            "left" => self.left = Some(whole),
            _ => {
                let now = self.as_loaded();
                let Loaded { flows, ranks } = self.loaded.get_or_insert(now);
                if let Some(flow) = crate::state::slot("delay.", "_ms", name, flows) {
                    flow.delay = whole;
                } else if let Some(flow) = crate::state::slot("window.", "", name, flows) {
                    flow.window = whole;
                } else if let Some(rank) = crate::state::slot("rank.", "", name, ranks) {
                    *rank = whole;
                } else if let Some(flow) = crate::state::slot("due.", "_ms", name, flows) {
                    flow.due = whole;
                } else {
                    return false;
                }
            }
        }
        true
    }
}
