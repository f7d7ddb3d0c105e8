//! The parameters of slot.

use crate::{Param, ParamKind};

pub(super) const CAP: Param = Param {
    name: "cap",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "limit the data in flight on each path to what its rate needs",
    clause: "ours",
};
pub(super) const MAIN_CAP: Param = Param {
    name: "main_cap",
    kind: ParamKind::Whole { min: 100, max: 10000, default: 150 },
    unit: "%",
    help: "maximum data in flight on the main path, relative to its bandwidth-delay product",
    clause: "ours",
};
pub(super) const SIDE_CAP: Param = Param {
    name: "side_cap",
    kind: ParamKind::Whole { min: 100, max: 10000, default: 125 },
    unit: "%",
    help: "maximum data in flight on each other path, relative to its bandwidth-delay product",
    clause: "ours",
};
pub(super) const COPIES: Param = Param {
    name: "copies",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "copy data that is late, or that another path delivers sooner",
    clause: "ours",
};
pub(super) const LATE: Param = Param {
    name: "late",
    kind: ParamKind::Whole { min: 0, max: 10000, default: 45 },
    unit: "ms",
    help: "time beyond the predicted acknowledgement and its variation after which data is late",
    clause: "ours",
};
pub(super) const LOST: Param = Param {
    name: "lost",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "copy data that its subflow counts as lost",
    clause: "ours",
};
pub(super) const EAGER: Param = Param {
    name: "eager",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "if nothing new can be sent, data is late as soon as its acknowledgement is overdue by the RTT variation",
    clause: "ours",
};
pub(super) const HEDGE: Param = Param {
    name: "hedge",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "while no new data waits, copy unacknowledged data on the path where it arrives first",
    clause: "ours",
};
pub(super) const QUEUED: Param = Param {
    name: "queued",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "also take the rate from acknowledgements of segments that waited in a queue",
    clause: "ours",
};
pub(super) const GROWTH: Param = Param {
    name: "growth",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "expect that windows in slow start double in each round trip",
    clause: "ours",
};
pub(super) const DOUBT: Param = Param {
    name: "doubt",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "add the RTT variation to the arrival on paths other than the main one",
    clause: "ours",
};
pub(super) const RISK: Param = Param {
    name: "risk",
    kind: ParamKind::Whole { min: 0, max: 10000, default: 30 },
    unit: "%",
    help: "weight of the delay that losses cause on paths other than the main one, against the time saved there",
    clause: "ours",
};
pub(super) const PROBE: Param = Param {
    name: "probe",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "send only copies on untried paths other than the main one",
    clause: "ours",
};
pub(super) const PATIENT: Param = Param {
    name: "patient",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "do not copy late data if its own path repairs it before the data at hand is sent",
    clause: "ours",
};
pub(super) const BURST: Param = Param {
    name: "burst",
    kind: ParamKind::Whole { min: 0, max: 10000, default: 100 },
    unit: "us",
    help: "time of a path's rate for which one decision holds; 0 for one segment",
    clause: "ours",
};
pub(super) const BACKLOG: Param = Param {
    name: "backlog",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "segments that leave together after a pause queue behind each other",
    clause: "ours",
};
pub(super) const PASSED: Param = Param {
    name: "passed",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "do not copy data that its subflow has acknowledged with all data before it",
    clause: "ours",
};
pub(super) const HELD: Param = Param {
    name: "held",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "the time for which the receiver may have held an acknowledgement back shows no queue",
    clause: "RFC 9293 section 3.8.6.3",
};
pub(super) const REPAIR: Param = Param {
    name: "repair",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "data behind a lost segment arrives with its repair, and a copy that arrives later does not displace other data",
    clause: "ours",
};
pub(super) const SPARE: Param = Param {
    name: "spare",
    kind: ParamKind::Whole { min: 0, max: 1_000_000, default: 10 },
    unit: "MB",
    help: "copies in advance on a path in a minute at most, unless they have saved 2 % of the time",
    clause: "ours",
};
pub(super) const WITHIN: Param = Param {
    name: "within",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "the send window limits the rates that decide which path is the main one",
    clause: "ours",
};
pub(super) const ROUND: Param = Param {
    name: "round",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "the data of a round trip in which all segments waited in a queue limits the rate",
    clause: "ours",
};
pub(super) const FULL: Param = Param {
    name: "full",
    kind: ParamKind::Whole { min: 0, max: 1_000_000, default: 1 },
    unit: "MB",
    help: "as spare, while the send buffer is full: a copy then takes the place of data that the application is about to write",
    clause: "ours",
};
pub(super) const HOLD: Param = Param {
    name: "hold",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "while data waits for room, a longer path gets no new data that would take more room than it is worth",
    clause: "ours",
};
pub(super) const ONCE: Param = Param {
    name: "once",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "count losses within a round trip once, because they are repaired together",
    clause: "ours",
};
