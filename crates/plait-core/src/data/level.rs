//! The data level of a connection: the agreement of both ends, the data in either direction, and
//! its end. It is independent of subflows.

use crate::config::MemoryLimit;
use crate::config::{BufferSizes, Config};
use crate::data::agreement::{Agreement, Mode, ModeStep};
use crate::data::closing::Closing;
use crate::data::keys::Keys;
use crate::data::reassembly::Reassembly;
use crate::data::send_queue::SendQueue;
use crate::data::window::SendWindow;
use crate::error::Error;
use crate::spec::ConnectionState;
use alloc::format;
use alloc::string::String;
use plait_base::{DataRange, Dsn, Span, Time};
use plait_sched::CaState;
use plait_wire::{Key, Segment};

/// Data that the peer has acknowledged, and the window that it has opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PeerProgress {
    /// When the progress was first found.
    pub(crate) since: Time,
    /// Acknowledged data, and the right edge of the window.
    pub(crate) una: Dsn,
    pub(crate) edge: Dsn,
}

/// The data level of a connection.
pub(crate) struct DataLevel {
    pub(super) agreed: Agreement,
    pub(super) keys: Keys,
    pub(super) queue: SendQueue,
    pub(super) window: SendWindow,
    pub(super) recv: Reassembly,
    pub(super) closing: Closing,
}

impl DataLevel {
    pub(crate) fn new(config: &Config, key: Key) -> DataLevel {
        DataLevel {
            agreed: Agreement::new(config),
            keys: Keys::new(key, config.start_offsets().idsn),
            queue: SendQueue::new(&config.buffers),
            window: SendWindow::new(),
            recv: Reassembly::new(config.buffers.rcvbuf, config.most_held())
                .tune(config.buffers.rcvbuf_first, config.segment_payload())
                .count_memory(config.buffers.kernel, config.segment_payload()),
            closing: Closing::default(),
        }
    }

    /// Returns the keys of both ends.
    #[inline(always)]
    pub(crate) const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the window of the peer.
    #[inline(always)]
    pub(crate) const fn window(&self) -> &SendWindow {
        &self.window
    }

    /// Notes the peer's key in its answer to MP_CAPABLE: both ends have both keys.
    pub(crate) fn on_peer_key(&mut self, config: &Config, key: Key) {
        self.keys.set_peer(key, config.start_offsets().idsn);
        self.agreed.step(ModeStep::KeysExchanged);
    }

    /// Notes the window of the peer's `syn`.
    pub(crate) fn on_syn_window(&mut self, syn: &Segment) {
        self.window.update(Dsn::ZERO, u64::from(syn.window));
    }

    /// Notes that the handshake of a subflow is over.
    pub(crate) fn on_handshake(&mut self, now: Time) {
        if self.plain()
            && let Some(memory) = self.recv.memory()
        {
            memory.begin_plain(now);
        }
    }

    /// Returns true if the connection is plain TCP.
    pub(crate) fn plain(&self) -> bool {
        self.agreed.mode() == Mode::Plain
    }

    /// Returns true if the connection is Multipath TCP.
    pub(crate) fn speaks_multipath(&self) -> bool {
        self.agreed.mode() == Mode::Multipath
    }

    /// Returns true if further subflows may be accepted (RFC 8684 section 3.2). After the end of
    /// the data they may, while the DATA_FIN may have to be repeated (section 3.3.3).
    pub(crate) fn accepts_joins(&self) -> bool {
        let agreed = self.agreed.mode() == Mode::Multipath && !self.falls_back();
        agreed && self.keys.peer.is_some() && !self.closing.failed() && !self.closing.settled()
    }

    /// Refuses a connection that has failed, or that is plain TCP or about to be.
    pub(crate) fn uses_multipath(&self) -> Result<(), Error> {
        match self.closing.failed() {
            true => Err(Error::Failed),
            false if self.falls_back() => Err(Error::PlainTcp),
            false => Ok(()),
        }
    }

    /// Returns true if the next new segment is the first one of a client whose peer may not have
    /// the keys.
    pub(crate) fn keys_ride_along(&self, client: bool) -> bool {
        let told = self.agreed.peer_dss_seen() || self.queue.nxt() > Dsn::ZERO;
        client && self.agreed.mode() == Mode::Multipath && !told
    }

    /// Returns the part of `range` that is sent and not DATA_ACKed, at most one segment.
    pub(crate) fn still_needed(&self, range: DataRange, mss: u64) -> Option<DataRange> {
        let range = range.intersect(DataRange::new(self.queue.una(), self.queue.nxt()));
        let range = range.intersect(DataRange::with_len(range.start, mss));
        (!range.is_empty()).then_some(range)
    }

