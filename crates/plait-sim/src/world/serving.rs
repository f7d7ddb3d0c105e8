//! Serves a host after a segment has arrived or a timer has expired.

use super::onlookers::SegmentEvent;
use super::{World, is_client};
use crate::network::{Direction, Hop};
use crate::queue::Stamp;
use plait_base::Span;

impl World<'_> {
    /// Does all work that a host has now: runs apps, sends segments, reports events.
    #[inline(always)]
    pub(super) fn serve(&mut self, host: usize) {
        // A watcher needs events before their consequences. Measures do not depend on this order.
        loop {
            if self.watched {
                self.drain_core(host);
            }
            if self.hosts[host].calls_apps(self.now) {
                if self.hosts[host].sends_first {
                    self.transmit(host);
                }
                self.poll_apps(host);
            }
            self.transmit(host);
            self.drain_core(host);
            if self.rearm(host) {
                break;
            }
        }
        if self.setup.check {
            self.verify(host);
        }
    }

    /// Checks the invariants after a host was served.
    #[inline(never)]
    fn verify(&mut self, host: usize) {
        if self.onlookers.violation.is_none() {
            let violation = self.hosts[host].endpoint.violation();
            let violation = violation.map(|what| format!("{:?}: {what}", self.now));
            self.onlookers.violation = violation.or_else(|| self.acknowledged_early(host / 2));
            self.ending |= self.onlookers.violation.is_some();
        }
    }

    /// Checks that DATA_ACK is never ahead of delivery: acknowledged data must have arrived in
    /// order at the other end.
    fn acknowledged_early(&self, pair: usize) -> Option<String> {
        let (client, server) = (&self.hosts[2 * pair], &self.hosts[2 * pair + 1]);
        for (index, (near, far)) in client.slots.iter().zip(&server.slots).enumerate() {
            let (Some(near), Some(far)) = (near.conn, far.conn) else { continue };
            if !self.is_current(2 * pair + 1, index, far) {
                continue;
            }
            let ends = client.endpoint.progress(near).zip(server.endpoint.progress(far));
            let Some((near, far)) = ends else { continue };
            if near.is_ahead_of(&far) || far.is_ahead_of(&near) {
                return Some(format!(
                    "{:?}: DATA_ACK ahead of delivery: client {near:?}, server {far:?}",
                    self.now
                ));
            }
        }
        None
    }

    /// Sets the host's wake-up, unless an app has work now; returns false then. An earlier wake-up remains
    /// set and finds nothing to do, which costs less than updating the queue for every timer.
    #[inline(always)]
    pub(super) fn rearm(&mut self, host: usize) -> bool {
        let World { hosts, network, queue, now, .. } = self;
        let this = &hosts[host];
        if this.apps_wake() <= *now {
            return false;
        }
        let (source, next) = (network.sources() + host, this.next_wake());
        if next < queue.at(source) {
            let order = queue.order();
            // A host that is busy with a segment handles its timers afterwards.
            let at = next.max(*now).max(this.busy_until());
            queue.set(source, Stamp { at, order });
        }
        true
    }

    #[inline(always)]
    fn transmit(&mut self, host: usize) {
        let World { hosts, network, queue, digest, onlookers, ending, setup, now, .. } = self;
        let (now, pair, this) = (*now, host / 2, &mut hosts[host]);
        let direction = if is_client(host) { Direction::Up } else { Direction::Down };
        let works = setup.send_cost != Span::ZERO;
        if works && !this.may_send(now) {
            return;
        }
        while this.endpoint.may_transmit()
            && let Some(transmit) = this.endpoint.poll_transmit(now)
        {
            let (path, segment) = (transmit.path, transmit.segment);
            let report = transmit.report.map(|report| (report, segment.payload.len()));
            digest.push(now, false, path, direction, &segment);
            *ending |= !onlookers.on_segment(|| {
                let (hop, segment) = (Hop::Sent, &*segment);
                SegmentEvent { now, hop, pair, path, way: direction, segment }
            });
            let dropped = network.send(queue, now, pair, path, direction, segment);
            if let Some((report, payload)) = report {
                let departs = network.left_host(pair, path, direction);
                this.endpoint.on_departure(now, report, payload, departs);
            }
            if let Some((segment, cause)) = dropped {
                *ending |= !onlookers.on_segment(|| {
                    let (hop, segment) = (Hop::Dropped(cause), &*segment);
                    SegmentEvent { now, hop, pair, path, way: direction, segment }
                });
                this.endpoint.recycle(segment);
            }
            if works {
                this.works_until(now + setup.send_cost);
                break;
            }
        }
    }
}
