//! The default scheduler of the upstream Linux kernel: bursts for the subflow that drains first.

use crate::ahead;
use crate::arrival::{self, Arrival, BACK};
use crate::exact::{self, MILLION};
use crate::rules;
use crate::state;
use crate::{
    About, Decision, Entry, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View,
};
use alloc::boxed::Box;
use plait_base::{DataRange, SubflowId, SubflowSet};

const BURST: Param = Param {
    name: "burst",
    kind: ParamKind::Whole { min: 1_000, max: 1 << 24, default: 65_428 },
    unit: "bytes",
    help: "maximum data that is assigned to a subflow before the next choice",
    clause: "Linux, net/mptcp/protocol.c: 64 KiB less the headers",
};
const SNDBUF: Param = Param {
    name: "sndbuf",
    kind: ParamKind::Auto { min: 1, max: 1 << 40 },
    unit: "bytes",
    help: "send buffer of a subflow; auto: 2 cwnd, at least 64 KiB, at most that of the connection",
    clause: "Linux, sk_stream_memory_free; only --kernel 6.18 models its autotuning",
};
const TRUESIZE: Param = Param {
    name: "truesize",
    kind: ParamKind::Real { min: 1.0, max: 10.0, default: 1.0 },
    unit: "",
    help: "memory in the send buffer per byte of payload; Linux counts about 1.6",
    clause: "Linux, skb truesize",
};
const STALE: Param = Param {
    name: "stale",
    kind: ParamKind::Whole { min: 1, max: 100, default: 1 },
    unit: "timeouts",
    help: "consecutive timeouts after which a subflow is not used until a segment arrives on it; a stock kernel has 4",
    clause: "ours; Linux, net.mptcp.stale_loss_cnt, has 4",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "linux",
    aliases: &["upstream"],
    idea: "give bursts of 64 KB to the subflow whose send buffer drains first",
    page: "\
This is the scheduler of the upstream Linux kernel (net/mptcp/protocol.c, 6.6 to 6.10). It chooses a
subflow once per burst, not once per segment. For each subflow that is open, joined and not stale, it
estimates how long the data that the subflow holds takes to leave:

    linger   wmem / avg,  wmem = bytes queued, or sent and not acknowledged;  avg = average pace
    choose   least linger among the regular subflows; among the backups if there is no regular one
    wait     if the chosen one holds sndbuf bytes or more (the second best is not tried)
    burst    min(65428, the free send window)
    avg      (avg * wmem + pacing rate * burst) / (wmem + burst), of the chosen one

The congestion window is not tested. The burst waits in the subflow's own queue until the window
opens, so this rule assigns segments and does not send them. A burst ends when it is used up, when
sndbuf is full, and with the last written byte. Data written later begins another burst, so a message
goes to an idle subflow as a whole. (Until 6.5, the subflow kept the rest of a burst.) A subflow is
stale after `stale` consecutive timeouts without any received segment. With fewer timeouts it may get
bursts as before.

Retransmissions go, a burst at a time, to a regular subflow that holds no data. If there is none, and
every other subflow with data has had more than one timeout, a backup that holds no data sends them.
Otherwise they wait, while new data is sent. If only stale or closed subflows have carried the data,
it goes before new data, to the live subflow with the least linger. (The kernel then resends all
unacknowledged data.)

Two rules differ from a stock kernel. First, a subflow is stale after one timeout, as for every other
scheduler. `linux:stale=4` is the rule of a stock kernel (net.mptcp.stale_loss_cnt), in which a
silent path delays the reader by the sum of four timeouts, each twice the last. Second, `back` moves
data from a full window to a subflow with room if it arrives sooner there, in order. It does so if
the full window is four segments or less, or if its queue is overdue. An overdue queue takes more
than twice the sum of the longest other drain time and the highest RTT. The kernel leaves the data
there (`back=off`): up to 64 KiB for a window of one segment.

The first value of avg is the pacing rate at the first decision, as in the kernel.

With `--kernel 6.18` the connection sizes its send buffers as Linux does. `sndbuf`, `truesize` and
`back` then have no effect, and `stale` is at least 4. Memory includes the descriptors of the buffers,
and data is assigned in pieces of 32 KiB. A buffer that has grown with its window still holds up to
4 MiB when the window has shrunk to one segment. With a coupled controller (`olia`, `lia`) the window
can stay there: 430 kB once waited more than three minutes. No stock kernel has such a controller.

Numbers  linger_us.ID, wmem_bytes.ID; burst_bytes.ID and avg_pace.ID (bytes
         per second) of the chosen one.
Paper    none; the source says that it follows BLEST, which is only loosely true.
Good at  bulk transfers over similar paths, at little cost.
Bad at   short transfers and messages over heterogeneous paths: a burst on the slow path delays all
         data that follows it on the fast one.
",
    params: &[BURST, SNDBUF, TRUESIZE, STALE, BACK],
    state: &[
        ("again", "the subflow of the last retransmission"),
        ("again_left_bytes", "bytes left of the current burst of retransmissions"),
        ("avg_pace.ID", "average pace of the subflow, in bytes per second"),
    ],
    },
    queues_ahead: true,
    spreads_bursts: false,
    build: |params| Box::new(Linux::new(params)),
};

