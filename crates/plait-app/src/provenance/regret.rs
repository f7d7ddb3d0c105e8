//! What was foretold of arrivals, and what came.

use crate::Role;
use plait_base::{DataRange, Dsn, SubflowId, Time};
use plait_core::{Carry, Event};
use std::collections::BTreeMap;

/// A decision whose segment has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Regret {
    /// The end that decided.
    pub sender: Role,
    /// The decision's number.
    pub number: u64,
    /// The subflow that was chosen.
    pub subflow: SubflowId,
    /// The segment.
    pub data: DataRange,
    /// When it was to arrive on that subflow, by the plain estimate.
    pub foretold: Time,
    /// The earliest that the plain estimate gave for any candidate.
    pub earliest: Time,
    /// When it arrived, on whatever subflow.
    pub arrived: Time,
}

/// A segment that is under way.
#[derive(Clone, Copy, Debug)]
struct Expected {
    number: u64,
    subflow: SubflowId,
    data: DataRange,
    foretold: Time,
    earliest: Time,
}

/// One end's part.
#[derive(Default, Debug)]
struct End {
    /// Estimates that belong to the decision that comes next.
    estimates: Vec<(SubflowId, Time)>,
    /// What was decided and has not left.
    decided: Option<Expected>,
    /// By the first byte of the segment.
    under_way: BTreeMap<Dsn, Expected>,
}

/// Holds the plain estimates of one connection's decisions against the arrivals.
///
/// Decisions to assign ahead of sending are left out: their estimate speaks of another time.
#[derive(Default, Debug)]
pub struct Foretold {
    client: End,
    server: End,
}

impl Foretold {
    /// Takes in an event of the core of `host`; tells what an arrival settles.
    pub fn on_core(&mut self, now: Time, host: Role, event: &Event) -> Option<Regret> {
        let (own, (peer, sender)) = match host {
            Role::Client => (&mut self.client, (&mut self.server, Role::Server)),
            Role::Server => (&mut self.server, (&mut self.client, Role::Client)),
        };
        match *event {
            Event::Considered { subflow, arrival, .. } => own.estimates.push((subflow, arrival)),
            Event::Decision { number, data, chosen, candidates, .. } => {
                own.decided = chosen.and_then(|subflow| {
                    let of = |id| own.estimates.iter().find(|(it, _)| *it == id).map(|it| it.1);
                    let earliest = candidates.iter().filter_map(of).min()?;
                    let foretold = of(subflow).filter(|at| *at < Time::NEVER)?;
                    Some(Expected { number, subflow, data, foretold, earliest })
                });
                own.estimates.clear();
            }
            Event::Assigned { .. } => own.estimates.clear(),
            Event::DataSent { subflow, data, carry } => {
                let decided = own.decided.take();
                if let Some(expected) =
                    decided.filter(|it| it.subflow == subflow && it.data == data)
                    && carry == Carry::New
                {
                    own.under_way.insert(data.start, expected);
                }
            }
            Event::DataArrived { data, .. } => {
                let Expected { number, subflow, data, foretold, earliest } =
                    peer.under_way.remove(&data.start)?;
                let arrived = now;
                return Some(Regret { sender, number, subflow, data, foretold, earliest, arrived });
            }
            _ => {}
        }
        None
    }
}
