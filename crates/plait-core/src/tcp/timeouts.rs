//! Expired timers of a subflow that concern nothing else.

use crate::config::KernelRules;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::Time;

impl Subflow {
    /// Clears `timer` and returns true if it was due.
    pub(crate) fn take_due(&mut self, timer: Timer, now: Time) -> bool {
        self.timers.take_due(timer, now)
    }

    /// Sets the next check of its timers after all due ones were handled.
    pub(crate) fn on_timers_checked(&mut self) {
        self.timers.on_looked();
    }

    /// Counts an unanswered SYN or SYN/ACK, and doubles its timeout, except that of the first SYNs of a kernel.
    pub(crate) fn on_syn_timeout(&mut self, rules: KernelRules) {
        let linear = if self.origin().initiator { rules.linear_syn_timeouts } else { 0 };
        if self.handshake_retries() >= linear {
            self.sender.rtt.back_off();
        }
        self.count_handshake_retry();
    }

    /// Doubles the timeout of its first SYN.
    pub(crate) fn back_off_syn(&mut self) {
        self.sender.rtt.back_off();
    }

    /// Notes that its SYN or SYN/ACK is sent, and is repeated at `again`.
    pub(crate) fn on_syn_sent(&mut self, again: Time) {
        self.timers.set(Timer::Rto, again);
    }

    /// Handles the host queue timer. Returns true if more segments of `mss` bytes may be sent now.
    pub(crate) fn on_host_queue_timer(&mut self, now: Time, mss: u64) -> bool {
        self.sender.drain_host_queue(now);
        let until = self.sender.tsq_blocked_until(mss);
        if let Some(until) = until {
            self.timers.set(Timer::HostQueue, until);
        }
        until.is_none()
    }

    /// Notes that a segment of `len` payload bytes leaves the host at `departs`.
    pub(crate) fn on_departure(&mut self, now: Time, departs: Time, len: u32, mss: u64) {
        let next = self.sender.on_departure(now, departs, len);
        if self.sender.tsq_blocked(mss) {
            self.timers.set(Timer::HostQueue, next);
        }
    }

    /// Lets a paced subflow send its next segment.
    pub(crate) fn release(&mut self, now: Time) {
        self.sender.release(now);
    }

    /// Removes segments that have left the host from its queue there.
    pub(crate) fn drain_host_queue(&mut self, now: Time) {
        self.sender.drain_host_queue(now);
    }
}
