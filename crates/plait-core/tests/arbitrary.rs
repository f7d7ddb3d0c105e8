//! No input and no order of calls makes an endpoint panic, break an invariant or emit a segment
//! that cannot be encoded.
#![allow(clippy::unwrap_used, clippy::panic)]

use plait_base::{ConnId, PathId, RandomStream, ServerAddress, Span, Time};
use plait_core::{Config, ConnectionSpec, Detail, Endpoint, Entropy, Lent, PathConfig};
use plait_wire::{
    DataAck, Dss, Flags, JoinAck, JoinSyn, JoinSynAck, Key, Mapping, MpCapable, Mptcp, Options,
    Payload, ResetReason, Segment, Timestamps, WireDsn,
};
use proptest::prelude::*;
use std::sync::Arc;

const PORT: u16 = 80;
const PEER_PORT: u16 = 1_000;

struct Draws(RandomStream);

impl Entropy for Draws {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

/// A step of a test. Numbers are near those of the conversation, or arbitrary.
#[derive(Clone, Debug)]
enum Step {
    Segment(Box<Draft>),
    /// The peer answers the endpoint's last segment correctly.
    Answer(u8),
    Pass(u32),
    Write(u32),
    WriteBytes(u16),
    Read(u16),
    Skip(u32),
    Finish,
    Abort,
    Scheduler(bool),
    ResetWindows,
}

/// DATA_ACK, mapping and DATA_FIN. The flag beside a number requests all 64 bits.
type DssDraft = (Option<(u64, bool)>, Option<(u64, bool, u32, u16)>, bool);

/// Fields of a segment. Values drawn by `near32` are offsets from the correct number.
#[derive(Clone, Debug)]
struct Draft {
    path: u32,
    flags: u8,
    seq: u32,
    ack: u32,
    window: u16,
    len: u16,
    stamps: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    scale: Option<u8>,
    dss: Option<DssDraft>,
    mptcp: Option<Mptcp>,
}

/// Draws mostly small distances in both directions, and sometimes any number.
fn near32() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => Just(0u32),
        4 => 0u32..5_000,
        2 => (0u32..5_000).prop_map(|n| n.wrapping_neg()),
        1 => any::<u32>(),
    ]
}

fn near64() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..20_000,
        2 => (0u64..20_000).prop_map(|n| n.wrapping_neg()),
        1 => any::<u64>(),
    ]
}

fn mptcp() -> impl Strategy<Value = Mptcp> {
    let key = || prop::option::of(any::<u64>().prop_map(Key));
    let capable = (any::<[bool; 2]>(), key(), key(), prop::option::of(any::<u16>())).prop_map(
        |([checksum_required, joins_denied], sender_key, receiver_key, data_len)| {
            Mptcp::Capable(MpCapable {
                checksum_required,
                joins_denied,
                sender_key,
                receiver_key,
                data_len,
                checksum: data_len.filter(|len| len % 2 == 0),
            })
        },
    );
    let join = (any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>()).prop_map(
        |(backup, address_id, token, nonce)| {
            Mptcp::JoinSyn(JoinSyn { backup, address_id, token, nonce })
        },
    );
    let answer = (any::<bool>(), any::<u8>(), any::<u64>(), any::<u32>()).prop_map(
        |(backup, address_id, hmac, nonce)| {
            Mptcp::JoinSynAck(JoinSynAck { backup, address_id, hmac, nonce })
        },
    );
    prop_oneof![
        capable,
        join,
        answer,
        any::<[u8; 20]>().prop_map(|hmac| Mptcp::JoinAck(JoinAck { hmac })),
        any::<bool>().prop_map(|backup| Mptcp::Prio { backup }),
        any::<u64>().prop_map(|dsn| Mptcp::Fail(WireDsn(dsn))),
        any::<u64>().prop_map(|key| Mptcp::FastClose(Key(key))),
        prop::collection::vec(any::<u8>(), 1..9).prop_map(|ids| Mptcp::RemoveAddr(ids.into())),
        any::<bool>()
            .prop_map(|transient| Mptcp::Reset { reason: ResetReason::Resources, transient }),
    ]
}

