//! Queue, losses and middleboxes of a path.

use super::key::{BLANK, Field, PathKey, kept, kept_each_way, may_keep};
use crate::scenario::impairment::{
    aqm, aqm_text, loss, loss_text, mtu, mtu_text, reorder, reorder_text, strip, strip_text,
};
use crate::scenario::path_parse::{bounded, chance};
use crate::scenario::placed_text::PlacedText;
use plait_app::quantity::{self, Percent};

/// The keys of queues, losses and middleboxes, in the order in which a path is written and read.
pub(super) const PATH_KEYS: &[PathKey] = &[
    PathKey {
        name: "queue",
        form: "LIMIT",
        example: "50ms",
        help: "length of the queue: 50ms, 64KiB, 100pkt or inf;\n\
               default: 100 ms at the rate",
        field: may_keep!(
            |given: &PlacedText| given.quantity(quantity::limit),
            ToString::to_string,
            queue
        ),
        ..BLANK
    },
    PathKey {
        name: "aqm",
        form: "NAME",
        example: "codel",
        help: "queue discipline: droptail (default) or\n\
               codel[:target=5ms,interval=100ms]",
        clause: "RFC 8289",
        field: kept!(aqm, |it: &_| aqm_text(*it), aqm),
        ..BLANK
    },
    PathKey {
        name: "loss",
        form: "P%",
        example: "1%",
        help: "loses packets down; ge:p=1%,r=30%,bad=50% in bursts",
        clause: "Gilbert 1960, Elliott 1963",
        field: kept!(loss, |it: &_| loss_text(*it), impairments.down.loss.model),
        ..BLANK
    },
    PathKey {
        name: "loss_up",
        form: "P%",
        example: "ge:p=1%,r=30%,bad=50%",
        help: "loses packets up",
        field: kept!(loss, |it: &_| loss_text(*it), impairments.up.loss.model),
        ..BLANK
    },
    PathKey {
        name: "jitter",
        form: "TIME",
        example: "3ms",
        help: "delays each packet at random, but keeps the order",
        field: kept_each_way!(
            |given: &PlacedText| bounded(given, &given.text),
            ToString::to_string,
            impairments,
            jitter
        ),
        ..BLANK
    },
    PathKey {
        name: "reorder",
        form: "P%:TIME",
        example: "1%:5ms",
        help: "delays a share of the packets, which may reorder them",
        field: kept_each_way!(reorder, |it: &_| reorder_text(*it), impairments, reorder),
        ..BLANK
    },
    PathKey {
        name: "duplicate",
        form: "P%",
        example: "0.5%",
        help: "duplicates some packets",
        field: kept_each_way!(chance, |it: &_| Percent(*it).to_string(), impairments, duplicate),
        ..BLANK
    },
    PathKey {
        name: "corrupt",
        form: "P%",
        example: "2%",
        help: "damages some packets, which the host drops",
        field: kept_each_way!(chance, |it: &_| Percent(*it).to_string(), impairments, corrupt),
        ..BLANK
    },
    PathKey {
        name: "edit",
        form: "P%",
        example: "0.1%",
        help: "a middlebox changes a byte and repairs the checksum",
        clause: "RFC 8684 section 3.7",
        of_links: false,
        field: kept!(chance, |it: &_| Percent(*it).to_string(), middlebox.edit),
        ..BLANK
    },
    PathKey {
        name: "strip",
        form: "WHAT",
        example: "data@2s..3s",
        help: "a middlebox removes MPTCP options: syn, synack, ack\n\
               (the third), first (data), data or all; WHAT@TIME:\n\
               from this time on; WHAT@FROM..TO: for this time",
        clause: "RFC 8684 section 3.7",
        of_links: false,
        spans: true,
        field: may_keep!(strip, |it: &_| strip_text(*it), middlebox.strip),
        ..BLANK
    },
    PathKey {
        name: "mtu",
        form: "BYTES",
        example: "1500@0s/1280@2s",
        help: "drops longer packets; in steps 1500@0s/1280@2s",
        clause: "RFC 8899",
        field: kept!(mtu, |it: &Vec<_>| mtu_text(it), mtu),
        ..BLANK
    },
];
