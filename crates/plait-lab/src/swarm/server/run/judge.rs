//! Invariants of a server, during the run and at its end.

use super::patience::TIME_AFTER_HEALING;
use super::{Event, RARE_SAMPLE, Run, SAMPLE};
use crate::swarm::run::Broken;
use crate::swarm::server::client::{Client, Outcome, Visited};
use crate::swarm::server::service::Pipe;
use plait_base::Span;
use plait_core::MemoryReport;

/// Longest time that a relay continues after its program has left. It ends when the program is
/// probed, and when its remaining data has been sent to a client that may not read.
const DESERTED: Span = Span::from_secs(60);
/// Memory limits of an idle endpoint, and of each subflow in TIME-WAIT.
const RESTING_BYTES: u64 = 64 << 10;
const TIME_WAIT_BYTES: u64 = 320;
/// Limits of inspected numbers per packet and per rest (`plait-engine/src/numbers.rs`).
const LOOKS_EACH: u64 = 4;
const LOOKS_RESTING: u64 = 64;

impl Run<'_> {
    /// Checks the server from outside.
    pub(super) fn sample(&mut self) {
        let soon = self.heals + TIME_AFTER_HEALING;
        let after = if self.now < soon { SAMPLE } else { RARE_SAMPLE };
        self.at(self.now + after, Event::Sample);
        if let Some(wrong) = self.server.host.wrong.take() {
            return self.broke(Broken::Invariant, wrong);
        }
        // A live server has a turn at least once a minute; this one has a turn at each sample.
        self.serve_idle();
        let now = self.now;
        let deserted = |it: &Pipe| !it.dropped && now > it.ending.gone_at + DESERTED;
        let left = self.server.pipes.borrow().iter().find(|it| deserted(&it.borrow())).cloned();
        if let Some(it) = left {
            let what = format!("a program has ended, and its relay continues: {:?}", it.borrow());
            return self.broke(Broken::Lingering, what);
        }
        let Some(engine) = &self.server.engine else { return };
        if let Some(what) = engine.stack.endpoint.violation() {
            let what = what.to_owned();
            return self.broke(Broken::Invariant, what);
        }
        self.server.most_paths = self.server.most_paths.max(engine.paths() as u64);
        let (looks, packets) = (engine.looks(), engine.stack.counters().packets_in);
        let rests = self.now.as_nanos() / Span::from_secs(5).as_nanos() + 2;
        let most = LOOKS_EACH * packets + rests * (LOOKS_RESTING + self.server.most_paths);
        if looks > most {
            let what = format!("{looks} looks at numbers for {packets} packets; at most {most}");
            return self.broke(Broken::Invariant, what);
        }
        let report = engine.memory_report();
        let idle = engine.is_idle();
        let forgotten = engine.is_over() && engine.paths() == 0 && report.time_wait == 0;
        let told = engine.refused().values().sum::<u64>() == self.server.told_away;
        let gone = self.now > self.heals && self.guests.clients.iter().all(Client::is_done);
        self.settled = forgotten && told && gone;
        self.weigh(&report, idle);
    }

    fn serve_idle(&mut self) {
        if let Some(engine) = &mut self.server.engine
            && self.now >= self.patience
        {
            // The following turn handles everything that is ready.
            engine.stack.expire();
        }
    }

    /// Checks that memory is within its limit, and that ended connections take little.
    fn weigh(&mut self, report: &MemoryReport, idle: bool) {
        let MemoryReport { bytes, time_wait, closing, half_open, .. } = *report;
        if bytes > self.case.memory_bytes {
            let what = format!("connections hold {bytes} of {} bytes", self.case.memory_bytes);
            return self.broke(Broken::Invariant, what);
        }
        let most = RESTING_BYTES + TIME_WAIT_BYTES * time_wait as u64;
        if idle && closing == 0 && half_open == 0 && bytes > most {
            let what =
                format!("{time_wait} subflows in TIME-WAIT hold {bytes} bytes; at most {most}");
            self.broke(Broken::Invariant, what);
        }
    }

    /// Checks the end of the run.
    pub(super) fn judge(&mut self) {
        if self.violation.is_some() {
            return;
        }
        if let Some(client) = self.guests.clients.iter().find(|it| !it.is_done()) {
            let what = client.state();
            return self.broke(Broken::Stuck, what);
        }
        self.judge_clients();
        self.judge_rest();
    }

    /// Checks that clients were served, or have an excuse. Excuses are the behaviour of the
    /// service, a crash or the end of listening, the loss of an address, and a counted refusal.
    fn judge_clients(&mut self) {
        let mut spoilt = vec![0; self.guests.clients.len()];
        let mut served = vec![0; self.guests.clients.len()];
        let mut answered = vec![0; self.guests.clients.len()];
        for (place, (pipe, owner)) in
            self.server.pipes.borrow().iter().zip(&self.guests.owners).enumerate()
        {
            let Some(owner) = *owner else { continue };
            let pipe = pipe.borrow();
            let lives = place >= self.server.streams_before;
            spoilt[owner] += u64::from(pipe.is_spoilt());
            served[owner] += u64::from(lives && pipe.is_complete());
            answered[owner] += u64::from(lives && pipe.is_answered());
        }
        // Unserved connections that the server did not accept, and that neither the service nor a
        // blow explains.
        let mut turned_away = 0;
        let mut first = None;
        let mut broken = None;
        for (at, client) in self.guests.clients.iter().enumerate() {
            let (mut own, mut accepted) = (0, 0);
            let mut refused = None;
            for seen in client.unserved() {
                own += 1;
                let refusable = !seen.accepted && !seen.waits_established();
                accepted += u64::from(!refusable);
                let worse = !refusable && accepted > spoilt[at];
                if worse && broken.is_none() {
                    broken = Some((at, *seen));
                }
                if refusable {
                    refused = Some((at, *seen));
                }
            }
            let away = own - accepted.max(own.min(spoilt[at]));
            turned_away += away;
            first = first.or(refused.filter(|_| away > 0));
            // The service may not see the end of a connection if the FIN was lost with the client's
            // address.
            let complete = client.complete_since(self.server.since).count() as u64;
            let ended = |it: &&Visited| !it.end_lost;
            let whole = client.complete_since(self.server.since).filter(ended).count() as u64;
            for (count, known) in [(whole, served[at]), (complete, answered[at])] {
                let known = known + spoilt[at];
                if count > known {
                    let what = format!(
                        "client {at} was served {count} times, and {known} by the service's count"
                    );
                    return self.broke(Broken::Invariant, what);
                }
            }
        }
        let refused = self.server.refused();
        if turned_away > refused {
            broken = broken.or(first);
        }
        if let Some((at, seen)) = broken {
            let state = self.guests.clients[at].state();
            let what = format!(
                "no reason was counted for a connection: {refused} were refused, the service spoilt {} of \
                 the client's: {state}: {seen}",
                spoilt[at]
            );
            let waited = seen.outcome == Outcome::GaveUp;
            self.broke(if waited { Broken::Stuck } else { Broken::Failed }, what);
        }
    }

    /// Checks that nothing is left, and that the log has every refusal.
    fn judge_rest(&mut self) {
        let Some(engine) = &self.server.engine else { return };
        let refused: u64 = engine.refused().values().sum();
        let (report, paths) = (engine.memory_report(), engine.paths());
        let over = engine.is_over();
        if !over {
            return self.broke(
                Broken::Lingering,
                format!("the server is not over: {report:?}, {:?}", self.server.left()),
            );
        }
        let MemoryReport { bytes, above_threshold, half_open, closing, time_wait } = report;
        let left = above_threshold + half_open + closing + time_wait + paths;
        let unread = self.server.host.unread.get();
        if left > 0 || bytes > RESTING_BYTES || unread > 0 {
            let what = format!("{report:?}, {paths} numbers and {unread} unread bytes are left");
            return self.broke(Broken::Lingering, what);
        }
        if refused != self.server.told_away {
            let what = format!("{refused} were refused, and the log has {}", self.server.told_away);
            self.broke(Broken::Invariant, what);
        }
    }
}
