//! Invariants that hold after every event (`--check`, and every test that drives a connection).

use crate::config::{Config, KernelBuffers};
use crate::conn::Connection;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use crate::timers::ConnectionTimers;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use plait_base::{Dsn, SubflowId, SubflowSet};
use plait_sched::QueueView;

/// The state that the invariants check.
struct Invariants<'a> {
    config: &'a Config,
    data: &'a DataLevel,
    paths: &'a Paths,
    timers: &'a ConnectionTimers,
}

impl Connection {
    fn invariants(&self) -> Invariants<'_> {
        let Connection { data, paths, timers, .. } = self;
        Invariants { config: &paths.spec.config, data, paths, timers }
    }

    /// Returns a description of the first invariant that does not hold.
    pub(crate) fn violation(&self) -> Option<String> {
        self.invariants().violation()
    }

    /// Returns a description of a wait without a timer ([`Invariants::stall`]).
    pub(crate) fn stall(&self) -> Option<String> {
        self.invariants().stall()
    }
}

impl Invariants<'_> {
    /// Returns a description of the first invariant that does not hold.
    fn violation(&self) -> Option<String> {
        self.unacknowledged_data_is_carried()
            .or_else(|| self.silent_data_is_queued())
            .or_else(|| self.what_waits_has_a_timer())
            .or_else(|| self.no_fin_before_the_end())
            .or_else(|| self.counts_agree())
            .or_else(|| self.windows_are_respected())
            .or_else(|| self.data.delivery_is_in_order())
    }

    /// Checks that every byte sent and not DATA_ACKed is on a subflow that is not closed, or is
    /// queued for reinjection.
    fn unacknowledged_data_is_carried(&self) -> Option<String> {
        let open: SubflowSet = self
            .paths
            .subflows()
            .iter()
            .filter(|s| s.state() != State::Closed)
            .map(|s| s.id())
            .collect();
        if self.data.closing().failed() || open.is_empty() {
            return None;
        }
        for sent in self.data.queue().sent() {
            let carried = SubflowSet(sent.carried.0 & open.0);
            if carried.is_empty() && !self.data.queue().reinjects(sent.range) {
                return Some(format!("data {:?} is with no subflow and not queued", sent.range));
            }
        }
        None
    }

    /// Checks that data in flight on silent subflows was sent on a live subflow, or is queued, if
    /// there is a live one (RFC 8684 section 3.3.6).
    fn silent_data_is_queued(&self) -> Option<String> {
        let live = self.paths.subflows().live();
        // By the kernel's rule, it stays until the timer of the data level expires.
        let stays = self.config.kernel_rules.keep_data;
        if self.data.plain() || live.is_empty() || stays {
            return None;
        }
        let silent =
            self.paths.subflows().iter().filter(|s| s.status().pf() && s.status().joined());
        for out in silent.flat_map(|s| s.sender().tx.iter()) {
            let data = out.data();
            let mut at = data.start.max(self.data.queue().una());
            while at < data.end {
                let Some(sent) =
                    self.data.queue().sent_from(at).filter(|s| s.range.start < data.end)
                else {
                    break;
                };
                let part = sent.range.intersect(data);
                // If it was acknowledged, the peer has it, and only the DATA_ACK is missing.
                let elsewhere = self.paths.subflows().iter().any(|s| {
                    let acked =
                        || !s.sender().tx.iter().any(|out| !out.data().intersect(part).is_empty());
                    sent.carried.contains(s.id()) && (live.contains(s.id()) || acked())
                });
                if !elsewhere && !part.is_empty() && !self.data.queue().reinjects(part) {
                    return Some(format!("data {part:?} is under way on silent subflows alone"));
                }
                at = sent.range.end;
            }
        }
        None
    }

    /// Checks that a subflow that waits for its peer has the timer that ends this wait. Otherwise
    /// it must have yet to send the segment that starts the timer.
    fn what_waits_has_a_timer(&self) -> Option<String> {
        let forgotten = |s: &&Subflow| {
            let timer = match s.state() {
                State::Closed => return false,
                State::SynSent | State::SynReceived => Timer::Rto,
                State::TimeWait => Timer::TimeWait,
                // Until both directions have ended the application may still read.
                State::FinWait2 if self.data.closing().done() => Timer::TimeWait,
                _ if !s.sender().tx.is_empty() || s.awaits_fourth_ack() => Timer::Rto,
                _ => return false,
            };
            let pending = s.pending().has(ControlSegment::Syn)
                || s.pending().has(ControlSegment::HandshakeAck)
                || s.pending().ack();
            (timer != Timer::Rto || !pending) && !s.timers().is_set(timer)
        };
        let subflow = self.paths.subflows().iter().find(forgotten)?;
        let (id, state) = (subflow.id(), subflow.state());
        Some(format!("subflow {id} waits in {state:?} for its peer without a timer"))
    }

    /// Returns the violation of a connection that has nothing to send now: if its progress depends on
    /// the peer, at least one timer is set, of the connection or of a subflow.
    ///
    /// Data, the end of the data, a subflow that has to close and a released connection depend on the
    /// peer. An open connection without data and one whose application still reads do not.
    fn stall(&self) -> Option<String> {
        let is_closing = |s: &Subflow| match s.state() {
            State::Closed => false,
            State::Established | State::CloseWait => self.data.closing().done(),
            State::FinWait2 => self.data.closing().done() || self.data.is_released(),
            _ => true,
        };
        let sends = !self.data.queue().is_drained()
            || self.data.closing().asked() && !self.data.closing().fin_acked();
        let depends = self.paths.subflows().iter().any(is_closing)
            || !self.data.closing().failed()
                && (sends || self.data.is_released() && !self.data.closing().done());
        let holds = |s: &Subflow, it: &Timer| it.holds_progress() && s.timers().is_set(*it);
        let timed = |s: &Subflow| Timer::ALL.iter().any(|timer| holds(s, timer));
        let stalled = depends && !self.timers.any_set() && !self.paths.subflows().iter().any(timed);
        stalled.then(|| {
            let states: Vec<State> = self.paths.subflows().iter().map(|s| s.state()).collect();
            format!("the connection waits for its peer without a timer: {states:?}")
        })
    }

    /// Checks that no subflow ends before the data does (RFC 8684 section 3.3.3).
    fn no_fin_before_the_end(&self) -> Option<String> {
        if self.data.sends_plain() || self.data.closing().done() {
            return None;
        }
        let ended = |s: &&Subflow| {
            let left = matches!(s.state(), State::FinWait1 | State::FinWait2 | State::LastAck);
            left || s.state() == State::Closing
        };
        let subflow = self.paths.subflows().iter().find(ended)?;
        Some(format!("subflow {} has sent its FIN before the end of the data", subflow.id()))
    }

    fn counts_agree(&self) -> Option<String> {
        for subflow in self.paths.subflows().iter() {
            let inflight: u64 = subflow
                .sender()
                .tx
                .iter()
                .filter(|sent| sent.state == crate::tcp::send::SentState::InFlight)
                .map(|sent| u64::from(sent.len))
                .sum();
            if inflight != subflow.sender().tx.inflight() {
                let told = subflow.sender().tx.inflight();
                return Some(format!(
                    "subflow {}: {inflight} in flight, {told} told",
                    subflow.id()
                ));
            }
        }
        // A subflow with an expired timeout may have some. The kernel's scheduler assigns more to
        // it until several timeouts have passed.
        let waits = |s: &&Subflow| self.data.queue().assigned(s.id()) > 0;
        let open = |s: &&Subflow| s.status().joined() && s.state().sends_data();
        if let Some(dead) = self.paths.subflows().iter().filter(waits).find(|s| !open(s)) {
            return Some(format!("data is assigned to subflow {}, which cannot send", dead.id()));
        }
        let sent: u64 = self.data.queue().sent().map(|sent| sent.range.len()).sum();
        let assigned: u64 =
            self.paths.subflows().iter().map(|s| self.data.queue().assigned(s.id())).sum();
        let all = sent + self.data.queue().unsent() + assigned;
        (all != self.data.queue().occupied()).then(|| {
            format!(
                "{all} bytes sent, unsent or assigned, {} in the buffer",
                self.data.queue().occupied()
            )
        })
    }

    fn windows_are_respected(&self) -> Option<String> {
        if self.data.queue().nxt() > self.data.window().end() && self.data.queue().nxt() > Dsn::ZERO
        {
            let (nxt, end) = (self.data.queue().nxt(), self.data.window().end());
            return Some(format!("data sent up to {nxt}, the window ends at {end}"));
        }
        let config = self.config;
        // Linux sizes a buffer for each subflow, in bytes of memory.
        let kernels = |it: KernelBuffers| it.most_sndbuf.saturating_mul(SubflowId::MAX as u64);
        if self.data.queue().occupied()
            > config.buffers.kernel.map_or(self.data.queue().size(), kernels)
        {
            return Some(format!("{} bytes in the send buffer", self.data.queue().occupied()));
        }
        if let Some(problem) = self.data.exceeds(&config.buffers) {
            return Some(problem);
        }
        let held = self.data.reassembly().readable() + self.data.reassembly().out_of_order();
        // Linux accepts a segment while the buffer is not full, so the last one may exceed it
        // (`tcp_try_rmem_schedule`, net/ipv4/tcp_input.c).
        let kernels = |it: KernelBuffers| it.most_rcvbuf + u64::from(config.packets.mtu);
        let most = config.buffers.kernel.map_or(self.data.reassembly().size(), kernels);
        (held > most).then(|| format!("{held} bytes in the receive buffer"))
    }
}
