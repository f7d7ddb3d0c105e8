//! End, timing, checks and variations of the runs.

use super::setting::{BLANK, HOSTS, RUNS, Setting};
use crate::scenario::kind::{Field, SettingKind, list, on_off, text};
use crate::scenario::setters;

/// The settings of the runs, in the order of the command line.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "until",
        group: RUNS,
        help: "time at which an unfinished run ends; or ci=2%: add runs until each scheduler's 95 % \
               interval against the best row is within 2 %, up to 1000 runs",
        varies: false,
        field: list(
            "a time, at most 60min of virtual time, or ci=PERCENT",
            "90s",
            setters::until_texts,
            setters::set_until,
        ),
        ..BLANK
    },
    Setting {
        name: "ideal",
        group: HOSTS,
        default: "off",
        help: "the textbook model: no rate limit, no queue, one ACK per segment",
        field: on_off!(Flag, ideal),
        ..BLANK
    },
    Setting {
        name: "exact",
        group: RUNS,
        default: "off",
        help: "no jitter of hosts: a comparison without randomness makes one run",
        field: on_off!(Flag, timing.exact),
        ..BLANK
    },
    Setting {
        name: "host-jitter",
        group: RUNS,
        default: "auto",
        help: "random timing of hosts: the phase of each path, a delay of each packet and the \
               start; auto: 200us if nothing else in the comparison is random",
        field: text(
            "auto, or a time such as 200us, at most 10ms",
            "200us",
            |it| vec![it.timing.jitter.to_string()],
            setters::set_host_jitter,
        ),
        ..BLANK
    },
    Setting {
        name: "check",
        group: RUNS,
        default: "off",
        help: "check the invariants after every event",
        field: on_off!(Flag, check),
        ..BLANK
    },
    Setting {
        name: "wire",
        group: RUNS,
        default: "off",
        help: "encode and parse every segment; the result must be identical",
        field: on_off!(Flag, wire),
        ..BLANK
    },
    Setting {
        name: "jobs",
        group: RUNS,
        help: "runs at a time; by default one per core",
        varies: false,
        field: text(
            "a whole number from 1 to 1024",
            "2",
            |it| it.budget.jobs.iter().map(ToString::to_string).collect(),
            setters::set_jobs,
        ),
        ..BLANK
    },
    Setting {
        name: "vary",
        group: RUNS,
        help: "repeat for each value of a setting; given twice: for each pair of values",
        varies: false,
        field: list(
            "PATH.KEY=FROM..TO:POINTS or PATH.KEY=A,B,C, or a setting for PATH.KEY",
            "mtu=600,1500",
            |it| it.vary.iter().map(ToString::to_string).collect(),
            |_, _, _| Ok(()),
        ),
        ..BLANK
    },
    Setting {
        name: "expect",
        group: RUNS,
        help: "a statement that must hold",
        varies: false,
        field: list(
            "ROW.MEASURE.STATISTIC OP ROW.MEASURE.STATISTIC or a number",
            "minrtt.completion_ms.mean < 1e9",
            |it| it.expect.iter().map(ToString::to_string).collect(),
            setters::set_expectation,
        ),
        ..BLANK
    },
];