    /// Checks that every byte is delivered at its place. Delivery only advances, so each byte is
    /// delivered once.
    pub(crate) fn delivery_is_in_order(&self) -> Option<String> {
        self.recv.misplaced().map(|run| format!("wrong bytes delivered at {run:?}"))
    }

    /// Checks that no buffer has grown beyond its largest size.
    pub(crate) fn exceeds(&self, largest: &BufferSizes) -> Option<String> {
        let (send, receive) = (self.queue.size(), self.recv.size());
        (send > largest.sndbuf || receive > largest.rcvbuf)
            .then(|| format!("buffers of {send} and {receive} bytes"))
    }

    /// Returns how far a peer's sequence numbers may be behind the expected one, or on a subflow of
    /// Multipath TCP ahead of it. There the shared window bounds the data, and numbers exceed it
    /// only by data that is sent more than once.
    pub(crate) fn reach(&self, config: &Config) -> u64 {
        2 * config.buffers.rcvbuf.max(0xffff)
    }

    /// Returns the bytes of options on a data segment in steady state.
    pub(crate) fn data_options(&self, config: &Config) -> u64 {
        if self.plain() { Config::PLAIN_OPTIONS } else { config.option_bytes() }
    }

    /// Returns the payload of a segment in an IP packet of `bytes`.
    pub(crate) fn payload_within(&self, config: &Config, bytes: u32) -> u64 {
        u64::from(bytes).saturating_sub(40 + self.data_options(config)).max(1)
    }

    /// Returns the interval of probes, if this connection sends any. Plain TCP sends none, because
    /// it has no other path.
    pub(crate) fn probe_interval(&self, config: &Config) -> Option<Span> {
        config.joins.probe.filter(|_| !self.falls_back())
    }

    /// Returns the peer's progress so far.
    pub(crate) fn taken(&self, since: Time) -> PeerProgress {
        PeerProgress { since, una: self.queue.una(), edge: self.window.end() }
    }

    /// Returns the state of a subflow's loss recovery for the scheduler. `own` is its state by itself.
    pub(crate) fn ca(&self, own: CaState) -> CaState {
        match own {
            // Plain TCP has no other subflow for the rest: after a timeout it continues as its
            // window allows (RFC 5681 section 3.1).
            CaState::Loss if self.sends_plain() => CaState::Recovery,
            ca => ca,
        }
    }

    /// Returns true if Multipath TCP is confirmed by both ends, without checksums, without subflow
    /// windows and without buffers that are counted in memory.
    #[inline(always)]
    pub(crate) fn is_settled(&self, config: &Config) -> bool {
        let beside = config.buffers.kernel.is_some() | config.buffers.subflow_windows;
        let unsettled = self.agreed.checksums() | self.falls_back() | beside;
        let agreed = self.agreed.mode() == Mode::Multipath && self.agreed.peer_dss_seen();
        let settled = agreed && !unsettled && !self.closing.failed();
        debug_assert!(!settled || !self.sends_plain() && !self.receives_plain());
        settled
    }

    /// Returns true if the connection is plain TCP, without checksums and without buffers that are
    /// counted in memory.
    #[inline(always)]
    pub(crate) fn is_settled_plain(&self, config: &Config) -> bool {
        let unsettled = self.agreed.checksums()
            || config.buffers.kernel.is_some()
            || config.buffers.subflow_windows;
        self.plain() && !unsettled && !self.closing.failed()
    }

    /// Restarts the connection with a new key: all written data is sent again.
    pub(crate) fn restart(&mut self, config: &Config, key: Key) {
        // The peer has sent no data, so the receiving half is new already.
        let DataLevel { agreed, keys, queue, window, recv: _, closing } = self;
        *agreed = agreed.for_new_attempt(config);
        *keys = Keys::new(key, config.start_offsets().idsn);
        queue.restart();
        *window = SendWindow::new();
        closing.restart();
    }

    /// Frees the memory of empty buffers.
    pub(crate) fn give_back(&mut self) {
        self.queue.give_back();
        self.recv.give_back();
    }

    /// Returns the state as the user sees it; `is_up` returns whether the first subflow is
    /// established.
    pub(crate) fn state(&self, is_up: impl FnOnce() -> bool) -> ConnectionState {
        if self.closing.failed() {
            ConnectionState::Failed
        } else if self.closing.done() {
            ConnectionState::Closed
        } else if self.recv.finished() && self.recv.readable() == 0 {
            ConnectionState::PeerDone
        } else if self.agreed.mode() == Mode::Multipath || is_up() {
            ConnectionState::Open
        } else {
            ConnectionState::Connecting
        }
    }

    /// Returns the receive window to advertise. It is limited to the share if memory is short.
    #[inline]
    pub(crate) fn window_to_tell(&self, limit: Option<MemoryLimit>) -> u64 {
        match limit {
            None => self.recv.window(),
            Some(limit) => self.recv.window_within(limit.unread),
        }
    }
}
