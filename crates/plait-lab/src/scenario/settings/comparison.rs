//! Links, workload, schedulers and number of runs of a comparison.

use super::setting::{BLANK, RUNS, SCENARIO, Setting};
use crate::scenario::kind::{Field, SettingKind, count, list, read_count, text};
use crate::scenario::setters;
use crate::scenario::specs::{controllers, schedulers};

/// The settings of the comparison, in the order of the command line.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "link",
        group: SCENARIO,
        help: "a shared link behind the paths that name it with via=NAME",
        field: list(
            "NAME:KEY=VALUE,... with the keys of a path, except those of profiles, hosts and \
             middleboxes; without rtt it adds no delay",
            "cell:rtt=0s,rate=9mbit",
            setters::link_texts,
            |_, _, _| Ok(()),
        ),
        ..BLANK
    },
    Setting {
        name: "compete",
        group: SCENARIO,
        help: "cross traffic over a path or shared link: N permanent plain TCP flows to clients of \
               their own, or UDP",
        field: list(
            "CC@PATH_OR_LINK or CC@PATH_OR_LINK*N, such as reno@wifi*2; for UDP, CC is \
             poisson:rate=3mbit, or pareto:rate=1mbit,on=500ms,off=500ms,shape=1.5",
            "reno@a*2",
            |it| it.compete.iter().map(ToString::to_string).collect(),
            setters::set_competition,
        ),
        ..BLANK
    },
    Setting {
        name: "workload",
        group: SCENARIO,
        help: "the workload of the connection",
        field: text(
            "download:SIZE, upload:SIZE, bulk:DURATION, burst:SIZE, \
             stream:SIZE@INTERVAL,for=DURATION, blocks:SIZE@RATE|inf,for=DURATION, \
             video:NAME_OR_FILE, maps:DURATION or web:NAME_OR_FILE; `plait list workloads` \
             describes each",
            "upload:1MB",
            |it| vec![it.workload.to_string()],
            setters::set_workload,
        ),
        ..BLANK
    },
    Setting {
        name: "schedulers",
        group: SCENARIO,
        default: "all",
        help: "the schedulers to compare",
        varies: false,
        field: text(
            "all, or a list such as minrtt,ecf:beta=0.5,blest+rp; all may be in a list",
            "minrtt,ecf:beta=0.5",
            setters::scheduler_texts,
            |it, given, _| {
                it.schedulers = schedulers(given)?;
                Ok(())
            },
        ),
        ..BLANK
    },
    Setting {
        name: "cc",
        group: SCENARIO,
        default: "cubic",
        help: "congestion controllers",
        varies: false,
        field: text(
            "a list such as cubic,lia",
            "lia,olia",
            |it| vec![it.ccs.iter().map(plait_cc::Spec::name).collect::<Vec<_>>().join(",")],
            |it, given, _| {
                it.ccs = controllers(given)?;
                Ok(())
            },
        ),
        ..BLANK
    },
    Setting {
        name: "runs",
        group: RUNS,
        default: "30",
        help: "runs of each row; one if nothing is random",
        varies: false,
        field: count!("", 1, 1_000_000, budget.runs),
        ..BLANK
    },
    Setting {
        name: "seed",
        group: RUNS,
        default: "1",
        help: "seed of the first run",
        field: count!("", 0, u64::MAX, seed),
        ..BLANK
    },
];