/// Smallest default send buffer of a subflow, in bytes.
const LEAST_SNDBUF: u64 = 64 << 10;

/// Largest piece, in bytes, when the send buffer counts memory: a page fragment of 32 KiB less a
/// header.
const PIECE_BYTES: u64 = 32_768 - 48;
/// Memory of a buffer beside its payload, in bytes: headers and descriptors.
const DESCRIPTOR_BYTES: u64 = 832;
/// Timeouts after which a stock kernel skips a subflow (`net.mptcp.stale_loss_cnt`).
const STOCK_STALE: u32 = 4;
/// Fewest segments in a buffer that was sent (`net.ipv4.tcp_min_tso_segs`).
const LEAST_SEGMENTS: u64 = 2;

/// The subflow of the current burst of retransmissions, and the bytes left of the burst.
#[derive(Clone, Copy, Default, Debug)]
struct Burst {
    on: SubflowId,
    left: u64,
}

/// The scheduler.
#[derive(Debug)]
struct Linux {
    burst: u64,
    sndbuf: Option<u64>,
    /// In millionths.
    truesize: u64,
    stale: u32,
    takes_back: bool,
    again: Burst,
    /// Average pace of each subflow in bytes per second, by id; zero before the first decision.
    avg: [u64; SubflowId::MAX],
}

impl Linux {
    fn new(params: &Params) -> Linux {
        Linux {
            burst: params.whole(&BURST),
            sndbuf: params.whole_or_auto(&SNDBUF),
            truesize: params.millionths(&TRUESIZE),
            stale: params.whole(&STALE) as u32,
            takes_back: params.switch(&BACK),
            again: Burst::default(),
            avg: [0; SubflowId::MAX],
        }
    }

    /// Applies the kernel's own test, which ignores the window and the state of loss recovery.
    fn is_active(&self, view: &View<'_>, subflow: &SubflowView) -> bool {
        let stale = if counts_memory(view) { self.stale.max(STOCK_STALE) } else { self.stale };
        subflow.open && subflow.joined && subflow.timeouts < stale
    }

    /// Returns the memory of the subflow's data in its send buffer, in bytes.
    fn wmem(&self, view: &View<'_>, subflow: &SubflowView) -> u64 {
        if view.queue.send_memory(subflow.id).is_some() {
            return holds(subflow) + descriptors(subflow);
        }
        let memory = exact::bytes(holds(subflow)) * u128::from(self.truesize);
        match u64::try_from(memory) {
            // The compiler turns this division by a constant into a multiplication.
            Ok(memory) => memory / MILLION,
            Err(_) => u64::try_from(memory / u128::from(MILLION)).unwrap_or(u64::MAX),
        }
    }

    /// Returns the free bytes of memory in the subflow's send buffer.
    fn memory(&self, view: &View<'_>, subflow: &SubflowView) -> u64 {
        let own = || {
            let own = subflow.cwnd.saturating_mul(2).max(LEAST_SNDBUF);
            own.min(view.connection.sndbuf)
        };
        let tuned = || view.queue.send_memory(subflow.id).unwrap_or_else(own);
        self.sndbuf.unwrap_or_else(tuned).saturating_sub(self.wmem(view, subflow))
    }

    /// Returns the average pace. The first call sets it to the pacing rate.
    fn avg(&mut self, subflow: &SubflowView) -> u64 {
        let Some(avg) = self.avg.get_mut(subflow.id.index()) else { return 0 };
        if *avg == 0 {
            *avg = subflow.pacing_rate;
        }
        *avg
    }