fn draft() -> impl Strategy<Value = Draft> {
    let flags = prop_oneof![
        8 => Just(0x10u8),
        4 => Just(0x18u8),
        2 => Just(0x11u8),
        1 => Just(0x02u8),
        1 => Just(0x12u8),
        1 => Just(0x04u8),
        2 => any::<u8>(),
    ];
    let head =
        (0u32..3, flags, near32(), near32(), any::<u16>(), prop_oneof![0u16..3_000, Just(0)]);
    let dss = (
        prop::option::of((near64(), any::<bool>())),
        prop::option::of((near64(), any::<bool>(), near32(), any::<u16>())),
        prop::bool::weighted(0.1),
    );
    let rest = (
        prop::option::of(any::<(u32, u32)>()),
        prop::collection::vec((near32(), near32()), 0..5),
        prop::option::of(any::<u8>()),
        prop::option::weighted(0.8, dss),
        prop::option::weighted(0.15, mptcp()),
    );
    (head, rest).prop_map(
        |((path, flags, seq, ack, window, len), (stamps, sack, scale, dss, mptcp))| Draft {
            path,
            flags,
            seq,
            ack,
            window,
            len,
            stamps,
            sack,
            scale,
            dss,
            mptcp,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => draft().prop_map(|draft| Step::Segment(Box::new(draft))),
        6 => any::<u8>().prop_map(Step::Answer),
        4 => (0u32..3_000_000).prop_map(Step::Pass),
        3 => (0u32..100_000).prop_map(Step::Write),
        2 => (0u16..5_000).prop_map(Step::WriteBytes),
        2 => any::<u16>().prop_map(Step::Read),
        2 => (0u32..100_000).prop_map(Step::Skip),
        1 => Just(Step::Finish),
        1 => prop::bool::weighted(0.1).prop_map(|it| if it { Step::Abort } else { Step::Pass(1) }),
        1 => any::<bool>().prop_map(Step::Scheduler),
        1 => Just(Step::ResetWindows),
    ]
}

/// An endpoint and the state of its peer.
struct Bench {
    endpoint: Endpoint,
    now: Time,
    last: Vec<(PathId, Segment)>,
    /// The peer's key, and the endpoint's.
    keys: (Key, Key),
    mtu: u32,
}

impl Bench {
    fn new(client: bool, config: Config) -> Bench {
        let mtu = config.packets.mtu;
        let scheduler = plait_sched::Spec::parse("minrtt+rp").unwrap();
        let controller = plait_cc::Spec::parse("olia").unwrap();
        let spec = ConnectionSpec {
            config,
            paths: (0..3)
                .map(|id| PathConfig { backup: id == 2, ..PathConfig::new(PathId(id)) })
                .collect(),
            addresses: Vec::new(),
            scheduler: Arc::new(move || scheduler.build()),
            controller: Arc::new(move |_| controller.build()),
        };
        let mut endpoint = Endpoint::new(Box::new(Draws(RandomStream::new(7, &["arbitrary"]))));
        endpoint.check_invariants(true);
        endpoint.record_events(Detail::Everything);
        endpoint.listen(PORT, spec.clone());
        if client {
            endpoint.connect(Time::ZERO, PORT, spec).unwrap();
        }
        let keys = (Key(11), Key(0));
        Bench { endpoint, now: Time::ZERO, last: Vec::new(), keys, mtu }
    }

    fn take(&mut self, step: &Step) {
        let (now, id) = (self.now, ConnId(0));
        match step {
            Step::Segment(draft) => {
                let segment = self.segment(draft);
                self.endpoint.handle(now, PathId(draft.path), &segment);
            }
            Step::Answer(which) => self.answer(*which),
            Step::Pass(micros) => self.pass(Span::from_micros(u64::from(*micros))),
            Step::Write(len) => {
                self.endpoint.write(now, id, u64::from(*len)).ok();
            }
            Step::WriteBytes(len) => {
                self.endpoint.write_bytes(now, id, &vec![1; usize::from(*len)]).ok();
            }
            Step::Read(len) => {
                self.endpoint.read(now, id, &mut vec![0; usize::from(*len)]).ok();
            }
            Step::Skip(len) => {
                self.endpoint.skip(now, id, u64::from(*len)).ok();
            }
            Step::Finish => drop(self.endpoint.finish(now, id)),
            Step::Abort => drop(self.endpoint.abort(now, id)),
            Step::Scheduler(other) => {
                let other = other.then(|| plait_sched::Spec::parse("roundrobin").unwrap().build());
                self.endpoint.set_scheduler(now, id, other).ok();
            }
            Step::ResetWindows => {
                Lent::to(&mut self.endpoint, now, id, |lent| lent.reset_windows());
            }
        }
        self.drain();
    }

    fn pass(&mut self, span: Span) {
        let target = self.now + span;
        let mut steps = 0;
        while self.endpoint.poll_timeout() <= target {
            let due = self.endpoint.poll_timeout();
            steps = if due > self.now { 0 } else { steps + 1 };
            assert!(steps < 200, "a storm of timers at {due:?}");
            self.now = self.now.max(due);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        self.now = target;
    }

    fn drain(&mut self) {
        while self.endpoint.poll_news().is_some() {}
        while self.endpoint.poll_accept().is_some() {}
        let mut count = 0;
        while let Some(transmit) = self.endpoint.poll_transmit(self.now) {
            count += 1;
            assert!(count < 50_000, "segments without end");
            let segment = &transmit.segment;
            assert!(segment.options.fits() && segment.options.header_len() <= 40, "{segment:?}");
            assert!(segment.ip_len() <= self.mtu, "{} bytes: {segment:?}", segment.ip_len());
            if let Some(Mptcp::Capable(MpCapable { sender_key: Some(key), .. })) =
                segment.options.mptcp.as_deref()
            {
                self.keys.1 = *key;
            }
            self.last.retain(|(path, _)| *path != transmit.path);
            self.last.push((transmit.path, *transmit.segment));
        }
        self.endpoint.swap_events(&mut Vec::new());
        assert_eq!(self.endpoint.violation(), None);
        for id in 0..4 {
            let id = ConnId(id);
            let _ = (self.endpoint.stats(id), self.endpoint.state(id), self.endpoint.unacked(id));
            let _ = (self.endpoint.readable(id), self.endpoint.segment_payload(id));
        }
        let _ = (self.endpoint.is_over(), format!("{:?}", self.endpoint));
    }

    /// Sends a correct answer to the endpoint's last segment on one of the paths.
    fn answer(&mut self, which: u8) {
        let Some((path, heard)) = self.last.get(usize::from(which) % self.last.len().max(1)) else {
            return self.begin();
        };
        let (path, heard) = (*path, heard.clone());
        let syn = heard.flags.has(Flags::SYN);
        let mut answer = Segment {
            src_port: heard.dst_port,
            dst_port: heard.src_port,
            seq: heard.ack,
            ack: heard.seq.wrapping_add(heard.seq_len()),
            flags: if syn && !heard.flags.has(Flags::ACK) { Flags(0x12) } else { Flags(0x10) },
            window: 0xffff,
            ..Segment::default()
        };
        answer.options.timestamps = Some(Timestamps { value: 1, echo: 1 });
        let capable = |sender_key, receiver_key| {
            Some(Box::new(Mptcp::Capable(MpCapable {
                checksum_required: false,
                joins_denied: false,
                sender_key,
                receiver_key,
                data_len: None,
                checksum: None,
            })))
        };
        match heard.options.mptcp.as_deref() {
            Some(Mptcp::Capable(MpCapable { sender_key: None, .. })) => {
                answer.options.mptcp = capable(Some(self.keys.0), None);
            }
            Some(Mptcp::Capable(MpCapable { sender_key: Some(key), .. })) if syn => {
                answer.options.mptcp = capable(Some(self.keys.0), Some(*key));
            }
            Some(Mptcp::JoinSyn(join)) => {
                let hmac = plait_wire::join_hmac(self.keys.0, self.keys.1, 5, join.nonce).left64();
                let option = JoinSynAck { backup: false, address_id: 1, hmac, nonce: 5 };
                answer.options.mptcp = Some(Box::new(Mptcp::JoinSynAck(option)));
            }
            Some(Mptcp::JoinSynAck(join)) => {
                let hmac = plait_wire::join_hmac(self.keys.0, self.keys.1, 6, join.nonce).left160();
                answer.options.mptcp = Some(Box::new(Mptcp::JoinAck(JoinAck { hmac })));
            }
            _ => {
                let first = self.keys.1.idsn().0.wrapping_add(1);
                let map = heard.options.dss.and_then(|dss| dss.mapping);
                let value = map.map_or(first, |map| map.dsn.0 + u64::from(map.len));
                let data_ack = Some(DataAck { value: WireDsn(value), long: false });
                answer.options.dss = Some(Dss { data_ack, ..Dss::default() });
            }
        }
        self.endpoint.handle(self.now, path, &answer);
        if which & 1 == 1 && self.keys.1 != Key(0) {
            self.drain();
            let nonce = 6;
            let (token, backup) = (self.keys.1.token(), which & 2 == 2);
            let join = JoinSyn { backup, address_id: 1, token, nonce };
            self.syn(PathId(u32::from(which >> 2) % 3), Mptcp::JoinSyn(join));
        }
    }

    /// Sends the peer's first SYN.
    fn begin(&mut self) {
        self.syn(PathId(0), Mptcp::Capable(MpCapable::default()));
    }

    fn syn(&mut self, path: PathId, option: Mptcp) {
        let mut syn = Segment {
            src_port: PEER_PORT + path.0 as u16,
            dst_port: PORT,
            seq: 0xffff_ff00,
            flags: Flags::SYN,
            window: 0xffff,
            ..Segment::default()
        };
        syn.options.window_scale = Some(7);
        syn.options.mptcp = Some(Box::new(option));
        self.endpoint.handle(self.now, path, &syn);
    }

    fn segment(&self, draft: &Draft) -> Segment {
        let heard = self.last.iter().find(|(path, _)| path.0 == draft.path);
        let (src_port, dst_port, seq, ack) = heard.map_or((PEER_PORT, PORT, 0, 0), |(_, heard)| {
            let end = heard.seq.wrapping_add(heard.seq_len());
            (heard.dst_port, heard.src_port, heard.ack, end)
        });
        let first = self.keys.0.idsn().0.wrapping_add(1);
        let remote = self.keys.1.idsn().0.wrapping_add(1);
        let (seq, ack) = (seq.wrapping_add(draft.seq), ack.wrapping_add(draft.ack));
        let mut options = Options {
            timestamps: draft.stamps.map(|(value, echo)| Timestamps { value, echo }),
            window_scale: draft.scale,
            mptcp: draft.mptcp.clone().map(Box::new),
            dss: draft.dss.map(|(data_ack, mapping, data_fin)| Dss {
                data_ack: data_ack.map(|(value, long)| DataAck {
                    value: WireDsn(remote.wrapping_add(value)),
                    long,
                }),
                mapping: mapping.map(|(dsn, long, ssn, len)| Mapping {
                    dsn: WireDsn(first.wrapping_add(dsn)),
                    long,
                    ssn: 1u32.wrapping_add(ssn),
                    len,
                    checksum: None,
                }),
                data_fin,
            }),
            ..Options::default()
        };
        for (left, right) in &draft.sack {
            options.sack.push(ack.wrapping_sub(*left), ack.wrapping_add(*right));
        }
        let payload = match draft.len {
            0 => Payload::Empty,
            len => Payload::from_bytes(&vec![9; usize::from(len)]),
        };
        let (flags, window) = (Flags(draft.flags), draft.window);
        let server = ServerAddress::default();
        Segment { src_port, dst_port, seq, ack, flags, server, window, options, payload }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// F18, F19, R1, R2: any segments and calls in any state.
    #[test]
    fn nothing_breaks(
        client: bool,
        multipath in prop::bool::weighted(0.8),
        checksum in prop::bool::weighted(0.3),
        rcvbuf in prop::sample::select(vec![1u64, 1_500, 70_000, 6 << 20]),
        greeting in 0usize..6,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let config = Config::default().with(|it| { it.multipath = multipath; it.checksum = checksum; it.buffers.rcvbuf = rcvbuf; });
        let mut bench = Bench::new(client, config);
        bench.drain();
        for which in 0..greeting {
            bench.take(&Step::Answer(if which == 2 { 5 } else { 0 }));
        }
        for step in &steps {
            bench.take(step);
        }
        bench.pass(Span::from_secs(30));
    }
}
