//! Weighted round robin: the subflow with the lowest RTT gets longer turns.

use plait_base::SubflowId;
use plait_sched::rules::{self, Task};
use plait_sched::{
    About, Decision, Entry, Needs, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View,
};

const FAST: Param = Param {
    name: "fast",
    kind: ParamKind::Whole { min: 1, max: 1_000, default: 3 },
    unit: "segments",
    help: "segments in a turn of the subflow with the lowest RTT; the others send one",
    clause: "ours",
};

/// The scheduler's entry in the list.
pub const ENTRY: Entry = Entry {
    about: About {
        name: "weighted",
        aliases: &["wrr"],
        idea: "turns in the order of the ids, longer ones for the fastest subflow",
        page: "\
The subflows with room take turns in the order of their ids.

    turn    `fast` segments for the subflow with the lowest SRTT, 1 segment for the others
    wait    if no subflow has room

Numbers  left_segments, of the chosen one.
Source   examples/own-scheduler.
Good at  being read.
Bad at   bulk transfers: every window is full nearly always, and the turns then change little.
",
        params: &[FAST],
        state: &[
            ("turn", "id of the subflow that sent last"),
            ("left", "segments left in its turn"),
        ],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params: &Params| {
        Box::new(Weighted { fast: params.whole(&FAST), turn: SubflowId(0), left: 0 })
    },
};

#[derive(Debug)]
struct Weighted {
    fast: u64,
    /// The subflow that sent last.
    turn: SubflowId,
    /// Segments left in its turn.
    left: u64,
}

impl Scheduler for Weighted {
    fn needs(&self) -> Needs {
        Needs::LEAST
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        // Reinjections, a single subflow and an empty queue are the same for all schedulers.
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let candidates = view.candidates();
        let among = || view.subflows.iter().filter(|it| candidates.contains(it.id));
        let usable = |it: &&SubflowView| it.usable(segment.len(), view.tsq);
        let same = among().filter(usable).find(|it| it.id == self.turn && self.left > 0);
        let next = among().filter(usable).find(|it| it.id > self.turn);
        let Some(chosen) = same.or(next).or(among().find(usable)) else {
            return rules::none_usable(view);
        };
        let fastest = among().min_by_key(|it| (it.srtt_or_max(), it.id)).map(|it| it.id);
        let left = match same {
            Some(_) => self.left,
            None if fastest == Some(chosen.id) => self.fast,
            None => 1,
        };
        out.note("left_segments", Some(chosen.id), left as f64);
        let decision = rules::new_on(view, chosen.id, segment, Reason::Turn);
        if let Decision::Send { .. } = decision {
            (self.turn, self.left) = (chosen.id, left - 1);
        }
        decision
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        write("turn", f64::from(self.turn.0));
        write("left", self.left as f64);
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        match name {
            "turn" => self.turn = SubflowId(value as u8),
            "left" => self.left = value as u64,
            _ => return false,
        }
        true
    }
}