    /// Returns the subflow whose data drains first, among the ones that `takes` allows.
    fn least_linger<'a>(
        &mut self,
        view: &View<'a>,
        takes: impl Fn(&SubflowView) -> bool,
        out: &mut Outcome,
    ) -> Option<&'a SubflowView> {
        let mut best: [Option<(&SubflowView, u64, u64)>; 2] = [None; 2];
        let mut regular = false;
        for subflow in view.subflows {
            if !self.is_active(view, subflow) || !takes(subflow) {
                continue;
            }
            regular |= !subflow.backup;
            let (wmem, avg) = (self.wmem(view, subflow), self.avg(subflow));
            if avg == 0 {
                continue;
            }
            out.note("wmem_bytes", Some(subflow.id), wmem as f64);
            out.note("linger_us", Some(subflow.id), wmem as f64 * 1e6 / avg as f64);
            let least = &mut best[usize::from(subflow.backup)];
            // Ids ascend, so the first of equal subflows stays.
            let shorter = least.is_none_or(|(_, held, pace)| {
                u128::from(wmem) * u128::from(pace) < u128::from(held) * u128::from(avg)
            });
            if shorter {
                *least = Some((subflow, wmem, avg));
            }
        }
        best[usize::from(!regular)].map(|(subflow, ..)| subflow)
    }

    /// Assigns a burst to the subflow whose data drains first, or waits.
    fn begin(&mut self, view: &View<'_>, segment: DataRange, out: &mut Outcome) -> Decision {
        let Some(chosen) = self.least_linger(view, |_| true, out) else {
            return rules::none_usable(view);
        };
        let on = Some(chosen.id).filter(|_| chosen.alive());
        if self.memory(view, chosen) == 0 {
            return Decision::Wait { on, reason: Reason::SendMemory };
        }
        let burst = self.burst.min(view.connection.wnd_end.saturating_sub(segment.start));
        if burst == 0 {
            return Decision::Wait { on, reason: Reason::SendWindow };
        }
        let (avg, wmem) = (u128::from(self.avg(chosen)), u128::from(self.wmem(view, chosen)));
        let (pace, weight) = (u128::from(chosen.pacing_rate), u128::from(burst));
        let sum = (avg * wmem).saturating_add(pace * weight);
        let mean = u64::try_from(exact::quotient(sum, wmem + weight)).unwrap_or(u64::MAX);
        if let Some(avg) = self.avg.get_mut(chosen.id.index()) {
            *avg = mean;
        }
        out.note("burst_bytes", Some(chosen.id), burst as f64);
        out.note("avg_pace", Some(chosen.id), mean as f64);
        self.assign(view, chosen, burst, out)
    }

    /// Assigns a burst of unsent data to the subflow, as far as its send buffer has memory.
    fn assign(
        &self,
        view: &View<'_>,
        subflow: &SubflowView,
        burst: u64,
        out: &mut Outcome,
    ) -> Decision {
        let memory = u128::from(self.memory(view, subflow)) * u128::from(MILLION);
        let payload = exact::quotient(memory, self.truesize.max(1).into());
        let payload = u64::try_from(payload).unwrap_or(u64::MAX);
        // A buffer is full when it holds its size, so the last segment or piece may exceed it.
        let tuned = view.queue.send_memory(subflow.id).is_some();
        let len = if tuned { PIECE_BYTES } else { rules::segment_len(view) };
        let whole = |bytes: u64| bytes.div_ceil(len).max(1).saturating_mul(len);
        let (burst, fits) =
            if tuned { (whole(burst), whole(payload)) } else { (burst, whole(payload)) };
        let most = burst.min(fits).min(view.connection.unsent);
        let range = view.queue.unsent_at(0, most).unwrap_or_default();
        let end = range.end.min(view.connection.wnd_end);
        if end <= range.start {
            let on = Some(subflow.id).filter(|_| subflow.alive());
            return Decision::Wait { on, reason: Reason::SendWindow };
        }
        out.plan.push((DataRange::new(range.start, end), subflow.id));
        Decision::Assign { reason: Reason::LeastLinger }
    }

    /// Sends retransmissions on a subflow with an empty send buffer, one burst at a time.
    fn resend(&mut self, view: &View<'_>, out: &mut Outcome) -> Option<Decision> {
        let waiting = view.connection.reinject?;
        let len = waiting.range.len().min(rules::segment_len(view));
        // Siblings of a failed subflow count as carriers of its data, although they have not
        // carried it.
        let start = waiting.range.start;
        let sent = view.queue.sent_from(start).filter(|it| it.range.start <= start);
        if self.is_given_up(view, sent.map_or(waiting.carried, |it| it.carried)) {
            let elsewhere = |it: &SubflowView| it.alive() && !waiting.carried.contains(it.id);
            let other = self.least_linger(view, elsewhere, out);
            let chosen = other.or_else(|| self.least_linger(view, SubflowView::alive, out))?;
            return Some(match chosen.usable(len, view.tsq) {
                true => rules::reinject_on(view, chosen.id, Reason::Reinjection),
                false => Decision::Wait { on: Some(chosen.id), reason: Reason::UntriedBusy },
            });
        }
        let takes = |it: &SubflowView| it.usable(len, view.tsq);
        let stays = |it: &SubflowView| !it.backup || self.backup_is_due(view, it);
        let last = view.subflow(self.again.on).filter(|_| self.again.left > 0);
        let going = last.filter(|it| takes(it) && stays(it));
        let chosen = going.or_else(|| self.idle(view).filter(|it| takes(it)))?;
        if going.is_none() {
            self.again = Burst { on: chosen.id, left: self.burst };
        }
        self.again.left = self.again.left.saturating_sub(len);
        let known = waiting.carried.contains(chosen.id);
        let reason = if known { Reason::ReinjectionAgain } else { Reason::Reinjection };
        Some(rules::reinject_on(view, chosen.id, reason))
    }

    /// Returns true if all subflows that `carried` the range are closed or stale. The kernel then
    /// makes it pending data again.
    fn is_given_up(&self, view: &View<'_>, carried: SubflowSet) -> bool {
        let mut carriers = view.subflows.iter().filter(|it| carried.contains(it.id));
        !carriers.any(|it| self.is_active(view, it))
    }

    /// Returns the first regular subflow that holds no data, or an empty backup subflow that may be
    /// used.
    fn idle<'a>(&self, view: &View<'a>) -> Option<&'a SubflowView> {
        let idle = || view.subflows.iter().filter(|it| self.is_active(view, it) && holds(it) == 0);
        let backup = || idle().find(|it| self.backup_is_due(view, it));
        idle().find(|it| !it.backup).or_else(backup)
    }

    /// Returns true if only the backup `own` can retransmit. No other regular subflow is empty, and
    /// every other subflow that holds data has had more than one timeout.
    fn backup_is_due(&self, view: &View<'_>, own: &SubflowView) -> bool {
        let others = view.subflows.iter().filter(|it| it.id != own.id && self.is_active(view, it));
        others.into_iter().all(|it| if holds(it) > 0 { it.timeouts > 1 } else { it.backup })
    }
}

