//! Delay and rate of a path.

use super::key::{BLANK, Field, PathKey, Result, kept};
use crate::scenario::delay::Delay;
use crate::scenario::path::{Offset, Path, Speed};
use crate::scenario::path_parse::{Reader, offset, recording, steps};
use crate::scenario::placed_text::PlacedText;
use plait_base::Rate;

/// The keys of delay and rate, in the order in which a path is written and read.
pub(super) const PATH_KEYS: &[PathKey] = &[
    PathKey {
        name: "profile",
        form: "NAME",
        example: "wifi-home",
        help: "start from a profile",
        of_links: false,
        field: Field {
            get: |path, _| path.profile.iter().map(|profile| profile.name.to_owned()).collect(),
            set: |_, _, _| Ok(()),
        },
        ..BLANK
    },
    PathKey {
        name: "rtt",
        form: "TIME",
        example: "25ms@0s/80ms@10s",
        help: "propagation delay, half of it each way; in steps\n\
               25ms@0s/80ms@10s",
        displaces: &["owd_down", "owd_up"],
        field: Field {
            get: round_trip,
            set: |path, given, _| {
                path.delay = Delay::parse(given)?.split();
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "owd_down",
        form: "TIME",
        example: "15ms",
        help: "propagation delay down, in place of rtt",
        displaces: &["rtt"],
        field: Field {
            get: |path, base| one_way(path, base, &path.delay.down),
            set: |path, given, _| {
                path.delay.down = Delay::parse(given)?;
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "owd_up",
        form: "TIME",
        example: "10ms",
        help: "propagation delay up, in place of rtt",
        displaces: &["rtt"],
        field: Field {
            get: |path, base| one_way(path, base, &path.delay.up),
            set: |path, given, _| {
                path.delay.up = Delay::parse(given)?;
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "rate",
        form: "RATE",
        example: "10mbit@0s/4mbit@20s",
        help: "rate each way, or inf; in steps 10mbit@0s/4mbit@20s;\n\
               1mbit/4mbit~40s draws a new rate about every 40 s",
        displaces: &["rate_down", "rate_up", "trace", "trace_up", "offset"],
        field: Field {
            get: both_rates,
            set: |path, given, _| {
                let speed = Some(steps(given)?);
                path.speed.down.clone_from(&speed);
                path.speed.up = speed;
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "rate_down",
        form: "RATE",
        example: "8mbit",
        help: "the rate down, in place of rate",
        displaces: &["trace"],
        field: Field {
            get: |path, base| rate_down(path, base, false),
            set: |path, given, _| {
                path.speed.down = Some(steps(given)?);
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "trace",
        form: "FILE",
        example: "a.down",
        help: "a recording (Mahimahi, CSV) in place of the rate down",
        displaces: &["rate", "rate_down"],
        field: Field { get: |path, base| rate_down(path, base, true), set: trace_down },
        ..BLANK
    },
    PathKey {
        name: "rate_up",
        form: "RATE",
        example: "2mbit",
        help: "the rate up, in place of rate",
        displaces: &["trace_up"],
        field: Field {
            get: |path, base| rate_up(path, base, false),
            set: |path, given, _| {
                path.speed.up = Some(steps(given)?);
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "trace_up",
        form: "FILE",
        example: "b.csv",
        help: "a recording in place of the rate up",
        displaces: &["rate_up"],
        field: Field {
            get: |path, base| rate_up(path, base, true),
            set: |path, given, read| {
                path.speed.up = Some(Speed::Trace(recording(given, read)?));
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "offset",
        form: "TIME",
        example: "random",
        help: "start position in a trace, or random",
        field: kept!(offset, offset_text, offset),
        ..BLANK
    },
];

/// Returns true if the delay differs from that of the profile.
fn has_own_delay(path: &Path, base: &Path) -> bool {
    path.profile.is_none() || path.delay != base.delay
}

fn round_trip(path: &Path, base: &Path) -> Vec<String> {
    let whole = path.delay.whole().filter(|_| has_own_delay(path, base));
    whole.iter().map(ToString::to_string).collect()
}

fn one_way(path: &Path, base: &Path, delay: &Delay) -> Vec<String> {
    let split = has_own_delay(path, base) && path.delay.whole().is_none();
    if split { vec![delay.to_string()] } else { Vec::new() }
}

/// Returns the rate if it is the same both ways.
fn both_rates(path: &Path, base: &Path) -> Vec<String> {
    match &path.speed.down {
        Some(down @ (Speed::Fixed(_) | Speed::Steps(_) | Speed::Redraw(_)))
            if path.speed.up.as_ref() == Some(down) && path.speed != base.speed =>
        {
            vec![down.text()]
        }
        _ => Vec::new(),
    }
}

/// Returns the rate down if it has a text of its own. `traced` selects the key for traces.
fn rate_down(path: &Path, base: &Path, traced: bool) -> Vec<String> {
    let down = path.speed.down.iter().filter(|down| down.is_trace() == traced);
    let own = path.speed.down != base.speed.down && both_rates(path, base).is_empty();
    down.filter(|_| own).map(Speed::text).collect()
}

/// Returns the rate up, as [`rate_down`] does for the way down.
fn rate_up(path: &Path, base: &Path, traced: bool) -> Vec<String> {
    // A trace down leaves the way up unlimited by default.
    let free = path.speed.down.as_ref().is_some_and(Speed::is_trace);
    let free = free.then_some(Speed::Fixed(Rate::INFINITE));
    let up = path.speed.up.iter().filter(|up| up.is_trace() == traced);
    let implied = if free.is_some() { &free } else { &base.speed.up };
    let own =
        path.speed.up != *implied && path.speed != base.speed && both_rates(path, base).is_empty();
    up.filter(|_| own).map(Speed::text).collect()
}

/// Reads a trace down. The way up becomes unlimited, unless a later key sets it.
fn trace_down(path: &mut Path, given: &PlacedText, read: Reader<'_>) -> Result<()> {
    path.speed.down = Some(Speed::Trace(recording(given, read)?));
    path.speed.up = Some(Speed::Fixed(Rate::INFINITE));
    Ok(())
}

fn offset_text(offset: &Offset) -> String {
    match offset {
        Offset::At(span) => span.to_string(),
        Offset::Random => "random".to_owned(),
    }
}
