//! Outages and interface of a path.

use super::key::{BLANK, Field, PathKey, Result, kept, may_keep};
use crate::error::Fault;
use crate::scenario::path::Path;
use crate::scenario::path_parse::{Reader, outage, positive_rate, span_text};
use crate::scenario::placed_text::PlacedText;
use plait_app::quantity::{self, Bytes};

/// The keys of outages and interfaces, in the order in which a path is written and read.
pub(super) const PATH_KEYS: &[PathKey] = &[
    PathKey {
        name: "down",
        form: "FROM..TO",
        example: "1s..3s",
        help: "an outage; down=1s.. has no end; repeatable",
        repeats: true,
        spans: true,
        field: Field {
            get: |path, _| path.outages.iter().map(span_text).collect(),
            set: |path, given, _| {
                path.outages.push(outage(given)?);
                Ok(())
            },
        },
        ..BLANK
    },
    PathKey {
        name: "gone",
        form: "FROM..TO",
        example: "1s..3s",
        help: "the client loses the address, sends REMOVE_ADDR, and\n\
               gets the address back; repeatable",
        clause: "RFC 8684 section 3.4.2",
        of_links: false,
        repeats: true,
        spans: true,
        field: Field { get: |path, _| path.gone.iter().map(span_text).collect(), set: gone },
        ..BLANK
    },
    PathKey {
        name: "nic",
        form: "RATE",
        example: "1gbit",
        help: "the sending host\u{2019}s own link; default: 1gbit",
        of_links: false,
        field: may_keep!(
            |given: &PlacedText| positive_rate(given, &given.text),
            ToString::to_string,
            nic
        ),
        ..BLANK
    },
    PathKey {
        name: "via",
        form: "LINK",
        example: "cell",
        help: "a link that paths share (--link)",
        of_links: false,
        field: may_keep!(
            |given: &PlacedText| Result::Ok(given.text.trim().to_owned()),
            ToString::to_string,
            via
        ),
        ..BLANK
    },
    PathKey {
        name: "backup",
        example: "on",
        help: "used only if no other path works",
        clause: "RFC 8684 section 3.3.8",
        of_links: false,
        field: kept!(PlacedText::switch, |_: &bool| "on".to_owned(), usage.backup),
        ..BLANK
    },
    PathKey {
        name: "cost",
        form: "N",
        example: "10",
        help: "price of a byte, relative to other paths; default: 0,\n\
               free (--goal)",
        of_links: false,
        field: kept!(cost, ToString::to_string, usage.cost),
        ..BLANK
    },
    PathKey {
        name: "quota",
        form: "SIZE",
        example: "50MB",
        help: "payload that each end may send over it in a run,\n\
               TCP retransmissions excluded (--goal)",
        of_links: false,
        field: may_keep!(quota, |bytes: &u64| Bytes(*bytes).to_string(), usage.quota),
        ..BLANK
    },
];

/// Highest price of a byte.
pub const HIGHEST_COST: u64 = 1_000_000;

fn cost(given: &PlacedText) -> Result<u32> {
    Ok(given.count(0, HIGHEST_COST)? as u32)
}

fn quota(given: &PlacedText) -> Result<u64> {
    given.quantity(quantity::bytes)
}

fn gone(path: &mut Path, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    let (from, to) = outage(given)?;
    if path.gone.iter().any(|other| from <= other.1 && other.0 <= to) {
        let problem = "the address is gone already at that time";
        return Err(given.error(Fault::Conflict, problem).allow("spans that do not overlap"));
    }
    path.gone.push((from, to));
    Ok(())
}