/// Returns the payload bytes that the subflow holds: queued, or sent and not acknowledged.
fn holds(subflow: &SubflowView) -> u64 {
    subflow.outstanding.saturating_add(subflow.queued)
}

/// Returns true if the connection sizes its buffers as Linux does. The model is then a stock
/// kernel.
fn counts_memory(view: &View<'_>) -> bool {
    view.queue.send_memory(SubflowId(0)).is_some()
}

/// Returns the memory of the buffers beside their payload. Sent data lies in buffers of one
/// millisecond at the pacing rate, queued data in buffers of 64 KiB.
fn descriptors(subflow: &SubflowView) -> u64 {
    let mss = u64::from(subflow.mss).max(1);
    let sent = (subflow.pacing_rate / 1_024 / mss).max(LEAST_SEGMENTS) * mss;
    let buffers = subflow.outstanding.div_ceil(sent) + subflow.queued.div_ceil(64 << 10);
    buffers * DESCRIPTOR_BYTES
}

impl Scheduler for Linux {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        if let [_] = view.subflows
            && !counts_memory(view)
        {
            return match rules::task(view) {
                rules::Task::Settled(decision) => decision,
                rules::Task::Place(_) => rules::none_usable(view),
            };
        }
        let late =
            |owner: &SubflowView| arrival::is_small(owner) || arrival::is_overdue(view, owner);
        if self.takes_back
            && !counts_memory(view)
            && let Some(decision) = arrival::take_back(view, late, Arrival::next_on, out)
        {
            return decision;
        }
        let next = rules::next_segment(view);
        // Data that was assigned to a failed subflow is older than all data sent beyond it.
        if !next.is_some_and(|segment| rules::is_overtaken(view, segment))
            && let Some(decision) = self.resend(view, out)
        {
            return decision;
        }
        let Some(segment) = next else {
            return match view.connection.reinject {
                Some(_) => rules::none_usable(view),
                None if view.subflows.iter().any(|it| it.queued > 0) => ahead::waits(view),
                None => Decision::Idle,
            };
        };
        self.begin(view, segment, out)
    }

    fn on_notice(&mut self, _: &View<'_>, notice: Notice) {
        crate::state::forget(notice, &mut self.avg);
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        write("again", f64::from(self.again.on.0));
        write("again_left_bytes", self.again.left as f64);
        state::save_each("avg_pace.", "", &self.avg, write, |avg| {
            (*avg > 0).then_some(*avg as f64)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        match name {
            "again" => self.again.on = state::subflow(value).unwrap_or_default(),
            "again_left_bytes" => self.again.left = exact::nearest(value),
            _ => match state::slot("avg_pace.", "", name, &mut self.avg) {
                Some(avg) => *avg = exact::nearest(value),
                None => return false,
            },
        }
        true
    }
}
